"""Behind PgBouncer: what works as without it, what has to be stated, what is refused."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, StaleSnapshot, VisibilityCheckError
from antipode_shims import postgresql
from tests.integration._balancers import haproxy, pgbouncer
from tests.integration.postgresql._clients import DATASTORE, REPEATABLE, body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import Address, PostgreSQLTopology
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
UPDATE = "UPDATE posts SET body = '{}' WHERE id = 1"
READ = "SELECT body FROM posts WHERE id = 1"
#: Clients besides the one that is tested, so that its statements change connections.
STRANGERS = 3


@contextmanager
def pooled(topology: PostgreSQLTopology, server: Address, mode: str) -> Iterator[Address]:
    """PgBouncer before *server*, whose connections are in use by others, too."""
    with (
        pgbouncer(server, user=topology.user, password=topology.password, mode=mode) as address,
        ExitStack() as opened,
    ):
        others = [
            opened.enter_context(psycopg.connect(topology.url(address))) for _ in range(STRANGERS)
        ]
        for other in others:
            other.execute("SELECT 1")  # Each has a connection to the server to itself.
        if mode == "transaction":
            for other in others:
                other.commit()
        yield address


def run(connection: Any, sql: str) -> Any:
    """The first value that *sql* returns, in a transaction of its own."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        found = cursor.fetchone() if cursor.description else None
    connection.commit()
    return found and found[0]


@contextmanager
def by_psycopg(url: str, *, autocommit: bool, **options: Any) -> Iterator[Callable[[str], Any]]:
    """What runs a statement, in a transaction of its own, and returns its first value."""
    with psycopg.connect(url, autocommit=autocommit) as connection:
        postgresql.instrument_connection(connection, **options)
        yield partial(run, connection)
        postgresql.uninstrument_connection(connection)


@contextmanager
def by_psycopg2(url: str, *, autocommit: bool, **options: Any) -> Iterator[Callable[[str], Any]]:
    """The same."""
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(url, connection_factory=postgresql.connection_factory(**options))
    connection.autocommit = autocommit
    yield partial(run, connection)
    connection.close()


def sqlalchemy_url(url: str) -> str:
    """The URL for SQLAlchemy, over psycopg."""
    return url.replace("postgresql:", "postgresql+psycopg:")


@contextmanager
def by_sqlalchemy(url: str, *, autocommit: bool, **options: Any) -> Iterator[Callable[[str], Any]]:
    """The same, from a pool."""
    from sqlalchemy import create_engine, text

    level: Any = {"isolation_level": "AUTOCOMMIT"} if autocommit else {}
    engine = create_engine(sqlalchemy_url(url), **level)
    postgresql.instrument_engine(engine, **options)

    def run(sql: str) -> Any:
        with engine.begin() as connection:
            result = connection.execute(text(sql))
            return result.scalar() if result.returns_rows else None

    yield run
    postgresql.uninstrument_engine(engine)
    engine.dispose()


CLIENTS = {"psycopg": by_psycopg, "psycopg2": by_psycopg2, "sqlalchemy": by_sqlalchemy}


@pytest.mark.slow
@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("client", CLIENTS)
def test_reads_wait_where_it_leads_to_one_server(
    clients: Clients, client: str, mode: str, *, autocommit: bool
) -> None:
    """Each write has its position, and each read at the standby shows it, in either mode."""
    topology, connected = clients.topology, CLIENTS[client]
    topology.set_lag(20)
    found: Counter[bool] = Counter()
    with (
        pooled(topology, topology.primary, mode) as primary,
        pooled(topology, topology.replica, mode) as standby,
        connected(topology.url(primary), autocommit=autocommit, datastore=DATASTORE) as write,
        connected(
            topology.url(standby),
            autocommit=autocommit,
            datastore=DATASTORE,
            reads_from="replica",
            one_server=True,
        ) as read,
    ):
        for number in range(10):
            with antipode.scope() as scope:
                write(UPDATE.format(number))
                assert len(scope.lineage) == 1
                assert not scope.lineage.incomplete
                antipode.barrier(timeout=15, at="read" if number % 2 else "now")
                found[read(READ) == str(number)] += 1
    assert found == {True: 10}


@pytest.mark.slow
async def test_asyncpg_without_its_cache(clients: Clients) -> None:
    """As PgBouncer's own documents have it; in a transaction and without one."""
    asyncpg = pytest.importorskip("asyncpg")
    topology = clients.topology
    topology.set_lag(20)
    with (
        pooled(topology, topology.primary, "transaction") as primary,
        pooled(topology, topology.replica, "transaction") as standby,
    ):
        writer = await asyncpg.connect(topology.url(primary), statement_cache_size=0)
        reader = await asyncpg.connect(topology.url(standby), statement_cache_size=0)
        try:
            postgresql.instrument_connection(writer, datastore=DATASTORE)
            postgresql.instrument_connection(
                reader, datastore=DATASTORE, reads_from="replica", one_server=True
            )
            for number in range(10):
                with antipode.scope() as scope:
                    if number % 2:
                        await writer.execute(UPDATE.format(number))
                    else:
                        async with writer.transaction():
                            await writer.execute(UPDATE.format(number))
                    assert len(scope.lineage) == 1
                    await antipode.barrier_async(timeout=15, at="read")
                    assert await reader.fetchval(READ) == str(number)
        finally:
            for each in (writer, reader):
                postgresql.uninstrument_connection(each)
                await each.close()


@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_reads_are_refused_where_several_servers_may_answer(
    clients: Clients, mode: str, *, autocommit: bool
) -> None:
    """Unless it is stated that one does: another one may be read than was asked.

    The error says what to state. Reads that depend on nothing go their way.
    """
    topology = clients.topology
    topology.pause_applier()
    with (
        haproxy(topology.primary, topology.replica) as balancer,
        pooled(topology, balancer, mode) as address,
    ):
        writer = clients.writer(autocommit=True)
        for one_server in (None, False):
            reader = clients.reader(address, autocommit=autocommit, one_server=one_server)
            with antipode.scope():
                assert body(reader) in ("", "new")
                reader.rollback()
                writer.execute(UPDATE.format("new"))
                for _ in range(4):
                    antipode.barrier(timeout=15, at="read")
                    with pytest.raises(ConfigurationError, match="one_server=True"):
                        body(reader)
                    reader.rollback()
                with pytest.raises(VisibilityCheckError, match="pooler"):
                    antipode.barrier(timeout=15)


def test_what_a_read_may_have_seen_is_not_known(clients: Clients) -> None:
    """Where several servers may answer: a read of Table 2 marks its lineage."""
    topology = clients.topology
    tables = clients.plain(autocommit=True)
    for statement in postgresql.ddl():
        tables.execute(statement)
    with (
        closing(postgresql.shim(DATASTORE, sqlalchemy_url(topology.url()))) as writer,
        antipode.scope(),
    ):
        writer.write("k", b"v")
    topology.wait_replicated()
    with pooled(topology, topology.replica, "transaction") as address:
        url = sqlalchemy_url(topology.url(address))
        for one_server, marks in ((None, {(DATASTORE, "unsampled")}), (True, set())):
            with closing(
                postgresql.shim(DATASTORE, url, reads_from="replica", one_server=one_server)
            ) as reader:
                value, lineage = reader.read("k")
            assert value == b"v"
            assert lineage.incomplete == marks
    tables.execute("DROP TABLE antipode_kv, antipode_tombstone")


def test_a_pooler_hides_whether_there_is_a_snapshot(clients: Clients) -> None:
    """A read in a REPEATABLE READ transaction that was begun before the write is refused."""
    topology = clients.topology
    with pooled(topology, topology.replica, "transaction") as address:
        writer = clients.writer(autocommit=True)
        reader = clients.reader(address, autocommit=True, one_server=True)
        reader.execute(REPEATABLE)
        with antipode.scope():
            writer.execute(UPDATE.format("new"))
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                body(reader)
            reader.execute("ROLLBACK")
            assert body(reader) == "new"


def test_a_standby_that_stays_behind_ends_the_read(clients: Clients) -> None:
    """By the barrier's time; the client's connection to PgBouncer is as usable as before."""
    topology = clients.topology
    with pooled(topology, topology.replica, "transaction") as address:
        writer = clients.writer(autocommit=True)
        reader = clients.reader(address, autocommit=True, one_server=True)
        topology.pause_applier()
        with antipode.scope():
            writer.execute(UPDATE.format("new"))
            antipode.barrier(timeout=0.2, at="read")
            with pytest.raises(BarrierTimeout):
                body(reader)
        topology.resume_applier()
        with antipode.scope():
            writer.execute(UPDATE.format("newer"))
            antipode.barrier(timeout=15, at="read")
            assert body(reader) == "newer"
