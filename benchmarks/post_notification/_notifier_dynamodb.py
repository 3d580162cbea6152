"""Notifications by DynamoDB: items of a global table, read from the stream of the reader's region.

Two regions of an emulator, not of AWS.
"""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _aws
from ._delivery import NOTIFICATIONS, Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ._delivery import Publisher, Subscriber
    from ._storage import Spec

#: The table of notifications; its key is the string ``id``.
TABLE = "notifications"
_FIELD = "body"
#: Seconds between two reads of the stream.
_PAUSE_S = 0.02


class ItemPublisher:
    """Without the library: puts an item."""

    def __init__(self, spec: Spec) -> None:
        """Make a client of the writer's region."""
        self._client = _aws.client("dynamodb", spec, "writer")

    def publish(self, body: bytes) -> None:
        """Publish a notification."""
        item = {"id": {"S": uuid.uuid4().hex}, _FIELD: {"B": body}}
        self._client.put_item(TableName=TABLE, Item=item)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class ShimmedPublisher(ItemPublisher):
    """With the library: the current lineage is stored with each notification."""

    def __init__(self, spec: Spec) -> None:
        """Make a client, and register its shim."""
        from antipode_shims import dynamodb

        super().__init__(spec)
        self._shim = dynamodb.shim(
            NOTIFICATIONS,
            self._client,
            table=TABLE,
            field=_FIELD,
            **_aws.options(spec, "writer"),
        )

    def publish(self, body: bytes) -> None:
        """Publish a notification."""
        self._shim.write(uuid.uuid4().hex, body)


class StreamSubscriber:
    """Without the library: follows the stream of the reader's region."""

    def __init__(self, spec: Spec) -> None:
        """Make a client, and begin behind what earlier runs left."""
        self._stream = _aws.client("dynamodbstreams", spec, "reader")
        self._client = _aws.client("dynamodb", spec, "reader")
        arn = self._client.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]
        (shard,) = self._stream.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        self._at = self._stream.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
        )["ShardIterator"]

    def run(self, handle: Callable[[Delivery], None]) -> None:
        """Hand over each notification; it is handled in another thread, in a scope of its own."""
        while True:
            told = self._stream.get_records(ShardIterator=self._at)
            self._at = told["NextShardIterator"]
            for record in told["Records"]:
                item = record["dynamodb"]["NewImage"]
                body = bytes(item.pop(_FIELD)["B"])
                key = item.pop("id")["S"]
                size = len(body) + sum(len(name) + _length(value) for name, value in item.items())
                handle(Delivery(body, size, self.scope(key)))
            time.sleep(_PAUSE_S)

    def scope(self, key: str) -> Callable[[], AbstractContextManager[object]]:  # noqa: ARG002
        """The block in which a notification is handled."""
        return nullcontext


class ShimmedSubscriber(StreamSubscriber):
    """With the library: reading the notification brings the lineage that is stored with it."""

    def __init__(self, spec: Spec) -> None:
        """Make clients, and register the shim of the region."""
        from antipode_shims import dynamodb

        super().__init__(spec)
        self._shim = dynamodb.shim(
            NOTIFICATIONS,
            self._client,
            table=TABLE,
            field=_FIELD,
            **_aws.options(spec, "reader"),
        )

    def scope(self, key: str) -> Callable[[], AbstractContextManager[object]]:
        """The block in which a notification is handled, with its lineage."""
        return partial(self._read, key)

    @contextmanager
    def _read(self, key: str) -> Iterator[None]:
        import antipode

        with antipode.scope():
            self._shim.read(key)
            yield


def _length(typed: dict[str, Any]) -> int:
    """Bytes of an attribute's value."""
    return sum(len(value) for value in typed.values())


def publisher(spec: Spec, *, library: bool) -> Publisher:
    """See `open_publisher`."""
    return ShimmedPublisher(spec) if library else ItemPublisher(spec)


def subscriber(spec: Spec, *, library: bool) -> Subscriber:
    """See `open_subscriber`."""
    return ShimmedSubscriber(spec) if library else StreamSubscriber(spec)
