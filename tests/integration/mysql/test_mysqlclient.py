"""Instrumented mysqlclient connections on real servers: a position behind each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import StaleSnapshot
from antipode_shims import mysql
from tests.integration._stale import doubtful, served

from ._clients import NOTES, TIMEOUT_S, exchanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import LagProxy

    from ._clients import Sql

MySQLdb: Any = pytest.importorskip("MySQLdb")
LAG_MS = 150
INSERT = "INSERT INTO notes VALUES (%s, 'a')"


@pytest.fixture
def connect(sql: Sql) -> Iterator[Callable[..., Any]]:
    """Open instrumented connections, to the primary by default."""
    made: list[Any] = []

    def build(address: Any = None, *, plain: bool = False, **options: Any) -> Any:
        place = address or sql.topology.primary
        one = MySQLdb.connect(
            host=place.host,
            port=place.port,
            user=sql.topology.user,
            password=sql.topology.password,
            database=sql.topology.database,
            **{"autocommit": True, **options},
        )
        made.append(one)
        if not plain:
            mysql.instrument_connection(one, datastore=NOTES)
            with antipode.scope():
                run(one, "SELECT 1")
        return one

    yield build
    for one in made:
        mysql.uninstrument_connection(one)
        one.close()


def run(connection: Any, statement: str, *args: Any) -> list[Any]:
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, args or None)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            rows = list(cursor.fetchall()) or rows
        return rows


def entries(scope: Any) -> list[tuple[str, int | str]]:
    """Keys and versions: exact on MariaDB, covering on MySQL."""
    return [(write.key, write.version) for write in scope.lineage]


def session(connection: Any) -> list[Any]:
    """A little of everything; what it returned and raised."""
    found: list[Any] = []
    for statement in (
        "DROP TABLE IF EXISTS native_notes",
        "CREATE TABLE native_notes (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
        "INSERT INTO native_notes (body) VALUES ('a'), ('b')",
        "UPDATE native_notes SET body = 'c' WHERE id = 1",
        "SELECT * FROM native_notes",
        "INSERT INTO native_notes VALUES (1, 'x')",
        "NO SUCH STATEMENT",
        "SELECT 1; DELETE FROM native_notes WHERE id = 1; SELECT 2",
        "DO 1",
    ):
        with connection.cursor() as cursor:
            try:
                count = cursor.execute(statement)
            except MySQLdb.Error as error:
                found.append((type(error), error.args))
                continue
            found.append((count, cursor.rowcount, cursor.lastrowid, cursor.fetchall()))
            found.append((connection.affected_rows(), connection.insert_id(), connection.info()))
            while cursor.nextset():
                found.append((cursor.rowcount, cursor.fetchall()))
    return found


def test_results_are_mysqlclients(connect: Callable[..., Any]) -> None:
    """Return values and exceptions are the plain client's."""
    expected = session(connect(plain=True))
    with antipode.scope() as scope:
        assert session(connect()) == expected
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete


def test_a_commit_that_wrote_costs_one_round_trip(
    sql: Sql, connect: Callable[..., Any], to_primary: LagProxy
) -> None:
    """A position is asked for behind it, and once whether what is read is a view that may write.

    Else reads and statements within cost nothing.
    """
    connection = connect(to_primary.address, autocommit=False)
    with antipode.scope() as scope, exchanges(to_primary) as made:
        run(connection, "SELECT * FROM notes")
        run(connection, INSERT, 1)
        connection.commit()
    assert made == [5]
    assert entries(scope) == [sql.position()]
    with antipode.scope() as scope, exchanges(to_primary) as made:
        run(connection, "SELECT * FROM notes")
        connection.commit()
        run(connection, INSERT, 2)
        connection.rollback()
    assert made == [4]
    assert not len(scope.lineage)


@pytest.mark.parametrize("autocommit", [True, False])
def test_every_way_to_commit_is_seen(
    sql: Sql, connect: Callable[..., Any], *, autocommit: bool
) -> None:
    """COMMIT, AND CHAIN, DDL, BEGIN, autocommit switched on, and errors that commit."""
    connection = connect(autocommit=autocommit)

    def fail() -> None:
        with pytest.raises(MySQLdb.Error):
            run(connection, "CREATE TABLE notes (id INT)")

    steps: list[Callable[[], Any]] = [
        connection.commit,
        lambda: run(connection, "COMMIT AND CHAIN"),
        lambda: run(connection, "CREATE TABLE IF NOT EXISTS notes_two (id INT)"),
        lambda: run(connection, "BEGIN"),
        fail,
        lambda: connection.autocommit(1),
    ]
    connection.autocommit(0)
    for number, step in enumerate(steps):
        with antipode.scope() as scope:
            run(connection, INSERT, number)
            before = entries(scope)
            assert not (before and sql.mariadb)  # MySQL tells of all that its server has.
            step()
            assert entries(scope) == [sql.position()] != before
    connection.autocommit(1)
    with antipode.scope() as scope:
        run(connection, "DELETE FROM notes")
        assert entries(scope) == [sql.position()]


def test_reads_after_a_barrier_are_never_stale(sql: Sql, connect: Callable[..., Any]) -> None:
    """The wait is on the connection that reads; an open snapshot raises."""
    writer, reader = connect(), connect(sql.topology.replica)
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert run(reader, "SELECT id FROM notes") == [(1,)]
        run(reader, "BEGIN")
        run(reader, "SELECT id FROM notes")
        run(writer, INSERT, 2)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            run(reader, "SELECT id FROM notes")
        reader.rollback()
        assert run(reader, "SELECT id FROM notes") == [(1,), (2,)]


def test_instrumenting_is_undoable(connect: Callable[..., Any]) -> None:
    """The object stays what it is, and is as before in the end."""
    connection = connect(plain=True)
    plain = type(connection)
    assert mysql.instrument_connection(connection, datastore=NOTES) is connection
    assert isinstance(connection, plain)
    mysql.uninstrument_connection(connection)
    assert type(connection) is plain
    with antipode.scope() as scope:
        run(connection, INSERT, 1)
        assert not len(scope.lineage)


def test_a_read_that_is_refused_is_not_counted_as_stale(connect: Callable[..., Any]) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    connection = connect()
    for lineage in doubtful(NOTES):
        with served(NOTES, 0), antipode.scope(lineage):
            with pytest.raises(MySQLdb.OperationalError):
                run(connection, "SELECT nothing FROM notes")
            connection.commit()
        with served(NOTES, 1), antipode.scope(lineage):
            run(connection, "SELECT id FROM notes")


@pytest.mark.parametrize(
    "ends", ["INSERT INTO notes VALUES (50, 'a'); COMMIT", "SELECT 1; ROLLBACK", "NO SUCH"]
)
def test_what_ended_is_not_refused(sql: Sql, connect: Callable[..., Any], ends: str) -> None:
    """Several statements of which the last ends the transaction, and what does not even parse."""
    connection, writer = connect(), sql.connect()
    with antipode.scope():
        if ends == "NO SUCH":
            with pytest.raises(MySQLdb.ProgrammingError):
                run(connection, "INSERT INTO notes VALUES")
            with pytest.raises(MySQLdb.ProgrammingError):
                run(connection, ends)
        else:
            run(connection, "BEGIN")
            run(connection, "SELECT id FROM notes")
            run(connection, ends)
        run(writer, INSERT, 7)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert (7,) in run(connection, "SELECT id FROM notes")
