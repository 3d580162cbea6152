"""Lineages in an application's own documents: who reads one depends on what its writers did."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import bson
import pytest
from pymongo import InsertOne, ReplaceOne, UpdateMany
from pymongo.server_api import ServerApi

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims.mongodb._format.document import MOST_PARTS
from antipode_shims.mongodb._format.numbers import MOST_LOGS

from ._clients import DB, client, counted, plain_client
from ._stored import (
    BESIDE,
    CAUSE,
    DELETES,
    OTHER,
    Both,
    both,
    causes,
    covering,
    write_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

ONE = {"_id": 1}


@pytest.fixture
def held(antipode_mongodb: MongoDBTopology) -> Iterator[Both]:
    """Two collections that carry lineages."""
    with both(antipode_mongodb) as made:
        yield made


WHOLE: dict[str, Callable[[Any], Any]] = {
    "insert_one": lambda c: c.insert_one({"_id": 1, "a": 2}),
    "insert_many": lambda c: c.insert_many([{"_id": 1, "a": 2}, {"_id": 2}]),
    "replace_one": lambda c: c.replace_one({"_id": 1}, {"a": 2}, upsert=True),
    "find_one_and_replace": lambda c: c.find_one_and_replace({"_id": 1}, {"a": 2}, upsert=True),
    "bulk insert": lambda c: c.bulk_write([InsertOne({"_id": 1, "a": 2})]),
    "bulk replace": lambda c: c.bulk_write([ReplaceOne({"_id": 1}, {"a": 2}, upsert=True)]),
    "command": lambda c: c.database.command("insert", c.name, documents=[{"_id": 1, "a": 2}]),
}
PARTS: dict[str, Callable[[Any], Any]] = {
    "update_one": lambda c: c.update_one({"_id": 1}, {"$set": {"b": 1}}),
    "update_many": lambda c: c.update_many({}, {"$inc": {"b": 1}, "$max": {"m": 3}}),
    "pipeline": lambda c: c.update_one({"_id": 1}, [{"$set": {"b": "$a"}}]),
    "projecting pipeline": lambda c: c.update_one({"_id": 1}, [{"$project": {"b": "$a"}}]),
    "replacing pipeline": lambda c: c.update_one({"_id": 1}, [{"$replaceWith": {"b": "$a"}}]),
    "push": lambda c: c.update_one({"_id": 1}, {"$push": {"list": 1}}),
    "find_one_and_update": lambda c: c.find_one_and_update({"_id": 1}, {"$set": {"b": 1}}),
    "bulk update": lambda c: c.bulk_write([UpdateMany({"_id": 1}, {"$unset": {"a": 1}})]),
}
OPAQUE = write_id("opaque", "version")


@pytest.mark.parametrize("name", WHOLE)
def test_whole_write_replaces(held: Both, name: str) -> None:
    """Whatever writes a whole document leaves its own lineage, and nobody else's."""
    if "insert" not in name and name != "command":
        held.write(lambda: held.posts.insert_one({"_id": 1, "old": 1}), OTHER)
    held.write(lambda: WHOLE[name](held.posts), CAUSE)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert found == {"_id": 1, "a": 2}
    assert causes(lineage) == {CAUSE}
    assert covering(lineage)


@pytest.mark.parametrize("cause", [CAUSE, OPAQUE])
@pytest.mark.parametrize("name", PARTS)
def test_partial_update_merges(held: Both, name: str, cause: WriteId) -> None:
    """Whatever changes a part adds its lineage to the others' on the server."""
    held.write(lambda: held.posts.insert_one({"_id": 1, "a": 2}), OTHER)
    held.write(lambda: PARTS[name](held.posts), cause)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert "_ap" not in found
    assert causes(lineage) == {OTHER, cause}


@pytest.mark.parametrize("cause", [CAUSE, OPAQUE])
@pytest.mark.parametrize("update", [{"$set": {"a": 1}}, [{"$set": {"a": 1}}]])
def test_upserts(held: Both, cause: WriteId, update: Any) -> None:
    """A document that an update makes has its lineage, an empty one included."""
    held.write(lambda: held.posts.update_one(ONE, update, upsert=True), cause)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {cause}
    absent = counted("companion_absent")
    held.posts.update_one({"_id": 2}, update, upsert=True)
    assert not causes(held.read(lambda: held.posts.find_one({"_id": 2}))[1])
    assert counted("companion_absent") == absent


def test_two_writers_of_two_fields(held: Both) -> None:
    """Neither overwrites the other's causes, however they interleave."""
    held.posts.insert_one({"_id": 1})

    def write(field: str, log: str) -> None:
        for number in range(50):
            causing = write_id(log, number)
            held.write(
                lambda: held.posts.update_one(ONE, {"$set": {field: number}}),  # noqa: B023
                causing,
            )

    threads = [threading.Thread(target=write, args=each) for each in (("a", "x"), ("b", "y"))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert found == {"_id": 1, "a": 49, "b": 49}
    assert causes(lineage) == {write_id("x", 49), write_id("y", 49)}


def test_plain_reader_sees_one_field(held: Both) -> None:
    """Of fewer than 100 bytes for the lineage of one store, after a thousand updates, too."""
    held.write(lambda: held.posts.insert_one({"_id": 1, "a": 2}), CAUSE)
    assert held.stored.find_one(ONE).keys() == {"_id", "a", "_ap"}
    with_it = len(bson.encode(held.stored.find_one(ONE)))
    assert with_it - len(bson.encode({"_id": 1, "a": 2})) <= 100
    for number in range(1000):
        cause = write_id("log", number)
        held.write(lambda: held.posts.update_one(ONE, {"$set": {"a": 3}}), cause)
    assert len(bson.encode(held.stored.find_one(ONE))) == with_it
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {write_id("log", 999)}


@pytest.mark.parametrize("version", [7, "opaque"])
def test_growth_is_bounded(held: Both, version: int | str) -> None:
    """A thousand updates with a log each: what does not fit is said to be missing."""
    held.posts.insert_one({"_id": 1})
    for number in range(1000):
        cause = write_id(f"log{number}", version)
        held.write(lambda: held.posts.update_one(ONE, {"$inc": {"n": 1}}), cause)
    beside = held.beside()
    assert len(beside["p"]) == MOST_PARTS + 1
    assert len(beside.get("l", {})) <= MOST_LOGS
    _, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert write_id("log999", version) in lineage
    assert Incomplete("", "size") in lineage.incomplete
    held.write(lambda: held.posts.replace_one(ONE, {"a": 1}), CAUSE)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_marks_survive(held: Both) -> None:
    """What is missing is stored as well, by whole writes and updates alike."""
    mark = ("service", "in_doubt")
    held.write(lambda: held.posts.insert_one({"_id": 1}), incomplete=[mark])
    held.posts.insert_one({"_id": 2})
    held.write(lambda: held.posts.update_one({"_id": 2}, {"$set": {"a": 1}}), incomplete=[mark])
    for key in (1, 2):
        lineage = held.read(lambda: held.posts.find_one({"_id": key}))[1]  # noqa: B023
        assert Incomplete(*mark) in lineage.incomplete


def test_plain_writers_in_between(held: Both) -> None:
    """A plain replace leaves no lineage, which is counted; a plain ``$set`` an older one."""
    held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    held.stored.update_one(ONE, {"$set": {"a": 1}})
    held.write(lambda: held.posts.update_one(ONE, {"$set": {"b": 1}}), OTHER)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1, "a": 1, "b": 1}, {CAUSE, OTHER})
    held.stored.replace_one(ONE, {"c": 1})
    absent = counted("companion_absent")
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1, "c": 1}, set())
    assert counted("companion_absent") == absent + 1
    assert covering(lineage)
    held.write(lambda: held.posts.update_one(ONE, {"$set": {"b": 1}}), OTHER)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {OTHER}


def test_damaged_field_is_incomplete(held: Both) -> None:
    """What cannot be read is never taken for nothing, and the document reads as ever."""
    for beside in (7, {"x": 1}, {"w": "no bar"}, {"l": {"a": 1}}, {"p": 5}, [3], {}):
        held.stored.replace_one(ONE, {"a": 1, "_ap": beside}, upsert=True)
        found, lineage = held.read(lambda: held.posts.find_one(ONE))
        assert found == {"_id": 1, "a": 1}
        assert Incomplete("posts", "unreadable") in lineage.incomplete


def test_table_2_and_native_clients_meet(held: Both, antipode_mongodb: MongoDBTopology) -> None:
    """Each reads, changes and deletes what the other wrote."""
    from antipode_shims import mongodb

    table = mongodb.shim("posts", antipode_mongodb.set_url, database=DB, collection="posts")
    try:
        table.write("k", {"a": 1}, Lineage([CAUSE]))
        held.write(lambda: held.posts.update_one({"_id": "k"}, {"$set": {"value.b": 2}}), OTHER)
        found, lineage = held.read(lambda: held.posts.find_one({"_id": "k"}))
        assert (found, causes(lineage)) == (
            {"_id": "k", "value": {"a": 1, "b": 2}},
            {CAUSE, OTHER},
        )
        value, lineage = table.read("k")
        assert (value, causes(lineage)) == ({"a": 1, "b": 2}, {CAUSE, OTHER})
        table.update("k", {"b": 3}, Lineage([OPAQUE]))
        lineage = held.read(lambda: held.posts.find_one({"_id": "k"}))[1]
        assert causes(lineage) == {CAUSE, OTHER, OPAQUE}
        held.write(lambda: held.posts.delete_one({"_id": "k"}), OTHER)
        value, lineage = table.read("k")
        assert (value, causes(lineage)) == (None, {OTHER})
        held.write(lambda: held.posts.replace_one({"_id": "k"}, {"value": 4}, upsert=True), CAUSE)
        assert causes(table.read("k")[1]) == {CAUSE}
        table.delete("k", Lineage([OPAQUE]))
        assert OPAQUE in causes(held.read(lambda: held.posts.find_one({"_id": "k"}))[1])
    finally:
        table.close()


def test_table_2_over_an_instrumented_client(held: Both) -> None:
    """It stores the lineage that it is given, and finds it, though the collection is named."""
    from antipode_shims import mongodb

    table = mongodb.shim("posts", held.client, database=DB, collection="posts")
    try:
        with antipode.scope(Lineage([OTHER])):
            table.write("k", {"a": 1}, Lineage([CAUSE]))
        value, lineage = table.read("k")
        assert (value, causes(lineage)) == ({"a": 1}, {CAUSE})
        table.delete("k", Lineage([OTHER]))
        value, lineage = table.read("k")
        assert (value, causes(lineage)) == (None, {OTHER})
    finally:
        table.close()


def test_strict_api(antipode_mongodb: MongoDBTopology) -> None:
    """Everything works under a strict Stable API, too."""
    with both(antipode_mongodb, server_api=ServerApi("1", strict=True)) as held:
        held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
        held.write(lambda: held.posts.update_one(ONE, {"$set": {"a": 1}}), OTHER)
        for read in (
            lambda: held.posts.find_one(ONE),
            lambda: next(held.posts.aggregate([])),
            lambda: held.posts.find_one_and_update(ONE, {"$set": {"b": 1}}),
        ):
            found, lineage = held.read(read)
            assert (found["a"], causes(lineage)) == (1, {CAUSE, OTHER})
        assert held.read(lambda: held.posts.count_documents({}))[0] == 1
        held.write(lambda: held.posts.delete_one(ONE), CAUSE)
        assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_tombstones_under_a_collation(held: Both) -> None:
    """Ids that a collation makes equal are looked for among all tombstones."""
    loose = {"locale": "en", "strength": 2}
    held.posts.insert_one({"_id": "A"})
    held.write(lambda: held.posts.delete_one({"_id": "a"}, collation=loose), CAUSE)
    for query, options in (({"_id": "A"}, {}), ({"_id": "a"}, {"collation": loose})):
        found, lineage = held.read(lambda: held.posts.find_one(query, **options))  # noqa: B023
        assert (found, causes(lineage)) == (None, {CAUSE})
    held.posts.insert_one({"_id": "B"})
    held.write(lambda: held.posts.delete_one({"_id": "B"}), OTHER)
    change = {"$set": {"a": 1}}
    lineage = held.read(
        lambda: held.posts.find_one_and_update({"_id": "b"}, change, collation=loose)
    )[1]
    assert OTHER in causes(lineage)


@pytest.mark.parametrize("name", DELETES)
def test_tombstones(held: Both, name: str) -> None:
    """Who finds nothing, by its id or not, depends on what the delete depended on."""
    held.posts.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    held.write(lambda: DELETES[name](held.posts), CAUSE)
    for query in ({"_id": 1}, {"a": 1}, {"_id": 1, "a": 1}):
        found, lineage = held.read(lambda: held.posts.find_one(query))  # noqa: B023
        assert found is None
        assert causes(lineage) == {CAUSE}
        assert covering(lineage)
    found, lineage = held.read(lambda: [*held.posts.aggregate([{"$match": {"a": 1}}])])
    assert (found, causes(lineage)) == ([], {CAUSE})
    lineage = held.read(lambda: held.posts.find_one_and_update({"_id": 1}, {"$set": {"x": 1}}))[1]
    assert causes(lineage) == {CAUSE}


def test_deletes_by_id_are_exact(held: Both) -> None:
    """Who looks for another document depends on nothing; several deletes of one are merged."""
    held.posts.insert_one({"_id": 1})
    held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    assert not causes(held.read(lambda: held.posts.find_one({"_id": 2}))[1])
    held.write(lambda: held.posts.delete_one(ONE), OTHER)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE, OTHER}
    held.posts.insert_one({"_id": 3})
    found, lineage = held.read(lambda: [*held.posts.find({"_id": {"$in": [1, 3]}})])
    assert (found, causes(lineage)) == ([{"_id": 3}], {CAUSE, OTHER})
    assert all(each["at"] for each in held.tombstones.find())


def test_refused_tombstone_keeps_the_document(held: Both) -> None:
    """Without the right to write it nothing is deleted, and the application is told."""
    held.posts.insert_one({"_id": 1})
    held.plain[DB].command("create", "posts.antipode", validator={"_id": {"$type": "object"}})
    with pytest.raises(Exception, match="validation"):
        held.posts.delete_one(ONE)
    assert held.stored.find_one(ONE)


def test_other_collections_are_left_alone(held: Both) -> None:
    """Without a name no field is written, and a read adds nothing."""
    other = held.client[DB].other
    held.write(lambda: other.insert_one({"_id": 1}), CAUSE)
    assert held.plain[DB].other.find_one(ONE) == {"_id": 1}
    assert held.read(lambda: other.find_one({"_id": 2}))[1] == Lineage()
    assert held.read(lambda: other.count_documents({}))[1] == Lineage()
    held.write(lambda: held.client.elsewhere.likes.insert_one({"_id": 1}), CAUSE)
    assert held.plain.elsewhere.likes.find_one(ONE) == {"_id": 1}
    held.plain.drop_database("elsewhere")
    held.write(lambda: held.client[DB].likes.insert_one({"_id": 1}), CAUSE)
    assert "_ap" in held.plain[DB].likes.find_one(ONE)


def test_ignored_reads(antipode_mongodb: MongoDBTopology) -> None:
    """With ``on_read="ignore"`` a read adds nothing, and shows no field either."""
    with (
        both(antipode_mongodb) as held,
        client(antipode_mongodb.primary, {**BESIDE, "on_read": "ignore"}) as one,
    ):
        held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
        found, lineage = held.read(lambda: one[DB].posts.find_one(ONE))
        assert (found, lineage) == ({"_id": 1}, Lineage())
        assert held.read(lambda: one[DB].posts.count_documents({}))[1] == Lineage()


def test_reader_behind_a_lag(antipode_mongodb: MongoDBTopology) -> None:
    """What a read at the primary showed, and what that depended on, is at the replica then."""
    antipode_mongodb.set_lag(150)
    near = {**BESIDE, "reads_from": "replica"}
    with (
        both(antipode_mongodb) as held,
        client(antipode_mongodb.replica, near, readPreference="secondary") as reader,
        plain_client(antipode_mongodb.replica) as plain,
    ):
        likes = held.client[DB].likes
        for number in range(10):
            with antipode.scope():
                likes.insert_one({"_id": number})
                held.posts.update_one(ONE, {"$set": {"n": number}}, upsert=True)
            with antipode.scope() as scope:
                assert held.posts.find_one(ONE) == {"_id": 1, "n": number}
                antipode.barrier(timeout=10)
                assert plain[DB].likes.find_one({"_id": number})
                assert scope.lineage
            with antipode.scope():
                held.posts.find_one(ONE)
                antipode.barrier(timeout=10, at="read")
                assert reader[DB].posts.find_one(ONE) == {"_id": 1, "n": number}


def test_unblock_then_post(antipode_mongodb: MongoDBTopology) -> None:
    """Who reads at the replica that a block is gone depends on what its deletion did."""
    with (
        both(antipode_mongodb) as held,
        client(antipode_mongodb.replica, {**BESIDE, "reads_from": "replica"}) as reader,
    ):
        held.posts.insert_one({"_id": "block"})
        held.write(lambda: held.posts.delete_one({"_id": "block"}), CAUSE)
        antipode_mongodb.wait_replicated()
        found, lineage = held.read(lambda: reader[DB].posts.find_one({"_id": "block"}))
        assert (found, causes(lineage)) == (None, {CAUSE})


def test_tombstones_of_both_faces_are_merged(held: Both, antipode_mongodb: MongoDBTopology) -> None:
    """A native delete of what Table 2 deleted keeps what that depended on."""
    from antipode_shims import mongodb

    table = mongodb.shim("posts", antipode_mongodb.set_url, database=DB, collection="posts")
    try:
        table.delete("k", Lineage([CAUSE]))
        for cause in (OTHER, OPAQUE):
            held.write(lambda: held.posts.delete_one({"_id": "k"}), cause)
        assert causes(table.read("k")[1]) == {CAUSE, OTHER, OPAQUE}
        lineage = held.read(lambda: held.posts.find_one({"_id": "k"}))[1]
        assert causes(lineage) == {CAUSE, OTHER, OPAQUE}
    finally:
        table.close()


def test_a_document_outside_of_the_open_transaction_is_told_of(held: Both) -> None:
    """It says nothing of what the transaction wrote; documents of that are there when it is."""
    held.stored.insert_one({"_id": 0})
    before = counted("sent_before_commit")
    with antipode.scope(), held.client.start_session() as session:
        with session.start_transaction():
            for number in (1, 2):
                held.posts.insert_one({"_id": number}, session=session)
            within = counted("sent_before_commit")
            held.posts.insert_one({"_id": 3})
        held.posts.insert_one({"_id": 4})
    assert (within, counted("sent_before_commit")) == (before, before + 1)
