"""asyncpg on a primary and a standby: positions after commits, reads that wait."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, StaleSnapshot
from antipode_shims import postgresql
from antipode_testing import LagProxy, wait_until
from tests.integration._stale import doubtful, served
from tests.integration.postgresql._clients import DATASTORE, TAKE_NONE, Exchanges

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.postgresql._clients import Clients

asyncpg = pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")
UPDATE, READ = "UPDATE posts SET body = $1 WHERE id = 1", "SELECT body FROM posts WHERE id = 1"


@asynccontextmanager
async def connected(
    clients: Clients,
    *,
    replica: bool = False,
    plain: bool = False,
    address: Any = None,
    **options: Any,
) -> AsyncIterator[Any]:
    """A connection to the primary, or to the standby."""
    place = clients.topology.replica if replica else address
    connection = await asyncpg.connect(clients.topology.url(place), **options)
    try:
        if not plain:
            reads_from: Any = "replica" if replica else "primary"
            postgresql.instrument_connection(connection, datastore=DATASTORE, reads_from=reads_from)
        yield connection
        postgresql.uninstrument_connection(connection)
    finally:
        await connection.close()


async def fail(writer: Any, statement: str) -> None:
    """A transaction that writes and ends with an error."""
    async with writer.transaction():
        await writer.execute(UPDATE, "a")
        await writer.execute(statement)


async def test_a_read_at_the_standby_waits_for_the_write(clients: Clients) -> None:
    """By a transaction and without one, by a statement and a prepared one."""
    clients.topology.set_lag(100)
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        prepared = await reader.prepare(READ)
        for number, alone in enumerate((False, True, False, True)):
            with antipode.scope() as scope:
                if alone:
                    await writer.execute(UPDATE, str(number))
                else:
                    async with writer.transaction():
                        await writer.execute(UPDATE, str(number))
                        assert not scope.lineage
                (write,) = scope.lineage
                assert not scope.lineage.incomplete
                assert not write.covering
                await antipode.barrier_async(timeout=15, at="read" if number else "now")
                read = prepared.fetchval() if alone else reader.fetchval(READ)
                assert await read == str(number)


async def test_a_commit_costs_no_round_trip_more(clients: Clients) -> None:
    """Its questions go with it in one packet; a statement that commits on its own costs one."""
    heard: list[Any] = []
    with LagProxy(clients.topology.primary) as counted:
        for alone, more in ((False, 0), (True, 1)):
            cost = []
            for plain in (True, False):
                async with connected(clients, plain=plain, address=counted.address) as one:
                    one.add_log_listener(lambda _, message: heard.append(message))
                    exchanges = Exchanges(counted)
                    for _ in range(5):
                        with antipode.scope(), exchanges():
                            if alone:
                                await one.execute(UPDATE, "x")
                            else:
                                async with one.transaction():
                                    await one.execute(UPDATE, "x")
                cost.append(exchanges.fewest)
            assert cost[1] == cost[0] + more
    assert not heard


@pytest.mark.parametrize("mode", ["enforce", "off"])
async def test_commits_where_plpgsql_is_revoked(clients: Clients, mode: Any) -> None:
    """Nothing that a commit asks needs a right that the application's user has not got."""
    antipode.configure(mode=mode)
    clients.topology.execute("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
    try:
        async with connected(clients) as writer:
            for text in ("a", "b"):
                with antipode.scope() as scope:
                    async with writer.transaction():
                        await writer.execute(UPDATE, text)
                    (write,) = scope.lineage
                    assert not scope.lineage.incomplete
                    assert not write.covering
                assert await writer.fetchval(READ) == text
    finally:
        clients.topology.execute("GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC")


async def test_without_a_cache_nothing_stays_prepared(clients: Clients) -> None:
    """`statement_cache_size=0`, as for PgBouncer, holds for what the library asks, too."""
    clients.topology.set_lag(50)
    cacheless = {"statement_cache_size": 0}
    async with (
        connected(clients, **cacheless) as writer,
        connected(clients, replica=True, **cacheless) as reader,
    ):
        for number in ("1", "2"):
            with antipode.scope() as scope:
                await writer.execute(UPDATE, number)
                assert scope.lineage
                await antipode.barrier_async(timeout=15, at="read")
                assert await reader.fetchval(READ) == number
        for connection in (writer, reader):
            assert await connection.fetch("SELECT name FROM pg_prepared_statements") == []


async def test_what_was_not_committed_enters_nothing(clients: Clients) -> None:
    """A failed transaction, a constraint that fails at COMMIT, a read, bad arguments."""
    clients.topology.execute("DROP TABLE IF EXISTS late")
    clients.topology.execute("CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    clients.topology.execute(f"ALTER TABLE late OWNER TO {clients.topology.user}")
    async with connected(clients) as writer:
        with antipode.scope() as scope:
            for error, statement in (
                (asyncpg.DivisionByZeroError, "SELECT 1 / 0"),
                (asyncpg.UniqueViolationError, "INSERT INTO late VALUES (1), (1)"),
            ):
                with pytest.raises(error):
                    await fail(writer, statement)
            await writer.execute("BEGIN")
            await writer.execute(UPDATE, "a")
            with pytest.raises(asyncpg.DivisionByZeroError):
                await writer.execute("SELECT 1 / 0")
            assert await writer.execute("COMMIT") == "ROLLBACK"
            with pytest.raises(asyncpg.DataError):
                await writer.execute(UPDATE, 1)
            assert await writer.fetchval(READ) == ""
            assert not scope.lineage
            assert not scope.lineage.incomplete
    clients.topology.execute("DROP TABLE late")


async def test_a_value_that_is_not_sent_ends_no_transaction(clients: Clients) -> None:
    """The client raises a server's error for it: what was written before is recorded."""
    async with connected(clients) as writer:
        with antipode.scope() as scope:
            async with writer.transaction():
                await writer.execute(UPDATE, "kept")
                with pytest.raises(asyncpg.DataError):
                    await writer.execute(UPDATE, 1)
            (write,) = scope.lineage
            assert not write.covering
            assert not scope.lineage.incomplete
        assert await writer.fetchval(READ) == "kept"


async def test_a_read_after_a_value_that_is_not_sent_waits(clients: Clients) -> None:
    """In the same transaction at the standby."""
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        clients.topology.set_lag(100)
        with antipode.scope():
            async with reader.transaction():
                with pytest.raises(asyncpg.DataError):
                    await reader.fetchval("SELECT body FROM posts WHERE id = $1", "no number")
                await writer.execute(UPDATE, "new")
                await antipode.barrier_async(timeout=15, at="read")
                assert await reader.fetchval(READ) == "new"


@pytest.mark.parametrize("statement", ["SELEC 1", "SELECT 1 / 0"])
@pytest.mark.parametrize("prepared", [True, False])
async def test_a_failed_transaction_ends_as_without(
    clients: Clients, statement: str, *, prepared: bool
) -> None:
    """A caught error of the server's, of parsing or executing: COMMIT rolls back, silently."""
    for plain in (True, False):
        async with connected(clients, plain=plain) as writer:
            with antipode.scope() as scope:
                async with writer.transaction():
                    await writer.execute(UPDATE, "dropped")
                    with pytest.raises(asyncpg.PostgresError):
                        await (writer.fetch if prepared else writer.execute)(statement)
                assert not writer.is_in_transaction()
                assert not scope.lineage
                assert not scope.lineage.incomplete
            assert await writer.fetchval(READ) == ""


async def test_a_savepoint_takes_an_error_back(clients: Clients) -> None:
    """What the transaction writes before and after it is recorded."""
    async with connected(clients) as writer:
        with antipode.scope() as scope:
            async with writer.transaction():
                with pytest.raises(asyncpg.DivisionByZeroError):
                    async with writer.transaction():
                        await writer.fetch("SELECT 1 / 0")
                await writer.execute(UPDATE, "kept")
            (write,) = scope.lineage
            assert not write.covering
            assert not scope.lineage.incomplete


async def test_a_commit_that_is_not_flushed_is_in_doubt_until_it_is(clients: Clients) -> None:
    """synchronous_commit=off for one transaction: a crash would undo it."""
    clients.topology.config({"wal_writer_delay": "10s"})

    async def doubtful(writer: Any) -> bool:
        with antipode.scope() as scope:
            async with writer.transaction():
                await writer.execute("SET LOCAL synchronous_commit = off")
                await writer.execute(UPDATE, "a")
            return (DATASTORE, "in_doubt") in scope.lineage.incomplete

    async with connected(clients) as writer:
        assert any([await doubtful(writer) for _ in range(50)])  # Until the delay is in force.


async def test_snapshots_cursors_and_copies(clients: Clients) -> None:
    """REPEATABLE READ waits before its transaction or raises; so do cursors of the server."""
    clients.topology.set_lag(50)
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        with antipode.scope():
            await writer.execute(UPDATE, "a")
            await antipode.barrier_async(timeout=15, at="read")
            async with reader.transaction(isolation="repeatable_read"):
                assert await reader.fetchval(READ) == "a"
                await writer.execute(UPDATE, "b")
                await antipode.barrier_async(timeout=15, at="read")
                with pytest.raises(StaleSnapshot):
                    await reader.fetchval(READ)
            async with reader.transaction():
                cursor = await reader.cursor(READ)
                await writer.execute(UPDATE, "c")
                await antipode.barrier_async(timeout=15, at="read")
                with pytest.raises(StaleSnapshot):
                    await cursor.fetchrow()
                assert await reader.fetchval(READ) == "c"
        with antipode.scope() as scope:
            await writer.copy_records_to_table("posts", records=[(2, "copied")])
            assert len(scope.lineage) == 1
            await antipode.barrier_async(timeout=15, at="read")
            assert await reader.fetchval("SELECT body FROM posts WHERE id = 2") == "copied"


async def test_a_transaction_that_has_no_snapshot_yet_waits(clients: Clients) -> None:
    """Also where a statement is parsed first, which takes the snapshot, by itself or alone."""
    clients.topology.set_lag(50)
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        parsed = await reader.prepare(READ)
        assert await parsed.fetchval() == ""
        for number, how in enumerate(("parsed", "fetched", "prepared", "cursor")):
            async with reader.transaction(isolation="repeatable_read"):
                for statement in TAKE_NONE:
                    await reader.execute(statement)
                with antipode.scope():
                    await writer.execute(UPDATE, str(number))
                    await antipode.barrier_async(timeout=15, at="read")
                    assert await read(reader, parsed, how) == str(number)
                    await writer.execute(UPDATE, "later")
                    await antipode.barrier_async(timeout=15, at="read")
                    with pytest.raises(StaleSnapshot):
                        await reader.fetchval(READ)


async def read(reader: Any, parsed: Any, how: str) -> Any:
    """The row, by a statement that is *parsed* already or not."""
    if how == "parsed":
        return await parsed.fetchval()
    fresh = f"{READ} AND '{how}' = '{how}'"
    if how == "prepared":
        return await (await reader.prepare(fresh)).fetchval()
    if how == "cursor":
        return (await (await reader.cursor(fresh)).fetchrow())[0]
    return await reader.fetchval(fresh)


async def test_a_statement_that_was_parsed_before_the_write_has_the_snapshot(
    clients: Clients,
) -> None:
    """A text that was only parsed in the transaction, and never executed, took it."""
    async with (
        connected(clients) as writer,
        connected(clients, replica=True) as reader,
        reader.transaction(isolation="repeatable_read"),
    ):
        parsed = await reader.prepare(READ)
        with antipode.scope():
            await writer.execute(UPDATE, "a")
            await antipode.barrier_async(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                await parsed.fetchval()
        assert await parsed.fetchval() == ""


async def test_a_statement_that_is_only_parsed_keeps_a_transaction_open(clients: Clients) -> None:
    """The client leaves it to the next call to end it: under REPEATABLE READ its snapshot stays."""
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        await reader.execute("SET default_transaction_isolation = 'repeatable read'")
        for number in range(2):
            with antipode.scope():
                await writer.execute(UPDATE, f"{number}a")
                await antipode.barrier_async(timeout=15, at="read")
                assert await reader.fetchval(READ) == f"{number}a"
                parsed = await reader.prepare(f"{READ} AND {number} = {number}")
                await writer.execute(UPDATE, f"{number}b")
                await antipode.barrier_async(timeout=15)
                assert await parsed.fetchval() == f"{number}b"


async def test_a_read_is_given_up_where_the_standby_does_not_answer(clients: Clients) -> None:
    """Frozen while the read waits: the barrier's time ends it, not the client's patience."""
    async with connected(clients) as writer, connected(clients, replica=True) as reader:
        await reader.fetchval(READ)
        with antipode.scope():
            await writer.execute(UPDATE, "a")
            clients.topology.suspend_replica()
            await antipode.barrier_async(timeout=0.5, at="read")
            with pytest.raises(BarrierTimeout):
                await reader.fetchval(READ)
            clients.topology.resume_replica()


async def test_a_pool(clients: Clients) -> None:
    """Its connections are instrumented as it opens them; given back they cost nothing more."""

    async def instrument(connection: Any) -> None:
        postgresql.instrument_connection(connection, datastore=DATASTORE, reads_from="replica")

    def quiet() -> bool:  # The library polls for the held read over a connection of its own.
        return not any(each.name.startswith("antipode-") for each in threading.enumerate())

    clients.topology.set_lag(50)
    async with connected(clients) as writer:
        with LagProxy(clients.topology.replica) as counted:
            url = clients.topology.url(counted.address)
            async with asyncpg.create_pool(url, min_size=1, max_size=2, init=instrument) as pool:
                for number in range(3):
                    with antipode.scope() as scope:
                        await writer.execute(UPDATE, str(number))
                        before = scope.lineage
                        await antipode.barrier_async(timeout=15, at="read")
                        async with pool.acquire() as reader:
                            assert await reader.fetchval(READ) == str(number)
                            await asyncio.to_thread(
                                wait_until, quiet, what="the last poll", timeout_s=30
                            )
                            exchanges = counted.traffic().exchanges
                        assert counted.traffic().exchanges == exchanges + 1  # Its RESET ALL.
                        assert scope.lineage == before


async def test_a_promise_is_kept_with_its_data(clients: Clients) -> None:
    """Within a transaction; outside of one it is refused."""
    for statement in postgresql.promises_ddl():
        clients.topology.execute(statement)
    clients.topology.execute(f"ALTER TABLE antipode_promises OWNER TO {clients.topology.user}")
    async with connected(clients) as writer:
        with antipode.scope():
            promise = antipode.promise(DATASTORE, expires_in_s=60)
            with pytest.raises(ConfigurationError, match="no transaction"):
                await postgresql.fulfil_async(writer, promise)
            async with writer.transaction():
                await postgresql.fulfil_async(writer, promise)
            await antipode.barrier_async(timeout=15)
    clients.topology.execute("DROP TABLE antipode_promises")


async def test_undone_a_connection_is_as_before(clients: Clients) -> None:
    """It has the class and the protocol it had, and records nothing."""
    async with connected(clients, plain=True) as plain:
        kind, protocol = type(plain), plain._protocol
        postgresql.instrument_connection(plain, datastore=DATASTORE)
        postgresql.uninstrument_connection(plain)
        assert (type(plain), plain._protocol) == (kind, protocol)
        with antipode.scope() as scope:
            await plain.execute(UPDATE, "a")
            assert not scope.lineage


async def test_a_read_that_is_refused_is_not_counted_as_stale(clients: Clients) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    async with connected(clients, replica=True) as reader:
        for lineage in doubtful(DATASTORE):
            refused = pytest.raises(asyncpg.DivisionByZeroError)
            with served(DATASTORE, 0), antipode.scope(lineage), refused:
                await reader.fetch("SELECT 1 / (id - id) FROM posts")
            with served(DATASTORE, 1), antipode.scope(lineage):
                assert await reader.fetchval("SELECT id FROM posts") == 1
