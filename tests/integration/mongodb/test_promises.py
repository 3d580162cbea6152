"""Promised writes on real MongoDB members: fulfilled with the data, waited for anywhere."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    Lineage,
    PromiseAbandoned,
    StaleSnapshot,
    Status,
)
from antipode_shims import mongodb
from antipode_testing import wait_until

from ._clients import DB, async_client, client, plain_client
from ._promises import (
    READER,
    SECONDARY,
    WRITER,
    floor,
    is_open,
    outcome,
    promised,
    refund,
    refunded,
    regions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

LAG_MS = 200


@pytest.fixture
def both(antipode_mongodb: MongoDBTopology) -> Iterator[tuple[Any, Any]]:
    """Instrumented clients of the primary and of the replica."""
    with regions(antipode_mongodb) as found:
        yield found


@pytest.fixture
def writer(both: tuple[Any, Any]) -> Any:
    """The client of the primary."""
    return both[0]


@pytest.fixture
def reader(both: tuple[Any, Any]) -> Any:
    """The client of the replica."""
    return both[1]


@pytest.mark.parametrize("level", [None, "local", "majority", "available"])
def test_a_read_waits_on_its_own_connection(
    antipode_mongodb: MongoDBTopology, writer: Any, reader: Any, level: str | None
) -> None:
    """Under a floor the find is answered when its server shows the record at its read concern."""
    antipode_mongodb.set_lag(LAG_MS)
    concern = {} if level is None else {"readConcernLevel": level}
    del reader
    with client(antipode_mongodb.replica, READER, **SECONDARY, **concern) as other:
        for _ in range(3):
            promise = promised()
            refund(writer, promise)
            with floor(promise):
                assert refunded(other, promise)
                assert refunded(other, promise)


def test_what_a_majority_lacks_is_not_fulfilled_for_it(
    antipode_mongodb: MongoDBTopology, writer: Any, reader: Any
) -> None:
    """A reader with read concern majority waits for the majority, on the primary as well."""
    del reader
    promise = promised()
    with client(antipode_mongodb.primary, WRITER, readConcernLevel="majority") as strict:
        antipode_mongodb.pause()
        refund(writer, promise)
        with floor(promise, timeout=0.3), pytest.raises(BarrierTimeout):
            refunded(strict, promise)
        with floor(promise):
            assert refunded(writer, promise)
        antipode_mongodb.resume()
        with floor(promise):
            assert refunded(strict, promise)


def test_two_at_once_are_told_to_try_again(writer: Any) -> None:
    """The message was delivered twice at the same time: ``with_transaction`` repeats the second."""
    promise = promised()
    with writer.start_session() as first, writer.start_session() as second:
        first.start_transaction()
        second.start_transaction()
        writer[DB].refunds.find_one({}, session=second)  # Its snapshot is older than the record.
        mongodb.fulfil(writer[DB], promise, session=first)
        with pytest.raises(OperationFailure) as caught:
            mongodb.fulfil(writer[DB], promise, session=second)
        assert caught.value.has_error_label("TransientTransactionError")
        first.commit_transaction()
        second.abort_transaction()
        second.with_transaction(lambda s: mongodb.fulfil(writer[DB], promise, session=s))
    assert outcome(promise).status is Status.VISIBLE


def test_abandoned_is_terminal(writer: Any, reader: Any) -> None:
    """Who waits learns it at once; fulfilling it fails, and the server has aborted the data."""
    promise = promised()
    assert antipode.abandon(promise)
    assert antipode.abandon(promise.token)
    with pytest.raises(DependencyLost) as caught:
        antipode.barrier(Lineage(promises=[promise]), timeout=10)
    assert caught.value.unmet[0].status is Status.ABANDONED
    with pytest.raises(PromiseAbandoned, match="abandoned"):
        refund(writer, promise)
    with writer.start_session() as session:
        session.start_transaction()
        writer[DB].refunds.insert_one({"_id": promise.id}, session=session)
        with pytest.raises(PromiseAbandoned):
            mongodb.fulfil(writer[DB], promise, session=session)
        with pytest.raises(OperationFailure):  # Not even who goes on commits.
            session.commit_transaction()
    assert not refunded(writer, promise)
    with floor(promise), pytest.raises(DependencyLost):
        refunded(reader, promise)


def test_fulfilled_first_stays_fulfilled(writer: Any) -> None:
    """An abandonment waits for the transaction that fulfils, and comes too late."""
    promise = promised()
    answers: list[bool] = []
    other = threading.Thread(target=lambda: answers.append(antipode.abandon(promise, timeout=20)))
    with writer.start_session() as session:
        session.start_transaction()
        mongodb.fulfil(writer[DB], promise, session=session)
        other.start()
        try:
            wait_until(lambda: _conflicts(writer), what="the abandonment to wait", timeout_s=10)
        finally:
            session.commit_transaction()
            other.join(20)
    assert answers == [False]
    assert outcome(promise).status is Status.VISIBLE


def _conflicts(writer: Any) -> bool:
    """Whether an update of the library's own is at work."""
    running = writer.admin.aggregate([{"$currentOp": {}}, {"$match": {"appName": "antipode"}}])
    return any(one.get("op") == "update" for one in running)


def test_without_a_transaction_it_is_refused(writer: Any) -> None:
    """A session alone commits each write by itself: nothing is recorded."""
    promise = promised()
    with writer.start_session() as session:
        for given in (session, None):
            with pytest.raises(ConfigurationError, match="in no transaction"):
                mongodb.fulfil(writer[DB], promise, session=given)
        with session.start_transaction():
            pass
        with pytest.raises(ConfigurationError, match="in no transaction"):
            mongodb.fulfil(writer[DB], promise, session=session)
    assert is_open(promise)


def test_a_transaction_from_before_is_refused(writer: Any) -> None:
    """Its snapshot cannot show the data: it raises; the next one waits, and reads on."""
    promise = promised()
    with writer.start_session() as session:
        session.start_transaction(read_concern=ReadConcern("snapshot"))
        writer[DB].refunds.find_one({}, session=session)
        refund(writer, promise)
        with floor(promise), pytest.raises(StaleSnapshot):
            refunded(writer, promise, session=session)
        session.abort_transaction()
        with floor(promise), session.start_transaction(read_concern=ReadConcern("snapshot")):
            assert refunded(writer, promise, session=session)
            assert refunded(writer, promise, session=session)


def test_a_snapshot_session_from_before_is_refused(writer: Any, reader: Any) -> None:
    """A session that reads from one snapshot shows the promise only if it was taken behind it."""
    promise = promised()
    with reader.start_session(snapshot=True) as old:
        refunded(reader, promise, session=old)
        refund(writer, promise)
        with floor(promise), pytest.raises(StaleSnapshot):
            refunded(reader, promise, session=old)
    with reader.start_session(snapshot=True) as new, floor(promise):
        assert refunded(reader, promise, session=new)
        assert refunded(reader, promise, session=new)


def test_a_snapshot_that_was_taken_without_the_floor_is_refused(
    antipode_mongodb: MongoDBTopology, writer: Any, reader: Any
) -> None:
    """After a read that was given up, another takes the snapshot: it shows no promise."""
    promise = promised()
    with reader.start_session(snapshot=True) as session:
        with floor(promise, timeout=0.2), pytest.raises(BarrierTimeout):
            refunded(reader, promise, session=session)
        assert not refunded(reader, promise, session=session)
        refund(writer, promise)
        antipode_mongodb.wait_replicated()
        with floor(promise), pytest.raises(StaleSnapshot):
            refunded(reader, promise, session=session)


def test_a_missing_collection_is_late(antipode_mongodb: MongoDBTopology) -> None:
    """Nothing was promised there yet: a look waits, the first fulfilment makes it."""
    name = "fresh"
    promise = promised()
    with plain_client(antipode_mongodb.primary) as plain:
        plain.drop_database(name)
        antipode_mongodb.wait_replicated()
        options = {"promise_database": name}
        with client(antipode_mongodb.primary, options) as writer:
            assert is_open(promise)
            with writer.start_session() as session, session.start_transaction():
                mongodb.fulfil(writer[name], promise, session=session)
            assert outcome(promise).status is Status.VISIBLE
            for command in mongodb.promises_ddl() * 2:
                writer[name].command(command)
            index = plain[name].antipode_promises.index_information()["until"]
            assert index["expireAfterSeconds"] == 0
            record = plain[name].antipode_promises.find_one()
            assert record is not None
            assert record["until"].timestamp() > promise.expires_s + 7 * 24 * 3600
        plain.drop_database(name)


def test_a_wrong_database_is_refused(writer: Any, reader: Any) -> None:
    """One where nobody looks, and a client of another datastore."""
    del reader
    with antipode.scope():
        elsewhere = antipode.promise("elsewhere", expires_in_s=60)
    with writer.start_session() as session, session.start_transaction():
        with pytest.raises(ConfigurationError, match="'posts'"):
            mongodb.fulfil(writer[DB], elsewhere, session=session)
        with pytest.raises(ConfigurationError, match="promise_database"):
            mongodb.fulfil(writer["other"], promised(), session=session)


def test_a_client_that_was_not_told_cannot_look(antipode_mongodb: MongoDBTopology) -> None:
    """Undecidable, not passed; the database that a URL names will do."""
    promise = promised()
    with plain_client(antipode_mongodb.primary) as plain:
        with plain.start_session() as session, session.start_transaction():
            mongodb.fulfil(plain[DB], promise, session=session)
        with client(antipode_mongodb.primary, {}):
            assert outcome(promise).status is Status.UNDECIDABLE
    where = f"mongodb://{antipode_mongodb.primary}/{DB}?directConnection=true"
    with client(where, {}):
        assert outcome(promise).status is Status.VISIBLE


async def test_asyncio_fulfils_and_waits(antipode_mongodb: MongoDBTopology) -> None:
    """The asyncio twin: in its transaction alone, and reads on their own connection."""
    antipode_mongodb.set_lag(LAG_MS)
    promise, given_up = promised(), promised()
    async with (
        async_client(antipode_mongodb.primary, WRITER) as writer,
        async_client(antipode_mongodb.replica, READER, **SECONDARY) as reader,
    ):
        async with writer.start_session() as session:
            with pytest.raises(ConfigurationError, match="in no transaction"):
                await mongodb.fulfil_async(writer[DB], promise, session=session)
            async with await session.start_transaction():
                with pytest.raises(ConfigurationError, match="fulfil_async"):
                    mongodb.fulfil(writer[DB], promise, session=session)
                await writer[DB].refunds.insert_one({"_id": promise.id}, session=session)
                await mongodb.fulfil_async(writer[DB], promise.token, session=session)
            assert await antipode.abandon_async(given_up)
            await session.start_transaction()
            with pytest.raises(PromiseAbandoned):
                await mongodb.fulfil_async(writer[DB], given_up, session=session)
            await session.abort_transaction()
        with antipode.scope(Lineage(promises=[promise])):
            await antipode.barrier_async(timeout=10, at="read")
            assert await reader[DB].refunds.find_one({"_id": promise.id})
        with antipode.scope(Lineage(promises=[given_up])):
            await antipode.barrier_async(timeout=10, at="read")
            with pytest.raises(DependencyLost):
                await reader[DB].refunds.find_one({})
