"""What a stamp adds to an update, and by what an item without one is compared."""

from __future__ import annotations

from typing import Any

import pytest

from antipode_shims._aws.botocore import Settings
from antipode_shims.dynamodb._clients.reads import consistent
from antipode_shims.dynamodb._clients.rewrite import stamped_update, without_ours
from antipode_shims.dynamodb._endpoint import DynamoDBRegions
from antipode_shims.dynamodb._look import Question
from antipode_shims.dynamodb._position import Item

ITEM = Item("posts", (("id", "S", "1"),))
OURS = {"_ap": {"Action": "PUT", "Value": {"N": "7"}}}


@pytest.mark.parametrize(
    "given",
    [
        {"Expected": {"text": {"Exists": False}}},
        {"Expected": {"text": {"Exists": False}}, "ConditionalOperator": "OR"},
        {"AttributeUpdates": {"text": {"Action": "DELETE"}}, "Expected": {"n": {"Exists": False}}},
    ],
)
def test_a_legacy_update_gets_no_expression(given: dict[str, Any]) -> None:
    """A stamp adds no expression to an update with a legacy parameter: the service refuses both."""
    updates = {**given.get("AttributeUpdates", {}), **OURS}
    assert stamped_update(given, 7) == {**given, "AttributeUpdates": updates}


@pytest.mark.parametrize(
    "given",
    [
        {"UpdateExpression": ""},
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeValues": {}},
        {"UpdateExpression": "REMOVE a", "ExpressionAttributeNames": {}},
    ],
    ids=lambda given: list(given)[-1],
)
def test_what_the_service_refuses_gets_no_stamp(given: dict[str, Any]) -> None:
    """With ours an empty expression would be none, and the update would write."""
    assert stamped_update(given, 7) == given


@pytest.mark.parametrize(
    "statement",
    [
        """SELECT * FROM "posts"."by-text" WHERE "text" = 'a'""",
        'select "from", text from posts . "by-text" where text = \'x FROM y\'',
    ],
)
@pytest.mark.parametrize("operation", ["ExecuteStatement", "BatchExecuteStatement"])
def test_a_statement_of_an_index_is_refused_as_it_is(statement: str, operation: str) -> None:
    """After a barrier its read would be refused with ``ConsistentRead``, and stale without."""
    given = {"Statement": statement}
    params = given if operation == "ExecuteStatement" else {"Statements": [given]}
    assert "'by-text'" in consistent(operation, params)
    assert given == {"Statement": statement}
    given["ConsistentRead"] = True  # type: ignore[assignment]
    assert not consistent(operation, params)


@pytest.mark.parametrize(
    "statement",
    ["""SELECT * FROM "posts" WHERE "a"."b" = ' FROM c.d'""", "SELECT a.b FROM posts", "SELECT "],
)
def test_a_statement_of_a_table_is_consistent(statement: str) -> None:
    """Neither a path nor a text makes the name of an index."""
    params: dict[str, Any] = {"Statement": statement}
    assert not consistent("ExecuteStatement", params)
    assert params == {"Statement": statement, "ConsistentRead": True}


def test_no_item_of_a_batch_of_statements_shows_a_stamp() -> None:
    """Neither what it read nor what a failed condition found, also in a resource's own forms."""
    shown = [{"Item": {"id": "1"}}, {"Error": {"Code": "C", "Item": {"id": "1"}}}, {"Error": "e"}]
    reply = {
        "Responses": [
            {"Item": {"id": "1", "_ap": 7}},
            {"Error": {"Code": "C", "Item": {"id": "1", "_ap": 7}}},
            {"Error": "e", "_ap": 7},
        ]
    }
    without_ours(reply)
    assert reply == {"Responses": shown}


class Shows:
    """A client of a table with one item."""

    def __init__(self, **attributes: Any) -> None:
        self._item = {"id": {"S": "1"}, **attributes}

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self._item}


def digest(**attributes: Any) -> str:
    settings = Settings("us", "http://us", False, None, None, None, None)  # noqa: FBT003 - a tuple
    regions = DynamoDBRegions(settings, {}, promise_table="promises")
    shown = regions.read(Shows(**attributes), Question("", (ITEM,), whole=True))[ITEM]
    assert shown is not None
    assert shown.digest
    return shown.digest


@pytest.mark.parametrize(
    ("kind", "values"), [("SS", ["a", "b"]), ("NS", ["1", "2"]), ("BS", [b"a", b"b"])]
)
def test_equal_sets_are_equal_in_any_order(kind: str, values: list[Any]) -> None:
    """An item is the same in two regions that show its sets, also inner ones, in other orders."""
    here, home = {kind: values}, {kind: values[::-1]}
    assert digest(a=here) == digest(a=home)
    assert digest(a={"L": [{"M": {"SS": here}}]}) == digest(a={"L": [{"M": {"SS": home}}]})
    assert digest(a=here) != digest(a={kind: values[:1]})


def test_lists_keep_their_order() -> None:
    """An item is another where a list of it, also under a set's name, has another order."""
    one, two = [{"S": "a"}, {"S": "b"}], [{"S": "b"}, {"S": "a"}]
    assert digest(a={"M": {"SS": {"L": one}}}) != digest(a={"M": {"SS": {"L": two}}})
