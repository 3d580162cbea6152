"""A native MongoDB client that stores lineages in documents keeps the contract of a shim.

Writes, reads, updates and deletes are PyMongo's own calls; shims are what the clients registered.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pymongo
import pytest

import antipode
from antipode import Lineage
from antipode.telemetry import Metric
from antipode_shims import mongodb
from antipode_shims.mongodb import instrument_client, uninstrument_client
from antipode_shims.mongodb._clients import call as _call
from antipode_shims.mongodb._stored import lineages as _lineages
from antipode_testing import LagProxy, ShimContract

from ._noted import noted_read, noted_write, noting
from .test_mongodb import MongoContractStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Promise
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")


class NativeStore(MongoContractStore):
    """Instrumented clients at the primary and, through a proxy, at the replica."""

    def __init__(self, topology: MongoDBTopology, stack: ExitStack) -> None:
        self._clients: dict[Any, Any] = {}
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> Any:
        client = self._settled(address)
        instrument_client(
            client,
            datastore="posts",
            lineage="beside",
            collections=["posts"],
            promise_database="contract",
            **options,
        )
        self._stack.callback(uninstrument_client, client)
        shim = client._antipode.shim
        self._clients[shim] = client
        return shim

    def _posts(self, shim: Any) -> Any:
        return self._clients[shim].contract.posts

    def _within(self, lineage: Lineage | None, call: Callable[[Any], Any]) -> Lineage:
        """Call with what a write shall depend on; what is written joins the current scope."""
        if lineage is None:
            base = antipode.current()
            with noting() as box:
                call(self._posts(self.writer))
            return base.merge(*box)
        with antipode.scope(lineage) as scope:
            call(self._posts(self.writer))
            written = scope.lineage
        for write in written:
            if write not in lineage:
                antipode.append(write)
        return written

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        document = {"value": value, "number": next(self._numbers)}
        return self._within(lineage, lambda c: c.replace_one({"_id": key}, document, upsert=True))

    def _stored(self, value: bytes) -> Any:
        return value

    def fulfil(self, key: str, value: bytes, promise: Promise) -> None:
        """A transaction of the instrumented client."""
        client = self._clients[self.writer]
        document = self._new(value)

        def work(session: Any) -> None:
            posts = self._posts(self.writer)
            posts.replace_one({"_id": key}, document, upsert=True, session=session)
            mongodb.fulfil(client.contract, promise, session=session)

        with client.start_session() as session:
            session.with_transaction(work)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        change = {"$set": {field: value}}
        return self._within(lineage, lambda c: c.update_one({"_id": key}, change, upsert=True))

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, lambda c: c.delete_one({"_id": key}))

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.reader, key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.writer, key)

    def _found(self, shim: Any, key: str) -> tuple[bytes | None, Lineage]:
        with noting() as box:
            document = self._posts(shim).find_one({"_id": key})
        value = None if document is None else document.get("value", b"")
        return value, Lineage().merge(*box)

    async def read_async(self, key: str) -> Any:
        address = self.proxy.address
        async with pymongo.AsyncMongoClient[Any](
            address.host, address.port, directConnection=True
        ) as client:
            near: Any = {"reads_from": "replica", "lineage": "beside", "collections": ["posts"]}
            instrument_client(client, datastore="posts", promise_database="contract", **near)
            try:
                document = await client.contract.posts.find_one({"_id": key})
            finally:
                uninstrument_client(client)
        return (None if document is None else document["value"]), antipode.current()

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(slow.address, socketTimeoutMS=1000, retryWrites=False)
            instrument_client(client, datastore="posts", lineage="beside", collections=["posts"])
            client.admin.command("ping")
            slow.set_lag(60_000)
            try:
                client.contract.posts.replace_one({"_id": key}, {"value": value}, upsert=True)
            finally:
                uninstrument_client(client)

    def corrupt(self, key: str, text: str) -> None:
        plain = self._client(self.topology.primary).contract.posts
        plain.update_one({"_id": key}, {"$set": {"_ap": {"w": f"~|{text}"}}})
        self.topology.wait_replicated()


class TestNativeMongoDB(ShimContract):
    """Real servers."""

    @pytest.fixture
    def store(
        self, antipode_mongodb: MongoDBTopology, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[NativeStore]:
        """A client at the primary and one at the replica."""
        monkeypatch.setattr(_lineages, "record_read", noted_read)
        monkeypatch.setattr(_call, "record_write", noted_write)
        with ExitStack() as stack:
            yield NativeStore(antipode_mongodb, stack)

    def test_write_without_scope_is_counted(self, store: Any, key: str) -> None:
        """A write outside of any scope is counted, and happens."""
        metric = Metric("unscoped_write", store.datastore)
        before = antipode.telemetry.metrics().get(metric, 0)
        store.write(key, b"1")
        assert antipode.telemetry.metrics()[metric] == before + 1
        assert store.read_primary(key)[0] == b"1"
