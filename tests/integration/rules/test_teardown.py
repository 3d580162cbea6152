"""What waits while ``teardown()`` is called ends as it would have, and clients are plain then."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RedisTopology

redis: Any = pytest.importorskip("redis")
pytestmark = [
    pytest.mark.store("redis"),
    pytest.mark.usefixtures("covered"),
    pytest.mark.slow,
]


@pytest.fixture
def feed(antipode_redis: RedisTopology) -> Iterator[RedisTopology]:
    """A primary and a replica as ``feed``, whose reads wait by themselves; the replica is cut."""
    primary, replica = antipode_redis.primary, antipode_redis.replica
    antipode.configure(barriers="auto", auto_timeout=20, on_stale="raise")
    antipode.setup(
        datastores={"feed": [f"redis://{primary}", f"redis://{replica}?reads_from=replica"]}
    )
    antipode_redis.cut()
    yield antipode_redis
    antipode_redis.heal()


def client(address: Any, module: Any = redis) -> Any:
    return module.Redis(host=address.host, port=address.port)


def is_waited_for() -> bool:
    return any(each.name == "antipode-watch-feed" for each in threading.enumerate())


def held(feed: RedisTopology, ends: Callable[[], Any]) -> Any:
    """What *ends* returns in a thread, in a scope that wrote what it waits for."""
    found: list[Any] = []
    writer = client(feed.primary)

    def request() -> None:
        with antipode.scope():
            writer.set("post", "new")
            found.append(ends())

    thread = threading.Thread(target=request)
    thread.start()
    wait_until(is_waited_for, timeout_s=60, what="a read that waits")
    antipode.teardown()
    assert not found
    feed.heal()
    thread.join(60)
    assert type(writer) is redis.Redis
    writer.close()
    return found[0]


def test_a_read_that_waits(feed: RedisTopology) -> None:
    """It is answered with what it waited for, not with what was there before."""
    reader = client(feed.replica)
    assert held(feed, lambda: reader.get("post")) == b"new"
    assert type(reader) is redis.Redis
    reader.close()


def test_a_read_of_asyncio_that_waits(feed: RedisTopology) -> None:
    """The same."""

    async def read() -> Any:
        reader = client(feed.replica, redis.asyncio)
        try:
            found = await reader.get("post")
            assert type(reader) is redis.asyncio.Redis
            return found
        finally:
            await reader.aclose()

    assert held(feed, lambda: asyncio.run(read())) == b"new"


def test_a_barrier_that_waits(feed: RedisTopology) -> None:
    """It succeeds, and does not fail because nobody is there to ask."""
    reader = client(feed.replica)  # Whose address is what barriers poll.
    assert held(feed, lambda: antipode.barrier(timeout=20).ok) is True
    reader.close()
