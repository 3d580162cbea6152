"""Writes that no text and no count of rows shows: functions, sequences, tables without rollback."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("MySQLdb")

import MySQLdb
import pymysql

import antipode
from antipode import ConfigurationError
from antipode_shims import mysql

from ._clients import NOTES, TIMEOUT_S, counted, exchanges, run
from ._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.testing import LagProxy

    from ._clients import Sql

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pymysql.Warning")]


@pytest.fixture
def hidden(sql: Sql) -> Sql:
    """A function that writes, one that reads, and a table without transactions."""
    topology = sql.topology
    for statement in (
        "DROP FUNCTION IF EXISTS app.noting",
        """CREATE FUNCTION app.noting(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO app.notes VALUES (i, 'f'); RETURN i; END""",
        "DROP FUNCTION IF EXISTS app.reading",
        "CREATE FUNCTION app.reading(i INT) RETURNS INT NO SQL RETURN i",
        "DROP TABLE IF EXISTS app.loose, app.kept",
        "CREATE TABLE app.kept (id INT PRIMARY KEY)",
        "INSERT INTO app.kept VALUES (9)",
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


@pytest.fixture(params=CLIENTS)
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


def test_a_declared_function_costs_nothing(hidden: Sql, to_primary: LagProxy) -> None:
    """``readonly_functions`` names it: no question, no count; nor for what is built in."""
    connection = hidden.plain(to_primary.address)
    mysql.instrument_connection(connection, datastore=NOTES, readonly_functions=["Reading"])
    with antipode.scope() as scope:
        run(connection, "SELECT 1")
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
