"""The shim that the guide prints keeps the contract: the public API is enough to write one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import redis

import antipode.shim
from antipode import Status
from antipode_testing import ContractStore, LagProxy, ShimContract
from examples import own_shim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

LONG_MS = 60_000


class OwnContractStore(ContractStore):
    """A shim at each of two real servers; the reader comes through a proxy, which can be cut."""

    lost: ClassVar[frozenset[Status]] = frozenset({Status.UNDECIDABLE})
    topology: RedisTopology

    def __init__(self, topology: RedisTopology, proxy: LagProxy) -> None:
        self.proxy = proxy
        writer = self._shim(topology.primary)
        super().__init__(topology, writer, self._shim(proxy.address, reads_from="replica"))

    def _shim(self, address: Any, **options: Any) -> own_shim.HashShim:
        shim = own_shim.HashShim("posts", f"redis://{address}", **options)
        antipode.shim.register(shim)
        return shim

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary, lag_ms=LONG_MS) as slow:
            slow_shim = own_shim.HashShim("posts", f"redis://{slow.address}?socket_timeout=1.0")
            try:
                slow_shim.write(key, value)
            finally:
                slow_shim.close()

    def corrupt(self, key: str, text: str) -> None:
        with redis.Redis(*self.topology.primary) as plain:
            plain.hset(key, "lineage", text)
        self.topology.wait_replicated()

    def unreachable(self) -> AbstractContextManager[None]:
        return self.proxy.unreachable()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)


class TestOwnShim(ShimContract):
    """What the guide says of it, and what it leaves out, by the suite's own words."""

    opt_outs: ClassVar[dict[str, str]] = {
        "abandonment": "no promises",
        "deletes": "no delete",
        "dry_run": "reads are not judged without floors",
        "fences": "no fence: what was dropped stays incomplete",
        "automatic": "reads are not held back: barriers wait at='now'",
        "floors": "reads are not held back: barriers wait at='now'",
        "partial_updates": "values are written whole",
        "promises": "no promises",
        "reseed": "shown by the shim of the library",
        "unknown_writes": "nothing writes but the shim",
    }

    @pytest.fixture
    def store(self, antipode_redis: RedisTopology) -> Iterator[OwnContractStore]:
        """A shim at the primary and one at the replica."""
        with LagProxy(antipode_redis.replica) as proxy:
            store = OwnContractStore(antipode_redis, proxy)
            yield store
            store.writer.close()
            store.reader.close()


def test_it_imports_public_names_alone() -> None:
    """Nothing private is needed."""
    tree = ast.parse(Path(own_shim.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("antipode"):
            assert node.module in ("antipode", "antipode.shim")
            module = antipode if node.module == "antipode" else antipode.shim
            assert {name.name for name in node.names} <= set(module.__all__)
