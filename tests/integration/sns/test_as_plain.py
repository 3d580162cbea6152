"""No reply, error or message differs from the plain one, but for attributes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

import antipode
from antipode_testing import wait_until
from tests.integration._played import MODES, played
from tests.integration.sns._regions import attributes

if TYPE_CHECKING:
    from tests.integration.sns._regions import Regions

pytestmark = pytest.mark.store("sns")
#: What of a reply is another each time.
VARYING = {"ResponseMetadata", "MessageId", "ReceiptHandle", "Id", "SequenceNumber"}
STEPS = (
    *("publish", "receive", "delete", "full", "receive", "delete", "batch", "receive", "delete"),
    *("receive", "delete", "send", "receive", "again", "receive", "delete", "invalid", "too long"),
    *("no topic", "several", "receive", "delete", "receive", "delete", "absent"),
)


class OnePair:
    """A client of SNS, and one of the queue that is subscribed."""

    def __init__(self, sns: Any, sqs: Any, topic: Any) -> None:
        self.sns, self.sqs, self.topic = sns, sqs, topic
        self.heard: list[str] = []
        self.received: list[dict[str, Any]] = []

    def execute(self, statement: str) -> Any:
        try:
            found = getattr(self, "do_" + statement.replace(" ", "_"))()
        except ClientError as error:
            code = error.response["Error"].get("Code")  # Each client makes its classes itself.
            return type(error).__name__, code, error.operation_name
        except ParamValidationError as error:
            return type(error), str(error)
        return {name: found[name] for name in found if name not in VARYING}

    def do_publish(self) -> Any:
        """One message."""
        return self.sns.publish(TopicArn=self.topic.arn, Message="a", Subject="s")

    def do_full(self) -> Any:
        """One with as many attributes as a queue delivers."""
        return self.sns.publish(
            TopicArn=self.topic.arn, Message="b", MessageAttributes=attributes(10)
        )

    def do_batch(self) -> Any:
        """Two at once."""
        entries = [{"Id": str(at), "Message": "c"} for at in range(2)]
        found = self.sns.publish_batch(TopicArn=self.topic.arn, PublishBatchRequestEntries=entries)
        return {"Ids": sorted(each["Id"] for each in found["Successful"])}

    def do_send(self) -> Any:
        """One to the queue itself."""
        return self.sqs.send_message(
            QueueUrl=self.topic.queue, MessageBody="d", MessageAttributes=attributes(1)
        )

    def do_several(self) -> Any:
        """Two to the queue itself."""
        entries = [{"Id": str(at), "MessageBody": "e"} for at in range(2)]
        found = self.sqs.send_message_batch(QueueUrl=self.topic.queue, Entries=entries)
        return {"Ids": sorted(each["Id"] for each in found["Successful"])}

    def do_receive(self) -> Any:
        """The next message, as the application reads it."""
        wait_until(self._comes, what="a message", timeout_s=20)
        (message,) = self.received
        own = message.get("MessageAttributes", {})
        return {
            "Body": message["Body"],
            "Own": {name: own[name] for name in own if name.startswith("a")},
        }

    def _comes(self) -> bool:
        found = self.sqs.receive_message(
            QueueUrl=self.topic.queue, WaitTimeSeconds=5, MessageAttributeNames=["a.*", "a0"]
        )
        self.received = list(found.get("Messages", ()))
        return bool(self.received)

    def do_delete(self) -> Any:
        """It was consumed."""
        (message,) = self.received
        return self.sqs.delete_message(
            QueueUrl=self.topic.queue, ReceiptHandle=message["ReceiptHandle"]
        )

    def do_again(self) -> Any:
        """It is to come again."""
        (message,) = self.received
        return self.sqs.change_message_visibility(
            QueueUrl=self.topic.queue,
            ReceiptHandle=message["ReceiptHandle"],
            VisibilityTimeout=0,
        )

    def do_invalid(self) -> Any:
        """The client refuses it."""
        return self.sns.publish(TopicArn=self.topic.arn, Message=1)

    def do_too_long(self) -> Any:
        """The service refuses it."""
        return self.sns.publish(TopicArn=self.topic.arn, Message="x" * 262_145)

    def do_no_topic(self) -> Any:
        """Nobody has this topic."""
        return self.sns.publish(TopicArn=self.topic.arn + "x", Message="f")

    def do_absent(self) -> Any:
        """Nobody has this queue."""
        return self.sqs.send_message(QueueUrl=self.topic.queue + "x", MessageBody="g")

    def state(self) -> Any:
        return None

    def close(self) -> None:
        self.sns.close()
        self.sqs.close()


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(
    regions: Regions, topic: Any, mode: Any, *, scoped: bool
) -> None:
    """Every step ends as it does without the library, and the same messages come."""
    antipode.configure(mode=mode)
    scripts = []
    for instrumented in (False, True):
        make = regions.instrumented if instrumented else regions.plain
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            session = OnePair(make("sns"), make("sqs"), topic)
            scripts.append(played(session, STEPS, lambda: None))
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
