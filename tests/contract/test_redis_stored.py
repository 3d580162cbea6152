"""A native Redis client that stores lineages beside values keeps the contract of a shim.

Writes, reads, updates and deletes are redis-py's own calls; shims are what the clients registered.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import redis
import redis.asyncio

import antipode
from antipode import Lineage, PromiseAbandoned
from antipode_shims.redis import fulfil, instrument_client, uninstrument_client
from antipode_shims.redis._clients import call as _call
from antipode_testing import LagProxy, ShimContract

from ._noted import noted_read, noted_write, noting
from .test_redis import LONG_MS, RedisContractStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Promise
    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

BESIDE: dict[str, Any] = {"lineage": "beside", "keys": ["*"]}


class NativeStore(RedisContractStore):
    """Instrumented clients at the primary and, through a proxy, at the replica."""

    aborted: ClassVar[tuple[type[Exception], ...]] = (PromiseAbandoned, redis.WatchError)

    def __init__(self, topology: RedisTopology, stack: ExitStack) -> None:
        self._clients: dict[Any, Any] = {}
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> Any:
        client = self._client(address)
        client.ping()  # Its connection is there from now on: tests count them.
        instrument_client(client, datastore="posts", **BESIDE, **options)
        self._stack.callback(uninstrument_client, client)
        shim = client._antipode.shim
        self._clients[shim] = client
        return shim

    def _within(self, lineage: Lineage | None, call: Callable[[Any], Any]) -> Lineage:
        """Call with what a write shall depend on; what is written joins the current scope."""
        client = self._clients[self.writer]
        if lineage is None:
            base = antipode.current()
            with noting() as box:
                call(client)
            return base.merge(*box)
        with antipode.scope(lineage) as scope:
            call(client)
            written = scope.lineage
        for write in written:
            if write not in lineage:
                antipode.append(write)
        return written

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, lambda client: client.set(key, value))

    def fulfil(self, key: str, value: bytes, promise: Promise) -> Lineage:
        def call(client: Any) -> None:
            with client.pipeline() as pipeline:
                fulfil(pipeline, promise)
                pipeline.set(key, value)
                pipeline.execute()

        return self._within(None, call)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        return self._within(lineage, lambda client: client.hset(key, field, value))

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, lambda client: client.delete(key))

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.reader, key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.writer, key)

    def _found(self, shim: Any, key: str) -> tuple[bytes | None, Lineage]:
        client = self._clients[shim]
        with noting() as box:
            try:
                value = client.get(key)
            except redis.ResponseError:  # A hash.
                value = b"".join(client.hgetall(key).values())
        return value, Lineage().merge(*box)

    async def read_async(self, key: str) -> Any:
        address = self.proxy.address
        async with redis.asyncio.Redis(host=address.host, port=address.port) as client:
            instrument_client(client, datastore="posts", reads_from="replica", **BESIDE)
            try:
                return await client.get(key), antipode.current()
            finally:
                uninstrument_client(client)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(slow.address, socket_timeout=1.0)
            instrument_client(client, datastore="posts", **BESIDE)
            with antipode.scope():
                client.set(f"{key}-before", value)
            slow.set_lag(LONG_MS)
            try:
                client.set(key, value)
            finally:
                uninstrument_client(client)


class TestNativeRedis(ShimContract):
    """Real servers."""

    @pytest.fixture
    def store(
        self, antipode_redis: RedisTopology, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[NativeStore]:
        """A client at the primary and one at the replica."""
        monkeypatch.setattr(_call, "record_read", noted_read)
        monkeypatch.setattr(_call, "record_write", noted_write)
        with ExitStack() as stack:
            yield NativeStore(antipode_redis, stack)
