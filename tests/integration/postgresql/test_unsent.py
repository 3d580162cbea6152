"""Calls that the client ends itself, before the server has got a statement or all of its rows."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

import antipode
from antipode_shims import postgresql
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.integration.postgresql._clients import Clients

asyncpg = pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")
INSERT = "INSERT INTO posts VALUES (2, %s)"
#: Values that no dumper takes.
VALUES = (Jsonb(object()), "\ud800", object())


@pytest.mark.parametrize("value", VALUES, ids=["json", "surrogate", "unknown"])
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_value_that_psycopg_cannot_encode(
    clients: Clients, value: object, *, autocommit: bool
) -> None:
    """Nothing was sent, so nothing is in doubt; what comes after it is recorded."""
    writer = clients.writer(autocommit=autocommit)
    with antipode.scope() as scope:
        with pytest.raises((TypeError, UnicodeEncodeError, psycopg.ProgrammingError)):
            writer.execute(INSERT, (value,))
        assert not scope.lineage
        assert not scope.lineage.incomplete
        writer.execute(INSERT, ("x",))
        writer.commit()
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete


async def test_a_value_that_asynchronous_psycopg_cannot_encode(clients: Clients) -> None:
    """The same, of its asynchronous API; in a transaction that goes on and commits."""
    connection = await psycopg.AsyncConnection.connect(clients.topology.url())
    async with connection:
        postgresql.instrument_connection(connection, datastore=DATASTORE)
        with antipode.scope() as scope:
            await connection.execute(INSERT, ("x",))
            with pytest.raises(TypeError):
                await connection.execute(INSERT, (Jsonb(object()),))
            await connection.commit()
            assert len(scope.lineage) == 1
            assert not scope.lineage.incomplete
        postgresql.uninstrument_connection(connection)


def test_a_later_row_that_cannot_be_encoded(clients: Clients) -> None:
    """Rows before it were sent: whether they are committed nobody says."""
    writer = clients.writer(autocommit=True)
    with antipode.scope() as scope:
        with pytest.raises(TypeError), writer.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO posts VALUES (%s, %s)", [(2, "x"), (3, Jsonb(object()))]
            )
        assert (DATASTORE, "in_doubt") in scope.lineage.incomplete


@asynccontextmanager
async def connected(clients: Clients) -> AsyncIterator[Any]:
    """An instrumented connection of asyncpg."""
    made = await asyncpg.connect(clients.topology.url())
    postgresql.instrument_connection(made, datastore=DATASTORE)
    try:
        yield made
    finally:
        postgresql.uninstrument_connection(made)
        await made.close()


def rows() -> Iterator[tuple[int, str]]:
    """A row, and an error."""
    yield 2, "x"
    raise LookupError("source")


@pytest.mark.parametrize("within", [False, True])
async def test_a_source_of_copied_rows_that_fails(clients: Clients, *, within: bool) -> None:
    """The server undoes what it got of them: nothing is in doubt, and the connection goes on."""
    async with connected(clients) as one:
        with antipode.scope() as scope:
            block = one.transaction()
            if within:
                await block.start()
            with pytest.raises(LookupError):
                await one.copy_records_to_table("posts", records=rows())
            if within:
                await block.rollback()
            assert not scope.lineage
            assert not scope.lineage.incomplete
            await one.execute("INSERT INTO posts VALUES (2, 'y')")
            assert len(scope.lineage) == 1


async def test_rows_that_asyncpg_cannot_encode(clients: Clients) -> None:
    """The same, of a value."""
    async with connected(clients) as one:
        with antipode.scope() as scope:
            with pytest.raises(Exception, match="expected str"):
                await one.copy_records_to_table("posts", records=[(2, 3)])
            assert not scope.lineage
            assert not scope.lineage.incomplete
