"""Events of S3, over emulators: direct, and in messages of SQS and SNS."""

from __future__ import annotations

import json
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import boto3
import pytest

import antipode
from antipode import Lineage, Status
from antipode_shims import s3, sns
from antipode_testing import S3Topology
from tests.integration.s3._regions import POSTS, Regions, written

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("s3")

BUCKET = "notes"


class Notifying(S3Topology):
    """Two regions, the first of which has queues and topics, too."""

    services: ClassVar[str] = "s3,sns,sqs"


class Notified(Regions):
    """A bucket that tells a queue, and a topic that tells a queue, of its objects."""

    def __init__(self, topology: S3Topology, stack: ExitStack) -> None:
        super().__init__(topology, stack)
        self.sqs = boto3.client("sqs", **self.options(self.home))
        stack.callback(self.sqs.close)
        self.plain = self.client(self.home)
        self.here = self.reader()
        self.key = f"a b/{uuid.uuid4().hex}+1%=ü"

    def queue(self) -> tuple[str, str]:
        """A new queue: its URL and its ARN."""
        url = self.sqs.create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"]
        told = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return url, told["Attributes"]["QueueArn"]

    def told(self, queue: str) -> dict[str, Any]:
        """The next message of *queue*."""
        (message,) = self.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
        self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        found: dict[str, Any] = message
        return found

    def notify(self, **to: Any) -> None:
        """Let the bucket tell *to* of what is written and deleted."""
        (kind, arn), events = to.popitem(), ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
        configured = {f"{kind}Configurations": [{f"{kind}Arn": arn, "Events": events}]}
        self.plain.put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration=configured
        )

    def body(self) -> bytes:
        """What the other region shows."""
        return bytes(self.here.get_object(Bucket=BUCKET, Key=self.key)["Body"].read())


@pytest.fixture(scope="module")
def notifying() -> Iterator[Notifying]:
    """Two regions."""
    with Notifying() as topology:
        topology.create_bucket(BUCKET)
        yield topology


@pytest.fixture
def notified(notifying: Notifying) -> Iterator[Notified]:
    """Clients of these, which end with the test."""
    with ExitStack() as stack:
        yield Notified(notifying, stack)
        notifying.resume()


@pytest.mark.slow
def test_who_handles_an_event_reads_in_its_region_what_it_reports(notified: Notified) -> None:
    """By what S3 put into the queue, for a consumer of it and for Lambda; without, it is stale."""
    url, arn = notified.queue()
    notified.notify(Queue=arn)
    test = notified.told(url)
    with sns.message(test, datastore="jobs"):
        assert antipode.current() == Lineage()
    notified.topology.pause()
    version = notified.plain.put_object(Bucket=BUCKET, Key=notified.key, Body=b"new")["VersionId"]
    message = notified.told(url)
    event = json.loads(message["Body"])
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        with pytest.raises(notified.here.exceptions.NoSuchKey):
            notified.body()
    (write,) = lineage = s3.lineage(POSTS, event)
    assert (write.version, write.covering) == (version, False)
    assert not antipode.check(lineage)
    seen: list[Lineage] = []

    @sns.lambda_handler(datastore="jobs")
    def handler(event: Any) -> None:
        del event
        seen.append(antipode.current())

    handler(event)
    handler({"Records": [{"eventSource": "aws:sqs", "body": message["Body"]}]})
    assert seen == [lineage, lineage]
    with sns.message(message, datastore="jobs"):
        assert antipode.current() == lineage
        notified.topology.resume()
        antipode.barrier(timeout=10)
        assert notified.body() == b"new"
    notified.plain.delete_object(Bucket=BUCKET, Key=notified.key)
    with sns.shim("jobs", notified.sqs, queue=url) as reader, antipode.scope():
        delivery = reader.read(wait_s=10)
        assert delivery is not None
        assert antipode.current() == s3.lineage(POSTS, json.loads(delivery.value))
        assert len(antipode.current()) == 1


def test_an_event_that_a_topic_delivers_is_taken_for_what_it_is(notified: Notified) -> None:
    """In the envelope of SNS, in a queue and in Lambda: a delete marker, too."""
    client = boto3.client("sns", **notified.options(notified.home))
    topic = client.create_topic(Name=uuid.uuid4().hex)["TopicArn"]
    url, arn = notified.queue()
    client.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    notified.notify(Topic=topic)
    notified.told(url)  # The test.
    writer = notified.instrumented(notified.plain)
    with antipode.scope():
        writer.put_object(Bucket=BUCKET, Key=notified.key, Body=b"old")
        put = written()[notified.key]
    message = notified.told(url)
    with sns.message(message, datastore="jobs"):
        assert antipode.current() == Lineage([put])
        antipode.barrier(timeout=10)
        assert notified.body() == b"old"
    with antipode.scope():
        writer.delete_object(Bucket=BUCKET, Key=notified.key)
        deleted = written()[notified.key]
    message = notified.told(url)
    published = json.loads(message["Body"])["Message"]
    seen: list[Lineage] = []
    handle = sns.lambda_handler(datastore="jobs")(lambda event: seen.append(antipode.current()))
    handle({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": published}}]})
    assert seen == [Lineage([deleted])]
    antipode.barrier(seen[0], timeout=10)
    with pytest.raises(notified.here.exceptions.NoSuchKey):
        notified.body()
    client.close()


def test_an_event_of_another_bucket_or_account_is_refused(notified: Notified) -> None:
    """What no bucket here has: the barrier says so, and never passes.

    A version that is gone passes once the reader shows what its bucket shows: as if overwritten.
    """
    url, arn = notified.queue()
    notified.notify(Queue=arn)
    notified.told(url)
    notified.plain.put_object(Bucket=BUCKET, Key=notified.key, Body=b"new")
    event = json.loads(notified.told(url)["Body"])
    held = event["Records"][0]["s3"]
    held["object"]["versionId"] = "forged"
    result = antipode.barrier(s3.lineage(POSTS, event), timeout=10)
    assert [each.status for each in result.outcomes] == [Status.SUPERSEDED]
    assert notified.body() == b"new"
    held["object"]["key"] = "forged"
    with pytest.raises(antipode.DependencyLost):
        antipode.barrier(s3.lineage(POSTS, event), timeout=10)
    held["bucket"]["name"] = "of-another-account"
    with pytest.raises(antipode.UnmetError) as unmet:
        antipode.barrier(s3.lineage(POSTS, event), timeout=2)
    assert [each.status for each in unmet.value.result.outcomes] == [Status.UNKNOWN_LOG]
