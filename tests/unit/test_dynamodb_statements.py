"""Which item a statement of PartiQL writes, and where its stamp goes."""

from __future__ import annotations

from typing import Any

import pytest

from antipode_shims.dynamodb._statements import parse

UNDERSTOOD: list[tuple[str, list[Any], dict[str, Any], str]] = [
    (
        "INSERT INTO \"posts\" VALUE {'id': '1', 'tags': ['a', ?, {'id': 'x'}], 'n': ?}",
        [{"S": "t"}, {"N": "2"}],
        {"id": {"S": "1"}, "n": {"N": "2"}, "tags": None},
        "INSERT INTO \"posts\" VALUE {'_ap': 7, 'id': '1', 'tags': ['a', ?, {'id': 'x'}], 'n': ?}",
    ),
    (
        "update posts set a = ?, b = 'it''s' remove c where id = ? and n=-1.5 returning all old *",
        [{"S": "a"}, {"B": b"k"}],
        {"id": {"B": b"k"}, "n": {"N": "-1.5"}},
        (
            "update posts SET \"_ap\" = 7 set a = ?, b = 'it''s' remove c where id = ? and n=-1.5 "
            "returning all old *"
        ),
    ),
    (
        "UPDATE \"posts\" SET a = list_append(a, ['WHERE OR']) WHERE \"id\" = '1' AND size(a) < 9",
        [],
        {"id": {"S": "1"}},
        (
            'UPDATE "posts" SET "_ap" = 7 SET a = list_append(a, [\'WHERE OR\']) '
            "WHERE \"id\" = '1' AND size(a) < 9"
        ),
    ),
    (
        "DELETE FROM \"posts\" WHERE id = '1' AND (a = 'b' OR a = 'c')",
        [],
        {"id": {"S": "1"}},
        "DELETE FROM \"posts\" WHERE id = '1' AND (a = 'b' OR a = 'c')",
    ),
]
NOT_UNDERSTOOD = [
    "",
    "SELECT * FROM posts WHERE id = '1'",
    "EXISTS(SELECT * FROM posts WHERE id = '1')",
    "INSERT INTO posts VALUE ?",
    "INSERT INTO posts VALUE {}",
    "INSERT INTO posts VALUE {'id': '1', '_ap': 3}",
    "INSERT INTO posts VALUE {'id': '1'} IF NOT EXISTS",
    "INSERT INTO posts.idx VALUE {'id': '1'}",
    "UPDATE posts SET a = 'b'",
    "UPDATE posts SET a = 'b' WHERE id = '1' OR id = '2'",
    "UPDATE posts SET a = 'b' WHERE NOT id = '1'",
    "UPDATE posts SET _ap = 1 WHERE id = '1'",
    "UPDATE posts SET a = 'b' WHERE id = 'no end",
    "DELETE FROM posts.idx WHERE id = '1'",
    "DROP TABLE posts",
    "INSERT INTO posts VALUE",
]


@pytest.mark.parametrize(("text", "parameters", "values", "stamped"), UNDERSTOOD)
def test_a_statement_that_names_one_item(
    text: str, parameters: list[Any], values: dict[str, Any], stamped: str
) -> None:
    """Its attributes are found, placeholders counted, and the stamp is set without a parameter."""
    found = parse(text, parameters)
    assert found is not None
    assert (found.table, found.values) == ("posts", values)
    assert found.stamped(text, 7) == stamped


@pytest.mark.parametrize("text", [*NOT_UNDERSTOOD, None])
def test_any_other_statement(text: Any) -> None:
    """What reads, names several items, or has a form that is not known stays as it is."""
    assert parse(text) is None


def test_a_placeholder_without_a_value() -> None:
    """It names no item, and the service refuses the statement."""
    found = parse("DELETE FROM posts WHERE id = ?")
    assert found is not None
    assert found.values == {"id": None}
