"""Messages that a consumer gives up, over pika on a real broker: when, where to, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode_shims import embedded, rabbitmq

from ._bench import NEWS, counted
from ._workers import SOON, Seen

if TYPE_CHECKING:
    from antipode_shims.embedded import EmbeddedTopology

    from ._workers import Posts, Workers
    from .conftest import WallClock

pytestmark = pytest.mark.store("rabbitmq")

UNKNOWN_LOG = WriteId("posts", "00000000-0000-7000-8000-000000000000", 7)
UNKNOWN_STORE = WriteId("users", "log", 7, 498_669)


def given_up(workers: Workers, **terms: Any) -> tuple[dict[str, Any], Any]:
    """Work until there is a dead letter; what its header says, and the letter."""
    before = counted("message_dead_lettered"), counted("message_deferred")
    seen = Seen()
    workers.work(seen, **terms)
    letter = workers.letter()
    workers.rest()
    assert counted("message_dead_lettered") == before[0] + 1
    assert counted("message_deferred") - before[1] == terms.get("max_attempts", 1) - 1
    assert not seen.messages
    assert workers.depth() == 0
    return letter[1].headers["antipode-dead-letter"], letter


@pytest.mark.parametrize("terms", [{}, {"on_unmet": "wait", "timeout": 5}], ids=["defer", "wait"])
def test_a_lost_dependency_is_given_up_at_once(
    workers: Workers, antipode_embedded: EmbeddedTopology, terms: dict[str, Any]
) -> None:
    """Proved gone: no deferral, no wait; the header has the exact outcome."""
    topology = antipode_embedded
    with embedded.shim("posts", topology.primary, reads_from="primary") as primary:
        topology.wait_replicated()
        topology.pause()
        (lost,) = primary.write("post:1", b"lost", Lineage())
    topology.failover(lose_unreplicated=True)
    with embedded.shim("posts", topology.primary, reads_from="replica"):
        workers.publish(b"body", lost)
        why, letter = given_up(workers, **terms)
    assert why["reason"] == "dependency_lost"
    assert why["outcomes"][0] == f"{lost} lost"
    assert why["attempts"] == 1
    assert why["queue"] == workers.queue
    assert (why["exchange"], why["routing_key"]) == (workers.name, "the.key")
    assert letter[2] == b"body"
    with rabbitmq.message(letter) as held:
        assert lost in held.lineage


@pytest.mark.parametrize(
    ("write", "code", "outcome"),
    [
        (UNKNOWN_LOG, "visibility_check", "unknown_log"),
        (UNKNOWN_STORE, "unknown_datastore", "unknown_store"),
    ],
    ids=["unknown-log", "unknown-store"],
)
def test_what_cannot_be_decided_is_given_up_at_once(
    workers: Workers, later: Posts, write: WriteId, code: str, outcome: str
) -> None:
    """An unknown log, and an unknown datastore that was named: waiting cannot help."""
    workers.publish(b"body", write, later.last)
    why, _ = given_up(workers, only=["posts", "users"])
    assert why["reason"] == code
    assert why["outcomes"][0].startswith(f"{write} {outcome}")
    assert f"{later.last} visible" in why["outcomes"]


def test_an_incomplete_lineage_is_given_up_at_once(workers: Workers) -> None:
    """What is known to miss dependencies says so: here, because it was not readable."""
    headers = {"baggage": "antipode=1~~"}
    workers.channel().basic_publish(
        workers.name, "the.key", b"body", pika.BasicProperties(headers=headers)
    )
    why, _ = given_up(workers)
    assert why["reason"] == "incomplete_lineage"
    assert why["incomplete"] == [f"{NEWS} (unreadable)"]


@pytest.mark.parametrize(
    "terms", [{}, {"on_unmet": "wait", "timeout": 0.05}], ids=["defer", "wait"]
)
def test_after_its_attempts_a_message_is_given_up(
    workers: Workers, later: Posts, terms: dict[str, Any]
) -> None:
    """Three looks, two deferrals, then the dead letter, with headers as they were published."""
    workers.publish(b"body", later.next, headers={"mine": 1}, expiration="600000")
    why, (_, properties, _) = given_up(workers, max_attempts=3, **terms)
    assert why["reason"] == "barrier_timeout"
    assert why["attempts"] == 3
    assert why["outcomes"][0].startswith(f"{later.next} not_yet")
    # A dead letter does not expire; what would make it is kept in the header.
    assert properties.expiration is None
    assert why["expiration"] == "600000"
    assert set(properties.headers) == {"mine", "baggage", "antipode-write", "antipode-dead-letter"}


def test_a_dead_letter_that_is_moved_back_begins_anew(workers: Workers, later: Posts) -> None:
    """As it was published first, with all its attempts; then it is handled."""
    workers.publish(b"body", later.next, headers={"mine": 1}, expiration="600000")
    _, (_, properties, body) = given_up(workers, max_attempts=2)
    plain = workers.connection().channel()
    plain.basic_publish("", workers.queue, body, properties)
    seen = Seen()
    workers.work(seen, max_attempts=3)
    workers.deferrals(2)
    later.write()
    workers.until(lambda: bool(seen.messages), what="the message")
    method, got, _ = seen.messages[0]
    assert (method.exchange, method.routing_key) == (workers.name, "the.key")
    assert got.expiration == "600000"
    assert set(got.headers) == {"mine", "baggage", "antipode-write"}


def test_a_queue_with_a_dead_letter_exchange_of_its_own(workers: Workers) -> None:
    """``BY_REJECTION``: the broker moves what is rejected, and says from where."""
    queue = f"{workers.queue}.own"
    channel = workers.channel()
    channel.queue_declare(
        queue,
        auto_delete=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": workers.dead},
    )
    with antipode.scope(Lineage([UNKNOWN_STORE])):
        workers.source.basic_publish("", queue, b"body")
    worker = rabbitmq.consume(
        workers.connection().channel(),
        queue,
        Seen(),
        datastore=NEWS,
        dead_letter=rabbitmq.BY_REJECTION,
    )
    workers._consumers.append(worker)
    workers._start(worker.run)
    _, properties, body = workers.letter()
    workers.rest()
    assert body == b"body"
    assert properties.headers["x-death"][0]["queue"] == queue
    assert properties.headers["x-death"][0]["reason"] == "rejected"


def test_a_deferred_message_expires(workers: Workers, later: Posts, wall_clock: WallClock) -> None:
    """Its time goes on; once it is over, it goes where the broker has what expires."""
    queue = f"{workers.queue}.own"
    workers.channel().queue_declare(
        queue,
        auto_delete=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": workers.dead},
    )
    seen, before, deferred = Seen(), counted("message_expired"), counted("message_deferred")
    worker = rabbitmq.consume(
        workers.connection().channel(), queue, seen, datastore=NEWS, delay_s=SOON
    )
    workers._consumers.append(worker)
    workers._start(worker.run)
    workers.until(lambda: workers.consumers(queue) == 1, what="the worker")
    with antipode.scope(Lineage([later.next])):
        for body, expiration in ((b"short", "60000"), (b"long", "600000")):
            properties = pika.BasicProperties(expiration=expiration)
            workers.source.basic_publish("", queue, body, properties)
    workers.until(lambda: counted("message_deferred") > deferred + 4, what="both, deferred")
    wall_clock.ahead_s = 120.0
    _, properties, body = workers.letter()
    later.write()
    workers.until(lambda: bool(seen.messages), what="the other")
    assert (body, properties.headers["x-death"][0]["queue"]) == (b"short", queue)
    assert seen.bodies == [b"long"]
    assert counted("message_expired") == before + 1


def test_a_handler_that_raises_ends_the_worker_and_loses_nothing(workers: Workers) -> None:
    """``on_error="raise"``, the default: the error reaches the program, the message the queue."""
    workers.publish(b"one")
    workers.publish(b"two")

    def handle(*_: Any) -> None:
        assert antipode.current().only(NEWS)
        raise LookupError("of mine")

    worker = workers.consumer(handle)
    with pytest.raises(LookupError, match="of mine"):
        worker.run()
    assert antipode.current() == Lineage()
    workers.until(lambda: workers.depth() == 2, what="both messages")


@pytest.mark.parametrize("on_error", ["requeue", "defer"])
def test_a_message_whose_handler_raised_comes_again(workers: Workers, on_error: str) -> None:
    """At once, or after a delay; the consumer goes on with others."""
    tries: list[bytes] = []

    def handle(_channel: Any, _method: Any, _properties: Any, body: bytes) -> None:
        tries.append(body)
        if body == b"poor" and tries.count(b"poor") < 3:
            raise LookupError

    workers.publish(b"poor")
    workers.publish(b"good")
    before = counted("message_deferred")
    workers.work(handle, on_error=on_error)
    workers.until(lambda: tries.count(b"poor") == 3 and b"good" in tries, what="the third try")
    workers.rest()
    assert counted("message_deferred") - before == (2 if on_error == "defer" else 0)
    assert workers.depth() == 0


@pytest.mark.parametrize(
    "terms", [{"on_error": "dead_letter"}, {"on_error": "defer", "max_attempts": 2}]
)
def test_a_message_whose_handler_raised_is_given_up(
    workers: Workers, terms: dict[str, Any]
) -> None:
    """At once, or after its attempts; the header names the error."""

    def handle(*_: Any) -> None:
        raise LookupError("of mine")

    workers.publish(b"poor")
    workers.work(handle, **terms)
    _, properties, _ = workers.letter()
    workers.rest()
    why = properties.headers["antipode-dead-letter"]
    assert (why["reason"], why["message"]) == ("handler_failed", "LookupError: of mine")
    assert why["attempts"] == terms.get("max_attempts", 1)
