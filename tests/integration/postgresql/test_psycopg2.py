"""psycopg2 on a primary and a standby: positions after commits, reads that wait."""

from __future__ import annotations

import io
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierTimeout, ConfigurationError, StaleSnapshot
from antipode_shims import postgresql
from antipode_testing import LagProxy
from tests.integration._stale import doubtful, served
from tests.integration.postgresql._clients import DATASTORE, REPEATABLE, TAKE_NONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.postgresql._clients import Clients

psycopg2 = pytest.importorskip("psycopg2")
pytestmark = pytest.mark.store("postgresql")
UPDATE, READ = "UPDATE posts SET body = %s WHERE id = 1", "SELECT body FROM posts WHERE id = 1"


@contextmanager
def connected(
    clients: Clients, *, replica: bool = False, plain: bool = False, address: Any = None
) -> Iterator[Any]:
    """A connection to the primary, or to the standby."""
    place = clients.topology.replica if replica else address
    made = postgresql.connection_factory(
        datastore=DATASTORE, reads_from="replica" if replica else "primary"
    )
    options = {} if plain else {"connection_factory": made}
    with closing(psycopg2.connect(clients.topology.url(place), **options)) as connection:
        yield connection
        if not plain:
            postgresql.uninstrument_connection(connection)


def execute(connection: Any, statement: str, *values: Any) -> Any:
    """Run a statement; its rows, if it has some."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else None


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_read_at_the_standby_waits_for_the_write(clients: Clients, *, autocommit: bool) -> None:
    """After `at="read"` and after `at="now"` the standby shows what the primary committed."""
    clients.topology.set_lag(100)
    with connected(clients) as writer, connected(clients, replica=True) as reader:
        writer.autocommit = reader.autocommit = autocommit
        for number, at in enumerate(("read", "now", "read")):
            with antipode.scope() as scope:
                execute(writer, UPDATE, str(number))
                writer.commit()
                (write,) = scope.lineage
                assert not scope.lineage.incomplete
                assert not write.covering
                antipode.barrier(timeout=15, at=at)
                assert execute(reader, READ) == [(str(number),)]
                reader.commit()


@pytest.mark.parametrize("plain", [True, False])
def test_what_a_method_does_not_end_stays_open(clients: Clients, *, plain: bool) -> None:
    """Under autocommit ``commit()`` and ``rollback()`` send nothing: an explicit BEGIN stays."""
    with connected(clients, plain=plain) as writer, antipode.scope() as scope:
        writer.autocommit = True
        execute(writer, "BEGIN")
        execute(writer, UPDATE, "uncommitted")
        writer.commit()
        writer.rollback()
        assert writer.get_transaction_status() == psycopg2.extensions.TRANSACTION_STATUS_INTRANS
        assert clients.topology.execute(READ)[0]["body"] == ""
        assert not scope.lineage
        execute(writer, "COMMIT")
        assert clients.topology.execute(READ)[0]["body"] == "uncommitted"
        assert len(scope.lineage) == (0 if plain else 1)


@pytest.mark.parametrize("autocommit", [True, False])
def test_rows_before_the_one_that_fails(clients: Clients, *, autocommit: bool) -> None:
    """``executemany`` under autocommit commits each row: those before the error enter."""
    rows = [(2, ""), (2, "")]
    with connected(clients) as writer, antipode.scope() as scope:
        writer.autocommit = autocommit
        with writer.cursor() as cursor, pytest.raises(psycopg2.errors.UniqueViolation):
            cursor.executemany("INSERT INTO posts VALUES (%s, %s)", rows)
        kept = clients.topology.execute("SELECT count(*) AS n FROM posts WHERE id = 2")[0]["n"]
        assert len(scope.lineage) == kept == (1 if autocommit else 0)
        assert not scope.lineage.incomplete


def test_a_commit_costs_one_round_trip_more(clients: Clients) -> None:
    """So does a statement that commits on its own, and the server warns of nothing."""
    with LagProxy(clients.topology.primary) as counted:
        for autocommit in (False, True):
            cost = []
            for plain in (True, False):
                with connected(clients, plain=plain, address=counted.address) as one:
                    one.autocommit = autocommit
                    with antipode.scope():
                        for _ in range(2):  # The first one asks what the server is.
                            before = counted.traffic().exchanges
                            execute(one, UPDATE, "x")
                            one.commit()
                            spent = counted.traffic().exchanges - before
                    assert not one.notices
                cost.append(spent)
            assert cost[1] == cost[0] + 1


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_block_of_the_connection(clients: Clients, *, autocommit: bool) -> None:
    """In `with connection`, which opens a transaction on its own, reads wait as elsewhere.

    What was set stays set, and the block's writes and errors end it as without the library.
    """
    clients.topology.set_lag(100)
    with connected(clients) as writer, connected(clients, replica=True) as reader:
        writer.autocommit = reader.autocommit = autocommit
        for before, number in (("", "0"), ("0", "1")):
            with antipode.scope() as scope:
                with writer:
                    assert execute(writer, READ) == [(before,)]
                    execute(writer, UPDATE, number)
                assert scope.lineage
                antipode.barrier(timeout=15, at="read")
                # The client refuses a named cursor where it commits each statement.
                with reader, reader.cursor(None if autocommit else "named") as cursor:
                    cursor.execute(READ)
                    assert cursor.fetchall() == [(number,)]
                    assert execute(reader, "SELECT now() = statement_timestamp()") == [(False,)]
                with pytest.raises(psycopg2.errors.DivisionByZero), reader:
                    execute(reader, "SELECT 1 / 0")
                assert reader.autocommit is autocommit
                assert reader.status == psycopg2.extensions.STATUS_READY


def test_a_connection_that_returns_early_is_refused(clients: Clients) -> None:
    """With `async_=1` calls end before their replies: it is refused as it is made, and closed."""
    made = []

    class Kept(psycopg2.extensions.connection):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    factory = postgresql.connection_factory(base=Kept, datastore=DATASTORE)
    with pytest.raises(ConfigurationError, match="async_=1"):
        psycopg2.connect(clients.topology.url(), connection_factory=factory, async_=1)
    assert [each.closed for each in made] == [1]


def test_two_phases_refuse_what_they_refuse(clients: Clients) -> None:
    """Within a transaction of two phases `commit` and `rollback` are errors, and send nothing."""
    with connected(clients) as writer, antipode.scope() as scope:
        writer.tpc_begin(writer.xid(1, "two phases", "branch"))
        execute(writer, UPDATE, "a")
        for refused in (writer.commit, writer.rollback):
            with pytest.raises(psycopg2.ProgrammingError):
                refused()
        assert not scope.lineage
        writer.tpc_commit()
        assert scope.lineage
        execute(writer, UPDATE, "b")
        writer.commit()
        assert execute(writer, READ) == [("b",)]


def test_what_was_not_committed_enters_nothing(clients: Clients) -> None:
    """A rollback, a failed transaction's COMMIT, a constraint that fails at COMMIT, a read."""
    clients.topology.execute("DROP TABLE IF EXISTS late")
    clients.topology.execute("CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    clients.topology.execute(f"ALTER TABLE late OWNER TO {clients.topology.user}")
    with connected(clients) as writer, antipode.scope() as scope:
        execute(writer, UPDATE, "a")
        writer.rollback()
        execute(writer, UPDATE, "a")
        with pytest.raises(psycopg2.errors.DivisionByZero):
            execute(writer, "SELECT 1 / 0")
        writer.commit()
        execute(writer, "INSERT INTO late VALUES (1), (1)")
        with pytest.raises(psycopg2.errors.UniqueViolation):
            writer.commit()
        assert execute(writer, READ) == [("",)]
        writer.commit()
        with pytest.raises(TypeError):
            execute(writer, UPDATE, "a", "b")
        assert not scope.lineage
        assert not scope.lineage.incomplete
        execute(writer, UPDATE, "b")  # What failed at COMMIT is over for the client, too.
        writer.rollback()
        assert execute(writer, READ) == [("",)]
    clients.topology.execute("DROP TABLE late")


def test_a_commit_that_is_not_flushed_is_in_doubt_until_it_is(clients: Clients) -> None:
    """synchronous_commit=off for one transaction: a crash would undo it."""
    clients.topology.config({"wal_writer_delay": "10s"})

    def doubtful(writer: Any) -> bool:
        with antipode.scope() as scope:
            execute(writer, "SET LOCAL synchronous_commit = off")
            execute(writer, UPDATE, "a")
            writer.commit()
            return (DATASTORE, "in_doubt") in scope.lineage.incomplete

    with connected(clients) as writer:
        assert any(doubtful(writer) for _ in range(50))  # Until the delay is in force.


def test_snapshots_and_cursors(clients: Clients) -> None:
    """REPEATABLE READ waits before its transaction or raises; so do cursors of the server."""
    clients.topology.set_lag(50)
    with connected(clients) as writer, connected(clients, replica=True) as reader:
        writer.autocommit = True
        reader.set_session(isolation_level="REPEATABLE READ")
        with antipode.scope():
            execute(writer, UPDATE, "a")
            antipode.barrier(timeout=15, at="read")
            assert execute(reader, READ) == [("a",)]
            execute(writer, UPDATE, "b")
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                execute(reader, READ)
            reader.rollback()
            with reader.cursor("named") as cursor:
                cursor.execute(READ)
                execute(writer, UPDATE, "c")
                antipode.barrier(timeout=15, at="read")
                with pytest.raises(StaleSnapshot):
                    next(cursor)
            reader.rollback()
            assert execute(reader, READ) == [("c",)]


def test_a_transaction_that_has_no_snapshot_yet_waits(clients: Clients) -> None:
    """What takes none may come before; its first read sees the write."""
    clients.topology.set_lag(50)
    with connected(clients) as writer, connected(clients, replica=True) as reader:
        writer.autocommit = reader.autocommit = True
        for statement in (REPEATABLE, *TAKE_NONE):
            execute(reader, statement)
        with antipode.scope():
            execute(writer, UPDATE, "a")
            antipode.barrier(timeout=15, at="read")
            assert execute(reader, READ) == [("a",)]
            execute(writer, UPDATE, "b")
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                execute(reader, READ)


def test_a_read_is_given_up_where_the_standby_does_not_answer(clients: Clients) -> None:
    """Frozen while the read waits: the barrier's time ends it, not the client's patience."""
    with connected(clients) as writer, connected(clients, replica=True) as reader:
        writer.autocommit = reader.autocommit = True
        execute(reader, READ)
        with antipode.scope():
            execute(writer, UPDATE, "a")
            clients.topology.suspend_replica()
            antipode.barrier(timeout=0.5, at="read")
            with pytest.raises(BarrierTimeout):
                execute(reader, READ)
            clients.topology.resume_replica()


def test_a_pool_and_dictionaries(clients: Clients) -> None:
    """The pool's connections are instrumented as it makes them, whatever class cursors have."""
    pools = pytest.importorskip("psycopg2.pool")
    extras = pytest.importorskip("psycopg2.extras")
    factory = postgresql.connection_factory(
        datastore=DATASTORE, reads_from="replica", base=extras.DictConnection
    )
    url = clients.topology.url(clients.topology.replica)
    pool = pools.ThreadedConnectionPool(1, 2, url, connection_factory=factory)
    clients.topology.set_lag(50)
    with connected(clients) as writer:
        for number in range(3):
            with antipode.scope():
                with writer:
                    execute(writer, UPDATE, str(number))
                antipode.barrier(timeout=15, at="read")
                reader = pool.getconn()
                assert execute(reader, READ)[0]["body"] == str(number)
                pool.putconn(reader)
    pool.closeall()


def test_rows_keep_their_shape(clients: Clients) -> None:
    """Cursors of the client's that make rows of their own do so when they are iterated over."""
    extras = pytest.importorskip("psycopg2.extras")
    with connected(clients) as one:
        for factory, found in (
            (extras.NamedTupleCursor, lambda row: row.number),
            (extras.DictCursor, lambda row: row["number"]),
            (extras.RealDictCursor, lambda row: row["number"]),
        ):
            with one.cursor("named", cursor_factory=factory) as cursor:
                cursor.execute("SELECT number FROM generate_series(1, 3) AS number")
                cursor.itersize = 2
                assert [found(row) for row in cursor] == [1, 2, 3]
        with one.cursor() as cursor:
            target = io.StringIO()
            cursor.copy_expert("COPY (SELECT 1) TO STDOUT", file=target, size=8192)
            assert target.getvalue() == "1\n"


def test_a_promise_is_kept_with_its_data(clients: Clients) -> None:
    """By a connection or a cursor, within their transaction; outside of one it is refused."""
    for statement in postgresql.promises_ddl():
        clients.topology.execute(statement)
    clients.topology.execute(f"ALTER TABLE antipode_promises OWNER TO {clients.topology.user}")
    with connected(clients) as writer, antipode.scope():
        promise = antipode.promise(DATASTORE, expires_in_s=60)
        postgresql.fulfil(writer.cursor(), promise)
        writer.commit()
        antipode.barrier(timeout=15)
        writer.autocommit = True
        with pytest.raises(ConfigurationError, match="autocommit"):
            postgresql.fulfil(writer, promise)
    clients.topology.execute("DROP TABLE antipode_promises")


def test_a_plain_connection_is_refused(clients: Clients) -> None:
    """Its class was chosen when it was made: the error says how to make one."""
    refused = pytest.raises(ConfigurationError, match="connection_factory")
    with connected(clients, plain=True) as plain, refused:
        postgresql.instrument_connection(plain, datastore=DATASTORE)


def test_a_read_that_is_refused_is_not_counted_as_stale(clients: Clients) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    with connected(clients, replica=True) as reader:
        reader.autocommit = True
        for lineage in doubtful(DATASTORE):
            refused = pytest.raises(psycopg2.errors.DivisionByZero)
            with served(DATASTORE, 0), antipode.scope(lineage), refused:
                execute(reader, "SELECT 1 / (id - id) FROM posts")
            with served(DATASTORE, 1), antipode.scope(lineage):
                assert execute(reader, "SELECT id FROM posts") == [(1,)]
