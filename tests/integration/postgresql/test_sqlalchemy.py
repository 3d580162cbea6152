"""SQLAlchemy's engines over each driver: each connection of their pools is instrumented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import antipode
from antipode import ConfigurationError, Lineage
from antipode.shim import Incomplete
from antipode_shims import postgresql
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
READ = sa.text("SELECT body FROM posts WHERE id = 1")


def update(value: str) -> Any:
    """A statement that writes *value*."""
    return sa.text("UPDATE posts SET body = :body WHERE id = 1").bindparams(body=value)


def engines(clients: Clients, make: Any, driver: str, **options: Any) -> tuple[Any, Any]:
    """Instrumented engines at the primary and at the standby."""
    pytest.importorskip(driver)
    topology = clients.topology
    urls = [topology.url(each, driver=f"postgresql+{driver}") for each in (None, topology.replica)]
    writer, reader = (make(url, **options) for url in urls)
    postgresql.instrument_engine(writer, datastore=DATASTORE)
    postgresql.instrument_engine(reader, datastore=DATASTORE, reads_from="replica")
    return writer, reader


def fail(engine: Any) -> None:
    """A transaction that writes and ends with an error."""
    with engine.begin() as connection:
        connection.execute(update("x"))
        connection.execute(sa.text("SELECT 1 / 0"))


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_an_engine(clients: Clients, driver: str) -> None:
    """Commits have positions, reads of the pool wait, errors enter nothing; undoable."""
    writer, reader = engines(clients, sa.create_engine, driver)
    clients.topology.set_lag(50)
    for number in range(3):
        with antipode.scope() as scope:
            with writer.begin() as connection:
                connection.execute(update(str(number)))
                assert not scope.lineage
            (write,) = scope.lineage
            assert not write.covering
            antipode.barrier(timeout=15, at="read")
            with reader.connect() as connection:
                assert connection.execute(READ).scalar() == str(number)
            before = scope.lineage
            with pytest.raises(sa.exc.DBAPIError):
                fail(writer)
            assert scope.lineage == before
    with pytest.raises(ConfigurationError):
        postgresql.instrument_engine(writer, datastore="other")
    for engine in (writer, reader):
        postgresql.uninstrument_engine(engine)
    with antipode.scope() as scope:
        with writer.begin() as connection:
            connection.execute(update("x"))
        assert not scope.lineage
    for engine in (writer, reader):
        engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_an_asynchronous_engine(clients: Clients, driver: str) -> None:
    """The same by asyncio's connections."""
    writer, reader = engines(clients, create_async_engine, driver)
    clients.topology.set_lag(50)
    for number in range(3):
        with antipode.scope() as scope:
            async with writer.begin() as connection:
                await connection.execute(update(str(number)))
            assert len(scope.lineage) == 1
            await antipode.barrier_async(timeout=15, at="read")
            async with reader.connect() as connection:
                assert (await connection.execute(READ)).scalar() == str(number)
    for engine in (writer, reader):
        postgresql.uninstrument_engine(engine)
        await engine.dispose()


def in_two_phases(connection: Any, value: str) -> Lineage:
    """Write *value* so: prepared, it marks the lineage; committed, it has the position returned."""
    with antipode.scope() as scope:
        phases = connection.begin_twophase()
        connection.execute(update(value))
        assert not scope.lineage.incomplete
        phases.prepare()
        assert not len(scope.lineage)
        assert scope.lineage.incomplete == {Incomplete(DATASTORE, "in_doubt")}
        phases.commit()
        (write,) = scope.lineage
    assert not write.covering
    return Lineage([write])


def in_one_phase(connection: Any, value: str) -> Lineage:
    """Write *value* in a transaction that is never prepared; its lineage, which is complete."""
    with antipode.scope() as scope:
        phases = connection.begin_twophase()
        connection.execute(update(value))
        phases.commit()
        assert not scope.lineage.incomplete
    assert len(scope.lineage) == 1
    return scope.lineage


def read(connection: Any) -> Any:
    """The body that such a transaction reads."""
    phases = connection.begin_twophase()
    found = connection.execute(READ).scalar()
    phases.rollback()
    return found


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_two_phases(clients: Clients, driver: str) -> None:
    """Whatever commits has a position, and reads of such transactions wait for it."""
    writer, reader = engines(clients, sa.create_engine, driver, isolation_level="REPEATABLE READ")
    clients.topology.set_lag(50)
    for write in (in_two_phases, in_one_phase):
        with writer.connect() as connection:
            lineage = write(connection, write.__name__)
        with antipode.scope():
            antipode.barrier(lineage, timeout=15, at="read")
            with reader.connect() as connection:
                assert read(connection) == write.__name__
    for engine in (writer, reader):
        postgresql.uninstrument_engine(engine)
        engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_two_phases_asynchronously(clients: Clients, driver: str) -> None:
    """The same by asyncio's connections."""
    writer, reader = engines(
        clients, create_async_engine, driver, isolation_level="REPEATABLE READ"
    )
    clients.topology.set_lag(50)
    for write in (in_two_phases, in_one_phase):
        async with writer.connect() as connection:
            lineage = await connection.run_sync(write, write.__name__)
        with antipode.scope():
            await antipode.barrier_async(lineage, timeout=15, at="read")
            async with reader.connect() as connection:
                assert await connection.run_sync(read) == write.__name__
    for engine in (writer, reader):
        postgresql.uninstrument_engine(engine)
        await engine.dispose()
