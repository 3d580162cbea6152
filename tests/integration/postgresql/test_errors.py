"""Errors of the server reach the application as its client raises them, whoever asked first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode_shims import postgresql
from antipode_testing import wait_until
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.postgresql._clients import Clients

asyncpg = pytest.importorskip("asyncpg")
psycopg2 = pytest.importorskip("psycopg2")
pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
READ = "SELECT body FROM posts WHERE id = 1"
AUTOMATIC: dict[str, Any] = {
    "datastore": DATASTORE,
    "reads_from": "replica",
    "barriers": "auto",
}
REPEATABLE = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"


def psycopg_read(
    url: str, between: Callable[[int], None], *, plain: bool, repeatable: bool
) -> None:
    """Two reads of one transaction, and what happens *between* them to its process."""
    with psycopg.connect(url) as reader:
        if not plain:
            postgresql.instrument_connection(reader, **AUTOMATIC)
        if repeatable:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM dead")
        between(reader.info.backend_pid)
        reader.execute(READ)


def psycopg2_read(
    url: str, between: Callable[[int], None], *, plain: bool, repeatable: bool
) -> None:
    """The same."""
    factory = {} if plain else {"connection_factory": postgresql.connection_factory(**AUTOMATIC)}
    reader = psycopg2.connect(url, **factory)
    try:
        if repeatable:
            reader.set_session("REPEATABLE READ")
        reader.cursor().execute("SELECT count(*) FROM dead")
        between(reader.info.backend_pid)
        reader.cursor().execute(READ)
    finally:
        reader.close()


def asyncpg_read(
    url: str, between: Callable[[int], None], *, plain: bool, repeatable: bool
) -> None:
    """The same."""

    async def run() -> None:
        reader = await asyncpg.connect(url)
        if not plain:
            postgresql.instrument_connection(reader, **AUTOMATIC)
        try:
            if repeatable:
                await reader.execute(REPEATABLE)
            async with reader.transaction():
                await reader.fetch("SELECT count(*) FROM dead")
                between(reader.get_server_pid())
                await reader.fetch(READ)
        finally:
            await reader.close(timeout=5)

    asyncio.run(run())


@pytest.fixture
def dead(clients: Clients) -> Iterator[Clients]:
    """With a table whose rows a vacuum will take away, and a standby that waits for no reader."""
    topology = clients.topology
    topology.execute("DROP TABLE IF EXISTS dead")
    topology.execute("CREATE TABLE dead AS SELECT n FROM generate_series(1, 500) AS n")
    topology.execute(f"ALTER TABLE dead OWNER TO {topology.user}")
    topology.execute("ALTER SYSTEM SET max_standby_streaming_delay = '10ms'", replica=0)
    topology.execute("SELECT pg_reload_conf()", replica=0)
    topology.wait_replicated()
    yield clients
    topology.execute("ALTER SYSTEM RESET max_standby_streaming_delay", replica=0)
    topology.execute("SELECT pg_reload_conf()", replica=0)
    topology.execute("DROP TABLE dead")


def ended(clients: Clients, process: int) -> None:
    """The standby has no such process any more."""
    sql = f"SELECT 1 FROM pg_stat_activity WHERE pid = {process}"  # noqa: S608 - a number
    wait_until(
        lambda: not clients.topology.execute(sql, replica=0), what="the session's end", timeout_s=30
    )


def terminated(clients: Clients, process: int) -> None:
    """An administrator ends it."""
    clients.topology.execute(f"SELECT pg_terminate_backend({process})", replica=0)
    ended(clients, process)


def in_conflict(clients: Clients, process: int) -> None:
    """What it may still see is vacuumed at the primary."""
    clients.topology.execute("DELETE FROM dead")
    clients.topology.execute("VACUUM dead")
    ended(clients, process)


@pytest.mark.parametrize(
    ("happens", "repeatable"), [(terminated, False), (terminated, True), (in_conflict, True)]
)
@pytest.mark.parametrize("read", [psycopg_read, psycopg2_read, asyncpg_read])
def test_a_held_read_ends_as_without_the_library(
    dead: Clients, read: Any, happens: Any, *, repeatable: bool
) -> None:
    """Its session was ended while its transaction was idle: the same exception, the same code."""
    writer = dead.writer(autocommit=True)
    url, found = dead.topology.url(dead.topology.replica), []
    for plain in (True, False):
        dead.topology.execute("INSERT INTO dead SELECT n FROM generate_series(1, 500) AS n")
        dead.topology.wait_replicated()

        def between(process: int) -> None:
            writer.execute("UPDATE posts SET body = 'new' WHERE id = 1")
            happens(dead, process)

        with antipode.scope(), pytest.raises(Exception) as caught:  # noqa: PT011 - any is compared
            read(url, between, plain=plain, repeatable=repeatable)
        code = getattr(caught.value, "sqlstate", None) or getattr(caught.value, "pgcode", None)
        found.append((type(caught.value), code))
    assert found[1] == found[0]
