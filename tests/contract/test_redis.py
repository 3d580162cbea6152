"""The Redis shim keeps the contract, on a real primary and replica."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode_shims import redis as shims
from antipode_shims.redis._format import digest
from antipode_testing import ContractStore, LagProxy, RedisTopology, ShimContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from antipode import Promise

pytestmark = pytest.mark.store("redis")

LONG_MS = 60_000


class RedisContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut."""

    topology: RedisTopology

    def __init__(self, topology: RedisTopology, stack: ExitStack) -> None:
        self._stack = stack
        self.proxy = stack.enter_context(LagProxy(topology.replicas[-1]))
        super().__init__(topology, self._shim(topology.primary), self._reader())

    def _client(self, address: Any, **options: Any) -> Any:
        client = redis.Redis(
            host=address.host, port=address.port, retry=Retry(NoBackoff(), 0), **options
        )
        self._stack.callback(client.close)
        return client

    def _shim(self, address: Any, **options: Any) -> Any:
        return shims.shim("posts", self._client(address), **options)

    def _reader(self) -> Any:
        return self._shim(self.proxy.address, reads_from="replica")

    async def read_async(self, key: str) -> Any:
        """Read by the asyncio shim, which looks where the synchronous one does."""
        address = self.proxy.address
        url = f"redis://{address.host}:{address.port}"
        reader = shims.shim_async("posts", url, reads_from="replica")
        try:
            return await reader.read(key)
        finally:
            await reader.aclose()

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            client = self._client(slow.address, socket_timeout=1.0)
            doubtful = shims.shim("posts", client)
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS)
                doubtful.write(key, value)
            finally:
                doubtful.close()

    def unknown_write(self, key: str, value: bytes) -> None:
        """A script."""
        client = self._client(self.topology.primary)
        shims.instrument_client(client, datastore="posts")
        try:
            client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, key, value)
        finally:
            shims.uninstrument_client(client)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """One command of the transaction is none, so that the server refuses it as a whole."""
        with self._client(self.topology.primary).pipeline() as pipeline:
            shims.fulfil(pipeline, promise)
            pipeline.set(key, value)
            pipeline.execute_command("NOSUCH")
            pipeline.execute()

    def corrupt(self, key: str, text: str) -> None:
        """Overwrite the companion, digest aside."""
        with redis.Redis(*self.topology.primary) as plain:
            value = plain.get(key)
            plain.set(f"ap:{key}", digest(value) + b"|" + text.encode())
        self.topology.wait_replicated()

    def unreachable(self) -> AbstractContextManager[None]:
        """Refuse connections to the replica."""
        return self.proxy.unreachable()

    @contextmanager
    def regressed(self) -> Iterator[None]:
        """The replica is back without data and without its primary."""
        self.topology.cut()
        self.topology._touched = True
        self.topology._replica(0).restart(graceful=False, wipe=True)
        try:
            yield
        finally:
            self.topology.heal()
            self.topology.wait_replicated()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)

    def follow(self) -> None:
        self.topology.resync_sibling(len(self.topology.replicas) - 1)


class TestRedis(ShimContract):
    """Real servers."""

    opt_outs: ClassVar[dict[str, str]] = {
        "partial_updates": "Table 2 writes replace string values whole",
    }

    @pytest.fixture
    def store(self, antipode_redis: RedisTopology) -> Iterator[RedisContractStore]:
        """A shim at the primary and one at the replica."""
        with ExitStack() as stack:
            store = RedisContractStore(antipode_redis, stack)
            yield store
            store.writer.close()
            store.reader.close()


def test_async_shim_round_trip(antipode_redis: RedisTopology) -> None:
    """The asyncio shim writes, waits and reads as the synchronous one does."""

    async def request() -> None:
        primary, replica = antipode_redis.primary, antipode_redis.replica
        writer = shims.shim_async("posts", f"redis://{primary}")
        reader = shims.shim_async("posts", f"redis://{replica}", reads_from="replica")
        antipode_redis.set_lag(50)
        with antipode.scope() as scope:
            lineage = await writer.write("async-key", "value", ex=60)
            assert lineage == scope.lineage
            await reader.wait_async(timeout=5)
            value, found = await reader.read("async-key")
            assert value == b"value"
            assert found.datastores == {"posts"}
            await writer.delete("async-key")
            await reader.wait_async(timeout=5)
            assert (await reader.read("async-key"))[0] is None
        await writer.aclose()
        await reader.aclose()

    asyncio.run(request())
