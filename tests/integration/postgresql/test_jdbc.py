"""Plain JDBC through a pool that Java instruments: what calls record, and which reads wait."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from antipode import BarrierTimeout, StaleSnapshot
from antipode_testing import LagProxy
from tests.agent.client import RemoteShim, StoreError
from tests.contract._servers import described
from tests.integration.postgresql._jdbc import (
    DATASTORE,
    INSERT,
    REPEATABLE,
    Application,
    Client,
    application,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import WriteId
    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.slow, pytest.mark.store("postgresql")]

IN_DOUBT = (DATASTORE, "in_doubt")
TIMEOUT_S = 20.0
EARLY_S = 0.2
LONG_MS = 60_000


@pytest.fixture
def app(antipode_postgresql: PostgreSQLTopology, lend: Lend) -> Application:
    """A process in Java."""
    return application(antipode_postgresql, lend)


@pytest.fixture
def primary(app: Application) -> Iterator[Client]:
    """A connection to the primary."""
    with app.client(app.topology.primary) as client:
        yield client


@pytest.fixture
def standby(app: Application) -> Iterator[Client]:
    """A connection to the standby."""
    with app.client(app.topology.replica, reads_from="replica") as client:
        yield client


def the_write(scope: Any) -> WriteId:
    """The only entry of a scope, which is not marked."""
    assert not scope.lineage.incomplete
    (write,) = scope.lineage
    found: WriteId = write
    return found


@pytest.mark.parametrize(
    ("call", "statement", "exact"),
    [
        pytest.param("update", INSERT, True, id="update"),
        pytest.param("execute", INSERT, True, id="execute"),
        pytest.param("batch", f"{INSERT};{INSERT}", False, id="batch"),
        pytest.param("execute", f"SELECT 1; {INSERT}; SELECT 2", False, id="several"),
        pytest.param("insert_row", "SELECT body, id FROM jdbc_notes", True, id="row"),
        pytest.param("query", f"{INSERT} RETURNING id", True, id="returning"),
        pytest.param("query", "SELECT jdbc_add()", False, id="function"),
        pytest.param("query", "SELECT id FROM jdbc_hiding", False, id="view"),
        pytest.param("call", "{? = call jdbc_add()}", False, id="call"),
    ],
)
def test_each_way_to_write_is_recorded(
    app: Application, primary: Client, call: str, statement: str, *, exact: bool
) -> None:
    """Whatever commits by itself enters the scope with a position that is at or after it."""
    before = app.flushed()
    with app.remote.scope() as scope:
        if call == "call":
            primary.call("query", "SELECT jdbc_add()")
        else:
            primary.call(call, statement)
        write = the_write(scope)
    assert before < write.version <= app.flushed()
    assert write.key.endswith("/1-0")
    assert write.covering is not exact


@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_what_is_copied_in_is_covered(app: Application, *, begins: bool) -> None:
    """By `CopyManager`, on the driver's connection: at the commit, or once it is given back."""
    before = app.flushed()
    with app.client(app.topology.primary) as client, app.remote.scope() as scope:
        if begins:
            client.call("begin")
        client.call("copy", "COPY jdbc_notes (body) FROM STDIN")
        client.call("commit" if begins else "close")
        writes = [*scope.lineage]
        assert not scope.lineage.incomplete
        assert writes
        assert all(before < write.version <= app.flushed() for write in writes)
        # What the server logs by itself meanwhile is covered, too.
        assert [write.covering for write in writes].count(False) == begins


def test_a_driver_that_fails_after_the_commit_loses_nothing(
    app: Application, primary: Client
) -> None:
    """The driver wants no rows, and says so once the server has written."""
    before = app.flushed()
    with app.remote.scope() as scope:
        with pytest.raises(StoreError):
            primary.call("update", "SELECT jdbc_add()")
        assert before < the_write(scope).version


def test_a_transaction_is_recorded_at_its_commit(app: Application, primary: Client) -> None:
    """Nothing before, one position then, and nothing for what is rolled back, or only reads."""
    with app.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", INSERT)
        primary.call("rollback")
        primary.call("query", "SELECT body FROM jdbc_notes")
        primary.call("commit")
        primary.call("update", INSERT)
        assert not scope.lineage
        before = app.flushed()
        primary.call("commit")
        assert before < the_write(scope).version <= app.flushed()


def test_switching_autocommit_on_commits(app: Application, primary: Client) -> None:
    """As JDBC says, without a call of commit."""
    with app.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", INSERT)
        primary.call("autocommit")
        assert the_write(scope).version <= app.flushed()


def test_a_commit_that_fails_wrote_nothing(app: Application, primary: Client) -> None:
    """Late constraints, with the error as before, and transactions that had failed."""
    with app.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", "INSERT INTO jdbc_late VALUES (1), (1)")
        with pytest.raises(StoreError, match="duplicate key"):
            primary.call("commit")
        primary.call("update", INSERT)
        with pytest.raises(StoreError):
            primary.call("update", "INSERT INTO nowhere VALUES (1)")
        primary.call("commit")  # Which the server answers with a rollback.
        assert not scope.lineage
        primary.call("update", INSERT)
        primary.call("commit")
        assert the_write(scope)


def test_a_procedure_that_fails_after_its_commit_is_recorded(
    app: Application, primary: Client
) -> None:
    """The client is shown an error, and the rows are there."""
    before = app.flushed()
    with app.remote.scope() as scope:
        with pytest.raises(StoreError, match="after"):
            primary.call("execute", "CALL jdbc_twice()")
        assert before < the_write(scope).version


def test_what_is_prepared_for_others_to_commit_is_in_doubt(
    app: Application, primary: Client
) -> None:
    """Its commit will have another position."""
    name = uuid.uuid4().hex
    with app.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", INSERT)
        primary.call("update", f"PREPARE TRANSACTION '{name}'")
        assert scope.lineage.incomplete == {IN_DOUBT}
        primary.call("autocommit")
    with app.remote.scope() as scope:
        primary.call("update", f"COMMIT PREPARED '{name}'")
        assert the_write(scope)


def test_a_commit_that_is_not_flushed_is_in_doubt(app: Application, primary: Client) -> None:
    """A crash would undo it; the session shows that it waited again by then."""
    app.topology.config({"wal_writer_delay": "10s"})

    def in_doubt() -> bool:
        with app.remote.scope() as scope:
            primary.call("begin")
            primary.call("update", "SET LOCAL synchronous_commit = off")
            primary.call("update", INSERT)
            primary.call("commit")
            return IN_DOUBT in scope.lineage.incomplete

    assert any(in_doubt() for _ in range(50))  # Until the delay is in force.


@pytest.mark.parametrize(
    "text",
    [
        f"SET LOCAL synchronous_commit = off; {INSERT}",
        f"BEGIN; SET LOCAL synchronous_commit = off; {INSERT}; COMMIT",
        "CALL quick()",
    ],
)
def test_what_commits_inside_is_covered(app: Application, primary: Client, text: str) -> None:
    """A crash would undo it, and no setting shows that: in doubt until it is flushed."""
    app.topology.execute(
        "CREATE OR REPLACE PROCEDURE quick() LANGUAGE plpgsql AS $$ BEGIN"
        f" SET LOCAL synchronous_commit = off; {INSERT}; COMMIT; END $$"
    )
    app.topology.config({"wal_writer_delay": "10s"})

    def in_doubt() -> bool:
        with app.remote.scope() as scope:
            primary.call("update", text)
            return IN_DOUBT in scope.lineage.incomplete

    assert any(in_doubt() for _ in range(50))  # Until the delay is in force.


def test_a_connection_that_is_lost_at_the_commit_is_in_doubt(app: Application) -> None:
    """Nobody knows whether the commit arrived."""
    with LagProxy(app.topology.primary, lag_ms=0) as slow:
        options = {"url_options": "?socketTimeout=1"}
        with app.client(slow.address, **options) as client, app.remote.scope() as scope:
            client.call("begin")
            client.call("update", INSERT)
            slow.set_lag(LONG_MS)
            with pytest.raises(StoreError):
                client.call("commit")
            assert scope.lineage.incomplete == {IN_DOUBT}
            slow.cut()


def test_a_shim_does_not_keep_a_connection_that_is_lost(app: Application) -> None:
    """A read gives its connection up when its time is over; the next read has another one."""
    with LagProxy(app.topology.primary, lag_ms=0) as slow:
        server = described("postgresql", app.topology, slow.address)
        with closing(RemoteShim(app.remote, "postgresql", DATASTORE, server)) as values:
            written = values.write("lost", b"1")
            assert values.read("lost")[0] == b"1"
            slow.set_lag(LONG_MS)
            with app.remote.scope(written):
                app.remote.barrier(timeout=EARLY_S, at="read")
                with pytest.raises(BarrierTimeout):
                    values.read("lost")
            slow.set_lag(0)
            assert values.read("lost")[0] == b"1"
            slow.cut()


@pytest.mark.parametrize("repeatable", [False, True], ids=["committed", "repeatable"])
@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_the_first_read_waits(
    app: Application, primary: Client, standby: Client, *, begins: bool, repeatable: bool
) -> None:
    """On its own connection, before the statement runs: alone, and as a transaction's first."""
    key = uuid.uuid4().hex
    read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
    app.topology.set_lag(150)
    with app.remote.scope():
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        app.remote.barrier(timeout=TIMEOUT_S, at="read")
        if repeatable:
            standby.call("execute", REPEATABLE)
        if begins:
            standby.call("begin")
        assert standby.call("query", read) == [key]
        assert standby.call("query", read) == [key]


def test_an_older_snapshot_raises(app: Application, primary: Client, standby: Client) -> None:
    """A transaction that has read sees no later commits; the next one, or another level, does."""
    key = uuid.uuid4().hex
    write = f"INSERT INTO jdbc_notes (body) VALUES ('{key}')"  # noqa: S608
    read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
    app.topology.set_lag(0)
    with app.remote.scope():
        standby.call("begin")
        standby.call("query", read)
        primary.call("update", write)
        app.remote.barrier(timeout=TIMEOUT_S, at="read")
        assert standby.call("query", read) == [key]
        standby.call("rollback")
        standby.call("autocommit")
        standby.call("execute", REPEATABLE)
    with app.remote.scope():
        standby.call("begin")
        standby.call("query", read)
        primary.call("update", write)
        app.remote.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            standby.call("query", read)
        standby.call("rollback")
        assert standby.call("query", read) == [key, key]


@pytest.mark.parametrize(
    ("call", "statement", "waits"),
    [
        pytest.param("execute", "SET LOCAL work_mem = '4MB'", True, id="unread"),
        pytest.param("execute", "SELECT 1", False, id="read"),
        pytest.param("prepared_columns", "SELECT body FROM jdbc_notes", False, id="parsed"),
    ],
)
def test_the_first_read_after_a_begin_that_is_sent(
    app: Application, primary: Client, standby: Client, call: str, statement: str, *, waits: bool
) -> None:
    """It waits where another connection proves that there is no snapshot yet; else it raises.

    The driver parses a statement unseen, where it is asked for its columns: that is a snapshot.
    """
    key = uuid.uuid4().hex
    read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
    app.topology.set_lag(150)
    standby.call("execute", REPEATABLE)
    standby.call("execute", "BEGIN")
    standby.call(call, statement)
    with app.remote.scope():
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        app.remote.barrier(timeout=TIMEOUT_S, at="read")
        if waits:
            assert standby.call("query", read) == [key]
            assert standby.call("query", read) == [key]
        else:
            with pytest.raises(StaleSnapshot):
                standby.call("query", read)


def test_a_read_waits_for_a_promise(app: Application, standby: Client) -> None:
    """Until its record is replayed; while there is no table, an open transaction stays usable."""
    app.topology.set_lag(0)
    app.topology.execute("DROP TABLE IF EXISTS antipode_promises")
    app.topology.wait_replicated()
    with app.remote.scope():
        promise = app.remote.promise(DATASTORE, expires_in_s=60)
        headers = app.remote.ask("request_headers", headers=[])
    standby.call("begin")
    assert standby.call("query", "SELECT 1") == ["1"]
    with app.remote.request(headers):
        app.remote.barrier(timeout=EARLY_S, at="read")
        with pytest.raises(BarrierTimeout):
            standby.call("query", "SELECT 1")
    assert standby.call("query", "SELECT 1") == ["1"]
    standby.call("commit")
    key = uuid.uuid4().hex
    server = described("postgresql", app.topology, app.topology.primary)
    with closing(RemoteShim(app.remote, "postgresql", DATASTORE, server)) as values:
        app.topology.set_lag(150)
        values.write(key, b"1", fulfils=promise)
        with app.remote.request(headers):
            app.remote.barrier(timeout=TIMEOUT_S, at="read")
            read = f"SELECT k FROM antipode_kv WHERE k = '{key}'"  # noqa: S608
            assert len(standby.call("query", read)) == 1


def test_a_read_that_cannot_see_it_raises(
    app: Application, primary: Client, standby: Client
) -> None:
    """While replay is paused the time is up, and the connection can be used afterwards."""
    app.topology.pause()
    try:
        with app.remote.scope():
            primary.call("update", INSERT)
            app.remote.barrier(timeout=EARLY_S, at="read")
            with pytest.raises(BarrierTimeout):
                standby.call("query", "SELECT body FROM jdbc_notes")
    finally:
        app.topology.resume()
    with app.remote.scope():
        assert standby.call("query", "SELECT 1") == ["1"]


@pytest.mark.usefixtures("standby")
def test_a_barrier_waits_at_the_standby(app: Application, primary: Client) -> None:
    """On a connection of the library's own, until the standby has replayed it."""
    app.topology.set_lag(150)
    with app.remote.scope():
        primary.call("update", INSERT)
        result = app.remote.barrier(timeout=TIMEOUT_S)
        assert {str(each.status) for each in result.outcomes} == {"visible"}
