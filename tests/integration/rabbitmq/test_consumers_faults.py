"""Deferral on a real broker through crashes, restarts and what brokers do to messages."""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any

import pika
import pytest

from antipode import ConfigurationError
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._consumers import delays as _delays
from antipode_testing import LagProxy, wait_until

from ._bench import NEWS, TIMEOUT_S, counted
from ._workers import SOON, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._workers import Posts, Workers

pytestmark = pytest.mark.store("rabbitmq")


def through(workers: Workers, proxy: LagProxy, handler: Callable[..., object], **terms: Any) -> Any:
    """A consumer that reaches its broker through *proxy*."""
    channel = workers.connection(via=proxy).channel()
    terms = {"datastore": NEWS, "delay_s": SOON, **terms}
    return rabbitmq.consume(channel, workers.queue, handler, **terms)


@pytest.mark.parametrize("confirmed", [True, False], ids=["after-confirm", "before-confirm"])
def test_a_crash_between_publication_and_acknowledgement_loses_nothing(
    workers: Workers, later: Posts, *, confirmed: bool
) -> None:
    """The connection dies in between: the message comes again, perhaps twice, as it was."""
    workers.publish(b"body", later.next, headers={"mine": 1})
    seen = Seen()
    proxy = workers.proxy()
    crashing = through(workers, proxy, seen)
    original = crashing._resender._publish

    def publish(*args: Any) -> bool:
        if not confirmed:
            proxy.pause()  # The broker's answer never comes, but it has the message.
            channel = crashing._resender._opened()
            channel._impl.basic_publish("", args[0], args[2], args[1])
            channel._flush_output()
        else:
            original(*args)
        proxy.cut()
        return True

    crashing._resender._publish = publish
    with pytest.raises(pika.exceptions.AMQPError):
        crashing.run()
    later.write()
    workers.work(seen)
    copies = 2 if confirmed else 1
    workers.until(lambda: len(seen.messages) >= copies, what="the message, and its copy")
    workers.rest()
    assert set(seen.bodies) == {b"body"}
    for _, properties, _ in seen.messages:
        assert set(properties.headers) == {"mine", "baggage", "antipode-write"}


def test_deferred_messages_survive_a_restart_of_the_broker(workers: Workers, later: Posts) -> None:
    """Durable delay queues: what was deferred when the broker stopped is handled after it."""
    for number in range(5):
        workers.publish(b"%d" % number, later.next)
    seen = Seen()
    worker = workers.consumer(seen, delay_s=(2, 2))
    before = counted("message_deferred")
    while counted("message_deferred") < before + 5:
        worker.run(timeout=0.05)
    workers.topology.restart_broker("us")
    with pytest.raises(pika.exceptions.AMQPError):
        worker.run()
    later.write()
    workers.work(seen)
    wait_until(lambda: len(seen.messages) >= 5, what="all of them", timeout_s=TIMEOUT_S)
    workers.rest()
    assert sorted(seen.bodies) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_delay_queue_that_vanishes_is_declared_again(workers: Workers, later: Posts) -> None:
    """Expired or deleted by somebody: the next deferral makes it anew, and nothing is lost."""
    workers.publish(b"body", later.next)
    seen = Seen()
    with workers.consumer(seen, delay_s=(0.05, 0.05)) as worker:
        for number in range(1, 4):
            before = counted("message_deferred")
            while counted("message_deferred") == before:
                worker.run(timeout=0.02)
            assert worker._unsettled == {}
            # Only while it is empty: with messages in it, who deletes a queue deletes them.
            name = _delays.Delays(workers.queue, 0.05, 0.05).name(50)
            wait_until(
                functools.partial(_deleted_empty, workers, name),
                what=f"the queue to be empty again, the {number}. time",
                timeout_s=TIMEOUT_S,
            )
        later.write()
        while not seen.messages:
            worker.run(timeout=0.02)
    assert seen.bodies == [b"body"]


def _deleted_empty(workers: Workers, name: str) -> bool:
    """Delete a queue; False where messages are in it."""
    channel = workers.source.connection.channel()
    try:
        channel.queue_delete(name, if_empty=True)
    except pika.exceptions.ChannelClosedByBroker:
        return False
    channel.close()
    return True


def test_a_delay_queue_is_declared_again_long_before_it_expires(
    workers: Workers, later: Posts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queues that live for half a second more than their delay: in use, none loses a message.

    Where the machine stands still for most of that, a message may come twice.
    """
    monkeypatch.setattr(_delays, "SPARE_S", 0.5)
    bodies = {b"%d" % number for number in range(20)}
    for body in bodies:
        workers.publish(body, later.next)
    seen = Seen()
    workers.work(seen, delay_s=(0.06, 0.06), max_attempts=1000)
    workers.deferrals(400)
    later.write()
    workers.until(lambda: set(seen.bodies) == bodies, what="all of them")
    workers.rest()
    name = _delays.Delays(workers.queue, 0.06, 0.06).name(60)
    wait_until(lambda: not _exists(workers, name), what="its end", timeout_s=TIMEOUT_S)


def _exists(workers: Workers, name: str) -> bool:
    """Whether there is such a queue; asked by the side, for a declaration would keep it alive."""
    queues = workers.topology.management("us").get("queues/%2f?columns=name")
    return any(queue["name"] == name for queue in queues)


def test_headers_of_an_earlier_dead_lettering_come_back(workers: Workers, later: Posts) -> None:
    """A retry topology of the application's own: its ``x-death`` is what the handler sees."""
    retry = workers.source.queue_declare(
        "",
        exclusive=True,
        arguments={
            "x-message-ttl": 1,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": workers.queue,
        },
    ).method.queue
    workers.source.basic_publish("", retry, b"retried")
    wait_until(lambda: workers.depth() == 1, what="the retry", timeout_s=TIMEOUT_S)
    plain = workers.source.basic_get(workers.queue)
    workers.source.basic_nack(plain[0].delivery_tag, requeue=True)
    seen = Seen()
    workers.work(seen, exclude=())
    workers.until(lambda: bool(seen.messages), what="the message")
    assert seen.messages[0][1].headers == plain[1].headers
    workers.rest()

    workers.source.basic_publish(
        "", retry, b"blocked", pika.BasicProperties(headers={"baggage": _baggage(later)})
    )
    workers.work(seen)
    workers.deferrals(2)
    later.write()
    workers.until(lambda: len(seen.messages) == 2, what="the other")
    (death,) = seen.messages[1][1].headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == (retry, "expired", 1)
    assert seen.messages[1][1].headers["x-first-death-queue"] == retry


def _baggage(later: Posts) -> str:
    import antipode

    return f"antipode={antipode.serialize(antipode.Lineage([later.next]))}"


def test_a_copied_message_goes_to_its_own_queue_alone(workers: Workers, later: Posts) -> None:
    """``CC`` makes brokers route to more queues: a deferral and a dead letter do not repeat it."""
    other = workers.source.queue_declare("", exclusive=True).method.queue
    workers.publish(b"body", later.next, headers={"CC": [other]})
    seen = Seen()
    workers.work(seen)
    workers.deferrals(2)
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")
    workers.rest()
    assert seen.messages[0][1].headers["CC"] == [other]
    workers.publish(b"body", later.next, headers={"CC": [other]})
    workers.work(seen, max_attempts=1)
    why = workers.letter()[1].headers["antipode-dead-letter"]
    workers.rest()
    assert why["headers"]["CC"] == [other]
    assert workers.depth(other) == 0


def test_a_message_of_another_user_is_not_deferred_under_a_false_name(
    workers: Workers, later: Posts
) -> None:
    """The broker refuses a ``user_id`` of others: an error that says so, and nothing is lost."""
    api = workers.topology.management("us")
    name = f"u{uuid.uuid4().hex}"
    api.put(f"users/{name}", {"password": name, "tags": ""})
    api.put(f"permissions/%2f/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    parameters = pika.URLParameters(workers.topology.url())
    parameters.credentials = pika.PlainCredentials(name, name)
    with pika.BlockingConnection(parameters) as connection:
        headers = {"baggage": _baggage(later)}
        connection.channel().basic_publish(
            "", workers.queue, b"", pika.BasicProperties(headers=headers, user_id=name)
        )
    with pytest.raises(ConfigurationError, match="impersonator"):
        workers.consumer(Seen()).run(timeout=TIMEOUT_S)
    wait_until(lambda: workers.depth() == 1, what="the message", timeout_s=TIMEOUT_S)


def test_delay_queues_may_be_quorum_queues(workers: Workers, later: Posts) -> None:
    """``delay_arguments``: the broker then republishes what expires with confirms of its own."""
    workers.publish(b"body", later.next)
    seen = Seen()
    workers.work(
        seen,
        delay_s=(0.1, 0.1),
        delay_arguments={
            "x-queue-type": "quorum",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        },
    )
    workers.deferrals(2)
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")


def test_delays_grow_to_the_longest(workers: Workers, later: Posts) -> None:
    """A few queues, of powers of two, hold all messages, each longer than the one before."""
    workers.publish(b"body", later.next)
    workers.work(Seen(), delay_s=(0.02, 0.1))
    workers.deferrals(5)
    delays = _delays.Delays(workers.queue, 0.02, 0.1)
    assert all(_exists(workers, delays.name(ms)) for ms in (20, 40, 80, 100))
    assert not any(_exists(workers, delays.name(ms)) for ms in (10, 160, 200))
