"""MySQL and MariaDB, whatever the client: their tables, the truth about them, and all texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import MySQLdb
import pymysql

from antipode_shims import mysql
from antipode_shims.mysql._position.flavor import Refused
from antipode_testing import MariaDBTopology, MySQLTopology

from .bench import DATASTORE, OFTEN, Fault, step
from .both import Awaited
from .connected import AsCalls, InLoop
from .sql import CANCEL_S, Sql, texts

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

#: Several statements in one text; and replies that say what was committed.
MULTI, TRACK = 1 << 16, 1 << 23
#: What clients raise once the server has ended a connection.
GONE = (2006, 2013, 2014, 4031, 1927)
MADE = (
    "CREATE TABLE app.kept (n BIGINT PRIMARY KEY, v INT)",
    "CREATE TABLE app.notes (n BIGINT PRIMARY KEY)",
    "CREATE TABLE app.triggered (n BIGINT PRIMARY KEY)",
    """CREATE TRIGGER app.keeps AFTER INSERT ON app.triggered FOR EACH ROW
    INSERT INTO kept VALUES (NEW.n, 0)""",
    """CREATE FUNCTION app.added(at BIGINT) RETURNS BIGINT MODIFIES SQL DATA
    BEGIN INSERT INTO kept VALUES (at, 0); RETURN at; END""",
    """CREATE FUNCTION app.fresh() RETURNS BIGINT MODIFIES SQL DATA
    BEGIN SELECT MIN(n) - 1 INTO @least FROM kept;
    INSERT INTO kept VALUES (LEAST(COALESCE(@least, 0), -1), 0); RETURN @least; END""",
    "CREATE VIEW app.writing AS SELECT app.fresh() AS n",
    "CREATE VIEW app.reading AS SELECT n, v FROM app.kept",
    """CREATE PROCEDURE app.half(at BIGINT) BEGIN INSERT INTO kept VALUES (at, 0); COMMIT;
    SIGNAL SQLSTATE '45000'; END""",
    """CREATE PROCEDURE app.shown(at BIGINT) BEGIN SELECT * FROM kept LIMIT 1;
    INSERT INTO kept VALUES (at, 0); END""",
)
#: A digest: servers cut what GROUP_CONCAT makes of the rows to 1,024 characters, unasked.
STATE = """SELECT COUNT(*) AS kept, SUM(CRC32(CONCAT(n, ':', v))) AS digest,
 (SELECT COUNT(*) FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'made') AS made FROM app.kept"""
RUNNING = """SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST
 WHERE USER = 'app' AND COMMAND IN ('Query', 'Execute')"""
#: What an application may send; ``{n}`` is a number that no row has.
USUAL: Mapping[str, str] = {
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "insert": "INSERT INTO kept VALUES ({n}, 1)",
    "update": "UPDATE kept SET v = v + 1 ORDER BY n DESC LIMIT 1",
    "select": "SELECT n, v FROM kept ORDER BY n LIMIT 3",
}
RARE: Mapping[str, str] = {
    "consistent": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "read_only": "START TRANSACTION READ ONLY",
    "chain": "COMMIT AND CHAIN",
    "rollback_chain": "ROLLBACK AND CHAIN",
    "savepoint": "SAVEPOINT s",
    "back_to_savepoint": "ROLLBACK TO SAVEPOINT s",
    "release_savepoint": "RELEASE SAVEPOINT s",
    "autocommit_off": "SET autocommit = 0",
    "autocommit_on": "SET autocommit = 1",
    "read_committed": "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "next_read_committed": "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "repeatable": "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "delete": "DELETE FROM kept ORDER BY n DESC LIMIT 1",
    "nothing": "INSERT IGNORE INTO kept SELECT n, v FROM kept LIMIT 1",
    "same": "UPDATE kept SET v = v ORDER BY n LIMIT 1",
    "replace": "REPLACE INTO kept VALUES ({n}, 2)",
    "lock_rows": "SELECT n FROM kept ORDER BY n LIMIT 1 FOR UPDATE",
    "syntax": "NO SUCH STATEMENT",
    "no_table": "SELECT * FROM no_such_table",
    "no_column": "SELECT no_such_column FROM kept",
    "unique": "INSERT INTO kept SELECT n, v FROM kept",
    "trigger": "INSERT INTO triggered VALUES ({n})",
    "function": "SELECT added({n})",
    "function_into": "SELECT added({n}) INTO @x",
    "function_done": "DO added({n})",
    "function_set": "SET @x = added({n})",
    "view_that_writes": "SELECT * FROM writing",
    "view": "SELECT * FROM reading LIMIT 1",
    "procedure": "CALL shown({n})",
    "procedure_that_commits": "CALL half({n})",
    "text": "INSERT INTO kept VALUES ({n}, 4); SELECT 1",
    "text_fails": "INSERT INTO kept VALUES ({n}, 4); SELECT * FROM no_such_table",
    "text_commits": "INSERT INTO kept VALUES ({n}, 4); COMMIT",
    "text_begins": "BEGIN; INSERT INTO kept VALUES ({n}, 4)",
    "text_ends_and_begins": "INSERT INTO kept VALUES ({n}, 4); COMMIT; BEGIN",
    "text_rolls_back": "BEGIN; INSERT INTO kept VALUES ({n}, 4); ROLLBACK",
    "prepare": "PREPARE q FROM 'INSERT INTO kept VALUES (?, 5)'",
    "execute": "SET @n = {n}; EXECUTE q USING @n",
    "explain": "EXPLAIN INSERT INTO kept VALUES ({n}, 6)",
    "create_as": "CREATE TABLE made AS SELECT 1 AS a",
    "drop": "DROP TABLE IF EXISTS made",
    "temporary": "CREATE TEMPORARY TABLE IF NOT EXISTS own (a INT)",
    "write_temporary": "INSERT INTO own VALUES (1)",
    "variable": "SET @x = 1",
    "advisory": "SELECT GET_LOCK('x', 0)",
    "built_ins": "SELECT NOW(), LOWER('A'), CURRENT_USER()",
    "catalogue": "SELECT COUNT(*) FROM information_schema.TABLES",
    "show": "SHOW TABLES",
    "describe": "DESCRIBE kept",
}


class MySQL(texts(OFTEN, USUAL), texts(1, RARE), Sql):  # type: ignore[misc]
    """Two servers, and a session of a client that the classes below connect."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (pymysql.MySQLError, MySQLdb.Error)
    refused_question = Refused
    state = STATE
    running = RUNNING
    rows = "SELECT n, v FROM app.kept ORDER BY n"
    _lost = False

    def __init__(self) -> None:
        super().__init__()
        self.topology = self.topologies()

    def open(self, choose: random.Random) -> None:
        """Of connections that were opened before the library came, a few."""
        self.asks_when_used = choose.random() < 0.2  # Their replies show no positions.
        self.flags = MULTI if self.asks_when_used else MULTI | TRACK
        super().open(choose)

    def topologies(self) -> Any:
        """The servers."""
        return MySQLTopology(lag_ms=0, config={"log_bin_trust_function_creators": "1"})

    def make(self) -> None:
        """By the administrator."""
        for statement in MADE:
            self.topology.execute(statement)
        self._other = pymysql.connect(autocommit=True, **self.account(self.topology.primary))
        mysql.instrument_connection(self._other, datastore=DATASTORE)

    def account(self, server: Any) -> dict[str, Any]:
        """Where and as whom the clients connect."""
        options = {"user": self.topology.user, "password": self.topology.password}
        return {"host": server.host, "port": server.port, **options, "database": "app"}

    def unmake(self) -> None:
        """Close the other client."""
        mysql.uninstrument_connection(self._other)
        self._other.close()

    def write_note(self, number: int) -> None:
        """By PyMySQL."""
        with self._other.cursor() as cursor:
            cursor.execute("INSERT INTO notes VALUES (%s)", (number,))

    def terminate(self) -> None:
        """By the number of its connection."""
        self.topology.execute(f"KILL {self._bare(self.session).thread_id()}")

    async def connect(self, *, replica: bool) -> Any:
        """Of the client."""
        server = self.topology.replica if replica else self.topology.primary
        made = await self.made(autocommit=self.autocommit or replica, **self.account(server))
        self._lost = False
        return self._whole(
            mysql.instrument_connection(
                made, datastore=DATASTORE, reads_from="replica" if replica else "primary"
            )
        )

    async def made(self, **options: Any) -> Any:
        """A connection that nothing instruments."""
        return pymysql.connect(client_flag=self.flags, **options)

    def _whole(self, connection: Any) -> Any:
        return Awaited(connection)

    def _bare(self, connection: Any) -> Any:
        return connection.part

    def gone(self) -> bool:
        """Its last call said so: not every client knows it."""
        return self._lost

    async def roll_back(self) -> None:
        """``rollback()``."""
        await self._call(self.session.rollback)

    async def _call(self, method: Any, *args: Any) -> None:
        try:
            await method(*args)
        except self.refusals as error:
            self._lost = self._lost or (bool(error.args) and error.args[0] in (0, *GONE))
            raise

    async def disconnect(self, connection: Any) -> None:
        """``close()``; it may be closed."""
        bare = self._bare(connection)
        mysql.uninstrument_connection(bare)
        if not getattr(bare, "closed", not getattr(bare, "open", False)):
            bare.close()

    async def send(self, text: str, *args: Any) -> list[Any]:
        """By a cursor of its own; all rows."""
        await self.whole()
        self.trace.append(text)
        return await self._rows(self.session, text, *args)

    async def _rows(self, connection: Any, text: str, *args: Any) -> list[Any]:
        async with connection.cursor() as cursor:
            await self._call(cursor.execute, text, args or None)
            rows = list(await cursor.fetchall())
            while await cursor.nextset():
                rows = list(await cursor.fetchall()) or rows
            return rows

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """By the library's own way to ask."""
        found: Sequence[Any] = await self.session._antipode_ask(text)
        return found

    async def read_replica(self, text: str) -> list[Any]:
        """By a cursor of its own."""
        return await self._rows(self.reader, text)

    @step(OFTEN)
    async def method_commit(self, choose: random.Random) -> None:
        """``commit()``."""
        self.trace.append("commit()")
        await self.whole()
        await self._call(self.session.commit)

    @step(OFTEN)
    async def method_rollback(self, choose: random.Random) -> None:
        """``rollback()``."""
        self.trace.append("rollback()")
        await self.whole()
        await self.roll_back()

    @step(OFTEN)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values."""
        await self.send("INSERT INTO kept VALUES (%s, %s)", self.number(), 8)

    @step(2)
    async def many(self, choose: random.Random) -> None:
        """``executemany``, whose last row may fail."""
        rows = [(self.number(), 9) for _ in range(choose.randrange(1, 4))]
        rows += rows[:1] if choose.random() < 0.3 else []
        await self.whole()
        self.trace.append(f"executemany {rows}")
        async with self.session.cursor() as cursor:
            await self._call(cursor.executemany, "INSERT INTO kept VALUES (%s, %s)", rows)

    @step(2)
    async def half_read(self, choose: random.Random) -> None:
        """Several results, of which the first alone is fetched."""
        await self.whole()
        number = self.number()
        self.trace.append(f"three statements, row {number}, and one result is fetched")
        async with self.session.cursor() as cursor:
            text = "SELECT 1; INSERT INTO kept VALUES (%s, 10); SELECT 2"
            await self._call(cursor.execute, text, (number,))
            if not await cursor.fetchall():
                raise Fault("broken", "a first result without rows")


class PyMySQL(AsCalls, MySQL):
    """PyMySQL."""


class MySQLClient(AsCalls, MySQL):
    """mysqlclient, whose connections do not show which server they reach: a shim asks the replica.

    Without it ``check()`` asks nobody, and leaves a floor for the reads of the replica.
    """

    def make(self) -> None:
        """The same, and the shim."""
        super().make()
        place = self.topology.url(self.topology.replica)
        self._asked = mysql.shim(DATASTORE, place, reads_from="replica")

    def unmake(self) -> None:
        """The same, and the shim."""
        self._asked.close()
        super().unmake()

    def open(self, choose: random.Random) -> None:
        """Its replies show no positions."""
        super().open(choose)
        self.asks_when_used = True

    async def made(self, **options: Any) -> Any:
        """By libmysqlclient."""
        return MySQLdb.connect(**options)


class Aiomysql(InLoop, MySQL):
    """aiomysql."""

    async def made(self, **options: Any) -> Any:
        """With its own names."""
        import aiomysql

        options["db"] = options.pop("database")
        return await aiomysql.connect(client_flag=self.flags, **options)

    def _whole(self, connection: Any) -> Any:
        return connection

    def _bare(self, connection: Any) -> Any:
        return connection

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.whole()
        insert = self.send("INSERT INTO kept VALUES (%s, 12)", self.number())
        await self.cancel(insert, choose.uniform(0, CANCEL_S))


class PyMySQLMariaDB(PyMySQL):
    """PyMySQL over MariaDB."""

    def topologies(self) -> Any:
        """The servers."""
        return MariaDBTopology(lag_ms=0, config={"log_bin_trust_function_creators": "1"})
