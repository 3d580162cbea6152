"""No result, error, notice or committed row differs from the plain client's, whatever the mode."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode_shims import postgresql
from tests.integration._played import MODES, played
from tests.integration.postgresql._clients import DATASTORE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
INSERT, COUNT = "INSERT INTO posts VALUES ({}, 'x')", "SELECT count(*) FROM posts"
#: What an application may do in a session, transactions that fail in every way among it.
STEPS = (
    *(INSERT.format(2), INSERT.format(2), COUNT, "SELEC 1", "SELECT 1 / 0", "ROLLBACK", "COMMIT"),
    *("BEGIN", INSERT.format(3), COUNT, "COMMIT"),
    *("BEGIN", INSERT.format(4), "ROLLBACK"),
    *("BEGIN", INSERT.format(5), "SELECT 1 / 0", COUNT, "COMMIT", COUNT),
    *("BEGIN", INSERT.format(6), "SAVEPOINT s", "SELECT 1 / 0", "ROLLBACK TO s", "COMMIT"),
    *("BEGIN", "INSERT INTO late VALUES (1), (1)", COUNT, "COMMIT", COUNT),
    *("BEGIN", "BEGIN", INSERT.format(7), "COMMIT", "COMMIT"),
    *("BEGIN ISOLATION LEVEL REPEATABLE READ", COUNT, "UPDATE posts SET body = 'y'", "COMMIT"),
    *("DO $$ BEGIN RAISE NOTICE 'said'; INSERT INTO posts VALUES (8, ''); END $$", COUNT),
    *("BEGIN READ ONLY", INSERT.format(9), "COMMIT", COUNT),
    *("SELECT * FROM no_such_table", "SELECT no_such_column FROM posts", "SELECT no_such()"),
    *("SELECT 'x'::int", "SELECT 2147483647 + 1", "SELECT pg_read_file('x')", "SELECT ''::json"),
    *("SELECT id FROM posts WHERE id = (SELECT 1 UNION SELECT 2)", "SELECT ARRAY[1] || '{x}'"),
    *("INSERT INTO posts VALUES (NULL, '')", "INSERT INTO posts VALUES (13, '', '')"),
    *("DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = 'AP001', HINT = 'so'; END $$",),
    *(
        "CALL no_such()",
        "SET no_such = 1",
        "VACUUM; SELECT 1",
        "COPY posts TO '/x'",
        "FETCH 1 FROM c",
    ),
    *("BEGIN", "DO $$ BEGIN RAISE WARNING 'w'; END $$", "RELEASE s", COUNT, "ROLLBACK", COUNT),
)
#: The same by the calls of a client that begins transactions by itself.
MANUAL = (
    *("manual", INSERT.format(10), "commit", INSERT.format(11), "rollback", "commit", COUNT),
    *("commit", INSERT.format(12), INSERT.format(12), COUNT, "commit", COUNT, "rollback"),
    *("INSERT INTO late VALUES (1), (1)", COUNT, "commit", COUNT, "rollback", "automatic", COUNT),
)


def called(connection: Any, step: str) -> Any:
    """What a step of `MANUAL` does that is no statement."""
    if step in ("commit", "rollback"):
        return getattr(connection, step)()
    connection.autocommit = step == "automatic"
    return None


class Psycopg:
    """psycopg 3."""

    steps = (*STEPS, *MANUAL)

    def __init__(self, url: str, *, instrumented: bool) -> None:
        self.connection: Any = psycopg.connect(url, autocommit=True)
        self.heard: list[str] = []
        self.connection.add_notice_handler(
            lambda notice: self.heard.append(str(notice.message_primary))
        )
        if instrumented:
            postgresql.instrument_connection(self.connection, datastore=DATASTORE)

    def execute(self, statement: str) -> Any:
        if statement in MANUAL and statement.islower():
            return called(self.connection, statement)
        cursor = self.connection.execute(statement)
        return cursor.statusmessage, cursor.fetchall() if cursor.description else None

    def state(self) -> Any:
        return self.connection.info.transaction_status

    def close(self) -> None:
        postgresql.uninstrument_connection(self.connection)
        self.connection.close()


class AsyncPsycopg:
    """psycopg 3's asyncio connection."""

    steps = (*STEPS, *MANUAL)

    def __init__(self, url: str, *, instrumented: bool) -> None:
        self.loop = asyncio.new_event_loop()
        opens = psycopg.AsyncConnection.connect(url, autocommit=True)
        self.connection: Any = self.loop.run_until_complete(opens)
        self.heard: list[str] = []
        self.connection.add_notice_handler(
            lambda notice: self.heard.append(str(notice.message_primary))
        )
        if instrumented:
            postgresql.instrument_connection(self.connection, datastore=DATASTORE)

    def execute(self, statement: str) -> Any:
        return self.loop.run_until_complete(self.executed(statement))

    async def executed(self, statement: str) -> Any:
        """What a step returns."""
        if statement in ("commit", "rollback"):
            return await getattr(self.connection, statement)()
        if statement in MANUAL and statement.islower():
            return await self.connection.set_autocommit(statement == "automatic")
        cursor = await self.connection.execute(statement)
        return cursor.statusmessage, await cursor.fetchall() if cursor.description else None

    def state(self) -> Any:
        return self.connection.info.transaction_status

    def close(self) -> None:
        postgresql.uninstrument_connection(self.connection)
        self.loop.run_until_complete(self.connection.close())
        self.loop.close()


class Psycopg2:
    """psycopg2."""

    steps = (*STEPS, *MANUAL)

    def __init__(self, url: str, *, instrumented: bool) -> None:
        psycopg2 = pytest.importorskip("psycopg2")
        factory = postgresql.connection_factory(datastore=DATASTORE) if instrumented else None
        self.connection: Any = psycopg2.connect(url, connection_factory=factory)
        self.connection.autocommit = True
        self.heard: list[str] = self.connection.notices

    def execute(self, statement: str) -> Any:
        if statement in MANUAL and statement.islower():
            return called(self.connection, statement)
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.statusmessage, cursor.fetchall() if cursor.description else None

    def state(self) -> Any:
        return self.connection.get_transaction_status()

    def close(self) -> None:
        postgresql.uninstrument_connection(self.connection)
        self.connection.close()


class Asyncpg:
    """asyncpg, which has no such calls."""

    steps = STEPS

    def __init__(self, url: str, *, instrumented: bool) -> None:
        asyncpg = pytest.importorskip("asyncpg")
        self.loop = asyncio.new_event_loop()
        self.connection: Any = self.loop.run_until_complete(asyncpg.connect(url))
        self.heard: list[str] = []
        self.connection.add_log_listener(lambda _, notice: self.heard.append(notice.message))
        if instrumented:
            postgresql.instrument_connection(self.connection, datastore=DATASTORE)

    def execute(self, statement: str) -> Any:
        sends = self.connection.fetch if statement == COUNT else self.connection.execute
        found = self.loop.run_until_complete(sends(statement))
        return found if isinstance(found, str) else [tuple(row) for row in found]

    def state(self) -> Any:
        return self.connection.is_in_transaction()

    def close(self) -> None:
        postgresql.uninstrument_connection(self.connection)
        self.loop.run_until_complete(self.connection.close())
        self.loop.close()


@pytest.mark.parametrize("client", [Psycopg, AsyncPsycopg, Psycopg2, Asyncpg])
@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(
    clients: Clients, client: Callable[..., Any], mode: Any, *, scoped: bool
) -> None:
    """Every step of a session ends as it does without the library, and commits what it does."""
    antipode.configure(mode=mode)
    observer = clients.plain(autocommit=True)
    scripts = []
    for instrumented in (False, True):
        clients.topology.execute("DROP TABLE IF EXISTS late")
        clients.topology.execute("CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        clients.topology.execute(f"ALTER TABLE late OWNER TO {clients.topology.user}")
        clients.topology.execute("DELETE FROM posts WHERE id > 1")
        with ExitStack() as stack:
            session = stack.enter_context(
                closing(client(clients.topology.url(), instrumented=instrumented))
            )
            if scoped:
                within: AbstractContextManager[Any] = antipode.scope()
                stack.enter_context(within)
            scripts.append(
                played(session, session.steps, lambda: observer.execute(COUNT).fetchone())
            )
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
