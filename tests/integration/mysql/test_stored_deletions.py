"""Who looks for a row by its key and finds none depends on its deletion, whatever the key is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiomysql
import pytest

import antipode
from antipode import Lineage
from antipode_shims import mysql

from ._clients import NOTES, run
from ._stored import CAUSE

if TYPE_CHECKING:
    from ._clients import Sql

#: What servers and places have to do with each other, `test_stored.py` tests by the product.
pytestmark = pytest.mark.pairwise(split=["posts"])
BESIDE: dict[str, Any] = {"datastore": NOTES, "lineage": "beside", "tables": ["gone"]}


def make(posts: Sql, columns: str, *key: str) -> Any:
    """Make a table with a key of *key*; a connection that keeps lineages beside its rows."""
    admin, where = posts.topology.execute, posts.topology.database
    for table in ("gone", "gone_ap"):
        admin(f"DROP TABLE IF EXISTS {where}.{table}")
    admin(f"CREATE TABLE {where}.gone ({columns}, PRIMARY KEY ({', '.join(key)}))")
    for statement in mysql.migration(f"{where}.gone", key=key, side_table=posts.side_table):
        admin(statement)
    return mysql.instrument_connection(posts.plain(), **BESIDE)


def delete(connection: Any, statement: str, *args: Any) -> None:
    """Delete for a cause."""
    with antipode.scope(Lineage([CAUSE])):
        assert not run(connection, statement, *args)


def found(connection: Any, statement: str, *args: Any) -> bool:
    """Whether somebody who finds nothing depends on the deletion's cause."""
    with antipode.scope() as scope:
        assert not run(connection, statement, *args)
        assert not scope.lineage.incomplete
        return CAUSE in scope.lineage


@pytest.fixture
def pairs(posts: Sql) -> Any:
    """A connection to a table with a key of two columns, of which two rows were deleted."""
    connection = make(posts, "a INT, b VARCHAR(99), c INT", "a", "b")
    run(connection, "INSERT INTO gone VALUES (1, 'x', 0), (11, 'x:1', 0), (2, 'x', 0)")
    delete(connection, "DELETE FROM gone WHERE a IN (1, 11)")
    return connection


@pytest.mark.parametrize(
    "where",
    [
        "a = 1 AND b = 'x'",
        "gone.b = 'x' AND c = 0 AND `gone`.`a` = '1'",
        "(a = 1 AND (b = 'x'))",
        "(a = 2 AND b = 'y') OR (a = 1 AND b = 'x') AND c = 1",
        "a = 11 AND b = 'x:1'",
        "a IN (7, 1) AND b IN ('x')",
        "a = 1 AND b = _utf8mb4'x' ORDER BY c LIMIT 1",
    ],
)
def test_a_key_of_two_columns(pairs: Any, where: str) -> None:
    """All of its columns are compared with literals, in any order and in parentheses."""
    assert found(pairs, f"SELECT c FROM gone WHERE {where}")  # noqa: S608 - the claim


@pytest.mark.parametrize(
    "where",
    [
        "a = 1 AND b = 'y'",
        "a = 1 AND c = 9",
        "b = 'x' AND c = 9",
        "a = 3 AND b = (SELECT 'x' FROM plain WHERE a = 1 AND b = 'x')",
    ],
)
def test_other_rows_have_no_part_in_it(pairs: Any, where: str) -> None:
    """Another key, half a key, or a key that a subquery looks for."""
    assert not found(pairs, f"SELECT c FROM gone WHERE {where}")  # noqa: S608 - the claim


def test_parameters_are_literals(pairs: Any) -> None:
    """Clients put them into the text."""
    statement = "SELECT c FROM gone WHERE a = %s AND b = %s"
    assert found(pairs, statement, 1, "x")
    assert not found(pairs, statement, 1, "y")


@pytest.mark.parametrize("key", ["it's", 'a "b" \\', "Zoë", "%s `x`", ""])
@pytest.mark.parametrize("charsets", [("utf8mb4", "latin1"), ("latin1", "utf8mb4")])
def test_texts_of_any_kind(posts: Sql, key: str, charsets: tuple[str, str]) -> None:
    """Quotes, backslashes and other letters, where column and connection spell them differently."""
    column, client = charsets
    connection = make(posts, f"a VARCHAR(99) CHARACTER SET {column}, b INT", "a", "b")
    run(connection, "INSERT INTO gone VALUES (%s, 1)", key)
    delete(connection, "DELETE FROM gone")
    reader = mysql.instrument_connection(posts.plain(charset=client), **BESIDE)
    assert found(reader, "SELECT * FROM gone WHERE a = %s AND b = 1", key)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("BIGINT", -5),
        ("BINARY(16)", bytes(range(245, 256)) + b"'\\\0\n%"),
        ("VARBINARY(600)", b"\xff" * 600),
        ("VARCHAR(700)", "é" * 700),
        ("DATE", "2026-01-31"),
    ],
)
def test_a_key_of_one_column(posts: Sql, kind: str, key: Any) -> None:
    """Negative, of bytes, or longer than a tombstone's: its deletion succeeds, and is found."""
    connection = make(posts, f"id {kind}, c INT", "id")
    run(connection, "INSERT INTO gone VALUES (%s, 1)", key)
    delete(connection, "DELETE FROM gone WHERE id = %s", key)
    assert found(connection, "SELECT * FROM gone WHERE id = %s", key)
    assert not found(connection, "SELECT * FROM gone WHERE c = 1")


async def test_asyncio_looks_too(posts: Sql, pairs: Any) -> None:
    """By aiomysql as by PyMySQL."""
    del pairs
    place, user = posts.topology.primary, posts.topology.user
    connection = await aiomysql.connect(
        host=place.host,
        port=place.port,
        user=user,
        password=posts.topology.password,
        db=posts.topology.database,
        autocommit=True,
    )
    mysql.instrument_connection(connection, **BESIDE)
    try:
        with antipode.scope() as scope:
            async with connection.cursor() as cursor:
                await cursor.execute("SELECT c FROM gone WHERE a = %s AND b = %s", (1, "x"))
                assert await cursor.fetchall() in ((), [])
            assert CAUSE in scope.lineage
    finally:
        mysql.uninstrument_connection(connection)
        connection.close()
