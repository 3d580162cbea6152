"""What the application sees where lineages lie beside its values: what it saw before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.connection as redis_connection

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from tests.integration.redis.test_client import session
from tests.integration.redis.test_client_async import session as async_session

from ._clients import async_client, writes_of
from ._table import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

CAUSE = WriteId("users", "log-1", 7, 480_000)
#: Every key but those of companions.
EVERY: dict[str, Any] = {"lineage": "beside", "keys": ["*"]}
#: These show the keys of companions, too, or what differs from one call to the next.
DIFFERENT = frozenset(
    """
    DBSIZE DUMP EXPIRETIME FUNCTION HRANDFIELD KEYS MEMORY OBJECT PEXPIRETIME PTTL RANDOMKEY SCAN
    SPOP SRANDMEMBER XINFO ZRANDMEMBER
    """.split()  # noqa: SIM905 - a table that is read by eye
)


@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("single", [False, True])
def test_results_are_redis_pys(
    make: Callable[..., Any], *, decode_responses: bool, protocol: int, single: bool
) -> None:
    """Return values and exceptions are those of the plain client, whatever its options."""
    options = {
        "decode_responses": decode_responses,
        "protocol": protocol,
        "single_connection_client": single,
    }
    plain = make(plain=True, options=options)
    plain.flushall()
    expected = session(plain)
    with antipode.scope(Lineage([CAUSE])) as scope:
        assert session(make(options=options, **EVERY)) == expected
        assert writes_of(scope.lineage)
        assert not scope.lineage.incomplete


def test_results_under_a_floor_are_redis_pys(make: Callable[..., Any]) -> None:
    """A floor that is met changes no result, and takes no lineage away."""
    plain, one = make(plain=True), make(**EVERY)
    plain.flushall()
    expected = session(plain)
    with antipode.scope(Lineage([CAUSE])):
        one.set("before", 1)
    with antipode.scope() as scope:
        one.set("behind", 1)
        antipode.barrier(timeout=5, at="read")
        assert one.get("before") == b"1"
        assert CAUSE in scope.lineage
        assert session(one) == expected


def test_a_client_that_caches(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of named keys ask the server: what a cache holds has no lineage."""
    caching = pytest.importorskip("redis.cache", reason="this redis-py has no cache")
    proxied: Any = redis_connection.CacheProxyConnection
    monkeypatch.setattr(proxied, "MIN_ALLOWED_VERSION", "6.0.0")  # It works, if not for sure.
    config = {"protocol": 3, "cache_config": caching.CacheConfig()}
    one, other = make(options=config, **EVERY), make(**EVERY)
    for value in (b"1", b"2"):
        with antipode.scope(Lineage([CAUSE])):
            other.set("k", value)
        for _ in range(2):
            with antipode.scope() as scope:
                assert one.get("k") == value
                assert one.mget("k", "l") == [value, None]
                assert CAUSE in scope.lineage


def replies(one: Any) -> list[Any]:
    """What each row of the tables of covered commands comes to."""
    found: list[Any] = []
    for line in "".join(TABLES.values()).strip().splitlines():
        commands = [part.split() for part in line.split(";") if part.strip()]
        if any(words[0] in DIFFERENT or "$" in line for words in commands):
            continue
        one.flushall()
        found += [(words, outcome(one, words)) for words in commands]
    return found


def outcome(one: Any, words: list[str]) -> Any:
    """What a command returns or raises."""
    try:
        return steady(one.execute_command(*words))
    except (redis.ResponseError, UnicodeDecodeError) as error:
        return type(error), str(error)


def steady(reply: Any) -> Any:
    """A reply without the order of sets and the time that passes."""
    if isinstance(reply, dict):
        times = {"idle", b"idle", "inactive", b"inactive", "seen-time", b"seen-time"}
        return {name: steady(each) for name, each in reply.items() if name not in times}
    if isinstance(reply, list):
        parts = [steady(each) for each in reply]
        return sorted(parts) if all(isinstance(each, (str, bytes)) for each in parts) else parts
    return reply


@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_every_command(make: Callable[..., Any], *, decode_responses: bool, protocol: int) -> None:
    """Every covered command of the tables gives what it gives to the plain client."""
    options = {"decode_responses": decode_responses, "protocol": protocol}
    expected = replies(make(plain=True, options=options))
    with antipode.scope(Lineage([CAUSE])) as scope:
        assert replies(make(options=options, **EVERY)) == expected
        assert not scope.lineage.incomplete


@pytest.mark.parametrize("transaction", [False, True])
def test_every_command_in_a_pipeline(make: Callable[..., Any], *, transaction: bool) -> None:
    """In one pipeline with others, too, errors among them."""

    def run(one: Any) -> list[Any]:
        one.flushall()
        batch = one.pipeline(transaction=transaction)
        for line in "".join(TABLES.values()).strip().splitlines():
            for words in (part.split() for part in line.split(";") if part.strip()):
                alone = {"BLMOVE", "BLPOP", "BRPOP", "BLMPOP", "BRPOPLPUSH", "FLUSHALL", "FLUSHDB"}
                if words[0] not in {*DIFFERENT, *alone, "SCRIPT", "SWAPDB"} and "$" not in line:
                    batch.execute_command(*words)
        batch.incr("text").set("text", "v").incr("text").get("text")
        return [
            (type(each), str(each)) if isinstance(each, Exception) else steady(each)
            for each in batch.execute(raise_on_error=False)
        ]

    expected = run(make(plain=True))
    with antipode.scope(Lineage([CAUSE])):
        assert run(make(**EVERY)) == expected


def test_a_damaged_companion_breaks_no_read(make: Callable[..., Any]) -> None:
    """Bytes that are no text harm nobody but the lineage."""
    one = make(options={"decode_responses": True}, **EVERY)
    one.set("k", "v")
    make(plain=True).set("ap:k", b"\xff\xfe")
    with antipode.scope() as scope:
        assert one.get("k") == "v"
        assert scope.lineage.incomplete == {Incomplete("posts", "unreadable")}


async def test_asyncio(antipode_redis: RedisTopology) -> None:
    """The asyncio client does the same: results as before, lineages beside values, and merged."""
    async with async_client(antipode_redis.primary) as plain:
        await plain.flushall()
        expected = await async_session(plain)
        await plain.flushall()
    async with async_client(antipode_redis.primary) as one:
        shims.instrument_client(one, datastore="posts", **EVERY)
        with antipode.scope(Lineage([CAUSE])):
            assert await async_session(one) == expected
            await one.set("k", "v")
            await one.hset("h2", "a", "b")
            await one.rpush("l", 1, 2)
            await one.pipeline().set("k2", "v").sadd("s", 1).execute()
        for read in (
            lambda: one.get("k"),
            lambda: one.hgetall("h2"),
            lambda: one.blpop("l", 1),
            lambda: one.pipeline().smembers("s").execute(),
            lambda: one.pipeline(transaction=False).get("k2").execute(),
        ):
            with antipode.scope() as reader:
                await read()
                assert CAUSE in reader.lineage
                assert len(reader.lineage.only("posts")) in (1, 2)  # Its own, or that of a pop.
