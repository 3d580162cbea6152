"""Shims at members of a MongoDB topology, for the tests of the Table 2 face and its barriers."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pymongo

import antipode
from antipode import Lineage, Status, WriteId
from antipode_shims import mongodb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Outcome
    from antipode_testing import Address, MongoDBTopology

TIMEOUT_S = 10.0
WHERE = {"database": "app", "collection": "posts"}


class Regions:
    """A shim at the primary and one at the first replica."""

    def __init__(self, topology: MongoDBTopology, stack: ExitStack) -> None:
        self.topology = topology
        self._stack = stack
        self._shims: list[Any] = []
        self.writer = self.at(topology.primary, reads_from="primary")
        self.reader = self.at(topology.replica)

    def client(self, address: Address, **options: Any) -> Any:
        """A plain client of one server."""
        made: Any = pymongo.MongoClient(
            address.host,
            address.port,
            directConnection=True,
            **{"serverSelectionTimeoutMS": 2000, **options},
        )
        self._stack.callback(made.close)
        return made

    def at(self, address: Address, *, reads_from: Any = "replica", **options: Any) -> Any:
        """A shim at one server, until the test ends."""
        client = self.client(address, **options)
        made = mongodb.shim("posts", client, **WHERE, reads_from=reads_from)
        self._stack.callback(made.close)
        self._shims.append(made)
        return made

    def close(self) -> None:
        """Unregister every shim."""
        while self._shims:
            self._shims.pop().close()

    def write(self, key: str, value: Any = "new") -> WriteId:
        """Write outside of the caller's scope."""
        with antipode.scope() as scope:
            self.writer.write(key, value)
            return only(scope.lineage)

    def replicated(self, key: str, value: Any = "old") -> WriteId:
        """Write, and wait for it."""
        write = self.write(key, value)
        assert outcome(write).status is Status.VISIBLE
        return write

    def read(self, write: WriteId, key: str, *, timeout: float = TIMEOUT_S) -> Any:
        """Read at the replica under a floor."""
        with antipode.scope(Lineage([write])):
            antipode.barrier(timeout=timeout, at="read")
            return self.reader.read(key)[0]

    def outcome_at(self, address: Address, write: WriteId, *, timeout: float = 2.0) -> Outcome:
        """What a barrier of a service that reads at one server comes to."""
        self.close()
        with closing(mongodb.shim("posts", self.client(address), **WHERE, reads_from="replica")):
            return outcome(write, timeout=timeout)

    def read_at(self, address: Address, key: str) -> Any:
        """What a plain client sees there."""
        return (self.client(address).app.posts.find_one({"_id": key}) or {}).get("value")


@contextmanager
def regions_of(topology: MongoDBTopology) -> Iterator[Regions]:
    """Shims at the first two members of *topology*."""
    with ExitStack() as stack:
        yield Regions(topology, stack)


def only(lineage: Lineage) -> WriteId:
    """The one write of a lineage."""
    (write,) = lineage
    return write


def outcome(write: WriteId, *, timeout: float = TIMEOUT_S) -> Outcome:
    """What a barrier on one write comes to."""
    result = antipode.barrier(Lineage([write]), timeout=timeout, on_unmet="return")
    return result.outcomes[0]
