"""The DynamoDB shim keeps the contract, over two regions of an emulator (ministack), not on AWS."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar

import pytest

from antipode_shims import dynamodb
from antipode_shims.dynamodb._format import LINEAGE
from antipode_testing import ShimContract
from tests.contract._aws import POSTS, RegionsContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Promise
    from antipode_testing import DynamoDBTopology

pytestmark = pytest.mark.store("dynamodb")


class DynamoDBContractStore(RegionsContractStore):
    """A table in each region."""

    shims, service, kept_in = dynamodb, "dynamodb", "table"

    def refused_write(self, key: str, value: bytes) -> None:
        """A condition that does not hold."""
        with self.instrumented() as client:
            client.put_item(
                TableName=POSTS,
                Item={"id": {"S": key}, "value": {"B": value}},
                ConditionExpression="attribute_exists(id)",
            )

    def unknown_write(self, key: str, value: bytes) -> None:
        """A transaction with a token of the application's: nothing is added to it."""
        action = {"Put": {"TableName": POSTS, "Item": {"id": {"S": key}, "value": {"B": value}}}}
        with self.instrumented() as client:
            client.transact_write_items(TransactItems=[action], ClientRequestToken=uuid.uuid4().hex)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """In a transaction with a condition that does not hold."""
        item = {"id": {"S": key}, "value": {"B": value}}
        missing = {
            "TableName": POSTS,
            "Key": {"id": {"S": f"{key}-missing"}},
            "ConditionExpression": "attribute_exists(id)",
        }
        actions = [{"Put": {"TableName": POSTS, "Item": item}}, {"ConditionCheck": missing}]
        with self.instrumented() as client:
            client.transact_write_items(TransactItems=dynamodb.fulfil(actions, promise))

    def corrupt(self, key: str, text: str) -> None:
        """Overwrite the attribute, by a client without the shim."""
        self.plain().update_item(
            TableName=POSTS,
            Key={"id": {"S": key}},
            UpdateExpression="SET #l = :l",
            ExpressionAttributeNames={"#l": LINEAGE},
            ExpressionAttributeValues={":l": {"S": text}},
        )
        self.topology.wait_replicated()


class TestDynamoDB(ShimContract):
    """An emulator."""

    opt_outs: ClassVar[dict[str, str]] = {
        "deletes": "a deletion leaves nothing, so that the application's scans stay as they were",
        "failover": "either region takes writes: there is no primary to replace",
        "fences": "each item has versions of its own: no position stands for all writes",
        "partial_updates": "Table 2 writes values whole",
        "abandonment": "two regions could record the opposite, and the last writer would win",
    }

    @pytest.fixture
    def store(self, antipode_dynamodb: DynamoDBTopology) -> Iterator[DynamoDBContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            store = DynamoDBContractStore(antipode_dynamodb, stack)
            yield store
            store.writer.close()
            store.reader.close()
