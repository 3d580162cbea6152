"""Promises that are fulfilled in the application's transaction, and asked for at the standby."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, PromiseAbandoned, UnmetError
from antipode_shims import postgresql
from tests.integration.postgresql._clients import DATASTORE, body

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"


@pytest.fixture(autouse=True)
def _table(clients: Clients) -> Any:
    """The table of promises, of the application's user."""
    topology = clients.topology
    for statement in postgresql.promises_ddl():
        topology.execute(statement)
    topology.execute(f"ALTER TABLE antipode_promises OWNER TO {topology.user}")
    topology.wait_replicated()
    yield
    topology.execute("DROP TABLE IF EXISTS antipode_promises")


def promised() -> Any:
    """A promise of a branch on the datastore of the tests."""
    return antipode.promise(DATASTORE, expires_in_s=60)


def test_a_promise_is_fulfilled_with_its_data(clients: Clients) -> None:
    """Not before the commit, and not by a rollback; barriers and reads wait for the record."""
    writer, reader = clients.writer(), clients.reader(autocommit=True)
    clients.topology.set_lag(50)
    with antipode.scope():
        promise = promised()
        writer.execute(UPDATE, ("lost",))
        postgresql.fulfil(writer, promise)
        writer.rollback()
        with pytest.raises(BarrierTimeout):
            antipode.barrier(timeout=0.3)
        antipode.barrier(timeout=15, at="read")

        def branch() -> None:
            writer.execute(UPDATE, ("kept",))
            postgresql.fulfil(writer.cursor(), promise.token)
            postgresql.fulfil(writer, promise)
            writer.commit()

        thread = threading.Thread(target=branch)
        thread.start()
        assert body(reader) == "kept"
        thread.join()
        antipode.barrier(timeout=15)


def test_an_abandoned_promise_is_refused(clients: Clients) -> None:
    """Whoever waits is told, and the branch cannot fulfil it any more."""
    writer = clients.writer()
    clients.reader()
    with antipode.scope():
        promise = promised()
        antipode.abandon(promise, timeout=15)
        with pytest.raises(PromiseAbandoned):
            postgresql.fulfil(writer, promise)
        writer.rollback()
        with pytest.raises(UnmetError):
            antipode.barrier(timeout=15)


def test_what_would_record_it_alone_is_refused(clients: Clients) -> None:
    """Without a transaction, without the table, of another datastore."""
    with antipode.scope():
        promise = promised()
        with pytest.raises(ConfigurationError, match="autocommit"):
            postgresql.fulfil(clients.writer(autocommit=True), promise)
        other = clients.plain()
        postgresql.instrument_connection(other, datastore="other")
        with pytest.raises(ConfigurationError, match="other"):
            postgresql.fulfil(other, promise)
        clients.topology.execute("DROP TABLE antipode_promises")
        with pytest.raises(ConfigurationError, match="migration --promises"):
            postgresql.fulfil(clients.writer(), promise)


async def test_an_asynchronous_branch(clients: Clients) -> None:
    """The same by psycopg's asyncio connections."""
    clients.reader()
    async with await psycopg.AsyncConnection.connect(clients.topology.url()) as writer:
        postgresql.instrument_connection(writer, datastore=DATASTORE)
        with antipode.scope():
            promise = promised()
            await postgresql.fulfil_async(writer, promise)
            await writer.commit()
            await antipode.barrier_async(timeout=15)
            with pytest.raises(ConfigurationError):
                postgresql.fulfil(writer, promise)
        postgresql.uninstrument_connection(writer)
