"""Reads from snapshots that are older than the read: each shows the write, or raises."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import StaleSnapshot
from antipode_shims import postgresql

psycopg2 = pytest.importorskip("psycopg2")
pytest.importorskip("asyncpg")
pytestmark = pytest.mark.store("postgresql")

from ._clients import DATASTORE, REPEATABLE, Clients  # noqa: E402 - its clients are there
from ._sessions import CLIENTS, Connection  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERY = "SELECT body FROM posts ORDER BY id"


def write_and_wait(clients: Clients, said: str) -> None:
    """Another connection writes; whatever reads from now on has to see it."""
    clients.writer(autocommit=True).execute("UPDATE posts SET body = %s", (said,))
    antipode.barrier(timeout=15, at="read")


@pytest.fixture(params=["psycopg", "psycopg2"])
def reader(request: pytest.FixtureRequest, clients: Clients) -> Iterator[Any]:
    """A connection to the standby, whose statements commit on their own."""
    if request.param == "psycopg":
        yield clients.reader(autocommit=True)
        return
    with closing(psycopg2_at(clients, clients.topology.replica)) as made:
        made.autocommit = True
        yield made


def psycopg2_at(clients: Clients, address: Any = None) -> Any:
    """An instrumented connection of psycopg2: to the standby, if that is the address."""
    reads_from: Any = "replica" if address else "primary"
    factory = postgresql.connection_factory(datastore=DATASTORE, reads_from=reads_from)
    return psycopg2.connect(clients.topology.url(address), connection_factory=factory)


def test_a_cursor_that_outlasts_its_transaction_is_as_old_as_it_is(
    clients: Clients, reader: Any
) -> None:
    """WITH HOLD: its rows are those of its declaration, whatever was waited for since."""
    clients.topology.set_lag(50)
    with closing(reader.cursor("held", withhold=True)) as cursor, antipode.scope():
        cursor.execute(QUERY)
        write_and_wait(clients, "new")
        with pytest.raises(StaleSnapshot):
            cursor.fetchone()


def test_a_cursor_is_judged_by_its_own_declaration(clients: Clients, reader: Any) -> None:
    """Not by an older one's, which may be open or closed."""
    clients.topology.set_lag(50)
    with closing(reader.cursor("open", withhold=True)) as older, antipode.scope():
        older.execute(QUERY)
        for said in ("first", "second"):
            write_and_wait(clients, said)
            with closing(reader.cursor("again", withhold=True)) as cursor:
                cursor.execute(QUERY)
                assert cursor.fetchone() == (said,)
        with pytest.raises(StaleSnapshot):
            older.fetchone()


def test_cursors_beyond_what_is_remembered_show_nothing(clients: Clients) -> None:
    """A hundred of them, held open: the first one raises still."""
    reader = clients.reader(autocommit=True)
    with ExitStack() as stack, antipode.scope():
        cursors = [
            stack.enter_context(reader.cursor(f"c{number}", withhold=True)) for number in range(100)
        ]
        for cursor in cursors:
            cursor.execute(QUERY)
        write_and_wait(clients, "new")
        for cursor in (cursors[0], cursors[-1]):
            with pytest.raises(StaleSnapshot):
                cursor.fetchone()


def large_object(clients: Clients, connection: Any) -> int:
    """The number of one with "old" in it, which the standby has."""
    with closing(connection.lobject(0, "wb")) as made:
        made.write(b"old")
        number = int(made.oid)
    connection.commit()
    clients.topology.wait_replicated()
    return number


def test_large_objects_of_psycopg2_enter_and_wait(clients: Clients) -> None:
    """A write has a position; opening one to read from waits for what the request depends on."""
    clients.topology.set_lag(50)
    with (
        closing(psycopg2_at(clients)) as writer,
        closing(psycopg2_at(clients, clients.topology.replica)) as reader,
    ):
        number = large_object(clients, writer)
        for said in (b"new", b"newer"):
            with antipode.scope() as scope:
                writer.lobject(number, "wb").write(said)
                writer.commit()
                assert len(scope.lineage) == 1
                antipode.barrier(timeout=15, at="read")
                assert reader.lobject(number, "rb").read() == said
            reader.rollback()


def test_an_open_large_object_is_as_old_as_it_is(clients: Clients) -> None:
    """It is read from the snapshot in which it was opened, in READ COMMITTED, too."""
    clients.topology.set_lag(50)
    with (
        closing(psycopg2_at(clients)) as writer,
        closing(psycopg2_at(clients, clients.topology.replica)) as reader,
    ):
        number = large_object(clients, writer)
        opened = reader.lobject(number, "rb")
        with antipode.scope():
            with closing(writer.lobject(number, "wb")) as made:
                made.write(b"new")
            writer.commit()
            antipode.barrier(timeout=15, at="read")
            with pytest.raises(StaleSnapshot):
                opened.read()


@pytest.mark.parametrize("client", CLIENTS)
def test_an_imported_snapshot_shows_nothing_that_is_known(clients: Clients, client: str) -> None:
    """It is as old as who exported it likes, though its transaction began after the barrier."""
    imports = f"SET TRANSACTION SNAPSHOT '{exported(clients)}'"
    with (
        closing(Connection(clients.topology, client, autocommit=True)) as one,
        antipode.scope(),
    ):
        write_and_wait(clients, "new")
        assert one.run(QUERY, reads=True) == [("new",)]
        one.run(REPEATABLE, reads=False)
        one.run(imports, reads=False)
        with pytest.raises(StaleSnapshot):
            one.run(QUERY, reads=True)
        one.run("ROLLBACK", reads=False)
        assert one.run(QUERY, reads=True) == [("new",)]


def exported(clients: Clients) -> Any:
    """A transaction of the primary, and the name of its snapshot."""
    exports = clients.plain()
    exports.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    return exports.execute("SELECT pg_export_snapshot()").fetchone()[0]


def piped(connection: Any, *texts: str) -> None:
    """Send *texts* in one pipeline."""
    with connection.pipeline():
        for text in texts:
            connection.execute(text)


def test_a_snapshot_that_is_imported_in_a_pipeline(clients: Clients) -> None:
    """What follows in the pipeline reads from it."""
    imports = f"SET TRANSACTION SNAPSHOT '{exported(clients)}'"
    reader = clients.writer(autocommit=True)
    with antipode.scope():
        write_and_wait(clients, "new")
        reader.execute(QUERY)
        with pytest.raises(StaleSnapshot):
            piped(reader, REPEATABLE, imports, QUERY)
        reader.rollback()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "explained",
    [
        "EXECUTE inserting",
        "CREATE TABLE explained AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW explained AS SELECT 1 AS a",
    ],
)
def test_explain_analyze_executes(clients: Clients, client: str, explained: str) -> None:
    """What it explains enters as if it had been sent without."""
    clients.topology.execute(f"GRANT CREATE ON SCHEMA public TO {clients.topology.user}")
    with closing(Connection(clients.topology, client, autocommit=True)) as one:
        one.run("PREPARE inserting AS INSERT INTO posts VALUES (2, '')", reads=False)
        with antipode.scope() as scope:
            one.run(f"EXPLAIN ANALYZE {explained}", reads=False)
            assert len(scope.lineage) == 1
            assert not scope.lineage.incomplete
        kind = "MATERIALIZED VIEW" if "VIEW" in explained else "TABLE"
        one.run(f"DROP {kind} IF EXISTS explained", reads=False)
