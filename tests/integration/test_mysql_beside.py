"""Lineages beside the rows of an application's own tables, through its own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from pymysql.cursors import DictCursor, SSCursor

import antipode
from antipode import ConfigurationError, Incomplete, Lineage, WriteId
from antipode.shim import stored_text
from antipode_shims import mysql
from tests.integration._mysql_clients import NOTES, STORES, Sql, counted, run

if TYPE_CHECKING:
    from collections.abc import Iterator

CAUSE = WriteId("posts", "log", 7, minted_h=500_000)
OTHER = WriteId("posts", "log2", 9, minted_h=500_000)


@pytest.fixture(params=STORES)
def sql(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """One of the two servers, with a table that was migrated."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    held = Sql(topology)
    admin = topology.execute
    where = topology.database
    if not held.mariadb:
        admin("SET GLOBAL log_bin_trust_function_creators = ON")
    for table in ("notes", "plain"):
        admin(f"DROP TABLE IF EXISTS {where}.{table}")
    admin(f"DROP TABLE IF EXISTS {where}.antipode_tombstone")
    for table in ("notes", "plain"):
        admin(f"CREATE TABLE {where}.{table} (id INT PRIMARY KEY, body TEXT, extra TEXT)")
    for statement in mysql.migration(f"{where}.notes"):
        admin(statement)
    topology.wait_replicated()
    yield held
    held.close()


def beside(sql: Sql, address: Any = None, **options: Any) -> Any:
    """A connection that keeps lineages beside notes."""
    on_read = options.pop("on_read", "merge")
    reads_from = options.pop("reads_from", "primary")
    connection = sql.plain(address, **options)
    return mysql.instrument_connection(
        connection,
        datastore=NOTES,
        reads_from=reads_from,
        lineage="beside",
        tables=["notes"],
        on_read=on_read,
    )


def texts(sql: Sql, key: int = 1) -> list[str]:
    """What lies beside a row."""
    where = sql.topology.database
    rows = sql.topology.execute(f"SELECT _ap FROM {where}.notes WHERE id = {key}")
    return [] if not rows or rows[0]["_ap"] is None else bytes(rows[0]["_ap"]).decode().split(",")


def found(sql: Sql, statement: str, **options: Any) -> Lineage:
    """What a reader of its own learns from a statement."""
    connection = beside(sql, **options)
    with antipode.scope():
        run(connection, statement)
        return antipode.current()


def test_a_reader_depends_on_the_writes_lineage(sql: Sql) -> None:
    """An insert stores the current lineage; who selects the row has it, and covers the write."""
    connection = beside(sql)
    with antipode.scope(Lineage([CAUSE])) as writer:
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
        (own,) = (write for write in writer.lineage if write.datastore == NOTES)
    read = found(sql, "SELECT body FROM notes WHERE id = 1")
    assert CAUSE in read
    (covering,) = (write for write in read if write.datastore == NOTES)
    assert covering.covering
    assert covering.key == own.key
    assert covering.version >= own.version
    assert not read.incomplete


@pytest.mark.parametrize("cursor", [pymysql.cursors.Cursor, DictCursor, SSCursor])
def test_results_are_the_plain_clients(sql: Sql, cursor: Any) -> None:
    """Rows, descriptions and counts have nothing that the application did not ask for."""
    writer = beside(sql)
    with antipode.scope(Lineage([CAUSE])):
        for key in range(3):
            run(writer, "INSERT INTO notes VALUES (%s, %s, NULL)", key, "x" * 300 * key)

    def results(connection: Any) -> list[Any]:
        seen: list[Any] = []
        for statement in (
            "SELECT * FROM notes ORDER BY 1",
            "SELECT extra, body, 1.5 FROM notes n WHERE id > 0 ORDER BY id DESC LIMIT 1",
            "SELECT n.id FROM notes n LEFT JOIN plain p ON p.id = n.id FOR UPDATE",
            "SELECT COUNT(*) FROM notes",
            "SELECT * FROM notes WHERE id = 9",
            "SELECT id FROM notes UNION SELECT 7",
            "INSERT INTO notes VALUES (5, 'e', 'f')",
            "UPDATE notes SET body = 'g' WHERE id = 5",
            "SELECT ROW_COUNT()",
            "DELETE FROM notes WHERE id = 5",
        ):
            with connection.cursor() as each:
                count = each.execute(statement)
                seen.append((count, each.description, each.fetchall(), each.rowcount))
        return seen

    with antipode.scope():
        expected = results(sql.plain(cursorclass=cursor))
        assert results(beside(sql, cursorclass=cursor)) == expected


def test_the_column_is_invisible(sql: Sql) -> None:
    """Readers and writers without the library see and do what they did."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    plain = sql.plain()
    assert run(plain, "SELECT * FROM notes") == [(1, "a", "b")]
    run(plain, "INSERT INTO notes VALUES (2, 'c', 'd')")
    before = counted("companion_absent")
    read = found(sql, "SELECT * FROM notes WHERE id = 2")
    assert CAUSE not in read
    assert counted("companion_absent") == before + 1


def test_a_full_replace_replaces(sql: Sql) -> None:
    """REPLACE leaves the new lineage alone; an upsert is an update and merges."""
    connection = beside(sql)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "REPLACE INTO notes VALUES (1, 'c', 'd')")
    assert texts(sql) == [stored_text(Lineage([OTHER]))]
    with antipode.scope(Lineage([CAUSE])):
        run(
            connection,
            "INSERT INTO notes VALUES (1, 'e', 'f') ON DUPLICATE KEY UPDATE body = VALUES(body)",
        )
    read = found(sql, "SELECT * FROM notes")
    assert CAUSE in read
    assert OTHER in read


def test_two_writers_of_two_columns(sql: Sql) -> None:
    """A partial update merges on the server: who reads either depends on both."""
    with antipode.scope():
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    for column, cause in (("body", CAUSE), ("extra", OTHER)):
        with antipode.scope(Lineage([cause])):
            run(beside(sql), f"UPDATE notes SET {column} = 'new' WHERE id = 1")
    read = found(sql, "SELECT extra FROM notes")
    assert CAUSE in read
    assert OTHER in read


def test_a_plain_update_keeps_the_older_lineage(sql: Sql) -> None:
    """Absent or older: what a writer without the library depended on is not known."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    run(sql.plain(), "UPDATE notes SET body = 'plain'")
    assert CAUSE in found(sql, "SELECT * FROM notes")


def test_bulk_writes(sql: Sql) -> None:
    """Every row that a statement touches has its lineage: executemany, INSERT ... SELECT, UPDATE."""
    connection = beside(sql)
    run(sql.plain(), "INSERT INTO plain VALUES (7, 'x', 'y'), (8, 'x', 'y')")
    with antipode.scope(Lineage([CAUSE])), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO notes VALUES (%s, 'a', 'b')", [(1,), (2,)])
        cursor.execute("INSERT INTO notes SELECT * FROM plain")
    with antipode.scope(Lineage([OTHER])):
        run(connection, "UPDATE notes SET body = 'z' WHERE id IN (2, 7)")
    for key, causes in ((1, {CAUSE}), (2, {CAUSE, OTHER}), (7, {CAUSE, OTHER}), (8, {CAUSE})):
        read = found(sql, f"SELECT * FROM notes WHERE id = {key}")
        assert {write for write in read if write.datastore == "posts"} == causes


def test_a_rolled_back_write_stores_nothing(sql: Sql) -> None:
    """The lineage lies in the row's own transaction."""
    connection = beside(sql)
    with antipode.scope():
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([CAUSE])):
        connection.begin()
        run(connection, "UPDATE notes SET body = 'x'")
        connection.rollback()
    assert CAUSE not in found(sql, "SELECT * FROM notes")


def test_a_delete_leaves_a_tombstone(sql: Sql) -> None:
    """Its lineage lies in a table of the same schema, for the horizon at least."""
    connection = beside(sql)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
        run(connection, "DELETE FROM notes WHERE id = 1")
    where = sql.topology.database
    (row,) = sql.topology.execute(f"SELECT * FROM {where}.antipode_tombstone")
    assert (bytes(row["t"]), bytes(row["k"])) == (b"notes", b"1")
    assert CAUSE in antipode.deserialize(bytes(row["l"]).decode())


def test_growth_is_bounded(sql: Sql) -> None:
    """A thousand partial updates leave little, and say that something is missing."""
    connection = beside(sql)
    with antipode.scope():
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
    for number in range(1000):
        cause = WriteId("posts", f"log{number}", number, minted_h=500_000)
        with antipode.scope(Lineage([cause])):
            run(connection, "UPDATE notes SET body = %s", str(number))
    assert len(",".join(texts(sql))) <= 1100
    read = found(sql, "SELECT * FROM notes")
    assert cause in read
    assert Incomplete(NOTES, "size") in read.incomplete


def test_a_lineage_of_one_store_is_small(sql: Sql) -> None:
    """At most 100 bytes beside a row."""
    connection = beside(sql)
    with antipode.scope():
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
        run(connection, "INSERT INTO notes VALUES (2, 'a', 'b')")
    (text,) = texts(sql, 2)
    assert 0 < len(text) <= 100


def test_nothing_is_asked_where_nobody_looks(sql: Sql) -> None:
    """A read adds a round trip only once its lineage is used, and one for all reads before."""
    connection = beside(sql)
    with antipode.scope():
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
    with antipode.scope() as scope:
        before = sql.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
        for _ in range(5):
            run(connection, "SELECT * FROM notes")
        middle = sql.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
        assert [write.datastore for write in scope.lineage] == [NOTES]
        after = sql.topology.execute("SHOW GLOBAL STATUS LIKE 'Questions'")[0]["Value"]
    assert int(middle) - int(before) == 6
    assert int(after) - int(middle) == 2


def test_a_closed_connection_was_sampled_before(sql: Sql) -> None:
    """What its reads may have seen is known when it is given up in order."""
    with antipode.scope():
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    connection = beside(sql)
    with antipode.scope() as scope:
        run(connection, "SELECT * FROM notes")
        connection.close()
        assert [write.covering for write in scope.lineage] == [True]
        assert not scope.lineage.incomplete


def test_a_lost_connection_cannot_be_sampled(sql: Sql) -> None:
    """The lineage says so."""
    with antipode.scope():
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    connection = beside(sql)
    with antipode.scope() as scope:
        run(connection, "SELECT * FROM notes")
        sql.topology.execute(f"KILL {connection.thread_id()}")
        assert Incomplete(NOTES, "unsampled") in scope.lineage.incomplete


def test_an_unbuffered_result_counts_row_by_row(sql: Sql) -> None:
    """What was fetched so far is in the lineage, though rows are still to come."""
    writer = beside(sql)
    for key, cause in ((1, CAUSE), (2, OTHER)):
        with antipode.scope(Lineage([cause])):
            run(writer, "INSERT INTO notes VALUES (%s, 'a', 'b')", key)
    connection = beside(sql)
    with antipode.scope() as scope, connection.cursor(SSCursor) as cursor:
        cursor.execute("SELECT * FROM notes ORDER BY id")
        assert cursor.fetchone() == (1, "a", "b")
        assert CAUSE in scope.lineage
        assert OTHER not in scope.lineage
        assert cursor.fetchall() == [(2, "a", "b")]
        assert OTHER in scope.lineage


def test_reads_may_be_ignored(sql: Sql) -> None:
    """``on_read="ignore"``: what is found does not enter, and nothing is asked."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    assert found(sql, "SELECT * FROM notes", on_read="ignore").empty


def test_what_shows_no_rows_is_counted(sql: Sql) -> None:
    """An aggregate covers its read, and its rows' lineages are not silently left out."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(sql), "INSERT INTO notes VALUES (1, 'a', 'b')")
    before = counted("unread_lineage")
    read = found(sql, "SELECT COUNT(*) FROM notes")
    assert [write.covering for write in read] == [True]
    assert counted("unread_lineage") == before + 1


def test_a_table_that_was_not_migrated_is_an_error(sql: Sql) -> None:
    """It says what to run, at the first statement and at every later one."""
    connection = mysql.instrument_connection(
        sql.plain(), datastore=NOTES, lineage="beside", tables=["plain"]
    )
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="migration"):
            run(connection, "INSERT INTO plain VALUES (1, 'a', 'b')")


def test_uninstrumented_it_is_plain_again(sql: Sql) -> None:
    """The connection has its class and its results back."""
    connection = beside(sql)
    with antipode.scope(Lineage([CAUSE])):
        run(connection, "INSERT INTO notes VALUES (1, 'a', 'b')")
    mysql.uninstrument_connection(connection)
    assert type(connection) is pymysql.connections.Connection
    assert run(connection, "SELECT * FROM notes") == [(1, "a", "b")]
    run(connection, "INSERT INTO notes VALUES (2, 'a', 'b')")
    assert texts(sql, 2) == []
