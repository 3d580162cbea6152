"""The contract suite through the conformance agent: what other languages are held to by it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode import BarrierTimeout
from antipode_testing import ContractStore, LagProxy, ShimContract
from antipode_testing._wait import wait_until
from antipode_testing.contract.dry import dry_run
from tests._lines import records_in
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.contract._sample import claims_of, sampled
from tests.contract.test_redis import LONG_MS, RedisContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode import Lineage, Promise, WriteId
    from antipode_testing import RedisTopology
    from tests.agent.lending import Lend

pytestmark = pytest.mark.slow

EARLY_S = 0.5
TIMEOUT_S = 20.0
#: How many claims Python's agent is held to in CI, and of how many categories they are.
SAMPLED = 10
COVERED = 12


@pytest.fixture
def remote(request: pytest.FixtureRequest, lend: Lend) -> RemoteAntipode:
    """An agent of the language of the test's class."""
    return lend(request.cls.language)


class Remote(ContractStore):
    """What a store's hooks are where the shims are in an agent. Comes before the store's own."""

    writer: RemoteShim

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        self.writer.rolled_back(key, value, promise)

    def watchers(self) -> list[str]:
        found: list[str] = self.antipode.ask("statistics")["watchers"]
        return found

    def connections(self) -> int:
        return int(self.antipode.ask("statistics")["connections"])


class RemoteRedis(Remote, RedisContractStore):
    """Real servers; the reader comes through a proxy, which can be cut."""

    aborted: ClassVar[tuple[type[Exception], ...]] = (*ContractStore.aborted, StoreError)

    def __init__(self, remote: RemoteAntipode, topology: RedisTopology, stack: ExitStack) -> None:
        self.antipode = remote
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> RemoteShim:
        server = {"host": address.host, "port": address.port}
        return RemoteShim(self.antipode, "redis", "posts", server, **options)

    def has_unique_log(self, write: WriteId) -> bool:
        """A replication id is random, in any language."""
        return bool(write.key)

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        return await self.reader.read_async(key)

    def doubtful_write(self, key: str, value: bytes) -> None:
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            doubtful = self._shim(slow.address, timeout_s=0.2)
            doubtful.read(key)
            slow.set_lag(LONG_MS)
            try:
                doubtful.write(key, value)
            finally:
                doubtful.close()


@pytest.mark.store("redis")
class RemoteRedisContract(ShimContract):
    """The claims of Redis through the agent of a language, which a subclass names."""

    language: ClassVar[str]
    opt_outs: ClassVar[dict[str, str]] = {
        "partial_updates": "Table 2 writes replace string values whole",
        "unknown_writes": "an agent has no client of the store that the suite could call",
    }

    @pytest.fixture
    def store(self, antipode_redis: RedisTopology, remote: RemoteAntipode) -> Iterator[RemoteRedis]:
        """A shim at the primary and one at the replica, both in an agent."""
        with ExitStack() as stack:
            store = RemoteRedis(remote, antipode_redis, stack)
            yield store
            store.writer.close()
            store.reader.close()


@sampled(SAMPLED)
class TestRedis(RemoteRedisContract):
    """Some claims for all that Python's shim keeps, which is held to all of them in process."""

    language: ClassVar[str] = "python"


def test_a_sample_is_of_most_categories() -> None:
    """Each of its claims is of a category that the others lack, as long as there is one."""
    claims = claims_of(TestRedis)
    assert len(claims) == SAMPLED
    covered = {name for claim in claims.values() for name in claim.categories}
    assert len(covered) >= COVERED
    assert claims_of(TestRedisOfJava).keys() > claims.keys()


class TestRedisOfJava(RemoteRedisContract):
    """The claims that Java's shim keeps, on the same servers."""

    language: ClassVar[str] = "java"


class TestRedisOfCpp(RemoteRedisContract):
    """The claims that the shim of C++ keeps, on the same servers."""

    language: ClassVar[str] = "cpp"

    def test_unguarded_read_has_evidence(
        self, store: RemoteRedis, key: str, tmp_path: Path
    ) -> None:
        """A read that a replica cannot have answered rightly is confirmed, with what it costs."""
        store.topology.pause()
        with dry_run(store, tmp_path):
            with store.antipode.scope() as scope:
                store.write(key, b"1")
                store.read(key)
                written = scope.lineage
            with store.antipode.scope(), pytest.raises(BarrierTimeout):  # The read is over.
                # It sees what the check of the read sees, which began before it.
                store.antipode.barrier(written, timeout=EARLY_S, mode="enforce")
            store.topology.resume()
            wait_until(lambda: bool(evidence_in(tmp_path)), what="evidence", timeout_s=TIMEOUT_S)
        (found,) = evidence_in(tmp_path)
        assert found["confirmed"] is True
        assert EARLY_S < found["waited_s"] < TIMEOUT_S


def evidence_in(folder: Path) -> list[dict[str, Any]]:
    """What was found out about the reads of a dry run."""
    return [each for each in records_in(folder) if each["kind"] == "evidence"]
