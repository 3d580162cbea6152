"""Random sessions: whatever an application sends, no read misses what its barrier waited for.

A session goes through random statements at the primary, and now and then another client writes a
row, a barrier waits for it at the read, and the session reads. It has to see the row or to raise
:class:`antipode.StaleSnapshot`; then the same connection, asked past the library, says whether the
row really could not be seen. And what a session has committed, as others see it, is in its lineage.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import psycopg2

import antipode
from antipode import StaleSnapshot
from antipode_shims import postgresql
from antipode_shims.postgresql._look import Refused

from ._clients import DATASTORE

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

CLIENTS = ("psycopg", "psycopg_async", "psycopg2", "asyncpg")
ERRORS = (psycopg.Error, psycopg2.Error, asyncpg.PostgresError, asyncpg.InterfaceError)
TABLES = (
    "DROP VIEW IF EXISTS hidden",
    "DROP TABLE IF EXISTS notes, mine, spare, other, ruled CASCADE",
    "CREATE TABLE notes (id int PRIMARY KEY)",
    "CREATE TABLE mine (id serial PRIMARY KEY, body text)",
    "CREATE TABLE ruled (id int)",
    "CREATE RULE rule AS ON INSERT TO ruled DO INSTEAD INSERT INTO mine (body) VALUES ('r')",
    "CREATE TABLE spare (id int PRIMARY KEY)",
    "INSERT INTO spare VALUES (1), (2)",
    """CREATE OR REPLACE FUNCTION secret() RETURNS int LANGUAGE sql AS
    $$ INSERT INTO mine (body) VALUES ('s') RETURNING id $$""",
    """CREATE OR REPLACE PROCEDURE half() LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO mine (body) VALUES ('h'); COMMIT; PERFORM 1 / 0; END $$""",
    "CREATE VIEW hidden AS SELECT secret() AS n",
)
OWNED = ("notes", "mine", "ruled", "spare", "hidden")
TIMEOUT_S = 15.0
#: How long others wait for a table that the session may have locked.
LOCKED_MS = 200
#: How much of a session are reads that wait.
_READS = 0.25
#: What an application may send, the usual more often.
STATEMENTS = (
    *("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SELECT * FROM spare") * 24,
    *("INSERT INTO mine (body) VALUES ('a')", "UPDATE mine SET body = 'b'") * 24,
    *("BEGIN ISOLATION LEVEL REPEATABLE READ",) * 24,
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "SAVEPOINT s",
    "ROLLBACK TO SAVEPOINT s",
    "RELEASE SAVEPOINT s",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET default_transaction_isolation = 'repeatable read'",
    "RESET ALL",
    "SHOW transaction_isolation",
    "SELECT 1",
    "SELECT version()",
    "SELECT count(*) FROM pg_class",
    "SELECT * FROM spare FOR UPDATE",
    "EXPLAIN SELECT * FROM spare",
    "INSERT INTO mine (body) SELECT 'c' FROM spare",
    "INSERT INTO ruled VALUES (1)",
    "DELETE FROM mine",
    "TRUNCATE mine",
    "LOCK TABLE mine",
    "CREATE TEMPORARY TABLE IF NOT EXISTS own (a int)",
    "DROP TABLE IF EXISTS own",
    "CREATE TABLE IF NOT EXISTS other (a int)",
    "DROP TABLE IF EXISTS other",
    "SET application_name = 'x'",
    "SELECT set_config('application_name', 'y', false)",
    "CALL half()",
    "SELECT secret()",
    "SELECT * FROM hidden",
    "DO $$ BEGIN INSERT INTO mine (body) VALUES ('d'); END $$",
    "WITH x AS (DELETE FROM mine RETURNING 1) SELECT count(*) FROM x",
    "BEGIN; SELECT * FROM spare",
    "INSERT INTO mine (body) VALUES ('e'); COMMIT",
    "NO SUCH STATEMENT",
    "SELECT * FROM no_such_table",
    "INSERT INTO spare VALUES (1)",
    "VALUES (1)",
    "TABLE spare",
    "PREPARE q AS INSERT INTO mine (body) VALUES ('q')",
    "EXECUTE q",
    "DEALLOCATE ALL",
    "DECLARE c CURSOR FOR SELECT id FROM notes",
    "FETCH 1 FROM c",
    "CLOSE c",
    "SELECT pg_advisory_unlock_all()",
    "SELECT nextval('mine_id_seq')",
    "LISTEN x",
    "NOTIFY x",
    "ANALYZE spare",
)


class Connection:
    """One client's connection to the primary, instrumented; everybody's calls alike."""

    def __init__(self, topology: PostgreSQLTopology, client: str, *, autocommit: bool) -> None:
        """Open it; those of asyncio have an event loop of their own.

        Args:
            topology: where.
            client: which of :data:`CLIENTS`.
            autocommit: whether each statement commits on its own, where the client can choose.
        """
        url = topology.url()
        self._loop = asyncio.new_event_loop() if client in ("asyncpg", "psycopg_async") else None
        self._client = client
        if client == "psycopg2":
            made = postgresql.connection_factory(datastore=DATASTORE)
            self.connection: Any = psycopg2.connect(url, connection_factory=made)
            self.connection.autocommit = autocommit
            return
        if client == "asyncpg":
            self.connection = self._wait(asyncpg.connect(url))
        elif client == "psycopg":
            self.connection = psycopg.connect(url, autocommit=autocommit)
        else:
            connect = psycopg.AsyncConnection.connect
            self.connection = self._wait(connect(url, autocommit=autocommit))
        postgresql.instrument_connection(self.connection, datastore=DATASTORE)

    def _wait(self, coroutine: Any) -> Any:
        assert self._loop is not None
        return self._loop.run_until_complete(coroutine)

    def run(self, statement: str, *, reads: bool) -> list[Any]:
        """All rows of a statement that *reads*; an exception of the client or of the library."""
        if self._client == "asyncpg":
            call = self.connection.fetch if reads else self.connection.execute
            found = self._wait(call(statement))
            return [tuple(row) for row in found] if reads else []
        if self._client == "psycopg_async":
            return list(self._wait(self._run(statement)))
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    async def _run(self, statement: str) -> Any:
        cursor = await self.connection.execute(statement)
        return await cursor.fetchall() if cursor.description else []

    def past_the_library(self, statement: str) -> list[Any]:
        """Rows of a statement that nothing holds and nobody notices."""
        asked = self.connection._antipode_ask(statement)
        return list(asked if self._loop is None else self._wait(asked))

    def close(self) -> None:
        """Close it, and its loop."""
        postgresql.uninstrument_connection(self.connection)
        closing = self.connection.close()
        if self._loop is not None:
            self._wait(closing)
            self._loop.close()


class Fuzz:
    """Random sessions of one client at one primary.

    Attributes:
        counts: reads that were fresh, refused rightly, and refused without need; changes that
            others saw.
    """

    def __init__(self, topology: PostgreSQLTopology, client: str) -> None:
        """Make the tables.

        Args:
            topology: where.
            client: which of :data:`CLIENTS`.
        """
        for statement in TABLES:
            topology.execute(statement)
        for name in OWNED:
            topology.execute(f"ALTER TABLE {name} OWNER TO {topology.user}")
        topology.execute(f"GRANT CREATE ON SCHEMA public TO {topology.user}")
        self._topology, self._client = topology, client
        self._writer = psycopg.connect(topology.url(), autocommit=True)
        postgresql.instrument_connection(self._writer, datastore=DATASTORE)
        self._others = psycopg.connect(topology.url(), autocommit=True)
        self._others.execute(f"SET lock_timeout = {LOCKED_MS}")
        self._number, self._awaited = 0, ""
        self.counts: Counter[str] = Counter()

    def close(self) -> None:
        """Close the other clients' connections, and drop what was made."""
        postgresql.uninstrument_connection(self._writer)
        self._writer.close()
        self._others.close()
        self._topology.execute("DROP TABLE IF EXISTS notes, mine, spare, other, ruled CASCADE")
        self._topology.execute("DROP VIEW IF EXISTS hidden")

    def sessions(self, seeds: range, *, steps: int = 25) -> Counter[str]:
        """Go through one session for each seed; and count its reads."""
        for seed in seeds:
            self._session(seed, steps=steps)
        return self.counts

    def _session(self, seed: int, *, steps: int) -> None:
        """One session of random statements; the trace is in the error."""
        choose = random.Random(seed)
        trace: list[str] = []
        opened = Connection(self._topology, self._client, autocommit=bool(seed % 3))
        with contextlib.closing(opened) as one, antipode.scope() as scope:
            shown = self._state()
            for _ in range(steps):
                entered = self._entered(scope)
                waited = choose.random() < _READS
                trace.append(self._write_and_wait() if waited else choose.choice(STATEMENTS))
                lineage = self._entered(scope) - entered
                found = self._run(one, trace)
                if found is not None and trace[-1] == self._awaited:
                    self.counts["fresh"] += 1
                    assert found, (seed, trace)
                if (now := self._state(shown)) != shown:
                    shown = now
                    self.counts["changed"] += 1
                    assert self._entered(scope) - entered - lineage, (seed, trace)

    @staticmethod
    def _entered(scope: Any) -> frozenset[Any]:
        """What the session's lineage has."""
        lineage = scope.lineage
        return frozenset(lineage) | frozenset(lineage.incomplete)

    def _state(self, shown: Any = None) -> Any:
        """What others see of the session's tables; as *shown* before, while the session locks them.

        Nothing changes for others until that transaction ends.
        """
        sql = (
            "SELECT (SELECT array_agg((xmin, id, body)::text ORDER BY id) FROM mine) AS mine,"
            " to_regclass('other') IS NULL AS gone"
        )
        try:
            return self._others.execute(sql).fetchall()
        except psycopg.errors.LockNotAvailable:
            return shown

    def _write_and_wait(self) -> str:
        """Another client writes; the read that has to see it."""
        self._number += 1
        with antipode.scope() as scope:
            self._writer.execute("INSERT INTO notes VALUES (%s)", (self._number,))
            written = scope.lineage
        antipode.barrier(written, timeout=TIMEOUT_S, at="read")
        self._awaited = f"SELECT id FROM notes WHERE id = {self._number}"  # noqa: S608 - a number
        return self._awaited

    def _shows(self, one: Connection, *, fetched: bool) -> bool:
        """Whether the row can be seen by what was refused: a cursor has a snapshot of its own."""
        if not fetched:
            return bool(one.past_the_library(self._awaited))
        one.past_the_library("MOVE BACKWARD ALL FROM c")
        rows = one.past_the_library("FETCH ALL FROM c")
        return str(self._number) in [row["id"] for row in rows]

    def _run(self, one: Connection, trace: list[str]) -> list[Any] | None:
        """The rows of the last statement; None where the server, or the library, refused it."""
        try:
            return one.run(trace[-1], reads=trace[-1] == self._awaited)
        except StaleSnapshot:
            trace.append("ROLLBACK")
            with contextlib.suppress(*ERRORS, Refused):
                needless = self._shows(one, fetched=trace[-2].startswith("FETCH"))
                self.counts["needless" if needless else "right"] += 1
            one.run("ROLLBACK", reads=False)
        except ERRORS as error:
            trace.append(f"-> {error}")
        return None
