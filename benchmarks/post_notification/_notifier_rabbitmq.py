"""Notifications by RabbitMQ: an exchange that the reader's broker federates from the writer's."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pika

from ._delivery import EXCHANGE, NOTIFICATIONS, Delivery

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ._delivery import Publisher, Subscriber
    from ._storage import Spec

_QUEUE = "notifications"
_KEY = "post"


def _connect(url: str) -> Any:  # noqa: ANN401 - pika ships no annotations
    parameters = pika.URLParameters(url)
    # A connection that waits for the next request answers no heartbeats meanwhile.
    parameters.heartbeat = 0
    return pika.BlockingConnection(parameters)


def declare(spec: Spec, *, purge: bool = False) -> None:
    """Declare the exchange in both regions, and the queue that followers read from.

    Args:
        spec: where the brokers are.
        purge: empty the queue of what an earlier run left.
    """
    for region in ("writer", "reader"):
        connection = _connect(spec[region])
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, exchange_type="direct", durable=True)
        if region == "reader":
            channel.queue_declare(_QUEUE, durable=True)
            channel.queue_bind(_QUEUE, EXCHANGE, routing_key=_KEY)
            if purge:
                channel.queue_purge(_QUEUE)
        connection.close()


class ConfirmedPublisher:
    """Without the library: publishes with confirms, over one channel."""

    def __init__(self, spec: Spec) -> None:
        """Connect to the writer region's broker."""
        self._connection = _connect(spec["writer"])
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        self._lock = threading.Lock()

    def publish(self, body: bytes) -> None:
        """Publish a notification."""
        with self._lock:
            self._channel.basic_publish(EXCHANGE, _KEY, body)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


class ShimmedPublisher(ConfirmedPublisher):
    """With the library: the current lineage goes into each message's headers."""

    def __init__(self, spec: Spec) -> None:
        """Connect; instrumenting the channel is all it takes."""
        from antipode_shims import rabbitmq

        super().__init__(spec)
        rabbitmq.instrument_channel(self._channel, datastore=NOTIFICATIONS)


class ConsumingSubscriber:
    """Without the library: consumes from the reader region's broker."""

    def __init__(self, spec: Spec) -> None:
        """Connect."""
        self._channel = _connect(spec["reader"]).channel()

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each message; it is handled in another thread, in a scope of its own."""

        def received(_: object, __: object, properties: Any, body: bytes) -> None:  # noqa: ANN401
            headers = properties.headers or {}
            size = len(body) + sum(len(name) + len(str(value)) for name, value in headers.items())
            handle(Delivery(body, size, self.scope(properties)))

        self._channel.basic_consume(_QUEUE, received, auto_ack=True)
        self._channel.start_consuming()

    def scope(self, properties: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401, ARG002
        """The block in which a message is handled."""
        return nullcontext


class ShimmedSubscriber(ConsumingSubscriber):
    """With the library: each message brings the lineage of its headers."""

    def scope(self, properties: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401
        """The block in which a message is handled, with its lineage."""
        from antipode_shims import rabbitmq

        return partial(rabbitmq.message, properties)


def publisher(spec: Spec, *, library: bool) -> Publisher:
    """See `open_publisher`."""
    return ShimmedPublisher(spec) if library else ConfirmedPublisher(spec)


def subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """See `open_subscriber`."""
    return ShimmedSubscriber(spec) if library else ConsumingSubscriber(spec)
