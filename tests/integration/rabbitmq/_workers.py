"""What the tests of RabbitMQ consumers share: a dependency to hold back, and workers of a queue."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pika

import antipode
from antipode import Lineage, WriteId
from antipode_shims import embedded, rabbitmq
from antipode_testing import wait_until

from ._bench import NEWS, TIMEOUT_S, Bench, counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from antipode_testing import RabbitMQTopology

#: Delays that tests can wait for.
SOON = (0.05, 0.4)


class Posts:
    """A store whose next write messages can depend on before it is made."""

    def __init__(self, folder: Path) -> None:
        self.shim = embedded.shim("posts", folder / "posts.db", reads_from="primary")
        (self.last,) = self.shim.write("post:0", b"first", Lineage())

    @property
    def next(self) -> WriteId:
        """The write that :meth:`write` will make."""
        assert isinstance(self.last.version, int)
        return replace(self.last, version=self.last.version + 1)

    def write(self) -> None:
        """Make the next write."""
        (self.last,) = self.shim.write("post:1", b"next", Lineage())

    def close(self) -> None:
        self.shim.close()


class Seen:
    """A handler that keeps what it got, and the lineage it ran with."""

    def __init__(self, then: Callable[[bytes], object] = lambda _: None) -> None:
        self.messages: list[tuple[Any, Any, bytes]] = []
        self.lineages: list[Lineage] = []
        self._then = then

    def __call__(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.messages.append((method, properties, body))
        self.lineages.append(antipode.current())
        self._then(body)

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.messages]


class Workers(Bench):
    """A work queue, what is published to it, and threads that consume from it."""

    def __init__(self, topology: RabbitMQTopology) -> None:
        super().__init__(topology)
        self.queue = f"work.{self.name}"
        self.dead = f"dead.{self.name}"
        self.source = rabbitmq.instrument_channel(self.channel(), datastore=NEWS)
        self.source.queue_declare(self.queue, durable=True)
        self.source.queue_declare(self.dead, durable=True)
        self.source.exchange_declare(self.name, "fanout", durable=True)
        self.source.queue_bind(self.queue, self.name)
        self._threads: list[threading.Thread] = []
        self._consumers: list[Any] = []
        self.failures: list[BaseException] = []

    def publish(self, body: bytes, *depends_on: WriteId, **properties: Any) -> None:
        """Publish a persistent message that depends on these writes."""
        with antipode.scope(Lineage(depends_on)):
            self.send(body, **properties)

    def send(self, body: bytes, **properties: Any) -> None:
        """Publish a persistent message in the current scope."""
        sent = pika.BasicProperties(**{"delivery_mode": 2, **properties})
        self.source.basic_publish(self.name, "the.key", body, sent)

    def consumer(self, handler: Callable[..., object], **terms: Any) -> Any:
        """A consumer on a connection of its own, which is not started."""
        terms = {"datastore": NEWS, "delay_s": SOON, "dead_letter": self.dead, **terms}
        return rabbitmq.consume(self.connection().channel(), self.queue, handler, **terms)

    def work(self, handler: Callable[..., object], *, threads: int = 1, **terms: Any) -> None:
        """Consume in background threads until the end of the test."""
        for _ in range(threads):
            one = self.consumer(handler, **terms)
            self._consumers.append(one)
            self._start(one.run)

    def _start(self, run: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                run()
            except BaseException as error:  # noqa: BLE001 - shown by who waits for the workers
                self.failures.append(error)

        thread = threading.Thread(target=guarded, name="test-worker")
        thread.start()
        self._threads.append(thread)

    def rest(self) -> None:
        """Stop all workers; what one raised is raised again."""
        for one in self._consumers:
            one.stop()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        self._consumers.clear()
        self._threads.clear()
        if self.failures:
            raise self.failures.pop(0)

    def until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Return when a condition holds, while the workers work; raise what one of them raised."""
        wait_until(lambda: bool(self.failures) or condition(), what=what, timeout_s=2 * TIMEOUT_S)
        if self.failures:
            raise self.failures.pop(0)

    def deferrals(self, least: int = 1) -> None:
        """Return once so many more messages were deferred."""
        wanted = counted("message_deferred") + least
        self.until(lambda: counted("message_deferred") >= wanted, what="deferrals")

    def consumers(self, queue: str | None = None) -> int:
        """How many consumers a queue has, the work queue unless named."""
        name = queue or self.queue
        found: int = self.source.queue_declare(name, passive=True).method.consumer_count
        return found

    def depth(self, queue: str | None = None) -> int:
        """How many messages are ready in a queue."""
        channel = self.source.connection.channel()
        found: int = channel.queue_declare(queue or self.queue, passive=True).method.message_count
        channel.close()
        return found

    def letter(self) -> Any:
        """The next dead letter, as pika's triple."""
        found: list[Any] = []

        def came() -> bool:
            found[:] = self.source.basic_get(self.dead, auto_ack=True)
            return found[0] is not None

        self.until(came, what="a dead letter")
        return tuple(found)

    def close(self) -> None:
        """Stop what still works, and delete the queues."""
        with contextlib.suppress(BaseException):
            self.rest()
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):
            channel = self.channel()
            for queue in (self.queue, self.dead):
                channel.queue_delete(queue)
        super().close()
