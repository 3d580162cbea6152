"""No reply, error or written key differs from the plain client's."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import redis
from tests.integration._played import MODES, played
from tests.integration.redis._clients import async_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import LagProxy

pytestmark = pytest.mark.store("redis")
#: What an application may send on one connection, transactions that fail in every way among it.
STEPS = (
    *("SET a 1", "GET a", "INCR a", "LPUSH a x", "NOSUCH", "SET a", "GETSET a 5", "EXPIRE a 100"),
    *("MULTI", "SET b 1", "INCR a", "GET a", "EXEC"),
    *("MULTI", "SET b 2", "DISCARD", "EXEC", "DISCARD"),
    *("MULTI", "SET b 3", "LPUSH a x", "EXEC", "GET b"),
    *("MULTI", "NOSUCH", "SET b 4", "EXEC", "GET b"),
    *("WATCH a", "SET a 7", "MULTI", "SET b 5", "EXEC", "GET b"),
    *("WATCH a", "UNWATCH", "MULTI", "MULTI", "SET b 6", "EXEC"),
    *("EVAL return{1,2} 0", "SELECT 1", "SET a other", "GET a", "SELECT 0", "GET a", "DEL a b"),
)


class OneConnection:
    """redis-py, on one connection."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.heard: list[str] = []

    def execute(self, statement: str) -> Any:
        return repr(self.client.execute_command(*statement.split()))

    def state(self) -> Any:
        return None

    def close(self) -> None:
        self.client.close()


class OneAsyncConnection(OneConnection):
    """The same of redis-py's asyncio client."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(client)
        self.loop = loop

    def execute(self, statement: str) -> Any:
        return repr(self.loop.run_until_complete(self.client.execute_command(*statement.split())))


async def transacted_async(client: Any, *, fails: bool) -> Any:
    """The twin of :func:`transacted`."""
    found: list[Any] = []
    for transaction in (True, False):
        async with client.pipeline(transaction=transaction) as pipeline:
            pipeline.set("p", 1).incr("p")
            if fails:
                pipeline.lpush("p", "x")
            found += [str(each) for each in await pipeline.execute(raise_on_error=False)]
    return found


def transacted(client: Any, *, fails: bool) -> Any:
    """What a pipeline of the client returns, or raises, with its transaction and without."""
    found: list[Any] = []
    for transaction in (True, False):
        with client.pipeline(transaction=transaction) as pipeline:
            pipeline.set("p", 1).incr("p")
            if fails:
                pipeline.lpush("p", "x")
            found += [str(each) for each in pipeline.execute(raise_on_error=False)]
    return found


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(
    make: Callable[..., Any], plain: Any, mode: Any, *, scoped: bool
) -> None:
    """Every step of a session ends as it does without the library, and writes what it does."""
    antipode.configure(mode=mode)
    scripts = []
    for is_plain in (True, False):
        plain.flushall()
        client = make(plain=is_plain, options={"single_connection_client": True})
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            script = played(OneConnection(client), STEPS, lambda: plain.mget("a", "b"))
            scripts.append(
                [*script, transacted(client, fails=False), transacted(client, fails=True)]
            )
    for before, ours in zip(*scripts, strict=True):
        assert ours == before


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_an_asyncio_session_is_the_plain_one(
    proxy: LagProxy, plain: Any, mode: Any, *, scoped: bool
) -> None:
    """The same of the asyncio client."""
    antipode.configure(mode=mode)
    scripts = []
    for is_plain in (True, False):
        plain.flushall()
        loop = asyncio.new_event_loop()
        client = async_client(proxy.address, single_connection_client=True, socket_timeout=5)
        if not is_plain:
            redis.instrument_client(client, datastore="posts")
        with closing(loop), ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            session = OneAsyncConnection(client, loop)
            script = played(session, STEPS, lambda: plain.mget("a", "b"))
            for fails in (False, True):
                script.append(loop.run_until_complete(transacted_async(client, fails=fails)))
            scripts.append(script)
            redis.uninstrument_client(client)
            loop.run_until_complete(client.aclose())
    for before, ours in zip(*scripts, strict=True):
        assert ours == before
