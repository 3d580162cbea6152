"""The Table 2 face over real MongoDB servers: what is stored, what is told, what it costs."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pymongo
import pytest
from pymongo import errors
from pymongo.write_concern import WriteConcern

import antipode
from antipode import Lineage, Status, WriteId
from antipode.shim import Incomplete
from antipode.telemetry import Metric
from antipode_shims import mongodb
from antipode_shims.mongodb._format.document import MOST_PARTS
from antipode_testing import LagProxy
from tests.integration._in_flight import sent

from ._clients import UNWATCHED
from ._regions import TIMEOUT_S, WHERE, Regions, only, regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)


@pytest.fixture
def regions(antipode_mongodb: MongoDBTopology) -> Iterator[Regions]:
    """Two regions, of which the session has the servers."""
    with regions_of(antipode_mongodb) as made:
        made.client(antipode_mongodb.primary).drop_database("app")
        yield made


def counted(name: str) -> int:
    """How often something was counted for the datastore."""
    return antipode.telemetry.metrics().get(Metric(name, "posts"), 0)


def plain(regions: Regions) -> Any:
    """The collection as a client without the library sees it."""
    return regions.client(regions.topology.primary).app.posts


def test_one_extra_field(regions: Regions) -> None:
    """A plain client sees the value and one field more, of less than 100 bytes when empty."""
    value = {"title": "a", "tags": ["x", "y"], "at": 1.5}
    regions.writer.write("k", value, Lineage([ELSEWHERE]))
    document = plain(regions).find_one({"_id": "k"})
    assert document.pop("_ap")["w"].endswith("kelsewhere.7.log")
    assert document == {"_id": "k", "value": value}


def test_round_trips(regions: Regions) -> None:
    """A write and a read cost one round trip each, a read that finds nothing two."""
    with LagProxy(regions.topology.primary) as proxy:
        regions.close()
        shim = regions.at(proxy.address, reads_from="primary", **UNWATCHED)
        shim.write("k", 0)
        for call, cost in (
            (lambda: shim.write("k", 1), 1),
            (lambda: shim.read("k"), 1),
            (lambda: shim.update("m", {"a": 1}), 1),
            (lambda: shim.delete("k"), 2),
            (lambda: shim.read("k"), 2),
        ):
            before = proxy.traffic()
            call()
            assert (proxy.traffic() - before).exchanges == cost


def test_plain_writes_are_recognised(regions: Regions) -> None:
    """A value that a plain client overwrote has nobody's lineage, and is counted."""
    regions.writer.write("k", 1, Lineage([ELSEWHERE]))
    foreign, absent = counted("foreign"), counted("companion_absent")
    plain(regions).update_one({"_id": "k"}, {"$set": {"value": 2}})
    value, found = regions.writer.read("k")
    assert (value, ELSEWHERE in found, counted("foreign")) == (2, False, foreign + 1)
    plain(regions).replace_one({"_id": "k"}, {"value": 3})
    value, found = regions.writer.read("k")
    assert (value, ELSEWHERE in found) == (3, False)
    assert counted("companion_absent") == absent + 1


@pytest.mark.parametrize("value", [1, 2**40, 1.5, "text", b"\0\1", None, {"a": [1, {"b": True}]}])
def test_own_values_are_recognised(regions: Regions, value: Any) -> None:
    """Whatever BSON holds is known as what the shim wrote when it is read."""
    regions.writer.write("k", value, Lineage([ELSEWHERE]))
    shown, found = regions.writer.read("k")
    assert shown == value
    assert ELSEWHERE in found


def test_lineage_that_is_none(regions: Regions) -> None:
    """A field of another type is unreadable, never empty."""
    for beside in (7, {"a": 1}, ["x|", 3], "no bar"):
        plain(regions).replace_one({"_id": "k"}, {"value": 1, "_ap": beside}, upsert=True)
        assert Incomplete("posts", "unreadable") in regions.writer.read("k")[1].incomplete


def test_partial_updates_merge_on_the_server(regions: Regions) -> None:
    """Partial updates add lineages to a whole one, equal ones once, and change their fields."""
    regions.writer.write("k", {"a": 1, "b": {"c": 2}}, Lineage([ELSEWHERE]))
    other = WriteId("elsewhere-too", "log", 1, 490_000)
    for number in range(3):
        regions.writer.update("k", {"b.c": number, "d": "$a"}, Lineage([other]))
    value, found = regions.writer.read("k")
    assert value == {"a": 1, "b": {"c": 2}, "d": "$a"}
    assert {ELSEWHERE, other} <= set(found)
    assert len(plain(regions).find_one({"_id": "k"})["_ap"]["l"]) == 1
    regions.writer.write("k", {"a": 2}, Lineage())
    assert not regions.writer.read("k")[1].only("elsewhere", "elsewhere-too")


def test_many_partial_updates_are_bounded(regions: Regions) -> None:
    """A document keeps so many texts of parts, and says when it has dropped some."""
    for number in range(MOST_PARTS):
        regions.writer.update("k", {"a": number}, Lineage([WriteId("other", f"log{number}", "x")]))
    assert not regions.writer.read("k")[1].incomplete
    for number in range(MOST_PARTS, 3 * MOST_PARTS):
        regions.writer.update("k", {"a": number}, Lineage([WriteId("other", f"log{number}", "x")]))
        found = regions.writer.read("k")[1]
        assert WriteId("other", f"log{number}", "x") in found
        assert Incomplete("", "size") in found.incomplete
    assert len(plain(regions).find_one({"_id": "k"})["_ap"]["p"]) == MOST_PARTS + 1


@pytest.mark.parametrize("names", [{}, {"$set": 1}, {"a..b": 1}, {"": 1}])
def test_changes_need_plain_names(regions: Regions, names: dict[str, int]) -> None:
    """Operators and empty names are refused before anything is sent."""
    with pytest.raises(ValueError, match="plain field names"):
        regions.writer.update("k", names)


def test_tombstones(regions: Regions) -> None:
    """A delete leaves nothing in the collection, and what it depended on in the companion."""
    regions.writer.write("k", 1)
    regions.writer.delete("k", Lineage([ELSEWHERE]))
    assert plain(regions).count_documents({}) == 0
    value, found = regions.writer.read("k")
    assert value is None
    assert ELSEWHERE in found
    tombstones = regions.client(regions.topology.primary).app["posts.antipode"]
    assert tombstones.find_one({"_id": "k"})["at"]
    regions.writer.write("k", 2)
    assert ELSEWHERE not in regions.writer.read("k")[1]


def test_unacknowledged_write_is_in_doubt(regions: Regions) -> None:
    """With w:0 nobody learns what became of the write: the scope says so."""
    client = regions.client(regions.topology.primary, w=0)
    with closing(mongodb.shim("posts", client, **WHERE)) as shim, antipode.scope() as scope:
        returned = shim.write("k", 1)
        assert scope.lineage.incomplete == {Incomplete("posts", "in_doubt")}
        assert returned.incomplete == scope.lineage.incomplete


def test_unmet_write_concern(regions: Regions) -> None:
    """A write that is not at a majority in time raises, and is a dependency that may be lost."""
    regions.topology.pause()
    client = regions.client(regions.topology.primary)
    strict = WriteConcern("majority", wtimeout=100)
    posts = client.app.get_collection("posts", write_concern=strict)
    shim = mongodb.shim("posts", client, database="app", collection=posts)
    with closing(shim), antipode.scope() as scope:
        with pytest.raises(errors.WTimeoutError):
            shim.write("k", 1)
        assert only(scope.lineage).key == "antipode.1"
        assert not scope.lineage.incomplete


def test_refused_write(regions: Regions) -> None:
    """A write that the server refuses raises as PyMongo does, and is no dependency."""
    client = regions.client(regions.topology.primary)
    client.app.create_collection("strict", validator={"value": {"$type": "string"}})
    where = {"database": "app", "collection": "strict"}
    with closing(mongodb.shim("posts", client, **where)) as shim, antipode.scope() as scope:
        with pytest.raises(errors.WriteError, match="validation"):
            shim.write("k", 1)
        assert scope.lineage.empty


def test_majority_readers(regions: Regions) -> None:
    """Where reads have concern majority, a barrier waits until a majority has the write."""
    regions.close()
    client = regions.client(regions.topology.replica, readConcernLevel="majority")
    writer = regions.at(regions.topology.primary, reads_from="primary")
    reader = mongodb.shim("posts", client, **WHERE, reads_from="replica")
    with closing(reader):
        regions.topology.set_lag(50)
        for number in range(5):
            with antipode.scope():
                writer.write("k", number)
                antipode.barrier(timeout=TIMEOUT_S)
                value, found = reader.read("k")
                assert value == number
                assert {each.key for each in found} == {"antipode"}


def test_client_of_the_set(regions: Regions) -> None:
    """A client that discovers the set writes to its primary, after an election too."""
    regions.close()
    with closing(mongodb.shim("posts", regions.topology.set_url, **WHERE)) as shim:
        with antipode.scope():
            shim.write("k", 1)
            assert antipode.barrier(timeout=TIMEOUT_S).ok
        regions.topology.failover(lose_unreplicated=False)
        deadline_s = time.monotonic() + 60
        while True:
            try:
                with antipode.scope():
                    shim.write("k", 2)
                    assert antipode.barrier(timeout=TIMEOUT_S).ok
                break
            except errors.AutoReconnect:
                assert time.monotonic() < deadline_s


def test_cancelled_write_is_in_doubt(regions: Regions) -> None:
    """A coroutine that is cancelled while its write is on the way leaves a doubt."""

    async def cancelled() -> Lineage:
        with LagProxy(regions.topology.primary) as proxy:
            options = urlencode({"directConnection": "true", **UNWATCHED})
            shim = mongodb.shim_async("posts", f"mongodb://{proxy.address}/?{options}", **WHERE)
            await shim.read("k")
            before = proxy.traffic()
            proxy.set_lag(60_000)
            with antipode.scope() as scope:
                writing = asyncio.ensure_future(shim.write("k", 1))
                await sent(proxy, before)
                writing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writing
            proxy.set_lag(0)
            await shim.aclose()
            return scope.lineage

    assert asyncio.run(cancelled()).incomplete == {Incomplete("posts", "in_doubt")}


def test_several_secondaries() -> None:
    """Without one server to read from, ``at="now"`` has nowhere to look; ``one_server`` decides."""
    url = "mongodb://127.0.0.1:1,127.0.0.1:2/?replicaSet=antipode"
    with closing(mongodb.shim("posts", url, **WHERE, reads_from="replica")) as shim:
        write = WriteId("posts", "antipode.1", 1)
        result = antipode.barrier(Lineage([write]), timeout=0.1, on_unmet="return")
        assert result.outcomes[0].status is Status.UNKNOWN_STORE
        assert not shim.can_poll


@pytest.mark.parametrize("field", ["", "a.b", "$a", "_id", "_ap"])
def test_field_names(field: str) -> None:
    """The value's field needs a plain name of its own."""
    client = pymongo.MongoClient[Any](connect=False)
    with client, pytest.raises(antipode.ConfigurationError, match="field"):
        mongodb.shim("posts", client, **WHERE, field=field)


def test_clients_of_the_other_kind() -> None:
    """Each face names the one that takes the client it was given."""
    client = pymongo.MongoClient[Any](connect=False)
    with client, pytest.raises(antipode.ConfigurationError, match=r"use mongodb\.shim"):
        mongodb.shim_async("posts", client, **WHERE)
    with pytest.raises(antipode.ConfigurationError, match=r"use mongodb\.shim_async"):
        mongodb.shim("posts", pymongo.AsyncMongoClient[Any](connect=False), **WHERE)
    with pytest.raises(antipode.ConfigurationError, match="expected a pymongo"):
        mongodb.shim("posts", object(), **WHERE)


@pytest.mark.parametrize("level", ["available", "linearizable"])
def test_read_concerns_that_cannot_wait(level: str) -> None:
    """A read concern with which no read can be held back is refused."""
    client = pymongo.MongoClient[Any](connect=False, readConcernLevel=level)
    with client, pytest.raises(antipode.ConfigurationError, match=level):
        mongodb.shim("posts", client, **WHERE)
