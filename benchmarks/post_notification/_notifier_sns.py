"""Notifications by SNS and SQS: a topic in one region, its queue in the other; emulators."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _aws
from ._delivery import NOTIFICATIONS, Delivery

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ._delivery import Publisher, Subscriber
    from ._storage import Spec

#: Seconds that one request waits for messages, and how many it brings.
_WAIT_S, _MOST = 2, 10


class TopicPublisher:
    """Without the library: publishes to the topic."""

    def __init__(self, spec: Spec) -> None:
        """Make a client of the writer's region."""
        self._topic = spec["topic"]
        self._client = _aws.client("sns", spec, "writer")

    def publish(self, body: bytes) -> None:
        """Publish a notification."""
        self._client.publish(TopicArn=self._topic, Message=body.decode())

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class ShimmedPublisher(TopicPublisher):
    """With the library: the current lineage goes into an attribute of each message."""

    def __init__(self, spec: Spec) -> None:
        """Make a client; instrumenting it is all it takes."""
        from antipode_shims import sns

        super().__init__(spec)
        sns.instrument_client(self._client, datastore=NOTIFICATIONS)


class QueueSubscriber:
    """Without the library: receives from the queue."""

    def __init__(self, spec: Spec) -> None:
        """Make a client of the reader's region."""
        self._queue = spec["queue"]
        self._client = _aws.client("sqs", spec, "reader")

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each message; it is handled in another thread, in a scope of its own."""
        while True:
            told = self._client.receive_message(
                QueueUrl=self._queue, WaitTimeSeconds=_WAIT_S, MaxNumberOfMessages=_MOST
            )
            for each in told.get("Messages", ()):
                body = each["Body"].encode()
                label = getattr(each, "antipode", None) or ""
                handle(Delivery(body, len(body) + len(label), self.scope(each)))
                self._client.delete_message(
                    QueueUrl=self._queue, ReceiptHandle=each["ReceiptHandle"]
                )

    def scope(self, message: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401, ARG002
        """The block in which a message is handled."""
        return nullcontext


class ShimmedSubscriber(QueueSubscriber):
    """With the library: each message brings the lineage of its attribute."""

    def __init__(self, spec: Spec) -> None:
        """Make a client, and instrument it."""
        from antipode_shims import sns

        super().__init__(spec)
        sns.instrument_client(self._client, datastore=NOTIFICATIONS)

    def scope(self, message: Any) -> Callable[[], AbstractContextManager[object]]:  # noqa: ANN401
        """The block in which a message is handled, with its lineage."""
        from antipode_shims import sns

        return partial(sns.message, message, datastore=NOTIFICATIONS)


def publisher(spec: Spec, *, library: bool) -> Publisher:
    """See `open_publisher`."""
    return ShimmedPublisher(spec) if library else TopicPublisher(spec)


def subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """See `open_subscriber`."""
    return ShimmedSubscriber(spec) if library else QueueSubscriber(spec)
