"""Instrumented PyMongo clients: what writes mint, what they cost, and what stays as it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId
from bson.errors import InvalidDocument
from pymongo import DeleteOne, InsertOne, MongoClient, UpdateOne, WriteConcern
from pymongo.errors import (
    BulkWriteError,
    DuplicateKeyError,
    OperationFailure,
    WriteConcernError,
    WTimeoutError,
)
from pymongo.server_api import ServerApi

import antipode
from antipode import ConfigurationError
from antipode.shim import Incomplete
from antipode_shims.mongodb import instrument_client, uninstrument_client
from antipode_testing import LagProxy, NativeProvider, wait_until
from tests.integration._stale import doubtful, served

from ._clients import (
    DB,
    SET,
    UNWATCHED,
    client,
    counted,
    exact,
    exchanges,
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
        made[DB].posts.insert_one({"_id": 0, "n": 0})
        yield made


WRITES: dict[str, Callable[[Any], Any]] = {
    "insert_one": lambda db: db.posts.insert_one({"x": 1}),
    "insert_many": lambda db: db.posts.insert_many([{"x": 1}, {"x": 2}]),
    "update_one": lambda db: db.posts.update_one({"_id": 0}, {"$inc": {"n": 1}}),
    "upsert": lambda db: db.posts.update_one({"_id": 7}, {"$inc": {"n": 1}}, upsert=True),
    "update_many": lambda db: db.posts.update_many({}, {"$inc": {"n": 1}}),
    "replace_one": lambda db: db.posts.replace_one({"_id": 0}, {"n": "new"}),
    "delete_one": lambda db: db.posts.delete_one({"_id": 0}),
    "delete_many": lambda db: db.posts.delete_many({}),
    "bulk_write": lambda db: db.posts.bulk_write(
        [InsertOne({"x": 1}), UpdateOne({"_id": 0}, {"$inc": {"n": 1}}), DeleteOne({"_id": 0})]
    ),
    "find_one_and_update": lambda db: db.posts.find_one_and_update({}, {"$inc": {"n": 1}}),
    "find_one_and_replace": lambda db: db.posts.find_one_and_replace({}, {"n": 2}),
    "find_one_and_delete": lambda db: db.posts.find_one_and_delete({}),
    "$out": lambda db: list(db.posts.aggregate([{"$out": "other"}])),
    # What is there already is not written again.
    "$merge": lambda db: list(db.posts.aggregate([{"$merge": f"merged{ObjectId()}"}])),
    "create_index": lambda db: db.posts.create_index(f"x{ObjectId()}"),
    "drop_index": lambda db: db.posts.drop_index(db.posts.create_index("y")),
    "create_and_rename": lambda db: db.create_collection("made").rename("named", dropTarget=True),
    "drop": lambda db: (db.named.insert_one({}), db.named.drop()),
    "command": lambda db: db.command(
        {
            "insert": "posts",
            "documents": [{"x": 1}],
            "writeConcern": db.write_concern.document,
        }
    ),
    "command_fam": lambda db: db.command(
        {
            "findAndModify": "posts",
            "query": {},
            "update": {"$inc": {"n": 1}},
            "writeConcern": db.write_concern.document,
        }
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("concern", [1, "majority"])
def test_write_mints_its_position(
    antipode_mongodb: MongoDBTopology, one: Any, write: Callable[[Any], Any], concern: Any
) -> None:
    """The position is after all that was there before, and the server has it by then."""
    term, before = position(antipode_mongodb.primary)
    db = one.get_database(DB, write_concern=WriteConcern(concern))
    with antipode.scope() as scope:
        write(db)
        entries = exact()
        assert not scope.lineage.incomplete
    assert before < max(int(entry.version) for entry in entries)
    assert max(int(entry.version) for entry in entries) <= position(antipode_mongodb.primary)[1]
    assert {entry.key for entry in entries} <= {SET, f"{SET}.{term}"}
    if concern == "majority":
        assert SET in {entry.key for entry in entries}


def test_reply_stays_what_it_was(one: Any) -> None:
    """What was asked in addition is not in the application's reply."""
    with antipode.scope():
        reply = one[DB].command(
            {"findAndModify": "posts", "query": {}, "update": {"$inc": {"n": 1}}}
        )
    assert {"value", "ok", "lastErrorObject", "operationTime", "$clusterTime"} == set(reply)


def test_write_that_changes_nothing_mints_nothing(one: Any) -> None:
    """A duplicate, an update that fits nothing and what cannot be encoded are no writes."""
    posts = one[DB].posts
    with antipode.scope() as scope:
        with pytest.raises(DuplicateKeyError):
            posts.insert_one({"_id": 0})
        assert posts.update_one({"_id": "none"}, {"$set": {"a": 1}}).matched_count == 0
        assert posts.delete_one({"_id": "none"}).deleted_count == 0
        with pytest.raises(InvalidDocument):
            posts.insert_one({"x": object()})
        with pytest.raises(OperationFailure):
            posts.find_one_and_update({"_id": 0}, {"$nonsense": 1})
        assert scope.lineage.empty


def test_partial_bulk_mints_what_was_written(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """The error goes to the application; what was written before it enters."""
    _, before = position(antipode_mongodb.primary)
    with antipode.scope():
        with pytest.raises(BulkWriteError):
            one[DB].posts.insert_many([{"_id": 1}, {"_id": 0}, {"_id": 2}])
        (entry,) = exact()
    assert before < int(entry.version) <= position(antipode_mongodb.primary)[1]


def test_failed_merge_mints_what_it_may_have_written(one: Any) -> None:
    """An aggregation that fails half-way has written the first half."""
    one[DB].target.drop()
    one[DB].target.create_index("x", unique=True)
    one[DB].posts.insert_many([{"x": 1}, {"x": 1}])
    with antipode.scope():
        with pytest.raises(OperationFailure):
            one[DB].posts.aggregate(
                [{"$match": {"x": 1}}, {"$project": {"_id": 0}}, {"$merge": "target"}]
            )
        assert exact()
    assert one[DB].target.count_documents({}) == 1


def test_write_concern_that_is_not_met_mints(antipode_mongodb: MongoDBTopology, one: Any) -> None:
    """The write is there; it is not in the majority's log."""
    antipode_mongodb.stall()
    slow = one[DB].posts.with_options(write_concern=WriteConcern("majority", wtimeout=50))
    with antipode.scope() as scope:
        writes: list[Callable[[], Any]] = [
            lambda: slow.insert_one({}),
            lambda: slow.find_one_and_update({}, {"$inc": {"n": 1}}),
        ]
        for write in writes:
            with pytest.raises((WTimeoutError, WriteConcernError)):
                write()
        assert [entry.key for entry in exact()] == [
            f"{SET}.{position(antipode_mongodb.primary)[0]}"
        ]
        assert not scope.lineage.incomplete
    antipode_mongodb.unstall()


def test_unacknowledged_write_is_in_doubt(one: Any) -> None:
    """With ``w: 0`` nobody knows."""
    posts = one[DB].posts.with_options(write_concern=WriteConcern(0))
    writes: list[Callable[[], Any]] = [
        lambda: posts.insert_one({}),
        lambda: posts.update_one({}, {"$set": {"a": 1}}),
        lambda: posts.delete_one({"_id": "none"}),
        lambda: posts.insert_many([{}, {}], ordered=False),
        lambda: posts.bulk_write([InsertOne({}), DeleteOne({"_id": 9})]),
        lambda: posts.bulk_write([InsertOne({}), DeleteOne({"_id": 9})], ordered=False),
    ]
    for write in writes:
        with antipode.scope() as scope:
            write()
            assert IN_DOUBT in scope.lineage.incomplete


def test_unacknowledged_bulk_write_under_a_floor(one: Any) -> None:
    """It is sent as without one: nothing of it is a read that could wait."""
    posts = one[DB].posts
    blind = posts.with_options(write_concern=WriteConcern(0))
    with antipode.scope() as scope:
        posts.insert_one({})
        antipode.barrier(timeout=5, at="read")
        blind.bulk_write([InsertOne({"_id": "a"}), DeleteOne({"_id": "b"})], ordered=False)
        assert IN_DOUBT in scope.lineage.incomplete
    wait_until(lambda: posts.find_one({"_id": "a"}) is not None, timeout_s=5, what="the write")


def test_unacknowledged_ordered_batch_is_acknowledged(one: Any) -> None:
    """PyMongo waits for its replies all the same, and so its position is known."""
    posts = one[DB].posts.with_options(write_concern=WriteConcern(0))
    with antipode.scope() as scope:
        posts.insert_many([{}, {}])
        assert exact()
        assert not scope.lineage.incomplete


def test_unknown_commands_are_taken_for_writes(one: Any) -> None:
    """What is in no table may write: its position enters; reads and administration are not."""
    with antipode.scope() as scope:
        one[DB].command("dbStats")
        one.admin.command("ping")
        list(one[DB].posts.aggregate([{"$match": {}}]))
        with pytest.raises(OperationFailure):
            one[DB].command("godinsertOrSo", "posts")  # The server has no such command.
        assert scope.lineage.empty
        insert = {"op": "i", "ns": f"{DB}.posts", "o": {"_id": "applied"}}
        assert "$replData" not in one.admin.command("applyOps", [insert])
        assert len(exact()) == 1
        assert not scope.lineage.incomplete
    with antipode.scope() as scope:
        bad = {"op": "i", "ns": f"{DB}.posts", "o": {"_id": "applied"}}
        with pytest.raises(OperationFailure):
            one.admin.command("applyOps", [{**insert, "o": {"_id": "half"}}, {**bad, "op": "?"}])
        assert not scope.lineage.empty  # What failed may have written before that.


def test_writes_cost_no_round_trip(antipode_mongodb: MongoDBTopology) -> None:
    """Instrumented writes make as many round trips as plain ones; so do reads without a floor."""

    def work(client: Any) -> None:
        posts = client[DB].posts
        posts.insert_one({})
        posts.update_one({}, {"$set": {"a": 1}})
        posts.find_one_and_update({}, {"$set": {"a": 1}})
        posts.bulk_write([InsertOne({}), DeleteOne({"_id": 0})])
        list(posts.aggregate([{"$limit": 1}, {"$merge": "other"}]))
        posts.find_one({})
        with client.start_session() as session, session.start_transaction():
            posts.insert_one({}, session=session)

    with (
        LagProxy(antipode_mongodb.primary) as proxy,
        plain_client(proxy.address, **UNWATCHED) as plain,
        client(proxy.address, **UNWATCHED) as one,
        antipode.scope(),
    ):
        counts = []
        for each in (plain, one):
            work(each)
            with exchanges(proxy) as made:
                work(each)
            counts.append(made[0])
    assert counts[0] == counts[1]


def test_client_stays_what_it_was(antipode_mongodb: MongoDBTopology) -> None:
    """Instrumenting is idempotent and undone; handles made before and after are covered."""
    with plain_client(antipode_mongodb.primary) as one:
        earlier = one[DB].posts
        kind, shown = type(one), repr(one)
        assert instrument_client(one, datastore="posts") is one
        assert instrument_client(one, datastore="posts") is one
        with pytest.raises(ConfigurationError, match="already"):
            instrument_client(one, datastore="others")
        assert isinstance(one, MongoClient)
        assert repr(one) == shown
        later = one[DB].posts.with_options(write_concern=WriteConcern(1))
        for posts in (earlier, later):
            with antipode.scope():
                posts.insert_one({})
                assert exact()
        antipode.shim.unregister("posts")  # Closes its shim: it gets another one.
        assert instrument_client(one, datastore="posts") is one
        with antipode.scope():
            earlier.insert_one({})
            assert antipode.barrier(timeout=10, only="posts").outcomes
        uninstrument_client(one)
        uninstrument_client(one)
        assert type(one) is kind
        with antipode.scope() as scope:
            earlier.insert_one({})
            later.insert_one({})
            assert scope.lineage.empty


def test_threads_keep_their_lineages_apart(one: Any) -> None:
    """Positions enter the scope of the thread that wrote, and of no other."""

    def write(number: int) -> int:
        with antipode.scope() as scope:
            if number % 2:
                one[DB].posts.insert_one({})
            else:
                one[DB].posts.find_one({})
            return len(exact(scope.lineage))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(64))) == [0, 1] * 32


def test_unscoped_write_names_the_caller(one: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A write without a scope is counted, and logged with the application's own line."""
    before = counted("unscoped_write")
    one[DB].posts.insert_one({})
    assert counted("unscoped_write") == before + 1
    assert __file__ in caplog.text


def test_barrier_now_looks_at_the_servers_of_the_clients(
    antipode_mongodb: MongoDBTopology, one: Any
) -> None:
    """Of two clients under one name the replica's server is waited for; reads cost no question."""
    replica = {"datastore": "posts", "reads_from": "replica"}
    options: dict[str, Any] = {"readPreference": "secondary"}
    antipode_mongodb.set_lag(100)
    with client(antipode_mongodb.replica, replica, **options) as reader, antipode.scope():
        for number in range(10):
            one[DB].posts.insert_one({"_id": f"now-{number}"})
            antipode.barrier(timeout=10)
            assert reader[DB].posts.find_one({"_id": f"now-{number}"})


def test_lineage_beside_needs_names(antipode_mongodb: MongoDBTopology) -> None:
    """The error says which option is missing, or means nothing."""
    for options in ({"lineage": "beside"}, {"collections": ["posts"]}, {"lineage": "under"}):
        wanted: dict[str, Any] = {"datastore": "posts", **options}
        with (
            plain_client(antipode_mongodb.primary) as one,
            pytest.raises(ConfigurationError, match=r"collections|must be"),
        ):
            instrument_client(one, **wanted)


def test_standalone_is_refused_where_something_waits_for_it() -> None:
    """Statements go their way, and writes leave a mark; under a floor, and found, it is refused."""
    server = NativeProvider().start("mongodb", "alone", {})
    with closing(server), plain_client(server.address, connect=False) as one:
        instrument_client(one, datastore="posts")
        with antipode.scope() as scope:
            one[DB].posts.insert_one({"_id": 1})
            assert one[DB].command("ping")["ok"]
            assert {mark.subject for mark in scope.lineage.incomplete} == {"posts"}
        write = antipode.WriteId("posts", "antipode.1", 1, 490_000)
        with antipode.scope(antipode.Lineage([write])):
            antipode.barrier(timeout=1, at="read")
            with pytest.raises(ConfigurationError, match="--replSet"):
                one[DB].posts.find_one({})
        uninstrument_client(one)
        one[DB].posts.insert_one({})
        with pytest.raises(ConfigurationError, match="--replSet"):
            instrument_client(one, datastore="posts")


def test_strict_api_changes_nothing(antipode_mongodb: MongoDBTopology) -> None:
    """With a strict Stable API replies tell as much, and floors are judged."""
    api: Any = ServerApi("1", strict=True)
    with client(antipode_mongodb.primary, server_api=api) as one, antipode.scope() as scope:
        posts = one[DB].posts.with_options(write_concern=WriteConcern(1))
        posts.find_one_and_update({"_id": "strict"}, {"$inc": {"n": 1}}, upsert=True)
        assert exact()
        assert not scope.lineage.incomplete
        antipode.barrier(timeout=5, at="read")
        assert posts.find_one({"_id": "strict"})


def test_a_read_that_is_refused_is_not_counted_as_stale(antipode_mongodb: MongoDBTopology) -> None:
    """A read that raises is served to nobody, and so is a command outside of the retry loop."""
    antipode.configure(barriers="auto")
    with client(antipode_mongodb.primary) as one:
        posts = one[DB].posts
        for lineage in doubtful("posts"):
            for refused in (
                lambda: posts.find_one({"$nothing": 1}),
                lambda: one[DB].command("count", "posts", query={"$nothing": 1}),
            ):
                with served("posts", 0), antipode.scope(lineage), pytest.raises(OperationFailure):
                    refused()
            with served("posts", 2), antipode.scope(lineage):
                posts.find_one({})
                one[DB].command("count", "posts")
