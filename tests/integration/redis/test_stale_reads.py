"""``on_stale="primary"``: a read that would be stale at a replica is made at the primary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, IncompleteLineage, UnmetError
from antipode.shim import mark_incomplete
from antipode_shims import redis

from ._clients import async_client, client, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")


@pytest.fixture
def settings() -> None:
    """Reads that wait for a short time, and then go to the primary."""
    antipode.configure(barriers="auto", auto_timeout=0.05, on_stale="primary")


@pytest.fixture
def clients(antipode_redis: RedisTopology, settings: None) -> Iterator[tuple[Any, Any]]:
    """Of the primary, and of a replica that is cut off and knows that primary."""
    del settings
    with client(antipode_redis.primary) as writer, client(antipode_redis.replica) as reader:
        redis.instrument_client(writer, datastore="posts")
        redis.instrument_client(reader, datastore="posts", reads_from="replica", primary=writer)
        antipode_redis.cut()
        yield writer, reader
        antipode_redis.heal()


def test_a_read_goes_to_the_primary(clients: tuple[Any, Any]) -> None:
    """Single, in a pipeline, and of an incomplete lineage: each is right, and counted."""
    writer, reader = clients
    before, served = counted("reads_at_primary"), counted("served_stale")
    with antipode.scope():
        writer.set("post", "1")
        assert reader.get("post") == b"1"
        with reader.pipeline() as pipeline:
            assert pipeline.get("post").strlen("post").execute() == [b"1", 1]
    with antipode.scope():
        mark_incomplete("posts", "unsampled")
        assert reader.get("post") == b"1"
    assert counted("reads_at_primary") == before + 3
    assert counted("served_stale") == served + 1  # Of the mark, which the primary cannot mend.


def test_what_cannot_be_moved_raises(clients: tuple[Any, Any]) -> None:
    """What may write, what is watched, and a barrier that was called: none is stale in silence."""
    writer, reader = clients
    with antipode.scope():
        writer.set("post", "2")
        with pytest.raises(UnmetError):
            reader.eval("return redis.call('get', 'post')", 0)
        with reader.pipeline() as pipeline:
            pipeline.watch("post")
            with pytest.raises(UnmetError):
                pipeline.get("post")
    with antipode.scope():
        writer.set("post", "3")
        antipode.barrier(timeout=0.1, at="read")
        with pytest.raises(UnmetError):
            reader.get("post")


async def test_asyncio(antipode_redis: RedisTopology, settings: None) -> None:
    """The same."""
    del settings
    writer, reader = async_client(antipode_redis.primary), async_client(antipode_redis.replica)
    redis.instrument_client(writer, datastore="posts")
    redis.instrument_client(reader, datastore="posts", reads_from="replica", primary=writer)
    antipode_redis.cut()
    try:
        with antipode.scope():
            await writer.set("post", "4")
            assert await reader.get("post") == b"4"
            pipeline = reader.pipeline().get("post").strlen("post")
            assert await pipeline.execute() == [b"4", 1]
    finally:
        antipode_redis.heal()
        await writer.aclose()
        await reader.aclose()


def test_a_replica_without_its_primary_is_refused(
    antipode_redis: RedisTopology, settings: None
) -> None:
    """As it is instrumented, and so is a client of anything else as its primary."""
    del settings
    with client(antipode_redis.replica) as reader, client(antipode_redis.primary) as plain:
        options: dict[str, Any] = {"datastore": "posts", "reads_from": "replica"}
        with pytest.raises(ConfigurationError, match="on_stale='primary' needs primary="):
            redis.instrument_client(reader, **options)
        with pytest.raises(ConfigurationError, match="an instrumented client of 'posts'"):
            redis.instrument_client(reader, **options, primary=plain)
        redis.instrument_client(reader, **options, barriers="explicit")


def test_a_router_asks_where_to_read(clients: tuple[Any, Any]) -> None:
    """The replica for a request that depends on nothing, or on what it shows; else the primary."""
    writer, _ = clients
    before = counted("reads_at_primary")
    assert antipode.reads_from("posts") == "replica"
    with antipode.scope():
        assert antipode.reads_from("posts") == "replica"
        writer.set("post", "5")
        assert antipode.reads_from("posts") == "primary"
    assert counted("reads_at_primary") == before + 1
    antipode.configure(mode="dry-run")
    with antipode.scope():
        writer.set("post", "6")
        assert antipode.reads_from("posts") == "replica"
    with pytest.raises(ConfigurationError, match="no client of the primary of 'others'"):
        antipode.reads_from("others")


def test_the_error_of_raise_stays(antipode_redis: RedisTopology) -> None:
    """With ``on_stale="raise"`` a primary that is named is not asked."""
    antipode.configure(barriers="auto", on_stale="raise")
    with client(antipode_redis.primary) as writer, client(antipode_redis.replica) as reader:
        redis.instrument_client(writer, datastore="posts")
        redis.instrument_client(reader, datastore="posts", reads_from="replica", primary=writer)
        with antipode.scope():
            mark_incomplete("posts", "unsampled")
            with pytest.raises(IncompleteLineage):
                reader.get("post")
