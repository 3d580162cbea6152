"""Plain JDBC through a pool that Java instruments: what calls record, and which reads wait."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from antipode import (
    BarrierTimeout,
    ConfigurationError,
    Lineage,
    StaleSnapshot,
    VisibilityCheckError,
    WriteId,
)
from antipode.telemetry import Metric
from antipode_testing import LagProxy, wait_until
from tests._lines import records_in
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.contract._servers import described, regions
from tests.integration.mysql._clients import IN_DOUBT, NOTES, STORES, UNSAMPLED, Sql, minted, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.agent.lending import Lend

pytestmark = pytest.mark.slow

TABLES = (
    "CREATE TABLE IF NOT EXISTS jdbc_notes (id INT PRIMARY KEY AUTO_INCREMENT, body VARCHAR(64))",
    "DROP PROCEDURE IF EXISTS jdbc_add",
    "CREATE PROCEDURE jdbc_add() BEGIN SELECT 1; INSERT INTO jdbc_notes (body) VALUES ('p'); END",
    "DROP PROCEDURE IF EXISTS jdbc_show",
    "CREATE PROCEDURE jdbc_show() READS SQL DATA SELECT body FROM jdbc_notes",
)
INSERT = "INSERT INTO jdbc_notes (body) VALUES ('a')"
MULTI = {
    "mysql": "?trackSessionState=true&allowMultiQueries=true",
    "mariadb": "?allowMultiQueries=true",
}
TIMEOUT_S = 20.0
EARLY_S = 0.2


class Client(RemoteShim):
    """A connection of an instrumented pool, which the agent keeps until it is closed."""

    def call(self, name: str, statement: str = "") -> Any:
        """One call of JDBC."""
        return self._ask("jdbc", call=name, sql=statement)


class Application:
    """A process in Java with pools of its own."""

    def __init__(self, topology: Any, remote: RemoteAntipode, stack: ExitStack) -> None:
        self.topology = topology
        self.remote = remote
        self._stack = stack

    @property
    def store(self) -> str:
        """MySQL or MariaDB."""
        return str(self.topology.store)

    @contextmanager
    def client(self, address: Any, **options: Any) -> Iterator[Client]:
        """One of a server."""
        server = described(self.store, self.topology, address)
        given = {"client": True, "url_options": MULTI[self.store], **options}
        with closing(Client(self.remote, self.store, NOTES, server, **given)) as client:
            yield client

    def position(self) -> tuple[str, int]:
        """Where the primary's log stands."""
        with closing(Sql(self.topology)) as sql:
            return sql.position()


@pytest.fixture(params=STORES)
def application(request: pytest.FixtureRequest, lend: Lend) -> Iterator[Application]:
    """One for each store."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    with ExitStack() as stack:
        stack.enter_context(regions(request.param, topology))
        sql = stack.enter_context(closing(Sql(topology)))
        for statement in TABLES:
            run(sql.plain(), statement)
        yield Application(topology, lend("java"), stack)


@pytest.fixture
def primary(application: Application) -> Iterator[Client]:
    """A connection to the primary."""
    with application.client(application.topology.primary) as client:
        yield client


@pytest.fixture
def replica(application: Application) -> Iterator[Client]:
    """A connection to the replica."""
    with application.client(application.topology.replica, reads_from="replica") as client:
        yield client


@pytest.mark.parametrize(
    ("call", "statement"),
    [
        pytest.param("update", INSERT, id="update"),
        pytest.param("batch", f"{INSERT};{INSERT}", id="batch"),
        pytest.param("execute", f"SELECT 1; {INSERT}; SELECT 2", id="several"),
        pytest.param("execute", "CALL jdbc_add()", id="procedure"),
        pytest.param("insert_row", "SELECT body, id FROM jdbc_notes", id="row"),
        pytest.param("update", "ALTER TABLE jdbc_notes COMMENT = '%s'", id="definition"),
    ],
)
def test_each_way_to_write_is_recorded(
    application: Application, primary: Client, call: str, statement: str
) -> None:
    """Whatever commits by itself enters the scope with the position that the log has then."""
    text = statement.replace("%s", uuid.uuid4().hex)
    with application.remote.scope() as scope:
        primary.call(call, text)
        assert application.position() in minted(scope)
        assert not scope.lineage.incomplete


def test_a_transaction_is_recorded_at_its_commit(application: Application, primary: Client) -> None:
    """Nothing before, one position then, and nothing for what is rolled back."""
    with application.remote.scope():
        primary.call("update", INSERT)  # From now on replies are known to tell positions.
    with application.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", INSERT)
        primary.call("rollback")
        primary.call("update", INSERT)
        with pytest.raises(StoreError):
            primary.call("update", "INSERT INTO jdbc_notes (id) VALUES ('no number')")
        assert not scope.lineage
        primary.call("commit")
        assert minted(scope) == [application.position()]
        primary.call("autocommit")
        primary.call("query", "SELECT body FROM jdbc_notes")
        assert len(minted(scope)) == 1
        assert not scope.lineage.incomplete


def test_switching_autocommit_on_commits(application: Application, primary: Client) -> None:
    """As JDBC says, without a call of commit."""
    with application.remote.scope() as scope:
        primary.call("begin")
        primary.call("update", INSERT)
        primary.call("autocommit")
        assert minted(scope) == [application.position()]


def test_what_nobody_can_wait_for_is_marked(application: Application, primary: Client) -> None:
    """A write that is prepared for others to commit is in doubt."""
    name = uuid.uuid4().hex
    with application.remote.scope() as scope:
        for statement in (f"XA START '{name}'", INSERT, f"XA END '{name}'", f"XA PREPARE '{name}'"):
            primary.call("update", statement)
        assert IN_DOUBT in scope.lineage.incomplete
        assert not minted(scope), "the commit will have another position"
        primary.call("update", f"XA ROLLBACK '{name}'")


@pytest.mark.parametrize("fails", [False, True])
def test_the_position_of_what_is_prepared_is_not_that_of_its_commit(
    application: Application, primary: Client, *, fails: bool
) -> None:
    """Where one call prepares and commits, nobody knows which of them a position is of."""
    name = uuid.uuid4().hex
    committed = "another" if fails else name
    with application.remote.scope() as scope:
        for statement in (f"XA START '{name}'", INSERT, f"XA END '{name}'"):
            primary.call("update", statement)
        with pytest.raises(StoreError) if fails else nullcontext():
            primary.call("execute", f"XA PREPARE '{name}'; XA COMMIT '{committed}'")
        assert IN_DOUBT in scope.lineage.incomplete
        if fails:
            primary.call("update", f"XA ROLLBACK '{name}'")


def test_a_reply_that_is_read_on_is_in_doubt_until_then(
    application: Application, primary: Client
) -> None:
    """A lineage that is used in between says so; the position comes at the end."""
    with application.remote.scope() as scope:
        primary.call("stream", f"SELECT 1; {INSERT}")
        assert IN_DOUBT in scope.lineage.incomplete
        primary.call("read_on")
        assert application.position() in minted(scope)
    with application.remote.scope() as scope:
        primary.call("stream", f"SELECT 1; {INSERT}")
        primary.call("read_on")
        assert minted(scope) == [application.position()]
        assert not scope.lineage.incomplete


def test_without_tracking_the_position_is_asked_for(application: Application) -> None:
    """A pool that was not told to track state pays a round trip, and loses nothing."""
    options = {"url_options": "?trackSessionState=false"} if application.store == "mysql" else {}
    with (
        application.client(application.topology.primary, **options) as client,
        application.remote.scope() as scope,
    ):
        client.call("begin")
        client.call("update", INSERT)
        client.call("commit")
        found = {(write.key, write.version) for write in scope.lineage}
        assert application.position() in found
        assert not scope.lineage.incomplete


@pytest.mark.parametrize("begins", [False, True], ids=["alone", "transaction"])
def test_the_first_read_waits(
    application: Application, primary: Client, replica: Client, *, begins: bool
) -> None:
    """On its own connection, before the statement runs: alone, and as a transaction's first."""
    key = uuid.uuid4().hex
    application.topology.set_lag(150)
    with application.remote.scope():
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        if begins:
            replica.call("begin")
        assert replica.call("query", f"SELECT body FROM jdbc_notes WHERE body = '{key}'") == [key]  # noqa: S608
        assert replica.call("query", f"SELECT body FROM jdbc_notes WHERE body = '{key}'") == [key]  # noqa: S608


def test_a_read_that_cannot_see_it_raises(
    application: Application, primary: Client, replica: Client
) -> None:
    """While replication is paused the time is up, and the connection can be used afterwards."""
    application.topology.pause()
    try:
        with application.remote.scope():
            primary.call("update", INSERT)
            application.remote.barrier(timeout=EARLY_S, at="read")
            with pytest.raises(BarrierTimeout):
                replica.call("query", "SELECT body FROM jdbc_notes")
    finally:
        application.topology.resume()
    with application.remote.scope():
        assert replica.call("query", "SELECT 1 FROM DUAL") == ["1"]


def test_an_older_snapshot_raises(
    application: Application, primary: Client, replica: Client
) -> None:
    """A transaction that has read sees no later commits; the next one, or another level, does."""
    key = uuid.uuid4().hex
    read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
    with application.remote.scope():
        replica.call("begin")
        replica.call("query", read)
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            replica.call("query", read)
        replica.call("rollback")
        assert replica.call("query", read) == [key]
        replica.call("rollback")
    with application.remote.scope():
        replica.call("read_committed")
        replica.call("query", read)
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        assert replica.call("query", read) == [key, key]


def test_a_snapshot_that_shows_what_the_barrier_waited_for(
    application: Application, primary: Client, replica: Client
) -> None:
    """An automatic barrier adds to it, and never raises for what is missing of its own."""
    read = f"SELECT body FROM jdbc_notes WHERE body = '{uuid.uuid4().hex}'"  # noqa: S608
    application.remote.configure(barriers="auto", auto_timeout_s=TIMEOUT_S)
    stale = Metric("served_stale", NOTES)
    with application.remote.scope():
        primary.call("update", INSERT)
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        replica.call("begin")
        replica.call("query", read)
        primary.call("update", INSERT)
        before = application.remote.metrics().get(stale, 0)
        replica.call("query", read)
        assert application.remote.metrics().get(stale, 0) == before + 1
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            replica.call("query", read)


def test_the_snapshot_of_a_streamed_read_is_known(
    application: Application, primary: Client, replica: Client
) -> None:
    """That the reply was not read to its end does not hide that a transaction began with it."""
    with application.remote.scope():
        replica.call("begin")
        replica.call("stream", "SELECT body FROM jdbc_notes")
        replica.call("read_on")
        primary.call("update", INSERT)
        application.remote.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            replica.call("query", "SELECT body FROM jdbc_notes")


def test_reads_wait_by_themselves(
    application: Application, primary: Client, replica: Client
) -> None:
    """With automatic barriers a plain read shows what its request did."""
    key = uuid.uuid4().hex
    application.topology.set_lag(150)
    application.remote.configure(barriers="auto", auto_timeout_s=TIMEOUT_S)
    with application.remote.scope():
        primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
        assert replica.call("query", f"SELECT body FROM jdbc_notes WHERE body = '{key}'") == [key]  # noqa: S608


def test_a_commit_without_an_answer_is_in_doubt(application: Application) -> None:
    """The connection breaks while it commits, and nobody knows."""
    with (
        LagProxy(application.topology.primary) as through,
        application.client(through.address) as client,
        application.remote.scope() as scope,
    ):
        client.call("begin")
        client.call("update", INSERT)
        through.cut()
        with pytest.raises(StoreError):
            client.call("commit")
        assert IN_DOUBT in scope.lineage.incomplete


def test_a_pool_over_several_servers_is_refused_at_the_read(application: Application) -> None:
    """It could read elsewhere than it looks; writes are recorded, or marked."""
    place = application.topology.primary
    hosts = f"{place.host}:{place.port},{place.host}:{place.port}"
    with (
        application.client(place, url_hosts=hosts) as client,
        application.remote.scope() as scope,
    ):
        client.call("update", INSERT)
        if application.store == "mysql":
            assert minted(scope) == [application.position()]  # It came with the reply.
        else:
            assert UNSAMPLED in scope.lineage.incomplete
        lineage = Lineage([WriteId(NOTES, *application.position())])
        application.remote.barrier(lineage, timeout=TIMEOUT_S, at="read")
        with pytest.raises(ConfigurationError):
            client.call("query", "SELECT body FROM jdbc_notes")


SEVERAL = {
    "mysql": ("", "replication:", "loadbalance:"),
    "mariadb": ("", "replication:", "sequential:", "loadbalance:", "load-balance-read:"),
}


def test_barriers_are_refused_for_a_pool_over_several_servers(application: Application) -> None:
    """They would look at one server for reads that go to another; from before its first use on."""
    topology = application.topology
    # A driver that balances its load would send the write to a replica at times.
    hosts = ",".join([f"{topology.primary.host}:{topology.primary.port}"] * 2)
    lineage = Lineage([WriteId(NOTES, *application.position())])
    for mode in SEVERAL[application.store]:
        with (
            application.client(topology.primary, url_hosts=hosts, url_mode=mode) as client,
            application.remote.scope() as scope,
        ):
            for used in (False, True):
                if used:
                    client.call("update", INSERT)
                    assert minted(scope) or UNSAMPLED in scope.lineage.incomplete
                with pytest.raises(VisibilityCheckError, match="one pool and one shim") as refusal:
                    application.remote.barrier(lineage, timeout=TIMEOUT_S)
                (outcome,) = refusal.value.result.outcomes
                assert outcome.status == "undecidable"
                application.remote.barrier(lineage, timeout=TIMEOUT_S, at="read")
                with pytest.raises(ConfigurationError, match="one pool and one shim"):
                    client.call("query", "SELECT body FROM jdbc_notes")


def test_a_dry_run_tells_stale_reads_and_what_leaves_too_early(
    application: Application, primary: Client, replica: Client, tmp_path: Path
) -> None:
    """A look after the read shows that it was stale; what is not committed has no position."""
    remote, topology = application.remote, application.topology
    remote.configure(mode="dry-run", dry_run_dir=str(tmp_path))
    topology.pause()
    try:
        with remote.scope():
            primary.call("begin")
            primary.call("update", INSERT)
            remote.ask("request_headers", headers=[])
            primary.call("query", "SELECT body FROM jdbc_notes")  # Within the transaction.
            replica.call("query", "SELECT body FROM jdbc_notes")
            primary.call("commit")
            replica.call("query", "SELECT body FROM jdbc_notes")
            remote.ask("request_headers", headers=[])
            # It is told what the look after the read is told, which began before it.
            with pytest.raises(BarrierTimeout):
                remote.barrier(timeout=0.5, mode="enforce")
            topology.resume()
            remote.barrier(timeout=TIMEOUT_S, mode="enforce")
        (file,) = tmp_path.iterdir()
        # The look ends with the barrier, and is written down a little later.
        wait_until(
            lambda: '"evidence"' in file.read_text(), what="the evidence", timeout_s=TIMEOUT_S
        )
    finally:
        topology.resume()
    remote.configure(mode="enforce")
    records = records_in(file)
    lints = [each["lint"] for each in records if each["kind"] == "lint"]
    assert lints == ["in-transaction", "read-before-commit"]
    (read,) = [each for each in records if each["kind"] == "read"]
    (evidence,) = [each for each in records if each["kind"] == "evidence"]
    assert (read["verdict"], evidence["of"]) == ("unguarded", read["n"])
    assert evidence["confirmed"] is True
    assert 0.1 < evidence["waited_s"] < TIMEOUT_S
