"""A task that is cancelled after its write was committed, while the position is asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import Lineage
from antipode_shims import postgresql
from antipode_shims.postgresql._look import SAMPLE
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

asyncpg = pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")
WRITE = "INSERT INTO posts VALUES (2, 'new')"


async def connected(client: str, url: str) -> Any:
    """A connection that commits each statement by itself."""
    if client == "asyncpg":
        return await asyncpg.connect(url)
    return await psycopg.AsyncConnection.connect(url, autocommit=True)


@pytest.mark.parametrize("client", ["psycopg", "asyncpg"])
async def test_a_write_whose_question_is_cancelled_is_marked(
    clients: Clients, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is there, so its lineage says that a position is missing."""
    connection = await connected(client, clients.topology.url())
    postgresql.instrument_connection(connection, datastore=DATASTORE)
    kind, asked = type(connection), asyncio.Event()
    ask = kind._antipode_ask

    async def never_answered(self: Any, text: str) -> Any:
        if text == SAMPLE:
            asked.set()
            await asyncio.Event().wait()
        return await ask(self, text)

    monkeypatch.setattr(kind, "_antipode_ask", never_answered)
    with antipode.scope() as scope:
        task = asyncio.ensure_future(connection.execute(WRITE))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert scope.lineage == Lineage(incomplete=[(DATASTORE, "unsampled")])
    assert clients.topology.execute("SELECT body FROM posts WHERE id = 2")
    postgresql.uninstrument_connection(connection)
    await connection.close()
