"""Consumers over pika on a real broker: what a handler sees, and what becomes of each message."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pika
import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import Cancellable
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._consumers import consumer as _consumer
from antipode_testing import wait_until

from ._bench import NEWS, TIMEOUT_S, counted
from ._workers import Posts, Seen, Workers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.store("rabbitmq")


def test_a_visible_message_is_handled_at_once_in_its_own_scope(
    workers: Workers, later: Posts
) -> None:
    """The handler sees the lineage of the publisher, and the message is acknowledged after it."""
    workers.publish(b"one", later.last)
    seen = Seen()
    workers.work(seen)
    workers.until(lambda: bool(seen.messages), what="the message")
    workers.rest()
    assert later.last in seen.lineages[0]
    assert len(seen.lineages[0].only(NEWS)) == 1
    assert workers.depth() == 0
    assert antipode.current() == Lineage()


def test_a_deferred_message_comes_back_as_it_was(workers: Workers, later: Posts) -> None:
    """Headers, properties, exchange, key and lineage are the publisher's after two deferrals."""
    sent = {"mine": 1, "nested": {"a": [1, "b"]}, "baggage": "tenant=acme"}
    properties: dict[str, Any] = {
        "headers": sent,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "600000",
        "message_id": "m",
        "timestamp": 1_700_000_000,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
        "content_type": "text/plain",
    }
    # What a plain consumer would have got of the same publication.
    expected_version = later.next.version
    plain = workers.source.queue_declare("", exclusive=True).method.queue
    workers.source.queue_bind(plain, workers.name)
    workers.publish(b"body", later.next, **properties)
    expected: list[Any] = []

    def came() -> bool:
        expected[:] = workers.source.basic_get(plain, auto_ack=True)
        return expected[0] is not None

    wait_until(came, what="the plain copy", timeout_s=TIMEOUT_S)
    seen = Seen()
    workers.work(seen)
    workers.deferrals(2)
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")
    workers.rest()
    method, got, body = seen.messages[0]
    assert body == b"body"
    assert (method.exchange, method.routing_key) == (workers.name, "the.key")
    assert vars(got) == vars(expected[1])
    assert [w.version for w in seen.lineages[0].only("posts")] == [expected_version]


def test_the_lineage_stays_the_publishers_over_deferrals(workers: Workers, later: Posts) -> None:
    """What consumers did and saw meanwhile does not get into a message that they gave back."""
    late = later.next
    workers.publish(b"late", late)
    workers.publish(b"busy")

    def handle(body: bytes) -> None:
        if body == b"busy":
            antipode.append(WriteId("mine", "k", 1))

    seen = Seen(handle)
    # Within a scope of the worker's own, on a channel that adds lineages to what it publishes.
    channel = rabbitmq.instrument_channel(workers.connection().channel(), datastore=NEWS)
    with (
        antipode.scope(Lineage([WriteId("workers", "k", 1)])),
        rabbitmq.consume(
            channel, workers.queue, seen, datastore=NEWS, delay_s=(0.05, 0.05)
        ) as worker,
    ):

        def until(condition: Callable[[], bool]) -> None:
            wait_until(
                lambda: worker.run(timeout=0.05) is not None or condition(),
                what="messages",
                timeout_s=TIMEOUT_S,
            )

        before = counted("message_deferred")
        until(lambda: counted("message_deferred") >= before + 3 and bool(seen.bodies))
        later.write()
        until(lambda: len(seen.messages) == 2)
    assert seen.bodies == [b"busy", b"late"]
    assert {write.datastore for write in seen.lineages[1]} == {"posts", NEWS}
    assert [w.version for w in seen.lineages[1].only(NEWS)] == [1]


def test_nothing_of_one_message_is_in_the_next(workers: Workers, later: Posts) -> None:
    """Writes, baggage and contexts that a handler leaves behind, raising or not, are gone."""
    for number in range(4):
        workers.publish(b"%d" % number, later.last, headers={"baggage": f"n={number}"})
    found: list[tuple[object, object]] = []

    def handle(body: bytes) -> None:
        found.append((baggage.get_baggage("n"), baggage.get_baggage("left")))
        antipode.append(WriteId("mine", body.decode(), 1))
        otel_context.attach(baggage.set_baggage("left", body.decode()))  # Never detached.
        if body == b"1":
            raise LookupError

    seen = Seen(handle)
    workers.work(seen, on_error="dead_letter", prefetch=1)
    workers.until(lambda: len(seen.messages) == 4, what="all messages")
    workers.rest()
    assert found == [("0", None), ("1", None), ("2", None), ("3", None)]
    assert not any(each.only("mine") for each in seen.lineages)


def test_a_message_waits_beside_others_and_keeps_its_scope(workers: Workers, later: Posts) -> None:
    """``wait``: what is behind goes on, and what waited is handled when it may, not deferred."""
    before = counted("message_deferred")
    workers.publish(b"late", later.next)
    for number in range(5):
        workers.publish(b"%d" % number)
    seen = Seen()
    workers.work(seen, on_unmet="wait", timeout=TIMEOUT_S, prefetch=2)
    workers.until(lambda: len(seen.messages) == 5, what="the others")
    late = later.next
    later.write()
    workers.until(lambda: len(seen.messages) == 6, what="what waited")
    workers.rest()
    assert seen.bodies[-1] == b"late"
    assert late in seen.lineages[-1]
    assert counted("message_deferred") == before


def test_with_a_prefetch_of_one_nothing_waits(workers: Workers, later: Posts) -> None:
    """The one message that the broker sends ahead is deferred: it would block the worker."""
    workers.publish(b"late", later.next)
    workers.publish(b"other")
    seen = Seen()
    workers.work(seen, on_unmet="wait", timeout=TIMEOUT_S, prefetch=1)
    workers.until(lambda: seen.bodies == [b"other"], what="the other")
    later.write()
    workers.until(lambda: len(seen.messages) == 2, what="what was deferred")


def test_waiting_starves_no_heartbeats(workers: Workers, later: Posts) -> None:
    """A message waits four times as long as a heartbeat of the connection may be late."""
    parameters = pika.URLParameters(workers.topology.url())
    parameters.heartbeat = 1
    connection = pika.BlockingConnection(parameters)
    seen = Seen()
    worker = rabbitmq.consume(
        connection.channel(), workers.queue, seen, datastore=NEWS, on_unmet="wait", timeout=4
    )
    workers.publish(b"late", later.next)
    workers._consumers.append(worker)
    workers._start(worker.run)
    workers.deferrals()
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")
    workers.rest()
    connection.close()


def test_no_message_depends_on_its_barrier_to_end(
    workers: Workers, later: Posts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A barrier that never tells how it ended, through whatever fault: the message is deferred."""
    monkeypatch.setattr(_consumer, "OVERDUE_S", 0.1)
    monkeypatch.setattr(
        _consumer, "barrier_callback", lambda *_, **__: Cancellable(threading.Event())
    )
    workers.publish(b"late", later.next)
    seen = Seen()
    workers.work(seen, on_unmet="wait", timeout=0.05)
    workers.deferrals()
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")


def test_a_barrier_of_the_handlers_own_defers_too(workers: Workers, later: Posts) -> None:
    """A handler that lets ``BarrierTimeout`` escape has its message deferred, and comes again."""
    workers.publish(b"late", later.next)
    tries: list[int] = []

    def handle(*_: Any) -> None:
        tries.append(1)
        if len(tries) == 2:
            later.write()
        antipode.barrier(timeout=0.05 if len(tries) == 1 else TIMEOUT_S)

    before = counted("message_deferred")
    workers.work(handle, exclude="posts")
    workers.until(lambda: len(tries) == 2 and workers.depth() == 0, what="the second try")
    workers.rest()
    assert counted("message_deferred") == before + 1


def test_stop_finishes_the_message_in_hand_and_gives_back_the_rest(
    workers: Workers, later: Posts
) -> None:
    """From another thread: the handler ends, what waits and what was sent ahead is in the queue."""
    workers.publish(b"late", later.next)
    for number in range(5):
        workers.publish(b"%d" % number)
    entered, leave = threading.Event(), threading.Event()

    def handle(_body: bytes) -> None:
        entered.set()
        assert leave.wait(TIMEOUT_S)

    seen = Seen(handle)
    workers.work(seen, on_unmet="wait", timeout=TIMEOUT_S)
    assert entered.wait(TIMEOUT_S)
    workers._consumers[0].stop()
    leave.set()
    workers.rest()
    assert seen.bodies == [b"0"]
    wait_until(lambda: workers.depth() == 5, what="the rest", timeout_s=TIMEOUT_S)


@pytest.mark.parametrize("idle", [False, True], ids=["in-handler", "idle"])
def test_ctrl_c_gives_everything_back(workers: Workers, later: Posts, *, idle: bool) -> None:
    """The interrupt reaches the program; the messages are in the queue, no scope is left."""
    workers.publish(b"late", later.next)
    if not idle:
        workers.publish(b"now")

    def handle(_body: bytes) -> None:
        signal.raise_signal(signal.SIGINT)

    worker = workers.consumer(Seen(handle), on_unmet="wait", timeout=TIMEOUT_S)
    if idle:
        threading.Thread(
            target=lambda: (
                wait_until(lambda: worker._waiting == 1, what="a wait", timeout_s=TIMEOUT_S),
                os.kill(os.getpid(), signal.SIGINT),
            )
        ).start()
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert antipode.current() == Lineage()
    waiting = 1 if idle else 2
    wait_until(lambda: workers.depth() == waiting, what="the messages", timeout_s=TIMEOUT_S)


def test_a_signal_handler_stops_a_consumer(workers: Workers) -> None:
    """``stop`` may be called in one: an idle worker returns at once."""
    worker = workers.consumer(Seen())
    before = signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    try:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        worker.run(timeout=TIMEOUT_S)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert worker._closed


def test_a_deleted_queue_ends_the_consumer(workers: Workers) -> None:
    """The broker's cancellation is an error of ``run``, not a consumer that waits for ever."""
    workers.work(Seen())
    wait_until(
        lambda: workers.source.queue_declare(workers.queue, passive=True).method.consumer_count > 0,
        what="the consumer",
        timeout_s=TIMEOUT_S,
    )
    workers.source.queue_delete(workers.queue)
    with pytest.raises(pika.exceptions.ConsumerCancelled):
        workers.until(lambda: False, what="the end")


def test_only_a_blocking_channel_is_consumed_from(workers: Workers) -> None:
    """The wrong kind of channel, and arguments that contradict each other, fail at once."""
    channel = workers.connection().channel()
    with pytest.raises(ConfigurationError, match="consume_async"):
        rabbitmq.consume(channel._impl, "q", Seen(), datastore=NEWS)
    with pytest.raises(ConfigurationError, match="timeout="):
        rabbitmq.consume(channel, "q", Seen(), datastore=NEWS, on_unmet="wait")
