"""SQLAlchemy's engines over each driver: each connection of their pools is instrumented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import antipode
from antipode import ConfigurationError
from antipode_shims import postgresql
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
READ = sa.text("SELECT body FROM posts WHERE id = 1")


def update(value: str) -> Any:
    """A statement that writes *value*."""
    return sa.text("UPDATE posts SET body = :body WHERE id = 1").bindparams(body=value)


def engines(clients: Clients, make: Any, driver: str) -> tuple[Any, Any]:
    """Instrumented engines at the primary and at the standby."""
    pytest.importorskip(driver)
    topology = clients.topology
    urls = [topology.url(each, driver=f"postgresql+{driver}") for each in (None, topology.replica)]
    writer, reader = make(urls[0]), make(urls[1])
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
