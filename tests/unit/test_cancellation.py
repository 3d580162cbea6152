"""Cancellations that a client library swallows end the task that waits for it all the same."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from antipode.shim import unless_cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

needs_counts = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="no task counts the requests to cancel it"
)

loses_some = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="wait_for loses no cancellation any more"
)


async def deaf(met: asyncio.Event) -> str:
    """Work that goes on after a cancellation, as drivers do on Python 3.10 and 3.11."""
    try:
        met.set()
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "done"
    raise AssertionError


async def race(met: asyncio.Event) -> str:
    """Work that ends within ``asyncio.wait_for`` just as its task is cancelled."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    async def last() -> str:
        loop.call_soon(task.cancel)  # After the work's end, before its waiter goes on.
        return "done"

    met.set()
    return await asyncio.wait_for(last(), 5)


async def failing(met: asyncio.Event) -> str:
    """Work that makes a failure of its own out of a cancellation."""
    await deaf(met)
    raise OSError


def cancelled(work: Callable[[asyncio.Event], Coroutine[None, None, str]]) -> asyncio.Task[str]:
    """A task that was cancelled while it awaited *work*."""

    async def main() -> asyncio.Task[str]:
        met = asyncio.Event()

        async def run() -> str:
            return await unless_cancelled(work(met))

        task = asyncio.create_task(run())
        await met.wait()
        if work is not race:
            task.cancel()
        await asyncio.wait({task})
        return task

    return asyncio.run(main())


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(race, marks=loses_some),
        pytest.param(deaf, marks=needs_counts),
        pytest.param(failing, marks=needs_counts),
    ],
)
def test_what_swallows_a_cancellation_ends_by_it(
    work: Callable[[asyncio.Event], Coroutine[None, None, str]],
) -> None:
    """The cancellation is raised once the work is over."""
    assert cancelled(work).cancelled()


async def timed_out() -> str:
    """Work with a timeout of its own, which cancels the task and takes that back."""
    anyio = pytest.importorskip("anyio")
    with anyio.move_on_after(0.01):
        await asyncio.Event().wait()
    return "done"


async def given() -> str:
    """Work that waits once, and is not cancelled."""
    await asyncio.sleep(0)
    return "done"


@pytest.mark.parametrize("work", [given, timed_out])
def test_work_that_is_not_cancelled_ends_as_it_does(
    work: Callable[[], Coroutine[None, None, str]],
) -> None:
    """Its result is given, a timeout of its own included."""

    async def main() -> str:
        return await unless_cancelled(work())

    assert asyncio.run(main()) == "done"


@pytest.mark.parametrize("work", [given, timed_out])
def test_a_task_that_caught_its_cancellation_may_go_on(
    work: Callable[[], Coroutine[None, None, str]],
) -> None:
    """What it does to clean up is not ended by a cancellation from before."""

    async def main() -> str:
        async def run() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return await unless_cancelled(work())
            raise AssertionError

        task = asyncio.create_task(run())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(main()) == "done"


@needs_counts
def test_a_scope_of_anyio_knows_its_cancellation() -> None:
    """What is raised is what was thrown: the scope that was left by it ends there."""
    anyio = pytest.importorskip("anyio")

    async def main() -> bool:
        with anyio.move_on_after(0.01) as scope:
            await unless_cancelled(deaf(asyncio.Event()))
        await asyncio.sleep(0)
        return scope.cancelled_caught

    assert asyncio.run(main())


def test_errors_of_the_work_are_raised() -> None:
    """They are its own."""

    async def work() -> Awaitable[None]:
        raise OSError

    async def main() -> None:
        with pytest.raises(OSError):  # noqa: PT011 - of the work, without a text
            await unless_cancelled(work())

    asyncio.run(main())


def test_what_is_closed_closes_the_work() -> None:
    """Its ``finally`` blocks run."""
    closed = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    async def outer() -> None:
        await unless_cancelled(work())

    coroutine = outer()
    coroutine.send(None)
    coroutine.close()
    assert closed == [True]
