"""No result, error or committed row differs from the plain client's."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import mysql
from tests.integration._played import MODES, played
from tests.integration.mysql._clients import NOTES, TRACK, Sql

if TYPE_CHECKING:
    from tests.integration._played import Session

INSERT, COUNT = "INSERT INTO played VALUES ({}, 'x')", "SELECT count(*) FROM played"
#: What an application may do in a session. What the library asks on its connection ends what the
#: server would say of the statement before: that is a limit the guide states.
STEPS = (
    *(INSERT.format(2), INSERT.format(2), COUNT, "SELEC 1", "SELECT 1 / 0", "ROLLBACK", "COMMIT"),
    *("BEGIN", INSERT.format(3), COUNT, "COMMIT"),
    *("BEGIN", INSERT.format(4), "ROLLBACK", COUNT),
    *("BEGIN", INSERT.format(5), INSERT.format(5), COUNT, "COMMIT", COUNT),
    *("BEGIN", INSERT.format(6), "SAVEPOINT s", INSERT.format(7), "ROLLBACK TO s", "COMMIT"),
    *("BEGIN", INSERT.format(8), "CREATE TABLE IF NOT EXISTS played (id INT)", "ROLLBACK", COUNT),
    *("SET autocommit = 0", INSERT.format(9), COUNT, "COMMIT", INSERT.format(10), "ROLLBACK"),
    *("SET autocommit = 1", "START TRANSACTION READ ONLY", INSERT.format(11), "COMMIT", COUNT),
    *("UPDATE played SET body = 'y' WHERE id > 3", "DELETE FROM played"),
    *("INSERT INTO numbered (body) VALUES ('x')", "SELECT LAST_INSERT_ID()"),
)


class Direct:
    """PyMySQL and mysqlclient."""

    def __init__(self, connection: Any, *, instrumented: bool) -> None:
        self.connection = connection
        self.heard: list[str] = []
        if instrumented:
            mysql.instrument_connection(self.connection, datastore=NOTES)

    def execute(self, statement: str) -> Any:
        with closing(self.connection.cursor()) as cursor:
            count = cursor.execute(statement)
            return count, cursor.rowcount, cursor.lastrowid, cursor.fetchall()

    def state(self) -> Any:
        return self.connection.get_autocommit()

    def close(self) -> None:
        mysql.uninstrument_connection(self.connection)
        self.connection.close()


class AioMySQL:
    """aiomysql."""

    def __init__(self, options: dict[str, Any], *, instrumented: bool) -> None:
        aiomysql = pytest.importorskip("aiomysql")
        self.loop = asyncio.new_event_loop()
        options["db"] = options.pop("database")
        self.connection: Any = self.loop.run_until_complete(aiomysql.connect(**options))
        self.heard: list[str] = []
        if instrumented:
            mysql.instrument_connection(self.connection, datastore=NOTES)

    def execute(self, statement: str) -> Any:
        async def run() -> Any:
            async with self.connection.cursor() as cursor:
                count = await cursor.execute(statement)
                return count, cursor.rowcount, cursor.lastrowid, await cursor.fetchall()

        return self.loop.run_until_complete(run())

    def state(self) -> Any:
        return self.connection.get_transaction_status()

    def close(self) -> None:
        mysql.uninstrument_connection(self.connection)
        self.loop.run_until_complete(self.connection.ensure_closed())
        self.loop.close()


def session_of(client: str, sql: Sql, *, instrumented: bool) -> Session:
    """A session of a client at the primary, in autocommit mode."""
    place, topology = sql.topology.primary, sql.topology
    options = {"host": place.host, "port": place.port, "database": topology.database}
    options |= {"user": topology.user, "password": topology.password, "autocommit": True}
    if client == "aiomysql":
        return AioMySQL({**options, "client_flag": TRACK}, instrumented=instrumented)
    if client == "mysqlclient":
        plain = pytest.importorskip("MySQLdb").connect(**options)
    else:
        plain = sql.plain()
    return Direct(plain, instrumented=instrumented)


@pytest.mark.parametrize("client", ["PyMySQL", "mysqlclient", "aiomysql"])
@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(sql: Sql, client: str, mode: Any, *, scoped: bool) -> None:
    """Every step of a session ends as it does without the library, and commits what it does."""
    antipode.configure(mode=mode)
    observer = Direct(sql.plain(), instrumented=False)
    scripts = []
    for instrumented in (False, True):
        for statement in (
            "DROP TABLE IF EXISTS played, numbered",
            "CREATE TABLE played (id INT PRIMARY KEY, body TEXT)",
            "CREATE TABLE numbered (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)",
        ):
            observer.execute(statement)
        with ExitStack() as stack:
            session = stack.enter_context(
                closing(session_of(client, sql, instrumented=instrumented))
            )
            if scoped:
                stack.enter_context(antipode.scope())
            scripts.append(played(session, STEPS, lambda: observer.execute(COUNT)))
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
