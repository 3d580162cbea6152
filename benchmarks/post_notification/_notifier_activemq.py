"""Notifications by ActiveMQ: a queue that the writer's broker forwards to the reader's."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import stomp

from ._delivery import NOTIFICATIONS, Delivery

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ._delivery import Publisher, Subscriber
    from ._storage import Spec

_QUEUE = "/queue/notifications"
_RECEIPT_S = 10.0


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Knows which receipts came, and hands over messages."""

    def __init__(self) -> None:
        self.received: Callable[[Any], None] = lambda _: None
        self.receipts: dict[str, threading.Event] = {}

    def on_receipt(self, frame: Any) -> None:  # noqa: ANN401 - stomp.py has no annotations
        self.receipts.pop(frame.headers["receipt-id"]).set()

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        self.received(frame)


def _connect(place: Any) -> tuple[Any, _Listener]:  # noqa: ANN401
    connection = stomp.Connection12([tuple(place)], auto_content_length=False)
    listener = _Listener()
    connection.set_listener("", listener)
    connection.connect(wait=True)
    return connection, listener


class QueuePublisher:
    """Without the library: publishes with receipts."""

    def __init__(self, spec: Spec) -> None:
        """Connect to the writer region's broker."""
        self._connection, self._listener = _connect(spec["writer"])
        self._numbers = count()

    def publish(self, body: bytes) -> None:
        """Publish a notification; return when the broker has it."""
        receipt = f"notification-{next(self._numbers)}"
        came = self._listener.receipts[receipt] = threading.Event()
        self._connection.send(_QUEUE, body, headers={"persistent": "true", "receipt": receipt})
        if not came.wait(_RECEIPT_S):
            msg = "no receipt came"
            raise TimeoutError(msg)

    def close(self) -> None:
        """Close the connection."""
        self._connection.disconnect()


class ShimmedPublisher(QueuePublisher):
    """With the library: the current lineage goes into each message's headers."""

    def __init__(self, spec: Spec) -> None:
        """Connect; instrumenting the connection is all it takes."""
        from antipode_shims import activemq

        super().__init__(spec)
        activemq.instrument_connection(self._connection, datastore=NOTIFICATIONS)


class QueueSubscriber:
    """Without the library: consumes from the reader region's broker."""

    def __init__(self, spec: Spec) -> None:
        """Connect."""
        self._connection, self._listener = _connect(spec["reader"])

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each message; it is handled in another thread, in a scope of its own."""

        def received(frame: Any) -> None:  # noqa: ANN401
            body = frame.body.encode() if isinstance(frame.body, str) else bytes(frame.body)
            size = len(body) + sum(len(name) + len(value) for name, value in frame.headers.items())
            handle(Delivery(body, size, self.scope(frame)))

        self._listener.received = received
        self._connection.subscribe(_QUEUE, id="1", ack="auto")
        threading.Event().wait()

    def scope(self, frame: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401, ARG002
        """The block in which a message is handled."""
        return nullcontext


class ShimmedSubscriber(QueueSubscriber):
    """With the library: each message brings the lineage of its headers."""

    def scope(self, frame: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401
        """The block in which a message is handled, with its lineage."""
        from antipode_shims import activemq

        return partial(activemq.message, frame, datastore=NOTIFICATIONS)


def publisher(spec: Spec, *, library: bool) -> Publisher:
    """See `open_publisher`."""
    return ShimmedPublisher(spec) if library else QueuePublisher(spec)


def subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """See `open_subscriber`."""
    return ShimmedSubscriber(spec) if library else QueueSubscriber(spec)
