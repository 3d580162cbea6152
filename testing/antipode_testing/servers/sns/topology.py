"""Topics of SNS in one region, and their queues of SQS in another: emulators, and a courier."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import urlencode

from antipode import ConfigurationError
from antipode_testing._errors import ServerFailed
from antipode_testing.servers.aws_json import JsonApi, signed
from antipode_testing.servers.emulated import (
    AWAY,
    HOME,
    REPLICATION_TIMEOUT_S,
    EmulatedTopology,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._topology import Provider

REQUEST_TIMEOUT_S = 10.0
IDLE_S, BUSY_S, SLOWER = 0.05, 0.004, 1.1
JOIN_S = 10.0
#: What of an attribute a queue takes.
_FIELDS = ("DataType", "StringValue", "BinaryValue")


class Topic(NamedTuple):
    """A topic of the first region and its queue in the second.

    Attributes:
        arn: of the topic.
        queue: the URL of the queue.
    """

    arn: str
    queue: str


class SNSTopology(EmulatedTopology):
    """SNS in one region and SQS in another, on two emulators (ministack), not on AWS.

    ministack takes messages that SQS refuses. ElasticMQ, which may have the queues instead, does
    not: eleven attributes, empty values, 256 KB and more.

    What is published to a topic of ``us-east-1`` comes, raw, into the queue of the same name in
    ``eu-west-1``. Lag delays that alone. Nothing is lost by a partition; a message may come twice.

    Args:
        lag_ms: the lag to begin with, and to return to at `reset`.
        config: further environment variables of both emulators.
        provider: what runs the servers; None: this machine, for an emulator is a Python package.
        strict: whether ElasticMQ has the queues.

    Raises:
        ServerMissing: on `start`, if an emulator is not installed.
    """

    store: ClassVar[str] = "sns"
    services: ClassVar[str] = "sns,sqs"
    no_failover: ClassVar[str] = "topics of SNS have no second region to go to"

    _courier: Courier | None = None

    def __init__(
        self,
        *,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__(lag_ms=lag_ms, config=config, provider=provider)
        self._strict = strict

    def _begin(self) -> None:
        self._start_server(HOME)
        if self._strict:
            self._servers[AWAY] = self._provider.start("elasticmq", AWAY, self._config)
        else:
            self._start_server(AWAY)
        self._courier = Courier(JsonApi(self.primary, HOME), JsonApi(self.replica, AWAY))
        self._courier.start()

    def close(self) -> None:
        """Stop the courier and both emulators. Idempotent."""
        if self._courier is not None:
            self._courier.close()
            self._courier = None
        super().close()

    def _undisturbed(self) -> None:
        self._carries.undisturbed()

    def create_topic(self, name: str, *, raw: bool = True) -> Topic:
        """Create a topic, and its queue in the other region.

        Args:
            name: of both.
            raw: whether messages are delivered as they were sent, without the envelope of SNS.

        Raises:
            ServerFailed: an emulator refused it.
        """
        outbox, queue, arn = self._carries.create(name)
        topic = self._sns("CreateTopic", Name=name, of="TopicArn")
        attributes = {
            "Attributes.entry.1.key": "RawMessageDelivery",
            "Attributes.entry.1.value": str(raw).lower(),
        }
        asked = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": arn, **attributes}
        self._sns("Subscribe", of="SubscriptionArn", **asked)
        self._carries.carry(outbox, queue)
        return Topic(topic, queue)

    def set_lag(self, ms: float) -> None:
        """Delay what comes into the queues by this many milliseconds."""
        self._carries.lag_s = ms / 1000

    def pause(self) -> None:
        """Hold what is on its way."""
        self._carries.paused = True

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._carries.paused = False

    def cut(self) -> None:
        """Partition the regions: what is published waits for `heal`."""
        self._carries.is_cut = True

    def heal(self) -> None:
        """End the partition."""
        self._carries.is_cut = False

    def reseed(self) -> None:
        """Refused: queues are not copied.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("queues of SQS are not copied: there is nothing to copy anew")

    def _settled(self) -> bool:
        return self._carries.settled()

    def _sns(self, action: str, *, of: str, **given: str) -> str:
        """One value of the answer to a call of SNS, which speaks forms and XML."""
        connection = HTTPConnection(*self.primary, timeout=REQUEST_TIMEOUT_S)
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            **signed(HOME, "sns"),
        }
        try:
            body = urlencode({"Action": action, "Version": "2010-03-31", **given})
            connection.request("POST", "/", body, headers)
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        found = re.search(rf"<{of}>(.*?)</{of}>", text)
        if found is None:
            raise ServerFailed(f"ministack refused {action}: {text[:200]}")
        return found[1]

    @property
    def _carries(self) -> Courier:
        if self._courier is None:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._courier


class Courier:
    """Carries messages from queues of one region to those of the other, in a thread of its own.

    Attributes:
        lag_s: seconds by which each is late.
        paused: whether they are held.
        is_cut: whether the regions are partitioned, which holds them as well.
    """

    def __init__(self, home: JsonApi, away: JsonApi) -> None:
        self.lag_s = 0.0
        self.paused = self.is_cut = False
        self._home, self._away = home, away
        self._routes: dict[str, str] = {}
        self._held: deque[tuple[float, str, dict[str, Any]]] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sns-courier", daemon=True)

    def start(self) -> None:
        """Begin to carry."""
        self._thread.start()

    def undisturbed(self) -> None:
        """Carry at once, as at the beginning."""
        self.lag_s = 0.0
        self.paused = self.is_cut = False

    def create(self, name: str) -> tuple[str, str, str]:
        """The URLs of an outbox and of a queue of that name, and the ARN of the outbox."""
        with self._lock:
            outbox = self._home.call("CreateQueue", "sqs", QueueName=f"{name}-outbox")["QueueUrl"]
            queue = self._away.call("CreateQueue", "sqs", QueueName=name)["QueueUrl"]
            given = {"QueueUrl": outbox, "AttributeNames": ["QueueArn"]}
            about = self._home.call("GetQueueAttributes", "sqs", **given)
        return outbox, queue, about["Attributes"]["QueueArn"]

    def carry(self, outbox: str, queue: str) -> None:
        """Carry from *outbox* to *queue* from now on."""
        with self._lock:
            self._routes[outbox] = queue

    def settled(self) -> bool:
        """Whether nothing that was published before is on its way."""
        with self._lock:
            return not (self._step() or self._held)

    def close(self) -> None:
        """End the thread and its connections. Idempotent."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)
        self._home.close()
        self._away.close()

    def _run(self) -> None:
        pause_s = BUSY_S
        while not self._closing.wait(pause_s):
            try:
                with self._lock:
                    busy = self._step()
            except (ServerFailed, OSError):
                busy = False  # A server that was stopped: whoever stopped it builds both anew.
            pause_s = BUSY_S if busy else min(pause_s * SLOWER, IDLE_S)

    def _step(self) -> bool:
        """Take what was published, and deliver what is due; whether something is going on."""
        taken = [self._take(outbox) for outbox in self._routes]
        while self._held and not (self.paused or self.is_cut):
            at_s, outbox, message = self._held[0]
            if time.monotonic() < at_s + self.lag_s:
                break
            self._deliver(outbox, message)
            self._held.popleft()
        return any(taken) or bool(self._held)

    def _take(self, outbox: str) -> bool:
        told = self._home.call(
            "ReceiveMessage",
            "sqs",
            QueueUrl=outbox,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=int(REPLICATION_TIMEOUT_S) * 20,
        )
        messages = told.get("Messages") or []
        self._held.extend((time.monotonic(), outbox, each) for each in messages)
        return bool(messages)

    def _deliver(self, outbox: str, message: dict[str, Any]) -> None:
        attributes = {
            name: {field: held[field] for field in _FIELDS if field in held}
            for name, held in (message.get("MessageAttributes") or {}).items()
        }
        given = {"MessageBody": message["Body"], "MessageAttributes": attributes}
        self._away.call("SendMessage", "sqs", QueueUrl=self._routes[outbox], **given)
        receipt = message["ReceiptHandle"]
        self._home.call("DeleteMessage", "sqs", QueueUrl=outbox, ReceiptHandle=receipt)
