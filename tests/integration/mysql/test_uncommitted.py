"""What a request wrote in its own open transaction: who sees it, and what is counted."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

import antipode
from antipode_shims import mysql

from ._clients import NOTES, TIMEOUT_S, Sql, counted, run
from .test_client_async import Opened
from .test_client_async import run as run_async

if TYPE_CHECKING:
    from collections.abc import Callable

INSERT = "INSERT INTO notes VALUES (1, 'a')"
READ = "SELECT body FROM notes WHERE id = 1"
NAME = "read_before_commit"


def pymysql_connection(sql: Sql) -> Any:
    """One of PyMySQL."""
    return sql.connect()


def mysqlclient_connection(sql: Sql) -> Any:
    """One of mysqlclient."""
    client: Any = pytest.importorskip("MySQLdb")
    place, topology = sql.topology.primary, sql.topology
    one = client.connect(
        host=place.host,
        port=place.port,
        user=topology.user,
        password=topology.password,
        database=topology.database,
        autocommit=True,
    )
    mysql.instrument_connection(one, datastore=NOTES)
    return one


CLIENTS = pytest.mark.parametrize(
    "connect", [pymysql_connection, mysqlclient_connection], ids=["pymysql", "mysqlclient"]
)


@CLIENTS
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "DROP TABLE IF EXISTS never"])
def test_a_read_at_the_replica_before_the_commit(
    sql: Sql, connect: Callable[[Sql], Any], end: str
) -> None:
    """It is counted from the first write to the end of the transaction; a read within it is not."""
    replica = sql.replica()
    with closing(connect(sql)) as primary, antipode.scope():
        before = counted(NAME)
        run(primary, "BEGIN")
        run(primary, READ)
        run(replica, READ)
        assert counted(NAME) == before
        run(primary, INSERT)
        assert run(primary, READ)
        assert counted(NAME) == before
        assert not run(replica, READ)
        assert counted(NAME) == before + 1
        assert antipode.uncommitted() == {NOTES}
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        assert counted(NAME) == before + 2
        run(primary, end)
        assert antipode.uncommitted() == frozenset()
        antipode.barrier(timeout=TIMEOUT_S)
        assert bool(run(replica, READ)) == (end != "ROLLBACK")
        assert counted(NAME) == before + 2


@CLIENTS
def test_a_connection_that_is_closed_has_no_open_transaction(
    sql: Sql, connect: Callable[[Sql], Any]
) -> None:
    """Closed within its transaction, it rolled back: nothing of it is missed."""
    replica = sql.replica()
    with antipode.scope():
        before = counted(NAME)
        with closing(connect(sql)) as primary:
            run(primary, "BEGIN")
            run(primary, INSERT)
            assert antipode.uncommitted() == {NOTES}
        run(replica, READ)
        assert antipode.uncommitted() == frozenset()
    assert counted(NAME) == before


def test_a_connection_that_is_lost_has_no_open_transaction(sql: Sql) -> None:
    """Cut off within its transaction, it rolled back: nothing of it is missed."""
    primary, replica = sql.connect(), sql.replica()
    with antipode.scope():
        before = counted(NAME)
        run(primary, "BEGIN")
        run(primary, INSERT)
        sql.topology.execute(f"KILL {primary.thread_id()}")
        with pytest.raises(Exception, match=r"Lost connection|gone away|closed|killed"):
            run(primary, READ)
        run(replica, READ)
    assert counted(NAME) == before


def test_aiomysql(sql: Sql) -> None:
    """The same of asyncio's client, whose connection is closed in the end."""

    async def request() -> None:
        with antipode.scope():
            before = counted(NAME)
            async with Opened(sql) as primary, Opened(sql, sql.topology.replica) as replica:
                await primary.begin()
                await run_async(primary, INSERT)
                assert await run_async(primary, READ)
                assert counted(NAME) == before
                assert not await run_async(replica, READ)
                assert counted(NAME) == before + 1
                primary.close()
                await run_async(replica, READ)
                assert counted(NAME) == before + 1

    asyncio.run(request())


def test_a_session_that_routes_what_it_reads(sql: Sql) -> None:
    """SQLAlchemy's session that flushes to the primary is told, until its router asks for that."""
    options = {"connect_args": {"autocommit": False}}
    primary = sa.create_engine(sql.topology.url(), **options)
    replica = sa.create_engine(sql.topology.url(sql.topology.replica), **options)
    mysql.instrument_engine(primary, datastore=NOTES)
    mysql.instrument_engine(replica, datastore=NOTES, reads_from="replica")
    try:
        for routed, seen in ((False, 0), (True, 1)):
            with (
                antipode.scope(),
                primary.connect() as writer,
                replica.connect() as reader,
            ):
                before = counted(NAME)
                writer.execute(sa.text(INSERT))
                by = writer if routed and NOTES in antipode.uncommitted() else reader
                assert len(by.execute(sa.text(READ)).all()) == seen
                assert counted(NAME) == before + (not routed)
                writer.rollback()
    finally:
        for engine in (primary, replica):
            mysql.uninstrument_engine(engine)
            engine.dispose()
