"""Replies of several results, on real servers: nothing leaves before what they wrote is known."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import aiomysql
import pymysql
import pytest

import antipode
from antipode_shims import mysql

from ._clients import IN_DOUBT, MULTI, NOTES, TIMEOUT_S, TRACK, Sql, minted, run

if TYPE_CHECKING:
    from collections.abc import Iterator

MySQLdb: Any = pytest.importorskip("MySQLdb")
CURSORS = {"pymysql": pymysql.cursors, "MySQLdb": pytest.importorskip("MySQLdb.cursors")}
BODY = "INSERT INTO notes VALUES (1, 'a'); SELECT 1; INSERT INTO notes VALUES (2, 'b')"
CALLS = ["CALL write_both()", "INSERT INTO notes VALUES (1, 'a'); SELECT 1; SELECT 2"]


@pytest.fixture(autouse=True)
def procedures(sql: Sql) -> None:
    """Two that write and answer with rows, one of which fails behind them."""
    for name, end in ("write_both", "SELECT 2"), ("write_and_fail", "SIGNAL SQLSTATE '45000'"):
        sql.topology.execute(f"DROP PROCEDURE IF EXISTS app.{name}")
        sql.topology.execute(f"CREATE PROCEDURE app.{name}() BEGIN {BODY}; {end}; END")


def opened(sql: Sql, client: str = "pymysql", **options: Any) -> Any:
    """A plain connection of a client to the primary, which takes several statements at once."""
    place = sql.topology.primary
    given = {"user": sql.topology.user, "password": sql.topology.password, "autocommit": True}
    given |= {"host": place.host, "port": place.port, "database": sql.topology.database}
    if client == "MySQLdb":
        return MySQLdb.connect(**given, **options)
    return pymysql.connect(**given, client_flag=TRACK | MULTI, **options)


@pytest.fixture(params=CURSORS)
def connection(sql: Sql, request: pytest.FixtureRequest) -> Iterator[Any]:
    """An instrumented connection of each synchronous client."""
    with closing(opened(sql, request.param)) as one:
        mysql.instrument_connection(one, datastore=NOTES)
        yield one
        mysql.uninstrument_connection(one)


def positions(scope: Any) -> list[tuple[str, int | str]]:
    """Keys and versions: mysqlclient's on MySQL are covering."""
    assert not scope.lineage.incomplete
    return [(write.key, write.version) for write in scope.lineage]


def results(connection: Any, call: str) -> Iterator[tuple[Any, ...]]:
    """What a client shows of each result, one after another."""
    with connection.cursor() as cursor:
        cursor.execute(call)
        more = True
        while more:
            rows = list(cursor.fetchall()) if cursor.description else None
            yield rows, cursor.rowcount, cursor.lastrowid, connection.affected_rows()
            more = cursor.nextset()


@pytest.mark.parametrize("call", CALLS)
def test_what_leaves_between_two_results_has_the_position(
    sql: Sql, connection: Any, call: str
) -> None:
    """A procedure's rows, or the first statement's, are there only once its writes are known."""
    with closing(opened(sql, type(connection).__module__.partition(".")[0])) as plain:
        expected = list(results(plain, call))
    run(connection, "DELETE FROM notes")
    with antipode.scope() as scope:
        found = []
        for each in results(connection, call):
            found.append(each)
            assert positions(scope) == [sql.position()]
        assert found == expected
        run(connection, "DELETE FROM notes")
        assert positions(scope) == [sql.position()]


def test_what_leaves_between_two_results_is_waited_for(sql: Sql, connection: Any) -> None:
    """Published within the cursor's block, the lineage makes its reader wait for the rows."""
    reader = sql.replica()
    sql.topology.set_lag(150)
    with antipode.scope(), connection.cursor() as cursor:
        cursor.callproc("write_both")
        cursor.fetchall()
        sent = antipode.current()
        with antipode.scope():
            antipode.barrier(sent, timeout=TIMEOUT_S)
            assert run(reader, "SELECT id FROM notes") == [(1,), (2,)]


def test_an_error_behind_rows_is_raised_where_the_application_comes_to_it(
    sql: Sql, connection: Any
) -> None:
    """What is read ahead changes nothing of what the client shows, and when."""
    with antipode.scope() as scope, connection.cursor() as cursor:
        cursor.execute("CALL write_and_fail()")
        assert list(cursor.fetchall()) == [(1,)]
        assert positions(scope) == [sql.position()]
        with pytest.raises((pymysql.MySQLError, MySQLdb.Error)):
            cursor.nextset()
        assert not cursor.nextset()
        cursor.execute("SELECT id FROM notes")
        assert list(cursor.fetchall()) == [(1,), (2,)]


def test_results_that_nobody_read_are_dropped_before_the_next_command(
    sql: Sql, connection: Any
) -> None:
    """A cursor that is left alone in the middle of a reply does not disturb the next one."""
    with antipode.scope() as scope:
        first = connection.cursor()
        first.execute("CALL write_both()")
        assert run(connection, "SELECT id FROM notes") == [(1,), (2,)]
        assert positions(scope) == [sql.position()]


@pytest.mark.parametrize("client", CURSORS)
def test_rows_taken_one_by_one_leave_the_write_in_doubt(sql: Sql, client: str) -> None:
    """What would have to be held whole is not read ahead: until its end the lineage says so."""
    with closing(opened(sql, client)) as connection:
        mysql.instrument_connection(connection, datastore=NOTES)
        for early in (True, False):
            with antipode.scope() as scope:
                run(connection, "DELETE FROM notes")
                with connection.cursor(CURSORS[client].SSCursor) as cursor:
                    cursor.execute("CALL write_both()")
                    assert cursor.fetchone() == (1,)
                    if early:
                        assert scope.lineage.incomplete == {IN_DOUBT}
                    while cursor.fetchall() or cursor.nextset():
                        pass
                assert sql.position() in [(write.key, write.version) for write in scope.lineage]
                assert bool(scope.lineage.incomplete) == early
        mysql.uninstrument_connection(connection)


def test_a_client_that_sends_files_reads_nothing_ahead(sql: Sql) -> None:
    """LOAD DATA LOCAL asks for a file in the middle of a reply, which only its client can send."""
    with closing(opened(sql, local_infile=True)) as connection:
        mysql.instrument_connection(connection, datastore=NOTES)
        with antipode.scope() as scope, connection.cursor() as cursor:
            cursor.callproc("write_both")
            assert scope.lineage.incomplete == {IN_DOUBT}
            while cursor.nextset():
                pass
            assert sql.position() in [(write.key, write.version) for write in scope.lineage]
        mysql.uninstrument_connection(connection)


def test_what_leaves_between_two_results_under_asyncio(sql: Sql) -> None:
    """The same with aiomysql: the position, the rows, the error where it comes."""

    async def work() -> None:
        place = sql.topology.primary
        connection = await aiomysql.connect(
            host=place.host,
            port=place.port,
            user=sql.topology.user,
            password=sql.topology.password,
            db=sql.topology.database,
            autocommit=True,
            client_flag=TRACK,
        )
        mysql.instrument_connection(connection, datastore=NOTES)
        with antipode.scope() as scope:
            async with connection.cursor() as cursor:
                await cursor.callproc("write_both")
                assert await cursor.fetchall() == ((1,),)
                assert minted(scope) == [sql.position()]
                assert await cursor.nextset()
                assert await cursor.fetchall() == ((2,),)
                await cursor.execute("DELETE FROM notes")
                await cursor.execute("CALL write_and_fail()")
                assert await cursor.fetchall() == ((1,),)
                assert sql.position() in positions(scope)
                with pytest.raises(pymysql.MySQLError):
                    await cursor.nextset()
            assert not scope.lineage.incomplete
            await connection.query("DELETE FROM notes")
            async with connection.cursor(aiomysql.SSCursor) as cursor:
                await cursor.execute("CALL write_both()")
                assert await cursor.fetchone() == (1,)
                assert scope.lineage.incomplete == {IN_DOUBT}
                while await cursor.fetchall() or await cursor.nextset():
                    pass
        mysql.uninstrument_connection(connection)
        connection.close()

    asyncio.run(work())
