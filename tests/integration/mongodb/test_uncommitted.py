"""What a request wrote in its own open transaction: who sees it, and what is counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import antipode

from ._clients import DB, async_client, client, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

NAME = "read_before_commit"


@pytest.fixture
def replica(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """The collection at the secondary, by an instrumented client."""
    options = {"reads_from": "replica"}
    with client(antipode_mongodb.replica, options, readPreference="secondaryPreferred") as one:
        yield one[DB].posts


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_a_read_outside_of_the_session_before_the_commit(
    antipode_mongodb: MongoDBTopology, replica: Any, end: str
) -> None:
    """It is counted, at the secondary and at the primary; a read of the session is not."""
    with client(antipode_mongodb.primary) as one, antipode.scope():
        posts = one[DB].posts
        posts.delete_many({})
        antipode.barrier(timeout=15)
        with one.start_session() as session:
            before = counted(NAME)
            session.start_transaction()
            posts.find_one({}, session=session)
            assert replica.find_one({}) is None
            assert counted(NAME) == before
            posts.insert_one({"_id": 1}, session=session)
            assert posts.find_one({}, session=session)
            assert counted(NAME) == before
            assert antipode.uncommitted() == {"posts"}
            assert replica.find_one({}) is None
            assert posts.find_one({}) is None
            assert counted(NAME) == before + 2
            getattr(session, end)()
            assert antipode.uncommitted() == frozenset()
        antipode.barrier(timeout=15)
        assert bool(replica.find_one({})) == (end == "commit_transaction")
        assert counted(NAME) == before + 2


def test_asyncio(antipode_mongodb: MongoDBTopology) -> None:
    """The same of asyncio's client; a session that ends has no open transaction."""

    async def request() -> None:
        async with async_client(antipode_mongodb.primary) as one:
            posts = one[DB].posts
            await posts.delete_many({})
            with antipode.scope():
                before = counted(NAME)
                async with one.start_session() as session:
                    await session.start_transaction()
                    await posts.insert_one({"_id": 1}, session=session)
                    assert await posts.find_one({}, session=session)
                    assert await posts.find_one({}) is None
                    assert counted(NAME) == before + 1
                assert antipode.uncommitted() == frozenset()
                await posts.find_one({})
                assert counted(NAME) == before + 1

    asyncio.run(request())
