"""Events of DynamoDB, over emulators: records of a table's stream."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import antipode
from antipode import Lineage, Status
from antipode_shims import dynamodb
from antipode_testing import wait_until
from tests.integration.dynamodb._regions import POSTS, item, name, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.dynamodb._regions import Regions

pytestmark = pytest.mark.store("dynamodb")

TABLE = "posts"


class Stream:
    """The stream of the table, read from now on as its consumers do."""

    def __init__(self, regions: Regions) -> None:
        self._client = boto3.client("dynamodbstreams", **regions.options(regions.home))
        arn = self._client.list_streams(TableName=TABLE)["Streams"][0]["StreamArn"]
        described = self._client.describe_stream(StreamArn=arn)["StreamDescription"]
        self._shards = [
            self._client.get_shard_iterator(
                StreamArn=arn, ShardId=each["ShardId"], ShardIteratorType="LATEST"
            )["ShardIterator"]
            for each in described["Shards"]
        ]
        self._read: list[dict[str, Any]] = []

    def record(self) -> dict[str, Any]:
        """The next record."""
        wait_until(self._any, what="a record of the stream", timeout_s=10)
        return self._read.pop(0)

    def _any(self) -> bool:
        for at, shard in enumerate(self._shards):
            told = self._client.get_records(ShardIterator=shard)
            self._shards[at] = told["NextShardIterator"]
            self._read += told["Records"]
        return bool(self._read)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


@pytest.fixture
def stream(regions: Regions) -> Iterator[Stream]:
    """The table's stream in the first region."""
    made = Stream(regions)
    yield made
    regions.topology.resume()
    made.close()


def read(reader: Any, key: str) -> str | None:
    """What the second region shows."""
    shown = reader.get_item(TableName=TABLE, Key=item(key), ConsistentRead=True).get("Item")
    return None if shown is None else str(shown["body"]["S"])


@pytest.mark.slow
@pytest.mark.parametrize("stamped", [True, False])
def test_who_handles_a_record_reads_in_its_region_what_it_reports(
    regions: Regions, stream: Stream, *, stamped: bool
) -> None:
    """By the stamp of an instrumented writer, else as of now; without, the old item is read."""
    key, plain, reader = name(), regions.client(regions.home), regions.reader()
    writer = regions.instrumented(regions.client(regions.home)) if stamped else plain
    plain.put_item(TableName=TABLE, Item=item(key, body="old"))
    stream.record()
    wait_until(lambda: read(reader, key) == "old", what="a copy", timeout_s=10)
    regions.topology.pause()
    with antipode.scope():
        writer.put_item(TableName=TABLE, Item=item(key, body="new"))
        own = written()
    lineage = dynamodb.lineage(POSTS, stream.record(), table=TABLE)
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        assert read(reader, key) == "old"
    (entry,) = lineage
    assert entry.covering is not stamped
    if stamped:
        assert entry == own[key]
    assert not antipode.check(lineage)
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(lineage, timeout=0.5)
    with antipode.scope(lineage):
        regions.topology.resume()
        antipode.barrier(timeout=20)
        assert read(reader, key) == "new"


@pytest.mark.slow
def test_each_record_of_a_random_program_is_of_its_write(regions: Regions, stream: Stream) -> None:
    """Puts, updates and deletes, of writers with the library and without, on few items.

    An update by a plain client leaves the stamp of the write before it, and is no such write.
    """
    draw = random.Random(17)
    plain, reader = regions.client(regions.home), regions.reader()
    writer = regions.instrumented(regions.client(regions.home))
    keys = [name() for _ in range(2)]
    regions.topology.set_lag(20)
    for step in range(14):
        key, client, kind = draw.choice(keys), draw.choice([plain, writer]), draw.random()
        body: str | None = f"step {step}"
        if kind < 0.4:
            client.put_item(TableName=TABLE, Item=item(key, body=f"step {step}"))
        elif kind < 0.8:
            client.update_item(
                TableName=TABLE,
                Key=item(key),
                UpdateExpression="SET body = :b",
                ExpressionAttributeValues={":b": {"S": body}},
            )
        else:
            plain.put_item(TableName=TABLE, Item=item(key, body="soon gone"))
            client.delete_item(TableName=TABLE, Key=item(key))
            body = None
            stream.record()
        lineage = dynamodb.lineage(POSTS, stream.record(), table=TABLE)
        with antipode.scope(lineage):
            antipode.barrier(timeout=20)
            assert read(reader, key) == body


def test_a_record_of_another_table_is_refused(regions: Regions, stream: Stream) -> None:
    """Of another account, say, whose table no region here has: the barrier says so."""
    regions.reader()
    key = name()
    regions.client(regions.home).put_item(TableName=TABLE, Item=item(key, body="new"))
    lineage = dynamodb.lineage(POSTS, stream.record(), table="of-another-account")
    with pytest.raises(antipode.UnmetError) as unmet:
        antipode.barrier(lineage, timeout=5)
    assert [each.status for each in unmet.value.result.outcomes] == [Status.UNKNOWN_LOG]
    assert lineage != Lineage()
