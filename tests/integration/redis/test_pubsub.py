"""Publishing and subscribing through instrumented clients, and what a message proves."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import redis as shims
from antipode_testing import wait_until

from ._clients import (
    TIMEOUT_S,
    async_client,
    client,
    counted,
    position,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import Address, RedisTopology

pytestmark = pytest.mark.store("redis")

ROUNDS = 100


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


@pytest.fixture
def instrumented(stack: ExitStack) -> Callable[..., Any]:
    """Makes instrumented clients."""

    def make(address: Address, **options: Any) -> Any:
        one = stack.enter_context(client(address, socket_timeout=TIMEOUT_S))
        shims.instrument_client(one, datastore="posts", **options)
        stack.callback(shims.uninstrument_client, one)
        return one

    return make


def message(subscriber: Any) -> Any:
    """The next message's data."""
    while True:
        found = subscriber.get_message(ignore_subscribe_messages=True, timeout=TIMEOUT_S)
        if found is not None:
            return found["data"]


def subscribed(subscriber: Any, *, what: str, name: str) -> Any:
    """The same, once the server has confirmed the subscription."""
    getattr(subscriber, what)(name)
    wait_until(
        lambda: (subscriber.get_message(timeout=0.1) or {}).get("type") == what,
        what=f"the subscription to {name}",
        timeout_s=TIMEOUT_S,
    )
    return subscriber


def test_subscribers_work(
    antipode_redis: RedisTopology, instrumented: Callable[..., Any], stack: ExitStack
) -> None:
    """Channels, patterns and shard channels of an instrumented client do what they did."""
    one = instrumented(antipode_redis.primary)
    by_name, by_pattern, by_shard = (stack.enter_context(one.pubsub()) for _ in range(3))
    subscribed(by_name, what="subscribe", name="news")
    subscribed(by_pattern, what="psubscribe", name="n*")
    subscribed(by_shard, what="ssubscribe", name="shard")
    assert one.publish("news", "hello") == 2
    assert one.pipeline().publish("news", "again").get("k").execute()[0] == 2
    assert one.execute_command("SPUBLISH", "shard", "hi") == 1
    assert [message(by_name), message(by_name)] == [b"hello", b"again"]
    assert [message(by_pattern), message(by_pattern)] == [b"hello", b"again"]
    assert message(by_shard) == b"hi"
    assert one.pubsub_channels("n*") == [b"news"]


def test_handlers_in_a_thread_work(
    antipode_redis: RedisTopology, instrumented: Callable[..., Any]
) -> None:
    """redis-py's own thread calls handlers, which may use instrumented clients."""
    one = instrumented(antipode_redis.primary)
    seen: list[bytes] = []
    done = threading.Event()

    def handle(found: dict[str, Any]) -> None:
        one.set("seen", found["data"])
        seen.append(one.get("seen"))
        done.set()

    subscriber = one.pubsub(ignore_subscribe_messages=True)
    subscriber.subscribe(news=handle)
    thread = subscriber.run_in_thread(sleep_time=0.01)
    try:
        wait_until(lambda: one.publish("news", "hello") == 1, what="it", timeout_s=TIMEOUT_S)
        assert done.wait(TIMEOUT_S)
    finally:
        thread.stop()
        thread.join(TIMEOUT_S)
    assert seen[0] == b"hello"


def test_publishing_under_a_floor_waits_for_nothing(
    antipode_redis: RedisTopology, instrumented: Callable[..., Any]
) -> None:
    """A message shows its sender no data: no floor holds it, nothing enters, nothing is counted."""
    one = instrumented(antipode_redis.replica, reads_from="replica")
    writer = instrumented(antipode_redis.primary)
    before = counted("uncovered_write")
    antipode_redis.pause()
    with antipode.scope() as scope:
        writer.set("k", "v")
        minted = writes_of(scope.lineage)
        antipode.barrier(timeout=0.05, at="read")
        assert one.publish("news", "local") == 0
        assert writer.publish("news", "everywhere") == 0
        assert writes_of(scope.lineage) == minted
    assert counted("uncovered_write") == before


@pytest.mark.parametrize("command", ["PUBLISH", "SPUBLISH"])
def test_message_comes_after_the_writes_before_it(
    antipode_redis: RedisTopology,
    instrumented: Callable[..., Any],
    stack: ExitStack,
    command: str,
) -> None:
    """Messages travel in the log: a replica that delivers one has every write before it."""
    writer = instrumented(antipode_redis.primary)
    reader = stack.enter_context(client(antipode_redis.replica))
    subscriber = stack.enter_context(reader.pubsub())
    what = "subscribe" if command == "PUBLISH" else "ssubscribe"
    subscribed(subscriber, what=what, name="rounds")
    antipode_redis.set_lag(5)
    for number in range(ROUNDS):
        before = position(antipode_redis.primary)[1]
        writer.set("k", number)
        writer.execute_command(command, "rounds", number)
        assert position(antipode_redis.primary)[1] > before
        assert int(message(subscriber)) == number
        assert int(reader.get("k")) == number


def test_position_behind_a_message_covers_it(
    antipode_redis: RedisTopology, instrumented: Callable[..., Any], stack: ExitStack
) -> None:
    """A write in the message's packet mints a position behind both: waited for, it is delivered."""
    writer = instrumented(antipode_redis.primary)
    reader = instrumented(antipode_redis.replica, reads_from="replica")
    subscriber = subscribed(stack.enter_context(reader.pubsub()), what="subscribe", name="news")
    antipode_redis.set_lag(30)
    with antipode.scope() as scope:
        writer.pipeline().set("k", "v").publish("news", "hello").execute()
        assert writes_of(scope.lineage)[0].version == position(antipode_redis.primary)[1]
        assert antipode.barrier(timeout=TIMEOUT_S).ok
    assert subscriber.get_message(timeout=TIMEOUT_S)["data"] == b"hello"


async def test_asyncio_subscribers_work(antipode_redis: RedisTopology) -> None:
    """The same over asyncio."""
    one = async_client(antipode_redis.primary)
    shims.instrument_client(one, datastore="posts")
    with antipode.scope() as scope:
        async with one.pubsub(ignore_subscribe_messages=True) as subscriber:
            await subscriber.subscribe("news")
            await subscriber.psubscribe("n*")
            await subscriber.get_message(timeout=TIMEOUT_S)
            await subscriber.get_message(timeout=TIMEOUT_S)
            assert await one.publish("news", "hello") == 2
            found = [await subscriber.get_message(timeout=TIMEOUT_S) for _ in range(2)]
        assert {each["data"] for each in found} == {b"hello"}
        assert scope.lineage.empty
    shims.uninstrument_client(one)
    await one.aclose()
