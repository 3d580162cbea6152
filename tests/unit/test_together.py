"""``together()``: calls of several requests that run as one, in tasks and in threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import (
    BarrierResult,
    ConfigurationError,
    DependencyLost,
    IncompleteLineage,
    Lineage,
    Promise,
    Status,
    UnmetError,
    WriteId,
)
from antipode.shim import Outcome, record_read, scope_in
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 498_669


def post(number: int, version: int = 1) -> WriteId:
    """A write that some request depends on."""
    return WriteId("posts", f"p{number}", version, HOUR)


READ = Lineage([WriteId("users", "log", 9, HOUR, covering=True)])


def lost(*writes: WriteId) -> UnmetError:
    """The error of a read that needs *writes*, which are gone."""
    outcomes = tuple(Outcome(each, Status.LOST) for each in writes)
    return DependencyLost("gone", BarrierResult(outcomes))


class Work:
    """Work that notes each run: its items, and what it depends on. Its runs wait for each other."""

    def __init__(self, gone: Lineage | None = None, added: Lineage = READ) -> None:
        self.runs: list[tuple[list[Any], Lineage]] = []
        self.gone, self.added = gone or Lineage(), added

    async def __call__(self, items: list[Any]) -> list[Any]:
        """Ten times each item."""
        await asyncio.sleep(0)
        return self.do(items)

    def do(self, items: list[Any]) -> list[Any]:
        """The same at once."""
        found = antipode.current()
        self.runs.append((items, found))
        record_read(self.added)
        if missing := [each for each in found if each in self.gone]:
            raise lost(*missing)
        return [each * 10 if isinstance(each, int) else each for each in items]


async def asking(call: Callable[[Any], Any], item: Any, *depends: WriteId) -> tuple[Any, Lineage]:
    """What a request gets that depends on *depends*, and what it depends on then."""
    with antipode.scope(Lineage(depends)):
        try:
            return await call(item), antipode.current()
        except Exception as error:  # noqa: BLE001 - that is what it gets
            return error, antipode.current()


async def test_each_caller_gets_what_was_added_and_none_of_the_others_causes() -> None:
    """The work runs once, and depends on what all of them do."""
    work = Work()
    call = antipode.together(work)
    found = list(await asyncio.gather(asking(call, 1, post(1)), asking(call, 2, post(2))))
    assert found == [(10, Lineage([post(1), *READ])), (20, Lineage([post(2), *READ]))]
    assert work.runs == [([1, 2], Lineage([post(1), post(2)]))]


async def test_what_is_read_is_added_also_where_another_caller_brought_it() -> None:
    """The first caller learns of what the second knew before."""
    call = antipode.together(Work(added=Lineage([post(2)])))
    both = await asyncio.gather(asking(call, 1, post(1)), asking(call, 2, post(2)))
    assert both[0][1] == Lineage([post(1), post(2)])


async def test_calls_during_a_run_are_of_the_next_one() -> None:
    """None of them gets what began before it was made; one run serves them all."""
    work, begun, go = Work(), asyncio.Event(), asyncio.Event()

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        begun.set()
        await go.wait()
        return work.do(items)

    first = asyncio.ensure_future(asking(call, 1))
    await begun.wait()
    others = [asyncio.ensure_future(asking(call, n, post(n))) for n in (2, 3)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *others)
    assert work.runs == [([1], Lineage()), ([2, 3], Lineage([post(2), post(3)]))]


async def test_who_brought_what_is_lost_gets_its_error_and_the_others_go_on() -> None:
    """The error is about what that caller brought alone, and its scope stays as it was."""
    work = Work(gone=Lineage([post(2), post(3)]))
    call = antipode.together(work)
    found = await asyncio.gather(*(asking(call, n, post(n)) for n in (1, 2, 3)))
    assert found[0] == (10, Lineage([post(1), *READ]))
    for number in (2, 3):
        error, lineage = found[number - 1]
        assert isinstance(error, DependencyLost)
        assert [each.write for each in error.result.outcomes] == [post(number)]
        assert "p2" not in str(error) or number == 2
        assert lineage == Lineage([post(number)])
    assert [items for items, _ in work.runs] == [[1, 2, 3], [1]]


async def test_who_is_incomplete_gets_that_error() -> None:
    """A lineage that says what it misses fails alone."""

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        await antipode.barrier_async(timeout=5, on_unknown="report")
        return items

    async def incomplete() -> object:
        with antipode.scope(Lineage(incomplete=[("posts", "in_doubt")])):
            return await call(2)

    one, two = await asyncio.gather(asking(call, 1), incomplete(), return_exceptions=True)
    assert isinstance(two, IncompleteLineage)
    assert one == (1, Lineage())


async def test_an_error_that_was_made_of_another_is_found_in_it() -> None:
    """A work that wraps errors, or waits in a group of tasks, is run again as well."""

    class WrappedError(Exception):
        pass

    plain = Work(gone=Lineage([post(2)]))

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        try:
            return plain.do(items)
        except UnmetError as error:
            raise WrappedError from error

    one, two = await asyncio.gather(asking(call, 1), asking(call, 2, post(2)))
    assert one == (10, READ)
    assert isinstance(two[0], DependencyLost)


async def test_what_the_work_itself_depends_on_is_everybodys() -> None:
    """It is not run again for what none of its callers brought."""
    runs = []

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        runs.append(items)
        raise lost(post(9))

    found = await asyncio.gather(asking(call, 1, post(1)), asking(call, 2))
    assert [type(error) for error, _ in found] == [DependencyLost] * 2
    assert runs == [[1, 2]]


async def test_what_has_written_is_not_run_again() -> None:
    """It would write twice: its error is everybody's, and so is what it wrote."""
    plain = Work(gone=Lineage([post(2)]), added=Lineage())

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        antipode.append(post(7))
        return plain.do(items)

    found = await asyncio.gather(asking(call, 1), asking(call, 2, post(2)))
    assert [type(error) for error, _ in found] == [DependencyLost] * 2
    assert [lineage for _, lineage in found] == [Lineage([post(7)]), Lineage([post(2), post(7)])]
    assert len(plain.runs) == 1


async def test_an_exception_among_the_results_is_of_its_item() -> None:
    """The others have their results."""

    @antipode.together
    async def call(items: list[int]) -> list[Any]:
        return [KeyError(each) if each == 2 else each for each in items]

    found = await asyncio.gather(*(asking(call, n) for n in (1, 2, 3)))
    assert [repr(result) for result, _ in found] == ["1", "KeyError(2)", "3"]


async def test_a_wrong_number_of_results_is_an_error() -> None:
    """No caller gets another one's result."""

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        return items[1:]

    found = await asyncio.gather(asking(call, 1), asking(call, 2))
    assert {str(error) for error, _ in found} == {"the work returned 1 results for 2 items"}


async def test_a_cancelled_caller_leaves_the_others_theirs() -> None:
    """One that is cancelled before the run is no part of it."""
    work = Work()
    call = antipode.together(work)
    first, second = (asyncio.ensure_future(asking(call, n, post(n))) for n in (1, 2))
    await asyncio.sleep(0)
    second.cancel()
    assert await first == (10, Lineage([post(1), *READ]))
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_run_that_nobody_awaits_any_more_is_cancelled() -> None:
    """And the next call has a run of its own."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        begun.set()
        try:
            await asyncio.sleep(60 if items == [1] else 0)
        except asyncio.CancelledError:
            ended.set()
            raise
        return items

    first = asyncio.ensure_future(call(1))
    await begun.wait()
    first.cancel()
    await ended.wait()
    assert await call(2) == 2


async def test_a_key_keeps_tenants_apart() -> None:
    """Calls of two tenants run at the same time, each without the other's causes."""
    work = Work()
    call = antipode.together(key=lambda item: item[0])(work)
    await asyncio.gather(
        asking(call, ("a", 1), post(1)), asking(call, ("b", 2), post(2)), asking(call, ("a", 3))
    )
    assert work.runs == [
        ([("a", 1), ("a", 3)], Lineage([post(1)])),
        ([("b", 2)], Lineage([post(2)])),
    ]


async def test_a_call_within_its_own_run_does_not_wait_for_it() -> None:
    """A work that asks for more of the same is answered at once."""

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        return [each + (await call(each - 1) if each else 0) for each in items]

    assert await asyncio.wait_for(call(3), 20) == 6


async def test_who_fulfils_a_promise_does_not_wait_for_it() -> None:
    """It has a run of its own: the other's depends on that promise, and this one cannot."""
    work, promise = Work(), Promise("posts", "a" * 32, 2**31)
    call = antipode.together(work)

    async def fulfils() -> None:
        with antipode.scope(Lineage(promises=[promise])), antipode.fulfilling(promise):
            await call(2)

    async def waits() -> None:
        with antipode.scope(Lineage(promises=[promise])):
            await call(1)

    await asyncio.gather(waits(), fulfils())
    assert work.runs == [([1], Lineage(promises=[promise])), ([2], Lineage())]


async def test_a_branch_within_the_work_adds_what_it_added() -> None:
    """Not what it began with: the other caller's causes."""
    promise = Promise("posts", "a" * 32, 2**31)

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        with antipode.fulfilling(promise):
            antipode.append(post(7))
        return items

    both = await asyncio.gather(asking(call, 1, post(1)), asking(call, 2, post(2)))
    assert both[0][1] == Lineage([post(1), post(7)])


async def test_a_scope_is_not_kept_for_a_call_that_nobody_awaits() -> None:
    """Its request is over: the run goes on without it."""
    begun, go = asyncio.Event(), asyncio.Event()

    @antipode.together
    async def call(items: list[int]) -> list[int]:
        begun.set()
        await go.wait()
        return items

    async def forgets() -> tuple[weakref.ref[Any], asyncio.Future[int]]:
        with antipode.scope():
            return weakref.ref(scope_in()), asyncio.ensure_future(call(2))

    first = asyncio.ensure_future(call(1))
    await begun.wait()
    held, second = await asyncio.ensure_future(forgets())
    await asyncio.sleep(0)
    second.cancel()
    go.set()
    await asyncio.wait([first, second])
    del second
    gc.collect()
    assert held() is None


async def test_without_scopes_calls_run_together_too() -> None:
    """There is nothing to depend on, and nothing to get."""
    work = Work()
    call = antipode.together(work)
    assert list(await asyncio.gather(call(1), call(2))) == [10, 20]
    assert [items for items, _ in work.runs] == [[1, 2]]


class Threads:
    """Callers in threads of one function, whose first run waits until it may go on."""

    def __init__(self, gone: Lineage | None = None) -> None:
        self.work, self.go = Work(gone), threading.Event()
        self.found: dict[int, tuple[Any, Lineage]] = {}
        self.call = antipode.together(self._run)
        self._threads: list[threading.Thread] = []

    def _run(self, items: list[int]) -> list[int]:
        self.go.wait(60)
        return self.work.do(items)

    def start(self, number: int, *depends: WriteId) -> None:
        """A request asks for *number*."""

        def ask() -> None:
            with antipode.scope(Lineage(depends)):
                try:
                    result: Any = self.call(number)
                except Exception as error:  # noqa: BLE001 - that is what it gets
                    result = error
                self.found[number] = result, antipode.current()

        thread = threading.Thread(target=ask)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        """All have their results."""
        self.go.set()
        for each in self._threads:
            each.join(60)


def queued(call: Callable[[Any], Any], count: int) -> None:
    """Return once so many calls wait for the next run of a decorated function."""
    cells: Any = call.__closure__
    (calls,) = (each for each in (c.cell_contents for c in cells) if hasattr(each, "_waiting"))
    wait_until(lambda: sum(map(len, calls._waiting.values())) == count, what="calls", timeout_s=60)


def test_threads_that_come_during_a_run_are_of_the_next_one() -> None:
    """Each gets what was added there, and none of the others' causes."""
    threads = Threads()
    for number in (1, 2, 3):
        threads.start(number, post(number))
        queued(threads.call, number - 1)
    threads.end()
    assert threads.found == {n: (n * 10, Lineage([post(n), *READ])) for n in (1, 2, 3)}
    assert threads.work.runs == [
        ([1], Lineage([post(1)])),
        ([2, 3], Lineage([post(2), post(3)])),
    ]


def test_a_thread_that_brought_what_is_lost_gets_its_error() -> None:
    """The others' run goes on without it, whichever of them runs it."""
    threads = Threads(gone=Lineage([post(2)]))
    for number in (1, 2, 3):
        threads.start(number, post(number))
        queued(threads.call, number - 1)
    threads.end()
    assert isinstance(threads.found[2][0], DependencyLost)
    assert [threads.found[n][0] for n in (1, 3)] == [10, 30]
    assert [items for items, _ in threads.work.runs] == [[1], [2, 3], [3]]


def test_an_interrupted_thread_leaves_the_others_their_run() -> None:
    """Who ran for all and is interrupted is replaced by one of those who wait."""
    runs = []

    class Interrupt(BaseException):
        pass

    begun, go = threading.Event(), threading.Event()

    @antipode.together
    def call(items: list[int]) -> list[int]:
        runs.append(items)
        if items == [1]:
            begun.set()
            go.wait(60)
        elif len(runs) == 2:
            raise Interrupt
        return items

    found: list[Any] = []

    def ask(number: int) -> None:
        try:
            found.append(call(number))
        except Interrupt:
            found.append(None)

    threads = [threading.Thread(target=ask, args=(n,)) for n in (1, 2, 3, 4)]
    threads[0].start()
    begun.wait(60)
    for number, each in enumerate(threads[1:]):
        each.start()
        queued(call, number + 1)
    go.set()
    for each in threads:
        each.join(60)
    assert sorted(found, key=str) == [1, 3, 4, None]
    assert [sorted(items) for items in runs] == [[1], [2, 3, 4], [3, 4]]


def _generator(items: list[int]) -> Any:
    yield from items


@pytest.mark.parametrize("work", [3, _generator], ids=["int", "generator"])
def test_what_returns_no_list_is_refused(work: Any) -> None:
    """Where it is decorated, not at its first call."""
    with pytest.raises(ConfigurationError, match="takes a function"):
        antipode.together(work)
