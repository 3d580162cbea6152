"""No result, error, transaction or document differs from the plain client's."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import AsyncMongoClient, DeleteOne, InsertOne, UpdateOne
from pymongo.errors import PyMongoError

import antipode
from antipode_shims.mongodb import instrument_client, uninstrument_client
from tests.integration._played import MODES, played
from tests.integration.mongodb._clients import DB, arguments, client, plain_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")
COUNTED = [{"$group": {"_id": None, "n": {"$sum": "$n"}}}]
BULK = [InsertOne({"_id": 5}), InsertOne({"_id": 1}), UpdateOne({"_id": 1}, {"$inc": {"n": 1}})]
#: What an application may do, by a client and in a session of it.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "insert": lambda posts, session: posts.insert_one({"_id": 1, "n": 1}, session=session),
    "again": lambda posts, session: posts.insert_one({"_id": 1}, session=session),
    "update": lambda posts, session: posts.update_one({}, {"$inc": {"n": 1}}, session=session),
    "refused": lambda posts, session: posts.update_one({}, {"$no": 1}, session=session),
    "change": lambda posts, session: posts.find_one_and_update(
        {"_id": 1}, {"$inc": {"n": 1}}, session=session
    ),
    "find": lambda posts, session: list(posts.find({}, session=session).sort("_id")),
    "bulk": lambda posts, session: posts.bulk_write(BULK, session=session),
    "unordered": lambda posts, session: posts.bulk_write(
        [*BULK, DeleteOne({"_id": 5})], ordered=False, session=session
    ),
    "aggregate": lambda posts, session: list(posts.aggregate(COUNTED, session=session)),
    "begin": lambda _, session: type(session.start_transaction()),
    "commit": lambda _, session: session.commit_transaction(),
    "abort": lambda _, session: session.abort_transaction(),
    "delete": lambda posts, session: posts.delete_many({}, session=session),
}


async def _aggregated(posts: Any, session: Any) -> Any:
    cursor = await posts.aggregate(COUNTED, session=session)
    return await cursor.to_list()


async def _begun(_: Any, session: Any) -> Any:
    return type(await session.start_transaction())


#: The same by the asyncio client, whose cursors and transactions are awaited otherwise.
ASYNC: dict[str, Callable[[Any, Any], Any]] = {
    **CALLS,
    "find": lambda posts, session: posts.find({}, session=session).sort("_id").to_list(),
    "aggregate": _aggregated,
    "begin": _begun,
}
STEPS = (
    *("insert", "again", "update", "refused", "change", "find", "bulk", "unordered", "aggregate"),
    *("commit", "abort", "begin", "begin", "update", "find", "commit", "commit"),
    *("begin", "delete", "abort", "find", "begin", "change", "again", "commit", "abort"),
    *("begin", "find", "commit", "delete", "insert"),
)
COUNTS = ("inserted_id", "inserted_count", "matched_count", "modified_count", "deleted_count")


class OneSession:
    """PyMongo, in a session."""

    def __init__(self, made: Any) -> None:
        self.posts = made[DB].posts
        self.session = made.start_session()
        self.heard: list[str] = []

    def called(self, statement: str) -> Any:
        """What a step's call returns."""
        return CALLS[statement](self.posts, self.session)

    def execute(self, statement: str) -> Any:
        try:
            found = self.called(statement)
        except PyMongoError as error:  # Its text has the cluster's time.
            return (
                type(error),
                getattr(error, "code", None),
                error.has_error_label("TransientTransactionError"),
            )
        if hasattr(found, "acknowledged"):  # So has what is shown of it as a whole.
            return [getattr(found, each, None) for each in COUNTS]
        return repr(found)

    def state(self) -> Any:
        return self.session.in_transaction

    def close(self) -> None:
        self.session.end_session()


class OneAsyncSession(OneSession):
    """The same of PyMongo's asyncio client."""

    def __init__(self, made: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        super().__init__(made)

    def called(self, statement: str) -> Any:
        return self.loop.run_until_complete(ASYNC[statement](self.posts, self.session))

    def close(self) -> None:
        self.loop.run_until_complete(self.session.end_session())


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_session_is_the_plain_one(
    antipode_mongodb: MongoDBTopology, mode: Any, *, scoped: bool
) -> None:
    """Every step of a session ends as it does without the library, and writes what it does."""
    antipode.configure(mode=mode)
    scripts = []
    with plain_client(antipode_mongodb.primary) as observer:

        def stored() -> list[Any]:
            return list(observer[DB].posts.find().sort("_id"))

        for make in (plain_client, client):
            observer[DB].posts.delete_many({})
            with make(antipode_mongodb.primary) as made, ExitStack() as stack:
                if scoped:
                    stack.enter_context(antipode.scope())
                scripts.append(played(OneSession(made), STEPS, stored))
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain


@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_an_asyncio_session_is_the_plain_one(
    antipode_mongodb: MongoDBTopology, mode: Any, *, scoped: bool
) -> None:
    """The same of the asyncio client."""
    antipode.configure(mode=mode)
    scripts = []
    with plain_client(antipode_mongodb.primary) as observer:

        def stored() -> list[Any]:
            return list(observer[DB].posts.find().sort("_id"))

        for instrumented in (False, True):
            observer[DB].posts.delete_many({})
            loop = asyncio.new_event_loop()
            made = AsyncMongoClient[Any](**arguments(antipode_mongodb.primary))
            if instrumented:
                instrument_client(made, datastore="posts")
            with closing(loop), ExitStack() as stack:
                if scoped:
                    stack.enter_context(antipode.scope())
                session = stack.enter_context(closing(OneAsyncSession(made, loop)))
                scripts.append(played(session, STEPS, stored))
                uninstrument_client(made)
                loop.run_until_complete(made.close())
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
