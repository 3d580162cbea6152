"""Services of two languages on one store: what one writes, the other waits for and reads."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from antipode import BarrierTimeout, DependencyLost, Lineage, Status
from antipode_cli.main import main
from antipode_testing.contract.base import ELSEWHERE
from antipode_testing.contract.dry import dry_run
from tests._lines import records_in
from tests.agent.client import AgentProcess, RemoteAntipode, RemoteShim
from tests.conformance import _vectors as vectors
from tests.conformance._agents import command
from tests.conformance.test_dry_run import SCHEMA
from tests.contract._servers import regions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode import BarrierResult

#: The languages that have a shim of each store: each is held to every other.
SHIMS = {
    "mariadb": ("python", "java", "cpp"),
    "mongodb": ("python", "java", "cpp"),
    "mysql": ("python", "java", "cpp"),
    "postgresql": ("python", "java"),
    "rabbitmq": ("python", "java", "cpp"),
    "redis": ("python", "java", "cpp"),
}
#: Stores whose values cannot be deleted, and none is put back by a transaction.
MESSAGES = frozenset({"rabbitmq"})
#: Stores where nobody can tell what died with its server from what is late.
UNPROVED = frozenset({"rabbitmq"})
EARLY_S = 0.2
TIMEOUT_S = 20.0
#: For how long a barrier waits through a fail-over for what nobody can prove lost.
LOSS_S = 2.0
LAG_MS = 30
ROUNDS = 10


class Service(NamedTuple):
    """One of a language: its agent, and its shim of the store."""

    language: str
    antipode: RemoteAntipode
    shim: RemoteShim


class Pair(NamedTuple):
    """One that writes in the first region, and one that reads in the other."""

    store: str
    topology: Any
    writes: Service
    reads: Service
    there: dict[str, Any]

    @contextmanager
    def moved(self) -> Iterator[Pair]:
        """After a fail-over: the one that writes does so where the other one reads."""
        self.writes.shim.close()
        shim = RemoteShim(self.writes.antipode, self.store, "posts", self.there)
        with closing(shim):
            yield self._replace(writes=self.writes._replace(shim=shim))


def pairs(*stores: str) -> list[Any]:
    """All pairs of languages at these stores, as parameters of the fixture `pair`."""
    return [
        pytest.param(
            (store, *languages), id="-".join((store, *languages)), marks=pytest.mark.store(store)
        )
        for store in stores
        for languages in product(SHIMS[store], repeat=2)
    ]


class Agents:
    """A process for each language and role, started when it is first needed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[tuple[str, str], AgentProcess] = {}

    def of(self, language: str, role: str) -> RemoteAntipode:
        """One that nobody else uses in this role."""
        if (language, role) not in self._running:
            started = self._stack.enter_context(AgentProcess(command(language)))
            self._running[language, role] = started
        return RemoteAntipode(self._running[language, role])


@pytest.fixture(scope="module")
def processes() -> Iterator[Agents]:
    """Those of all pairs."""
    with ExitStack() as stack:
        yield Agents(stack)


@pytest.fixture
def pair(request: pytest.FixtureRequest, processes: Agents) -> Iterator[Pair]:
    """Two processes, each with a shim in its region."""
    store, *languages = request.param
    topology = request.getfixturevalue(f"antipode_{store}")
    with ExitStack() as stack:
        servers = stack.enter_context(regions(store, topology))
        services = []
        for language, server, role in zip(languages, servers, ("primary", "replica"), strict=True):
            remote = processes.of(language, role)
            shim = RemoteShim(remote, store, "posts", server, reads_from=role)
            services.append(Service(language, remote, stack.enter_context(closing(shim))))
        yield Pair(store, topology, *services, there=servers[1])


def handed_over(pair: Pair, key: str, value: bytes) -> list[list[str]]:
    """The headers of a request that is sent after a write, which depends on another store's."""
    with pair.writes.antipode.scope(Lineage([ELSEWHERE])):
        pair.writes.shim.write(key, value)
        headers: list[list[str]] = pair.writes.antipode.ask("request_headers", headers=[])
    return headers


def waiting(pair: Pair, timeout_s: float = TIMEOUT_S) -> Future[BarrierResult]:
    """The result of a barrier that waits in the current request of who reads."""
    ended: Future[BarrierResult] = Future()
    pair.reads.antipode.barrier_callback(ended.set_result, timeout=timeout_s, only="posts")
    return ended


def shown(pair: Pair, key: str) -> bytes | None:
    """What who reads is shown."""
    with pair.reads.antipode.scope():
        value: bytes | None = pair.reads.shim.read(key)[0]
    return value


class LivePairs:
    """What holds between any two languages."""

    def test_what_one_writes_the_other_waits_for(self, pair: Pair) -> None:
        """While replication stands still no barrier ends and nothing is there; then all is."""
        key = uuid.uuid4().hex
        pair.topology.pause()
        try:
            headers = handed_over(pair, key, b"1")
            remote = pair.reads.antipode
            with remote.request(headers):
                with pytest.raises(BarrierTimeout):
                    remote.barrier(timeout=EARLY_S, only="posts")
                assert pair.reads.shim.read(key)[0] is None
        finally:
            pair.topology.resume()
        with remote.request(headers) as scope:
            assert ELSEWHERE in scope.lineage
            remote.barrier(timeout=TIMEOUT_S, only="posts")
        with remote.scope():
            value, found = pair.reads.shim.read(key)
        assert value == b"1"
        assert ELSEWHERE in found, "what lies beside the value is of the other language"

    def test_nothing_is_early(self, pair: Pair) -> None:
        """Under lag each read after its barrier shows what was written before the call."""
        pair.topology.set_lag(LAG_MS)
        remote = pair.reads.antipode
        early = 0
        for number in range(ROUNDS):
            key = f"{uuid.uuid4().hex}-{number}"
            with remote.request(handed_over(pair, key, b"%d" % number)):
                remote.barrier(timeout=TIMEOUT_S, only="posts")
                early += pair.reads.shim.read(key)[0] != b"%d" % number
        assert early == 0

    def test_a_partition_is_waited_out(self, pair: Pair) -> None:
        """While the regions are partitioned all is pending; a barrier that waits ends with it."""
        key, remote = uuid.uuid4().hex, pair.reads.antipode
        pair.topology.cut()
        try:
            with remote.request(handed_over(pair, key, b"1")):
                with pytest.raises(BarrierTimeout) as caught:
                    remote.barrier(timeout=EARLY_S, only="posts")
                unmet = [outcome.status for outcome in caught.value.unmet]
                assert unmet
                assert all(status.pending for status in unmet)
                ended = waiting(pair)
                assert shown(pair, key) is None
                assert not ended.done()
                pair.topology.heal()
                assert ended.result(2 * TIMEOUT_S).ok
        finally:
            pair.topology.heal()
        assert shown(pair, key) == b"1"

    def test_a_failover_shows_what_it_lost(self, pair: Pair) -> None:
        """The new primary has a write, or the barrier says that it is lost; it goes on from there.

        A barrier that waits while its write is lost learns it as one that begins later.
        """
        kept_key, lost_key, after_key = (uuid.uuid4().hex for _ in range(3))
        remote = pair.reads.antipode
        kept = handed_over(pair, kept_key, b"kept")
        with remote.request(kept):
            remote.barrier(timeout=TIMEOUT_S, only="posts")
        pair.topology.pause()
        with remote.request(handed_over(pair, lost_key, b"lost")):
            ended = waiting(pair, LOSS_S if pair.store in UNPROVED else TIMEOUT_S)
            assert not ended.done()
            pair.topology.failover(lose_unreplicated=True)
            self._is_lost(pair, ended)
        assert shown(pair, lost_key) is None
        with remote.request(kept):
            assert remote.barrier(timeout=TIMEOUT_S, only="posts").ok
        assert shown(pair, kept_key) == b"kept"
        with pair.moved() as now, now.writes.antipode.request(kept):
            now.writes.shim.write(after_key, b"after")
            both = now.writes.antipode.ask("request_headers", headers=[])
            with remote.request(both):
                assert remote.barrier(timeout=TIMEOUT_S, only="posts").ok
            assert shown(pair, after_key) == b"after"

    def _is_lost(self, pair: Pair, ended: Future[BarrierResult]) -> None:
        """In the current request: of the barrier that has waited, and of the next one."""
        proved = pair.store not in UNPROVED
        timeout_s = TIMEOUT_S if proved else EARLY_S
        with pytest.raises(DependencyLost if proved else BarrierTimeout) as caught:
            pair.reads.antipode.barrier(timeout=timeout_s, only="posts")
        for unmet in (caught.value.unmet, ended.result(2 * TIMEOUT_S).unmet):
            found = {outcome.status for outcome in unmet}
            assert found == {Status.LOST if proved else Status.NOT_YET}

    def test_what_one_promises_the_other_waits_for(self, pair: Pair) -> None:
        """A barrier waits for the promise of another language until its branch has written."""
        key = uuid.uuid4().hex
        with pair.writes.antipode.scope():
            promise = pair.writes.antipode.promise("posts", expires_in_s=60)
            headers = pair.writes.antipode.ask("request_headers", headers=[])
        remote = pair.reads.antipode
        with remote.request(headers):
            with pytest.raises(BarrierTimeout):
                remote.barrier(timeout=EARLY_S, only="posts")
            pair.writes.shim.write(key, b"1", fulfils=promise)
            remote.barrier(timeout=TIMEOUT_S, only="posts")
            assert pair.reads.shim.read(key)[0] == b"1"

    def test_what_one_deletes_is_gone_for_the_other(self, pair: Pair) -> None:
        """After its barrier the key is gone, and the other language finds what it depended on."""
        if pair.store in MESSAGES:
            pytest.skip("a published message cannot be deleted")
        key = uuid.uuid4().hex
        remote = pair.reads.antipode
        with remote.request(handed_over(pair, key, b"1")):
            remote.barrier(timeout=TIMEOUT_S, only="posts")
        with pair.writes.antipode.scope(Lineage([ELSEWHERE])):
            pair.writes.shim.delete(key)
            headers = pair.writes.antipode.ask("request_headers", headers=[])
        with remote.request(headers):
            remote.barrier(timeout=TIMEOUT_S, only="posts")
        with remote.scope():
            value, found = pair.reads.shim.read(key)
        assert value is None
        assert ELSEWHERE in found

    def test_one_report_is_made_of_both_dry_runs(
        self, pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A read that does not wait is found with the write of the other language."""
        if pair.store in MESSAGES:
            pytest.skip("the read of a message is no read of a replica")
        key = uuid.uuid4().hex
        remote = pair.reads.antipode
        with dry_run(pair.writes, tmp_path), dry_run(pair.reads, tmp_path):
            with remote.request(handed_over(pair, key, b"1")):
                pair.reads.shim.read(key)
            with remote.request(handed_over(pair, key, b"2")):
                remote.barrier(timeout=TIMEOUT_S, only="posts")
                pair.reads.shim.read(key)
        judge = Draft202012Validator(vectors.load(SCHEMA))
        for record in records_in(tmp_path):
            judge.validate(record)
        assert main(["report", str(tmp_path), "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["records"]["processes"] == 2
        assert found["records"]["reads_guarded"] == found["records"]["reads_unguarded"] == 1
        (finding,) = found["findings"]
        assert finding["datastore"] == "posts"
        assert finding["write"]["file"], "the write is known, though another process made it"
