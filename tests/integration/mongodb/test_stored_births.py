"""Documents that updates make where others were deleted: what they depend on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import CursorType, ReturnDocument

from antipode import Lineage
from antipode.shim import Incomplete
from antipode_shims import mongodb
from antipode_shims.mongodb._format.tombstones import SLOTS

from ._clients import DB, client
from ._stored import (
    BESIDE,
    CAUSE,
    DELETES,
    OTHER,
    Both,
    both,
    causes,
    write_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

ONE = {"_id": 1}
OPAQUE = write_id("opaque", "version")
SET: dict[str, Any] = {"$set": {"b": 1}}


@pytest.fixture
def held(antipode_mongodb: MongoDBTopology) -> Iterator[Both]:
    """Two collections that carry lineages."""
    with both(antipode_mongodb) as made:
        yield made


@pytest.fixture
def table(antipode_mongodb: MongoDBTopology) -> Iterator[Any]:
    """Table 2 over one of them."""
    made = mongodb.shim("posts", antipode_mongodb.set_url, database=DB, collection="posts")
    yield made
    made.close()


def reborn(held: Both, update: Any = SET) -> None:
    """A document that an update made after its deletion."""
    held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    held.write(lambda: held.posts.update_one(ONE, update, upsert=True), OTHER)


@pytest.mark.pairwise
@pytest.mark.parametrize("update", [SET, [SET]])
@pytest.mark.parametrize("cause", [(), (OTHER,), (OPAQUE,)])
@pytest.mark.parametrize("name", DELETES)
def test_upsert_over_a_tombstone(held: Both, name: str, cause: Any, update: Any) -> None:
    """However it was deleted, made and found, it depends on the deletion; a replaced one not."""
    held.posts.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    held.write(lambda: DELETES[name](held.posts), CAUSE)
    held.write(lambda: held.posts.update_one(ONE, update, upsert=True), *cause)
    for read in (
        lambda: held.posts.find_one(ONE),
        lambda: held.posts.find_one({"b": 1}, {"_id": 0, "b": 1}),
        lambda: [*held.posts.aggregate([{"$match": {"b": 1}}])],
        lambda: held.posts.find_one_and_update(ONE, {"$set": {"c": 1}}),
    ):
        assert causes(held.read(read)[1]) == {CAUSE, *cause}
    held.write(lambda: held.posts.replace_one(ONE, {"b": 2}), OTHER)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {OTHER}


@pytest.mark.parametrize("update", [SET, [SET]])
def test_made_by_find_one_and_update(held: Both, update: Any) -> None:
    """So does what ``find_one_and_update`` makes, which shows it as well."""
    held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    found, lineage = held.read(
        lambda: held.posts.find_one_and_update(
            ONE, update, upsert=True, return_document=ReturnDocument.AFTER
        )
    )
    assert (found, causes(lineage)) == ({"_id": 1, "b": 1}, {CAUSE})
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_made_in_a_transaction(held: Both) -> None:
    """So does one that becomes visible at a commit, for the transaction's own reads, too."""
    held.posts.insert_one({"_id": 2})
    held.write(lambda: held.posts.delete_one(ONE), CAUSE)
    with held.client.start_session() as session, session.start_transaction():
        held.posts.update_one(ONE, SET, upsert=True, session=session)
        _, lineage = held.read(lambda: held.posts.find_one(ONE, session=session))
        assert causes(lineage) == {CAUSE}
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {CAUSE}


def test_later_updates_keep_it(held: Both) -> None:
    """By operators and pipelines, with and without upsert; the next deletion starts anew."""
    reborn(held)
    for number, update in enumerate([{"$inc": {"n": 1}}, [{"$set": {"n": 1}}]]):
        for upsert in (False, True):
            held.write(
                lambda: held.posts.update_one(ONE, update, upsert=upsert),  # noqa: B023
                write_id("log", 10 + number),
            )
    lineage = held.read(lambda: held.posts.find_one(ONE))[1]
    assert causes(lineage) >= {OTHER, write_id("log", 11)}
    held.write(lambda: held.posts.delete_one(ONE), OPAQUE)
    held.posts.update_one(ONE, SET, upsert=True)
    assert OPAQUE in causes(held.read(lambda: held.posts.find_one(ONE))[1])


def test_table_2(held: Both, table: Any) -> None:
    """Its ``update`` is such an update, whoever deleted, and whoever reads."""
    table.write("k", {"a": 1}, Lineage([OPAQUE]))
    table.delete("k", Lineage([CAUSE]))
    table.update("k", {"a": 2}, Lineage([OTHER]))
    for _ in range(2):
        value, lineage = table.read("k")
        assert (value, causes(lineage)) == ({"a": 2}, {CAUSE, OTHER})
    for query in ({"_id": "k"}, {"value.a": 2}):
        assert causes(held.read(lambda: held.posts.find_one(query))[1]) == {CAUSE, OTHER}  # noqa: B023
    held.write(lambda: held.posts.delete_many({}), OPAQUE)
    table.update("k", {"a": 3}, Lineage())
    assert OPAQUE in causes(table.read("k")[1])


def test_table_2_finds_deletions_of_unknown_documents(held: Both, table: Any) -> None:
    """Who finds nothing there depends on native deletes that named no ``_id``, too."""
    table.write("k", {"a": 1}, Lineage())
    held.write(lambda: held.posts.delete_many({"value.a": 1}), CAUSE)
    value, lineage = table.read("k")
    assert (value, causes(lineage)) == (None, {CAUSE})


def test_table_2_deletions_are_merged(held: Both, table: Any) -> None:
    """A deletion that ends before it deleted hides nothing of the one before it."""
    reborn(held)
    database, command = table._bury(1, Lineage([OPAQUE]))
    held.plain[database].command(command)
    assert causes(table.read(1)[1]) == {CAUSE, OTHER, OPAQUE}


def test_views_and_unions(held: Both) -> None:
    """Documents bring the name of the collection where their tombstones are."""
    held.plain[DB].command("create", "likes", viewOn="posts", pipeline=[])
    reborn(held)
    likes = held.client[DB].likes
    assert causes(held.read(lambda: likes.find_one(ONE))[1]) == {CAUSE, OTHER}
    union = [{"$unionWith": "posts"}]
    found, lineage = held.read(lambda: [*held.client[DB].other.aggregate(union)])
    assert (found, causes(lineage)) == ([{"_id": 1, "b": 1}], {CAUSE, OTHER})


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("key", [1, 25])
def test_exhaust_cursors_say_so(held: Both, key: int, order: int) -> None:
    """Where nothing can be asked between two batches, the scope becomes incomplete."""
    held.write(lambda: held.posts.delete_one({"_id": key}), CAUSE)
    held.posts.update_one({"_id": key}, SET, upsert=True)
    held.posts.insert_many([{"_id": number} for number in range(1, 50) if number != key])
    posts = held.client[DB].get_collection("posts")

    def read() -> Any:
        return [
            *posts.find({}, cursor_type=CursorType.EXHAUST, batch_size=2, sort=[("_id", order)])
        ]

    found, lineage = held.read(read)
    assert len(found) == 49
    assert CAUSE in lineage or Incomplete("posts", "unsampled") in lineage.incomplete


def test_reader_behind_a_lag(antipode_mongodb: MongoDBTopology) -> None:
    """Who sees at a replica what an update made sees what was deleted before, without a wait."""
    antipode_mongodb.set_lag(20)
    near = {**BESIDE, "reads_from": "replica"}
    with (
        both(antipode_mongodb) as held,
        client(antipode_mongodb.replica, near, readPreference="secondary") as reader,
    ):
        seen = 0
        for number in range(1, 100):
            held.write(lambda: held.posts.delete_one(ONE), write_id("log", number))
            update = {"$set": {"n": number}}
            held.write(lambda: held.posts.update_one(ONE, update, upsert=True))  # noqa: B023
            found, lineage = held.read(lambda: reader[DB].posts.find_one(ONE))
            if found:
                seen += 1
                assert lineage.only("elsewhere")
                assert max(write.version for write in causes(lineage)) >= found["n"]
        assert seen


def test_racing_deletes_and_updates(held: Both) -> None:
    """Whatever a reader finds meanwhile, it has the lineage of the deletion that it shows."""
    done = threading.Event()

    def write() -> None:
        for number in range(1, 150):
            held.write(lambda: held.posts.delete_one(ONE), write_id("log", number))
            held.posts.update_one(ONE, {"$set": {"n": number}}, upsert=True)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not done.is_set():
            found, lineage = held.read(lambda: held.posts.find_one(ONE))
            if found:
                assert max(write.version for write in causes(lineage)) >= found["n"]
    finally:
        writer.join()


def test_first_deletions_of_a_collection_at_once(held: Both, antipode_mongodb: Any) -> None:
    """They make the same tombstones at the same time, and none fails."""
    url = antipode_mongodb.set_url
    tables = [mongodb.shim("posts", url, database=DB, collection="posts") for _ in range(4)]
    start = threading.Barrier(len(tables))

    def delete(one: Any) -> None:
        for number in range(SLOTS):
            start.wait()
            one.delete(number, Lineage([CAUSE]))

    with ThreadPoolExecutor(len(tables)) as pool:
        list(pool.map(delete, tables))
    for one in tables:
        one.close()
    assert held.tombstones.count_documents({"_id.antipode": "known"}) == SLOTS
