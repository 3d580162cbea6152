"""A client of MongoDB's driver that Java instruments: what calls record, and which reads wait."""

from __future__ import annotations

import contextlib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.errors import OperationFailure

from antipode import BarrierTimeout, Lineage, StaleSnapshot, WriteId
from antipode.shim import Incomplete
from antipode_testing import wait_until
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.contract._servers import described
from tests.integration._dry_run import lints

from ._clients import SET, exact, failing, plain_client, position

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import MongoDBTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.slow, pytest.mark.store("mongodb")]

IN_DOUBT = Incomplete("posts", "in_doubt")
TIMEOUT_S = 20.0
EARLY_S = 0.2
#: Each call that writes, with its argument; the documents that they need are there.
WRITES = {
    "insert": '{"x": 1}',
    "insert_many": '{"x": 1}',
    "update": '{"_id": 0}',
    "upsert": '{"_id": 7}',
    "update_many": "{}",
    "replace": '{"_id": 0}',
    "bulk": '{"x": 3}',
    "find_and_update": '{"_id": 0}',
    "find_and_replace": '{"_id": 0}',
    "find_and_delete": '{"_id": 1}',
    "merge": "{}",
    "out": "{}",
    "index": '{"x": 1}',
    "drop": "{}",
    "delete": '{"_id": 0}',
    "delete_many": "{}",
    "command": '{"insert": "notes", "documents": [{"x": 1}]}',
}
READS = ("find", "stream", "aggregate", "distinct", "find_and_update")


class Client(RemoteShim):
    """A client that the agent keeps."""

    def call(self, name: str, argument: str = "{}", concern: str = "") -> Any:
        """One call of the driver."""
        return self._ask("mongo", call=name, argument=argument, concern=concern)


class Application:
    """A process in Java, with clients of its own."""

    def __init__(self, topology: MongoDBTopology, remote: RemoteAntipode) -> None:
        self.topology = topology
        self.remote = remote

    @contextmanager
    def client(self, address: Any, **options: Any) -> Iterator[Client]:
        """One, of a server or of what its URL says."""
        server = described("mongodb", self.topology, address)
        given = {"client": True, **options}
        with closing(Client(self.remote, "mongodb", "posts", server, **given)) as client:
            yield client

    @property
    def term(self) -> str:
        """The log of the primary's term."""
        return f"{SET}.{position(self.topology.primary)[0]}"


@pytest.fixture
def application(antipode_mongodb: MongoDBTopology, lend: Lend) -> Application:
    """One, in front of two documents."""
    with plain_client(antipode_mongodb.primary) as plain:
        plain.app.notes.drop()
        plain.app.notes.insert_many([{"_id": 0, "n": 0}, {"_id": 1, "n": 0}])
    antipode_mongodb.wait_replicated()
    return Application(antipode_mongodb, lend("java"))


@pytest.fixture
def primary(application: Application) -> Iterator[Client]:
    """A client of the primary."""
    with application.client(application.topology.primary) as client:
        yield client


@pytest.mark.parametrize("concern", ["1", "majority"])
def test_each_way_to_write_is_recorded(
    application: Application, primary: Client, concern: str
) -> None:
    """The position is after all that was there before, and in the log that has it for sure."""
    server = application.topology.primary
    for name, argument in WRITES.items():
        _, before = position(server)
        with application.remote.scope() as scope:
            primary.call(name, argument, concern)
            assert not scope.lineage.incomplete, name
            entries = exact(scope.lineage)
        assert before < max(int(each.version) for each in entries) <= position(server)[1], name
        assert {each.key for each in entries} <= {SET, application.term}, name
        if concern == "majority" and name != "command":
            assert {each.key for each in entries} == {SET}, name


def test_what_writes_nothing_records_nothing(application: Application, primary: Client) -> None:
    """A duplicate, a filter that fits nothing, reads and administration."""
    with application.remote.scope() as scope:
        with pytest.raises(StoreError):
            primary.call("insert", '{"_id": 0}')
        with pytest.raises(StoreError):
            primary.call("find_and_update", '{"$nonsense": 1}')
        primary.call("update", '{"_id": "none"}')
        primary.call("delete", '{"_id": "none"}')
        primary.call("count")
        primary.call("command", '{"dbStats": 1}')
        assert scope.lineage.empty


def test_a_failing_bulk_records_what_it_wrote(application: Application, primary: Client) -> None:
    """The error goes to the application; what was written before it enters."""
    with plain_client(application.topology.primary) as plain:
        plain.app.notes.create_index("x", unique=True, sparse=True)
        plain.app.notes.insert_one({"x": 2})
    with application.remote.scope() as scope:
        with pytest.raises(StoreError):
            primary.call("insert_many", '{"_id": 5}')
        assert len(exact(scope.lineage)) == 1
        assert not scope.lineage.incomplete


def test_what_nobody_waits_for_is_in_doubt(application: Application, primary: Client) -> None:
    """With ``w: 0`` nobody knows."""
    for name in ("insert", "update", "bulk"):
        with application.remote.scope() as scope:
            primary.call(name, WRITES[name], "0")
            assert scope.lineage.incomplete == {IN_DOUBT}


def test_a_write_that_is_repeated_is_in_no_doubt(application: Application, primary: Client) -> None:
    """The driver is answered in the end; where it does not repeat, nobody knows."""
    server = application.topology.primary
    lost: dict[str, Any] = {"closeConnection": True}
    for name in ("insert", "find_and_update"):
        fails = failing(server, "insert", "findAndModify", **lost)
        with fails, application.remote.scope() as scope:
            primary.call(name, WRITES[name])
            assert len(exact(scope.lineage)) == 1
            assert not scope.lineage.incomplete
    once = "directConnection=true&retryWrites=false"
    with application.client(server, url_options=once) as client:
        for failure in (lost, {"errorCode": 11600}):
            with failing(server, "insert", **failure), application.remote.scope() as scope:
                with pytest.raises(StoreError):
                    client.call("insert")
                assert scope.lineage.incomplete == {IN_DOUBT}


def test_a_transaction_is_recorded_at_its_commit(application: Application, primary: Client) -> None:
    """Nothing before, one position then, and nothing for what is aborted or only read."""
    server = application.topology.primary
    with application.remote.scope() as scope:
        for writes, ends in (("insert", "end"), ("find", "commit")):
            primary.call("begin")
            primary.call(writes)
            primary.call(ends)
            if ends == "commit":
                primary.call("end")
        assert scope.lineage.empty
        for name in ("insert", "find_and_update"):
            primary.call("begin", concern="1")
            primary.call(name)
            before = position(server)[1]
            assert all(int(each.version) <= before for each in exact(scope.lineage))
            primary.call("commit")
            primary.call("end")
            assert max(int(each.version) for each in exact(scope.lineage)) > before
        primary.call("with_transaction", '{"x": 1}')
        assert {each.key for each in exact(scope.lineage)} <= {SET, application.term}
        assert not scope.lineage.incomplete


def test_a_commit_without_an_answer_is_in_doubt(application: Application, primary: Client) -> None:
    """Unless the driver, or ``withTransaction``, repeats it and is answered."""
    server = application.topology.primary
    lost: dict[str, Any] = {"closeConnection": True}
    with failing(server, "commitTransaction", **lost), application.remote.scope() as scope:
        primary.call("with_transaction")
        assert len(exact(scope.lineage)) == 1
        assert not scope.lineage.incomplete
    with application.remote.scope() as scope:
        primary.call("begin")
        primary.call("insert")
        with failing(server, "commitTransaction", errorCode=50), pytest.raises(StoreError):
            primary.call("commit")
        primary.call("commit")
        assert len(exact(scope.lineage)) == 1
        assert scope.lineage.incomplete == {IN_DOUBT}
        primary.call("end")


def test_reads_wait_on_the_member_that_answers(application: Application) -> None:
    """Each kind of read, with a pool that goes to the whole set and prefers a secondary.

    It has one connection, which a read that was given up does not keep.
    """
    topology, remote = application.topology, application.remote
    everywhere = f"replicaSet={SET}&readPreference=secondary&maxPoolSize=1"
    with application.client(
        topology.primary, reads_from="replica", url_options=everywhere
    ) as client:
        for name in READS:
            with remote.scope():
                topology.pause()
                try:
                    client.call("insert", f'{{"name": "{name}"}}', "1")
                    if name != "find_and_update":  # It reads at the primary.
                        remote.barrier(timeout=EARLY_S, at="read")
                        with pytest.raises(BarrierTimeout):
                            client.call(name, f'{{"name": "{name}"}}')
                finally:
                    topology.resume()
                remote.barrier(timeout=TIMEOUT_S, at="read")
                assert client.call(name, f'{{"name": "{name}"}}') not in ([], "null")


def test_a_count_and_the_next_batch_wait(application: Application) -> None:
    """A cursor that is open already is held back where it asks for more."""
    topology, remote = application.topology, application.remote
    with (
        application.client(topology.primary) as near,
        application.client(topology.replica, reads_from="replica") as far,
    ):
        for _ in range(3):
            near.call("insert")
        topology.wait_replicated()
        for name in ("count", "estimate", "read_on"):
            with remote.scope():
                far.call("open_cursor")
                topology.pause()
                try:
                    near.call("insert", "{}", "1")
                    remote.barrier(timeout=EARLY_S, at="read")
                    with pytest.raises(BarrierTimeout):
                        far.call(name)
                finally:
                    topology.resume()


def test_a_transaction_from_before_the_barrier_is_stale(
    application: Application, primary: Client
) -> None:
    """Its snapshot is older; a new one waits at its first command."""
    remote = application.remote
    with remote.scope():
        primary.call("begin")
        primary.call("find")
        with plain_client(application.topology.primary) as plain, remote.scope():
            plain.app.notes.insert_one({"_id": "later"})
        term, version = position(application.topology.primary)
        later = WriteId("posts", f"{SET}.{term}", version, 490_000)
        remote.barrier(Lineage([later]), timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            primary.call("find")
        primary.call("end")
        primary.call("begin")
        assert primary.call("find", '{"_id": "later"}')
        assert primary.call("find", '{"_id": "later"}')
        primary.call("end")


def shows_snapshots(topology: MongoDBTopology) -> bool:
    """Whether the server reads from snapshots: a collection that was made just now is in none.

    Server manual, error 246 (SnapshotUnavailable).
    """
    with plain_client(topology.primary) as plain, plain.start_session(snapshot=True) as session:
        try:
            plain.app.notes.find_one(session=session)
        except OperationFailure as error:
            if error.code != 246:
                raise
            return False
    return True


def test_a_session_reads_from_one_snapshot(application: Application, primary: Client) -> None:
    """One that was taken before is stale; one that is taken behind the barrier shows it all."""
    remote, topology = application.remote, application.topology
    wait_until(lambda: shows_snapshots(topology), what="snapshots", timeout_s=15)
    with remote.scope():
        primary.call("begin_snapshot")
        primary.call("find")
        with plain_client(application.topology.primary) as plain:
            plain.app.notes.insert_one({"_id": "later"})
        term, version = position(application.topology.primary)
        later = Lineage([WriteId("posts", f"{SET}.{term}", version, 490_000)])
        remote.barrier(later, timeout=TIMEOUT_S, at="read")
        with pytest.raises(StaleSnapshot):
            primary.call("find")
        primary.call("end")
        primary.call("begin_snapshot")
        for _ in range(2):
            assert primary.call("find", '{"_id": "later"}')
        primary.call("end")


def test_a_read_shows_what_its_concern_shows(application: Application) -> None:
    """With ``majority`` reads and change streams wait at the primary itself."""
    topology, remote = application.topology, application.remote
    strict = "directConnection=true&readConcernLevel=majority"
    with (
        application.client(topology.primary) as client,
        application.client(topology.primary, url_options=strict) as majority,
        remote.scope(),
    ):
        topology.pause()
        try:
            client.call("insert", "{}", "1")
            remote.barrier(timeout=EARLY_S, at="read")
            client.call("count")
            for name in ("count", "watch"):
                remote.barrier(timeout=EARLY_S, at="read")
                with pytest.raises(BarrierTimeout):
                    majority.call(name)
        finally:
            topology.resume()
        remote.barrier(timeout=TIMEOUT_S, at="read")
        assert majority.call("find") != []
        assert "watched" in majority.call("watch")


def test_a_new_term_is_known_from_its_first_write(
    application: Application, primary: Client
) -> None:
    """A primary that was elected again is asked, where a reply tells no term."""
    with application.remote.scope() as scope:
        for _ in range(2):
            primary.call("find_and_update", '{"_id": 0}', "1")
            write = exact(scope.lineage)[-1]
            assert write.key in (SET, application.term)
            elected_again(application.topology)
        assert not scope.lineage.incomplete
        application.remote.barrier(timeout=TIMEOUT_S)


def elected_again(topology: MongoDBTopology) -> None:
    """The same server is primary in another term."""
    with plain_client(topology.primary) as plain:
        before = position(topology.primary)[0]
        plain.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=0, force=True)
        wait_until(lambda: is_primary(plain), timeout_s=TIMEOUT_S, what="an election")
    assert position(topology.primary)[0] > before


def is_primary(plain: Any) -> bool:
    """Whether the server is primary; it stands for election if not."""
    with contextlib.suppress(OperationFailure):
        plain.admin.command("replSetFreeze", 0)
        plain.admin.command("replSetStepUp")
    return bool(plain.admin.command("hello")["isWritablePrimary"])


@pytest.mark.parametrize("end", ["commit", "end"])
def test_a_dry_run_reports_what_leaves_within_a_transaction(
    application: Application, primary: Client, tmp_path: Path, end: str
) -> None:
    """What is not committed has no position; once the transaction is over there is nothing."""
    remote = application.remote
    remote.configure(mode="dry-run", dry_run_dir=str(tmp_path))
    with application.client(application.topology.primary) as other, remote.scope():
        primary.call("begin")
        primary.call("find")
        remote.ask("request_headers", headers=[])
        other.call("find")
        primary.call("insert", '{"x": 1}')
        remote.ask("request_headers", headers=[])
        primary.call("find")  # Within the transaction.
        other.call("find")
        primary.call(end)
        remote.ask("request_headers", headers=[])
        other.call("find")
    remote.configure(mode="enforce")
    assert lints(tmp_path) == [("in-transaction", "posts"), ("read-before-commit", "posts")]
