"""Tasks of asyncio as branches of the request that made them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import asyncio as antipode_asyncio
from antipode.integrations import threads
from antipode.shim import Scope, scope_in

if TYPE_CHECKING:
    from collections.abc import Iterator


def post(number: int) -> WriteId:
    return WriteId("posts", f"p{number}", 1, written_hour=490_000)


async def write(number: int, after: asyncio.Event | None = None) -> int:
    """A task: one write into whatever scope it runs in."""
    if after is not None:
        await after.wait()
    antipode.append(post(number))
    return number


def running(held: Scope) -> int:
    """How many branches what leaves now says that run."""
    return antipode.deserialize(held.text()).open_branches


@pytest.fixture(autouse=True, params=["every loop", "this loop", "both"])
async def _instrumented(request: pytest.FixtureRequest) -> Any:
    """Tasks are counted during a test, by the class, by a factory, or by both."""
    loop = asyncio.get_running_loop()
    if request.param != "this loop":
        antipode_asyncio.instrument()
    if request.param != "every loop":
        antipode_asyncio.instrument_loop(loop)
    yield
    antipode_asyncio.uninstrument()
    antipode_asyncio.uninstrument_loop(loop)


async def test_tasks_that_are_awaited_are_over() -> None:
    """By ``await``, ``gather``, ``wait`` and ``wait_for``: closed before the code goes on."""
    with antipode.scope() as held:
        task = asyncio.create_task(write(1))
        assert running(held) == 1
        await task
        assert running(held) == 0
        await asyncio.gather(write(2), write(3))
        assert running(held) == 0
        await asyncio.wait([asyncio.create_task(write(4))])
        assert running(held) == 0
        await asyncio.wait_for(write(5), 5)
        assert running(held) == 0
        assert len(held.lineage) == 5


async def test_a_task_that_is_not_awaited_shows_in_the_answer() -> None:
    """The answer says that it runs; what it writes later is in the scope."""
    go = asyncio.Event()
    with antipode.scope() as held:
        task = asyncio.create_task(write(1, go))
        assert antipode.deserialize(held.answer()).open_branches == 1
    go.set()
    await task
    assert held.lineage == Lineage([post(1)])
    assert running(held) == 0


async def test_a_task_that_is_cancelled_or_fails_is_over() -> None:
    """However it ends; what it raised is as ever."""

    async def fail() -> None:
        raise LookupError("x")

    with antipode.scope() as held:
        cancelled = asyncio.create_task(write(1, asyncio.Event()))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert running(held) == 0
        with pytest.raises(LookupError, match="x"):
            await asyncio.create_task(fail())
        assert running(held) == 0


async def test_a_task_with_a_context_of_its_own_is_of_that_contexts_scope() -> None:
    """``context=`` says whose branch it is."""
    if sys.version_info < (3, 11):
        pytest.skip("create_task takes a context from Python 3.11 on")
    with antipode.scope() as other:
        context = contextvars.copy_context()
        with antipode.scope() as held:
            loop: Any = asyncio.get_running_loop()
            task = loop.create_task(write(1), context=context)
            assert (running(held), running(other)) == (0, 1)
            await task
        assert (held.lineage, other.lineage) == (Lineage(), Lineage([post(1)]))
        assert running(other) == 0


async def test_task_groups_are_made_of_branches() -> None:
    """All are over when the group is."""
    if sys.version_info < (3, 11):
        pytest.skip("task groups came with Python 3.11")
    with antipode.scope() as held:
        async with asyncio.TaskGroup() as tasks:  # type: ignore[attr-defined, unused-ignore]
            for number in range(10):
                tasks.create_task(write(number))
            assert running(held) == 10
        assert running(held) == 0
        assert len(held.lineage) == 10


async def test_outside_of_a_scope_nothing_is_counted() -> None:
    """A server's own tasks are nobody's branches."""
    assert await asyncio.create_task(write(1)) == 1
    with antipode.scope() as held:
        assert running(held) == 0


async def test_to_thread_and_executors_are_counted_once() -> None:
    """With threads instrumented too: awaited they are over."""
    threads.instrument()
    try:
        with antipode.scope() as held:
            await asyncio.to_thread(antipode.append, post(1))
            await asyncio.get_running_loop().run_in_executor(None, antipode.append, post(2))
            await asyncio.create_task(asyncio.to_thread(antipode.append, post(3)))
            assert running(held) == 0
    finally:
        threads.uninstrument()
    assert {w.key for w in held.lineage} >= {"p1", "p3"}


async def test_tasks_of_libraries_are_no_branches() -> None:
    """A connection's reader that a request happens to start serves the process."""
    module = types.ModuleType("aiormq.reader")
    code = "import asyncio\nasync def read(until): await until.wait()"
    exec(code, vars(module))  # noqa: S102 - a coroutine of a module of that name
    until = asyncio.Event()
    with antipode.scope() as held:
        task = asyncio.create_task(module.read(until))
        assert running(held) == 0
        until.set()
        await task


async def test_scopes_are_collected_when_their_tasks_are_over() -> None:
    """A request in a task of its own, as servers run them, leaves nothing of its scope."""

    async def request() -> weakref.ref[Scope]:
        with antipode.scope() as held:
            await asyncio.create_task(write(1))
            return weakref.ref(held)

    gone = await asyncio.create_task(request())
    await asyncio.create_task(write(2))  # A context variable remembers what it held last.
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
async def test_eager_tasks_stay_eager() -> None:
    """One that ends while it is made is over at once; one that goes on is open until it ends."""
    loop = asyncio.get_running_loop()
    mine = loop.get_task_factory()
    antipode_asyncio.uninstrument_loop(loop)
    eager: Any = vars(asyncio)["eager_task_factory"]
    loop.set_task_factory(eager)
    if mine is not None:
        antipode_asyncio.instrument_loop(loop)
    seen: list[int] = []

    async def look() -> None:
        seen.append(running(held))

    with antipode.scope() as held:
        done = asyncio.create_task(look())
        assert seen == [1]
        assert done.done()
        assert running(held) == 0
        go = asyncio.Event()
        later = asyncio.create_task(write(1, go))
        assert running(held) == 1
        go.set()
        await later
        assert running(held) == 0
    antipode_asyncio.uninstrument_loop(loop)
    assert loop.get_task_factory() is eager


def factories() -> Iterator[Any]:
    yield None
    yield lambda loop, coro, **kwargs: asyncio.Task(coro, loop=loop, **kwargs)


async def test_instrumenting_is_idempotent_and_undoable() -> None:
    """Twice is once, and undone is as it was, whatever factory the loop had."""
    loop = asyncio.get_running_loop()
    antipode_asyncio.uninstrument()
    antipode_asyncio.uninstrument_loop(loop)
    plain = asyncio.BaseEventLoop.create_task
    for factory in factories():
        loop.set_task_factory(factory)
        for _ in range(2):
            antipode_asyncio.instrument()
            antipode_asyncio.instrument_loop(loop)
        with antipode.scope() as held:
            task = asyncio.create_task(write(1), name="mine")
            assert running(held) == 1
            assert task.get_name() == "mine"
            await task
        for _ in range(2):
            antipode_asyncio.uninstrument()
            antipode_asyncio.uninstrument_loop(loop)
        assert loop.get_task_factory() is factory
        assert asyncio.BaseEventLoop.create_task is plain
        with antipode.scope() as held:
            task = asyncio.create_task(write(1))
            assert running(held) == 0
            await task
    loop.set_task_factory(None)
    assert scope_in() is None
