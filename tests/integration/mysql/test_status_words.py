"""What a server's flags say in the middle of a reply, or said long ago, closes no transaction."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("MySQLdb")

import antipode
from antipode import StaleSnapshot
from antipode_shims import mysql

from ._clients import NOTES, TIMEOUT_S, run
from ._sessions import CLIENTS, Connection

if TYPE_CHECKING:
    from ._clients import Sql

pytestmark = pytest.mark.slow

AWAITED = "SELECT id FROM notes WHERE id = 1"


def write_and_wait(sql: Sql) -> None:
    """Another client writes the row of :data:`AWAITED`, and a barrier waits for it at the read."""
    run(sql.connect(), "INSERT INTO notes VALUES (1, 'x')")
    antipode.barrier(timeout=TIMEOUT_S, at="read")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("statement", ["HELP 'x'", "EXECUTE IMMEDIATE 'HELP ''x'''"])
def test_help_within_a_transaction_leaves_its_snapshot(
    sql: Sql, client: str, statement: str
) -> None:
    """MariaDB says before its rows that no transaction is open; the read raises all the same."""
    if statement.startswith("EXECUTE") and not sql.mariadb:
        pytest.skip("MySQL prepares no such statement")
    opened = Connection(sql, client, tells=False)
    with contextlib.closing(opened) as one, antipode.scope():
        one.run("SET autocommit = 0")
        one.run("SELECT * FROM notes")
        one.run(statement)
        write_and_wait(sql)
        with pytest.raises(StaleSnapshot):
            one.run(AWAITED)
        one.run("ROLLBACK")
        assert one.run(AWAITED) == [(1,)]


@pytest.mark.parametrize("client", CLIENTS)
def test_autocommit_switched_where_rows_come_is_heard(sql: Sql, client: str) -> None:
    """A procedure that shows rows and switches autocommit off, and one that switches it on."""
    for name, value in (("off", 0), ("on", 1)):
        sql.topology.execute(f"DROP PROCEDURE IF EXISTS app.switches_{name}")
        sql.topology.execute(
            f"CREATE PROCEDURE app.switches_{name}() BEGIN SELECT 1; SET autocommit = {value}; END"
        )
    opened = Connection(sql, client, tells=False)
    with contextlib.closing(opened) as one, antipode.scope() as scope:
        one.run("CALL switches_off()")
        one.run("ROLLBACK")
        one.run("SELECT * FROM notes")
        write_and_wait(sql)
        with pytest.raises(StaleSnapshot):
            one.run(AWAITED)
        one.run("ROLLBACK")
        one.run("CALL switches_on()")
        before = scope.lineage
        one.run("UPDATE notes SET body = 'y'")
        assert scope.lineage != before


def test_a_transaction_that_was_open_before_is_known(sql: Sql) -> None:
    """PyMySQL keeps the flags of the last reply without rows, from before the read."""
    connection = sql.plain(autocommit=False)
    run(connection, "SELECT * FROM notes")
    mysql.instrument_connection(connection, datastore=NOTES)
    with antipode.scope():
        write_and_wait(sql)
        with pytest.raises(StaleSnapshot):
            run(connection, AWAITED)
        connection.rollback()
        assert run(connection, AWAITED) == [(1,)]
