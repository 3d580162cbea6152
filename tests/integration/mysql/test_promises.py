"""Promised writes on MySQL and MariaDB servers: fulfilled with the data, waited for anywhere."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy.orm import Session

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    Lineage,
    Promise,
    PromiseAbandoned,
    StaleSnapshot,
    Status,
)
from antipode_shims import mysql
from antipode_testing import wait_until

from ._clients import run
from ._promises import (
    STORE,
    Branches,
    floor,
    is_open,
    outcome,
    promised,
    write,
)

LAG_MS = 300


def test_a_read_waits_on_its_own_connection(branches: Branches) -> None:
    """Under a floor the SELECT is answered when its server has the record, and shows the data."""
    branches.topology.set_lag(LAG_MS)
    for _ in range(5):
        promise = promised()
        branches.refund(promise)
        with floor(promise):
            assert promise.id in branches.refunds()


def test_a_read_that_waits_does_not_open_its_own_snapshot(branches: Branches) -> None:
    """Looked for before it is fulfilled, by a session without autocommit, it is found later."""
    promise, before = promised(), _rollbacks(branches)
    found: list[bool] = []

    def read() -> None:
        # Taken before, or the request would wait without a connection.
        with branches.replica.connect() as connection, floor(promise):
            ids = connection.exec_driver_sql("SELECT id FROM refunds").scalars()
            found.append(promise.id in ids)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_until(lambda: _rollbacks(branches) > before + 3, what="a look", timeout_s=10)
    finally:
        branches.refund(promise)
        reader.join(20)
    assert found == [True]


def _rollbacks(branches: Branches) -> int:
    """How often the replica was told to; each look of such a session ends with one."""
    rows = branches.topology.execute("SHOW GLOBAL STATUS LIKE 'Com_rollback'", replica=0)
    return int(rows[0]["Value"])


def test_an_old_snapshot_is_refused(branches: Branches) -> None:
    """A transaction that reads from before the record cannot show its data: it raises."""
    promise = promised()
    with branches.replica.connect() as connection:
        connection.exec_driver_sql("SELECT COUNT(*) FROM refunds").scalar()
        branches.refund(promise)
        branches.topology.wait_replicated()
        with floor(promise), pytest.raises(StaleSnapshot):
            connection.exec_driver_sql("SELECT id FROM refunds").scalars().all()
        connection.rollback()
        with floor(promise):
            assert promise.id in connection.exec_driver_sql("SELECT id FROM refunds").scalars()


def test_a_transaction_that_began_reads_or_is_refused(branches: Branches) -> None:
    """Opened by BEGIN, it shows what is there; what comes later would never show, and raises."""
    there, late = promised(), promised()
    branches.refund(there)
    branches.topology.wait_replicated()
    for promise, expected in ((there, None), (late, StaleSnapshot)):
        with branches.replica.connect() as connection:
            raw = connection.connection.driver_connection
            raw.begin()
            with floor(promise):
                if expected is None:
                    assert promise.id in {row[0] for row in run(raw, "SELECT id FROM refunds")}
                else:
                    with pytest.raises(expected):
                        run(raw, "SELECT id FROM refunds")


def test_read_committed_waits_in_a_transaction(branches: Branches) -> None:
    """Where each read sees what was committed last, an open transaction waits as any other."""
    promise = promised()
    branches.topology.set_lag(LAG_MS)
    level = {"isolation_level": "READ COMMITTED"}
    with branches.replica.connect().execution_options(**level) as connection:
        connection.exec_driver_sql("SELECT COUNT(*) FROM refunds").scalar()
        branches.refund(promise)
        with floor(promise):
            assert promise.id in connection.exec_driver_sql("SELECT id FROM refunds").scalars()


def test_a_dirty_record_does_not_count(branches: Branches, unfinished: Any) -> None:
    """A reader that sees uncommitted rows waits for the commit, and passes after it."""
    promise = promised()
    reader = branches.engine(datastore=STORE)
    mysql.fulfil(unfinished, promise)
    level = {"isolation_level": "READ UNCOMMITTED"}
    with reader.connect().execution_options(**level) as dirty:
        with floor(promise, timeout=0.3), pytest.raises(BarrierTimeout) as caught:
            dirty.exec_driver_sql("SELECT id FROM refunds").scalars().all()
        assert "not committed" in str(caught.value.unmet[0].cause)
        unfinished.commit()
        with floor(promise):
            dirty.exec_driver_sql("SELECT id FROM refunds").scalars().all()


def test_a_rolled_back_transaction_fulfils_nothing(branches: Branches, unfinished: Any) -> None:
    """Neither before its rollback, on the primary itself, nor after it; the next attempt does."""
    promise = promised()
    mysql.fulfil(unfinished, promise)
    assert is_open(promise)
    unfinished.rollback()
    assert is_open(promise)
    with pytest.raises(RuntimeError), branches.primary.begin() as failing:
        _fail(failing, promise)
    assert is_open(promise)
    branches.refund(promise)
    assert outcome(promise).status is Status.VISIBLE


def _fail(connection: Any, promise: Promise) -> None:
    mysql.fulfil(connection, promise)
    raise RuntimeError("the worker fails")


def test_a_second_fulfilment_changes_nothing(branches: Branches, unfinished: Any) -> None:
    """The message was delivered again: by SQLAlchemy and by PyMySQL, which count rows otherwise."""
    promise = promised()
    branches.refund(promise)
    with branches.primary.begin() as again:
        mysql.fulfil(again, promise)
        mysql.fulfil(again, promise.token)
    mysql.fulfil(unfinished, promise)
    unfinished.commit()
    with unfinished.cursor() as cursor:
        mysql.fulfil(cursor, promise)
    unfinished.commit()
    assert outcome(promise).status is Status.VISIBLE


def test_abandoned_is_terminal(branches: Branches) -> None:
    """Who waits learns it at once; fulfilling it fails, and the data is rolled back with it."""
    promise = promised()
    assert antipode.abandon(promise)
    assert antipode.abandon(promise.token)
    with pytest.raises(DependencyLost) as caught:
        antipode.barrier(Lineage(promises=[promise]), timeout=10)
    assert caught.value.unmet[0].status is Status.ABANDONED
    with pytest.raises(PromiseAbandoned, match="abandoned"):
        branches.refund(promise)
    assert promise.id not in branches.refunds(branches.primary)
    with floor(promise), pytest.raises(DependencyLost):
        branches.refunds()


def test_abandoned_by_a_client_that_counts_changed_rows(
    branches: Branches, unfinished: Any
) -> None:
    """PyMySQL's own connections count otherwise than SQLAlchemy's: they refuse it as well."""
    promise = promised()
    assert antipode.abandon(promise)
    for _ in range(3):
        with pytest.raises(PromiseAbandoned):
            mysql.fulfil(unfinished, promise)
    unfinished.commit()  # Not even who commits all the same turns the record.
    with pytest.raises(PromiseAbandoned):
        mysql.fulfil(unfinished, promise)
    unfinished.rollback()
    assert outcome(promise).status is Status.ABANDONED
    assert branches.topology.execute("SELECT COUNT(*) AS n FROM app.antipode_promises")


def test_fulfilled_first_stays_fulfilled(branches: Branches, unfinished: Any) -> None:
    """An abandonment waits for the transaction that fulfils, and comes too late."""
    promise = promised()
    mysql.fulfil(unfinished, promise)
    answers: list[bool] = []
    other = threading.Thread(target=lambda: answers.append(antipode.abandon(promise, timeout=20)))
    other.start()
    try:
        wait_until(lambda: _blocked(branches), what="the abandonment to wait", timeout_s=10)
    finally:
        unfinished.commit()
        other.join(20)
    assert answers == [False]
    assert outcome(promise).status is Status.VISIBLE


def _blocked(branches: Branches) -> bool:
    rows = branches.topology.execute("SHOW FULL PROCESSLIST")
    return any("FALSE" in str(row["Info"]) for row in rows)


def test_without_a_transaction_it_is_refused(branches: Branches, unfinished: Any) -> None:
    """Where each statement commits by itself, nothing is recorded; behind BEGIN it is."""
    promise = promised()
    unfinished.autocommit(True)  # noqa: FBT003 - PyMySQL's own
    with pytest.raises(ConfigurationError, match="no transaction is open"):
        mysql.fulfil(unfinished, promise)
    alone = branches.primary.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as one, pytest.raises(ConfigurationError, match="no transaction"):
        mysql.fulfil(one, promise)
    assert is_open(promise)
    unfinished.begin()
    mysql.fulfil(unfinished, promise)
    unfinished.commit()
    assert outcome(promise).status is Status.VISIBLE


def test_a_transaction_that_an_error_ended_is_refused(branches: Branches, unfinished: Any) -> None:
    """A deadlock rolls back and the client's flags do not tell: the record would be alone."""
    promise = promised()
    unfinished.autocommit(True)  # noqa: FBT003 - PyMySQL's own
    unfinished.begin()
    run(unfinished, "INSERT INTO refunds VALUES ('deadlock')")
    branches.topology.execute(f"KILL QUERY {unfinished.thread_id()}")
    stale = unfinished.server_status
    run(unfinished, "ROLLBACK")
    unfinished.server_status = stale  # As after an error reply, which carries none.
    with pytest.raises(ConfigurationError, match="no transaction is open"):
        mysql.fulfil(unfinished, promise)
    assert is_open(promise)


def test_sessions_of_the_orm(branches: Branches) -> None:
    """A session is a handle as its connection is; its rollback takes the record along."""
    promise = promised()
    with Session(branches.primary) as session:
        write(session.connection(), promise)
        mysql.fulfil(session, promise)
        session.rollback()
        assert is_open(promise)
        write(session.connection(), promise)
        mysql.fulfil(session, promise)
        session.commit()
    assert outcome(promise).status is Status.VISIBLE
