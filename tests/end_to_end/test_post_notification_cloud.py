"""The paper's first application over DynamoDB and SNS, on emulators, not on AWS.

A post is written in one region, and a notification of it, which comes first, leads a reader of the
other region to it.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import antipode
from antipode_shims import dynamodb, sns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import DynamoDBTopology, SNSTopology

pytestmark = [pytest.mark.store("dynamodb"), pytest.mark.store("sns")]

REQUESTS = 300
READERS = 8
LAG_MS = 200.0
TIMEOUT_S = 60.0


class Application:
    """Its clients in both regions, all instrumented, and the topic of notifications."""

    def __init__(self, storage: DynamoDBTopology, notifier: SNSTopology, stack: ExitStack) -> None:
        self.storage = storage
        self.topic = notifier.create_topic(f"posts-{uuid.uuid4().hex}")
        self._stack = stack
        urls = dict(zip(storage.regions, storage.urls, strict=True))
        self.posts, self.near = (
            dynamodb.instrument_client(
                self._client("dynamodb", storage, at),
                datastore="posts",
                reads_from=role,
                regions=urls,
            )
            for at, role in enumerate(("primary", "replica"))
        )
        self.publisher, self.consumer = (
            sns.instrument_client(self._client(service, notifier, at), datastore="notifications")
            for at, service in enumerate(("sns", "sqs"))
        )
        for client in (self.posts, self.near):
            stack.callback(dynamodb.uninstrument_client, client)
        for client in (self.publisher, self.consumer):
            stack.callback(sns.uninstrument_client, client)

    def _client(self, service: str, topology: Any, at: int) -> Any:
        client = boto3.client(
            service,
            region_name=topology.regions[at],
            endpoint_url=topology.urls[at],
            **topology.credentials,
        )
        self._stack.callback(client.close)
        return client

    def post(self, post: str) -> None:
        """One request of the first region."""
        with antipode.scope():
            item = {"id": {"S": post}, "text": {"S": "hello"}}
            self.posts.put_item(TableName="posts", Item=item)
            self.publisher.publish(TopicArn=self.topic.arn, Message=post)

    def notified(self) -> Iterator[Any]:
        """The notifications in the second region, one for each post."""
        seen: set[str] = set()
        while len(seen) < REQUESTS:
            told = self.consumer.receive_message(
                QueueUrl=self.topic.queue, WaitTimeSeconds=5, MaxNumberOfMessages=10
            )
            for message in told.get("Messages", ()):
                self.consumer.delete_message(
                    QueueUrl=self.topic.queue, ReceiptHandle=message["ReceiptHandle"]
                )
                if message["Body"] not in seen:
                    seen.add(message["Body"])
                    yield message

    def read(self, message: Any, *, waits: bool) -> bool:
        """Handle a notification; whether its post is there."""
        with sns.message(message, datastore="notifications"):
            if waits:
                antipode.barrier(timeout=TIMEOUT_S)
            told = self.near.get_item(TableName="posts", Key={"id": {"S": message["Body"]}})
        return "Item" in told

    def wrong(self, *, waits: bool) -> int:
        """How many of the notifications led to nothing."""
        run = uuid.uuid4().hex
        posts = [f"{run}-{number}" for number in range(REQUESTS)]
        with ThreadPoolExecutor(1) as writer, ThreadPoolExecutor(READERS) as readers:
            writing = writer.submit(lambda: [self.post(each) for each in posts])
            reading = [readers.submit(self.read, each, waits=waits) for each in self.notified()]
            writing.result(TIMEOUT_S)
            return sum(not each.result(TIMEOUT_S) for each in reading)


@pytest.fixture
def application(
    antipode_dynamodb: DynamoDBTopology, antipode_sns: SNSTopology
) -> Iterator[Application]:
    """Both stores, and clients that end with the test."""
    with ExitStack() as stack:
        yield Application(antipode_dynamodb, antipode_sns, stack)


@pytest.mark.slow
def test_without_a_barrier_each_notification_comes_too_early(application: Application) -> None:
    """While posts are on their way, every reader that does not wait finds nothing."""
    application.storage.pause()
    assert application.wrong(waits=False) == REQUESTS


@pytest.mark.slow
def test_with_a_barrier_none_does(application: Application) -> None:
    """With posts that come late, every reader that waits finds its post."""
    application.storage.set_lag(LAG_MS)
    assert application.wrong(waits=True) == 0
