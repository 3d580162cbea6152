"""Consumers over aio-pika on a real broker: the asyncio twin does what pika's does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import aio_pika
import pika
import pytest
from opentelemetry import baggage

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._consumers import delays as _delays

from ._bench import NEWS, TIMEOUT_S, counted
from ._workers import SOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from antipode_testing import LagProxy

    from ._workers import Posts, Workers
    from .conftest import WallClock

pytestmark = pytest.mark.store("rabbitmq")

UNKNOWN_STORE = WriteId("users", "log", 7, 498_669)


async def soon(condition: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Return when a condition holds, while the loop runs."""

    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - of things that announce themselves to nobody
            await asyncio.sleep(0.005)

    try:
        await asyncio.wait_for(poll(), timeout_s)
    except asyncio.TimeoutError:
        pytest.fail(f"waited in vain for {what}")


@contextlib.asynccontextmanager
async def connected(
    workers: Workers, *, via: LagProxy | None = None, connect: Any = aio_pika.connect
) -> AsyncIterator[Any]:
    """A channel of a connection of its own."""
    url = workers.topology.url()
    if via is not None:
        url = url.replace(str(workers.topology.address("us")), str(via.address))
    connection = await connect(url, timeout=TIMEOUT_S)
    try:
        yield await connection.channel()
    finally:
        await connection.close()


def consumer(workers: Workers, channel: Any, handler: Any, **terms: Any) -> Any:
    """A consumer of the test's queue, which is not started."""
    terms = {"datastore": NEWS, "delay_s": SOON, "dead_letter": workers.dead, **terms}
    return rabbitmq.consume_async(channel, workers.queue, handler, **terms)


class Seen:
    """A handler that keeps what it got, and the lineage it ran with."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.lineages: list[Lineage] = []

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)
        self.lineages.append(antipode.current())

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]


async def letter(workers: Workers, channel: Any, queue: str = "") -> Any:
    """The next dead letter."""
    found: list[Any] = []
    graveyard = await channel.get_queue(queue or workers.dead, ensure=False)

    async def poll() -> None:
        while not found:
            if (one := await graveyard.get(fail=False)) is not None:
                found.append(one)
                await one.ack()

    await asyncio.wait_for(poll(), TIMEOUT_S)
    return found[0]


async def test_a_deferred_message_comes_back_as_it_was(workers: Workers, later: Posts) -> None:
    """Headers, properties, exchange, key and lineage are the publisher's after two deferrals."""
    headers = {"mine": 1, "nested": {"a": [1, "b"]}, "CC": ["nowhere"], "baggage": "tenant=acme"}
    late = later.next
    workers.publish(b"bare", late)
    workers.publish(
        b"full",
        late,
        headers=headers,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="600000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id="guest",
        app_id="a",
        content_type="text/plain",
    )
    seen = Seen()
    before = counted("message_deferred")
    async with connected(workers) as channel, consumer(workers, channel, seen):
        await soon(lambda: counted("message_deferred") >= before + 4, what="deferrals")
        later.write()
        await soon(lambda: len(seen.messages) == 2, what="the messages")
    bare, full = sorted(seen.messages, key=lambda message: message.body)
    assert (bare.exchange, bare.routing_key) == (workers.name, "the.key")
    assert bare.message_id is None  # Which aiormq would have made up.
    assert set(bare.headers) == {"baggage", "antipode-write"}
    assert {name: full.headers[name] for name in ("mine", "nested", "CC")} == {
        name: headers[name] for name in ("mine", "nested", "CC")
    }
    assert set(full.headers) == {*headers, "antipode-write"}
    assert (full.priority, full.correlation_id, full.reply_to) == (3, "c", "r")
    assert (full.expiration, full.message_id, full.type) == (600.0, "m", "t")
    assert (full.user_id, full.app_id, full.content_type) == ("guest", "a", "text/plain")
    assert full.timestamp.timestamp() == 1_700_000_000
    assert full.delivery_mode == 2
    for lineage in seen.lineages:
        assert late in lineage
        assert {write.datastore for write in lineage} == {"posts", NEWS}


async def test_messages_handled_side_by_side_keep_apart(workers: Workers, later: Posts) -> None:
    """Each task has the scope and the baggage of its message, whatever channel and context."""
    count = 10
    for number in range(count):
        workers.publish(b"%d" % number, later.last, headers={"baggage": f"n={number}"})
    together = asyncio.Event()
    entered: list[bytes] = []
    found: dict[bytes, tuple[object, Lineage]] = {}

    async def handle(message: Any) -> None:
        antipode.append(WriteId("mine", message.body.decode(), 1))
        entered.append(message.body)
        if len(entered) == count:
            together.set()
        await asyncio.wait_for(together.wait(), TIMEOUT_S)
        found[message.body] = baggage.get_baggage("n"), antipode.current()

    async with connected(workers) as plain:
        channel = rabbitmq.instrument_channel(plain, datastore=NEWS)
        with antipode.scope(Lineage([WriteId("workers", "k", 1)])):
            async with consumer(workers, channel, handle, prefetch=count):
                await soon(lambda: len(found) == count, what="all messages")
    for body, (tenant, lineage) in found.items():
        assert tenant == body.decode()
        assert [write.key for write in lineage.only("mine")] == [body.decode()]
        assert not lineage.only("workers")
    assert antipode.current() == Lineage()


@pytest.mark.parametrize("terms", [{}, {"on_unmet": "wait", "timeout": 0.5}], ids=["defer", "wait"])
async def test_blocked_messages_let_through_what_they_wait_for(
    workers: Workers, later: Posts, terms: dict[str, Any]
) -> None:
    """Four workers, 400 blocked messages, behind them the one that makes the write: all pass."""
    blocked = 400
    for number in range(blocked):
        workers.publish(b"%d" % number, later.next)
    workers.publish(b"write")
    handled: list[bytes] = []

    async def handle(message: Any) -> None:
        if message.body == b"write":
            later.write()
        handled.append(message.body)

    began_s = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4):
            channel = await stack.enter_async_context(connected(workers))
            one = consumer(workers, channel, handle, delay_s=(0.1, 1.6), **terms)
            await stack.enter_async_context(one)
        await soon(lambda: len(handled) > blocked, what="all messages", timeout_s=60)
    print(f"\nall {len(handled)} after {time.monotonic() - began_s:.2f} s")  # noqa: T201 - for `-s`
    assert handled[0] == b"write"
    assert sorted(handled) == sorted([b"write", *(b"%d" % number for number in range(blocked))])


async def test_a_message_waits_beside_others(workers: Workers, later: Posts) -> None:
    """``wait``: what is behind goes on, and what waited is handled when it may, not deferred."""
    before = counted("message_deferred")
    late = later.next
    workers.publish(b"late", late)
    for number in range(5):
        workers.publish(b"%d" % number)
    seen = Seen()
    terms = {"on_unmet": "wait", "timeout": TIMEOUT_S, "prefetch": 2}
    async with connected(workers) as channel, consumer(workers, channel, seen, **terms):
        await soon(lambda: len(seen.messages) == 5, what="the others")
        later.write()
        await soon(lambda: len(seen.messages) == 6, what="what waited")
    assert seen.bodies[-1] == b"late"
    assert late in seen.lineages[-1]
    assert counted("message_deferred") == before


async def test_what_cannot_be_met_is_given_up(workers: Workers, later: Posts) -> None:
    """At once where it is hopeless, else after the attempts; the queue is made where none is."""
    workers.publish(b"hopeless", UNKNOWN_STORE)
    grave = f"antipode.dead.{workers.queue}"
    async with connected(workers) as channel:
        named = {"only": UNKNOWN_STORE.datastore, "dead_letter": None}
        async with consumer(workers, channel, Seen(), **named):
            before = counted("message_dead_lettered")
            await soon(lambda: counted("message_dead_lettered") > before, what="a dead letter")
        dead = await letter(workers, channel, grave)
        why = dead.headers["antipode-dead-letter"]
        assert (why["reason"], why["attempts"]) == ("unknown_datastore", 1)
        assert why["outcomes"][0].startswith(f"{UNKNOWN_STORE} unknown_store")
        await channel.queue_delete(grave)

        workers.publish(b"late", later.next, expiration="600000")
        async with consumer(workers, channel, Seen(), max_attempts=3):
            dead = await letter(workers, channel)
        why = dead.headers["antipode-dead-letter"]
        assert (why["reason"], why["attempts"]) == ("barrier_timeout", 3)
        assert dead.expiration is None
        with rabbitmq.message(dead) as held:
            assert later.next in held.lineage


async def test_a_deferred_message_expires(
    workers: Workers, later: Posts, wall_clock: WallClock
) -> None:
    """Its time goes on; the broker drops it once that is over, and others are handled."""
    seen, before, deferred = Seen(), counted("message_expired"), counted("message_deferred")
    async with connected(workers) as channel, consumer(workers, channel, seen):
        workers.publish(b"short", later.next, expiration="60000")
        workers.publish(b"long", later.next, expiration="600000")
        await soon(lambda: counted("message_deferred") > deferred + 4, what="both, deferred")
        wall_clock.ahead_s = 120.0
        await soon(lambda: counted("message_expired") > before, what="the end of its time")
        later.write()
        await soon(lambda: bool(seen.messages), what="the other")
    assert seen.bodies == [b"long"]


@pytest.mark.parametrize("on_error", ["requeue", "defer", "dead_letter"])
async def test_what_becomes_of_a_message_whose_handler_raised(
    workers: Workers, on_error: str
) -> None:
    """As asked for: back at once, back after a delay, or given up; the consumer goes on."""
    workers.publish(b"poor")
    workers.publish(b"good")
    tries: list[bytes] = []

    async def handle(message: Any) -> None:
        tries.append(message.body)
        if message.body == b"poor" and tries.count(b"poor") < 3:
            raise LookupError("of mine")

    before = counted("message_deferred")
    async with (
        connected(workers) as channel,
        consumer(workers, channel, handle, on_error=on_error),
    ):
        if on_error == "dead_letter":
            why = (await letter(workers, channel)).headers["antipode-dead-letter"]
            assert (why["reason"], why["message"]) == ("handler_failed", "LookupError: of mine")
        else:
            await soon(lambda: tries.count(b"poor") == 3, what="the third try")
        await soon(lambda: b"good" in tries, what="the other")
    assert counted("message_deferred") - before == (2 if on_error == "defer" else 0)
    assert workers.depth() == 0


async def test_a_handler_that_raises_ends_the_worker_and_loses_nothing(workers: Workers) -> None:
    """``on_error="raise"``, the default: the error reaches the program, the message the queue."""
    workers.publish(b"one")
    workers.publish(b"two")

    async def handle(_message: Any) -> None:
        raise LookupError("of mine")

    async with connected(workers) as channel:
        with pytest.raises(LookupError, match="of mine"):
            await asyncio.wait_for(consumer(workers, channel, handle).run(), TIMEOUT_S)
        await soon(lambda: workers.depth() == 2, what="both messages")


async def test_a_consumer_that_is_cancelled_as_it_begins_consumes_nothing(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``async with`` that does not come so far closes what it opened: the message stays."""
    async with connected(workers) as channel, connected(workers) as other:
        queue = await channel.get_queue(workers.queue)
        plain, asked = type(queue).consume, asyncio.Event()

        async def consume(*args: Any, **options: Any) -> None:
            await plain(*args, **options)
            asked.set()  # The broker sends messages by now, and nobody has heard of its answer.
            await asyncio.Event().wait()

        monkeypatch.setattr(type(queue), "consume", consume)
        one = rabbitmq.consume_async(channel, queue, Seen(), datastore=NEWS)
        entering = asyncio.ensure_future(one.__aenter__())
        await asyncio.wait_for(asked.wait(), TIMEOUT_S)
        entering.cancel()
        await asyncio.wait({entering}, timeout=TIMEOUT_S)
        assert entering.cancelled()
        found = await other.declare_queue(workers.queue, passive=True)
        assert found.declaration_result.consumer_count == 0
        workers.publish(b"late")
        assert workers.depth() == 1


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_the_end_finishes_what_is_handled_and_gives_back_what_waits(
    workers: Workers, later: Posts, how: str
) -> None:
    """``stop()`` and a cancelled ``run()``, which is what Ctrl-C does: nothing is cut short."""
    workers.publish(b"late", later.next)
    workers.publish(b"now")
    entered, leave = asyncio.Event(), asyncio.Event()
    ended: list[bytes] = []

    async def handle(message: Any) -> None:
        entered.set()
        await asyncio.wait_for(leave.wait(), TIMEOUT_S)
        ended.append(message.body)

    async with connected(workers) as channel:
        one = consumer(workers, channel, handle, on_unmet="wait", timeout=TIMEOUT_S)
        running = asyncio.ensure_future(one.run())
        await asyncio.wait_for(entered.wait(), TIMEOUT_S)
        await soon(lambda: len(one._waits) == 1, what="the other to wait")
        if how == "stop":
            one.stop()
        else:
            running.cancel()
        await soon(lambda: workers.depth() == 1, what="what waited")
        assert not running.done()
        leave.set()
        await asyncio.wait({running}, timeout=TIMEOUT_S)
        assert running.cancelled() == (how == "cancel")
        assert ended == [b"now"]
        assert not one._tasks


async def test_a_robust_channel_goes_on_after_a_restart_of_the_broker(
    workers: Workers, later: Posts
) -> None:
    """Deferred messages survive it, and the same consumer handles them when it is back."""
    for number in range(5):
        workers.publish(b"%d" % number, later.next)
    seen = Seen()
    before = counted("message_deferred")
    async with connected(workers, connect=aio_pika.connect_robust) as channel:
        one = consumer(workers, channel, seen, delay_s=(1, 1))
        running = asyncio.ensure_future(one.run())
        await soon(lambda: counted("message_deferred") >= before + 5, what="deferrals")
        await asyncio.to_thread(workers.topology.restart_broker, "us")
        again = counted("message_deferred")
        await soon(
            lambda: counted("message_deferred") > again or running.done(),
            what="the consumer to come back",
            timeout_s=2 * TIMEOUT_S,
        )
        later.write()
        await soon(lambda: len(set(seen.bodies)) == 5 or running.done(), what="all of them")
        one.stop()
        await running
    assert set(seen.bodies) == {b"0", b"1", b"2", b"3", b"4"}


async def test_a_channel_that_is_gone_ends_the_consumer(workers: Workers) -> None:
    """Without a robust channel ``run`` raises, and does not wait for ever."""
    proxy = workers.proxy()
    async with connected(workers, via=proxy) as channel:
        running = asyncio.ensure_future(consumer(workers, channel, Seen()).run())
        await soon(lambda: workers.consumers() == 1, what="the consumer")
        proxy.cut()
        with pytest.raises((aio_pika.exceptions.AMQPError, ConnectionError, RuntimeError)):
            await asyncio.wait_for(running, TIMEOUT_S)
        proxy.heal()


async def test_a_crash_between_publication_and_acknowledgement_loses_nothing(
    workers: Workers, later: Posts
) -> None:
    """The connection dies in between: the message comes twice, as it was."""
    workers.publish(b"body", later.next, headers={"mine": 1})
    seen = Seen()
    proxy = workers.proxy()
    async with connected(workers, via=proxy) as channel:
        crashing = consumer(workers, channel, seen)
        original = crashing._resender._publish

        async def publish(*args: Any) -> bool:
            done: bool = await original(*args)
            proxy.cut()
            await soon(lambda: channel.is_closed, what="the end of the connection")
            return done

        crashing._resender._publish = publish
        with contextlib.suppress(aio_pika.exceptions.AMQPError, ConnectionError, RuntimeError):
            await asyncio.wait_for(crashing.run(), TIMEOUT_S)
    proxy.heal()
    later.write()
    async with connected(workers) as channel, consumer(workers, channel, seen):
        await soon(lambda: len(seen.messages) == 2, what="the message and its copy")
    assert seen.bodies == [b"body"] * 2
    for message in seen.messages:
        assert set(message.headers) == {"mine", "baggage", "antipode-write"}


async def test_a_delay_queue_that_vanishes_is_declared_again(
    workers: Workers, later: Posts
) -> None:
    """What the broker returns as unroutable is published again, to a queue that is there."""
    workers.publish(b"body", later.next)
    name = _delays.Delays(workers.queue, 0.05, 0.05).name(50)
    seen = Seen()
    async with connected(workers) as channel:
        one = consumer(workers, channel, seen, delay_s=(0.05, 0.05))
        one._resender._leases.begin(name, time.monotonic())  # As if it had been there.
        before = counted("message_deferred")
        async with one:
            await soon(lambda: counted("message_deferred") >= before + 2, what="deferrals")
            later.write()
            await soon(lambda: len(seen.messages) == 1, what="the message")
    assert seen.bodies == [b"body"]


async def test_a_broker_that_refuses_the_delay_queue_is_a_configuration_error(
    workers: Workers, later: Posts
) -> None:
    """Here because a queue of that name is another: it is said, and the message is not lost."""
    workers.publish(b"body", later.next)
    name = _delays.Delays(workers.queue, 0.05, 0.05).name(50)
    workers.source.queue_declare(name, durable=True)
    async with connected(workers) as channel:
        one = consumer(workers, channel, Seen(), delay_s=(0.05, 0.05))
        with pytest.raises(ConfigurationError, match="the broker refuses"):
            await asyncio.wait_for(one.run(), TIMEOUT_S)
        await soon(lambda: workers.depth() == 1, what="the message")
    workers.source.queue_delete(name)


async def test_a_queue_object_may_be_passed(workers: Workers) -> None:
    """An aio-pika queue stands for its name; a channel of pika is refused."""
    workers.publish(b"body")
    seen = Seen()
    async with connected(workers) as channel:
        queue = await channel.get_queue(workers.queue)
        async with rabbitmq.consume_async(channel, queue, seen, datastore=NEWS):
            await soon(lambda: seen.bodies == [b"body"], what="the message")
    with pytest.raises(ConfigurationError, match="aio-pika"):
        rabbitmq.consume_async(workers.source, "q", seen, datastore=NEWS)
    assert isinstance(workers.source, pika.adapters.blocking_connection.BlockingChannel)
