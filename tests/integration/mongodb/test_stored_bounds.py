"""How large the lineage of a document grows when many clients keep on changing parts of it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import bson
import pytest

import antipode
from antipode import Lineage
from antipode.shim import Incomplete
from antipode_shims import mongodb
from antipode_shims.mongodb._format.numbers import MOST_LOGS, Numbers
from antipode_shims.mongodb._stored import request as _request
from antipode_shims.mongodb._stored.compact import ONE_IN

from ._clients import DB
from ._stored import CAUSE, Both, both, causes, write_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

ONE = {"_id": 1}
CLIENTS = 12
#: Updates in a row of which none compacts once in ten million times.
UNLIKELY = 16 * ONE_IN
DROPPED = Incomplete("", "size")


@pytest.fixture
def held(antipode_mongodb: MongoDBTopology) -> Iterator[Both]:
    """Two collections that carry lineages."""
    with both(antipode_mongodb) as made:
        yield made


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update by operators compacts."""
    monkeypatch.setattr(_request, "sampled", lambda: True)


def renew(held: Both) -> None:
    """Go on as another client does, which knows no log yet."""
    held.client._antipode.stored.numbers = Numbers()


@pytest.mark.parametrize(
    ("update", "most"),
    [({"$inc": {"n": 1}}, MOST_LOGS + UNLIKELY), ([{"$set": {"n": 1}}], MOST_LOGS)],
)
def test_many_clients(held: Both, update: Any, most: int) -> None:
    """Whatever many clients bring, a document keeps so many positions, the last one too."""
    held.posts.insert_one(ONE)
    sizes: list[int] = []
    for number in range(CLIENTS * MOST_LOGS):
        if number % MOST_LOGS == 0:
            renew(held)
        cause = write_id(f"log{number}")
        held.write(lambda: held.posts.update_one(ONE, update), cause)
        if number % 16 == 0 or number == CLIENTS * MOST_LOGS - 1:
            beside = held.beside()
            assert "p" not in beside
            sizes.append(len(beside["l"]))
            assert len(bson.encode(beside)) < 64 * most
    assert max(sizes) <= most
    lineage = held.read(lambda: held.posts.find_one(ONE))[1]
    assert write_id(f"log{CLIENTS * MOST_LOGS - 1}") in lineage
    assert DROPPED in lineage.incomplete


def test_many_clients_of_table_2(antipode_mongodb: MongoDBTopology) -> None:
    """Table 2 never keeps more, and keeps the logs that are still written."""
    where: dict[str, Any] = {"database": DB, "collection": "posts"}
    with closing(mongodb.shim("posts", antipode_mongodb.set_url, **where)) as table:
        table.write("k", {}, Lineage())
        for number in range(3 * MOST_LOGS):
            if number % 32 == 0:
                table._numbers = Numbers()
            table.update("k", {"a": 1}, Lineage([CAUSE, write_id(f"log{number}")]))
            _, lineage = table.read("k")
            assert {CAUSE, write_id(f"log{number}")} <= causes(lineage)
            assert len(causes(lineage)) <= MOST_LOGS
            assert (DROPPED in lineage.incomplete) == (number >= MOST_LOGS - 1)
        table.write("k", {}, Lineage())
        assert not table.read("k")[1].incomplete


def crowded(held: Both, *keys: int) -> None:
    """Documents with too many positions."""
    logs = {f"elsewhere/log{number}": {"v": 1, "h": 490_000} for number in range(MOST_LOGS + 9)}
    held.stored.insert_many(
        [{"_id": key, "a": [1, 2], "s": "x", "_ap": {"l": logs}} for key in keys]
    )


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update_one(ONE, {"$set": {"b": 1}}),
        lambda c: c.update_one(
            {"s": "X"}, {"$set": {"b": 1}}, collation={"locale": "en", "strength": 2}
        ),
        lambda c: c.update_one({"a": 2}, {"$set": {"a.$": 1}}, hint="_id_"),
        lambda c: c.update_one({"$or": [{"a": 1}, {"c": 1}]}, {"$inc": {"b": 1}}, upsert=True),
        lambda c: c.update_many({}, {"$set": {"a.$[one]": 1}}, array_filters=[{"one": 2}]),
        lambda c: c.find_one_and_update(ONE, {"$set": {"b": 1}}, sort=[("a", 1)]),
    ],
)
def test_statements_compact(held: Both, change: Any) -> None:
    """Any kind of statement finds the documents that it changes; others stay as they are."""
    crowded(held, 1)
    held.write(lambda: change(held.posts), CAUSE)
    assert len(held.beside()["l"]) == MOST_LOGS + 1
    lineage = held.read(lambda: held.posts.find_one(ONE))[1]
    assert CAUSE in lineage
    assert DROPPED in lineage.incomplete


@pytest.mark.usefixtures("always")
def test_only_crowded_ones_are_compacted(held: Both) -> None:
    """A document with few positions, or with a damaged field, stays as it is."""
    held.write(lambda: held.posts.insert_one(ONE), CAUSE)
    held.stored.insert_one({"_id": 2, "_ap": {"l": 5}})
    held.write(lambda: held.posts.update_one(ONE, {"$set": {"b": 1}}), write_id("x"))
    assert held.beside().keys() == {"l"}
    crowded(held, 3)
    held.write(lambda: held.posts.update_many({"_id": {"$gt": 2}}, {"$set": {"b": 1}}), CAUSE)
    assert held.beside(2) == {"l": 5}
    assert len(held.beside(3)["l"]) == MOST_LOGS + 1


@pytest.mark.usefixtures("always")
def test_transactions_do_not_wait_for_themselves(held: Both) -> None:
    """What a transaction changed twice is not compacted beside it."""
    crowded(held, 1)
    with held.client.start_session() as session, session.start_transaction():
        for _ in range(2):
            with antipode.scope(Lineage([CAUSE])):
                held.posts.update_one(ONE, {"$inc": {"b": 1}}, session=session)
    assert len(held.beside()["l"]) == MOST_LOGS + 10


@pytest.mark.usefixtures("always")
def test_refused_compaction_changes_nothing(held: Both) -> None:
    """The update goes on, with its own result, or its own error."""
    crowded(held, 1)
    held.plain[DB].command("collMod", "posts", validator={"_ap.d": {"$exists": False}})
    done = held.write(lambda: held.posts.update_one(ONE, {"$set": {"b": 1}}), CAUSE)
    assert done.modified_count == 1
    assert CAUSE in held.read(lambda: held.posts.find_one(ONE))[1]
    with pytest.raises(Exception, match="unknown operator"):
        held.write(lambda: held.posts.update_one({"a": {"$no": 1}}, {"$set": {"b": 1}}), CAUSE)
