"""PostgreSQL, whatever the client: its tables, the truth about them, and what is sent as text."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

import psycopg

from antipode_shims import postgresql
from antipode_shims.postgresql._look import Refused
from antipode_testing import PostgreSQLTopology

from .bench import DATASTORE, OFTEN, Fault, step
from .sql import Sql, texts

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

#: By it the server tells the session's connections from others.
APPLICATION = "session"
MADE = (
    "CREATE TABLE kept (n bigint PRIMARY KEY, v int)",
    "CREATE TABLE notes (n bigint PRIMARY KEY)",
    "CREATE TABLE late (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO late VALUES (0)",
    """CREATE FUNCTION added(at bigint) RETURNS bigint LANGUAGE sql AS
    $$ INSERT INTO kept VALUES (at, 0) RETURNING n $$""",
    """CREATE FUNCTION log(message text) RETURNS bigint LANGUAGE sql AS
    $$ INSERT INTO kept VALUES (message::bigint, 0) RETURNING n $$""",
    "CREATE FUNCTION pure(v int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT v + 1 $$",
    """CREATE PROCEDURE half(at bigint) LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO kept VALUES (at, 0); COMMIT; PERFORM 1 / 0; END $$""",
    "CREATE SEQUENCE numbers",
    """CREATE FUNCTION fresh() RETURNS bigint LANGUAGE sql AS
    $$ INSERT INTO kept VALUES (-nextval('numbers'), 0) RETURNING n $$""",
    "CREATE VIEW writing AS SELECT fresh() AS n",
    "CREATE VIEW reading AS SELECT n, v FROM kept",
)
OWNED = ("TABLE kept", "TABLE notes", "TABLE late", "SEQUENCE numbers", "VIEW writing")
STATE = """SELECT (SELECT array_agg((n, v)::text ORDER BY n) FROM kept) AS kept,
 (SELECT array_agg(n ORDER BY n) FROM late) AS late,
 (SELECT xmin::text FROM pg_class WHERE relname = 'made') AS made"""
#: One that waits for its client is at its end, also where that has sent no Sync.
RUNNING = f"""SELECT count(*) AS n FROM pg_stat_activity
 WHERE application_name = '{APPLICATION}' AND state = 'active'
 AND wait_event IS DISTINCT FROM 'ClientRead'"""  # noqa: S608 - a name of ours
ENDED = f"""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE application_name = '{APPLICATION}'"""  # noqa: S608 - a name of ours
#: What an application may send; ``{n}`` is a number that no row has.
USUAL: Mapping[str, str] = {
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "insert": "INSERT INTO kept VALUES ({n}, 1)",
    "update": "UPDATE kept SET v = v + 1 WHERE n = (SELECT max(n) FROM kept)",
    "select": "SELECT n, v FROM kept ORDER BY n LIMIT 3",
}
RARE: Mapping[str, str] = {
    "repeatable": "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "serializable": "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "read_only": "BEGIN READ ONLY",
    "chain": "COMMIT AND CHAIN",
    "rollback_chain": "ROLLBACK AND CHAIN",
    "savepoint": "SAVEPOINT s",
    "back_to_savepoint": "ROLLBACK TO SAVEPOINT s",
    "release_savepoint": "RELEASE SAVEPOINT s",
    "delete": "DELETE FROM kept WHERE n = (SELECT max(n) FROM kept)",
    "nothing": "INSERT INTO kept SELECT n, v FROM kept ON CONFLICT DO NOTHING",
    "cte": "WITH w AS (INSERT INTO kept VALUES ({n}, 2) RETURNING n) SELECT * FROM w",
    "lock_rows": "SELECT n FROM kept ORDER BY n LIMIT 1 FOR UPDATE",
    "division": "SELECT 1 / 0",
    "syntax": "NO SUCH STATEMENT",
    "no_table": "SELECT * FROM no_such_table",
    "unique": "INSERT INTO kept SELECT n, v FROM kept",
    "deferred": "INSERT INTO late VALUES (0)",
    "late": "INSERT INTO late VALUES ({n})",
    "function": "SELECT added({n})",
    "function_named_log": "SELECT log('{n}')",
    "pure_function": "SELECT pure(1)",
    "view_that_writes": "SELECT * FROM writing",
    "view": "SELECT * FROM reading LIMIT 1",
    "block": "DO $$ BEGIN INSERT INTO kept VALUES ({n}, 3); END $$",
    "block_caught": """DO $$ BEGIN INSERT INTO kept VALUES ({n}, 3); PERFORM 1 / 0;
        EXCEPTION WHEN division_by_zero THEN NULL; END $$""",
    "procedure_that_commits": "CALL half({n})",
    "text": "INSERT INTO kept VALUES ({n}, 4); SELECT 1",
    "text_fails": "INSERT INTO kept VALUES ({n}, 4); SELECT 1 / 0",
    "text_commits": "INSERT INTO kept VALUES ({n}, 4); COMMIT",
    "text_begins": "BEGIN; INSERT INTO kept VALUES ({n}, 4)",
    "text_ends_and_begins": "INSERT INTO kept VALUES ({n}, 4); COMMIT; BEGIN",
    "text_unsynced": "SET LOCAL synchronous_commit = off; INSERT INTO kept VALUES ({n}, 4)",
    "unsynced": "SET LOCAL synchronous_commit = off",
    "prepare": "PREPARE q(bigint) AS INSERT INTO kept VALUES ($1, 5)",
    "execute": "EXECUTE q({n})",
    "explain_execute": "EXPLAIN ANALYZE EXECUTE q({n})",
    "forget": "DEALLOCATE ALL",
    "explain": "EXPLAIN INSERT INTO kept VALUES ({n}, 6)",
    "explain_analyze": "EXPLAIN ANALYZE INSERT INTO kept VALUES ({n}, 6)",
    "create_as": "CREATE TABLE made AS SELECT 1 AS a",
    "explain_create_as": "EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1 AS a",
    "drop": "DROP TABLE IF EXISTS made",
    "temporary": "CREATE TEMPORARY TABLE IF NOT EXISTS own (a int)",
    "write_temporary": "INSERT INTO own VALUES (1)",
    "notify": "NOTIFY x",
    "sequence": "SELECT nextval('numbers')",
    "advisory": "SELECT pg_try_advisory_xact_lock(1)",
    "settings": "SELECT set_config('application_name', current_setting('application_name'), false)",
    "show": "SHOW transaction_isolation",
    "declare": "DECLARE c CURSOR FOR SELECT n FROM notes",
    "fetch": "FETCH 1 FROM c",
    "catalogue": "SELECT count(*) FROM pg_class",
    "built_ins": "SELECT now(), lower('A'), length('a'), current_user",
}


#: What a pipeline, a block or a copy may hold.
INNER = (
    "INSERT INTO kept VALUES ({n}, 7)",
    "INSERT INTO kept VALUES ({n}, 7) RETURNING n",
    "UPDATE kept SET v = v + 1 WHERE n = (SELECT max(n) FROM kept)",
    "SELECT n FROM kept ORDER BY n LIMIT 3",
    "SELECT added({n})",
    "SELECT 1 / 0",
)


class PostgreSQL(texts(OFTEN, USUAL), texts(1, RARE), Sql):  # type: ignore[misc]
    """Two servers, and a session of a client that the classes below connect."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (psycopg.Error,)
    refused_question = Refused
    state = STATE
    running = RUNNING

    def __init__(self) -> None:
        super().__init__()
        self.topology = PostgreSQLTopology(lag_ms=0)

    def make(self) -> None:
        """By the administrator, for the session's user."""
        user = self.topology.user
        for statement in MADE:
            self.topology.execute(statement)
        for each in OWNED:
            self.topology.execute(f"ALTER {each} OWNER TO {user}")
        self.topology.execute(f"GRANT CREATE ON SCHEMA public TO {user}")
        self.topology.execute(f"GRANT SELECT ON reading TO {user}")
        self._other = psycopg.connect(self.topology.url(), autocommit=True)
        postgresql.instrument_connection(self._other, datastore=DATASTORE)

    def unmake(self) -> None:
        """Close the other client."""
        postgresql.uninstrument_connection(self._other)
        self._other.close()

    def write_note(self, number: int) -> None:
        """By psycopg."""
        self._other.execute("INSERT INTO notes VALUES (%s)", (number,))

    def terminate(self) -> None:
        """By the name of its application."""
        self.topology.execute(ENDED)

    @step(2)
    async def held_cursor(self, choose: random.Random) -> None:
        """A cursor WITH HOLD shows what was committed when it was declared, or is refused."""
        await self.send("DECLARE h CURSOR WITH HOLD FOR SELECT n FROM notes ORDER BY n DESC")
        wanted = self.floor()
        try:
            found = await self.send("FETCH 1 FROM h")
        finally:
            with contextlib.suppress(*self.refusals):
                await self.send("CLOSE h")
        if not found or not wanted.endswith(f" {found[0][0]}"):
            raise Fault("early", f"a held cursor shows older rows: {wanted}")
