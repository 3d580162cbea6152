"""``on_stale="primary"``: by rules alone, and where the reads of a request stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, UnmetError
from antipode.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

redis = pytest.importorskip("redis")
pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]


def url(topology: RedisTopology, *, replica: bool, database: int = 0) -> str:
    address = topology.replica if replica else topology.primary
    return f"redis://{address.host}:{address.port}/{database}"


@pytest.fixture
def ruled(antipode_redis: RedisTopology, covered: None) -> Iterator[RedisTopology]:
    """Rules name the primary and the replica of ``cache``, of all databases; the replica is cut."""
    del covered
    near = url(antipode_redis, replica=True).removesuffix("/0") + "?reads_from=replica"
    antipode.configure(
        barriers="auto",
        auto_timeout=0.05,
        on_stale="primary",
        datastores={"cache": [url(antipode_redis, replica=False).removesuffix("/0"), near]},
    )
    antipode.setup()
    antipode_redis.wait_replicated()
    antipode_redis.cut()
    yield antipode_redis
    antipode_redis.heal()


def counted(name: str) -> int:
    return metrics().get(Metric(name, "cache"), 0)


@pytest.mark.ci
@pytest.mark.parametrize(
    "options", [{}, {"db": 1, "decode_responses": True, "protocol": 3}], ids=str
)
def test_by_rules_alone(ruled: RedisTopology, options: dict[str, Any]) -> None:
    """Of the same database, decoding and protocol as at the replica, and by one more pool."""
    database = options.get("db", 0)
    writer = redis.Redis.from_url(url(ruled, replica=False, database=database))
    reader = redis.Redis.from_url(url(ruled, replica=True, database=database), **options)
    with writer, reader, antipode.scope():
        writer.set("moved", "1")
        shown = reader.get("moved")
        assert shown == ("1" if options else b"1")
        with reader.pipeline() as pipeline:
            assert pipeline.get("moved").strlen("moved").execute() == [shown, 1]


async def test_by_rules_alone_in_asyncio(ruled: RedisTopology) -> None:
    """The same; the connections to the primary close with those to the replica."""
    from redis import asyncio

    writer = asyncio.Redis.from_url(url(ruled, replica=False))
    reader = asyncio.Redis.from_url(url(ruled, replica=True))
    with antipode.scope():
        await writer.set("moved", "2")
        assert await reader.get("moved") == b"2"
        cursor, _ = await reader.scan(count=1)
        assert isinstance(cursor, int)
    await writer.aclose()
    await reader.aclose()


def test_a_request_that_was_moved_stays(ruled: RedisTopology) -> None:
    """It does not go back in time once the replica shows what moved it; the next one does."""
    with (
        redis.Redis.from_url(url(ruled, replica=False)) as writer,
        redis.Redis.from_url(url(ruled, replica=True)) as reader,
    ):
        writer.set("news", "old")
        ruled.heal()
        ruled.wait_replicated()
        ruled.cut()
        with antipode.scope():
            writer.set("mine", "1")
            text = antipode.serialize()
            with antipode.scope():  # Another request.
                writer.set("news", "new")
            assert reader.get("news") == b"new"
            assert antipode.reads_from("cache") == "primary"
            ruled.heal()
            ruled.wait_replicated()
            ruled.cut()
            before = counted("reads_at_primary")
            assert reader.get("news") == b"new"
            assert antipode.reads_from("cache") == "primary"
            assert counted("reads_at_primary") == before + 2
        before = counted("reads_at_primary")
        with antipode.scope(text):
            assert reader.get("news") == b"new"
        assert counted("reads_at_primary") == before


def test_a_router_decides_once_a_request(ruled: RedisTopology) -> None:
    """The replica is asked no more: sixty decisions cost no more than the first."""
    with (
        redis.Redis.from_url(url(ruled, replica=False)) as writer,
        redis.Redis.from_url(url(ruled, replica=True)) as reader,
        antipode.scope(),
    ):
        reader.get("warm")
        writer.set("moved", "3")
        assert antipode.reads_from("cache") == "primary"
        before = counted("polls")
        assert {antipode.reads_from("cache") for _ in range(60)} == {"primary"}
        assert counted("polls") == before


@pytest.mark.parametrize("command", ["scan", "sscan", "hscan", "zscan"])
def test_a_cursor_is_continued_where_it_began(ruled: RedisTopology, command: str) -> None:
    """At the primary in the request that was moved and after it; at the replica, or not at all."""
    with (
        redis.Redis.from_url(url(ruled, replica=False, database=2)) as writer,
        redis.Redis.from_url(url(ruled, replica=True, database=2)) as reader,
    ):
        writer.flushdb()
        names = [f"k{number}" for number in range(1500)]
        ones = dict.fromkeys(names, 1)
        if command == "scan":
            writer.mset(ones)
        elif command == "sscan":
            writer.sadd("all", *names)
        elif command == "hscan":
            writer.hset("all", mapping=ones)
        else:
            writer.zadd("all", ones)
        key = [] if command == "scan" else ["all"]

        def step(cursor: int) -> tuple[int, Any]:
            found: tuple[int, Any] = getattr(reader, command)(*key, cursor, count=100)
            return found

        seen: set[bytes] = set()
        with antipode.scope():
            writer.set("mine", 1)
            cursor, found = step(0)
            assert cursor
            seen.update(_names(found))
            cursor, found = step(cursor)
            seen.update(_names(found))
        while cursor:
            cursor, found = step(cursor)  # Also after the request, where nothing is waited for.
            seen.update(_names(found))
        assert {name.encode() for name in names} <= seen

        ruled.heal()
        ruled.wait_replicated()
        ruled.cut()
        with antipode.scope():
            cursor, _ = step(0)
            assert cursor
            writer.set("mine", 2)
            with pytest.raises(UnmetError):
                step(cursor)


def _names(found: Any) -> list[bytes]:
    return [each[0] if isinstance(each, tuple) else each for each in found]


@pytest.mark.parametrize(
    "options", [{"db": 1}, {"decode_responses": True}, {"protocol": 3}], ids=str
)
def test_a_primary_whose_replies_differ_is_refused(
    antipode_redis: RedisTopology, options: dict[str, Any]
) -> None:
    """What is read must not depend on whether the replica was late."""
    from antipode_shims import redis as shim

    (name,) = options
    with (
        redis.Redis.from_url(url(antipode_redis, replica=False)) as writer,
        redis.Redis.from_url(
            url(antipode_redis, replica=True).removesuffix("/0"), **options
        ) as reader,
    ):
        shim.instrument_client(writer, datastore="cache")
        with pytest.raises(ConfigurationError, match=f"differs .* in '?{name}"):
            shim.instrument_client(reader, datastore="cache", reads_from="replica", primary=writer)
        shim.uninstrument_client(writer)


def test_an_address_that_is_no_primary_is_not_taken(ruled: RedisTopology) -> None:
    """A rule that calls a replica a primary: the read raises instead of being stale there."""
    from antipode_shims import redis as shim

    antipode.teardown()
    shim.uninstrument()
    wrong = url(ruled, replica=True)
    with (
        redis.Redis.from_url(url(ruled, replica=False)) as writer,
        redis.Redis.from_url(wrong) as second,
        redis.Redis.from_url(wrong) as reader,
    ):
        shim.instrument_client(writer, datastore="cache")
        shim.instrument_client(second, datastore="cache")
        shim.instrument_client(reader, datastore="cache", reads_from="replica", primary=second)
        with antipode.scope():
            writer.set("moved", "4")
            with pytest.raises(UnmetError):
                reader.get("moved")
        for each in (writer, second, reader):
            shim.uninstrument_client(each)
