"""Lineages in side tables, as servers have them that know no invisible columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, Lineage
from antipode.shim import stored_text
from antipode_shims import mysql
from tests.integration.mysql.test_stored import beside, found

from ._clients import NOTES, counted, run
from ._stored import CAUSE, IN_SIDE_TABLES, OTHER, texts

if TYPE_CHECKING:
    from ._clients import Sql

pytestmark = pytest.mark.parametrize("posts", IN_SIDE_TABLES, indirect=True)


def insert(posts: Sql, *keys: int) -> Any:
    """Rows with a cause, and the connection that wrote them."""
    connection = beside(posts)
    for key in keys:
        with antipode.scope(Lineage([CAUSE])):
            run(connection, "INSERT INTO posts VALUES (%s, 'a', 'b')", key)
    return connection


def sides(posts: Sql) -> dict[int, list[str]]:
    """What lies in the side table, by key."""
    keys = run(posts.plain(), "SELECT k FROM posts_ap")
    return {int(key): texts(posts, int(key)) for (key,) in keys}


def test_the_application_sees_its_table_alone(posts: Sql) -> None:
    """No column more, visible or not."""
    insert(posts, 1)
    (created,) = run(posts.plain(), "SHOW CREATE TABLE posts")
    assert "_ap" not in created[1]


def test_a_row_keeps_its_lineage_under_another_key(posts: Sql) -> None:
    """Who changes the key, with the library or without, takes the lineage along."""
    connection = insert(posts, 1, 2)
    cause, both = ([stored_text(Lineage([each]))] for each in (CAUSE, OTHER))
    run(posts.plain(), "UPDATE posts SET id = 7 WHERE id = 1")
    assert sides(posts) == {7: cause, 2: cause}
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE posts SET id = id + 1 ORDER BY id DESC")
    assert sides(posts) == {8: both + cause, 3: both + cause}
    assert CAUSE in found(posts, "SELECT body FROM posts WHERE id = 8")


def test_an_ignored_update_changes_nothing(posts: Sql) -> None:
    """A key that is taken: both rows keep what is theirs."""
    connection = insert(posts, 1)
    with antipode.scope(Lineage([OTHER])):
        run(connection, "INSERT INTO posts VALUES (2, 'a', 'b')")
    before = sides(posts)
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE IGNORE posts SET id = 2 WHERE id = 1")
        run(connection, "INSERT IGNORE INTO posts VALUES (1, 'c', 'd')")
    assert sides(posts) == before


def test_a_key_that_is_spelled_otherwise(posts: Sql) -> None:
    """It is the same to the column, and still the row's new key."""
    where = posts.topology.database
    posts.topology.execute(f"ALTER TABLE {where}.posts MODIFY id VARCHAR(9)")
    connection = insert(posts, 1)
    run(connection, "UPDATE posts SET id = 'zoe'")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE posts SET id = 'Zoe'")
    assert {CAUSE, OTHER} <= set(found(posts, "SELECT * FROM posts"))


def test_rows_of_plain_clients_have_none(posts: Sql) -> None:
    """Not even that of a row of the same key before: deleted, truncated or replaced."""
    insert(posts, 1, 2, 3)
    plain = posts.plain()
    run(plain, "REPLACE INTO posts VALUES (1, 'plain', 'b')")
    run(plain, "DELETE FROM posts WHERE id = 2")
    run(plain, "INSERT INTO posts VALUES (2, 'plain', 'b')")
    run(plain, "TRUNCATE posts")
    run(plain, "INSERT INTO posts VALUES (3, 'plain', 'b')")
    before = counted("companion_absent")
    assert CAUSE not in found(posts, "SELECT * FROM posts")
    assert counted("companion_absent") == before + 1
    assert sides(posts)[3] == []


def test_rows_from_before_the_migration(posts: Sql) -> None:
    """They have nothing beside them until they are updated."""
    connection = insert(posts, 1)
    run(posts.plain(), "DELETE FROM posts_ap")
    before = counted("companion_absent")
    assert CAUSE not in found(posts, "SELECT * FROM posts")
    assert counted("companion_absent") == before + 1
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE posts SET body = 'c'")
    assert OTHER in found(posts, "SELECT * FROM posts")


@pytest.mark.parametrize("lock", ["FOR UPDATE", "LOCK IN SHARE MODE"])
def test_who_locks_a_row_has_its_newest_lineage(posts: Sql, lock: str) -> None:
    """A locking read shows a newer row than its transaction's snapshot: and what lies beside it."""
    writer = insert(posts, 1)
    reader = beside(posts, autocommit=False)
    with antipode.scope():
        assert run(reader, "SELECT body FROM posts") == [("a",)]
        with antipode.scope(Lineage([OTHER])):
            run(writer, "UPDATE posts SET body = 'new'")
        assert run(reader, "SELECT body FROM posts") == [("a",)]
        assert OTHER not in antipode.current()
        assert run(reader, f"SELECT body FROM posts {lock}") == [("new",)]  # noqa: S608 - one of two
        assert OTHER in antipode.current()
        reader.rollback()


def test_writers_do_not_wait_for_each_other(posts: Sql) -> None:
    """Of different rows, with something beside them or not: as without lineages."""
    connection = insert(posts, *range(0, 100, 10))
    run(posts.plain(), "DELETE FROM posts_ap WHERE k > 40")
    others = [beside(posts, autocommit=False, read_timeout=10) for _ in range(2)]
    with antipode.scope(Lineage([OTHER])):
        for statement in (
            "UPDATE posts SET body = 'c' WHERE id = %s",
            "DELETE FROM posts WHERE id = %s",
        ):
            for number, other in enumerate(others):
                for key in (20, 60):
                    run(other, statement, key + 10 * number)
        for number, other in enumerate(others):
            run(other, "INSERT INTO posts VALUES (%s, 'a', 'b')", 61 + number)
        for other in others:
            other.commit()
    del connection
    assert len(run(posts.plain(), "SELECT * FROM posts")) == 8


@pytest.mark.parametrize(
    ("columns", "key", "values"),
    [
        ("a INT, b VARCHAR(99)", ("a", "b"), (1, "Zoë")),
        ("a VARBINARY(600)", ("a",), (b"\xff\x00'" * 200,)),
        ("a VARCHAR(700) CHARACTER SET latin1", ("a",), ("é" * 700,)),
        ("a BINARY(16)", ("a",), (bytes(range(240, 256)),)),
        ("a DECIMAL(9, 3)", ("a",), (-1,)),
    ],
)
def test_keys_of_any_kind(
    posts: Sql, columns: str, key: tuple[str, ...], values: tuple[Any, ...]
) -> None:
    """Of several columns, of bytes, in other character sets, or longer than is kept as it is."""
    execute, where = posts.topology.execute, posts.topology.database
    for table in ("gone", "gone_ap"):
        execute(f"DROP TABLE IF EXISTS {where}.{table}")
    execute(f"CREATE TABLE {where}.gone ({columns}, z INT, PRIMARY KEY ({', '.join(key)}))")
    for statement in mysql.migration(f"{where}.gone", key=key, side_table=True):
        execute(statement)
    connection = mysql.instrument_connection(
        posts.plain(), datastore=NOTES, lineage="beside", tables=[f"{where}.gone"]
    )
    marks = ", ".join(["%s"] * len(values))
    with antipode.scope(Lineage([CAUSE])):
        run(connection, f"INSERT INTO gone VALUES ({marks}, 1)", *values)  # noqa: S608 - parameters
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE gone SET z = 2")
    with antipode.scope() as scope:
        sql = f"SELECT g.z FROM plain RIGHT JOIN {where}.gone AS g ON 0"  # noqa: S608 - parameters
        assert run(connection, sql) == [(2,)]
        assert {CAUSE, OTHER} <= set(scope.lineage)


@pytest.mark.parametrize(
    "change",
    ["DROP PRIMARY KEY", "DROP PRIMARY KEY, ADD at TIMESTAMP, ADD PRIMARY KEY (id, at)"],
)
def test_where_keys_do_not_tell_rows_apart(posts: Sql, change: str) -> None:
    """None, or one that each session spells in its own time zone: it is refused."""
    posts.topology.execute(f"ALTER TABLE {posts.topology.database}.posts {change}")
    connection = beside(posts)
    with pytest.raises(ConfigurationError, match="side table"):
        run(connection, "SELECT * FROM posts")
