"""Claims about faults: fail-over, re-seeding, unknown logs, unreachable servers, leaks."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from antipode import ConfigurationError, Lineage, Status, UnmetError, VisibilityCheckError, WriteId
from antipode._runtime.clock import SYSTEM_CLOCK
from antipode.telemetry import Metric
from antipode_testing._errors import TopologyTimeout
from antipode_testing._wait import wait_until

from .base import (
    LATE_S,
    category,
    in_threads,
    in_time,
    minted,
    replicated,
    seconds,
    statuses,
    times_out,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import BarrierResult

    from .store import ContractStore

WRITERS = 6
WRITES = 60
# Rounds within which the pools of client libraries have reached their size.
ROUNDS = 4
LONG_AGO_H = 24 * 30


class FaultContract:
    """Barriers neither hang nor pass silently, whatever happens to the store."""

    @category("failover")
    def test_failover_with_the_write(self, store: ContractStore, key: str) -> None:
        """A write that the promoted replica has stays visible there."""
        write = written(store, key)
        store.topology.failover(lose_unreplicated=False)
        assert store.antipode.barrier(Lineage([write]), timeout=store.timeout_s).ok
        with store.antipode.scope():
            assert store.read(key)[0] == b"1"

    @category("failover")
    def test_failover_without_the_write(self, store: ContractStore, key: str) -> None:
        """A write that the fail-over lost ends the barrier, at once and by its name."""
        replicated(store, key, b"old")
        store.topology.pause()
        write = written(store, key, b"new")
        store.topology.failover(lose_unreplicated=True)

        def fails() -> None:
            with pytest.raises(UnmetError) as caught:
                store.antipode.barrier(Lineage([write]), timeout=store.timeout_s)
            assert statuses(caught.value.result) <= store.lost

        assert seconds(fails) < store.timeout_s / 2

    @category("failover")
    def test_waiting_through_a_failover(self, store: ContractStore, key: str) -> None:
        """A barrier that waits while the write is lost ends; it does not pass."""
        replicated(store, key, b"old")
        store.topology.pause()
        write = written(store, key, b"new")
        ended: list[BarrierResult] = []
        done = threading.Event()

        def callback(result: BarrierResult) -> None:
            ended.append(result)
            done.set()

        store.antipode.barrier_callback(callback, Lineage([write]), timeout=store.timeout_s)
        store.topology.failover(lose_unreplicated=True)
        assert done.wait(2 * store.timeout_s)
        assert statuses(ended[0]) <= store.lost
        assert not ended[0].ok

    @category("failover")
    def test_old_and_new_log(self, store: ContractStore, key: str) -> None:
        """After a fail-over, writes from before and after it are judged side by side."""
        before = written(store, key, b"1")
        store.topology.failover(lose_unreplicated=False)
        store.reconnect()
        after = written(store, key, b"2")
        assert store.antipode.barrier(Lineage([before, after]), timeout=store.timeout_s).ok
        with store.antipode.scope():
            assert store.read(key)[0] == b"2"

    @category("failover", "race")
    def test_failover_under_load(self, store: ContractStore, key: str) -> None:
        """Whatever a fail-over cuts in two: what is visible is there, what is lost is not."""
        store.topology.set_lag(3)
        acknowledged: list[tuple[str, WriteId]] = []
        halfway = threading.Event()

        def work(index: int) -> None:
            if index == 0:
                assert halfway.wait(store.timeout_s)
                store.topology.failover(lose_unreplicated=True)
                return
            for number in range(WRITES):
                mine = f"{key}-{index}-{number}"
                acknowledged.append((mine, written(store, mine)))
                if len(acknowledged) > WRITES:
                    halfway.set()

        in_threads(work, 3)
        for mine, write in acknowledged:
            shown = statuses(store.antipode.check(Lineage([write])))
            value = b"1" if shown == {Status.VISIBLE} else None
            assert value is not None or shown <= store.lost
            with store.antipode.scope():
                assert store.read(mine)[0] == value, f"{mine} is {shown}"

    @category("unknown_log")
    def test_young_unknown_log(self, store: ContractStore, key: str) -> None:
        """A recent write on a log that the replica does not know raises, and does not wait."""
        unknown = replace(store.unknown(replicated(store, key)), written_hour=SYSTEM_CLOCK.hour())

        def fails() -> None:
            with pytest.raises(VisibilityCheckError) as caught:
                store.antipode.barrier(Lineage([unknown]), timeout=store.timeout_s)
            assert statuses(caught.value.result) == {Status.UNKNOWN_LOG}

        assert seconds(fails) < store.timeout_s / 2

    @category("unknown_log")
    def test_unknown_log_reported(self, store: ContractStore, key: str) -> None:
        """``on_unknown="report"`` lets it pass and reports it."""
        unknown = replace(store.unknown(replicated(store, key)), written_hour=SYSTEM_CLOCK.hour())
        result = store.antipode.barrier(
            Lineage([unknown]), timeout=store.timeout_s, on_unknown="report"
        )
        assert result.ok
        assert statuses(result) == {Status.UNKNOWN_LOG}

    @category("unknown_log")
    def test_other_name_is_noticed(self, store: ContractStore, key: str) -> None:
        """A lineage that names this store otherwise is refused, if only it can have its logs."""
        write = replicated(store, key)
        other = Lineage([replace(write, datastore=f"{store.datastore}-misspelt")])
        if store.has_unique_log(write):
            with pytest.raises(ConfigurationError, match=repr(store.datastore)):
                store.antipode.barrier(other, timeout=store.timeout_s)
            return
        result = store.antipode.barrier(other, timeout=store.timeout_s)
        assert result.ok
        assert statuses(result) == {Status.UNKNOWN_STORE}

    @category("unknown_log")
    def test_region_clock_is_unknown_log(self, store: ContractStore, key: str) -> None:
        """The log of a region's clock, which is reserved, is one that nobody knows."""
        hour = SYSTEM_CLOCK.hour()
        clock = replace(
            replicated(store, key), key="~us-east.3", version=1_792_800_000_123, written_hour=hour
        )
        result = store.antipode.barrier(
            Lineage([clock]), timeout=store.timeout_s, on_unmet="return"
        )
        assert statuses(result) == {Status.UNKNOWN_LOG}

    @category("unknown_log")
    def test_old_unknown_log_ages(self, store: ContractStore, key: str) -> None:
        """One older than the horizon passes, is counted and leaves the scope."""
        long_ago = SYSTEM_CLOCK.hour() - LONG_AGO_H
        unknown = replace(store.unknown(replicated(store, key)), written_hour=long_ago)
        metric = Metric("aged", store.datastore)
        before = store.antipode.telemetry.metrics().get(metric, 0)
        with store.antipode.scope(Lineage([unknown])) as scope:
            result = store.antipode.barrier(timeout=store.timeout_s)
            assert result.ok
            assert statuses(result) == {Status.AGED}
            assert unknown not in scope.lineage
        assert store.antipode.telemetry.metrics()[metric] == before + 1

    @category("reseed")
    def test_regress_is_noticed(self, store: ContractStore, key: str) -> None:
        """What was visible before the replica went back is not taken for visible after."""
        lineage = Lineage([replicated(store, key)])
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok
        with store.regressed():
            times_out(store, lineage, timeout=store.settle_s)
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok

    @category("reseed")
    def test_reseed_keeps_tokens(self, store: ContractStore, key: str) -> None:
        """After a re-seed from the same primary old tokens are visible with their values."""
        lineage = Lineage([replicated(store, key)])
        store.topology.reseed()
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok
        with store.antipode.scope():
            assert store.read(key)[0] == b"1"

    @category("unreachable")
    def test_unreachable_server(self, store: ContractStore, key: str) -> None:
        """A server that does not answer is retried until the deadline, with its own outcome."""
        replicated(store, key)
        with store.unreachable():
            lineage = Lineage([written(store, key, b"2")])

            def fails() -> None:
                error = times_out(store, lineage, timeout=0.3)
                assert statuses(error.result) == {Status.UNREACHABLE}

            assert in_time(0.3 + LATE_S, fails)
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok

    @category("unreachable")
    def test_server_comes_back_while_waiting(self, store: ContractStore, key: str) -> None:
        """A barrier that waits for a server passes when the server is back."""
        replicated(store, key)
        ended: list[BarrierResult] = []
        done = threading.Event()

        def callback(result: BarrierResult) -> None:
            ended.append(result)
            done.set()

        with store.unreachable():
            lineage = Lineage([written(store, key, b"2")])
            store.antipode.barrier_callback(callback, lineage, timeout=store.timeout_s)
            assert not done.wait(store.settle_s)
        assert done.wait(2 * store.timeout_s)
        assert ended[0].ok

    @category("isolation")
    def test_threads_do_not_mix(self, store: ContractStore, key: str) -> None:
        """Requests in threads of one process never get each other's dependencies."""

        def work(index: int) -> None:
            own = WriteId("elsewhere", f"request-{index}", 1, 490_000)
            for number in range(5):
                with store.antipode.scope(Lineage([own])) as scope:
                    store.write(f"{key}-{index}", str(number).encode())
                    store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
                    store.read(f"{key}-{index}")
                    assert set(scope.lineage.only("elsewhere")) == {own}

        in_threads(work, WRITERS)

    @category("isolation")
    def test_tasks_do_not_mix(self, store: ContractStore, key: str) -> None:
        """Requests in tasks of one event loop never get each other's dependencies."""

        async def request(index: int) -> None:
            own = WriteId("elsewhere", f"request-{index}", 1, 490_000)
            with store.antipode.scope(Lineage([own])) as scope:
                store.write(f"{key}-{index}", b"1")
                await store.antipode.barrier_async(timeout=store.timeout_s, only=store.datastore)
                store.read(f"{key}-{index}")
                assert set(scope.lineage.only("elsewhere")) == {own}

        async def requests() -> None:
            await asyncio.gather(*map(request, range(WRITERS)))

        asyncio.run(requests())

    @category("isolation")
    def test_sequential_requests_do_not_mix(self, store: ContractStore, key: str) -> None:
        """What one request wrote is no dependency of the next one on the same thread."""
        with store.antipode.scope():
            store.write(key, b"1")
        with store.antipode.scope() as scope:
            assert scope.lineage.empty

    @category("leaks")
    def test_timeouts_leave_nothing(self, store: ContractStore, key: str) -> None:
        """Barriers that time out leave no thread, and no connection more than the first."""
        replicated(store, key)
        store.topology.pause()
        lineage = Lineage([written(store, key)])
        times_out(store, lineage, timeout=0.5)

        def time_out() -> None:
            for _ in range(5):
                times_out(store, lineage, timeout=0.05)

        _leaves_nothing(store, time_out)

    @category("leaks")
    def test_cancelling_leaves_nothing(self, store: ContractStore, key: str) -> None:
        """Barriers that are cancelled leave no thread, task or connection."""
        replicated(store, key)
        store.topology.pause()
        lineage = Lineage([written(store, key)])
        times_out(store, lineage, timeout=0.5)

        async def cancelled() -> None:
            waiting = asyncio.ensure_future(
                store.antipode.barrier_async(lineage, timeout=store.timeout_s)
            )
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert asyncio.all_tasks() == {asyncio.current_task()}

        called: list[object] = []

        def cancel() -> None:
            for _ in range(3):
                asyncio.run(cancelled())
                store.antipode.barrier_callback(
                    called.append, lineage, timeout=store.timeout_s
                ).cancel()

        _leaves_nothing(store, cancel)
        assert not called

    @category("leaks")
    def test_closing_releases(self, store: ContractStore, key: str) -> None:
        """Closing a shim closes whatever its barriers opened."""
        written(store, key)
        before = store.connections()
        replicated(store, key)
        store.reader.close()
        _nothing_is_left(store, before)

    @category("leaks")
    def test_closing_fails_who_waits(self, store: ContractStore, key: str) -> None:
        """Closing a shim ends the barriers that wait at it; nobody hangs."""
        store.topology.pause()
        write = minted(store, Lineage(), store.write(key, b"1"))
        ended: list[BarrierResult] = []
        done = threading.Event()

        def callback(result: BarrierResult) -> None:
            ended.append(result)
            done.set()

        store.antipode.barrier_callback(callback, Lineage([write]), timeout=store.timeout_s)
        wait_until(lambda: bool(store.watchers()), what="the watcher", timeout_s=store.timeout_s)
        store.reader.close()
        assert done.wait(store.timeout_s / 2)
        assert not ended[0].ok


def _leaves_nothing(store: ContractStore, act: Callable[[], None]) -> None:
    """See a round of *act* leave no connection: a pool settles in time, a leak never does.

    A client library may open a connection more when two calls happen to overlap, or close one
    whose call ran out of time, so that no single round is the measure.
    """
    for _ in range(ROUNDS):
        _no_thread_is_left(store)
        before = store.connections()
        act()
        _no_thread_is_left(store)
        with suppress(TopologyTimeout):
            _nothing_is_left(store, before)
            return
    pytest.fail(f"connections are left by each of {ROUNDS} rounds")


def _no_thread_is_left(store: ContractStore) -> None:
    wait_until(lambda: not store.watchers(), what="threads to end", timeout_s=store.timeout_s)


def _nothing_is_left(store: ContractStore, before: int) -> None:
    _no_thread_is_left(store)
    wait_until(
        lambda: store.connections() <= before,
        what="connections to be closed",
        timeout_s=store.timeout_s,
    )
