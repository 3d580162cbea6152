"""Instrumented PyMySQL connections on real servers: nothing changes but the lineage."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from pymysql.cursors import DictCursor, SSCursor

import antipode
from antipode import BarrierTimeout, ConfigurationError, IncompleteLineage
from antipode_shims import mysql
from antipode_testing import LagProxy, wait_until
from tests.integration._stale import doubtful, served

from ._clients import (
    IN_DOUBT,
    MULTI,
    NOTES,
    TIMEOUT_S,
    TRACK,
    counted,
    exchanges,
    learn_views,
    minted,
    run,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ._clients import Sql

LAG_MS = 150


def session(connection: Any) -> list[Any]:
    """A little of everything; what it returned and raised."""
    found: list[Any] = []

    def attempt(statement: str, *args: Any, many: bool = False) -> None:
        with connection.cursor() as cursor:
            try:
                count = (cursor.executemany if many else cursor.execute)(statement, args or None)
            except pymysql.Error as error:
                found.append((type(error), error.args))
                return
            found.append((count, cursor.rowcount, cursor.lastrowid, cursor.fetchall()))
            result = connection._result  # What the reply was taken for.
            found.append((result.message, connection.affected_rows(), connection.insert_id()))
            while cursor.nextset():
                found.append((cursor.rowcount, cursor.fetchall()))

    attempt("DROP TABLE IF EXISTS session_notes")
    attempt("CREATE TABLE session_notes (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)")
    attempt("INSERT INTO session_notes (body) VALUES (%s)", "it's; a -- /* text")
    attempt("INSERT INTO session_notes (body) VALUES (%s)", ("a",), ("b",), many=True)
    attempt("INSERT INTO session_notes (body) VALUES ('x'), ('y')")
    attempt("SELECT * FROM session_notes ORDER BY id")
    attempt("SELECT * FROM session_notes WHERE id < 0")
    attempt("UPDATE session_notes SET body = 'z' WHERE id < 3")
    attempt("UPDATE session_notes SET body = 'z' WHERE id < 3")
    attempt("INSERT INTO session_notes (id) VALUES (1)")
    attempt("NO SUCH STATEMENT")
    attempt("SELECT ROW_COUNT()")
    attempt("SELECT * FROM session_notes LIMIT 1; DELETE FROM session_notes WHERE id = 2; SELECT 1")
    attempt("BEGIN")
    attempt("DELETE FROM session_notes")
    attempt("ROLLBACK")
    attempt("DO 1")
    attempt("SET @a = 1")
    attempt("SELECT @a, NULL, 1.5, NOW() > '2000-01-01'")
    connection.begin()
    attempt("REPLACE INTO session_notes VALUES (1, 'r')")
    connection.commit()
    connection.ping(reconnect=False)
    attempt("SELECT COUNT(*) FROM session_notes")
    return found


@pytest.mark.parametrize("cursor", [pymysql.cursors.Cursor, DictCursor, SSCursor])
@pytest.mark.parametrize("flag", [0, TRACK])
def test_results_are_pymysqls(sql: Sql, cursor: Any, flag: int) -> None:
    """Return values and exceptions are the plain client's, whatever its cursors."""
    expected = session(sql.plain(cursorclass=cursor, client_flag=MULTI))
    with antipode.scope() as scope:
        connection = sql.connect(cursorclass=cursor, client_flag=MULTI | flag)
        assert session(connection) == expected
        assert len(scope.lineage) >= 1
        assert not scope.lineage.incomplete


def test_an_autocommitted_write_has_its_own_position(sql: Sql) -> None:
    """The entry is exact, and it is where the server's log stands after the write."""
    connection = sql.connect()
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]
        run(connection, "UPDATE notes SET body = 'b'")
        assert minted(scope) == [sql.position()]


def test_reads_and_writes_make_no_more_round_trips(sql: Sql, to_primary: LagProxy) -> None:
    """A write brings its position with its reply; a read without a floor asks nothing."""
    connection = sql.connect(to_primary.address)
    learn_views(connection)
    with antipode.scope() as scope, exchanges(to_primary) as made:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        connection.begin()
        run(connection, "UPDATE notes SET body = 'b'")
        connection.commit()
        run(connection, "SELECT * FROM notes")
        run(connection, "UPDATE notes SET body = 'b'")
    assert made == [6]
    assert len(minted(scope)) == 1


def test_a_connection_without_tracking_pays_one_round_trip(
    sql: Sql, to_primary: LagProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was open before asks behind each commit that wrote, never behind others."""
    connection = sql.connect(to_primary.address, client_flag=0)
    with antipode.scope() as scope, exchanges(to_primary) as made:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
    assert made == [2]
    assert [(w.key, w.version) for w in scope.lineage] == [sql.position()]
    with exchanges(to_primary) as made:
        run(connection, "SELECT * FROM notes")
        run(connection, "DELETE FROM notes WHERE id = 7")
    assert made == [2]
    assert "a round trip more" in caplog.text or counted("logged") == 0


def test_tracking_is_agreed_on_at_the_next_handshake(sql: Sql, to_primary: LagProxy) -> None:
    """A connection that was open before needs no extra round trip once it connected again."""
    connection = sql.connect(to_primary.address, client_flag=0)
    connection.close()
    connection.connect()
    run(connection, "SELECT 1")
    with antipode.scope() as scope, exchanges(to_primary) as made:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
    assert made == [1]
    assert minted(scope) == [sql.position()]


def test_tracking_that_the_application_turned_off_comes_back(sql: Sql) -> None:
    """``SET`` of the session's own tracking is answered by asking again."""
    connection = sql.connect()
    name = "session_track_system_variables = ''" if sql.mariadb else "session_track_gtids = OFF"
    run(connection, f"SET SESSION {name}")
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]


def test_a_read_after_a_barrier_is_never_stale(sql: Sql) -> None:
    """The floor is met on the connection that reads, whatever the lag; a later one asks nothing."""
    writer = sql.connect()
    with LagProxy(sql.topology.replica) as proxy:
        reader = sql.connect(proxy.address, reads_from="replica")
        sql.topology.set_lag(LAG_MS)
        with antipode.scope():
            run(writer, "INSERT INTO notes VALUES (1, 'a')")
            assert run(reader, "SELECT body FROM notes") in ([], [("a",)])
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert run(reader, "SELECT body FROM notes") == [("a",)]
            with exchanges(proxy) as made:
                assert run(reader, "SELECT body FROM notes") == [("a",)]
            assert made == [1]


def test_a_read_that_cannot_be_met_in_time_raises(sql: Sql) -> None:
    """The time is up: nothing was read, and the connection goes on."""
    writer, reader = sql.connect(), sql.replica()
    sql.topology.pause()
    with antipode.scope():
        run(writer, "INSERT INTO notes VALUES (1, 'a')")
        antipode.barrier(timeout=0.3, at="read")
        with pytest.raises(BarrierTimeout):
            run(reader, "SELECT body FROM notes")
    assert run(reader, "SELECT body FROM notes") == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body FROM notes LOCK IN SHARE MODE",
        "(SELECT body FROM notes)",
        "WITH n AS (SELECT body FROM notes) SELECT * FROM n",
        "/* a comment */ SELECT body FROM notes",
        "SELECT 1; SELECT body FROM notes",
        "SELECT body INTO @b FROM notes; SELECT @b",
        "SET @b = (SELECT body FROM notes); SELECT @b",
        "CALL read_notes()",
        "EXECUTE read_notes",
    ],
)
def test_every_kind_of_read_waits(sql: Sql, statement: str) -> None:
    """Whatever may read data is held back, and sees what the barrier waited for."""
    sql.topology.execute("DROP PROCEDURE IF EXISTS app.read_notes")
    sql.topology.execute("CREATE PROCEDURE app.read_notes() SELECT body FROM notes")
    sql.topology.wait_replicated()
    writer, reader = sql.connect(), sql.replica(client_flag=TRACK | MULTI)
    run(reader, "PREPARE read_notes FROM 'SELECT body FROM notes'")
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        run(writer, "INSERT INTO notes VALUES (1, 'a')")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert run(reader, statement) == [("a",)]


def test_own_writes_need_no_question(sql: Sql, to_primary: LagProxy) -> None:
    """What a connection committed itself it need not ask its server for."""
    connection = sql.connect(to_primary.address)
    learn_views(connection)
    with antipode.scope():
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with exchanges(to_primary) as made:
            assert run(connection, "SELECT body FROM notes") == [("a",)]
    assert made == [1]


def test_at_now_looks_where_the_connection_goes(sql: Sql) -> None:
    """A barrier waits on a connection of its own to the server that was instrumented."""
    writer, reader = sql.connect(), sql.replica()
    sql.topology.set_lag(LAG_MS)
    with antipode.scope():
        run(writer, "INSERT INTO notes VALUES (1, 'a')")
        assert antipode.barrier(timeout=TIMEOUT_S)
        assert run(reader, "SELECT body FROM notes") == [("a",)]


def broken(work: Callable[[], Any], proxy: LagProxy) -> None:
    """Send *work*'s command, and lose the connection before its reply comes."""
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except pymysql.Error as error:
            raised.append(error)

    before = proxy.traffic().request_bytes
    proxy.pause()
    thread = threading.Thread(target=contextvars.copy_context().run, args=(attempt,))
    thread.start()
    wait_until(
        lambda: proxy.traffic().request_bytes > before, timeout_s=TIMEOUT_S, what="the command"
    )
    proxy.cut()
    thread.join(TIMEOUT_S)
    proxy.heal()
    proxy.resume()
    assert len(raised) == 1


def test_a_write_whose_reply_is_lost_is_in_doubt(sql: Sql, to_primary: LagProxy) -> None:
    """Autocommit: the statement may have been committed."""
    connection = sql.connect(to_primary.address)
    with antipode.scope() as scope:
        broken(lambda: run(connection, "INSERT INTO notes VALUES (1, 'a')"), to_primary)
        assert scope.lineage.incomplete == {IN_DOUBT}


def test_a_commit_whose_reply_is_lost_is_in_doubt(sql: Sql, to_primary: LagProxy) -> None:
    """So may the transaction, where it wrote."""
    connection = sql.connect(to_primary.address, autocommit=False)
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        broken(connection.commit, to_primary)
        assert scope.lineage.incomplete == {IN_DOUBT}


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM notes", "INSERT INTO notes VALUES (2, 'b')", "ROLLBACK", "SAVEPOINT s"],
)
def test_what_cannot_be_committed_is_not_in_doubt(
    sql: Sql, to_primary: LagProxy, statement: str
) -> None:
    """A transaction whose connection is lost before its COMMIT is rolled back."""
    connection = sql.connect(to_primary.address, autocommit=False)
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        broken(lambda: run(connection, statement), to_primary)
        assert not scope.lineage.incomplete
        assert not len(scope.lineage)


def test_a_connection_lost_before_the_write_leaves_nothing(sql: Sql, to_primary: LagProxy) -> None:
    """What was never sent to a living server is not in doubt."""
    connection = sql.connect(to_primary.address)
    to_primary.cut()
    with antipode.scope() as scope:
        with pytest.raises(pymysql.Error):
            run(connection, "INSERT INTO notes VALUES (1, 'a')")
        with pytest.raises(pymysql.Error):
            run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert not scope.lineage.incomplete
        assert not len(scope.lineage)


def test_a_connection_opens_again(sql: Sql, to_primary: LagProxy) -> None:
    """After its connection was lost, the same object mints on."""
    connection = sql.connect(to_primary.address)
    to_primary.cut()
    to_primary.heal()
    with antipode.scope() as scope:
        with pytest.raises(pymysql.Error):
            run(connection, "SELECT * FROM notes")
        connection.connect()
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]


def test_large_statements_and_results(sql: Sql) -> None:
    """Rows and texts of any size pass, those that look like other packets included."""
    connection = sql.connect()
    texts = ["", "\x00" * 20, "\xfe" * 5, "x" * 300, "y" * 60_000, ";" * 300]
    with antipode.scope() as scope:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO notes VALUES (%s, %s)", list(enumerate(texts)))
        assert minted(scope) == [sql.position()]
        rows = run(connection, "SELECT body, id FROM notes ORDER BY id")
        assert [row[0] for row in rows] == texts
        assert run(connection, "SELECT NULL, body FROM notes WHERE id = 1") == [(None, texts[1])]


def test_load_data_mints(sql: Sql, tmp_path: Path) -> None:
    """``LOAD DATA LOCAL`` is a write like others; its file goes between command and reply."""
    sql.topology.config({"local_infile": 1})
    path = tmp_path / "notes.csv"
    path.write_text("1\ta\n2\tb\n")
    connection = sql.connect(local_infile=True)
    with antipode.scope() as scope:
        run(connection, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE notes")
        assert minted(scope) == [sql.position()]
    assert run(connection, "SELECT COUNT(*) FROM notes") == [(2,)]


def test_an_unread_result_is_read_before_the_next_command(sql: Sql) -> None:
    """An abandoned unbuffered result costs nothing of the position of the write behind it."""
    connection = sql.connect(cursorclass=SSCursor)
    run(connection, "INSERT INTO notes VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with antipode.scope() as scope:
        cursor = connection.cursor()
        cursor.execute("SELECT * FROM notes ORDER BY id")
        assert cursor.fetchone() == (1, "a")
        with pytest.warns(UserWarning, match="unbuffered"):
            connection.query("DELETE FROM notes WHERE id = 3")
        cursor.close()
        assert minted(scope) == [sql.position()]


@pytest.fixture
def administrator(sql: Sql) -> Iterator[str]:
    """A user who may do everything, with its name as password."""
    name = "notes_admin"
    sql.topology.execute(f"CREATE USER {name}@'%' IDENTIFIED BY '{name}'")
    sql.topology.execute(f"GRANT ALL ON *.* TO {name}@'%'")
    yield name
    sql.topology.execute(f"DROP USER {name}@'%'")


def test_uncovered_writes_are_counted(sql: Sql, administrator: str) -> None:
    """What the session does not log never gets anywhere: no later position stands for it."""
    connection = sql.connect(user=administrator, password=administrator)
    run(connection, "SET SESSION sql_log_bin = 0")
    before = counted("uncovered_write")
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (99, 'a')")
        assert scope.lineage.incomplete == {IN_DOUBT}
        with pytest.raises(IncompleteLineage):
            antipode.barrier(timeout=TIMEOUT_S)
        run(connection, "DELETE FROM notes WHERE id = 99")
        run(connection, "SET SESSION sql_log_bin = 1")
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]
    assert counted("uncovered_write") == before + 2


def test_instrumenting_is_idempotent_and_undoable(sql: Sql) -> None:
    """The object stays what it is, and is as before in the end."""
    connection = sql.plain()
    plain = type(connection)
    assert mysql.instrument_connection(connection, datastore=NOTES) is connection
    assert mysql.instrument_connection(connection, datastore=NOTES) is connection
    assert isinstance(connection, pymysql.Connection)
    with pytest.raises(ConfigurationError, match="instrumented as"):
        mysql.instrument_connection(connection, datastore="other")
    mysql.uninstrument_connection(connection)
    mysql.uninstrument_connection(connection)
    assert type(connection) is plain
    with antipode.scope() as scope:
        run(connection, "INSERT INTO notes VALUES (1, 'a')")
        assert not len(scope.lineage)


def test_what_was_unregistered_can_be_instrumented_again(sql: Sql) -> None:
    """Connections share a shim; one that was closed serves neither new connections nor old ones."""
    old = sql.connect()
    antipode.shim.unregister(NOTES)
    for connection in (sql.connect(), mysql.instrument_connection(old, datastore=NOTES)):
        with antipode.scope():
            run(connection, "REPLACE INTO notes VALUES (1, 'a')")
            assert antipode.barrier(timeout=TIMEOUT_S, only=NOTES).outcomes
    (shim,) = antipode.shim.shims_of(NOTES)
    mysql.uninstrument_connection(old)
    assert antipode.shim.shims_of(NOTES) == (shim,)
    mysql.uninstrument_connection(connection)


def test_what_is_not_supported_is_refused(sql: Sql) -> None:
    """Lineages beside values, and objects that are no connections."""
    with pytest.raises(ConfigurationError, match="needs tables="):
        mysql.instrument_connection(sql.plain(), datastore=NOTES, lineage="beside")
    with pytest.raises(ConfigurationError, match="no connection"):
        mysql.instrument_connection(object(), datastore=NOTES)


def test_connections_of_one_server_look_as_one(sql: Sql) -> None:
    """A barrier at the server of several connections is no ambiguity."""
    first, second = sql.connect(), sql.connect()
    with antipode.scope() as scope:
        run(first, "INSERT INTO notes VALUES (1, 'a')")
        run(second, "INSERT INTO notes VALUES (2, 'b')")
        assert antipode.barrier(timeout=TIMEOUT_S)
        assert len(writes_of(scope.lineage)) == 1


def test_a_first_command_that_is_no_statement(sql: Sql) -> None:
    """A pool's ping, or a change of database, before anything was asked of the server."""
    connection = sql.plain()
    mysql.instrument_connection(connection, datastore=NOTES)
    connection.ping(reconnect=False)
    connection.select_db(sql.topology.database)
    with antipode.scope() as scope:
        run(connection, "REPLACE INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]


def test_a_read_that_is_refused_is_not_counted_as_stale(sql: Sql) -> None:
    """A read that raises is served to nobody; one whose rows are read one by one is counted."""
    antipode.configure(barriers="auto")
    connection = sql.connect()
    for lineage in doubtful(NOTES):
        with served(NOTES, 0), antipode.scope(lineage):
            with pytest.raises(pymysql.OperationalError):
                run(connection, "SELECT nothing FROM notes")
            run(connection, "SET @x = 1")
        with served(NOTES, 2), antipode.scope(lineage):
            run(connection, "SELECT id FROM notes")
            with connection.cursor(SSCursor) as cursor:
                cursor.execute("SELECT id FROM notes")
