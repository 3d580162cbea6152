"""Lineages beside rows through aiomysql: the same claims, awaited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiomysql
import pytest

import antipode
from antipode import Lineage
from antipode.shim import Incomplete
from antipode_shims import mysql

from ._clients import NOTES, TRACK
from ._stored import CAUSE, OTHER, UNNAMED, make_unnamed_writes

if TYPE_CHECKING:
    from ._clients import Sql


class Opened:
    """A connection that keeps lineages beside posts, for one block."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def __aenter__(self) -> Any:
        topology = self._sql.topology
        self._connection = await aiomysql.connect(
            host=topology.primary.host,
            port=topology.primary.port,
            user=topology.user,
            password=topology.password,
            db=topology.database,
            autocommit=True,
            client_flag=TRACK,
        )
        return mysql.instrument_connection(
            self._connection, datastore=NOTES, lineage="beside", tables=["posts"]
        )

    async def __aexit__(self, *error: object) -> None:
        mysql.uninstrument_connection(self._connection)
        self._connection.close()


async def run(connection: Any, statement: str, *args: Any) -> list[Any]:
    """All rows of a statement."""
    async with connection.cursor() as cursor:
        await cursor.execute(statement, args or None)
        return list(await cursor.fetchall())


async def test_a_reader_depends_on_the_writes_lineage(posts: Sql) -> None:
    """What a write depended on, and a position that covers it, with the rows as they were."""
    async with Opened(posts) as writer, Opened(posts) as reader:
        with antipode.scope(Lineage([CAUSE])) as scope:
            await run(writer, "INSERT INTO posts VALUES (1, 'a', 'b')")
            (own,) = (write for write in scope.lineage if write.datastore == NOTES)
        with antipode.scope() as scope:
            assert await run(reader, "SELECT * FROM posts") == [(1, "a", "b")]
            assert CAUSE in scope.lineage
            (covering,) = (write for write in scope.lineage if write.datastore == NOTES)
            assert covering.covering
            assert int(covering.version) >= int(own.version)
            assert not scope.lineage.incomplete


async def test_updates_merge(posts: Sql) -> None:
    """Two writers of two columns."""
    async with Opened(posts) as writer, Opened(posts) as reader:
        with antipode.scope(Lineage([CAUSE])):
            await run(writer, "INSERT INTO posts VALUES (1, 'a', 'b')")
        with antipode.scope(Lineage([OTHER])):
            await run(writer, "UPDATE posts SET extra = 'c'")
        with antipode.scope() as scope:
            await run(reader, "SELECT body FROM posts")
            assert CAUSE in scope.lineage
            assert OTHER in scope.lineage


@pytest.mark.parametrize("statement", UNNAMED)
async def test_a_procedure_and_a_trigger_write_the_lineage_of_now(
    posts: Sql, statement: str
) -> None:
    """Not that of the connection's statement before, which named the table."""
    make_unnamed_writes(posts)
    async with Opened(posts) as writer, Opened(posts) as reader:
        with antipode.scope(Lineage([CAUSE])):
            await run(writer, "INSERT INTO posts VALUES (1, 'a', 'b')")
        with antipode.scope(Lineage([OTHER])):
            await run(writer, "REPLACE INTO posts VALUES (1, 'a', 'b')")
            await run(writer, statement)
        with antipode.scope() as scope:
            await run(reader, "SELECT body FROM posts")
            assert OTHER in scope.lineage
            assert CAUSE not in scope.lineage


async def test_other_tasks_may_look_meanwhile(posts: Sql) -> None:
    """Who uses the lineage while a read is under way is neither held up nor told of a gap."""
    async with Opened(posts) as reader:
        with antipode.scope() as scope:
            reading = asyncio.create_task(run(reader, "SELECT SLEEP(0.2), body FROM posts"))
            while not reading.done():
                assert not scope.lineage.incomplete
                await asyncio.sleep(0.01)
            await reading
            assert [write.covering for write in scope.lineage] == [True]


async def test_an_unbuffered_result_says_that_it_is_not_over(posts: Sql) -> None:
    """Rows are seen before their position: a lineage that is used in between is incomplete."""
    async with Opened(posts) as connection:
        with antipode.scope(Lineage([CAUSE])):
            for key in (1, 2):
                await run(connection, "INSERT INTO posts VALUES (%s, 'a', 'b')", key)
        with antipode.scope() as scope, antipode.scope():
            async with connection.cursor(aiomysql.SSCursor) as cursor:
                await cursor.execute("SELECT * FROM posts")
                await cursor.fetchall()
                assert not antipode.current().incomplete
        del scope
        with antipode.scope():
            async with connection.cursor(aiomysql.SSCursor) as cursor:
                await cursor.execute("SELECT * FROM posts")
                await cursor.fetchone()
                assert CAUSE in antipode.current()
                assert Incomplete(NOTES, "unsampled") in antipode.current().incomplete
