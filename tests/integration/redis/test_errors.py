"""Errors of the server reach the application as redis-py raises them, also at reads that wait."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import redis as shims
from tests.integration._errors import error_of
from tests.integration.redis._clients import TIMEOUT_S, async_client, client

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import Lineage
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")
NAME = "posts"
FAILS = "return redis.call('NO_SUCH')"
SAYS = "return redis.error_reply('MINE of the script')"
#: What servers refuse, each by another word.
COMMANDS: tuple[tuple[Any, ...], ...] = (
    ("GET", "list"),
    ("LRANGE", "text", 0, 1),
    ("GET",),
    ("INCR", "text"),
    ("INCRBYFLOAT", "text", 1),
    ("SETRANGE", "text", -1, "x"),
    ("EXPIRE", "text", "never"),
    ("XADD", "stream", "0-0", "f", "v"),
    ("NO_SUCH",),
    ("EVAL", FAILS, 0),
    ("EVAL", SAYS, 0),
    ("EVAL_RO", "return redis.call('GET', 'list')", 1, "list"),
    ("EVALSHA", "0" * 40, 0),
    ("FCALL", "no_such", 0),
    ("EXEC",),
    ("DISCARD",),
    ("AUTH", "nobody", "wrong"),
    ("ACL", "SETUSER", "x", "no such rule"),
    ("OBJECT", "ENCODING"),
    ("SORT", "text"),
    ("GEOSEARCH", "text", "FROMMEMBER", "m", "BYRADIUS", 1, "m"),
    ("GET", "text"),
)


def piped(one: Any, *, transaction: bool) -> Callable[[], Any]:
    """A pipeline of which two commands fail."""

    def call() -> Any:
        with one.pipeline(transaction=transaction) as pipe:
            pipe.get("text").get("list").incr("text").get("text")
            return pipe.execute()

    return call


def outcomes(one: Any, floor: Lineage | None) -> list[Any]:
    """How each command ends, under a floor where there is one."""
    calls: list[tuple[Any, Callable[[], Any]]] = [
        (words, lambda words=words: one.execute_command(*words)) for words in COMMANDS
    ]
    calls += [(each, piped(one, transaction=each)) for each in (True, False)]
    found = []
    for name, call in calls:
        with antipode.scope(floor):
            if floor is not None:
                antipode.barrier(timeout=TIMEOUT_S, at="read")
            found.append((name, error_of(call)))
    return found


class Awaited:
    """A client of redis-py's asyncio API, whose calls run to their end."""

    def __init__(self, one: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.one, self._loop = one, loop

    def execute_command(self, *words: Any) -> Any:
        return self._loop.run_until_complete(self.one.execute_command(*words))

    def pipeline(self, *, transaction: bool) -> Any:
        return Piped(self.one.pipeline(transaction=transaction), self._loop)


class Piped:
    """Its pipeline."""

    def __init__(self, pipe: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._pipe, self._loop = pipe, loop

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._pipe.reset())

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            getattr(self._pipe, name)(*args)
            return self

        return call

    def execute(self) -> Any:
        return self._loop.run_until_complete(self._pipe.execute())


@pytest.mark.parametrize("api", ["sync", "asyncio"])
def test_errors_are_the_plain_ones(antipode_redis: RedisTopology, api: str) -> None:
    """Whatever the server refuses: the same type, arguments and attributes, waiting or not."""
    place = antipode_redis.primary
    loop = asyncio.new_event_loop()
    with ExitStack() as stack:
        stack.callback(loop.close)

        def made(*, instrumented: bool) -> Any:
            one = (client if api == "sync" else async_client)(place)
            if instrumented:
                shims.instrument_client(one, datastore=NAME)
                stack.callback(shims.uninstrument_client, one)
            if api == "sync":
                stack.callback(one.close)
                return one
            stack.callback(lambda: loop.run_until_complete(one.aclose()))
            return Awaited(one, loop)

        plain, ours, waiting = (made(instrumented=each) for each in (False, True, True))
        plain.execute_command("FLUSHALL")
        plain.execute_command("RPUSH", "list", "x")
        with antipode.scope() as scope:
            ours.execute_command("SET", "text", "x")
            floor = scope.lineage
        wanted = outcomes(plain, None)
        assert outcomes(ours, None) == wanted
        assert outcomes(waiting, floor) == wanted
