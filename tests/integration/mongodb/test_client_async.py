"""Instrumented asyncio PyMongo clients: the same promises as the synchronous ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import AsyncMongoClient, CursorType, DeleteOne, InsertOne, WriteConcern
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

import antipode
from antipode import BarrierTimeout, StaleSnapshot
from antipode.shim import Incomplete
from antipode_shims.mongodb import instrument_client, uninstrument_client
from antipode_testing import LagProxy, wait_until
from tests.integration._stale import doubtful, served

from ._clients import (
    DB,
    SET,
    UNWATCHED,
    arguments,
    async_client,
    client,
    exact,
    exchanges,
    plain_client,
    position,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

SECONDARY: dict[str, Any] = {"readPreference": "secondary"}
READER: dict[str, Any] = {"reads_from": "replica"}


async def aggregate(posts: Any, *stages: Any) -> Any:
    """The documents of an aggregation."""
    return await (await posts.aggregate(list(stages))).to_list()


WRITES: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "insert_one": lambda posts: posts.insert_one({}),
    "insert_many": lambda posts: posts.insert_many([{}, {}]),
    "update_one": lambda posts: posts.update_one({"_id": 0}, {"$inc": {"n": 1}}),
    "delete_one": lambda posts: posts.delete_one({"_id": 0}),
    "bulk_write": lambda posts: posts.bulk_write([InsertOne({}), DeleteOne({"_id": 0})]),
    "find_one_and_update": lambda posts: posts.find_one_and_update({}, {"$inc": {"n": 1}}),
    "$out": lambda posts: aggregate(posts, {"$out": "other"}),
    "drop": lambda posts: posts.drop(),
    "command": lambda posts: posts.database.command({"insert": "posts", "documents": [{}]}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_write_mints_its_position(
    antipode_mongodb: MongoDBTopology, write: Callable[[Any], Awaitable[Any]]
) -> None:
    """The position is after all that was there before, and the server has it by then."""
    async with async_client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        await posts.replace_one({"_id": 0}, {}, upsert=True)
        term, before = position(antipode_mongodb.primary)
        with antipode.scope() as scope:
            await write(posts)
            (entry,) = exact()
            assert not scope.lineage.incomplete
        assert before < int(entry.version) <= position(antipode_mongodb.primary)[1]
        assert entry.key in {SET, f"{SET}.{term}"}


async def test_failed_writes(antipode_mongodb: MongoDBTopology) -> None:
    """What wrote nothing mints nothing; part of a batch mints; ``w: 0`` is in doubt."""
    async with async_client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        await posts.replace_one({"_id": 0}, {}, upsert=True)
        with antipode.scope() as scope:
            with pytest.raises(DuplicateKeyError):
                await posts.insert_one({"_id": 0})
            assert scope.lineage.empty
            with pytest.raises(BulkWriteError):
                await posts.insert_many([{}, {"_id": 0}])
            assert exact()
        unacknowledged = posts.with_options(write_concern=WriteConcern(0))
        writes: list[Callable[[], Any]] = [
            lambda: unacknowledged.insert_one({}),
            lambda: unacknowledged.bulk_write([InsertOne({})], ordered=False),
        ]
        for write in writes:
            with antipode.scope() as scope:
                await write()
                assert scope.lineage.incomplete == {Incomplete("posts", "in_doubt")}


async def test_unacknowledged_bulk_write_under_a_floor(antipode_mongodb: MongoDBTopology) -> None:
    """It is sent as without one: nothing of it is a read that could wait."""
    async with async_client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        await posts.delete_many({})
        blind = posts.with_options(write_concern=WriteConcern(0))
        with antipode.scope() as scope:
            await posts.insert_one({})
            await antipode.barrier_async(timeout=5, at="read")
            await blind.bulk_write([InsertOne({"_id": "a"}), InsertOne({})], ordered=False)
            assert scope.lineage.incomplete == {Incomplete("posts", "in_doubt")}
    with plain_client(antipode_mongodb.primary) as plain:
        wait_until(lambda: plain[DB].posts.find_one({"_id": "a"}), timeout_s=5, what="the write")


async def test_writes_cost_no_round_trip(antipode_mongodb: MongoDBTopology) -> None:
    """Instrumented writes make as many round trips as plain ones; so do reads without a floor."""

    async def work(client: Any) -> None:
        posts = client[DB].posts
        await posts.insert_one({})
        await posts.find_one_and_update({}, {"$set": {"a": 1}})
        await posts.find_one({})

    with LagProxy(antipode_mongodb.primary) as proxy, antipode.scope():
        counts = []
        async with (
            AsyncMongoClient[Any](**arguments(proxy.address, **UNWATCHED)) as plain,
            async_client(proxy.address, **UNWATCHED) as one,
        ):
            for each in (plain, one):
                await work(each)
                with exchanges(proxy) as made:
                    await work(each)
                counts.append(made[0])
        assert counts[0] == counts[1]


async def test_client_stays_what_it_was(antipode_mongodb: MongoDBTopology) -> None:
    """Instrumenting is idempotent and undone; handles made before and after are covered."""
    async with AsyncMongoClient[Any](**arguments(antipode_mongodb.primary)) as one:
        earlier, kind = one[DB].posts, type(one)
        assert instrument_client(one, datastore="posts") is one
        assert instrument_client(one, datastore="posts") is one
        assert isinstance(one, AsyncMongoClient)
        for posts in (earlier, one[DB].posts):
            with antipode.scope():
                await posts.insert_one({})
                assert exact()
        uninstrument_client(one)
        assert type(one) is kind
        with antipode.scope() as scope:
            await earlier.insert_one({})
            assert scope.lineage.empty


async def test_tasks_keep_their_lineages_apart(antipode_mongodb: MongoDBTopology) -> None:
    """Positions enter the scope of the task that wrote, and of no other."""
    async with async_client(antipode_mongodb.primary) as one:

        async def write(number: int) -> int:
            with antipode.scope() as scope:
                if number % 2:
                    await one[DB].posts.insert_one({})
                else:
                    await one[DB].posts.find_one({})
                return len(exact(scope.lineage))

        assert await asyncio.gather(*map(write, range(64))) == [0, 1] * 32


READS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "find_one": lambda posts: posts.find_one({"_id": 1}),
    "find": lambda posts: posts.find({"_id": 1}).to_list(),
    "count": lambda posts: posts.count_documents({"_id": 1}),
    "distinct": lambda posts: posts.distinct("_id"),
    "aggregate": lambda posts: aggregate(posts, {"$match": {"_id": 1}}),
}


@pytest.mark.parametrize("level", ["local", "majority"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_every_read_waits(
    antipode_mongodb: MongoDBTopology, read: Callable[[Any], Awaitable[Any]], level: str
) -> None:
    """A secondary that is late answers each kind of read only when it has what it must show."""
    with client(antipode_mongodb.primary) as writer:
        writer[DB].posts.delete_many({})
        antipode_mongodb.wait_replicated()
        antipode_mongodb.set_lag(60)
        with antipode.scope() as scope:
            writer[DB].posts.insert_one({"_id": 1})
    async with async_client(
        antipode_mongodb.replica, READER, readConcernLevel=level, **SECONDARY
    ) as reader:
        with antipode.scope(scope.lineage):
            await antipode.barrier_async(timeout=20, at="read")
            assert await read(reader[DB].posts)


async def test_time_of_the_floor_ends(antipode_mongodb: MongoDBTopology) -> None:
    """A secondary that never applies the write: an error, and the connection serves on."""
    with client(antipode_mongodb.primary) as writer:
        writer[DB].posts.delete_many({})
        antipode_mongodb.wait_replicated()
        antipode_mongodb.stall()
        with antipode.scope() as scope:
            writer[DB].posts.insert_one({"_id": 1})
    async with async_client(antipode_mongodb.replica, READER, **SECONDARY) as reader:
        posts = reader[DB].posts
        for read in READS.values():
            with antipode.scope(scope.lineage):
                await antipode.barrier_async(timeout=0.1, at="read")
                with pytest.raises(BarrierTimeout):
                    await read(posts)
        assert await posts.find_one({"_id": 1}) is None
    antipode_mongodb.unstall()


async def test_snapshots_from_before_are_stale(antipode_mongodb: MongoDBTopology) -> None:
    """An open transaction and an exhaust cursor."""
    async with async_client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        await posts.insert_many([{} for _ in range(20)])
        cursor = posts.find({}, batch_size=2, cursor_type=CursorType.EXHAUST)
        for _ in range(5):
            await cursor.next()
        with antipode.scope():
            async with one.start_session() as session, await session.start_transaction():
                await posts.find_one({}, session=session)
                await posts.insert_one({"_id": "new"})
                await antipode.barrier_async(timeout=5, at="read")
                with pytest.raises(StaleSnapshot):
                    await posts.find_one({}, session=session)
            with pytest.raises(StaleSnapshot):
                await cursor.to_list()
        await posts.delete_many({})


async def test_unknown_commands_are_taken_for_writes(antipode_mongodb: MongoDBTopology) -> None:
    """What is in no table may write: its position enters."""
    async with async_client(antipode_mongodb.primary) as one:
        with antipode.scope() as scope:
            await one.admin.command("ping")
            assert scope.lineage.empty
            await one.admin.command("appendOplogNote", data={})
            assert len(exact()) == 1


async def test_a_read_that_is_refused_is_not_counted_as_stale(
    antipode_mongodb: MongoDBTopology,
) -> None:
    """A read that raises is served to nobody."""
    antipode.configure(barriers="auto")
    async with async_client(antipode_mongodb.primary) as one:
        for lineage in doubtful("posts"):
            with served("posts", 0), antipode.scope(lineage), pytest.raises(OperationFailure):
                await one[DB].posts.find_one({"$nothing": 1})
            with served("posts", 1), antipode.scope(lineage):
                await one[DB].posts.find_one({})
