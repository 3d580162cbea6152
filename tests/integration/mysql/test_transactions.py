"""Transactions on real servers: one entry, made at the commit; snapshots that are never stale."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import IncompleteLineage, StaleSnapshot
from antipode_testing import LagProxy

from ._clients import (
    IN_DOUBT,
    MULTI,
    TIMEOUT_S,
    TRACK,
    counted,
    exchanges,
    minted,
    run,
)

if TYPE_CHECKING:
    from ._clients import Sql

LAG_MS = 150
INSERT = "INSERT INTO notes VALUES (%s, 'a')"


@pytest.fixture(params=[True, False], ids=["autocommit", "no-autocommit"])
def connection(sql: Sql, request: pytest.FixtureRequest) -> Any:
    """A connection that commits by itself, and one that does not."""
    return sql.connect(autocommit=request.param)


@pytest.mark.parametrize("begin", ["BEGIN", "START TRANSACTION", "begin work /* now */"])
def test_a_transaction_is_one_entry_made_at_its_commit(
    sql: Sql, connection: Any, begin: str
) -> None:
    """Nothing enters before the COMMIT; then one position covers all of it."""
    with antipode.scope() as scope:
        run(connection, begin)
        run(connection, INSERT, 1)
        run(connection, INSERT, 2)
        assert not len(scope.lineage)
        run(connection, "COMMIT")
        assert minted(scope) == [sql.position()]
        assert not scope.lineage.incomplete


def test_what_is_rolled_back_leaves_nothing(connection: Any) -> None:
    """Neither ROLLBACK nor a rollback by the client enters anything."""
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        connection.rollback()
        connection.begin()
        run(connection, INSERT, 1)
        run(connection, "ROLLBACK")
        assert not len(scope.lineage)
        assert not scope.lineage.incomplete


def test_savepoints_keep_the_transaction_open(sql: Sql, connection: Any) -> None:
    """Rolling back to a savepoint commits nothing; what came before it is committed once."""
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        run(connection, "SAVEPOINT s")
        run(connection, INSERT, 2)
        run(connection, "ROLLBACK TO SAVEPOINT s")
        run(connection, "RELEASE SAVEPOINT s")
        assert not len(scope.lineage)
        connection.commit()
        assert minted(scope) == [sql.position()]
    assert run(connection, "SELECT id FROM notes") == [(1,)]


def test_commit_and_chain(sql: Sql, connection: Any) -> None:
    """The chained transaction is another one."""
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        run(connection, "COMMIT AND CHAIN")
        first = sql.position()
        assert minted(scope) == [first]
        run(connection, INSERT, 2)
        assert minted(scope) == [first]
        run(connection, "ROLLBACK AND CHAIN")
        run(connection, INSERT, 3)
        connection.commit()
        assert minted(scope) == [sql.position()]


def test_ddl_commits_what_is_open(sql: Sql, connection: Any) -> None:
    """A statement that commits implicitly brings the position of what was open, or a later one."""
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        run(connection, "CREATE TABLE IF NOT EXISTS other_notes (id INT)")
        run(connection, "DROP TABLE other_notes")
        assert minted(scope) == [sql.position()]


@pytest.mark.parametrize("flag", [0, TRACK])
def test_ddl_that_fails_commits_all_the_same(sql: Sql, flag: int) -> None:
    """The error has no position with it: it is asked for."""
    connection = sql.connect(client_flag=flag)
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        with pytest.raises(pymysql.Error, match="exists"):
            run(connection, "CREATE TABLE notes (id INT)")
        assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]


def test_beginning_again_commits_what_is_open(sql: Sql, connection: Any) -> None:
    """BEGIN within a transaction commits it."""
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        connection.begin()
        assert minted(scope) == [sql.position()]
        connection.rollback()


def test_autocommit_switched_on_commits(sql: Sql) -> None:
    """Switching autocommit on commits what is open, and says so."""
    connection = sql.connect(autocommit=False)
    with antipode.scope() as scope:
        run(connection, INSERT, 1)
        assert not len(scope.lineage)
        connection.autocommit(True)  # noqa: FBT003 - PyMySQL's
        assert minted(scope) == [sql.position()]


def test_a_transaction_that_writes_nothing_enters_nothing(connection: Any) -> None:
    """Read-only and empty transactions have no position."""
    with antipode.scope() as scope:
        for statement in ("START TRANSACTION READ ONLY", "BEGIN"):
            run(connection, statement)
            run(connection, "SELECT * FROM notes")
            connection.commit()
        run(connection, "UPDATE notes SET body = 'x'")
        connection.commit()
        assert not len(scope.lineage)
        assert not scope.lineage.incomplete


def test_the_scope_is_the_one_of_the_commit(sql: Sql, connection: Any) -> None:
    """A transaction belongs to the request that commits it."""
    with antipode.scope() as before:
        connection.begin()
        run(connection, INSERT, 1)
    with antipode.scope() as scope:
        connection.commit()
        assert minted(scope) == [sql.position()]
    assert not len(before.lineage)


def test_a_procedure_commits_as_its_reply_says(sql: Sql) -> None:
    """CALL brings the positions of whatever it committed."""
    sql.topology.execute("DROP PROCEDURE IF EXISTS app.write_notes")
    sql.topology.execute(
        "CREATE PROCEDURE app.write_notes() BEGIN INSERT INTO notes VALUES (1, 'a');"
        " SELECT 1; INSERT INTO notes VALUES (2, 'b'); END"
    )
    connection = sql.connect()
    with antipode.scope() as scope:
        with connection.cursor() as cursor:
            cursor.callproc("write_notes")
            assert cursor.fetchall() == ((1,),)
        assert minted(scope) == [sql.position()]


def test_a_procedure_that_fails_midway_is_sampled(sql: Sql) -> None:
    """What it had committed before its error has a position too."""
    sql.topology.execute("DROP PROCEDURE IF EXISTS app.fail_notes")
    sql.topology.execute(
        "CREATE PROCEDURE app.fail_notes() BEGIN INSERT INTO notes VALUES (1, 'a');"
        " INSERT INTO notes VALUES (1, 'b'); END"
    )
    connection = sql.connect()
    with antipode.scope() as scope:
        with pytest.raises(pymysql.IntegrityError):
            run(connection, "CALL fail_notes()")
        assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]


def test_several_statements_in_one_command(sql: Sql) -> None:
    """Each of them brings its own position; the last one stands for all."""
    connection = sql.connect(client_flag=TRACK | MULTI)
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a'); INSERT INTO notes VALUES (2, 'b')")
        assert minted(scope) == [sql.position()]
        run(connection, "BEGIN; INSERT INTO notes VALUES (3, ';'); COMMIT")
        assert minted(scope) == [sql.position()]


def test_rows_of_a_write_come_without_a_position(sql: Sql, to_primary: LagProxy) -> None:
    """MariaDB's RETURNING has no OK packet: one question more, behind the rows."""
    if not sql.mariadb:
        pytest.skip("MySQL has no RETURNING")
    connection = sql.connect(to_primary.address)
    with antipode.scope() as scope, exchanges(to_primary) as made:
        assert run(connection, "INSERT INTO notes VALUES (1, 'a') RETURNING id") == [(1,)]
        assert minted(scope) == [sql.position()]
    assert made == [2]


def test_two_phases_are_uncovered(sql: Sql) -> None:
    """What is prepared may be committed by anybody, at any time: no later position covers it."""
    connection = sql.connect()
    before = counted("uncovered_write")
    with antipode.scope() as scope:
        run(connection, "XA START 'x'")
        run(connection, INSERT, 1)
        run(connection, "XA END 'x'")
        run(connection, "XA PREPARE 'x'")
        assert scope.lineage.incomplete == {IN_DOUBT}
        assert not minted(scope), "the commit will have another position"
        with pytest.raises(IncompleteLineage):
            antipode.barrier(timeout=TIMEOUT_S)
        run(connection, "XA COMMIT 'x'")
        assert minted(scope) == [sql.position()]
    assert counted("uncovered_write") > before


@pytest.mark.parametrize("committed", ["x", "another"])
def test_the_position_of_what_is_prepared_is_not_that_of_its_commit(
    sql: Sql, committed: str
) -> None:
    """Where one call prepares and commits, nobody knows which of them a position is of."""
    connection = sql.connect(client_flag=MULTI | TRACK)
    with antipode.scope() as scope:
        run(connection, "XA START 'x'")
        run(connection, INSERT, 1)
        run(connection, "XA END 'x'")
        try:
            with nullcontext() if committed == "x" else pytest.raises(pymysql.err.OperationalError):
                run(connection, f"XA PREPARE 'x'; XA COMMIT '{committed}'")
            assert scope.lineage.incomplete == {IN_DOUBT}
        finally:
            if committed != "x":
                run(connection, "XA ROLLBACK 'x'")


def test_a_deadlock_leaves_no_write_behind_without_a_position(sql: Sql) -> None:
    """Behind an error nobody knows whether a transaction is open: the next write still enters."""
    connection = sql.connect(client_flag=0)
    with antipode.scope() as scope:
        connection.begin()
        run(connection, INSERT, 1)
        with pytest.raises(pymysql.IntegrityError):
            run(connection, INSERT, 1)
        run(connection, INSERT, 2)
        connection.commit()
        assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]


@pytest.mark.parametrize("opens", ["autocommit off", "BEGIN", "SNAPSHOT", "SERIALIZABLE"])
def test_a_snapshot_older_than_the_wait_is_never_read(sql: Sql, opens: str) -> None:
    """A transaction that read before the barrier raises; rolled back, it reads what it must."""
    writer, reader = sql.connect(), sql.replica(autocommit=opens != "autocommit off")
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        if opens == "SERIALIZABLE":
            run(reader, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        if opens == "SNAPSHOT":
            run(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        else:
            if opens != "autocommit off":
                reader.begin()
            assert run(reader, "SELECT * FROM notes") == []
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            run(reader, "SELECT id FROM notes")
        with pytest.raises(StaleSnapshot):
            run(reader, "SELECT COUNT(*) FROM notes")
        reader.rollback()
        assert run(reader, "SELECT id FROM notes") == [(1,)]
        assert run(reader, "SELECT id FROM notes") == [(1,)]


def test_a_snapshot_that_was_proved_elsewhere_meanwhile_is_still_old(sql: Sql) -> None:
    """A barrier that waited on another connection says nothing of this one's snapshot."""
    writer, reader = sql.connect(), sql.replica(autocommit=False)
    with antipode.scope():
        run(reader, "SELECT * FROM notes")
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S)
        with pytest.raises(StaleSnapshot):
            run(reader, "SELECT id FROM notes")
        reader.commit()
        assert run(reader, "SELECT id FROM notes") == [(1,)]


@pytest.mark.parametrize(
    "begin", ["BEGIN", "START TRANSACTION READ ONLY", "START TRANSACTION WITH CONSISTENT SNAPSHOT"]
)
def test_a_transaction_that_has_not_read_waits(sql: Sql, begin: str) -> None:
    """Before its snapshot there is time to wait; within it, nothing is asked again."""
    writer, reader = sql.connect(), sql.replica()
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        run(reader, begin)
        assert run(reader, "SELECT id FROM notes") == [(1,)]
        assert run(reader, "SELECT id FROM notes") == [(1,)]
        reader.commit()


def test_read_committed_waits_within_a_transaction(sql: Sql) -> None:
    """There each read has a snapshot of its own."""
    with LagProxy(sql.topology.replica) as proxy:
        writer = sql.connect()
        reader = sql.connect(proxy.address, reads_from="replica", autocommit=False)
        run(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        sql.topology.set_lag(LAG_MS)
        with antipode.scope():
            assert run(reader, "SELECT id FROM notes") == []
            run(writer, INSERT, 1)
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert run(reader, "SELECT id FROM notes") == [(1,)]
            with exchanges(proxy) as made:
                assert run(reader, "SELECT id FROM notes") == [(1,)]
            assert made == [1]


def test_isolation_of_one_transaction_is_not_trusted(sql: Sql) -> None:
    """READ COMMITTED of the session says nothing of a transaction that has its own."""
    writer, reader = sql.connect(), sql.replica()
    run(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    run(reader, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with antipode.scope():
        reader.begin()
        assert run(reader, "SELECT id FROM notes") == []
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            run(reader, "SELECT id FROM notes")


def test_session_values_open_no_snapshot(sql: Sql) -> None:
    """What a client asks of its session before the barrier leaves reads free to wait."""
    writer, reader = sql.connect(), sql.replica(autocommit=False)
    with antipode.scope():
        run(reader, "SELECT @@version, CONNECTION_ID()")
        run(reader, "SELECT 1")
        run(writer, INSERT, 1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert run(reader, "SELECT id FROM notes") == [(1,)]
