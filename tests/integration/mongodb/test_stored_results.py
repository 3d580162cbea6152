"""Documents that carry lineages look to the application as they always did."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import bson
import pytest
from bson import SON, Int64, ObjectId
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from bson.raw_bson import RawBSONDocument
from pymongo import CursorType, InsertOne, ReplaceOne, UpdateOne, monitoring
from pymongo.errors import BulkWriteError, DocumentTooLarge, DuplicateKeyError, WriteError
from pymongo.write_concern import WriteConcern

import antipode
from antipode import Lineage
from antipode_shims.mongodb._stored import request as _request
from antipode_testing import LagProxy, wait_until

from ._clients import DB, UNWATCHED, Names, client, counted, exchanges, plain_client
from ._stored import BESIDE, CAUSE, OTHER, Both, both, causes, covering

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


PROJECTIONS: list[Any] = [
    None,
    {},
    {"a": 1},
    {"a": True, "_id": False},
    ["a"],
    {"_id": 1},
    {"_id": 0},
    {"a": 0},
    {"a": 0, "_id": 0},
    {"_ap": 0},
    {"_ap": 0, "a": 0},
    {"list": {"$slice": 1}},
    {"list": {"$slice": 1}, "a": 1},
    {"list": {"$elemMatch": {"$gt": 1}}},
    {"inner.x": 1},
    {"inner": {"x": 1}},
    {"inner": {"x": 0}},
    {"copy": "$a"},
    {"sum": {"$add": ["$a", 1]}, "_id": 0},
    {"a": 1.0, "inner.y": Int64(1)},
]


@pytest.mark.parametrize("projection", PROJECTIONS, ids=str)
def test_projections(held: Both, projection: Any) -> None:
    """Each shows what it shows without the library, and still tells the lineage."""
    document = {"_id": 1, "a": 2, "list": [1, 2, 3], "inner": {"x": 1, "y": 2}}
    held.plain[DB].plain.insert_one(dict(document))
    held.write(lambda: held.posts.insert_one(document), CAUSE)
    wanted = held.plain[DB].plain.find_one(ONE, projection)
    found, lineage = held.read(lambda: held.posts.find_one(ONE, projection))
    assert (found, [*found]) == (wanted, [*wanted])
    assert causes(lineage) == {CAUSE}
    if projection != {}:
        found, lineage = held.read(
            lambda: held.posts.find_one_and_update(ONE, {"$set": {"b": 1}}, projection)
        )
        assert (found, causes(lineage)) == (wanted, {CAUSE})


def test_field_that_is_asked_for(held: Both) -> None:
    """Who projects the field gets it."""
    held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    found, lineage = held.read(lambda: held.posts.find_one(ONE, {"_ap": 1}))
    assert found.keys() == {"_id", "_ap"}
    assert causes(lineage) == {CAUSE}


KEEPING: list[Any] = [
    [],
    [{"$match": {"a": 2}}, {"$sort": {"a": 1}}, {"$limit": 1}],
    [{"$project": {"a": 1}}],
    [{"$project": {"a": 0}}],
    [{"$addFields": {"b": "$a"}}, {"$unset": "a"}],
    [{"$unwind": "$list"}],
    [{"$replaceRoot": {"newRoot": "$inner"}}],
    [{"$replaceWith": {"x": "$a"}}],
    [{"$unionWith": "likes"}],
    [{"$project": {"_ap": 0}}],
    [{"$unset": "_ap"}],
    [{"$unset": ["a", "_ap"]}],
]
BLIND: list[Any] = [
    [{"$group": {"_id": "$a", "n": {"$sum": 1}}}],
    [{"$group": {"_id": "$a", "all": {"$push": "$$ROOT"}}}],
    [{"$count": "n"}],
    [{"$facet": {"x": [{"$match": {}}]}}],
    [{"$sortByCount": "$a"}],
    [{"$lookup": {"from": "likes", "localField": "a", "foreignField": "a", "as": "likes"}}],
]


@pytest.mark.parametrize("pipeline", [*KEEPING, *BLIND], ids=str)
def test_aggregations(held: Both, pipeline: Any) -> None:
    """Results are as without; what does not show its lineage says so, and is counted."""
    document = {"_id": 1, "a": 2, "list": [1, 2], "inner": {"x": 1}}
    for name in ("plain", "likes"):
        held.plain[DB][name].insert_one(dict(document))
    held.write(lambda: held.posts.insert_one(document), CAUSE)
    unread = counted("unread_lineage")
    found, lineage = held.read(lambda: [*held.posts.aggregate(pipeline)])
    assert found == [*held.plain[DB].plain.aggregate(pipeline)]
    assert covering(lineage)
    assert not lineage.incomplete
    if pipeline in KEEPING:
        assert causes(lineage) == {CAUSE}
    else:
        assert counted("unread_lineage") == unread + 1


def test_joined_documents(held: Both) -> None:
    """A collection that joins a named one does not show the field either, which is counted."""
    held.posts.insert_one({"_id": 1, "a": 2})
    held.plain[DB].plain.insert_one({"_id": 5, "a": 2})
    join = {"from": "posts", "localField": "a", "foreignField": "a", "as": "found"}
    before = counted("unread_lineage")
    found, lineage = held.read(lambda: [*held.client[DB].plain.aggregate([{"$lookup": join}])])
    assert found == [{"_id": 5, "a": 2, "found": [{"_id": 1, "a": 2}]}]
    assert covering(lineage)
    assert counted("unread_lineage") == before + 1


READS: dict[str, Callable[[Any], Any]] = {
    "count_documents": lambda c: c.count_documents({}),
    "estimated": lambda c: c.estimated_document_count(),
    "distinct": lambda c: c.distinct("a"),
}


@pytest.mark.parametrize("name", READS)
def test_reads_without_documents(held: Both, name: str) -> None:
    """They are as ever, covered, and counted: no more than that is known of them."""
    held.posts.insert_one({"_id": 1, "a": 2})
    before = counted("unread_lineage")
    found, lineage = held.read(lambda: READS[name](held.posts))
    assert found in (1, [2])
    assert covering(lineage)
    assert not lineage.incomplete
    assert counted("unread_lineage") == before + 1


def test_uncovered_targets(held: Both) -> None:
    """``$merge`` into a named collection is counted; into another it takes no field along."""
    held.posts.insert_one({"_id": 1, "a": 2})
    uncovered = counted("unstored_lineage")
    held.posts.aggregate([{"$match": {}}, {"$out": "copies"}])
    assert held.plain[DB].copies.find_one() == {"_id": 1, "a": 2}
    assert counted("unstored_lineage") == uncovered
    held.client[DB].copies.aggregate([{"$merge": {"into": "posts"}}])
    assert counted("unstored_lineage") == uncovered + 1


@pytest.mark.parametrize("kind", [CursorType.NON_TAILABLE, CursorType.EXHAUST])
def test_batches(held: Both, kind: int) -> None:
    """Each batch of a cursor tells what its documents depend on, and none shows the field."""
    for number in range(7):
        cause = CAUSE if number < 3 else OTHER
        held.write(lambda: held.posts.insert_one({"_id": number}), cause)  # noqa: B023
    with antipode.scope() as scope:
        cursor = held.posts.find(batch_size=3, cursor_type=kind)
        first = [next(cursor) for _ in range(3)]
        assert causes(scope.lineage) == {CAUSE}
        found = [*first, *cursor]
        assert causes(scope.lineage) == {CAUSE, OTHER}
    assert found == [{"_id": number} for number in range(7)]
    assert [*held.posts.find(batch_size=3)] == found
    assert [*held.posts.aggregate([], batchSize=2)] == found


def test_empty_first_batch_of_an_open_cursor(held: Both) -> None:
    """Raw batches begin with none: what is found afterwards was not looked for in vain."""
    held.write(lambda: held.posts.insert_one({"_id": 1, "a": 1}), OTHER)
    held.write(lambda: held.posts.insert_one({"_id": 2, "a": 2}), CAUSE)
    held.write(lambda: held.posts.delete_one({"_id": 1}), OTHER)

    def match(number: int) -> Any:
        return held.posts.aggregate_raw_batches([{"$match": {"a": number}}])

    found, lineage = held.read(lambda: bson.decode_all(b"".join(match(2))))
    assert (found, causes(lineage)) == ([{"_id": 2, "a": 2}], {CAUSE})
    found, lineage = held.read(lambda: bson.decode_all(b"".join(match(1))))
    assert (found, causes(lineage)) == ([], {OTHER})


def test_document_that_a_later_batch_lacks(held: Both) -> None:
    """It was deleted; that the first batch is full does not say that nothing is missing."""
    held.write(lambda: held.posts.insert_many([{"_id": number} for number in (1, 2, 3, 4)]))
    held.write(lambda: held.posts.delete_one({"_id": 4}), CAUSE)
    wanted = {"_id": {"$in": [1, 2, 3, 4]}}
    found, lineage = held.read(lambda: [*held.posts.find(wanted, batch_size=2)])
    assert (len(found), causes(lineage)) == (3, {CAUSE})
    found, lineage = held.read(
        lambda: [*held.posts.find({"_id": {"$in": [1, 2, 3]}}, batch_size=2)]
    )
    assert (len(found), causes(lineage)) == (3, set())


def test_document_classes(held: Both) -> None:
    """Whatever class documents have, they lack the field; raw batches, too."""
    held.write(lambda: held.posts.insert_one({"_id": 1, "a": "x"}), CAUSE)
    for kind in (SON, OrderedDict, RawBSONDocument):
        options: Any = CodecOptions(document_class=kind)
        found, lineage = held.read(lambda: held.posts.with_options(options).find_one(ONE))  # noqa: B023
        assert isinstance(found, kind)
        assert dict(found) == {"_id": 1, "a": "x"}
        assert causes(lineage) == {CAUSE}
    batches, lineage = held.read(lambda: [*held.posts.find_raw_batches()])
    assert bson.decode_all(b"".join(batches)) == [{"_id": 1, "a": "x"}]
    assert causes(lineage) == {CAUSE}


def test_types_of_the_application(held: Both) -> None:
    """A codec that turns every text into something else does not meet the field's."""

    class Shout(TypeDecoder):
        bson_type: Any = str

        def transform_bson(self, value: Any) -> Any:
            return value.upper()

    registry = TypeRegistry([Shout()])
    options: Any = CodecOptions(type_registry=registry)
    held.write(lambda: held.posts.insert_one({"_id": 1, "a": "x"}), CAUSE)
    found, lineage = held.read(lambda: held.posts.with_options(options).find_one(ONE))
    assert found == {"_id": 1, "a": "X"}
    assert causes(lineage) == {CAUSE}


def test_documents_of_the_application_stay_theirs(held: Both) -> None:
    """They gain no field; an id that PyMongo makes is in them as ever."""
    one: dict[str, Any] = {"a": 1}
    many: list[dict[str, Any]] = [{"a": 1}, {"a": 2}]
    update = {"$set": {"b": 1}}
    result = held.posts.insert_one(one)
    held.posts.insert_many(many)
    held.posts.update_one({"_id": one["_id"]}, update)
    assert one == {"_id": result.inserted_id, "a": 1}
    assert all(each.keys() == {"_id", "a"} for each in many)
    assert isinstance(many[0]["_id"], ObjectId)
    assert update == {"$set": {"b": 1}}
    raw = RawBSONDocument(bson.encode({"_id": 9, "at": dt.datetime(2020, 1, 1)}))  # noqa: DTZ001
    held.posts.insert_one(raw)
    assert held.posts.find_one({"_id": 9}) == dict(raw)


def test_copied_field_is_replaced(held: Both) -> None:
    """A document that was read with its field and is written back has the writer's lineage."""
    held.write(lambda: held.posts.insert_one({"_id": 1}), CAUSE)
    copied = held.stored.find_one(ONE)
    held.write(lambda: held.posts.replace_one(ONE, copied), OTHER)
    assert causes(held.read(lambda: held.posts.find_one(ONE))[1]) == {OTHER}
    held.write(lambda: held.posts.update_one(ONE, {"$set": {"_ap": 1, "b": 2}}), CAUSE)
    found, lineage = held.read(lambda: held.posts.find_one(ONE))
    assert (found, causes(lineage)) == ({"_id": 1, "b": 2}, {CAUSE, OTHER})


def test_errors_are_as_ever(held: Both) -> None:
    """Failed writes say what they said: the same exceptions about the same operations."""
    held.posts.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError):
        held.posts.insert_one({"_id": 1})
    with pytest.raises(WriteError, match="conflict"):
        held.posts.update_one(ONE, {"$set": {"a": 1}, "$inc": {"a": 1}})
    requests: list[Any] = [
        InsertOne({"_id": 2}),
        InsertOne({"_id": 1, "x": 1}),
        UpdateOne({"_id": 7}, {"$set": {"a": 1}}, upsert=True),
        ReplaceOne(ONE, {"b": 1}),
    ]
    with pytest.raises(BulkWriteError) as caught:
        held.write(lambda: held.posts.bulk_write(requests, ordered=False), CAUSE)
    details = caught.value.details
    assert details["writeErrors"][0]["op"] == {"_id": 1, "x": 1}
    assert details["writeErrors"][0]["index"] == 1
    assert (details["nInserted"], details["nUpserted"], details["nMatched"]) == (1, 1, 1)
    for key in (1, 2, 7):
        lineage = held.read(lambda: held.posts.find_one({"_id": key}))[1]  # noqa: B023
        assert causes(lineage) == {CAUSE}
    with pytest.raises((DocumentTooLarge, WriteError)):
        held.posts.insert_one({"a": "x" * 17_000_000})


def test_large_bulk(held: Both) -> None:
    """Batches are split as PyMongo does, with room for the lineages."""
    documents = [{"_id": number, "text": "x" * 100} for number in range(20_000)]
    result = held.write(lambda: held.posts.insert_many(documents), CAUSE)
    assert len(result.inserted_ids) == 20_000
    assert held.stored.count_documents({"_ap": {"$exists": True}}) == 20_000


def test_unacknowledged_writes(held: Both) -> None:
    """They store the lineage all the same."""
    blind = held.posts.with_options(write_concern=WriteConcern(w=0))
    held.write(lambda: blind.insert_one({"_id": 1}), CAUSE)
    held.write(lambda: blind.bulk_write([InsertOne({"_id": 2})]), CAUSE)
    held.write(lambda: blind.bulk_write([InsertOne({"_id": 3})], ordered=False), CAUSE)
    wait_until(lambda: held.stored.count_documents({}) == 3, timeout_s=5, what="writes")
    for key in (1, 2, 3):
        lineage = held.read(lambda: held.posts.find_one({"_id": key}))[1]  # noqa: B023
        assert causes(lineage) == {CAUSE}
    held.write(lambda: blind.delete_one(ONE), OTHER)
    wait_until(lambda: held.stored.count_documents({}) == 2, timeout_s=5, what="delete")
    assert OTHER in causes(held.read(lambda: held.posts.find_one(ONE))[1])


def test_compressed_connections(antipode_mongodb: MongoDBTopology) -> None:
    """What PyMongo compresses stays compressed, in both directions."""
    with both(antipode_mongodb, compressors="zlib") as held:
        held.write(lambda: held.posts.insert_many([{"_id": 1}, {"_id": 2}]), CAUSE)
        found, lineage = held.read(lambda: [*held.posts.find()])
        assert (found, causes(lineage)) == ([{"_id": 1}, {"_id": 2}], {CAUSE})


def test_monitors_see_the_commands_of_the_application(antipode_mongodb: MongoDBTopology) -> None:
    """Neither its commands nor the replies to them show the field."""

    class Monitor(monitoring.CommandListener):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def started(self, event: Any) -> None:
            self.seen.append(str(event.command))

        def succeeded(self, event: Any) -> None:
            self.seen.append(str(event.reply))

        def failed(self, event: Any) -> None:
            self.seen.append(str(event.failure))

    monitor = Monitor()
    with both(antipode_mongodb, event_listeners=[monitor]) as held:
        held.write(lambda: held.posts.insert_one({"_id": 1, "a": 1}), CAUSE)
        held.posts.update_one(ONE, {"$set": {"b": 1}})
        assert held.posts.find_one(ONE, {"a": 1})
        assert [*held.posts.find()]
    assert len(monitor.seen) >= 8
    assert not any("_ap" in each for each in monitor.seen)


def test_monitors_see_no_command_of_the_library(
    antipode_mongodb: MongoDBTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither tombstones nor questions before a held read: the names are those of without."""
    monkeypatch.setattr(_request, "sampled", lambda: True)
    calls: list[Callable[[Any], Any]] = [
        lambda posts: posts.insert_one({"_id": 1}),
        lambda posts: posts.update_one(ONE, {"$set": {"a": 1}}),
        lambda posts: posts.find_one(ONE),
        lambda posts: posts.count_documents({}),
        lambda posts: posts.delete_one(ONE),
        lambda posts: posts.find_one(ONE),
    ]
    said: list[str] = []
    with client(antipode_mongodb.primary) as writer, antipode.scope(Lineage([CAUSE])) as scope:
        writer[DB].others.insert_one({})
        lineage = scope.lineage.only("posts")
    with both(antipode_mongodb, event_listeners=[Names(said)]) as held:
        with antipode.scope(Lineage([CAUSE]).merge(lineage)):
            antipode.barrier(timeout=5, at="read", only="posts")
            for call in calls:
                call(held.posts)
        ours = [*said]
        held.plain[DB].posts.drop()
    said.clear()
    with plain_client(antipode_mongodb.set_url, event_listeners=[Names(said)]) as plain:
        for call in calls:
            call(plain[DB].posts)
        assert ours == said


def test_round_trips(antipode_mongodb: MongoDBTopology, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write costs none more, a read none where it finds something, a delete one.

    But for one update in so many, and for the first read of what an update made.
    """
    monkeypatch.setattr(_request, "sampled", lambda: False)
    with LagProxy(antipode_mongodb.primary) as proxy, both(antipode_mongodb) as held:
        held.posts.insert_one({"_id": 1})
        with client(proxy.address, BESIDE, **UNWATCHED) as one:
            posts = one[DB].posts
            posts.find_one(ONE)
            calls: list[tuple[Callable[[], Any], int]] = [
                (lambda: posts.update_one(ONE, {"$set": {"a": 1}}), 1),
                (lambda: posts.find_one(ONE), 1),
                (lambda: posts.find_one({"_id": 2}), 2),
                (lambda: posts.delete_one(ONE), 2),
                (lambda: posts.insert_one({"_id": 1}), 1),
                (lambda: posts.update_one({"_id": 3}, {"$set": {"a": 1}}, upsert=True), 1),
                (lambda: posts.find_one({"_id": 3}), 2),
                (lambda: posts.find_one({"_id": 3}), 1),
            ]
            with antipode.scope(Lineage([CAUSE])):
                for call, cost in calls:
                    with exchanges(proxy) as made:
                        call()
                    assert made == [cost]


def test_change_streams_are_reported(held: Both) -> None:
    """Events pass as they are, covered and counted: they do not tell what they depend on."""
    with held.posts.watch() as stream:
        held.posts.insert_one({"_id": 1})
        with antipode.scope() as scope:
            before = counted("unread_lineage")
            event = next(stream)
            assert event["fullDocument"].keys() == {"_id", "_ap"}
            assert counted("unread_lineage") > before
            assert covering(scope.lineage)


def test_undone(held: Both) -> None:
    """Without the instrumentation the client is a plain one again."""
    from antipode_shims.mongodb import uninstrument_client

    held.posts.insert_one({"_id": 1})
    uninstrument_client(held.client)
    assert held.posts.find_one(ONE).keys() == {"_id", "_ap"}
    held.posts.insert_one({"_id": 2})
    assert held.stored.find_one({"_id": 2}) == {"_id": 2}
