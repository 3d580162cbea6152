"""Instrumented aiomysql connections on real servers: the same decisions, awaited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiomysql
import pymysql
import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, StaleSnapshot
from antipode_shims import mysql
from antipode_testing import LagProxy
from tests.integration._stale import doubtful, served

from ._clients import (
    IN_DOUBT,
    NOTES,
    TIMEOUT_S,
    TRACK,
    exchanges,
    minted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import Address

    from ._clients import Sql

TIMES = 30


class Opened:
    """An instrumented connection for one block, whose server is known already."""

    def __init__(self, sql: Sql, address: Address | None = None, **options: Any) -> None:
        self._sql, self._address = sql, address
        self._options: dict[str, Any] = {"autocommit": True, "client_flag": TRACK, **options}

    async def __aenter__(self) -> Any:
        place, topology = self._address or self._sql.topology.primary, self._sql.topology
        self._connection = await aiomysql.connect(
            host=place.host,
            port=place.port,
            user=topology.user,
            password=topology.password,
            db=topology.database,
            **self._options,
        )
        replica = place != topology.primary
        mysql.instrument_connection(
            self._connection, datastore=NOTES, reads_from="replica" if replica else "primary"
        )
        with antipode.scope():
            await run(self._connection, "SELECT 1")
        return self._connection

    async def __aexit__(self, *error: object) -> None:
        mysql.uninstrument_connection(self._connection)
        self._connection.close()


async def run(connection: Any, statement: str, *args: Any) -> list[Any]:
    """All rows of a statement."""
    async with connection.cursor() as cursor:
        await cursor.execute(statement, args or None)
        return list(await cursor.fetchall())


async def test_writes_mint_without_more_round_trips(sql: Sql, to_primary: LagProxy) -> None:
    """Autocommitted and in a transaction, with as many round trips as before."""
    async with Opened(sql, to_primary.address) as connection:
        with antipode.scope():
            await run(connection, "SELECT * FROM notes")  # Views are asked for now and then.
        with antipode.scope() as scope, exchanges(to_primary) as made:
            await run(connection, "INSERT INTO notes VALUES (1, 'a')")
            first = sql.position()
            assert minted(scope) == [first]
            await connection.begin()
            await run(connection, "UPDATE notes SET body = 'b'")
            assert minted(scope) == [first]
            await connection.commit()
            await run(connection, "SELECT * FROM notes")
        assert made == [5]
        assert minted(scope) == [sql.position()]


async def test_reads_after_a_barrier_are_never_stale(sql: Sql) -> None:
    """The wait is awaited on the connection that reads; other tasks go on meanwhile."""
    async with Opened(sql) as writer, Opened(sql, sql.topology.replica) as reader:
        sql.topology.pause()
        with antipode.scope():
            await run(writer, "INSERT INTO notes VALUES (1, 'a')")
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            reading = asyncio.create_task(run(reader, "SELECT body FROM notes"))
            for _ in range(4):
                await asyncio.sleep(0.005)
            assert not reading.done()
            sql.topology.resume()
            assert await reading == [("a",)]


async def test_a_read_that_cannot_be_met_in_time_raises(sql: Sql) -> None:
    """The connection goes on."""
    async with Opened(sql) as writer, Opened(sql, sql.topology.replica) as reader:
        sql.topology.pause()
        with antipode.scope():
            await run(writer, "INSERT INTO notes VALUES (1, 'a')")
            await antipode.barrier_async(timeout=0.3, at="read")
            with pytest.raises(BarrierTimeout):
                await run(reader, "SELECT body FROM notes")
        assert await run(reader, "SELECT body FROM notes") == []


async def test_an_old_snapshot_raises(sql: Sql) -> None:
    """As on synchronous connections."""
    async with (
        Opened(sql) as writer,
        Opened(sql, sql.topology.replica, autocommit=False) as reader,
    ):
        with antipode.scope():
            await run(reader, "SELECT * FROM notes")
            await run(writer, "INSERT INTO notes VALUES (1, 'a')")
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with pytest.raises(StaleSnapshot):
                await run(reader, "SELECT * FROM notes")
            await reader.rollback()
            assert await run(reader, "SELECT id FROM notes") == [(1,)]


@pytest.mark.parametrize("work", ["insert", "commit", "select"])
async def test_a_cancelled_call_is_in_doubt(sql: Sql, to_primary: LagProxy, work: str) -> None:
    """Cancelled in flight, a write or commit may have happened; a read leaves nothing."""
    async with Opened(sql, to_primary.address) as connection:
        calls: dict[str, Callable[[], Any]] = {
            "insert": lambda: run(connection, "INSERT INTO notes VALUES (2, 'b')"),
            "commit": connection.commit,
            "select": lambda: run(connection, "SELECT * FROM notes"),
        }
        with antipode.scope() as scope:
            if work == "commit":
                await connection.begin()
                await run(connection, "INSERT INTO notes VALUES (1, 'a')")
            to_primary.pause()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(calls[work](), 0.1)
            to_primary.resume()
            assert scope.lineage.incomplete == (set() if work == "select" else {IN_DOUBT})


async def test_a_cancelled_wait_leaves_nothing_in_doubt(sql: Sql) -> None:
    """What is cancelled while it is held back was never sent."""
    async with Opened(sql) as writer, Opened(sql, sql.topology.replica) as reader:
        sql.topology.pause()
        with antipode.scope() as scope:
            await run(writer, "INSERT INTO notes VALUES (1, 'a')")
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(run(reader, "SELECT * FROM notes"), 0.1)
            assert not scope.lineage.incomplete


async def test_a_connection_opens_again(sql: Sql, to_primary: LagProxy) -> None:
    """``ping`` opens a lost connection anew; it mints as before."""
    async with Opened(sql, to_primary.address) as connection:
        to_primary.cut()
        to_primary.heal()
        with antipode.scope() as scope:
            with pytest.raises(pymysql.Error):
                await run(connection, "SELECT * FROM notes")
            await connection.ping()
            await run(connection, "INSERT INTO notes VALUES (1, 'a')")
            assert minted(scope) == [sql.position()]


async def test_unbuffered_rows(sql: Sql) -> None:
    """SSCursor reads row by row; what it leaves is read before the next command."""
    async with Opened(sql, cursorclass=aiomysql.SSCursor) as connection:
        with antipode.scope() as scope:
            await run(connection, "INSERT INTO notes VALUES (1, 'a'), (2, 'b'), (3, 'c')")
            cursor = await connection.cursor()
            await cursor.execute("SELECT id FROM notes ORDER BY id")
            assert await cursor.fetchone() == (1,)
            await cursor.close()
            await run(connection, "DELETE FROM notes WHERE id = 3")
            assert minted(scope) == [sql.position()]


async def test_a_connection_without_tracking_pays_one_round_trip(
    sql: Sql, to_primary: LagProxy
) -> None:
    """One that was open before asks behind each commit that wrote."""
    async with Opened(sql, to_primary.address, client_flag=0) as connection:
        with antipode.scope() as scope, exchanges(to_primary) as made:
            await run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert made == [2]
        assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]


async def test_pooled_connections_of_two_servers(sql: Sql) -> None:
    """Each connection is judged by itself, however often they change places."""
    with LagProxy(sql.topology.replica) as proxy:
        async with (
            Opened(sql) as writer,
            Opened(sql, proxy.address) as far,
        ):
            sql.topology.set_lag(20)
            for number in range(TIMES):
                with antipode.scope():
                    await run(writer, "INSERT INTO notes VALUES (%s, 'a')", number)
                    await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                    for one in (far, writer):
                        seen = await run(one, "SELECT id FROM notes WHERE id = %s", number)
                        assert seen == [(number,)]


@pytest.mark.parametrize("module", ["asyncmy.connection", "mysql.connector.connection_cext"])
def test_clients_that_read_packets_in_c_are_refused(module: str) -> None:
    """No position can be seen there: the error names the clients that show them."""

    class Connection:
        """One of theirs, by its module."""

    Connection.__module__ = module
    with pytest.raises(ConfigurationError, match="aiomysql"):
        mysql.instrument_connection(Connection(), datastore=NOTES)


async def test_a_read_that_is_refused_is_not_counted_as_stale(sql: Sql) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    async with Opened(sql) as connection:
        for lineage in doubtful(NOTES):
            with served(NOTES, 0), antipode.scope(lineage), pytest.raises(pymysql.OperationalError):
                await run(connection, "SELECT nothing FROM notes")
            with served(NOTES, 1), antipode.scope(lineage):
                await run(connection, "SELECT id FROM notes")
