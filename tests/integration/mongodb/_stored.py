"""What the tests of lineages in an application's own documents share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pymongo import DeleteOne, UpdateOne

import antipode
from antipode import Lineage, WriteId

from ._clients import DB, client, plain_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import MongoDBTopology

BESIDE: dict[str, Any] = {"lineage": "beside", "collections": ["posts", f"{DB}.likes"]}


def write_id(name: str, version: int | str = 7) -> WriteId:
    """A dependency elsewhere."""
    return WriteId("elsewhere", name, version, 490_000)


CAUSE, OTHER = write_id("log"), write_id("other")

DELETES: dict[str, Callable[[Any], Any]] = {
    "delete_one": lambda c: c.delete_one({"_id": 1}),
    "delete_one of several": lambda c: c.delete_one({"_id": {"$in": [1, 99]}}),
    "delete_many": lambda c: c.delete_many({"a": 1}),
    "delete_one by another field": lambda c: c.delete_one({"a": 1}),
    "find_one_and_delete": lambda c: c.find_one_and_delete({"_id": 1}),
    "find_one_and_delete by another field": lambda c: c.find_one_and_delete({"a": 1}),
    "bulk delete": lambda c: c.bulk_write(
        [DeleteOne({"_id": 1}), UpdateOne({}, {"$set": {"x": 1}})]
    ),
    "drop": lambda c: c.drop(),
}


class Both:
    """Collections as an instrumented application sees them, and as everybody else does."""

    def __init__(self, one: Any, plain: Any) -> None:
        self.client, self.plain = one, plain
        self.posts = one[DB].posts
        self.stored = plain[DB].posts
        self.tombstones = plain[DB]["posts.antipode"]

    def write(self, call: Callable[[], Any], *causes: WriteId, **marks: Any) -> Any:
        """What *call* returns in a request that depends on *causes*."""
        with antipode.scope(Lineage(causes, **marks)):
            return call()

    def read(self, call: Callable[[], Any]) -> tuple[Any, Lineage]:
        """What *call* returns in a request of its own, and what that depends on then."""
        with antipode.scope() as scope:
            found = call()
            return found, scope.lineage

    def beside(self, key: Any = 1) -> Any:
        """What is stored beside a document."""
        return self.stored.find_one({"_id": key}).get("_ap")


@contextmanager
def both(topology: MongoDBTopology, **options: Any) -> Iterator[Both]:
    """An empty database, of which two collections carry lineages."""
    with plain_client(topology.primary) as plain:
        plain.drop_database(DB)
        with client(topology.set_url, {**BESIDE}, **options) as one:
            yield Both(one, plain)


def causes(lineage: Lineage) -> set[WriteId]:
    """What it depends on elsewhere."""
    return set(lineage.only("elsewhere"))


def covering(lineage: Lineage) -> list[WriteId]:
    """Its covering positions of the datastore."""
    return [each for each in lineage if each.datastore == "posts" and each.covering]
