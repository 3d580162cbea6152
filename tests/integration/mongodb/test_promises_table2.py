"""Table 2 on MongoDB fulfils promises: value and record in one transaction, one position."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import MongoClient

import antipode
from antipode import BarrierTimeout, Lineage, PromiseAbandoned, Status, WriteId
from antipode.shim import Incomplete
from antipode_shims import mongodb
from antipode_testing import MongoDBTopology

from ._clients import DB, Names, failing, plain_client, position
from ._promises import STORE, floor, outcome, promised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymongo.monitoring import CommandFailedEvent

pytestmark = pytest.mark.store("mongodb")

WHERE: dict[str, Any] = {"database": DB, "collection": "posts"}
LAG_MS = 200


@pytest.fixture
def writer(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """A shim at the primary."""
    with closing(mongodb.shim(STORE, url(antipode_mongodb.primary), **WHERE)) as made:
        yield made


@pytest.fixture
def reader(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """A shim at the replica."""
    where = url(antipode_mongodb.replica)
    with closing(mongodb.shim(STORE, where, **WHERE, reads_from="replica")) as made:
        yield made


def url(address: Any) -> str:
    """Of one member."""
    return f"mongodb://{address}/?directConnection=true"


def test_value_and_record_come_together(
    antipode_mongodb: MongoDBTopology, writer: Any, reader: Any
) -> None:
    """By write, update and delete, at the replica after the lag."""
    antipode_mongodb.set_lag(LAG_MS)
    first, second, third = promised(), promised(), promised()
    key = first.id
    with antipode.scope():
        writer.write(key, {"sum": 80}, fulfils=first)
    reader.wait(Lineage(promises=[first]), timeout=10)
    with antipode.scope():
        assert reader.read(key)[0] == {"sum": 80}
        writer.update(key, {"state": "paid"}, fulfils=second.token)
    with floor(second):
        assert reader.read(key)[0] == {"sum": 80, "state": "paid"}
    with antipode.scope():
        writer.delete(key, fulfils=third)
    with floor(third):
        assert reader.read(key)[0] is None


@pytest.mark.parametrize("level", ["1", "majority"])
def test_its_position_is_that_of_the_commit(antipode_mongodb: MongoDBTopology, level: str) -> None:
    """One exact entry enters the scope, at the end of the primary's log; none without a commit."""
    concern = {"w": int(level) if level.isdecimal() else level}
    promise, given_up = promised(), promised()
    with (
        plain_client(antipode_mongodb.primary, **concern) as client,
        closing(mongodb.shim(STORE, client, **WHERE)) as writer,
        antipode.scope() as scope,
    ):
        written = writer.write(promise.id, 1, fulfils=promise)
        term, version = position(antipode_mongodb.primary)
        key = "antipode" if level == "majority" else f"antipode.{term}"
        (write,) = scope.lineage
        assert (write.key, write.version) == (key, version)
        assert written == scope.lineage == Lineage([WriteId(*_fields(write))])
        assert antipode.abandon(given_up)
        with pytest.raises(PromiseAbandoned):
            writer.write(promise.id, 2, fulfils=given_up)
        assert scope.lineage == written
        assert writer.read(promise.id)[0] == 1


def _fields(write: WriteId) -> tuple[Any, ...]:
    return write.datastore, write.key, write.version, write.written_hour


def test_an_unknown_commit_is_in_doubt(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """The server fails the commit for want of time: whether it wrote is not known."""
    promise = promised()
    with plain_client(antipode_mongodb.primary) as admin, antipode.scope() as scope:
        data = {
            "failCommands": ["commitTransaction"],
            "errorCode": 50,
            "errorLabels": ["UnknownTransactionCommitResult"],
        }
        admin.admin.command("configureFailPoint", "failCommand", mode={"times": 2}, data=data)
        try:
            with pytest.raises(Exception, match="failCommand"):
                writer.write(promise.id, 1, fulfils=promise)
        finally:
            admin.admin.command("configureFailPoint", "failCommand", mode="off")
            # Its transaction would hold its locks for a minute, against tests that drop databases.
            admin.admin.command("killAllSessions", [])
        assert scope.lineage.incomplete == {Incomplete(STORE, "in_doubt")}


#: Errors with which a server aborts a transaction, and nothing was written: SnapshotUnavailable,
#: as right behind the making of a collection, and a conflict with another transaction.
TRANSIENT = {"errorLabels": ["TransientTransactionError"]}


@pytest.mark.parametrize("command", ["update", "commitTransaction"])
@pytest.mark.parametrize("code", [246, 112])
def test_a_transient_error_is_no_callers_business(
    antipode_mongodb: MongoDBTopology, writer: Any, command: str, code: int
) -> None:
    """The transaction is ours, and is tried again; it is one write, and nothing is in doubt."""
    promise = promised()
    with antipode.scope() as scope:
        with failing(antipode_mongodb.primary, command, errorCode=code, **TRANSIENT):
            writer.write(promise.id, 1, fulfils=promise)
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete
    assert outcome(promise).status is Status.VISIBLE
    assert writer.read(promise.id)[0] == 1


async def test_asyncio_a_transient_error_is_no_callers_business(
    antipode_mongodb: MongoDBTopology,
) -> None:
    """The asyncio twin."""
    promise, primary = promised(), antipode_mongodb.primary
    writer = mongodb.shim_async(STORE, url(primary), **WHERE)
    with antipode.scope() as scope:
        for command in "update", "commitTransaction":
            with failing(primary, command, errorCode=246, **TRANSIENT):
                await writer.write(promise.id, command, fulfils=promise)
        assert not scope.lineage.incomplete
    assert outcome(promise).status is Status.VISIBLE
    assert (await writer.read(promise.id))[0] == "commitTransaction"
    await writer.aclose()


class Conflicts(Names):
    """Knows when the server first refused a command of a client."""

    def __init__(self) -> None:
        super().__init__([])
        self.seen = threading.Event()

    def failed(self, event: CommandFailedEvent) -> None:
        del event
        self.seen.set()


def test_two_at_once_are_both_done(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """Delivered twice at the same time: the second waits for the first's end, and adds nothing."""
    promise, conflicts = promised(), Conflicts()
    where = url(antipode_mongodb.primary)
    with (
        plain_client(antipode_mongodb.primary) as first,
        MongoClient(where, event_listeners=[conflicts]) as second,
        closing(mongodb.shim(STORE, second, **WHERE)) as late,
        first.start_session() as session,
        ThreadPoolExecutor(1) as pool,
    ):
        session.start_transaction()
        mongodb.fulfil(first[DB], promise, session=session)
        written = pool.submit(late.write, promise.id, 2, fulfils=promise)
        try:
            assert conflicts.seen.wait(10)
        finally:
            session.commit_transaction()
        written.result(10)
    assert outcome(promise).status is Status.VISIBLE
    assert writer.read(promise.id)[0] == 2


def test_a_client_of_several_members_reads_where_it_shows() -> None:
    """The record is found on one secondary, the value must not be read from another too early."""
    with MongoDBTopology(replicas=2) as topology:
        away = f"{topology.set_url}&readPreference=secondary&localThresholdMS=1000"
        writer = mongodb.shim(STORE, topology.set_url, **WHERE)
        reader = mongodb.shim(STORE, away, **WHERE, reads_from="replica", one_server=False)
        with closing(writer), closing(reader):
            with antipode.scope():
                writer.write("warm", 0)
            topology.wait_replicated()
            topology.stall(replica=1)
            held = 0
            for _ in range(60):
                promise = promised()
                with antipode.scope():
                    writer.write(promise.id, 1, fulfils=promise)
                with floor(promise, timeout=0.15):
                    try:
                        assert reader.read(promise.id)[0] == 1
                    except BarrierTimeout:
                        held += 1
            assert 0 < held < 60
            topology.unstall(replica=1)


async def test_asyncio_writes_fulfil(antipode_mongodb: MongoDBTopology) -> None:
    """The asyncio twin."""
    antipode_mongodb.set_lag(LAG_MS)
    promise, given_up, gone = promised(), promised(), promised()
    writer = mongodb.shim_async(STORE, url(antipode_mongodb.primary), **WHERE)
    reader = mongodb.shim_async(STORE, url(antipode_mongodb.replica), **WHERE, reads_from="replica")
    with antipode.scope() as scope:
        await writer.write(promise.id, {"sum": 80}, fulfils=promise)
        assert len(scope.lineage) == 1
        assert await antipode.abandon_async(given_up)
        with pytest.raises(PromiseAbandoned):
            await writer.update(promise.id, {"sum": 0}, fulfils=given_up)
    with antipode.scope(Lineage(promises=[promise])):
        await antipode.barrier_async(timeout=10, at="read")
        assert (await reader.read(promise.id))[0] == {"sum": 80}
    with antipode.scope():
        await writer.delete(promise.id, fulfils=gone)
    with antipode.scope(Lineage(promises=[gone])):
        await antipode.barrier_async(timeout=10, at="read")
        assert (await reader.read(promise.id))[0] is None
    await writer.aclose()
    await reader.aclose()
    assert outcome(promise).status is Status.UNKNOWN_STORE
