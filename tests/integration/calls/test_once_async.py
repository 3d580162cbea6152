"""Functions whose effect, name and reply commit together, in tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine

from antipode import calls
from tests.integration.calls.conftest import INSERT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.integration.calls.conftest import Database


def played(database: Database, play: Callable[[AsyncEngine], Awaitable[None]]) -> None:
    """Run *play* with an engine of asyncio."""

    async def run() -> None:
        engine = create_async_engine(database.url(asyncio=True))
        try:
            await play(engine)
        finally:
            await engine.dispose()

    asyncio.run(run())


async def again(function: Callable[..., Any], *args: Any, name: str = "order-1") -> Any:
    """Call *function* as the call *name*."""
    with calls.call(name):
        return await function(*args)


def test_tasks_that_call_at_once_have_one_effect(database: Database) -> None:
    """Each gets the reply of the one that ran."""

    async def play(engine: AsyncEngine) -> None:
        @calls.once(async_sessionmaker(engine), timeout=20)
        async def charge(session: Any, amount: int) -> int:
            await session.execute(INSERT, {"amount": amount})
            return amount

        assert await asyncio.gather(*(again(charge, 5) for _ in range(4))) == [5] * 4
        assert await again(charge, 5) == 5
        with pytest.raises(calls.Divergent):
            await again(charge, 6)

    played(database, play)
    assert database.charges() == [5]


def test_equal_effects_at_once_are_refused(database: Database) -> None:
    """Which of two tasks of one handler is which nobody can say, unless each has a name."""

    async def play(engine: AsyncEngine) -> None:
        @calls.once(engine, timeout=20)
        async def charge(session: Any, amount: int) -> int:
            await session.execute(INSERT, {"amount": amount})
            return amount

        async def named(name: str) -> int:
            with calls.named(name):
                return await charge(5)

        with calls.call("order-1"):
            one, other = await asyncio.gather(charge(5), charge(5), return_exceptions=True)
            assert one == 5
            assert isinstance(other, calls.EqualCalls)
            assert await asyncio.gather(named("first"), named("second")) == [5, 5]

    played(database, play)
    assert database.charges() == [5, 5, 5]


def test_a_decline_is_a_reply(database: Database) -> None:
    """What the function did is taken back, and the error is raised again."""

    async def play(engine: AsyncEngine) -> None:
        @calls.once(engine, declines=[PermissionError])
        async def charge(session: Any, amount: int) -> None:
            await session.execute(INSERT, {"amount": amount})
            raise PermissionError(amount)

        for _ in range(2):
            with pytest.raises(PermissionError, match="5"):
                await again(charge, 5)

    played(database, play)
    assert (database.charges(), database.names()) == ([], 1)


def test_a_call_that_is_cancelled_leaves_nothing(database: Database) -> None:
    """Neither while it runs nor while it waits for another one; what is repeated runs."""

    async def play(engine: AsyncEngine) -> None:
        runs, go_on = asyncio.Event(), asyncio.Event()

        @calls.once(engine, timeout=20)
        async def charge(session: Any, amount: int) -> int:
            await session.execute(INSERT, {"amount": amount})
            runs.set()
            await go_on.wait()
            return amount

        first = asyncio.create_task(again(charge, 5))
        await runs.wait()
        second = asyncio.create_task(again(charge, 5))
        await asyncio.sleep(0)
        for each in (second, first):
            each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await each
        go_on.set()
        assert await again(charge, 5) == 5

    played(database, play)
    assert database.charges() == [5]


def test_a_commit_inside_is_refused(database: Database) -> None:
    """Name and reply belong to the transaction."""

    async def play(engine: AsyncEngine) -> None:
        @calls.once(engine)
        async def charge(session: Any, amount: int) -> int:
            await session.execute(INSERT, {"amount": amount})
            await session.commit()
            return amount

        with pytest.raises(calls.TransactionEnded):
            await again(charge, 5)

    played(database, play)
    assert (database.charges(), database.names()) == ([], 0)
