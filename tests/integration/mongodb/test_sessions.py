"""The application's own sessions: transactions, causal consistency, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pymongo import WriteConcern
from pymongo.errors import ConnectionFailure, DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

import antipode
from antipode import StaleSnapshot
from antipode.shim import Incomplete
from antipode_testing import LagProxy

from ._clients import (
    DB,
    SET,
    async_client,
    client,
    counted,
    exact,
    failing,
    plain_client,
    position,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

IN_DOUBT = Incomplete("posts", "in_doubt")


@pytest.fixture
def one(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """An instrumented client of the primary."""
    with client(antipode_mongodb.primary) as made:
        made[DB].posts.delete_many({})
        made[DB].posts.insert_one({"_id": 0})
        yield made


def test_transaction_mints_at_its_commit(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """Nothing enters before; the commit's own position does."""
    posts = one[DB].posts
    with antipode.scope() as scope, one.start_session() as session:
        with session.start_transaction():
            posts.insert_one({"_id": 1}, session=session)
            posts.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
            posts.find_one_and_update({"_id": 1}, {"$set": {"a": 2}}, session=session)
            assert scope.lineage.empty
            term, before = position(antipode_mongodb.primary)
        (entry,) = exact()
        assert before < int(entry.version) <= position(antipode_mongodb.primary)[1]
        assert entry.key in {SET, f"{SET}.{term}"}


def test_transaction_that_writes_nothing_mints_nothing(one: Any) -> None:
    """Aborted, failed, empty, or of reads alone."""
    posts = one[DB].posts
    with antipode.scope() as scope, one.start_session() as session:
        session.start_transaction()
        posts.insert_one({"_id": 1}, session=session)
        session.abort_transaction()
        with session.start_transaction():
            posts.find_one({}, session=session)
        with session.start_transaction():
            pass
        with pytest.raises(DuplicateKeyError), session.start_transaction():
            posts.insert_one({"_id": 0}, session=session)
        with pytest.raises(ZeroDivisionError), session.start_transaction():
            _ = 1 / posts.delete_many({"_id": "none"}, session=session).deleted_count
        assert scope.lineage.empty


def test_transactions_of_one_session_are_told_apart(one: Any) -> None:
    """That the one before wrote does not make a reading one a write."""
    posts = one[DB].posts
    with antipode.scope() as scope, one.start_session() as session:
        with session.start_transaction():
            posts.insert_one({}, session=session)
        first = scope.lineage
        with session.start_transaction():
            posts.find_one({}, session=session)
        assert scope.lineage == first


@pytest.mark.slow
def test_lost_commit_is_in_doubt(antipode_mongodb: MongoDBTopology) -> None:
    """No reply to the commit: it may have happened."""
    with (
        LagProxy(antipode_mongodb.primary) as proxy,
        client(proxy.address, socketTimeoutMS=800) as one,
        antipode.scope() as scope,
        one.start_session() as session,
    ):
        session.start_transaction()
        one[DB].posts.insert_one({}, session=session)
        proxy.set_lag(60_000)
        with pytest.raises(PyMongoError):
            session.commit_transaction()
        proxy.set_lag(0)
        assert scope.lineage.incomplete == {IN_DOUBT}
        assert not exact()


def test_repeated_commit_is_settled(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """PyMongo sends a commit again by itself; its second answer is the answer."""
    with (
        failing(antipode_mongodb.primary, "commitTransaction", closeConnection=True),
        antipode.scope() as scope,
        one.start_session() as session,
    ):
        with session.start_transaction():
            one[DB].posts.insert_one({}, session=session)
        assert exact()
        assert not scope.lineage.incomplete


def test_with_transaction_settles_its_commit(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """A commit of unknown outcome that ``with_transaction`` repeats is not in doubt."""
    with (
        failing(antipode_mongodb.primary, "commitTransaction", errorCode=64, closeConnection=False),
        antipode.scope() as scope,
        one.start_session() as session,
    ):
        session.with_transaction(lambda s: one[DB].posts.insert_one({}, session=s))
        assert exact()
        assert not scope.lineage.incomplete


def test_unknown_commit_by_hand_is_in_doubt(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """An error other than a certain abort: in doubt, though a later commit mints."""
    with (
        failing(antipode_mongodb.primary, "commitTransaction", errorCode=50),
        antipode.scope() as scope,
        one.start_session() as session,
    ):
        session.start_transaction()
        one[DB].posts.insert_one({}, session=session)
        with pytest.raises(OperationFailure):
            session.commit_transaction()
        assert scope.lineage.incomplete == {IN_DOUBT}
        session.commit_transaction()
        assert exact()


def test_lost_connection_within_a_transaction_is_no_doubt(
    antipode_mongodb: MongoDBTopology, one: Any
) -> None:
    """What is not committed is not written."""
    with (
        failing(antipode_mongodb.primary, "insert", closeConnection=True),
        antipode.scope() as scope,
        one.start_session() as session,
    ):
        session.start_transaction()
        with pytest.raises(ConnectionFailure):
            one[DB].posts.insert_one({}, session=session)
        session.abort_transaction()
        assert scope.lineage.empty


async def test_async_transactions(antipode_mongodb: MongoDBTopology) -> None:
    """The asyncio twin: commit, abort, and a commit that ``with_transaction`` repeats."""
    async with async_client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        async with one.start_session() as session:
            with antipode.scope() as scope:
                async with await session.start_transaction():
                    await posts.insert_one({}, session=session)
                    assert scope.lineage.empty
                assert exact()
            with antipode.scope() as scope:
                await session.start_transaction()
                await posts.insert_one({}, session=session)
                await session.abort_transaction()
                assert scope.lineage.empty

            async def work(session: Any) -> None:
                await posts.insert_one({}, session=session)

            with (
                failing(antipode_mongodb.primary, "commitTransaction", errorCode=64),
                antipode.scope() as scope,
            ):
                await session.with_transaction(work)
                assert exact()
                assert not scope.lineage.incomplete


def test_open_transaction_is_stale(one: Any) -> None:
    """A barrier cannot change what a transaction reads that was open before it."""
    posts = one[DB].posts
    with antipode.scope() as scope, one.start_session() as session:
        with session.start_transaction():
            posts.find_one({}, session=session)
            posts.insert_one({"_id": 1})
            antipode.barrier(timeout=5, at="read")
            with pytest.raises(StaleSnapshot):
                posts.find_one({"_id": 1}, session=session)
        assert exact(scope.lineage)


@pytest.mark.parametrize("level", ["local", "majority", "snapshot"])
def test_transaction_behind_the_barrier_reads_on(
    antipode_mongodb: MongoDBTopology, one: Any, level: str
) -> None:
    """Its snapshot is behind the floor, whatever it begins with; later reads need no question."""
    antipode_mongodb.set_lag(50)
    posts = one[DB].posts
    for number in range(1, 10):
        with antipode.scope(), one.start_session() as session:
            posts.with_options(write_concern=WriteConcern(1)).insert_one({"_id": number})
            antipode.barrier(timeout=10, at="read")
            with session.start_transaction(read_concern=ReadConcern(level)):
                if number % 2:
                    posts.insert_one({"n": number}, session=session)
                assert posts.find_one({"_id": number}, session=session)
                assert posts.count_documents({"_id": number}, session=session) == 1


@pytest.mark.parametrize("first", ["find", "insert", "count"])
def test_transaction_whose_first_command_lost_its_connection(
    antipode_mongodb: MongoDBTopology, one: Any, first: str
) -> None:
    """Its commands fail as without the library, so that whoever repeats it does."""
    posts = one[DB].posts
    begins: dict[str, Callable[[Any], Any]] = {
        "find": lambda session: posts.find_one({}, session=session),
        "insert": lambda session: posts.insert_one({}, session=session),
        "count": lambda session: posts.count_documents({}, session=session),
    }
    command = "aggregate" if first == "count" else first
    with antipode.scope(), one.start_session() as session:
        posts.insert_one({"_id": 1})
        antipode.barrier(timeout=5, at="read")
        session.start_transaction()
        with (
            failing(antipode_mongodb.primary, command, closeConnection=True),
            pytest.raises(ConnectionFailure),
        ):
            begins[first](session)
        for read in ("find", "count"):
            with pytest.raises(OperationFailure) as caught:
                begins[read](session)
            assert caught.value.has_error_label("TransientTransactionError")
        session.abort_transaction()


def test_snapshot_session(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """One that began behind the floor shows it; one from before is stale."""
    posts = one[DB].posts
    antipode_mongodb.set_lag(50)
    with antipode.scope(), one.start_session(snapshot=True) as old:
        posts.with_options(write_concern=WriteConcern("majority")).insert_one({"_id": "first"})
        posts.find_one({}, session=old)
        posts.insert_one({"_id": 1})
        antipode.barrier(timeout=10, at="read")
        with pytest.raises(StaleSnapshot):
            posts.find_one({"_id": 1}, session=old)
        with one.start_session(snapshot=True) as new:
            assert posts.find_one({"_id": 1}, session=new)
            assert posts.find_one({"_id": 1}, session=new)


def test_snapshot_that_shows_what_the_barrier_waited_for(
    antipode_mongodb: MongoDBTopology, one: Any
) -> None:
    """An automatic barrier adds to it, and never raises for what is missing of its own."""
    posts = one[DB].posts
    writing = posts.with_options(write_concern=WriteConcern("majority"))
    antipode.configure(barriers="auto")
    with antipode.scope():
        writing.insert_one({"_id": 1})
        antipode.barrier(timeout=10, at="read")
        with one.start_session() as session, session.start_transaction():
            assert posts.count_documents({}, session=session) == 2
            writing.insert_one({"_id": 2})
            before = counted("served_stale")
            assert posts.count_documents({}, session=session) == 2
            assert counted("served_stale") == before + 1
        with one.start_session(snapshot=True) as session:
            assert posts.count_documents({}, session=session) == 3
            writing.insert_one({"_id": 3})
            assert posts.count_documents({}, session=session) == 3
            assert counted("served_stale") == before + 2
            antipode.barrier(timeout=10, at="read")
            with pytest.raises(StaleSnapshot):
                posts.count_documents({}, session=session)


def test_causal_session_is_left_alone(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """Its operation time comes from the application's own operations, not from questions."""
    with client(antipode_mongodb.primary) as other, antipode.scope():
        other[DB].posts.insert_one({"_id": 1})
        antipode.barrier(timeout=5, at="read")
        with one.start_session(causal_consistency=True) as session:
            one[DB].posts.find_one({"_id": 1}, session=session)
            first = session.operation_time
            with plain_client(antipode_mongodb.primary) as plain:
                plain[DB].posts.insert_one({})
            other[DB].posts.insert_one({"_id": 2})
            assert session.operation_time == first
            assert one[DB].posts.find_one({"_id": 2}, session=session)
