"""Table 2 over SNS and SQS: messages with what they depend on; and their registration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import ConfigurationError, Lineage, current
from antipode.shim import OnRead, Shim, Unreachable, record_read, register, stored_text
from antipode_shims._aws import client_of, is_async

from ._clients.events import event_in, lineage_of_event
from ._format import MOST_BYTES, NAME, labelled, lineage_of, size_of, text_of

if TYPE_CHECKING:
    from antipode.shim import Endpoint


class Delivery(NamedTuple):
    """One received message.

    Attributes:
        value: its body; of one that SNS wrapped, the envelope.
        lineage: what it depends on.
        receipt: the handle by which it is deleted.
    """

    value: str
    lineage: Lineage
    receipt: str


class SNSShim(Shim):
    """Topics and queues under one name. Nobody can wait for their messages."""

    waitable = False
    can_poll = False

    def __init__(
        self,
        datastore: str,
        client: Any = None,
        *,
        topic: str = "",
        queue: str = "",
        on_read: OnRead = "merge",
    ) -> None:
        """As :func:`shim`, without registering."""
        super().__init__(datastore)
        self._client, self._topic, self._queue = client, topic, queue
        self._merges = on_read == "merge"

    def write(self, key: str, value: str, lineage: Lineage | None = None) -> Lineage:
        """Publish *value* with the lineage; nobody can wait for the message itself.

        Args:
            key: the message's subject.
            value: its body.
            lineage: what it depends on; default the current lineage.

        Returns:
            That lineage: the message is no dependency.

        Raises:
            ValueError: the message is so large that its lineage has no room.
            botocore.exceptions.ClientError: as boto3 does.
        """
        base = current() if lineage is None else lineage
        plain = {"Message": value, "Subject": key}
        room = MOST_BYTES - size_of(plain, "Message")
        request = labelled(plain, stored_text(base), room=room)
        if request is None:
            msg = f"a message of {len(value)} characters has no room for its lineage"
            raise ValueError(msg)
        self._client.publish(TopicArn=self._topic, **request)
        return base

    def read(self, *, wait_s: int = 0) -> Delivery | None:
        """The next message of the queue, which :meth:`delete` removes; None without one.

        Args:
            wait_s: seconds for which to wait for one, at most 20.

        Raises:
            botocore.exceptions.ClientError: as boto3 does.
        """
        told = self._client.receive_message(
            QueueUrl=self._queue, WaitTimeSeconds=wait_s, MessageAttributeNames=[NAME]
        )
        for each in told.get("Messages", ()):
            lineage = self._lineage_of(each)
            if self._merges:
                record_read(lineage)
            return Delivery(each["Body"], lineage, each["ReceiptHandle"])
        return None

    def _lineage_of(self, message: dict[str, Any]) -> Lineage:
        """What *message* depends on, by its label or as an event of S3."""
        if (text := text_of(message)) is None and (event := event_in(message)) is not None:
            found = lineage_of_event(event, datastore=self.datastore, events=None)
            return Lineage() if found is None else found
        return lineage_of(text, self.datastore)

    def delete(self, delivery: Delivery) -> None:
        """Remove a message that was handled.

        Raises:
            botocore.exceptions.ClientError: as boto3 does.
        """
        self._client.delete_message(QueueUrl=self._queue, ReceiptHandle=delivery.receipt)

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Nothing can be looked at.

        Raises:
            Unreachable: always.
        """
        del timeout_s
        raise Unreachable("messages of SNS and SQS cannot be waited for")


def shim(
    datastore: str,
    client: Any,
    *,
    topic: str = "",
    queue: str = "",
    on_read: OnRead = "merge",
) -> SNSShim:
    """Register Table 2's ``write`` to a topic, or ``read`` from a queue.

    Args:
        datastore: the name that every service spells alike.
        client: a client of boto3, of SNS with *topic* or of SQS with *queue*.
        topic: the ARN of the topic that is written to.
        queue: the URL of the queue that is read from.
        on_read: ``merge`` adds what a message depends on to the current scope; ``ignore`` does not.

    Raises:
        ConfigurationError: another client, an asyncio one, or both of *topic* and *queue*, or none.
    """
    service = "sns" if topic else "sqs"
    if bool(topic) == bool(queue):
        msg = "name the topic that is written to, or the queue that is read from"
        raise ConfigurationError(msg)
    plain = client_of(client, (service,), f"a client of boto3 for {service.upper()}")
    if is_async(plain):
        msg = "sns.shim() got an asyncio client: instrument it, and use sns.message()"
        raise ConfigurationError(msg)
    made = SNSShim(datastore, plain, topic=topic, queue=queue, on_read=on_read)
    register(made)
    return made
