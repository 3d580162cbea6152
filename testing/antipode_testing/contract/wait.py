"""Claims about tokens and waiting: positions, visibility, floors, APIs, sharing, races."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from antipode import (
    BarrierTimeout,
    ConfigurationError,
    IncompleteLineage,
    Lineage,
    Status,
    UnmetError,
)
from antipode.telemetry import Metric
from antipode_testing._wait import wait_until

from .base import (
    ELSEWHERE,
    LATE_S,
    category,
    in_threads,
    in_time,
    minted,
    pass_time,
    replicated,
    seconds,
    statuses,
    times_out,
    written,
)

if TYPE_CHECKING:
    from antipode import BarrierResult

    from .store import ContractStore

LAG_MS = 30.0
ROUNDS = 10
WRITERS = 4
WRITES = 25


class WaitContract:
    """Tokens are exact, and barriers wait for them."""

    @category("minting")
    def test_write_enters_scope(self, store: ContractStore, key: str) -> None:
        """A committed write enters the current scope: exact, with its written hour."""
        with store.antipode.scope() as scope:
            returned = store.write(key, b"1")
            write = minted(store, Lineage(), scope.lineage)
            assert write in returned
            assert write.written_hour > 0
            assert not write.covering

    @category("minting")
    def test_write_extends_given_lineage(self, store: ContractStore, key: str) -> None:
        """``write(key, value, lineage)`` returns that lineage with one write more."""
        given = Lineage([ELSEWHERE])
        with store.antipode.scope() as scope:
            returned = store.write(key, b"1", given)
            write = minted(store, given, returned)
            assert ELSEWHERE in returned
            assert write in scope.lineage
            assert ELSEWHERE not in scope.lineage

    @category("minting")
    def test_later_write_supersedes(self, store: ContractStore, key: str) -> None:
        """With integer versions, a later write of a key supersedes the earlier one."""
        first, second = written(store, key, b"1"), written(store, key, b"2")
        assert first != second
        if isinstance(first.version, int) and first.key == second.key:
            assert isinstance(second.version, int)
            assert second.version > first.version
            assert set(Lineage([first, second])) == {second}

    @category("minting")
    def test_refused_write_enters_nothing(self, store: ContractStore, key: str) -> None:
        """A write that the store refused is no dependency, and leaves no doubt."""
        with store.antipode.scope() as scope:
            with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own
                store.refused_write(key, b"1")
            assert scope.lineage.empty

    @category("unknown_writes")
    def test_write_that_is_not_understood(self, store: ContractStore, key: str) -> None:
        """A write that the shim cannot see into is waited for, or the lineage is incomplete."""
        store.write(f"{key}-before", b"0")
        store.topology.set_lag(LAG_MS)
        with store.antipode.scope() as scope:
            store.unknown_write(key, b"1")
            assert not scope.lineage.empty
            try:
                store.antipode.barrier(timeout=store.timeout_s)
            except IncompleteLineage:
                return
            assert store.read(key)[0] == b"1"

    @category("minting")
    def test_write_without_scope_is_counted(self, store: ContractStore, key: str) -> None:
        """A write outside of any scope is counted, and still returns its lineage."""
        metric = Metric("unscoped_write", store.datastore)
        before = store.antipode.telemetry.metrics().get(metric, 0)
        assert minted(store, Lineage(), store.write(key, b"1"))
        assert store.antipode.telemetry.metrics()[metric] == before + 1

    @category("visibility")
    def test_read_after_barrier_is_never_stale(self, store: ContractStore, key: str) -> None:
        """Under lag, new values and updates are there as soon as the barrier has passed."""
        store.topology.set_lag(LAG_MS)
        for number in range(ROUNDS):
            value = str(number).encode()
            with store.antipode.scope():
                store.write(key, value)
                assert store.antipode.barrier(timeout=store.timeout_s).ok
                assert store.read(key)[0] == value

    @category("visibility")
    def test_never_passes_while_paused(self, store: ContractStore, key: str) -> None:
        """While replication is paused the barrier does not pass, and says ``not_yet``."""
        replicated(store, key)
        store.topology.pause()
        write = written(store, key, b"2")
        error = times_out(store, Lineage([write]), timeout=store.settle_s)
        assert statuses(error.result) == {Status.NOT_YET}

    @category("visibility")
    def test_passes_promptly_after_resume(self, store: ContractStore, key: str) -> None:
        """A waiting barrier passes soon after replication goes on."""

        def late_s(number: int) -> float:
            store.topology.pause()
            lineage = Lineage([written(store, key, str(number).encode())])
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(store.antipode.barrier, lineage, timeout=store.timeout_s)
                pass_time(store.settle_s)
                assert not waiting.done()
                store.topology.resume()
                late_s = seconds(lambda: waiting.result(2 * store.timeout_s))
            assert store.read(key)[0] == str(number).encode()
            return late_s

        assert any(late_s(number) < store.promptly_s for number in range(5))

    @category("visibility")
    def test_times_out_in_time(self, store: ContractStore, key: str) -> None:
        """A barrier that cannot pass ends within 100 ms of its deadline."""
        store.topology.pause()
        lineage = Lineage([written(store, key)])

        def fails() -> None:
            assert seconds(lambda: times_out(store, lineage, timeout=0.2)) >= 0.2  # noqa: PLR2004

        assert in_time(0.2 + LATE_S, fails)

    @category("visibility")
    def test_check_does_not_wait(self, store: ContractStore, key: str) -> None:
        """``check`` reports at once what is not visible, and later that it is."""
        store.topology.pause()
        lineage = Lineage([written(store, key)])
        assert in_time(LATE_S, lambda: store.antipode.check(lineage))
        assert statuses(store.antipode.check(lineage)) == {Status.NOT_YET}
        store.topology.resume()
        wait_until(
            lambda: store.antipode.check(lineage).ok, what="check", timeout_s=store.timeout_s
        )

    @category("visibility")
    def test_table2_wait(self, store: ContractStore, key: str) -> None:
        """``shim.wait(lineage)`` waits for this datastore alone."""
        write = written(store, key)
        lineage = Lineage([write, ELSEWHERE])
        for result in (
            store.reader.wait(lineage, timeout=store.timeout_s),
            asyncio.run(store.reader.wait_async(lineage, timeout=store.timeout_s)),
        ):
            assert {o.write: o.status for o in result.outcomes} == {
                write: Status.VISIBLE,
                ELSEWHERE: Status.EXCLUDED,
            }

    @category("floors")
    def test_floor_holds_the_read_back(self, store: ContractStore, key: str) -> None:
        """``barrier(at="read")`` returns at once; the next read waits, and is not stale."""
        replicated(store, key, b"old")
        store.topology.pause()
        with store.antipode.scope(), ThreadPoolExecutor(1) as pool:
            store.write(key, b"new")
            result = store.antipode.barrier(timeout=store.timeout_s, at="read")
            assert statuses(result) == {Status.DEFERRED}
            lineage = store.antipode.current()

            def read() -> bytes | None:
                with store.antipode.scope(lineage):
                    store.antipode.barrier(timeout=store.timeout_s, at="read")
                    return store.read(key)[0]

            reading = pool.submit(read)
            pass_time(store.settle_s)
            assert not reading.done()
            store.topology.resume()
            assert reading.result(store.timeout_s) == b"new"
            assert store.read(key)[0] == b"new"

    @category("floors")
    def test_floor_times_out(self, store: ContractStore, key: str) -> None:
        """A read that cannot satisfy its floor raises at the deadline and shows nothing."""
        replicated(store, key, b"old")
        store.topology.pause()
        write = written(store, key, b"new")

        def fails() -> None:
            with store.antipode.scope(Lineage([write])):
                store.antipode.barrier(timeout=0.2, at="read")
                with pytest.raises(BarrierTimeout):
                    store.read(key)

        assert in_time(0.2 + LATE_S, fails)

    @category("floors", "failover")
    def test_floor_on_a_lost_write(self, store: ContractStore, key: str) -> None:
        """A read whose floor demands a lost write raises, and does not wait for the deadline."""
        replicated(store, key, b"old")
        store.topology.pause()
        write = written(store, key, b"new")
        store.topology.failover(lose_unreplicated=True)
        with store.antipode.scope(Lineage([write])):
            store.antipode.barrier(timeout=store.timeout_s, at="read")

            def fails() -> None:
                with pytest.raises(UnmetError) as caught:
                    store.read(key)
                assert statuses(caught.value.result) <= store.lost

            assert seconds(fails) < store.timeout_s / 2

    @category("floors")
    def test_floor_does_not_block_the_loop(self, store: ContractStore, key: str) -> None:
        """Under asyncio a read that is held back lets other tasks run."""
        replicated(store, key, b"old")
        store.topology.pause()
        write = written(store, key, b"new")

        async def read() -> bytes | None:
            with store.antipode.scope(Lineage([write])):
                store.antipode.barrier(timeout=store.timeout_s, at="read")
                return (await store.read_async(key))[0]

        async def both() -> bytes | None:
            reading = asyncio.ensure_future(read())
            await asyncio.sleep(store.settle_s)
            assert not reading.done()
            store.topology.resume()
            return await reading

        assert asyncio.run(both()) == b"new"

    @category("floors")
    def test_floor_spends_its_timeout_while_waiting_only(
        self, store: ContractStore, key: str
    ) -> None:
        """Time between ``barrier(at="read")`` and the read does not count."""
        store.topology.pause()
        with store.antipode.scope() as scope:
            store.write(key, b"1")
            store.antipode.barrier(timeout=store.settle_s, at="read")
            pass_time(2 * store.settle_s)
            store.topology.resume()
            wait_until(
                lambda: store.antipode.check(scope.lineage).ok, what="it", timeout_s=store.timeout_s
            )
            assert store.read(key)[0] == b"1"

    @category("floors")
    def test_floor_needs_a_scope(self, store: ContractStore, key: str) -> None:
        """Outside of a scope ``at="read"`` is refused: nothing could remember the floor."""
        lineage = Lineage([written(store, key)])
        with pytest.raises(ConfigurationError):
            store.antipode.barrier(lineage, timeout=store.timeout_s, at="read")

    @category("faces")
    def test_faces_agree(self, store: ContractStore, key: str) -> None:
        """Sync, asyncio, callback and check come to the same outcome."""
        met = replicated(store, key)
        for write in (met, store.unknown(met)):
            assert len(_outcomes_by_face(store, Lineage([write]), store.timeout_s)) == 1, write
        store.topology.pause()
        not_met = written(store, key, b"2")
        assert len(_outcomes_by_face(store, Lineage([not_met]), store.settle_s)) == 1

    @category("fences")
    def test_fence_stands_for_dropped_writes(self, store: ContractStore, key: str) -> None:
        """A lineage shortened for size waits for all that the primary had acknowledged by then."""
        replicated(store, key, b"old")
        shortened = Lineage(incomplete=[(store.datastore, "size")])
        assert store.antipode.barrier(shortened, timeout=store.timeout_s).ok
        before = _fences(store)
        store.topology.pause()
        written(store, key, b"new")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(
                store.antipode.barrier, shortened, timeout=store.timeout_s, only=store.datastore
            )
            # It waits once it has the primary's position, however long a connection there takes.
            wait_until(lambda: _fences(store) > before, what="a fence", timeout_s=store.timeout_s)
            pass_time(store.settle_s)
            assert not waiting.done()
            store.topology.resume()
            assert waiting.result(2 * store.timeout_s).ok
        assert store.read(key)[0] == b"new"

    @category("sharing")
    def test_equal_waits_share(self, store: ContractStore, key: str) -> None:
        """However many wait for a store, one thread polls, on one connection."""
        replicated(store, key)
        before = store.connections()
        store.topology.pause()
        lineage = Lineage([written(store, key)])
        ready = threading.Barrier(9)

        def wait(_: int) -> None:
            ready.wait()
            store.antipode.barrier(lineage, timeout=store.timeout_s)

        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(wait, index) for index in range(8)]
            ready.wait()
            pass_time(store.settle_s)
            assert store.watchers() == [f"antipode-watch-{store.datastore}"]
            assert store.connections() - before < 8  # noqa: PLR2004 - one a waiter would be
            store.topology.resume()
            for each in waiting:
                each.result(store.timeout_s)

    @category("race")
    def test_token_covers_its_write(self, store: ContractStore, key: str) -> None:
        """With many writers at once, a token is never below its write: no read comes too early."""
        store.topology.set_lag(2)

        def work(index: int) -> None:
            for number in range(WRITES):
                mine, value = f"{key}-{index}-{number % 3}", str(number).encode()
                with store.antipode.scope():
                    store.write(mine, value)
                    store.antipode.barrier(timeout=store.timeout_s)
                    assert store.read(mine)[0] == value, f"barrier passed early: {mine}"

        in_threads(work, WRITERS)

    @category("race", "floors")
    def test_floors_hold_under_load(self, store: ContractStore, key: str) -> None:
        """With many requests at once, a read under a floor never shows what was before."""
        store.topology.set_lag(2)

        def work(index: int) -> None:
            for number in range(WRITES):
                mine, value = f"{key}-{index}-{number % 3}", str(number).encode()
                with store.antipode.scope():
                    store.write(mine, value)
                    store.antipode.barrier(timeout=store.timeout_s, at="read")
                    assert store.read(mine)[0] == value, f"the floor let a stale read by: {mine}"

        in_threads(work, WRITERS)

    @category("race")
    def test_read_covers_what_it_showed(self, store: ContractStore, key: str) -> None:
        """What a read at the primary showed is at the replica once its lineage is awaited."""
        replicated(store, key, b"0")
        store.topology.set_lag(2)
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(1, WRITERS * WRITES):
                    written(store, key, str(number).encode())
            finally:
                done.set()

        def observe() -> None:
            while not done.is_set():
                with store.antipode.scope():
                    shown, lineage = store.read_primary(key)
                    store.antipode.barrier(lineage, timeout=store.timeout_s)
                    later, _ = store.read(key)
                assert shown is not None
                assert later is not None
                assert int(later) >= int(shown), "a read's position does not cover its value"

        in_threads(lambda index: observe() if index else write(), WRITERS)


def _fences(store: ContractStore) -> int:
    """How many primaries have said where they are."""
    return int(store.antipode.telemetry.metrics().get(Metric("fences", store.datastore), 0))


def _outcomes_by_face(
    store: ContractStore, lineage: Lineage, timeout: float
) -> set[frozenset[Status]]:
    """The outcomes that each API comes to."""
    called: list[BarrierResult] = []
    called_back = threading.Event()

    def callback(result: BarrierResult) -> None:
        called.append(result)
        called_back.set()

    store.antipode.barrier_callback(callback, lineage, timeout=timeout)
    assert called_back.wait(2 * store.timeout_s)
    results = [
        called[0],
        store.antipode.barrier(lineage, timeout=timeout, on_unmet="return"),
        asyncio.run(store.antipode.barrier_async(lineage, timeout=timeout, on_unmet="return")),
        store.antipode.check(lineage),
        asyncio.run(store.antipode.check_async(lineage)),
    ]
    return {frozenset(statuses(result)) for result in results}
