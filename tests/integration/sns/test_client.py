"""Instrumented clients of SNS and SQS: what messages carry, what their consumers see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import antipode
from antipode import Lineage
from antipode.shim import Incomplete
from antipode.telemetry import Metric, metrics
from antipode_shims import sns
from tests.integration.sns._regions import CAUSES, ELSEWHERE, NEWS, Regions, attributes, received

if TYPE_CHECKING:
    from antipode_testing import SNSTopology

pytestmark = pytest.mark.store("sns")


def lineage_of(message: Any) -> Lineage:
    """What the handler of a message depends on."""
    with sns.message(message, datastore=NEWS) as scope:
        return scope.lineage


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_a_message_carries_its_lineage(regions: Regions, topic: Any, batch: bool) -> None:  # noqa: FBT001 - a parameter
    """Its consumer depends on what its publisher did, and sees no attribute of ours."""
    publisher, consumer = regions.instrumented("sns"), regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        if batch:
            entry = {"Id": "1", "Message": "hello", "MessageAttributes": attributes(1)}
            publisher.publish_batch(TopicArn=topic.arn, PublishBatchRequestEntries=[entry])
        else:
            given = attributes(1)
            publisher.publish(TopicArn=topic.arn, Message="hello", MessageAttributes=given)
            assert given == attributes(1)
    message = received(consumer, topic.queue)
    assert message["Body"] == "hello"
    assert "MessageAttributes" not in message
    assert lineage_of(message) == CAUSES


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_a_queue_without_a_topic(regions: Regions, topic: Any, batch: bool) -> None:  # noqa: FBT001 - a parameter
    """What is sent to a queue carries it, too."""
    client = regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        if batch:
            entries = [{"Id": "1", "MessageBody": "hello"}]
            client.send_message_batch(QueueUrl=topic.queue, Entries=entries)
        else:
            client.send_message(QueueUrl=topic.queue, MessageBody="hello")
    assert lineage_of(received(client, topic.queue)) == CAUSES


def test_a_wrapped_message(regions: Regions, antipode_sns: SNSTopology) -> None:
    """In the envelope of SNS the lineage is in the body, and stays there."""
    topic = antipode_sns.create_topic("wrapped", raw=False)
    publisher, consumer = regions.instrumented("sns"), regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        publisher.publish(TopicArn=topic.arn, Message="hello")
    message = received(consumer, topic.queue)
    assert json.loads(message["Body"])["Message"] == "hello"
    assert lineage_of(message) == CAUSES


@pytest.mark.parametrize("asked", [["All"], ["a0"], ["a.*", "antipode"]], ids=str)
def test_asked_attributes_are_shown(regions: Regions, topic: Any, asked: list[str]) -> None:
    """The application's attributes are shown as it asks for them, ours where it names it."""
    client = regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        client.send_message(
            QueueUrl=topic.queue, MessageBody="hello", MessageAttributes=attributes(1)
        )
    asking = {"MessageAttributeNames": asked, "VisibilityTimeout": 0}
    plain = set(received(regions.plain("sqs"), topic.queue, **asking)["MessageAttributes"])
    assert "a0" in plain or "a.*" in asked  # Not every emulator knows patterns.
    message = received(client, topic.queue, **asking)
    ours = {"antipode"}.difference(asked)
    assert set(message["MessageAttributes"]) == plain - ours
    assert lineage_of(message) == CAUSES


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_checksums_are_of_the_applications_attributes(
    regions: Regions, topic: Any, *, batch: bool, number: int
) -> None:
    """Who verifies them finds what a plain client gets, of what is sent and of what comes."""
    binary = {"b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}} if number else {}
    given = {"MessageBody": "hello", "MessageAttributes": {**attributes(number), **binary}}
    found = []
    with antipode.scope(CAUSES):
        for client in (regions.plain("sqs"), regions.instrumented("sqs")):
            if batch:
                entries = [{"Id": "1", **given}]
                told = client.send_message_batch(QueueUrl=topic.queue, Entries=entries)
                (sent,) = told["Successful"]
            else:
                sent = client.send_message(QueueUrl=topic.queue, **given)
            message = received(client, topic.queue, MessageAttributeNames=["All"])
            found += [each.get("MD5OfMessageAttributes") for each in (sent, message)]
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert bool(found[2]) == bool(number)


def test_ten_attributes_leave_no_room(regions: Regions, topic: Any) -> None:
    """With ten of the application's ours stays out, and the request is marked."""
    client = regions.instrumented("sqs")
    before = metrics().get(Metric("baggage_dropped", NEWS), 0)
    with antipode.scope(CAUSES) as scope:
        client.send_message(
            QueueUrl=topic.queue, MessageBody="nine", MessageAttributes=attributes(9)
        )
        assert not scope.lineage.incomplete
        client.send_message(
            QueueUrl=topic.queue, MessageBody="ten", MessageAttributes=attributes(10)
        )
        assert Incomplete(NEWS, "size") in scope.lineage.incomplete
    assert metrics()[Metric("baggage_dropped", NEWS)] == before + 1
    found = [received(client, topic.queue, MessageAttributeNames=["All"]) for _ in range(2)]
    shown = {each["Body"]: each for each in found}
    assert set(shown["ten"]["MessageAttributes"]) == set(attributes(10))
    assert lineage_of(shown["nine"]) == CAUSES
    assert lineage_of(shown["ten"]).empty


def test_a_full_message_leaves_no_room(regions: Regions, topic: Any) -> None:
    """What makes a message or a batch too large stays out: they have one size together."""
    client = regions.instrumented("sqs")
    full = {"Id": "full", "MessageBody": "x" * 262_120}
    with antipode.scope(CAUSES) as scope:
        params = {"QueueUrl": topic.queue, "Entries": [full, {"Id": "b", "MessageBody": "y"}]}
        sent: list[Any] = []

        def note(params: dict[str, Any], **_: Any) -> None:
            sent.extend("MessageAttributes" in each for each in params["Entries"])

        client.meta.events.register_last("before-parameter-build", note)
        client.send_message_batch(**params)
        assert Incomplete(NEWS, "size") in scope.lineage.incomplete
    assert sent == [False, False]


def test_a_redelivered_message_carries_the_same(regions: Regions, topic: Any) -> None:
    """A message that comes again carries what it carried."""
    client = regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        client.send_message(QueueUrl=topic.queue, MessageBody="hello")
    first = received(client, topic.queue, VisibilityTimeout=0)
    again = received(client, topic.queue, VisibilityTimeout=0)
    assert first["MessageId"] == again["MessageId"]
    assert lineage_of(again) == CAUSES


def queue_of(client: Any, name: str, **attributes: str) -> str:
    """The URL of a new queue of the second region."""
    url: str = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def test_a_dead_letter_carries_the_same(regions: Regions) -> None:
    """A message that nobody deleted goes to the queue of dead letters with its lineage."""
    client = regions.instrumented("sqs")
    dead = queue_of(client, "dead")
    asked = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": asked["Attributes"]["QueueArn"], "maxReceiveCount": "1"}
    queue = queue_of(client, "alive", RedrivePolicy=json.dumps(policy))
    with antipode.scope(CAUSES):
        client.send_message(QueueUrl=queue, MessageBody="hello")
    assert lineage_of(received(client, queue, VisibilityTimeout=0)) == CAUSES
    assert not client.receive_message(QueueUrl=queue).get("Messages")
    assert lineage_of(received(client, dead)) == CAUSES


def test_fifo_queues(regions: Regions) -> None:
    """Messages keep their order and lineages; a duplicate by content is the first message."""
    client = regions.instrumented("sqs")
    given = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    queue = queue_of(client, "ordered.fifo", **given)
    other = Lineage([antipode.WriteId("other", "log", 8, 490_000)])
    for body, causes in (("1", CAUSES), ("2", other), ("1", other)):
        with antipode.scope(causes) as scope:
            client.send_message(QueueUrl=queue, MessageBody=body, MessageGroupId="g")
            assert not scope.lineage.incomplete
    found = []
    while len(found) < 2:
        message = received(client, queue)
        client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        found.append((message["Body"], lineage_of(message)))
    assert found == [("1", CAUSES), ("2", other)]
    assert not client.receive_message(QueueUrl=queue).get("Messages")


def test_a_message_that_is_sent_on_keeps_its_causes(regions: Regions, topic: Any) -> None:
    """Copied attributes are merged with what the request that copies them depends on."""
    client = regions.instrumented("sqs")
    with antipode.scope(CAUSES):
        client.send_message(QueueUrl=topic.queue, MessageBody="hello")
    came = received(client, topic.queue, MessageAttributeNames=["antipode"])
    other = antipode.WriteId("other", "log", 8, 490_000)
    with antipode.scope(Lineage([other])):
        client.send_message(
            QueueUrl=topic.queue,
            MessageBody="on",
            MessageAttributes={
                name: {"DataType": held["DataType"], "StringValue": held["StringValue"]}
                for name, held in came["MessageAttributes"].items()
            },
        )
    client.delete_message(QueueUrl=topic.queue, ReceiptHandle=came["ReceiptHandle"])
    assert set(lineage_of(received(client, topic.queue))) == {ELSEWHERE, other}


def test_resources(regions: Regions, topic: Any) -> None:
    """Topics and queues of boto3's resources, and the messages that these hand out."""
    topics = boto3.resource("sns", **regions.options("sns"))
    queues = boto3.resource("sqs", **regions.options("sqs"))
    for resource in (topics, queues):
        sns.instrument_client(resource, datastore=NEWS)
    with antipode.scope(CAUSES):
        topics.Topic(topic.arn).publish(Message="hello")
    (message,) = queues.Queue(topic.queue).receive_messages(WaitTimeSeconds=10)
    assert message.body == "hello"
    assert lineage_of(message) == CAUSES
    for resource in (topics, queues):
        sns.uninstrument_client(resource)
        resource.meta.client.close()


@pytest.mark.parametrize("text", ["nonsense", "1~", "", "\u00fc"])
def test_damaged_lineages_are_marked(regions: Regions, topic: Any, text: str) -> None:
    """What is no lineage marks the request of its consumer; it never becomes an empty one."""
    held = {"DataType": "String", "StringValue": text or "x"}
    if not text:
        held = {"DataType": "Binary", "BinaryValue": b"\x00"}  # type: ignore[dict-item]
    regions.plain("sqs").send_message(
        QueueUrl=topic.queue, MessageBody="hello", MessageAttributes={"antipode": held}
    )
    message = received(regions.instrumented("sqs"), topic.queue)
    assert message["Body"] == "hello"
    assert Incomplete(NEWS, "unreadable") in lineage_of(message).incomplete


def test_messages_of_others_start_an_empty_request(regions: Regions, topic: Any) -> None:
    """A message without a lineage, and one that a plain client received, are handled."""
    regions.plain("sqs").send_message(QueueUrl=topic.queue, MessageBody="hello")
    message = received(regions.instrumented("sqs"), topic.queue)
    assert lineage_of(message).empty
    with pytest.raises(TypeError, match="is no message"):
        lineage_of(None)


def test_lambda_handlers() -> None:
    """A handler runs in the scope of all records of its event, of a topic or of a queue."""
    text = antipode.serialize(CAUSES)
    of_topic = {"Sns": {"Message": "a", "MessageAttributes": {"antipode": {"Value": text}}}}
    of_queue = {"body": "b", "messageAttributes": {"antipode": {"stringValue": text}}}
    seen = []

    @sns.lambda_handler(datastore=NEWS)
    def handler(event: Any, context: Any) -> str:
        seen.append((antipode.current(), context))
        return str(len(event.get("Records", ())))

    assert handler({"Records": [of_topic, of_queue, {"body": "plain"}]}, "context") == "3"
    assert handler({}, None) == "0"
    assert seen == [(CAUSES, "context"), (Lineage(), None)]


def test_publishing_outside_of_a_scope_is_counted(regions: Regions, topic: Any) -> None:
    """The message goes, without causes, and is counted."""
    before = metrics().get(Metric("unscoped_write", NEWS), 0)
    regions.instrumented("sns").publish(TopicArn=topic.arn, Message="hello")
    assert metrics()[Metric("unscoped_write", NEWS)] == before + 1
    assert lineage_of(received(regions.instrumented("sqs"), topic.queue)).empty


def test_table2(regions: Regions, topic: Any) -> None:
    """``write`` publishes with the lineage, ``read`` takes the next message and merges it."""
    topology = regions.topology
    topology.set_lag(50)
    with (
        sns.shim(NEWS, regions.plain("sns"), topic=topic.arn) as writer,
        sns.shim(NEWS, regions.plain("sqs"), queue=topic.queue) as reader,
    ):
        assert writer.write("subject", "hello", CAUSES) == CAUSES
        with antipode.scope() as scope:
            delivery = reader.read(wait_s=10)
            assert delivery is not None
            assert (delivery.value, delivery.lineage) == ("hello", CAUSES)
            assert scope.lineage == CAUSES
            reader.delete(delivery)
        assert reader.read() is None


def test_a_barrier_lets_messages_pass(regions: Regions, topic: Any) -> None:
    """Nobody can wait for a message: a publication is no dependency of its request."""
    publisher = regions.instrumented("sns")
    with antipode.scope() as scope:
        publisher.publish(TopicArn=topic.arn, Message="hello")
        assert scope.lineage.empty
        assert antipode.barrier(timeout=1).ok


def test_a_partition_is_waited_out(regions: Regions, topic: Any) -> None:
    """What is published while the regions are cut comes after healing, and nothing is lost."""
    publisher, consumer = regions.instrumented("sns"), regions.instrumented("sqs")
    regions.topology.cut()
    with antipode.scope(CAUSES):
        publisher.publish(TopicArn=topic.arn, Message="hello")
    assert not consumer.receive_message(QueueUrl=topic.queue).get("Messages")
    regions.topology.heal()
    assert lineage_of(received(consumer, topic.queue)) == CAUSES


def test_wrong_clients_are_refused(regions: Regions) -> None:
    """What is no client of SNS or SQS is refused, and so is a second name."""
    other = boto3.client("dynamodb", **regions.options("sns"))
    with pytest.raises(antipode.ConfigurationError, match="not a client of dynamodb"):
        sns.instrument_client(other, datastore=NEWS)
    client = regions.instrumented("sqs")
    assert sns.instrument_client(client, datastore=NEWS) is client
    with pytest.raises(antipode.ConfigurationError, match="instrumented as 'news' already"):
        sns.instrument_client(client, datastore="other")
    with pytest.raises(antipode.ConfigurationError, match="name the topic"):
        sns.shim(NEWS, client)
