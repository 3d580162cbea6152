"""The MongoDB shim keeps the contract, on a real replica set."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pymongo
import pytest

import antipode
from antipode_shims import mongodb
from antipode_testing import ContractStore, LagProxy, ShimContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from antipode import Lineage, Promise, WriteId
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

LONG_MS = 60_000


class MongoContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut.

    MongoDB leaves out an update that changes nothing: its position is that of what is there
    already. So that each write is one, values have a number beside them.
    """

    where: ClassVar[dict[str, str]] = {"database": "contract", "collection": "posts"}
    topology: MongoDBTopology
    # A secondary that lost its source looks for it once a second.
    promptly_s = 1.5

    def __init__(self, topology: MongoDBTopology, stack: ExitStack) -> None:
        self._stack = stack
        self.proxy = stack.enter_context(LagProxy(topology.replicas[-1]))
        super().__init__(topology, self._shim(topology.primary), self._reader())
        self._numbers = itertools.count()

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        """Write a document that never was there before."""
        written: Lineage = self.writer.write(key, self._new(value), lineage)
        return written

    def _new(self, value: bytes) -> dict[str, Any]:
        return {"value": value, "number": next(self._numbers)}

    def fulfil(self, key: str, value: bytes, promise: Promise) -> None:
        self.writer.write(key, self._new(value), fulfils=promise)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """The transaction of a plain client, which fulfils and then fails."""
        plain = self._client(self.topology.primary)
        with plain.start_session() as session, session.start_transaction():
            self._plain(plain).insert_one({"_id": key, "value": value}, session=session)
            mongodb.fulfil(self._plain(plain).database, promise, session=session)
            raise RuntimeError("the branch fails")

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._value(self.reader.read(key))

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._value(self.writer.read(key))

    def _plain(self, client: Any) -> Any:
        """The collection of *client*."""
        return client[self.where["database"]][self.where["collection"]]

    def _client(self, address: Any, **options: Any) -> Any:
        client: Any = pymongo.MongoClient(
            address.host, address.port, directConnection=True, **options
        )
        self._stack.callback(client.close)
        return client

    def _settled(self, address: Any) -> Any:
        """A client whose connections are all there from now on: tests count them."""
        client = self._client(address, serverMonitoringMode="poll")
        client.admin.command("ping")
        return client

    def _shim(self, address: Any, **options: Any) -> Any:
        return mongodb.shim("posts", self._settled(address), **self.where, **options)

    def _reader(self) -> Any:
        return self._shim(self.proxy.address, reads_from="replica")

    def connections(self) -> int:
        """Descriptors, without those of what the set's members say to each other meanwhile."""
        while True:
            proxies = [node.proxy for node in self.topology._nodes]
            theirs = sum(proxy.relayed() for proxy in proxies)
            found = super().connections()
            if theirs == sum(proxy.relayed() for proxy in proxies):
                return found - 2 * theirs

    async def read_async(self, key: str) -> Any:
        """Read by the asyncio shim, which looks where the synchronous one does."""
        address = self.proxy.address
        url = f"mongodb://{address}/?directConnection=true"
        reader = mongodb.shim_async("posts", url, **self.where, reads_from="replica")
        try:
            return self._value(await reader.read(key))
        finally:
            await reader.aclose()

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(slow.address, socketTimeoutMS=1000)
            client.admin.command("ping")
            doubtful = mongodb.shim("posts", client, **self.where)
            doubtful.read(key)
            slow.set_lag(LONG_MS)
            try:
                doubtful.write(key, value)
            finally:
                doubtful.close()

    def _stored(self, value: bytes) -> Any:
        """What a document has as its value."""
        return {"value": value}

    def unknown_write(self, key: str, value: bytes) -> None:
        """A command that is in no table."""
        client = self._client(self.topology.primary)
        mongodb.instrument_client(client, datastore="posts", promise_database="contract")
        document = {"_id": key, "value": self._stored(value)}
        entry = {"op": "i", "ns": "contract.posts", "o": document}
        try:
            client.admin.command("applyOps", [entry])
        finally:
            mongodb.uninstrument_client(client)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        updated: Lineage = self.writer.update(key, {field: value}, lineage)
        return updated

    def covers(self, lineage: Lineage, write: WriteId) -> bool:
        """What a majority has is one log, whatever the term in which it was written."""
        return super().covers(lineage, write) or any(
            each.key == "antipode" and int(each.version) >= int(write.version) for each in lineage
        )

    def corrupt(self, key: str, text: str) -> None:
        """Overwrite the lineage, digest aside."""
        plain = self._plain(self._client(self.topology.primary))
        mark, _, _ = plain.find_one({"_id": key})["_ap"]["w"].partition("|")
        plain.update_one({"_id": key}, {"$set": {"_ap.w": f"{mark}|{text}"}})
        self.topology.wait_replicated()

    def unknown(self, write: WriteId) -> WriteId:
        """As if of a replica set of another name."""
        return antipode.WriteId(
            write.datastore, f"another-{write.key}", write.version, write.written_hour
        )

    def unreachable(self) -> AbstractContextManager[None]:
        """Refuse connections to the replica."""
        return self.proxy.unreachable()

    @contextmanager
    def regressed(self) -> Iterator[None]:
        """The replica is back without data, and nobody is there to copy from."""
        self.topology.cut()
        self.topology._replica(0).restart(graceful=False, wipe=True)
        try:
            yield
        finally:
            self.topology.heal()
            self.topology.wait_replicated()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)

    def _value(self, found: tuple[Any, Lineage]) -> tuple[bytes | None, Lineage]:
        document, lineage = found
        return (None if document is None else document.get("value", b"")), lineage


class TestMongoDB(ShimContract):
    """Real servers."""

    @pytest.fixture
    def store(self, antipode_mongodb: MongoDBTopology) -> Iterator[MongoContractStore]:
        """A shim at the primary and one at the replica."""
        with ExitStack() as stack:
            store = MongoContractStore(antipode_mongodb, stack)
            yield store
            store.writer.close()
            store.reader.close()


def test_async_shim_round_trip(antipode_mongodb: MongoDBTopology) -> None:
    """The asyncio shim writes, waits and reads as the synchronous one does."""

    async def request() -> None:
        where = MongoContractStore.where
        primary, replica = antipode_mongodb.primary, antipode_mongodb.replica
        options = "?directConnection=true"
        writer = mongodb.shim_async("posts", f"mongodb://{primary}/{options}", **where)
        reader = mongodb.shim_async(
            "posts",
            f"mongodb://{replica}/{options}",
            **where,
            reads_from="replica",
        )
        antipode_mongodb.set_lag(50)
        with antipode.scope() as scope:
            lineage = await writer.write("async-key", "value")
            assert lineage == scope.lineage
            await writer.update("async-other", {"a": 1})
            await reader.wait_async(timeout=5)
            value, found = await reader.read("async-key")
            assert value == "value"
            assert found.datastores == {"posts"}
            assert (await reader.read("async-other"))[0] == {"a": 1}
            await writer.delete("async-key")
            await reader.wait_async(timeout=5)
            assert (await reader.read("async-key"))[0] is None
        await writer.aclose()
        await reader.aclose()

    asyncio.run(request())
