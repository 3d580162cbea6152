"""What the tests of the contract suite have in common."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from antipode import BarrierTimeout, Lineage, Status, WriteId
from antipode_testing._wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from antipode import BarrierResult

    from .store import ContractStore

CATEGORIES = (
    "abandonment",
    "automatic",
    "codec_abuse",
    "deletes",
    "dry_run",
    "faces",
    "failover",
    "fences",
    "floors",
    "in_doubt",
    "isolation",
    "leaks",
    "minting",
    "partial_updates",
    "promises",
    "race",
    "reseed",
    "sharing",
    "stored_lineage",
    "unknown_log",
    "unknown_writes",
    "unreachable",
    "visibility",
)

#: A write of a store that is not there: what other services did.
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
ELSEWHERE_TOO = WriteId("elsewhere-too", "log", 8, 490_000)
#: How late a barrier may end after its deadline, in seconds.
LATE_S = 0.1

_Test = TypeVar("_Test", bound="Callable[..., Any]")


def category(*names: str) -> Callable[[_Test], _Test]:
    """Put a test into a category, or several: opting out of any of them skips it."""
    unknown = set(names).difference(CATEGORIES)
    if unknown or not names:
        raise ValueError(f"no categories: {sorted(unknown)}")

    def put(test: _Test) -> _Test:
        test.categories = names  # type: ignore[attr-defined]
        return test

    return put


class ContractBase:
    """Fixtures and helpers; no tests."""

    @pytest.fixture
    def key(self) -> str:
        """A key that no other test uses: stores may outlive tests."""
        return f"contract-{uuid.uuid4().hex}"


def minted(store: ContractStore, before: Lineage, after: Lineage) -> WriteId:
    """The one write of the store that *after* has and *before* has not."""
    new = [write for write in after if write.datastore == store.datastore and write not in before]
    assert len(new) == 1, f"expected one new write of {store.datastore!r}, found {new}"
    return new[0]


def written(store: ContractStore, key: str, value: bytes = b"1") -> WriteId:
    """Write outside of the caller's scope; the new write."""
    with store.antipode.scope():
        return minted(store, Lineage(), store.write(key, value))


def replicated(store: ContractStore, key: str, value: bytes = b"1") -> WriteId:
    """Write outside of the caller's scope, and wait until the replica shows it."""
    write = written(store, key, value)
    store.antipode.barrier(Lineage([write]), timeout=store.timeout_s)
    return write


def statuses(result: BarrierResult) -> set[Status]:
    """The outcomes of a barrier."""
    return {outcome.status for outcome in result.outcomes}


def times_out(store: ContractStore, lineage: Lineage, *, timeout: float) -> BarrierTimeout:
    """The error of a barrier that must not pass."""
    with pytest.raises(BarrierTimeout) as caught:
        store.antipode.barrier(lineage, timeout=timeout, only=store.datastore)
    return caught.value


def in_threads(work: Callable[[int], None], number: int) -> None:
    """Run *work* in so many threads that start together; the first error is raised."""
    start = threading.Barrier(number)

    def run(index: int) -> None:
        start.wait()
        work(index)

    with ThreadPoolExecutor(number) as pool:
        running: list[Future[None]] = [pool.submit(run, index) for index in range(number)]
        for each in running:
            each.result()


def seconds(work: Callable[[], object]) -> float:
    """How long *work* takes."""
    started_s = time.monotonic()
    work()
    return time.monotonic() - started_s


def in_time(limit_s: float, work: Callable[[], object], *, attempts: int = 10) -> bool:
    """Whether *work* takes less than *limit_s* at least once.

    A busy machine is late at times, a library that is itself the cause is late always.
    """
    return any(seconds(work) < limit_s for _ in range(attempts))


def pass_time(some_s: float) -> None:
    """Let time pass where the claim is that nothing happens meanwhile."""
    end_s = time.monotonic() + some_s
    wait_until(lambda: time.monotonic() >= end_s, what="time to pass", timeout_s=some_s + 10)
