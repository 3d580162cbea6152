"""Lineages beside the rows of an application's own tables, through its own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from pymysql.cursors import DictCursor, SSCursor

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import Incomplete, stored_text
from antipode_shims import mysql

from ._clients import NOTES, counted, learn_views, run
from ._stored import CAUSE, OTHER, UNNAMED, make_unnamed_writes, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._clients import Sql


def beside(posts: Sql, address: Any = None, **options: Any) -> Any:
    """A connection that keeps lineages beside posts."""
    on_read = options.pop("on_read", "merge")
    reads_from = options.pop("reads_from", "primary")
    connection = posts.plain(address, **options)
    return mysql.instrument_connection(
        connection,
        datastore=NOTES,
        reads_from=reads_from,
        lineage="beside",
        tables=["posts"],
        on_read=on_read,
    )


def found(posts: Sql, statement: str, *args: Any, **options: Any) -> Lineage:
    """What a reader of its own learns from a statement."""
    connection = beside(posts, **options)
    with antipode.scope():
        run(connection, statement, *args)
        return antipode.current()


def test_a_reader_depends_on_the_writes_lineage(posts: Sql) -> None:
    """An insert stores the current lineage; who selects the row has it, and covers the write."""
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE])) as writer:
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
        (own,) = (write for write in writer.lineage if write.datastore == NOTES)
    read = found(posts, "SELECT body FROM posts WHERE id = 1")
    assert CAUSE in read
    (covering,) = (write for write in read if write.datastore == NOTES)
    assert covering.covering
    assert covering.key == own.key
    assert int(covering.version) >= int(own.version)
    assert not read.incomplete


@pytest.mark.parametrize("cursor", [pymysql.cursors.Cursor, DictCursor, SSCursor])
def test_results_are_the_plain_clients(posts: Sql, cursor: Any) -> None:
    """Rows, descriptions and counts have nothing that the application did not ask for."""
    writer = beside(posts)
    with antipode.scope(Lineage([CAUSE])):
        for key in range(3):
            run(writer, "INSERT INTO posts VALUES (%s, %s, NULL)", key, "x" * 300 * key)

    def results(connection: Any) -> list[Any]:
        seen: list[Any] = []
        for statement in (
            "SELECT * FROM posts ORDER BY 1",
            "SELECT extra, body, 1.5 FROM posts n WHERE id > 0 ORDER BY id DESC LIMIT 1",
            "SELECT n.id FROM posts n LEFT JOIN plain p ON p.id = n.id FOR UPDATE",
            "SELECT COUNT(*) FROM posts",
            "SELECT * FROM posts WHERE id = 9",
            "SELECT id FROM posts UNION SELECT 7",
            "INSERT INTO posts VALUES (5, 'e', 'f')",
            "UPDATE posts SET body = 'g' WHERE id = 5",
            "SELECT ROW_COUNT()",
            "DELETE FROM posts WHERE id = 5",
        ):
            with connection.cursor() as each:
                count = each.execute(statement)
                seen.append((count, each.description, each.fetchall(), each.rowcount))
        return seen

    with antipode.scope():
        expected = results(posts.plain(cursorclass=cursor))
        assert results(beside(posts, cursorclass=cursor)) == expected


def test_the_column_is_invisible(posts: Sql) -> None:
    """Readers and writers without the library see and do what they did."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    plain = posts.plain()
    assert run(plain, "SELECT * FROM posts") == [(1, "a", "b")]
    run(plain, "INSERT INTO posts VALUES (2, 'c', 'd')")
    before = counted("companion_absent")
    read = found(posts, "SELECT * FROM posts WHERE id = 2")
    assert CAUSE not in read
    assert counted("companion_absent") == before + 1


def test_a_full_replace_replaces(posts: Sql) -> None:
    """REPLACE leaves the new lineage alone; an upsert is an update and merges."""
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "REPLACE INTO posts VALUES (1, 'c', 'd')")
    assert texts(posts) == [stored_text(Lineage([OTHER]))]
    with antipode.scope(Lineage([CAUSE])):
        run(
            connection,
            "INSERT INTO posts VALUES (1, 'e', 'f') ON DUPLICATE KEY UPDATE body = VALUES(body)",
        )
    read = found(posts, "SELECT * FROM posts")
    assert CAUSE in read
    assert OTHER in read


def test_two_writers_of_two_columns(posts: Sql) -> None:
    """A partial update merges on the server: who reads either depends on both."""
    with antipode.scope():
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "UPDATE posts SET body = 'new' WHERE id = 1")
    with antipode.scope(Lineage([OTHER])):
        run(beside(posts), "UPDATE posts SET extra = 'new' WHERE id = 1")
    read = found(posts, "SELECT extra FROM posts")
    assert CAUSE in read
    assert OTHER in read


def test_a_plain_update_keeps_the_older_lineage(posts: Sql) -> None:
    """Absent or older: what a writer without the library depended on is not known."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    run(posts.plain(), "UPDATE posts SET body = 'plain'")
    assert CAUSE in found(posts, "SELECT * FROM posts")


def test_bulk_writes(posts: Sql) -> None:
    """Every row that a statement touches has its lineage, whatever the statement."""
    connection = beside(posts)
    run(posts.plain(), "INSERT INTO plain VALUES (7, 'x', 'y'), (8, 'x', 'y')")
    with antipode.scope(Lineage([CAUSE])), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO posts VALUES (%s, 'a', 'b')", [(1,), (2,)])
        cursor.execute("INSERT INTO posts SELECT * FROM plain")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE posts SET body = 'z' WHERE id IN (2, 7)")
    for key, causes in ((1, {CAUSE}), (2, {CAUSE, OTHER}), (7, {CAUSE, OTHER}), (8, {CAUSE})):
        read = found(posts, "SELECT * FROM posts WHERE id = %s", key)
        assert {write for write in read if write.datastore == "elsewhere"} == causes


@pytest.mark.parametrize("statement", UNNAMED)
def test_a_procedure_and_a_trigger_write_the_lineage_of_now(posts: Sql, statement: str) -> None:
    """Their statements name no table: the rows do not get what the connection stored before."""
    make_unnamed_writes(posts)
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    run(posts.plain(), "REPLACE INTO posts VALUES (1, 'plain', 'b')")
    with antipode.scope(Lineage([OTHER])):
        run(connection, statement)
    read = found(posts, "SELECT body FROM posts")
    assert OTHER in read
    assert CAUSE not in read


def test_a_rolled_back_write_stores_nothing(posts: Sql) -> None:
    """The lineage lies in the row's own transaction."""
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([CAUSE])):
        connection.begin()
        run(connection, "UPDATE posts SET body = 'x'")
        connection.rollback()
    assert CAUSE not in found(posts, "SELECT * FROM posts")


def test_a_delete_leaves_a_tombstone(posts: Sql) -> None:
    """Its lineage lies in a table of the same schema, for the horizon at least."""
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
        run(connection, "DELETE FROM posts WHERE id = 1")
    ((table, key, text),) = run(posts.plain(), "SELECT t, k, l FROM antipode_tombstone")
    assert (table, key) == (b"posts", b"1")
    assert CAUSE in antipode.deserialize(text.decode())


@pytest.mark.parametrize("sought", ["id = 1", "posts.id = '1' LIMIT 1", "extra = 'b' AND `id`=1"])
def test_who_finds_nothing_depends_on_the_deletion(posts: Sql, sought: str) -> None:
    """Looked for by its key, a deleted row gives the lineage of its deletion; others give none."""
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "DELETE FROM posts")
    read = found(posts, f"SELECT * FROM posts WHERE {sought}")  # noqa: S608 - the claim
    assert CAUSE in read
    assert [write.covering for write in read if write.datastore == NOTES]
    assert CAUSE not in found(posts, "SELECT * FROM posts WHERE id = 2")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    read = found(posts, "SELECT * FROM posts WHERE id = 1")
    assert OTHER in read
    assert CAUSE not in read


def test_growth_is_bounded(posts: Sql) -> None:
    """A thousand partial updates leave little, and say that something is missing."""
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    cause = CAUSE
    for number in range(1000):
        cause = WriteId("elsewhere", f"log{number}", number, written_hour=490_000)
        with antipode.scope(Lineage([cause])):
            run(connection, "UPDATE posts SET body = %s", str(number))
    assert len(",".join(texts(posts))) <= 1100
    read = found(posts, "SELECT * FROM posts")
    assert cause in read
    assert Incomplete("", "size") in read.incomplete


def test_a_lineage_of_one_store_is_small(posts: Sql) -> None:
    """At most 100 bytes beside a row."""
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
        run(connection, "INSERT INTO posts VALUES (2, 'a', 'b')")
    (text,) = texts(posts, 2)
    assert 0 < len(text) <= 100


def test_nothing_is_asked_where_nobody_looks(posts: Sql) -> None:
    """A read adds a round trip only once its lineage is used, and one for all reads before."""
    connection = beside(posts)
    learn_views(connection, "posts")
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope() as scope:
        before = posts.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
        for _ in range(5):
            run(connection, "SELECT * FROM posts")
        middle = posts.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
        assert [write.datastore for write in scope.lineage] == [NOTES]
        after = posts.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
    assert int(middle) - int(before) == 6
    assert int(after) - int(middle) == 2


def test_a_closed_connection_was_sampled_before(posts: Sql) -> None:
    """What its reads may have seen is known when it is given up in order."""
    with antipode.scope():
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    connection = beside(posts)
    with antipode.scope() as scope:
        run(connection, "SELECT * FROM posts")
        connection.close()
        assert [write.covering for write in scope.lineage] == [True]
        assert not scope.lineage.incomplete


def test_a_lost_connection_cannot_be_sampled(posts: Sql) -> None:
    """The lineage says so."""
    with antipode.scope():
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    connection = beside(posts)
    with antipode.scope() as scope:
        run(connection, "SELECT * FROM posts")
        posts.topology.execute(f"KILL {connection.thread_id()}")
        assert Incomplete(NOTES, "unsampled") in scope.lineage.incomplete


def test_an_unbuffered_result_counts_row_by_row(posts: Sql) -> None:
    """What was fetched so far is in the lineage, though rows are still to come."""
    writer = beside(posts)
    for key, cause in ((1, CAUSE), (2, OTHER)):
        with antipode.scope(Lineage([cause])):
            run(writer, "INSERT INTO posts VALUES (%s, 'a', 'b')", key)
    connection = beside(posts)
    with antipode.scope() as scope, connection.cursor(SSCursor) as cursor:
        cursor.execute("SELECT * FROM posts ORDER BY id")
        assert cursor.fetchone() == (1, "a", "b")
        assert CAUSE in scope.lineage
        assert OTHER not in scope.lineage
        assert cursor.fetchall() == [(2, "a", "b")]
        assert OTHER in scope.lineage


def test_reads_may_be_ignored(posts: Sql) -> None:
    """``on_read="ignore"``: what is found does not enter, and nothing is asked."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    assert found(posts, "SELECT * FROM posts", on_read="ignore").empty


def test_what_shows_no_rows_is_counted(posts: Sql) -> None:
    """An aggregate covers its read, and its rows' lineages are not silently left out."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    before = counted("unread_lineage")
    read = found(posts, "SELECT COUNT(*) FROM posts")
    assert [write.covering for write in read] == [True]
    assert counted("unread_lineage") == before + 1


@pytest.fixture
def seen(posts: Sql) -> Iterator[Sql]:
    """A view of the posts, and one of that."""
    execute = posts.topology.execute
    execute("CREATE OR REPLACE VIEW app.seen AS SELECT * FROM app.posts")
    execute("CREATE OR REPLACE VIEW app.above AS SELECT id FROM app.seen")
    yield posts
    execute("DROP VIEW app.above, app.seen")


@pytest.mark.parametrize("name", ["seen", "above"])
def test_what_is_read_through_a_view_is_counted(seen: Sql, name: str) -> None:
    """Its rows show no lineages, also through a view of a view; its position covers them."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(seen), "INSERT INTO posts VALUES (1, 'a', 'b')")
    before = counted("unread_lineage")
    read = found(seen, f"SELECT id FROM {name}")  # noqa: S608 - a name
    assert [write.covering for write in read] == [True]
    assert counted("unread_lineage") == before + 1


def test_what_is_written_through_a_view_keeps_its_lineage(seen: Sql) -> None:
    """Triggers of the table below it store the lineage."""
    connection = beside(seen)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO seen VALUES (1, 'a', 'b')")
    assert CAUSE in found(seen, "SELECT * FROM posts")


def test_a_table_that_was_not_migrated_is_an_error(posts: Sql) -> None:
    """It says what to run, at the first statement and at every later one."""
    connection = mysql.instrument_connection(
        posts.plain(), datastore=NOTES, lineage="beside", tables=["plain"]
    )
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="migration"):
            run(connection, "INSERT INTO plain VALUES (1, 'a', 'b')")


def test_uninstrumented_it_is_plain_again(posts: Sql) -> None:
    """The connection has its class and its results back."""
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    mysql.uninstrument_connection(connection)
    assert type(connection) is pymysql.connections.Connection
    assert run(connection, "SELECT * FROM posts") == [(1, "a", "b")]
    run(connection, "INSERT INTO posts VALUES (2, 'a', 'b')")
    assert texts(posts, 2) == []
