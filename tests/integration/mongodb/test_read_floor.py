"""Reads of instrumented PyMongo clients under a floor: never stale, whichever server answers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import CursorType, ReadPreference
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Secondary

import antipode
from antipode import BarrierTimeout, DependencyLost, StaleSnapshot, UnmetError, WriteId
from antipode_shims.mongodb._clients import held as held_reads
from antipode_shims.mongodb._clients.known import Defaults
from antipode_testing import LagProxy, MongoDBTopology, wait_until

from ._clients import (
    DB,
    SET,
    UNWATCHED,
    async_client,
    client,
    exact,
    exchanges,
    plain_client,
    position,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.store("mongodb")

READER: dict[str, Any] = {"reads_from": "replica"}
SECONDARY: dict[str, Any] = {"readPreference": "secondary"}
ROUNDS = 100
#: Looks of a read that waits for 200 ms while the watcher looks: alone it makes some 120.
SELDOM = 40


@pytest.fixture
def writer(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """An instrumented client of the primary, under a name of its own."""
    with client(antipode_mongodb.primary, {"datastore": "posts"}) as made:
        made[DB].posts.delete_many({})
        antipode_mongodb.wait_replicated()
        yield made


def written(writer: Any, **document: Any) -> antipode.Lineage:
    """Write in a scope of its own; its lineage, as another service would get it."""
    with antipode.scope() as scope:
        writer[DB].posts.insert_one(document)
        return scope.lineage


READS: dict[str, Callable[[Any], Any]] = {
    "find_one": lambda posts: posts.find_one({"_id": 1}),
    "find": lambda posts: list(posts.find({"_id": 1})),
    "count": lambda posts: posts.count_documents({"_id": 1}),
    "estimated": lambda posts: posts.estimated_document_count(),
    "distinct": lambda posts: posts.distinct("_id"),
    "aggregate": lambda posts: list(posts.aggregate([{"$match": {"_id": 1}}])),
    "command": lambda posts: posts.database.command(
        {"count": "posts", "query": {"_id": 1}}, read_preference=Secondary()
    )["n"],
    "exhaust": lambda posts: list(posts.find({"_id": 1}, cursor_type=CursorType.EXHAUST)),
}


@pytest.mark.parametrize("level", ["local", "majority", "available"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_read_waits(
    antipode_mongodb: MongoDBTopology, writer: Any, read: Callable[[Any], Any], level: str
) -> None:
    """A secondary that is late answers each kind of read only when it has what it must show."""
    antipode_mongodb.set_lag(60)
    lineage = written(writer, _id=1)
    with (
        client(antipode_mongodb.replica, READER, readConcernLevel=level, **SECONDARY) as reader,
        antipode.scope(lineage),
    ):
        antipode.barrier(timeout=20, at="read")
        assert read(reader[DB].posts)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """The addresses of the servers that were asked on the application's connections."""
    addresses: set[Any] = set()
    plain, plain_async = held_reads.asked, held_reads.asked_async

    def ask(connection: Any, dbname: str, command: dict[str, Any]) -> Any:
        addresses.add(connection.address)
        return plain(connection, dbname, command)

    async def ask_async(connection: Any, dbname: str, command: dict[str, Any]) -> Any:
        addresses.add(connection.address)
        return await plain_async(connection, dbname, command)

    monkeypatch.setattr(held_reads, "asked", ask)
    monkeypatch.setattr(held_reads, "asked_async", ask_async)
    return addresses


def test_read_after_the_barrier_is_never_stale(asked: set[Any]) -> None:
    """Of two secondaries behind one client one applies nothing: no read goes by it, 100 times."""
    with MongoDBTopology(replicas=2) as topology:
        options = {"localThresholdMS": 1000, **SECONDARY}
        with (
            client(topology.set_url) as writer,
            client(
                topology.set_url, {"datastore": "posts", "reads_from": "replica"}, **options
            ) as both,
        ):
            posts = both[DB].posts
            topology.stall(replica=1)
            held = 0
            for number in range(ROUNDS):
                lineage = written(writer, _id=number)
                with antipode.scope(lineage):
                    antipode.barrier(timeout=0.05, at="read")
                    try:
                        assert posts.find_one({"_id": number}) is not None
                    except BarrierTimeout:
                        held += 1
            assert held < ROUNDS  # Most are made again, at the other one.
            assert len(asked) == 2
            topology.unstall(replica=1)


async def test_async_read_after_the_barrier_is_never_stale(asked: set[Any]) -> None:
    """The asyncio twin."""
    with MongoDBTopology(replicas=2) as topology:
        options = {"localThresholdMS": 1000, **SECONDARY}
        with client(topology.set_url) as writer:
            async with async_client(
                topology.set_url, {"datastore": "posts", "reads_from": "replica"}, **options
            ) as both:
                posts = both[DB].posts
                topology.stall(replica=0)
                held = 0
                for number in range(ROUNDS):
                    lineage = written(writer, _id=number)
                    with antipode.scope(lineage):
                        await antipode.barrier_async(timeout=0.05, at="read")
                        try:
                            assert await posts.find_one({"_id": number}) is not None
                        except BarrierTimeout:
                            held += 1
                assert held < ROUNDS
                assert len(asked) == 2
                topology.unstall(replica=0)


def test_time_of_the_floor_ends(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """A secondary that never applies the write: an error, and the connection serves on."""
    with client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        posts = reader[DB].posts
        posts.find_one({})
        antipode_mongodb.stall()
        lineage = written(writer, _id=1)
        for read in READS.values():
            with antipode.scope(lineage):
                antipode.barrier(timeout=0.1, at="read")
                with pytest.raises(BarrierTimeout):
                    read(posts)
        assert posts.find_one({"_id": 1}) is None
        antipode_mongodb.unstall()


def test_frozen_server_ends_with_the_floor(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """A server that does not answer at all cannot hold a read for longer than the floor."""
    with client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        reader[DB].posts.find_one({})
        lineage = written(writer, _id=1)
        antipode_mongodb.suspend_replica()
        try:
            with antipode.scope(lineage):
                antipode.barrier(timeout=0.3, at="read")
                with pytest.raises((BarrierTimeout, ConnectionFailure)):
                    reader[DB].posts.find_one({})
        finally:
            antipode_mongodb.resume_replica()


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the commands that the library sends on the application's connections."""
    said: list[str] = []
    plain = held_reads.asked

    def asked(connection: Any, dbname: str, command: dict[str, Any]) -> Any:
        said.append(next(iter(command)))
        return plain(connection, dbname, command)

    monkeypatch.setattr(held_reads, "asked", asked)
    return said


def test_no_connection_waits_at_the_server(
    antipode_mongodb: MongoDBTopology, questions: list[str]
) -> None:
    """Of a whole set the library watches no server: its client's connections ask, and go back."""
    # One client of the whole set tells each member what it heard from the others.
    with client(antipode_mongodb.set_url, {"datastore": "posts", **READER}, **SECONDARY) as both:
        both[DB].posts.delete_many({})
        antipode_mongodb.wait_replicated()
        check_waits(antipode_mongodb, both, both, questions)
    assert "find" not in questions  # By which a server waits.


def test_server_is_seldom_asked_before_the_read(
    antipode_mongodb: MongoDBTopology, writer: Any, questions: list[str]
) -> None:
    """The library's own connection waits for the position: the application's hardly ask for it."""
    with client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        check_waits(antipode_mongodb, writer, reader, questions)
    assert questions.count("hello") <= SELDOM
    assert "find" not in questions


def check_waits(topology: MongoDBTopology, writer: Any, reader: Any, said: list[str]) -> None:
    """A read waits for 200 ms; what its connections were asked meanwhile is in *said*."""
    for number, lag_ms in enumerate((0, 200)):  # The first opens connections.
        topology.set_lag(lag_ms)
        lineage = written(writer, _id=number)
        said.clear()
        with antipode.scope(lineage):
            antipode.barrier(timeout=20, at="read")
            assert reader[DB].posts.find_one({"_id": number})


def test_proved_floor_costs_nothing(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """One question for each new floor; none where the server has shown it already."""
    with (
        LagProxy(antipode_mongodb.replica) as proxy,
        client(proxy.address, READER, **UNWATCHED, **SECONDARY) as reader,
    ):
        posts = reader[DB].posts
        with antipode.scope(written(writer, _id=0)):
            antipode.barrier(timeout=10, at="read")
            assert posts.find_one({"_id": 0})  # The first read under a floor asks more.
        lineage = written(writer, _id=1)
        antipode_mongodb.wait_replicated()
        with antipode.scope(lineage):
            antipode.barrier(timeout=10, at="read")
            with exchanges(proxy) as first:
                posts.find_one({"_id": 1})
            with exchanges(proxy) as second:
                posts.find_one({"_id": 1})
                posts.count_documents({})
            assert first[0] == 2
            assert second[0] == 2


def test_batches_of_an_open_cursor_wait(antipode_mongodb: MongoDBTopology, writer: Any) -> None:
    """The next batch of a cursor comes from a server that shows the floor, or not at all."""
    writer[DB].posts.insert_many([{"n": n} for n in range(20)])
    antipode_mongodb.wait_replicated()
    with client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        cursor = reader[DB].posts.find({}, batch_size=2)
        next(cursor)
        antipode_mongodb.stall()
        lineage = written(writer, _id=1)
        with antipode.scope(lineage):
            antipode.barrier(timeout=0.1, at="read")
            with pytest.raises(BarrierTimeout):
                list(cursor)
        antipode_mongodb.unstall()


def test_exhaust_cursor_from_before_is_stale(
    antipode_mongodb: MongoDBTopology, writer: Any
) -> None:
    """Its batches may have left the server before it showed the floor."""
    writer[DB].posts.insert_many([{"n": n} for n in range(20)])
    antipode_mongodb.wait_replicated()
    with client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        cursor = reader[DB].posts.find({}, batch_size=2, cursor_type=CursorType.EXHAUST)
        for _ in range(5):
            next(cursor)
        lineage = written(writer, _id=1)
        with antipode.scope(lineage):
            antipode.barrier(timeout=5, at="read")
            with pytest.raises(StaleSnapshot):
                list(cursor)


def test_find_and_modify_waits_and_plain_writes_do_not(
    antipode_mongodb: MongoDBTopology, writer: Any
) -> None:
    """It reads; a write must not fail for what it does not look at."""
    term, version = position(antipode_mongodb.primary)
    ahead = WriteId("posts", f"{SET}.{term}", version + (3600 << 32))
    with antipode.scope() as scope:
        scope.append(ahead)
        antipode.barrier(timeout=0.1, at="read")
        writer[DB].posts.insert_one({"_id": 5})
        with pytest.raises(BarrierTimeout):
            writer[DB].posts.find_one_and_update({"_id": 5}, {"$set": {"a": 1}})
    assert writer[DB].posts.find_one({"_id": 5}) == {"_id": 5}


def test_rolled_back_write_is_lost() -> None:
    """A write that the old primary alone had: the new one proves it gone, and does not answer."""
    with MongoDBTopology() as topology:
        with client(topology.primary) as old:
            old[DB].posts.insert_one({"_id": 0})
            topology.wait_replicated()
            survived = written(old, _id=1)
            topology.wait_replicated()
            topology.cut()
            lost = written(old, _id=2)
        topology.failover()
        with client(topology.primary) as new:
            new[DB].posts.insert_one({"_id": 3})
            with antipode.scope(survived):
                antipode.barrier(timeout=10, at="read")
                assert new[DB].posts.find_one({"_id": 1})
            with antipode.scope(lost):
                antipode.barrier(timeout=10, at="read")
                with pytest.raises(DependencyLost):
                    new[DB].posts.find_one({"_id": 2})


def test_rollback_under_a_client_is_seen() -> None:
    """What a server showed before it rolled back is not taken for known afterwards."""
    with MongoDBTopology() as topology, client(topology.primary, retryReads=True) as old:
        topology.cut()
        lost = written(old, _id=1)
        with antipode.scope(lost):
            antipode.barrier(timeout=10, at="read")
            assert old[DB].posts.find_one({"_id": 1})
        topology.failover()
        with client(topology.primary) as new:
            new[DB].posts.insert_one({"_id": 2})
        assert topology.rejoin()
        with antipode.scope(lost):
            antipode.barrier(timeout=10, at="read")
            with pytest.raises(DependencyLost):
                old[DB].get_collection("posts", read_preference=Secondary()).find_one({"_id": 1})


def test_rollback_closes_connections() -> None:
    """What the memory of a connection's server rests on: the connection ends with the history."""
    with MongoDBTopology() as topology, plain_client(topology.primary, **UNWATCHED) as old:

        def number() -> int | None:
            try:
                return int(old.admin.command("hello")["connectionId"])
            except ConnectionFailure:
                return None

        before = number()
        topology.cut()
        old[DB].posts.insert_one({"_id": 1})
        topology.failover()
        with plain_client(topology.primary) as new:
            new[DB].posts.insert_one({"_id": 2})
        assert number() == before
        assert topology.rejoin()
        assert number() != before


@pytest.mark.parametrize("lose", [False, True])
def test_change_of_primary_under_load(lose: bool) -> None:  # noqa: FBT001
    """Whatever a read behind a barrier returns, it has the write; errors are clear ones."""
    with MongoDBTopology(1 if lose else 2) as topology, client(topology.set_url) as one:
        posts = one[DB].posts
        stale: list[int] = []
        seen = [0]
        done = threading.Event()

        def load(start: int) -> None:
            number = start
            while not done.is_set():
                number += 1
                with antipode.scope() as scope:
                    try:
                        posts.insert_one({"_id": number})
                    except PyMongoError:
                        continue
                    assert exact(scope.lineage) or scope.lineage.incomplete
                    try:
                        antipode.barrier(timeout=5, at="read")
                        if posts.find_one({"_id": number}) is None:
                            stale.append(number)
                        seen[0] += 1
                    except (UnmetError, PyMongoError):
                        continue

        threads = [threading.Thread(target=load, args=(start,)) for start in (0, 10**6)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: seen[0] > 50, what="some load", timeout_s=30)
            topology.failover(lose_unreplicated=lose)
            now = seen[0]
            wait_until(lambda: seen[0] > now + 50, what="load behind it", timeout_s=30)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert not stale


def test_tags_choose_the_server_that_is_held(
    antipode_mongodb: MongoDBTopology, writer: Any
) -> None:
    """A read preference with tags reads at its own server, late as it is."""
    antipode_mongodb.set_lag(100)
    eu = Secondary(tag_sets=[{"region": "eu"}])
    with client(antipode_mongodb.set_url, READER) as reader:
        posts = reader[DB].get_collection("posts", read_preference=eu)
        lineage = written(writer, _id=1)
        with antipode.scope(lineage):
            antipode.barrier(timeout=20, at="read")
            assert posts.find_one({"_id": 1})


def test_default_read_concern_of_the_server_counts() -> None:
    """Where reads that state nothing show what a majority has, a floor waits for that."""
    with MongoDBTopology() as topology, client(topology.primary) as one:
        one.admin.command("setDefaultRWConcern", defaultReadConcern={"level": "majority"})
        posts = one[DB].posts
        posts.insert_one({"_id": 0})
        topology.wait_replicated()
        topology.stall()
        with antipode.scope():
            posts.insert_one({"_id": 1})
            assert posts.find_one({"_id": 1}) is None
            antipode.barrier(timeout=0.2, at="read")
            with pytest.raises(BarrierTimeout):
                posts.find_one({"_id": 1})
            topology.unstall()
            antipode.barrier(timeout=10, at="read")
            assert posts.find_one({"_id": 1})
            assert list(posts.aggregate([{"$match": {"_id": 1}}]))


def test_user_who_may_not_ask_for_the_default(caplog: pytest.LogCaptureFixture) -> None:
    """Taken for ``local``, and said so once."""
    defaults = Defaults("secret")
    for _ in range(2):
        assert not defaults.majority
        defaults.learn(OperationFailure("not authorized", 13))
        assert not defaults.due
    assert caplog.text.count("getDefaultRWConcern") == 1


def test_linearizable_read(writer: Any) -> None:
    """It is answered at the primary, behind the floor."""
    lineage = written(writer, _id=1)
    strict = writer[DB].posts.with_options(
        read_concern=ReadConcern("linearizable"), read_preference=ReadPreference.PRIMARY
    )
    with antipode.scope(lineage):
        antipode.barrier(timeout=10, at="read")
        assert strict.find_one({"_id": 1})


def test_positions_of_servers_are_told_apart(antipode_mongodb: MongoDBTopology) -> None:
    """The topology's own question and the client's agree on what a position is."""
    with plain_client(antipode_mongodb.primary) as one:
        one[DB].posts.insert_one({})
    term, version = position(antipode_mongodb.primary)
    assert term >= 1
    assert version > 2**32
