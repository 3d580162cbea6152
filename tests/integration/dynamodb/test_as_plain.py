"""No reply, error or item differs from the plain client's, but for the stamp."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

import antipode
from tests.integration._played import MODES, played
from tests.integration.dynamodb._regions import POSTS, item

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.dynamodb._regions import Regions

pytestmark = pytest.mark.store("dynamodb")
KEY = "played"
TABLE: dict[str, Any] = {"TableName": POSTS}
ONE: dict[str, Any] = {**TABLE, "Key": item(KEY)}
ABSENT = {"ConditionExpression": "attribute_not_exists(id)"}
UPDATE = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
#: What an application may do, refusals of the service and of the client among it.
CALLS: dict[str, Callable[[Any], Any]] = {
    "put": lambda client: client.put_item(**TABLE, Item=item(KEY, text="a")),
    "again": lambda client: client.put_item(**TABLE, Item=item(KEY), **ABSENT),
    "get": lambda client: client.get_item(**ONE),
    "update": lambda client: client.update_item(**ONE, **UPDATE, ReturnValues="ALL_NEW"),
    "refused": lambda client: client.update_item(**ONE, UpdateExpression="SET"),
    "invalid": lambda client: client.put_item(**TABLE, Item={"id": 1}),
    "batch": lambda client: client.batch_write_item(
        RequestItems={POSTS: [{"PutRequest": {"Item": item(KEY, text="b")}}]}
    ),
    "transact": lambda client: client.transact_write_items(
        TransactItems=[{"Put": {**TABLE, "Item": item(KEY), **ABSENT}}]
    ),
    "select": lambda client: client.execute_statement(
        Statement=f"SELECT * FROM {POSTS} WHERE id = ?",  # noqa: S608 - a constant
        Parameters=[{"S": KEY}],
    ),
    "state": lambda client: client.execute_statement(
        Statement=f"UPDATE {POSTS} SET a = 'b' WHERE id = ?",  # noqa: S608 - a constant
        Parameters=[{"S": KEY}],
    ),
    "delete": lambda client: client.delete_item(**ONE, ReturnValues="ALL_OLD"),
    "no table": lambda client: client.get_item(TableName="absent", Key=item(KEY)),
}
STEPS = (
    *("get", "put", "get", "again", "update", "refused", "invalid", "transact", "select"),
    *("batch", "get", "state", "get", "delete", "delete", "transact", "no table", "delete"),
)


class OneClient:
    """boto3."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.heard: list[str] = []

    def execute(self, statement: str) -> Any:
        try:
            reply = CALLS[statement](self.client)
        except ClientError as error:
            return type(error), error.response["Error"], str(error)
        except ParamValidationError as error:
            return type(error), str(error)
        return {name: reply[name] for name in reply if name != "ResponseMetadata"}

    def state(self) -> Any:
        return None

    def close(self) -> None:
        self.client.close()


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(regions: Regions, mode: Any, *, scoped: bool) -> None:
    """Every step ends as it does without the library, and leaves the item that it does."""
    antipode.configure(mode=mode)
    observer = regions.client(regions.home)

    def stored() -> Any:
        found = observer.get_item(**ONE, ConsistentRead=True).get("Item", {})
        return {name: value for name, value in found.items() if name != "_ap"}

    scripts = []
    for instrumented in (False, True):
        client = regions.client(regions.home)
        if instrumented:
            regions.instrumented(client)
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            scripts.append(played(OneClient(client), STEPS, stored))
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
