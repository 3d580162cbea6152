"""Claims about automatic barriers: reads wait without a call, within the time of their request."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from antipode import BarrierTimeout, Lineage
from antipode.telemetry import Metric

from .base import LATE_S, category, in_time, pass_time, replicated, times_out, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .store import ContractStore

READS = 20
#: How many requests with random lag, time and writes.
STEPS = 30
#: How many of them come after another write.
_WRITES = 0.5


@contextmanager
def automatic(
    store: ContractStore, *, auto_timeout: float = 10.0, on_stale: str = "serve"
) -> Iterator[None]:
    """Have reads wait automatically, for *auto_timeout* seconds of a request."""
    store.antipode.configure(barriers="auto", auto_timeout=auto_timeout, on_stale=on_stale)
    try:
        yield
    finally:
        store.antipode.configure(barriers="explicit", auto_timeout=1.0, on_stale="serve")


def stale_reads(store: ContractStore) -> int:
    """How many reads were counted as answered stale."""
    return int(store.antipode.telemetry.metrics().get(Metric("served_stale", store.datastore), 0))


class AutomaticContract:
    """What a request depends on is waited for by its reads, where that is configured."""

    @category("automatic")
    def test_reads_wait_by_themselves(self, store: ContractStore, key: str) -> None:
        """A read waits, without a barrier, for what its request wrote or received."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])

        def read() -> bytes | None:
            with store.antipode.scope(lineage):
                return store.read(key)[0]

        with automatic(store, auto_timeout=store.timeout_s), ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            pass_time(store.settle_s)
            assert not reading.done()
            store.topology.resume()
            assert reading.result(store.timeout_s) == b"new"

    @category("automatic")
    def test_read_without_dependencies_goes_its_way(self, store: ContractStore, key: str) -> None:
        """A request that depends on nothing there reads as it did, and nothing is counted."""
        replicated(store, key, b"old")
        store.topology.pause()
        written(store, key, b"new")
        before = stale_reads(store)
        with automatic(store), store.antipode.scope():
            assert in_time(LATE_S, lambda: store.read(key))
            assert store.read(key)[0] == b"old"
        assert stale_reads(store) == before

    @category("automatic")
    def test_time_is_the_requests(self, store: ContractStore, key: str) -> None:
        """All reads of a request have one time together; afterwards they show what there is."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])
        before = stale_reads(store)

        def read_all() -> None:
            with store.antipode.scope(lineage):
                assert {store.read(key)[0] for _ in range(READS)} == {b"old"}

        with automatic(store, auto_timeout=0.2):
            assert in_time(0.2 + READS * store.read_s + LATE_S, read_all)
        stale = stale_reads(store) - before
        assert stale > 0
        assert stale % READS == 0

    @category("automatic")
    def test_stale_reads_may_raise(self, store: ContractStore, key: str) -> None:
        """With ``on_stale="raise"`` such a read raises, as a barrier does, and shows nothing."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])
        with automatic(store, auto_timeout=0.1, on_stale="raise"), store.antipode.scope(lineage):
            with pytest.raises(BarrierTimeout):
                store.read(key)
            with pytest.raises(BarrierTimeout):
                store.read(key)

    @category("automatic")
    def test_without_any_time(self, store: ContractStore, key: str) -> None:
        """With no time at all a read shows what there is at once, or raises at once."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])
        with automatic(store, auto_timeout=0.0), store.antipode.scope(lineage):
            assert in_time(LATE_S, lambda: store.read(key))
            assert store.read(key)[0] == b"old"

    @category("automatic")
    def test_explicit_barrier_is_not_misled(self, store: ContractStore, key: str) -> None:
        """A read that was answered stale proves nothing: a barrier after it waits."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])
        with automatic(store, auto_timeout=0.0), store.antipode.scope(lineage):
            store.read(key)
            times_out(store, lineage, timeout=0.1)
            store.antipode.barrier(timeout=0.1, at="read")
            with pytest.raises(BarrierTimeout):
                store.read(key)

    @category("automatic")
    def test_stale_reads_are_counted(self, store: ContractStore, key: str) -> None:
        """Whatever the lag and the time, a read that shows less than its request depends on counts.

        Nor does any request wait for more than its time and half a second.
        """
        choose = random.Random(7)  # noqa: S311 - the same in every run
        newest, lineage = 0, Lineage([replicated(store, key, b"0")])
        for _ in range(STEPS):
            if choose.random() < _WRITES:
                newest += 1
                lineage = Lineage([written(store, key, b"%d" % newest)])
            choose.choice((store.topology.pause, store.topology.resume))()
            allowed_s = choose.choice((0.0, 0.02, 0.1))

            def request(lineage: Lineage = lineage, newest: int = newest) -> None:
                with store.antipode.scope(lineage):
                    for _ in range(choose.randint(1, 3)):
                        before = stale_reads(store)
                        value = store.read(key)[0]
                        assert int(value or b"-1") >= newest or stale_reads(store) > before

            with automatic(store, auto_timeout=allowed_s):
                assert in_time(allowed_s + 0.5, request)
        store.topology.resume()

    @category("automatic", "failover")
    def test_lost_write_is_not_waited_for(self, store: ContractStore, key: str) -> None:
        """A read whose request depends on a lost write is answered at once, and counted."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage([written(store, key, b"new")])
        store.topology.failover(lose_unreplicated=True)
        before = stale_reads(store)

        def read() -> None:
            with store.antipode.scope(lineage):
                assert store.read(key)[0] == b"old"

        with automatic(store, auto_timeout=store.timeout_s):
            assert in_time(store.timeout_s / 2, read, attempts=1)
        assert stale_reads(store) == before + 1

    @category("automatic")
    def test_incomplete_lineage_is_counted(self, store: ContractStore, key: str) -> None:
        """A read whose request is known to miss dependencies there is answered, and counted."""
        replicated(store, key, b"old")
        before = stale_reads(store)
        missing = Lineage(incomplete=[(store.datastore, "in_doubt")])
        with automatic(store), store.antipode.scope(missing):
            assert store.read(key)[0] == b"old"
        assert stale_reads(store) == before + 1
