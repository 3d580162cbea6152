"""Consumers in Java, and workers of Python on the same queue: what one defers the other takes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode_shims import rabbitmq
from antipode_testing import LagProxy, wait_until
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.contract._servers import regions
from tests.integration.rabbitmq._bench import NEWS, TIMEOUT_S, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RabbitMQTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]

SOON = (0.05, 0.2)
HEADERS = {"mine", "baggage", "antipode-write"}


class Consumer(RemoteShim):
    """A broker's shim in Java, which hears what its exchange routes."""

    def consume(self, **given: Any) -> list[dict[str, Any]]:
        """The messages that were handled, as their handler had them."""
        return list(self._ask("consume", timeout_s=TIMEOUT_S, delay_s=SOON, **given))


class Queue:
    """A queue of the first region, with an exchange whose messages fulfil promises."""

    def __init__(
        self, topology: RabbitMQTopology, remote: RemoteAntipode, stack: ExitStack
    ) -> None:
        self.server, _ = stack.enter_context(regions("rabbitmq", topology))
        self.name = str(self.server["queue"])
        self.dead = f"dead.{self.name}"
        self.topology = topology
        self._stack = stack
        connection = pika.BlockingConnection(pika.URLParameters(topology.url()))
        stack.callback(connection.close)
        self.channel = rabbitmq.instrument_channel(connection.channel(), datastore=NEWS)
        self.channel.confirm_delivery()
        self.channel.queue_declare(self.dead, durable=True)
        stack.callback(self.channel.queue_delete, self.dead)
        self._remote = remote
        self._receipts = stack.enter_context(
            rabbitmq.shim(NEWS, topology.url(), exchange=self.name, receipts=True)
        )

    def java(self) -> Consumer:
        """A consumer in Java."""
        shim = Consumer(self._remote, "rabbitmq", NEWS, self.server, reads_from="replica")
        return self._stack.enter_context(closing(shim))

    def publish(self, value: str) -> antipode.Promise:
        """A message that depends on what is only promised."""
        with antipode.scope():
            promise = antipode.promise(NEWS, expires_in_s=60)
            properties = pika.BasicProperties(
                headers={"mine": "1"}, delivery_mode=2, expiration="600000"
            )
            self.channel.basic_publish("", self.name, value.encode(), properties)
        return promise

    def fulfil(self, promise: antipode.Promise) -> None:
        """Another message, through the exchange, which makes it visible."""
        headers = rabbitmq.fulfil(None, promise)
        self.channel.basic_publish(
            self.name, "key", b"fulfils", pika.BasicProperties(headers=headers)
        )

    def python(self, handler: Any, **given: Any) -> Any:
        """A worker of Python's."""
        connection = pika.BlockingConnection(pika.URLParameters(self.topology.url()))
        self._stack.callback(connection.close)
        return rabbitmq.consume(
            connection.channel(),
            self.name,
            handler,
            datastore=NEWS,
            delay_s=SOON,
            dead_letter=self.dead,
            **given,
        )

    def letter(self) -> Any:
        """The next dead letter, as pika's triple."""
        found: list[Any] = []

        def came() -> bool:
            found[:] = self.channel.basic_get(self.dead, auto_ack=True)
            return found[0] is not None

        wait_until(came, what="a dead letter", timeout_s=TIMEOUT_S)
        return tuple(found)


@pytest.fixture
def queue(antipode_rabbitmq: RabbitMQTopology, lend: Lend) -> Iterator[Queue]:
    """One of a test."""
    with ExitStack() as stack:
        yield Queue(antipode_rabbitmq, lend("java"), stack)


@pytest.mark.parametrize("wait", [{}, {"wait_s": 0.05}], ids=["defer", "wait"])
def test_a_message_is_handled_once_it_may_be(queue: Queue, wait: dict[str, float]) -> None:
    """It comes back as it was published, in its own scope, after some deferrals."""
    java = queue.java()
    promise = queue.publish("late")
    assert java.consume(deferrals=2, **wait) == []
    queue.fulfil(promise)
    handled = {each["value"]: each for each in java.consume(messages=2, **wait)}
    late = handled["late"]
    assert (late["exchange"], late["key"], late["expiration"]) == ("", queue.name, "600000")
    assert set(late["headers"]) == {"mine", "baggage"} | (set(late["headers"]) & HEADERS)
    assert promise in antipode.deserialize(late["lineage"]).promises


def _worked(worker: Any, done: Callable[[], bool]) -> None:
    """Let a worker of Python's run until something holds."""
    wait_until(
        lambda: worker.run(timeout=0.02) is not None or done(),
        what="a worker of Python's",
        timeout_s=TIMEOUT_S,
    )


def test_python_goes_on_with_what_java_deferred(queue: Queue) -> None:
    """The attempts are counted over both, and the handler sees the message as it was."""
    java = queue.java()
    promise = queue.publish("late")
    java.consume(deferrals=2)
    before = counted("message_dead_lettered")
    with queue.python(lambda *_: None, max_attempts=3) as worker:
        _worked(worker, lambda: counted("message_dead_lettered") > before)
    _, properties, body = queue.letter()
    why = properties.headers["antipode-dead-letter"]
    assert (why["reason"], why["attempts"]) == ("barrier_timeout", 3)
    assert (body, why["expiration"], why["routing_key"]) == (b"late", "600000", queue.name)
    queue.channel.basic_publish("", queue.name, body, properties)
    java.consume(deferrals=1)
    queue.fulfil(promise)
    seen: dict[bytes, Any] = {}
    with queue.python(lambda _, __, given, sent: seen.update({sent: given})) as worker:
        _worked(worker, lambda: b"late" in seen)
    assert seen[b"late"].expiration == "600000"
    assert "antipode-deferred" not in seen[b"late"].headers


def test_java_goes_on_with_what_python_deferred(queue: Queue) -> None:
    """Likewise; what it gives up says why, in the words of Python's workers."""
    queue.publish("late")
    wanted = counted("message_deferred") + 2
    with queue.python(lambda *_: pytest.fail("it may not be handled")) as worker:
        _worked(worker, lambda: counted("message_deferred") >= wanted)
    assert queue.java().consume(dead=1, max_attempts=3, dead_letter=queue.dead) == []
    _, properties, body = queue.letter()
    why = properties.headers["antipode-dead-letter"]
    assert (body, why["reason"], why["attempts"]) == (b"late", "barrier_timeout", 3)
    assert (why["queue"], why["exchange"], why["routing_key"]) == (queue.name, "", queue.name)
    assert why["expiration"] == "600000"
    assert len(why["outcomes"]) == 1
    assert why["incomplete"] == []
    assert properties.expiration is None
    assert properties.headers["mine"] == "1"


def test_what_a_consumer_had_in_hand_comes_again_after_a_lost_connection(queue: Queue) -> None:
    """The consumer ends with an error; the next one has the message, and handles it."""
    java = queue.java()
    with LagProxy(queue.topology.address("us")) as proxy:
        host, port = proxy.address
        url = f"amqp://guest:guest@{host}:{port}/%2f"
        promise = queue.publish("late")
        with ThreadPoolExecutor(1) as threads:
            consuming = threads.submit(java.consume, messages=1, wait_s=TIMEOUT_S, url=url)
            _in_hand(queue)
            proxy.cut()
            with pytest.raises(StoreError):
                consuming.result(2 * TIMEOUT_S)
    queue.fulfil(promise)
    assert {each["value"] for each in java.consume(messages=2)} == {"late", "fulfils"}


def _in_hand(queue: Queue) -> None:
    """Return once a consumer has all messages in hand."""

    def held() -> bool:
        asked = queue.channel.queue_declare(queue.name, passive=True).method
        return bool(asked.consumer_count == 1 and asked.message_count == 0)

    wait_until(held, what="the message in hand", timeout_s=TIMEOUT_S)
