"""What no emulator can show: the shims of DynamoDB, S3 and SNS over an account of yours at AWS.

`ANTIPODE_AWS=1 .venv/bin/python -m pytest tests/integration/aws -s` makes tables, buckets, a topic
and a queue in two regions, whose names begin with `antipode-test-`, and removes them. It takes some
minutes, and prints what it sent and about what that costs. It has never been run by this project:
nobody here has an account. Credentials are found as boto3 finds them. S3 copies between buckets for
a role of yours alone: name it in `ANTIPODE_AWS_REPLICATION_ROLE`, or that test is skipped.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

import antipode
from antipode import Lineage, Status, WriteId
from antipode_shims import dynamodb, s3, sns
from antipode_shims.s3._format import MOST_BYTES, NAME
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        os.environ.get("ANTIPODE_AWS") != "1",
        reason="ANTIPODE_AWS=1 runs it over an account of yours, which costs money",
    ),
]

HOME, AWAY = "us-east-1", "eu-west-1"
TIMEOUT_S = 900.0
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
#: US dollars for a million requests, the dearest of each service, as published in 2025 for
#: us-east-1. A replicated write of DynamoDB counts twice.
PRICES = {"dynamodb": 1.25, "s3": 5.0, "sns": 0.5, "sqs": 0.4}


class Account:
    """Clients whose requests are counted, and what is removed in the end."""

    def __init__(self, stack: ExitStack) -> None:
        self.prefix = f"antipode-test-{uuid.uuid4().hex[:12]}"
        self.sent: Counter[str] = Counter()
        self.stack = stack

    def client(self, service: str, region: str) -> Any:
        """A plain client."""
        made = boto3.client(service, region_name=region)  # type: ignore[call-overload]
        made.meta.events.register("before-send", lambda **_: self.sent.update([service]))
        self.stack.callback(made.close)
        return made

    def instrumented(self, shims: Any, service: str, region: str, **options: Any) -> Any:
        """A client that is instrumented until the test ends."""
        client = self.client(service, region)
        shims.instrument_client(client, datastore=self.prefix, **options)
        self.stack.callback(shims.uninstrument_client, client)
        return client

    def finally_(self, remove: Callable[..., Any], **given: Any) -> None:
        """Remove something in the end, whatever became of it."""

        def removed() -> None:
            with suppress(ClientError):
                remove(**given)

        self.stack.callback(removed)

    def cost(self) -> str:
        """What was sent, without the polls of barriers, and about what it costs."""
        usd = sum(count * PRICES[service] / 1e6 for service, count in self.sent.items())
        return f"{self.prefix}: {dict(self.sent)} requests besides polls, some {usd:.4f} USD"


@pytest.fixture
def account() -> Iterator[Account]:
    """It is as before, afterwards."""
    with ExitStack() as stack:
        made = Account(stack)
        yield made
    print(made.cost())  # noqa: T201 - who pays wants to know


def test_dynamodb(account: Account) -> None:
    """A barrier waits for puts, updates and statements; replies show no stamp."""
    table = account.prefix
    plain = account.client("dynamodb", HOME)
    plain.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    account.finally_(plain.delete_table, TableName=table)
    plain.get_waiter("table_exists").wait(TableName=table)
    plain.update_table(TableName=table, ReplicaUpdates=[{"Create": {"RegionName": AWAY}}])

    def removed() -> None:
        plain.update_table(TableName=table, ReplicaUpdates=[{"Delete": {"RegionName": AWAY}}])
        wait_until(lambda: not _replicas(plain, table), what="its removal", timeout_s=TIMEOUT_S)

    account.finally_(removed)
    wait_until(
        lambda: _replicas(plain, table) == ["ACTIVE"], what="the replica", timeout_s=TIMEOUT_S
    )
    us = account.instrumented(dynamodb, "dynamodb", HOME)
    eu = account.instrumented(dynamodb, "dynamodb", AWAY, reads_from="replica")
    key = {"id": {"S": "1"}}
    for write in (
        lambda: us.put_item(TableName=table, Item={**key, "n": {"N": "1"}}),
        lambda: us.update_item(
            TableName=table,
            Key=key,
            UpdateExpression="SET n = n + :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        ),
        lambda: us.execute_statement(Statement=f"UPDATE \"{table}\" SET n = 3 WHERE id = '1'"),  # noqa: S608
        lambda: us.execute_statement(Statement=f"INSERT INTO \"{table}\" VALUE {{'id': '2'}}"),
        lambda: us.delete_item(TableName=table, Key={"id": {"S": "2"}}),
    ):
        with antipode.scope() as scope:
            write()
            assert not scope.lineage.incomplete
            assert antipode.barrier(timeout=60).ok
    with antipode.scope():
        assert eu.get_item(TableName=table, Key=key)["Item"] == {**key, "n": {"N": "3"}}


def _replicas(client: Any, table: str) -> list[str]:
    """The states of a table's replicas."""
    found = client.describe_table(TableName=table)["Table"].get("Replicas", ())
    return [each["ReplicaStatus"] for each in found]


def test_s3(account: Account) -> None:
    """A copy has its source's version; user metadata has a limit, which the shim counts alike."""
    role = os.environ.get("ANTIPODE_AWS_REPLICATION_ROLE")
    if not role:
        pytest.skip("ANTIPODE_AWS_REPLICATION_ROLE names no role for which S3 may copy")
    source, copies = f"{account.prefix}-us", f"{account.prefix}-eu"
    for bucket, region in ((source, HOME), (copies, AWAY)):
        plain = account.client("s3", region)
        located = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        plain.create_bucket(Bucket=bucket, **({} if region == HOME else located))
        account.finally_(_emptied, client=plain, bucket=bucket)
        plain.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    home = account.client("s3", HOME)
    rule = {
        "ID": "all",
        "Priority": 1,
        "Status": "Enabled",
        "Filter": {},
        "DeleteMarkerReplication": {"Status": "Enabled"},
        "Destination": {"Bucket": f"arn:aws:s3:::{copies}"},
    }
    home.put_bucket_replication(
        Bucket=source, ReplicationConfiguration={"Role": role, "Rules": [rule]}
    )
    us = account.instrumented(s3, "s3", HOME, lineage="beside")
    account.instrumented(s3, "s3", AWAY, reads_from="replica", buckets={source: copies})
    with antipode.scope(Lineage([ELSEWHERE])):
        version = us.put_object(Bucket=source, Key="a", Body=b"1")["VersionId"]
        assert antipode.barrier(timeout=TIMEOUT_S, exclude=["elsewhere"]).ok
        us.delete_object(Bucket=source, Key="a")
        assert antipode.barrier(timeout=TIMEOUT_S, exclude=["elsewhere"]).ok
    about = home.head_object(Bucket=source, Key="a", VersionId=version)
    assert about["ReplicationStatus"] == "COMPLETED"
    full = {"m": "x" * (MOST_BYTES - 1)}
    home.put_object(Bucket=source, Key="full", Body=b"1", Metadata=full)
    with pytest.raises(ClientError, match="MetadataTooLarge"):
        home.put_object(Bucket=source, Key="over", Body=b"1", Metadata={**full, NAME: "1"})
    with antipode.scope(Lineage([ELSEWHERE])):
        us.put_object(Bucket=source, Key="fuller", Body=b"1", Metadata=full)


def _emptied(client: Any, bucket: str) -> None:
    """Delete a bucket with all that is in it."""
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            client.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])
    client.delete_bucket(Bucket=bucket)


def test_sns(account: Account) -> None:
    """A message to a queue elsewhere has its lineage; with ten attributes it comes without."""
    topics, queues = account.client("sns", HOME), account.client("sqs", AWAY)
    topic = topics.create_topic(Name=account.prefix)["TopicArn"]
    account.finally_(topics.delete_topic, TopicArn=topic)
    queue = queues.create_queue(QueueName=account.prefix)["QueueUrl"]
    account.finally_(queues.delete_queue, QueueUrl=queue)
    asked = queues.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    arn = asked["Attributes"]["QueueArn"]
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    queues.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    topics.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"}
    )
    publisher = account.instrumented(sns, "sns", HOME)
    consumer = account.instrumented(sns, "sqs", AWAY)
    found = {}
    for number in (9, 10):
        given = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(number)}
        with antipode.scope(Lineage([ELSEWHERE])):
            publisher.publish(TopicArn=topic, Message=str(number), MessageAttributes=given)

    def came() -> bool:
        told = consumer.receive_message(QueueUrl=queue, WaitTimeSeconds=20, MaxNumberOfMessages=10)
        for each in told.get("Messages", ()):
            with sns.message(each, datastore=account.prefix) as scope:
                found[each["Body"]] = scope.lineage
        return len(found) == 2

    wait_until(came, what="both messages", timeout_s=TIMEOUT_S)
    assert set(found["9"]) == {ELSEWHERE}
    assert found["10"].empty
    over = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(11)}
    with pytest.raises(ClientError):
        queues.send_message(QueueUrl=queue, MessageBody="11", MessageAttributes=over)


def test_a_missing_region_is_said(account: Account) -> None:
    """A table that one region lacks is an unknown log there, by the service's own answer."""
    table = f"{account.prefix}-alone"
    plain = account.client("dynamodb", HOME)
    plain.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    account.finally_(plain.delete_table, TableName=table)
    plain.get_waiter("table_exists").wait(TableName=table)
    us = account.instrumented(dynamodb, "dynamodb", HOME)
    account.instrumented(dynamodb, "dynamodb", AWAY, reads_from="replica")
    with antipode.scope():
        us.put_item(TableName=table, Item={"id": {"S": "1"}})
        (outcome,) = antipode.barrier(timeout=5, on_unmet="return").outcomes
    assert outcome.status is Status.UNKNOWN_LOG
