"""asyncpg and psycopg2 by rules alone: the connections that an application or its pool makes."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode.shim import shims_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import PostgreSQLTopology

pytest.importorskip("psycopg")
asyncpg: Any = pytest.importorskip("asyncpg")
psycopg2: Any = pytest.importorskip("psycopg2")
pytest.importorskip("psycopg2.pool")
pytestmark = [
    pytest.mark.store("postgresql"),
    pytest.mark.usefixtures("covered"),
    pytest.mark.slow,
]
INSERT = "INSERT INTO drivers DEFAULT VALUES"
COUNT = "SELECT count(*) FROM drivers"


def by_psycopg2(url: str, sql: str) -> Any:
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0] if cursor.description else None


def by_pool_of_psycopg2(url: str, sql: str) -> Any:
    pool = psycopg2.pool.SimpleConnectionPool(1, 1, dsn=url)
    try:
        with pool.getconn() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        pool.closeall()


def by_asyncpg(url: str, sql: str) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(run())


def by_pool_of_asyncpg(url: str, sql: str) -> Any:
    async def run() -> Any:
        async with (
            asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
            pool.acquire() as connection,
            connection.transaction(),
        ):
            return await connection.fetchval(sql)

    return asyncio.run(run())


def by_sqlalchemy_on_psycopg2(url: str, sql: str) -> Any:
    sqlalchemy: Any = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg2:"))
    try:
        with engine.begin() as connection:
            found = connection.exec_driver_sql(sql)
            return found.scalar() if found.returns_rows else None
    finally:
        engine.dispose()


@pytest.fixture
def topology(antipode_postgresql: PostgreSQLTopology) -> PostgreSQLTopology:
    """A table, and rules that name the primary and its standby."""
    found = antipode_postgresql
    found.execute("DROP TABLE IF EXISTS drivers")
    found.execute("CREATE TABLE drivers (id serial PRIMARY KEY)")
    found.execute(f"ALTER TABLE drivers OWNER TO {found.user}")
    found.wait_replicated()
    near = f"{found.url(found.replica)}?reads_from=replica"
    antipode.configure(datastores={"shop": [found.url(), near]})
    return found


@pytest.mark.parametrize(
    "send",
    [by_psycopg2, by_pool_of_psycopg2, by_asyncpg, by_pool_of_asyncpg, by_sqlalchemy_on_psycopg2],
)
def test_a_write_enters_and_a_read_is_held(
    topology: PostgreSQLTopology, send: Callable[[str, str], Any]
) -> None:
    """Two lines of settings do it: no call names a connection."""
    near = topology.url(topology.replica)
    antipode.setup()
    topology.pause()
    with antipode.scope() as scope:
        try:
            send(topology.url(), INSERT)
            assert [write.datastore for write in scope.lineage] == ["shop"]
            antipode.barrier(at="read", timeout=0.2)
            with pytest.raises(antipode.BarrierTimeout):
                send(near, COUNT)
        finally:
            topology.resume()
        topology.wait_replicated()
        assert send(near, COUNT) == 1
    antipode.teardown()
    with antipode.scope() as scope:
        send(topology.url(), INSERT)
        assert scope.lineage == Lineage()


def test_a_connection_of_asyncpg_that_was_made_before(topology: PostgreSQLTopology) -> None:
    """It is found, and closed when it is closed; psycopg2 chooses a class as it connects."""

    async def run() -> int:
        connection = await asyncpg.connect(topology.url())
        antipode.setup()
        with antipode.scope() as scope:
            await connection.execute(INSERT)
            found = len(scope.lineage)
        await connection.close()
        return found

    assert asyncio.run(run()) == 1


@pytest.mark.ci
def test_what_a_call_says_goes_before_rules(topology: PostgreSQLTopology) -> None:
    """A connection that a factory of the library makes has the name that its call gave."""
    from antipode_shims import postgresql

    antipode.setup()
    factory = postgresql.connection_factory(datastore="named")
    with antipode.scope() as scope:
        with closing(psycopg2.connect(topology.url(), connection_factory=factory)) as connection:
            with connection, connection.cursor() as cursor:
                cursor.execute(INSERT)
            assert len(shims_of("named")) == 1
        assert [write.datastore for write in scope.lineage] == ["named"]


def test_connections_that_cannot_be_covered_are_said(
    topology: PostgreSQLTopology, caplog: pytest.LogCaptureFixture
) -> None:
    """psycopg2's with ``async_=1`` stay plain and work, and the log says why."""
    antipode.setup()
    connection = psycopg2.connect(topology.url(), async_=1)
    try:
        wait_for(connection)
        with connection.cursor() as cursor, antipode.scope() as scope:
            cursor.execute(INSERT)
            wait_for(connection)
            assert scope.lineage == Lineage()
    finally:
        connection.close()
    assert "async_=1" in caplog.text


def wait_for(connection: Any) -> None:
    import select

    while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
        read = state == psycopg2.extensions.POLL_READ
        select.select([connection] if read else [], [] if read else [connection], [], 30)
