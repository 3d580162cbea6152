"""One scope for each request, shared by its threads and tasks and by nobody else."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import pickle
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage, WriteId
from antipode._request.context import LiveText
from antipode.shim import Incomplete, scope_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POST = WriteId("posts", "log", 7, written_hour=490_000)
USER = WriteId("users", "log", 3, written_hour=490_000)


def versions(lineage: Lineage) -> set[int | str]:
    """The versions in *lineage*."""
    return {write.version for write in lineage}


def test_a_scope_starts_with_nothing_or_with_what_it_is_given() -> None:
    """``scope()`` is empty; ``scope(lineage)`` and ``scope(text)`` start from that lineage."""
    with antipode.scope():
        assert antipode.current() == Lineage()
    start = Lineage([POST])
    for given in (start, antipode.serialize(start)):
        with antipode.scope(given):
            assert antipode.current() == start


def test_outside_a_scope_the_lineage_is_empty() -> None:
    """``current()`` needs no scope, and nothing is left after one ends."""
    with antipode.scope(Lineage([POST])):
        pass
    assert antipode.current() == Lineage()


def test_table_2_in_one_request() -> None:
    """root, append, remove, transfer, serialize, deserialize and stop do what Table 2 says."""
    assert antipode.root() == Lineage()
    assert antipode.append(POST) == Lineage([POST])
    assert antipode.transfer(Lineage([USER])) == Lineage([POST, USER])
    assert antipode.remove(POST) == Lineage([USER])
    assert antipode.deserialize(antipode.serialize()) == Lineage([USER])
    antipode.stop()
    assert antipode.current() == Lineage()
    assert scope_in() is None


def test_stop_discards_the_lineage_in_every_branch() -> None:
    """A branch that copied the context before ``stop()`` neither sees nor adds anything after."""
    antipode.root()
    antipode.append(POST)
    branch = contextvars.copy_context()
    antipode.stop()
    assert branch.run(antipode.current) == Lineage()
    branch.run(antipode.append, USER)
    assert branch.run(antipode.current) == Lineage()


def test_the_end_of_a_request_leaves_the_lineage_to_its_branches() -> None:
    """A background branch that outlives the request still knows what it depends on."""
    with antipode.scope():
        antipode.append(POST)
        branch = contextvars.copy_context()
    assert branch.run(antipode.current) == Lineage([POST])
    branch.run(antipode.append, USER)
    assert branch.run(antipode.current) == Lineage([POST, USER])


def test_transfer_combines_lineages_texts_and_scopes() -> None:
    """A target scope changes and a target lineage does not; texts and scopes are sources too."""
    with antipode.scope(Lineage([POST])) as block:
        pass
    target = Lineage([USER])
    assert antipode.transfer(block, target=target) == Lineage([POST, USER])
    assert target == Lineage([USER])
    with antipode.scope() as post:
        antipode.transfer(antipode.serialize(target), target=post)
        assert antipode.current() == Lineage([USER])


def test_an_entry_gets_the_hour_in_which_it_was_appended() -> None:
    """An entry without a mint hour could never age, so the scope states one."""
    with antipode.scope():
        antipode.append(WriteId("posts", "log", 7))
        (write,) = antipode.current()
    assert write.written_hour > 0


def fork_by_thread(work: Callable[[int], object]) -> None:
    """Run *work* in threads that copied the context."""
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work, i)) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fork_by_pool(work: Callable[[int], object]) -> None:
    """Run *work* in a pool whose threads existed before."""
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(contextvars.copy_context().run, work, i) for i in range(8)]:
            future.result()


def fork_by_otel(work: Callable[[int], object]) -> None:
    """Run *work* in a thread that attaches the caller's OpenTelemetry context."""
    context = otel_context.get_current()

    def run(number: int) -> None:
        token = otel_context.attach(context)
        work(number)
        otel_context.detach(token)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(8)))


def fork_by_tasks(work: Callable[[int], object]) -> None:
    """Run *work* in tasks that are gathered."""

    async def one(number: int) -> None:
        await asyncio.sleep(0)
        work(number)

    async def main() -> None:
        await asyncio.gather(*(one(i) for i in range(8)))

    asyncio.run(main())


def fork_by_to_thread(work: Callable[[int], object]) -> None:
    """Run *work* by ``asyncio.to_thread``."""

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(work, i) for i in range(8)))

    asyncio.run(main())


def fork_by_generator(work: Callable[[int], object]) -> None:
    """Run *work* step by step in a generator."""

    def steps() -> Iterator[object]:
        for number in range(8):
            yield work(number)

    list(steps())


@pytest.mark.parametrize(
    "fork",
    [
        fork_by_thread,
        fork_by_pool,
        fork_by_otel,
        fork_by_tasks,
        fork_by_to_thread,
        fork_by_generator,
    ],
)
def test_branches_share_the_scope(fork: Callable[[Callable[[int], object]], None]) -> None:
    """What any branch of a request writes, the request knows after the join."""
    with antipode.scope():
        fork(lambda number: antipode.append(WriteId("posts", f"log-{number}", number)))
        assert versions(antipode.current()) == set(range(8))


def test_two_requests_on_one_loop_never_mix() -> None:
    """Concurrent tasks with scopes of their own see their own writes alone."""

    async def request(number: int) -> set[int | str]:
        with antipode.scope():
            for _ in range(5):
                antipode.append(WriteId("posts", f"log-{number}", number))
                await asyncio.sleep(0)
            return versions(antipode.current())

    async def main() -> list[set[int | str]]:
        return list(await asyncio.gather(*(request(i) for i in range(50))))

    assert asyncio.run(main()) == [{i} for i in range(50)]


def test_two_requests_on_one_thread_never_mix() -> None:
    """A worker thread serves one request after the other; nothing stays behind."""
    seen: list[set[int | str]] = []

    def request(number: int) -> None:
        with antipode.scope():
            antipode.append(WriteId("posts", "log", number))
            seen.append(versions(antipode.current()))

    with ThreadPoolExecutor(1) as pool:
        list(pool.map(request, [9, 4, 7]))
    assert seen == [{9}, {4}, {7}]


def test_a_scope_within_a_scope_hides_it_until_it_ends() -> None:
    """Nesting is possible, and the outer lineage comes back unchanged."""
    with antipode.scope(Lineage([POST])):
        with antipode.scope():
            antipode.append(USER)
            assert antipode.current() == Lineage([USER])
        assert antipode.current() == Lineage([POST])


def test_an_async_generator_closed_elsewhere_keeps_scopes_apart() -> None:
    """A scope in an asynchronous generator does not leak into the task that drives it."""

    async def numbers() -> object:
        return versions(antipode.current())

    async def main() -> None:
        with antipode.scope(Lineage([POST])):
            task = asyncio.create_task(numbers())
            with antipode.scope():
                assert await numbers() == set()
            assert await task == {7}

    asyncio.run(main())


def test_no_append_is_lost_between_threads() -> None:
    """Appending is atomic: without the scope's lock some of these writes vanish."""
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            with antipode.scope() as held:
                start = threading.Barrier(8)

                def work(worker: int, start: threading.Barrier = start) -> None:
                    start.wait()
                    for number in range(100):
                        antipode.append(WriteId("posts", f"log-{worker}-{number}", number))

                fork_by_thread(work)
                assert len(held.lineage) == 800
    finally:
        sys.setswitchinterval(old)


def test_the_lock_is_what_keeps_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim of the test before can fail: a merge that is interrupted loses without a lock."""

    class NoLock:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    with antipode.scope() as held:
        held._lock = NoLock()  # type: ignore[assignment]
        merge = Lineage.merge

        def interrupted(self: Lineage, *others: Lineage) -> Lineage:
            monkeypatch.setattr(Lineage, "merge", merge)
            fork_by_thread(lambda _: antipode.append(USER))
            return merge(self, *others)

        monkeypatch.setattr(Lineage, "merge", interrupted)
        antipode.append(POST)
        assert held.lineage == Lineage([POST])


def test_the_handle_renders_the_current_lineage_when_it_is_injected() -> None:
    """``str()`` and ``format()`` of the baggage value give the lineage of that moment."""
    with antipode.scope():
        handle = baggage.get_baggage("antipode")
        assert isinstance(handle, LiveText)
        antipode.append(POST)
        assert str(handle) == f"{handle}" == antipode.serialize()
        assert antipode.deserialize(str(handle)) == Lineage([POST])


def test_code_that_takes_the_characters_learns_that_a_lineage_is_missing() -> None:
    """json, pickle, join and encode see a text that says so, and that names nothing."""
    antipode.configure(egress=["posts"])
    with antipode.scope(Lineage([POST, WriteId("secret", "k", 1)])):
        handle = baggage.get_baggage("antipode")
        assert isinstance(handle, str)
        parts = [handle]
        taken = [
            json.loads(json.dumps(handle)),
            pickle.loads(pickle.dumps(handle)),  # noqa: S301 - our own bytes
            "".join(parts),
            handle.encode().decode(),
        ]
    for text in taken:
        assert antipode.deserialize(text) == Lineage(incomplete=[Incomplete("", "snapshot")])


def test_a_scope_of_the_handle_has_the_lineage_of_the_moment() -> None:
    """Who takes the member out of the baggage and gives it back to the library loses nothing."""
    with antipode.scope():
        handle = baggage.get_baggage("antipode")
        assert isinstance(handle, str)
        antipode.append(POST)
        assert antipode.deserialize(handle) == antipode.current()
        with antipode.scope(handle) as other:
            assert other.lineage == Lineage([POST])


def test_a_scope_is_of_one_block() -> None:
    """A second block has a request of its own, so it needs another one."""
    request = antipode.scope()
    with request:
        pass
    with pytest.raises(RuntimeError, match="one block"), request:
        pass


def test_a_decorated_function_has_a_request_for_each_call() -> None:
    """What one call depends on the next one does not."""

    @antipode.scope(Lineage([POST]))
    def handle() -> Lineage:
        antipode.append(WriteId("posts", "k2", 2))
        return antipode.current()

    assert handle() == handle()
    assert antipode.current() == Lineage()


def test_the_handle_of_an_empty_scope_is_no_empty_text() -> None:
    """Even a snapshot of nothing says that it may miss something."""
    with antipode.scope():
        handle = baggage.get_baggage("antipode")
        assert isinstance(handle, str)
        assert antipode.deserialize(handle.encode().decode()).incomplete


def test_the_users_baggage_survives_ours_and_ours_survives_theirs() -> None:
    """Members set before, within and after a scope are all there, and so is the handle."""
    outer = otel_context.attach(baggage.set_baggage("tenant", "a"))
    with antipode.scope():
        inner = otel_context.attach(baggage.set_baggage("user", "b"))
        antipode.append(POST)
        members = baggage.get_all()
        assert (members["tenant"], members["user"]) == ("a", "b")
        assert antipode.deserialize(str(members["antipode"])) == Lineage([POST])
        otel_context.detach(inner)
    assert baggage.get_all() == {"tenant": "a"}
    otel_context.detach(outer)


def test_clearing_baggage_stops_sending_and_keeps_tracking() -> None:
    """``baggage.clear`` means what it says: nothing is sent; the scope still knows its writes."""
    with antipode.scope():
        token = otel_context.attach(baggage.clear())
        antipode.append(POST)
        assert baggage.get_all() == {}
        assert antipode.current() == Lineage([POST])
        otel_context.detach(token)


def test_a_write_without_a_scope_is_counted_and_logged_once_for_each_site(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing is lost silently: each loss is counted, each place of a loss logged once."""
    name = antipode.telemetry.Metric("unscoped_append", "posts")
    before = antipode.telemetry.metrics().get(name, 0)
    for _ in range(3):
        antipode.append(POST)
    assert antipode.telemetry.metrics()[name] == before + 3
    messages = [r.getMessage() for r in caplog.records if "outside a scope" in r.getMessage()]
    assert len(messages) == 1
    assert "test_scope.py" in messages[0]


def test_a_write_without_a_scope_raises_if_configured() -> None:
    """``on_unscoped="raise"`` turns the loss into an error that says what to do."""
    antipode.configure(on_unscoped="raise")
    with pytest.raises(antipode.ConfigurationError, match=r"antipode\.scope"):
        antipode.append(POST)


def test_a_scope_is_freed_after_its_request() -> None:
    """No table, handle or token keeps the scopes of finished requests alive."""
    antipode.root()
    held = scope_in()
    assert held is not None
    alive = weakref.ref(held)
    del held
    antipode.stop()
    gc.collect()
    assert alive() is None
