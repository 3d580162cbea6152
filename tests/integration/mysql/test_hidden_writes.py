"""Writes that no text and no count of rows shows: functions, sequences, tables without rollback."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("MySQLdb")

import MySQLdb
import pymysql

import antipode
from antipode import ConfigurationError
from antipode_shims import mysql

from ._clients import NOTES, TIMEOUT_S, UNSAMPLED, counted, exchanges, run, writes_of
from ._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy

    from ._clients import Sql

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pairwise,
    pytest.mark.filterwarnings("ignore::pymysql.Warning"),
]


@pytest.fixture
def hidden(sql: Sql) -> Sql:
    """A function that writes, one that reads, and a table without transactions."""
    topology = sql.topology
    for statement in (
        "DROP FUNCTION IF EXISTS app.noting",
        """CREATE FUNCTION app.noting(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO app.notes VALUES (i, 'f'); RETURN i; END""",
        "CREATE OR REPLACE VIEW app.noted AS SELECT app.noting(1) AS id",
        "CREATE OR REPLACE VIEW app.above AS SELECT id FROM app.noted",
        "DROP FUNCTION IF EXISTS app.reading",
        "CREATE FUNCTION app.reading(i INT) RETURNS INT NO SQL RETURN i",
        "DROP FUNCTION IF EXISTS app.loosening",
        """CREATE FUNCTION app.loosening(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO app.loose VALUES (i); RETURN i; END""",
        "DROP TABLE IF EXISTS app.loose, app.kept",
        "CREATE TABLE app.kept (id INT PRIMARY KEY)",
        "INSERT INTO app.kept VALUES (9)",
        "DROP TABLE IF EXISTS app.mine",
        "CREATE TABLE app.mine (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
        *(("CREATE OR REPLACE SEQUENCE app.numbers NOCACHE",) if sql.mariadb else ()),
        f"CREATE TABLE app.loose (id INT PRIMARY KEY) ENGINE={'Aria' if sql.mariadb else 'MyISAM'}",
    ):
        topology.execute(statement)
    topology.wait_replicated()
    topology.set_lag(100)
    return sql


def shown(sql: Sql, statement: str) -> list[Any]:
    """What the replica shows once a barrier passed."""
    antipode.barrier(timeout=TIMEOUT_S)
    place = sql.topology.replica
    with contextlib.closing(sql.plain(place)) as plain:
        return run(plain, statement)


@pytest.fixture(params=[*CLIENTS, "untracked"])
def one(hidden: Sql, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """An instrumented connection to the primary of each client, and a shim of the replica."""
    hidden.replica()
    with contextlib.closing(Connection(hidden, request.param, tells=False)) as opened:
        yield opened


@pytest.mark.parametrize(
    "statements",
    [
        ["SELECT noting(1)"],
        ["SELECT app.`noting`(1) FROM (SELECT 1 AS a) d WHERE a IN (1)"],
        ["DELETE FROM kept WHERE noting(id - 8) = 2"],
        ["BEGIN", "SELECT noting(1)", "COMMIT"],
    ],
)
def test_what_a_function_writes_is_waited_for(
    hidden: Sql, one: Connection, statements: list[str]
) -> None:
    """A function that is not built in may write; it is counted, and the barrier waits."""
    before = counted("unknown_function")
    with antipode.scope() as scope:
        for statement in statements:
            one.run(statement)
        assert len(scope.lineage)
        assert not scope.lineage.incomplete
        assert shown(hidden, "SELECT id FROM notes") == [(1,)]
    assert counted("unknown_function") == before + 1


@pytest.mark.parametrize(
    "statements",
    [
        ["SELECT id FROM noted"],
        ["SELECT 1 AS a; SELECT id FROM noted"],
        ["SELECT * FROM (SELECT 1 AS a) d JOIN `app`.`above`"],
        ["BEGIN", "SELECT id FROM noted", "COMMIT"],
    ],
)
def test_what_a_view_writes_is_waited_for(
    hidden: Sql, one: Connection, statements: list[str]
) -> None:
    """A view calls a function that writes: neither the statement nor the reply says so."""
    with antipode.scope() as scope:
        one.run("SELECT id FROM kept")
        assert scope.lineage.empty
        for statement in statements:
            one.run(statement)
        assert len(scope.lineage)
        assert not scope.lineage.incomplete
        assert shown(hidden, "SELECT id FROM notes") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("INSERT INTO mine (body) VALUES ('a'); SELECT noting(1)", "notes"),
        ("INSERT INTO mine (body) VALUES ('a'); SELECT noting(1); SELECT 1", "notes"),
        ("INSERT INTO mine (body) VALUES ('a'); EXECUTE calling", "notes"),
        ("INSERT INTO mine (body) VALUES ('a'); INSERT INTO loose VALUES (1), (1)", "loose"),
    ],
    ids=["function", "more", "prepared", "failed"],
)
def test_a_statement_after_one_whose_position_came_is_waited_for(
    hidden: Sql, one: Connection, statement: str, table: str
) -> None:
    """The position of the first of several statements says nothing of what a later one wrote."""
    one.run("PREPARE calling FROM 'SELECT noting(1)'")
    with antipode.scope() as scope:
        with contextlib.suppress(pymysql.IntegrityError, MySQLdb.IntegrityError):
            one.run(statement)
        assert hidden.position() in [(write.key, write.version) for write in scope.lineage]
        assert not scope.lineage.incomplete
        assert shown(hidden, f"SELECT id FROM {table}") == [(1,)]  # noqa: S608 - a name


@pytest.mark.parametrize("statement", ["EXECUTE calling", "SELECT 1; EXECUTE calling"])
def test_a_prepared_function_is_waited_for(hidden: Sql, one: Connection, statement: str) -> None:
    """What a prepared statement does is not known: after its rows a position is asked for."""
    one.run("PREPARE calling FROM 'SELECT noting(1)'")
    one.run("INSERT INTO mine (body) VALUES ('a')")
    with antipode.scope() as scope:
        one.run(statement)
        assert hidden.position() in [(write.key, write.version) for write in scope.lineage]
        assert not scope.lineage.incomplete
        assert shown(hidden, "SELECT id FROM notes") == [(1,)]


def test_rows_that_an_error_leaves_are_waited_for(hidden: Sql, one: Connection) -> None:
    """The second row fails, and the first stays in a table without transactions."""
    with antipode.scope() as scope:
        with contextlib.suppress(pymysql.IntegrityError, MySQLdb.IntegrityError):
            one.run("INSERT INTO loose VALUES (1), (1)")
        assert len(scope.lineage)
        assert shown(hidden, "SELECT id FROM loose") == [(1,)]


def test_rows_that_a_rollback_leaves_are_waited_for(hidden: Sql, one: Connection) -> None:
    """A warning of the rollback says that there are some."""
    with antipode.scope() as scope:
        one.run("BEGIN")
        one.run("INSERT INTO loose VALUES (1)")
        one.run("ROLLBACK")
        assert len(scope.lineage)
        assert shown(hidden, "SELECT id FROM loose") == [(1,)]


def of_mariadb(statements: list[str]) -> bool:
    """Whether MySQL has no such statement, or refuses it where it numbers transactions."""
    return "RETURNING" in statements[1] or len(statements) > 2


@pytest.mark.pairwise(skips=lambda of: of["sql"] == "mysql" and of_mariadb(of["statements"]))
@pytest.mark.parametrize(
    "statements",
    [
        ["BEGIN", "INSERT INTO loose VALUES (1)"],
        ["SET autocommit = 0", "INSERT INTO loose VALUES (1)"],
        ["BEGIN", "INSERT INTO notes VALUES (1, 'x')", "INSERT INTO loose VALUES (1)"],
        ["BEGIN", "INSERT INTO loose VALUES (1) RETURNING id"],
        ["BEGIN", "INSERT INTO loose VALUES (1), (1)"],
        ["BEGIN", "SELECT loosening(1)"],
    ],
    ids=["begin", "autocommit", "mixed", "returning", "failed", "function"],
)
def test_what_no_rollback_undoes_is_waited_for_before_the_end(
    hidden: Sql, one: Connection, statements: list[str]
) -> None:
    """A table without transactions has a row at once, and a lineage that is used then has it."""
    if not hidden.mariadb and of_mariadb(statements):
        pytest.skip("MySQL has no such statement, or refuses it where it numbers transactions")
    with antipode.scope() as scope:
        for statement in statements:
            with contextlib.suppress(pymysql.IntegrityError, MySQLdb.IntegrityError):
                one.run(statement)
        assert len(scope.lineage)
        assert not scope.lineage.incomplete
        assert shown(hidden, "SELECT id FROM loose") == [(1,)]


@pytest.mark.pairwise(skips=lambda of: of["sql"] == "mysql")
@pytest.mark.parametrize(
    "statements",
    [
        ["SELECT NEXTVAL(numbers)"],
        ["SET @taken = NEXT VALUE FOR numbers", "SELECT @taken"],
    ],
    ids=["select", "set"],
)
@pytest.mark.parametrize("begin", ["SET autocommit = 1", "BEGIN"])
def test_a_number_of_a_sequence_is_waited_for(
    hidden: Sql, one: Connection, begin: str, statements: list[str]
) -> None:
    """No rollback gives it back, and the replica shows that it was taken."""
    if not hidden.mariadb:
        pytest.skip("MySQL has no sequences")
    one.run(begin)
    with antipode.scope() as scope:
        [(number,)] = [one.run(each) for each in statements][-1]
        if begin == "BEGIN":
            one.run("COMMIT")
        assert len(scope.lineage)
        assert not scope.lineage.incomplete
        ((following,),) = shown(hidden, "SELECT next_not_cached_value FROM numbers")
        assert following > number


@pytest.fixture
def native(hidden: Sql) -> Iterator[Connection]:
    """An open transaction of mysqlclient's, with a row that no rollback undoes."""
    hidden.replica()
    opened = Connection(hidden, "mysqlclient", tells=False)
    opened.run("BEGIN")
    yield opened
    with contextlib.suppress(MySQLdb.OperationalError):  # Closed, or lost.
        opened.close()


def test_another_thread_may_use_the_lineage(hidden: Sql, native: Connection) -> None:
    """It asks on the connection between two statements of the thread that has it."""
    with antipode.scope() as scope, ThreadPoolExecutor(1) as pool:
        for number in range(1, 4):
            native.run(f"INSERT INTO loose VALUES ({number})")  # noqa: S608 - a number
            found = pool.submit(lambda: scope.lineage).result()
            assert len(found)
            assert not found.incomplete
        assert len(shown(hidden, "SELECT id FROM loose")) == 3


def test_what_the_application_asks_of_its_statement_stays(native: Connection) -> None:
    """The library's question in between changes no count, number or text of the last one."""
    native.run("INSERT INTO mine (body) VALUES ('a'), ('b')")
    with antipode.scope() as scope:
        connection = native.connection
        connection.query("INSERT INTO mine (body) VALUES ('c'), ('d')")
        before = [connection.affected_rows(), connection.insert_id(), connection.info()]
        assert scope.lineage is not None
        assert [connection.affected_rows(), connection.insert_id(), connection.info()] == before
        connection.query("UPDATE mine SET body = 'e' LIMIT 1")
        assert connection.affected_rows() == 1


def test_each_write_is_asked_for_once_and_only_where_its_lineage_is_used(
    hidden: Sql, to_primary: LagProxy
) -> None:
    """A transaction that nobody looks into costs what it did: one question at its end."""
    options: dict[str, Any] = {"user": hidden.topology.user, "password": hidden.topology.password}
    place = to_primary.address
    connection = MySQLdb.connect(host=place.host, port=place.port, db="app", **options)
    mysql.instrument_connection(connection, datastore=NOTES)
    with contextlib.closing(connection), antipode.scope() as scope:
        run(connection, "SELECT 1")
        with exchanges(to_primary) as made:
            run(connection, "INSERT INTO notes VALUES (1, 'x')")
            run(connection, "INSERT INTO notes VALUES (2, 'x')")
        assert made == [2]
        with exchanges(to_primary) as made:
            assert scope.lineage.incomplete == scope.lineage.incomplete == frozenset()
        assert made == [1]
        with exchanges(to_primary) as made:
            connection.commit()
        assert made == [2]
        with exchanges(to_primary) as made:
            assert len(writes_of(scope.lineage)) == hidden.mariadb
        assert made == [0]


def test_a_lineage_used_while_rows_come_is_marked(native: Connection) -> None:
    """The connection cannot be asked before they are read."""
    with antipode.scope() as scope:
        native.run("INSERT INTO loose VALUES (1)")
        native.connection.query("SELECT id FROM kept")
        rows = native.connection.use_result()
        assert scope.lineage.incomplete == frozenset([UNSAMPLED])
        assert rows.fetch_row(0) == ((9,),)


def test_a_connection_closed_in_the_transaction_is_asked_before(
    hidden: Sql, native: Connection
) -> None:
    """What is in tables without transactions stays though the server rolls back."""
    with antipode.scope() as scope:
        native.run("INSERT INTO loose VALUES (1)")
        native.connection.close()
        assert len(scope.lineage)
        assert not scope.lineage.incomplete
        assert shown(hidden, "SELECT id FROM loose") == [(1,)]


def test_a_connection_lost_in_the_transaction_is_marked(hidden: Sql, native: Connection) -> None:
    """Nobody can be asked any more whether a row stayed."""
    with antipode.scope() as scope:
        native.run("INSERT INTO loose VALUES (1)")
        hidden.topology.execute(f"KILL {native.connection.thread_id()}")
        with pytest.raises(MySQLdb.OperationalError):
            native.run("SELECT 1")
        assert scope.lineage.incomplete == frozenset([UNSAMPLED])


def test_a_declared_function_costs_nothing(hidden: Sql, to_primary: LagProxy) -> None:
    """``readonly_functions`` names it: no question, no count; nor for what is built in."""
    connection = hidden.plain(to_primary.address)
    mysql.instrument_connection(connection, datastore=NOTES, readonly_functions=["Reading"])
    with antipode.scope() as scope:
        run(connection, "SELECT 1 FROM notes")
        before = counted("unknown_function")
        with exchanges(to_primary) as made:
            run(connection, "SELECT reading(1), COUNT(*), NOW() FROM notes")
        assert made == [1]
        assert counted("unknown_function") == before
        assert not len(scope.lineage)


def test_what_is_no_name_is_refused(sql: Sql) -> None:
    """One text, quotes and calls are no collection of names."""
    for wrong in ("reading", ["reading()"], ["`reading`"], [1]):
        with pytest.raises(ConfigurationError, match="readonly_functions"):
            mysql.instrument_connection(
                sql.plain(),
                datastore=NOTES,
                readonly_functions=wrong,  # type: ignore[arg-type]
            )
