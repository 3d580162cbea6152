"""The asyncio client stores and finds lineages in documents as the synchronous one does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from pymongo import CursorType, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError
from pymongo.write_concern import WriteConcern

import antipode
from antipode import Lineage
from antipode_testing import wait_until

from ._clients import DB, Names, async_client, plain_client
from ._stored import BESIDE, CAUSE, OTHER, causes, covering, write_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from antipode import WriteId
    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.store("mongodb"), pytest.mark.asyncio]

ONE = {"_id": 1}


@pytest_asyncio.fixture
async def one(antipode_mongodb: MongoDBTopology) -> AsyncIterator[Any]:
    """A client of an empty database, of which two collections carry lineages."""
    with plain_client(antipode_mongodb.primary) as plain:
        plain.drop_database(DB)
    async with async_client(antipode_mongodb.set_url, BESIDE) as made:
        yield made


async def read(call: Awaitable[Any]) -> tuple[Any, set[WriteId]]:
    """What *call* comes to in a request of its own, and on what elsewhere that depends."""
    with antipode.scope() as scope:
        found = await call
        assert covering(scope.lineage)
        return found, causes(scope.lineage)


async def test_writes_and_reads(one: Any) -> None:
    """Whole writes replace, updates merge, and documents look as ever."""
    posts = one[DB].posts
    document: dict[str, Any] = {"a": 1}
    with antipode.scope(Lineage([CAUSE])):
        inserted = (await posts.insert_one(document)).inserted_id
        await posts.insert_many([{"_id": 1}, {"_id": 2}])
    assert document == {"_id": inserted, "a": 1}
    with antipode.scope(Lineage([OTHER])):
        await posts.update_one(ONE, {"$set": {"b": 1}})
        await posts.update_one({"_id": 2}, [{"$set": {"b": 1}}])
    assert await read(posts.find_one(ONE)) == ({"_id": 1, "b": 1}, {CAUSE, OTHER})
    assert await read(posts.find_one({"_id": 2}, {"b": 1, "_id": 0})) == ({"b": 1}, {CAUSE, OTHER})
    with antipode.scope(Lineage([OTHER])):
        await posts.replace_one(ONE, {"c": 1})
    assert await read(posts.find_one(ONE)) == ({"_id": 1, "c": 1}, {OTHER})
    with antipode.scope() as scope:
        found = await posts.find_one_and_update(ONE, {"$inc": {"c": 1}}, return_document=True)
        assert (found, causes(scope.lineage)) == ({"_id": 1, "c": 2}, {OTHER})


async def test_deletes(one: Any) -> None:
    """Tombstones are written and found."""
    posts = one[DB].posts
    await posts.insert_many([{"_id": 1}, {"_id": 2, "a": 1}])
    with antipode.scope(Lineage([CAUSE])):
        await posts.delete_one(ONE)
        async with one.start_session() as session, await session.start_transaction():
            await posts.delete_many({"a": 1}, session=session)
    assert await read(posts.find_one(ONE)) == (None, {CAUSE})
    assert await read(posts.find_one({"a": 1})) == (None, {CAUSE})


@pytest.mark.parametrize("kind", [CursorType.NON_TAILABLE, CursorType.EXHAUST])
async def test_batches(one: Any, kind: int) -> None:
    """Each batch adds what its documents depend on."""
    posts = one[DB].posts
    for number in range(7):
        with antipode.scope(Lineage([CAUSE if number < 3 else OTHER])):
            await posts.insert_one({"_id": number})
    with antipode.scope() as scope:
        cursor = posts.find(batch_size=3, cursor_type=kind)
        found = [await anext(cursor) for _ in range(3)]
        assert causes(scope.lineage) == {CAUSE}
        found += [each async for each in cursor]
        assert causes(scope.lineage) == {CAUSE, OTHER}
    assert found == [{"_id": number} for number in range(7)]


async def test_bulk_and_unacknowledged(one: Any, antipode_mongodb: MongoDBTopology) -> None:
    """Bulk writes that fail in part, and writes that nobody waits for."""
    posts = one[DB].posts
    await posts.insert_one({"_id": 1})
    requests: list[Any] = [
        InsertOne({"_id": 2}),
        InsertOne(ONE),
        UpdateOne(ONE, {"$set": {"a": 1}}),
    ]
    with antipode.scope(Lineage([CAUSE])), pytest.raises(BulkWriteError) as caught:
        await posts.bulk_write(requests, ordered=False)
    assert caught.value.details["writeErrors"][0]["op"] == ONE
    for key in (1, 2):
        assert (await read(posts.find_one({"_id": key})))[1] == {CAUSE}
    blind = posts.with_options(write_concern=WriteConcern(w=0))
    with antipode.scope(Lineage([CAUSE])):
        await blind.bulk_write([InsertOne({"_id": 3})])
        await blind.insert_one({"_id": 4})
    with plain_client(antipode_mongodb.primary) as plain:
        stored = plain[DB].posts
        wait_until(lambda: stored.count_documents({}) == 4, timeout_s=5, what="writes")
    assert (await read(posts.find_one({"_id": 4})))[1] == {CAUSE}
    assert (await read(posts.find_one({"_id": 3})))[1] == {CAUSE}


async def test_reads_without_documents(one: Any) -> None:
    """They are covered, and counted: no more than that is known of them."""
    posts = one[DB].posts
    await posts.insert_one({"_id": 1})
    with antipode.scope() as scope:
        assert await posts.count_documents({}) == 1
        assert [write.covering for write in scope.lineage] == [True]
        assert not scope.lineage.incomplete
        found = [each async for each in await posts.aggregate([{"$project": {"a": 1}}])]
        assert found == [ONE]


async def test_monitors_see_no_command_of_the_library(antipode_mongodb: MongoDBTopology) -> None:
    """Neither tombstones nor questions before a held read."""
    said: list[str] = []
    async with async_client(antipode_mongodb.set_url, BESIDE, event_listeners=[Names(said)]) as one:
        posts = one[DB].posts
        with antipode.scope():
            await one[DB].others.insert_one({})
            await antipode.barrier_async(timeout=5, at="read")
            assert await posts.find_one({"_id": "none"}) is None
            await posts.delete_one({"_id": "none"})
    assert said[:3] == ["insert", "find", "delete"]
    assert set(said[3:]) <= {"endSessions"}


async def test_tasks_keep_their_lineages_apart(one: Any) -> None:
    """Each task's document has the task's lineage."""
    posts = one[DB].posts

    async def request(number: int) -> None:
        with antipode.scope(Lineage([write_id("log", number)])):
            await posts.insert_one({"_id": number})
            await posts.update_one({"_id": number}, {"$set": {"a": 1}})
        _, found = await read(posts.find_one({"_id": number}))
        assert found == {write_id("log", number)}

    await asyncio.gather(*(request(number) for number in range(50)))


async def test_barrier_behind_a_stored_lineage(antipode_mongodb: MongoDBTopology) -> None:
    """What a document at the primary depended on is at the replica after the barrier."""
    with plain_client(antipode_mongodb.primary) as plain:
        plain.drop_database(DB)
    antipode_mongodb.set_lag(100)
    near = {**BESIDE, "reads_from": "replica"}
    async with (
        async_client(antipode_mongodb.set_url, BESIDE) as home,
        async_client(antipode_mongodb.replica, near) as reader,
    ):
        for number in range(5):
            with antipode.scope():
                await home[DB].likes.insert_one({"_id": number})
                await home[DB].posts.update_one(ONE, {"$set": {"n": number}}, upsert=True)
            with antipode.scope():
                assert await home[DB].posts.find_one(ONE) == {"_id": 1, "n": number}
                await antipode.barrier_async(timeout=5, at="read")
                assert await reader[DB].likes.find_one({"_id": number})
