"""Instrumented PyMongo clients when connections fail: doubt where there is doubt, nowhere else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import InsertOne, UpdateOne, WriteConcern
from pymongo.errors import ConnectionFailure, OperationFailure

import antipode
from antipode import IncompleteLineage
from antipode.shim import Incomplete
from antipode_testing import LagProxy
from tests.integration._in_flight import sent

from ._clients import DB, UNWATCHED, async_client, client, exact, failing, plain_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

IN_DOUBT = Incomplete("posts", "in_doubt")


@pytest.fixture
def proxy(antipode_mongodb: MongoDBTopology) -> Iterator[LagProxy]:
    """A proxy to the primary, which fails when told to; making a collection takes time there."""
    with plain_client(antipode_mongodb.primary) as plain:
        plain[DB].posts.insert_one({})
    with LagProxy(antipode_mongodb.primary) as through:
        yield through


WRITES: dict[str, Callable[[Any], Any]] = {
    "insert_one": lambda posts: posts.insert_one({}),
    "insert_many": lambda posts: posts.insert_many([{}, {}]),
    "update_many": lambda posts: posts.update_many({}, {"$set": {"a": 1}}),
    "bulk_write": lambda posts: posts.bulk_write([InsertOne({})]),
    "find_one_and_update": lambda posts: posts.find_one_and_update({}, {"$set": {"a": 1}}),
    "$out": lambda posts: posts.aggregate([{"$out": "other"}]),
    "create_index": lambda posts: posts.create_index("a"),
    "drop": lambda posts: posts.drop(),
    "command": lambda posts: posts.database.command({"insert": "posts", "documents": [{}]}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_lost_reply_is_in_doubt(proxy: LagProxy, write: Callable[[Any], Any]) -> None:
    """A write whose reply never comes is in doubt, and a barrier refuses to vouch for it."""
    with client(proxy.address, socketTimeoutMS=600, serverSelectionTimeoutMS=2000) as one:
        one[DB].posts.insert_one({})
        with antipode.scope() as scope:
            proxy.set_lag(60_000)
            with pytest.raises(ConnectionFailure):
                write(one[DB].posts)
            proxy.set_lag(0)
            assert scope.lineage.incomplete == {IN_DOUBT}
            with pytest.raises(IncompleteLineage):
                antipode.barrier(timeout=1)


def test_lost_reply_of_a_read_leaves_no_doubt(proxy: LagProxy) -> None:
    """A read that got no reply wrote nothing."""
    with client(proxy.address, socketTimeoutMS=600, serverSelectionTimeoutMS=2000) as one:
        one[DB].posts.find_one({})
        with antipode.scope() as scope:
            proxy.set_lag(60_000)
            with pytest.raises(ConnectionFailure):
                one[DB].posts.find_one({})
            assert scope.lineage.empty
            proxy.set_lag(0)


def test_unreachable_primary_leaves_no_doubt(proxy: LagProxy) -> None:
    """A write that was never sent is no write."""
    options: dict[str, Any] = {"serverSelectionTimeoutMS": 300, "connectTimeoutMS": 300}
    with client(proxy.address, **options, connect=False) as one, antipode.scope() as scope:
        proxy.cut()
        with pytest.raises(ConnectionFailure):
            one[DB].posts.insert_one({})
        assert scope.lineage.empty
        proxy.heal()


@pytest.mark.parametrize("command", ["insert", "update", "delete", "findAndModify"])
def test_repeated_write_is_settled(antipode_mongodb: MongoDBTopology, command: str) -> None:
    """PyMongo repeats a write by its number; the server tells what became of it."""
    writes: dict[str, Callable[[Any], Any]] = {
        "insert": lambda posts: posts.insert_one({}),
        "update": lambda posts: posts.update_one({"_id": 0}, {"$inc": {"n": 1}}),
        "delete": lambda posts: posts.delete_one({"_id": 0}),
        "findAndModify": lambda posts: posts.find_one_and_update({}, {"$inc": {"n": 1}}),
    }
    with client(antipode_mongodb.primary) as one:
        faults: list[dict[str, Any]] = [
            {"closeConnection": True},
            {"errorCode": 11602, "errorLabels": ["RetryableWriteError"]},
        ]
        for fault in faults:
            one[DB].posts.delete_many({})
            one[DB].posts.insert_one({"_id": 0})
            with failing(antipode_mongodb.primary, command, **fault), antipode.scope() as scope:
                writes[command](one[DB].posts)
                assert exact()
                assert not scope.lineage.incomplete


def test_interrupted_write_of_many_is_in_doubt(antipode_mongodb: MongoDBTopology) -> None:
    """The server gave up in the middle: some documents may be changed."""
    with client(antipode_mongodb.primary) as one:
        one[DB].posts.insert_one({})
        for code in (50, 11601):
            with (
                failing(antipode_mongodb.primary, "update", errorCode=code),
                antipode.scope() as scope,
                pytest.raises(OperationFailure),
            ):
                one[DB].posts.update_many({}, {"$set": {"a": 1}})
            assert scope.lineage.incomplete == {IN_DOUBT}


def test_refused_write_is_no_doubt(antipode_mongodb: MongoDBTopology) -> None:
    """A server that is no primary did nothing."""
    with client(antipode_mongodb.replica) as one, antipode.scope() as scope:
        with pytest.raises(ConnectionFailure):
            one[DB].posts.insert_one({})
        assert scope.lineage.empty


def test_later_batch_that_is_lost_is_in_doubt(antipode_mongodb: MongoDBTopology) -> None:
    """The batch before it is minted all the same."""
    with client(antipode_mongodb.primary, retryWrites=False) as one:
        one[DB].posts.drop()
        one[DB].posts.insert_one({"_id": 0})
        with (
            failing(antipode_mongodb.primary, "update", closeConnection=True),
            antipode.scope() as scope,
        ):
            with pytest.raises(ConnectionFailure):
                one[DB].posts.bulk_write([InsertOne({}), UpdateOne({}, {"$set": {"a": 1}})])
            assert exact()
            assert scope.lineage.incomplete == {IN_DOUBT}


async def test_cancelled_write_is_in_doubt(proxy: LagProxy) -> None:
    """A task that is cancelled while the server works: the write may happen."""
    async with async_client(proxy.address, **UNWATCHED) as one:
        posts = one[DB].posts
        await posts.insert_one({})
        writes: list[Callable[[], Any]] = [
            lambda: posts.insert_one({}),
            lambda: posts.with_options(write_concern=WriteConcern(1)).find_one_and_update(
                {}, {"$set": {"a": 1}}
            ),
            lambda: posts.bulk_write([InsertOne({})]),
        ]
        for write in writes:
            before = proxy.traffic()
            proxy.set_lag(60_000)
            with antipode.scope() as scope:
                task = asyncio.ensure_future(write())
                await sent(proxy, before)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert scope.lineage.incomplete == {IN_DOUBT}
            proxy.set_lag(0)
            await posts.find_one({})


async def test_cancelled_read_is_no_doubt(proxy: LagProxy) -> None:
    """A cancelled read wrote nothing, under a floor or without one."""
    async with async_client(proxy.address, **UNWATCHED) as one:
        posts = one[DB].posts
        with antipode.scope() as scope:
            await posts.insert_one({})
            await antipode.barrier_async(timeout=5, at="read")
            before = proxy.traffic()
            proxy.set_lag(60_000)
            task = asyncio.ensure_future(posts.find_one({}))
            await sent(proxy, before)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not scope.lineage.incomplete
            proxy.set_lag(0)
            assert await posts.find_one({}) is not None
