"""Errors of the server reach the application as PyMongo raises them, also at reads that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymongo
import pytest
from pymongo.write_concern import WriteConcern

import antipode
from antipode_testing import wait_until
from tests.integration._errors import error_of
from tests.integration.mongodb._clients import client, failing, plain_client

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import Lineage
    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.store("mongodb"), pytest.mark.slow]
TIMEOUT_S = 15.0
ONE = {"_id": 1}
#: Of replies: when they were sent.
TIMES = (
    "operationTime",
    "$clusterTime",
    "electionId",
    "opTime",
    "topologyVersion",
    "lastCommitted",
)
COLLECTION = "refusing"
UNMET = WriteConcern(w=5, wtimeout=1)
TWICE = [pymongo.InsertOne({"_id": 7}), pymongo.InsertOne(dict(ONE)), pymongo.InsertOne({"_id": 8})]
#: What servers refuse, each with a code of its own.
CALLS: dict[str, Callable[[Any], Any]] = {
    "find": lambda found: found.find_one({"$no_such": 1}),
    "project": lambda found: found.find_one({}, {"a": 1, "b": 0}),
    "hint": lambda found: found.find_one({}, hint="no_such"),
    "aggregate": lambda found: list(found.aggregate([{"$no_such": {}}])),
    "division": lambda found: list(found.aggregate([{"$project": {"a": {"$divide": [1, 0]}}}])),
    "distinct": lambda found: found.distinct("a", {"$no_such": 1}),
    "insert": lambda found: found.insert_one(dict(ONE)),
    "many": lambda found: found.insert_many([{"_id": 6}, dict(ONE)], ordered=False),
    "bulk": lambda found: found.bulk_write(TWICE, ordered=False),
    "update": lambda found: found.update_one(ONE, {"$no_such": {"a": 1}}),
    "types": lambda found: found.update_one(ONE, {"$inc": {"text": 1}}),
    "modify": lambda found: found.find_one_and_update(ONE, {"$set": {"_id": 2}}),
    "copies": lambda found: found.with_options(write_concern=UNMET).update_one(
        ONE, {"$set": {"a": 1}}
    ),
    "command": lambda found: found.database.command("no_such"),
    "view": lambda found: found.database.command("create", COLLECTION),
    "admin": lambda found: found.database.command("setFeatureCompatibilityVersion"),
    "rename": lambda found: found.rename("$bad"),
    "drop": lambda found: found.drop_index("no_such"),
    "read": lambda found: found.find_one(ONE)["text"],
}
#: Codes with which a server may answer anything, and labels that it adds.
CODES = (50, 91, 112, 189, 10107, 11600, 11602, 13435, 13436)


def without_times(value: Any) -> Any:
    """*value* without what two equal calls do not share."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    if isinstance(value, (list, tuple)):
        return [without_times(each) for each in value]
    return value.partition(", full error:")[0] if isinstance(value, str) else value


def told(found: Any) -> Any:
    """How a call ended, but for times, which its text has, too."""
    if not isinstance(found, tuple):
        return type(found)
    kind, args, _, attributes = found
    return kind, without_times(args), without_times(attributes)


def outcomes(place: Any, one: Any, floor: Lineage | None) -> list[Any]:
    """How each call ends, under a floor where there is one."""
    found = []

    def ends(name: Any, call: Callable[[], Any]) -> None:
        with antipode.scope(floor):
            if floor is not None:
                antipode.barrier(timeout=TIMEOUT_S, at="read")
            found.append((name, told(error_of(call))))

    collection = one["app"][COLLECTION]
    for name, call in CALLS.items():
        collection.database.client.admin.command("ping")
        ends(name, lambda call=call: call(collection))  # type: ignore[misc]
        collection.delete_many({"_id": {"$gt": 1}})
    for code in CODES:
        for command, call in (
            ("find", lambda: collection.find_one(ONE)),
            ("insert", lambda: collection.insert_one({"_id": 9})),
        ):
            with failing(place, command, errorCode=code, appName=COLLECTION):
                ends((code, command), call)
            collection.delete_many({"_id": {"$gt": 1}})
    return found


def test_errors_are_the_plain_ones(antipode_mongodb: MongoDBTopology) -> None:
    """Whatever the server refuses: the same type, code, labels and details, waiting or not."""
    place = antipode_mongodb.primary
    options: dict[str, Any] = {"appname": COLLECTION, "retryReads": False, "retryWrites": False}
    with (
        plain_client(place, **options) as plain,
        client(place, **options) as ours,
        client(place, **options) as waiting,
    ):
        plain["app"][COLLECTION].drop()
        with antipode.scope() as scope:
            ours["app"][COLLECTION].insert_one({**ONE, "text": "x"})
            floor = scope.lineage
        wait_until(lambda: antipode.check(floor).ok, timeout_s=TIMEOUT_S, what="the row")
        wanted = outcomes(place, plain, None)
        assert outcomes(place, ours, None) == wanted
        assert outcomes(place, waiting, floor) == wanted
