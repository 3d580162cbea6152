"""Random sessions: whatever an application sends, no read misses what its barrier waited for.

A session goes through random statements at the primary, and now and then another client writes a
row, a barrier waits for it at the read, and the session reads. It has to see the row or to raise
:class:`antipode.StaleSnapshot`; then the same connection, asked past the library, says whether the
row really could not be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import aiomysql
import MySQLdb
import pymysql

import antipode
from antipode import StaleSnapshot
from antipode.telemetry import Metric, metrics
from antipode_shims import mysql
from antipode_shims.mysql._position.flavor import Refused

from ._clients import MULTI, NOTES, TELLS, TIMEOUT_S, TRACK, drop_triggers, run

if TYPE_CHECKING:
    from ._clients import Sql

CLIENTS = ("pymysql", "aiomysql", "mysqlclient")
TABLES = (
    "DROP TABLE IF EXISTS app.mine, app.spare, app.triggered",
    "CREATE TABLE app.mine (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
    "CREATE TABLE app.spare (id INT PRIMARY KEY)",
    "INSERT INTO app.spare VALUES (1), (2)",
    "DROP PROCEDURE IF EXISTS app.show_spare",
    "CREATE PROCEDURE app.show_spare() BEGIN SELECT * FROM spare; DELETE FROM mine; END",
)
#: Where a write takes the snapshot, too.
TRIGGER = (
    "CREATE TABLE app.triggered (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    """CREATE TRIGGER app.counts BEFORE INSERT ON app.triggered FOR EACH ROW
    BEGIN SELECT COUNT(*) INTO @n FROM notes; SET NEW.n = @n; END""",
)
#: How much of a session are reads behind a barrier.
_READS = 0.25
#: What an application may send, the usual more often.
STATEMENTS = (
    *("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SELECT * FROM spare") * 24,
    *("INSERT INTO mine (body) VALUES ('a')", "UPDATE mine SET body = 'b'") * 24,
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "START TRANSACTION READ ONLY",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "SAVEPOINT s",
    "ROLLBACK TO SAVEPOINT s",
    "RELEASE SAVEPOINT s",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SELECT 1",
    "SELECT @@version",
    "SELECT COUNT(*) FROM information_schema.TABLES",
    "SELECT * FROM spare FOR UPDATE",
    "SHOW TABLES",
    "SHOW COLUMNS FROM spare",
    "SHOW INDEX FROM spare",
    "SHOW TABLE STATUS",
    "SHOW TRIGGERS",
    "SHOW EVENTS",
    "SHOW CREATE TABLE spare",
    "HELP 'select'",
    "DESCRIBE spare",
    "EXPLAIN SELECT * FROM spare",
    "INSERT INTO mine (body) SELECT id FROM spare",
    "DELETE FROM mine",
    "REPLACE INTO mine VALUES (1, 'c')",
    "LOCK TABLES mine WRITE, spare READ",
    "UNLOCK TABLES",
    "CREATE TEMPORARY TABLE IF NOT EXISTS own (a INT)",
    "DROP TEMPORARY TABLE IF EXISTS own",
    "CREATE TABLE IF NOT EXISTS other (a INT)",
    "DROP TABLE IF EXISTS other",
    "SET @x = 1",
    "SET @x = (SELECT COUNT(*) FROM spare)",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "CALL show_spare()",
    "BEGIN; SELECT * FROM spare",
    "INSERT INTO mine (body) VALUES ('d'); COMMIT",
    "NO SUCH STATEMENT",
    "SELECT * FROM no_such_table",
    "SELECT no_such_column FROM spare",
    "INSERT INTO spare VALUES (1)",
    "CREATE TABLE spare (id INT)",
    "SELECT (SELECT id FROM spare) FROM spare",
)


def _stale_reads() -> int:
    return metrics().get(Metric("served_stale", NOTES), 0)


class Connection:
    """One client's connection to the primary, instrumented; everybody's calls alike."""

    def __init__(self, sql: Sql, client: str, *, tells: bool) -> None:
        """Open it; aiomysql's has an event loop of its own.

        Args:
            sql: where.
            client: which of :data:`CLIENTS`, or ``untracked``: PyMySQL opened before the library.
            tells: whether the server says what a transaction did, as if it were configured so.
        """
        place = sql.topology.primary
        options: dict[str, Any] = {"user": sql.topology.user, "password": sql.topology.password}
        options |= {"host": place.host, "port": place.port, "autocommit": True}
        if tells:
            options["init_command"] = TELLS
        self._loop = asyncio.new_event_loop() if client == "aiomysql" else None
        if self._loop is not None:
            made = aiomysql.connect(db=sql.topology.database, client_flag=TRACK | MULTI, **options)
            self.connection: Any = self._loop.run_until_complete(made)
        elif client in ("pymysql", "untracked"):
            options |= {"client_flag": TRACK | MULTI if client == "pymysql" else MULTI}
            self.connection = pymysql.connect(database=sql.topology.database, **options)
        else:
            self.connection = MySQLdb.connect(database=sql.topology.database, **options)
        mysql.instrument_connection(self.connection, datastore=NOTES)

    def run(self, statement: str) -> list[Any]:
        """All rows of a statement; an exception of the client or of the library."""
        if self._loop is None:
            return run(self.connection, statement)
        return self._loop.run_until_complete(self._run(statement))

    async def _run(self, statement: str) -> list[Any]:
        async with self.connection.cursor() as cursor:
            await cursor.execute(statement)
            rows = list(await cursor.fetchall())
            while await cursor.nextset():
                rows = list(await cursor.fetchall()) or rows
            return rows

    def past_the_library(self, statement: str) -> list[Any]:
        """Rows of a statement that nothing holds and nobody notices."""
        asked = self.connection._antipode_ask(statement)
        return list(asked if self._loop is None else self._loop.run_until_complete(asked))

    def close(self) -> None:
        """Close it, and its loop."""
        mysql.uninstrument_connection(self.connection)
        self.connection.close()
        if self._loop is not None:
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()


class Fuzz:
    """Random sessions of one client at one server.

    Attributes:
        counts: reads that were fresh, refused rightly, and refused without need.
    """

    def __init__(
        self,
        sql: Sql,
        client: str,
        *,
        triggers: bool = False,
        tells: bool = False,
        automatic: bool = False,
    ) -> None:
        """Make the tables.

        Args:
            sql: where.
            client: which of :data:`CLIENTS`.
            triggers: whether there is also a table whose writes read.
            tells: whether the server says what a transaction did.
            automatic: whether reads wait by themselves: the session only learns of the writes.
        """
        drop_triggers(sql.topology)
        for statement in (*TABLES, *(TRIGGER if triggers else ())):
            sql.topology.execute(statement)
        more = ("INSERT INTO triggered (n) VALUES (0)",) * 24 if triggers else ()
        self._statements = (*STATEMENTS, *more)
        self._sql, self._client, self._tells = sql, client, tells
        self._writer = sql.connect()
        run(self._writer, "SET SESSION innodb_lock_wait_timeout = 1")
        self._number, self._awaited, self._automatic = 0, "", automatic
        self.counts: Counter[str] = Counter()

    def sessions(self, seeds: range, *, steps: int = 25) -> Counter[str]:
        """Go through one session for each seed; what their reads came to."""
        for seed in seeds:
            self.session(seed, steps=steps)
        return self.counts

    def session(self, seed: int, *, steps: int) -> None:
        """One session of random statements; the trace is in the error."""
        choose = random.Random(seed)
        trace: list[str] = []
        opened = Connection(self._sql, self._client, tells=self._tells)
        with contextlib.closing(opened) as one, antipode.scope():
            for _ in range(steps):
                if choose.random() < _READS:
                    trace.append(self._write_and_wait())
                else:
                    trace.append(choose.choice(self._statements))
                before = _stale_reads()
                found = self._run(one, trace)
                if found is not None and trace[-1] == self._awaited:
                    counted = _stale_reads() > before
                    self.counts["stale" if counted else "fresh"] += 1
                    assert found or (counted and self._automatic), (seed, trace)

    def _write_and_wait(self) -> str:
        """Another client writes; the read that has to see it."""
        self._number += 1
        with antipode.scope() as scope:
            run(self._writer, "INSERT INTO notes VALUES (%s, 'x')", self._number)
            written = scope.lineage
        if self._automatic:
            antipode.transfer(written)
        else:
            antipode.barrier(written, timeout=TIMEOUT_S, at="read")
        self._awaited = f"SELECT id FROM notes WHERE id = {self._number}"  # noqa: S608 - a number
        return self._awaited

    def _run(self, one: Connection, trace: list[str]) -> list[Any] | None:
        """The rows of the last statement; None where the server, or the library, refused it."""
        try:
            return one.run(trace[-1])
        except StaleSnapshot:
            assert not self._automatic, trace
            trace.append("ROLLBACK")
            with contextlib.suppress(pymysql.MySQLError, MySQLdb.Error, Refused):
                needless = one.past_the_library(self._awaited)
                self.counts["needless" if needless else "right"] += 1
            one.run("ROLLBACK")
        except (pymysql.MySQLError, MySQLdb.Error) as error:
            trace.append(f"-> {error}")
            if trace[-2] == self._awaited:
                one.run("UNLOCK TABLES")
        return None
