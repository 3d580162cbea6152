"""One call that publishes and one that receives, plain or instrumented, by client."""

from __future__ import annotations

import threading
from itertools import count
from queue import Queue
from typing import TYPE_CHECKING, Any, Protocol

from antipode_shims import activemq, rabbitmq, sns

from ._aws import boto3_client
from ._clients import VALUE

if TYPE_CHECKING:
    from ._clients import Server

DATASTORE = "notifications"
#: As SNS wants it.
_TEXT = VALUE.decode()
_WAIT_S = 10
#: Of queues: each client has its own, so that it receives what it published.
_names = (f"overhead-{number}" for number in count())


class Broker(Protocol):
    """A publisher and a consumer of one queue."""

    def publish(self, number: int) -> None:
        """Publish a message, and have it acknowledged."""
        ...

    def receive(self, number: int) -> None:
        """Take the next message, and begin and end what handles it."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class MakeBroker(Protocol):
    """A kind of client."""

    def __call__(self, server: Server, *, instrumented: bool) -> Broker:
        """Connect one to *server*, with the library around it if *instrumented*."""
        ...


class PikaClient:
    """pika's blocking channel: ``basic_publish`` with a confirm, and ``basic_get``."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        import pika

        where = {"host": server.address.host, "port": server.address.port}
        account = pika.PlainCredentials(server.user or "guest", server.password or "guest")
        self._connection: Any = pika.BlockingConnection(
            pika.ConnectionParameters(**where, credentials=account, heartbeat=0)
        )
        self._channel: Any = self._connection.channel()
        self._queue: str = self._channel.queue_declare("", exclusive=True).method.queue
        self._channel.confirm_delivery()
        self._instrumented = instrumented
        if instrumented:
            rabbitmq.instrument_channel(self._channel, datastore=DATASTORE)

    def publish(self, number: int) -> None:
        del number
        self._channel.basic_publish("", self._queue, VALUE)

    def receive(self, number: int) -> None:
        del number
        _, properties, _ = self._channel.basic_get(self._queue, auto_ack=True)
        if self._instrumented:
            with rabbitmq.message(properties):
                pass

    def close(self) -> None:
        self._connection.close()


class StompClient:
    """stomp.py: a persistent ``SEND`` with a receipt, and the next ``MESSAGE``."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        import stomp

        self._queue = f"/queue/{next(_names)}"
        self._messages: Queue[Any] = Queue()
        self._receipt = threading.Event()
        self._connection: Any = stomp.Connection12([tuple(server.address)])
        self._connection.set_listener("", self)
        self._connection.connect(wait=True)
        self._connection.subscribe(self._queue, id="1", ack="auto")
        self._instrumented = instrumented
        if instrumented:
            activemq.instrument_connection(self._connection, datastore=DATASTORE)

    def on_receipt(self, frame: Any) -> None:  # noqa: ANN401 - stomp.py has no annotations
        del frame
        self._receipt.set()

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        self._messages.put(frame)

    def publish(self, number: int) -> None:
        self._receipt.clear()
        headers = {"persistent": "true", "receipt": f"{number}"}
        self._connection.send(self._queue, VALUE, headers=headers)
        if not self._receipt.wait(_WAIT_S):
            msg = "no receipt came"
            raise TimeoutError(msg)

    def receive(self, number: int) -> None:
        del number
        frame = self._messages.get(timeout=_WAIT_S)
        if self._instrumented:
            with activemq.message(frame, datastore=DATASTORE):
                pass

    def close(self) -> None:
        self._connection.disconnect()


class SNSClient:
    """boto3: ``Publish`` to a topic of SNS, ``ReceiveMessage`` and ``DeleteMessage`` of SQS."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        self._sns, self._sqs = (boto3_client(service, server) for service in ("sns", "sqs"))
        name = next(_names)
        self._queue = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        asked = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])
        self._topic = self._sns.create_topic(Name=name)["TopicArn"]
        self._sns.subscribe(
            TopicArn=self._topic,
            Protocol="sqs",
            Endpoint=asked["Attributes"]["QueueArn"],
            Attributes={"RawMessageDelivery": "true"},
        )
        self._instrumented = instrumented
        if instrumented:
            for client in (self._sns, self._sqs):
                sns.instrument_client(client, datastore=DATASTORE)

    def publish(self, number: int) -> None:
        del number
        self._sns.publish(TopicArn=self._topic, Message=_TEXT)

    def receive(self, number: int) -> None:
        del number
        told = self._sqs.receive_message(QueueUrl=self._queue, WaitTimeSeconds=_WAIT_S)
        (message,) = told["Messages"]
        if self._instrumented:
            with sns.message(message, datastore=DATASTORE):
                pass
        receipt = message["ReceiptHandle"]
        self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=receipt)

    def close(self) -> None:
        for client in (self._sns, self._sqs):
            sns.uninstrument_client(client)
            client.close()
