"""Claims about promises: fulfilled with the data, given up for good, waited for like writes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from antipode import (
    BarrierTimeout,
    DependencyLost,
    Lineage,
    Promise,
    PromiseAbandoned,
    Status,
)
from antipode_testing._wait import wait_until

from .base import LATE_S, category, in_threads, in_time, replicated, statuses, times_out, written
from .dry import all_verdicts, dry_run

if TYPE_CHECKING:
    from pathlib import Path

    from .store import ContractStore

WRITERS = 4
WRITES = 25
EXPIRES_IN_S = 600.0


class PromiseContract:
    """A promise stands for a write that is still to come."""

    @category("promises")
    def test_fulfilment_comes_with_its_data(self, store: ContractStore, key: str) -> None:
        """Where a promise is met, the data that fulfils it can be read; not before."""
        replicated(store, key, b"old")
        store.topology.pause()
        lineage = Lineage(promises=[promise := promised(store)])
        fulfilled(store, key, b"new", promise)
        times_out(store, lineage, timeout=store.settle_s)
        store.topology.resume()
        result = store.antipode.barrier(lineage, timeout=store.timeout_s)
        assert statuses(result) == {Status.VISIBLE}
        with store.antipode.scope():
            assert store.read(key)[0] == b"new"

    @category("promises")
    def test_fulfilment_wakes_who_waits(self, store: ContractStore, key: str) -> None:
        """A barrier that waits before the branch has written passes promptly once it has."""
        lineage = Lineage(promises=[promise := promised(store)])

        async def wait() -> float:
            waiting = asyncio.ensure_future(
                store.antipode.barrier_async(lineage, timeout=store.timeout_s)
            )
            await asyncio.sleep(store.settle_s)
            assert not waiting.done()
            await asyncio.to_thread(fulfilled, store, key, b"new", promise)
            since_s = time.monotonic()
            assert (await waiting).ok
            return time.monotonic() - since_s

        assert asyncio.run(wait()) < store.promptly_s

    @category("promises")
    def test_unfulfilled_promise_times_out(self, store: ContractStore, key: str) -> None:
        """Other writes fulfil nothing: that a key is there, or changed, is not the promise."""
        lineage = Lineage(promises=[promised(store)])
        written(store, key, b"other")
        fulfilled(store, key, b"another", promised(store))

        def fails() -> None:
            times_out(store, lineage, timeout=0.2)

        assert in_time(0.2 + LATE_S, fails)

    @category("promises")
    def test_promise_beside_a_write(self, store: ContractStore, key: str) -> None:
        """A write and a promise of one datastore are waited for together."""
        promise = promised(store)
        store.topology.pause()
        write = written(store, key)
        lineage = Lineage([write], promises=[promise])
        error = times_out(store, lineage, timeout=store.settle_s)
        assert {outcome.write for outcome in error.unmet} == {write, promise}
        store.topology.resume()
        assert store.antipode.barrier(Lineage([write]), timeout=store.timeout_s).ok
        error = times_out(store, lineage, timeout=store.settle_s)
        assert [outcome.write for outcome in error.unmet] == [promise]
        fulfilled(store, key, b"2", promise)
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok

    @category("promises")
    def test_rolled_back_transaction_fulfils_nothing(self, store: ContractStore, key: str) -> None:
        """The record is of the same transaction as the data: it goes when that is rolled back."""
        promise = promised(store)
        with contextlib.suppress(Exception), store.antipode.scope():
            store.rolled_back(key, b"never", promise)
        times_out(store, Lineage(promises=[promise]), timeout=store.settle_s)
        fulfilled(store, key, b"after all", promise)
        assert store.antipode.barrier(Lineage(promises=[promise]), timeout=store.timeout_s).ok

    @category("promises")
    def test_second_fulfilment_is_the_same(self, store: ContractStore, key: str) -> None:
        """A branch whose message is delivered again writes again, but does not fulfil again."""
        promise = promised(store)
        for value in b"1", b"2":
            fulfilled(store, key, value, promise)
        assert store.antipode.barrier(Lineage(promises=[promise]), timeout=store.timeout_s).ok

    @category("promises")
    def test_fulfilment_enters_the_scope(self, store: ContractStore, key: str) -> None:
        """The write that fulfils is a dependency as any other, and its branch never waits for it.

        The branch got the promise with its message, and runs in ``fulfilling()``.
        """
        promise = promised(store)
        with store.antipode.scope(Lineage(promises=[promise])) as scope:
            with store.antipode.fulfilling(promise.token) as mine:
                assert store.antipode.check().ok
                store.fulfil(key, b"1", mine)
            assert scope.lineage.promises == {promise}
            assert scope.lineage.datastores == {store.datastore}
            assert len(scope.lineage) == 1
            assert store.antipode.barrier(timeout=store.timeout_s).ok

    @category("promises")
    def test_check_tells_of_promises(self, store: ContractStore, key: str) -> None:
        """A consumer that checks learns that the branch has not written yet, and that it has."""
        lineage = Lineage(promises=[promise := promised(store)])
        assert statuses(store.antipode.check(lineage)) == {Status.NOT_YET}
        fulfilled(store, key, b"1", promise)
        wait_until(
            lambda: store.antipode.check(lineage).ok, what="the record", timeout_s=store.timeout_s
        )
        assert statuses(asyncio.run(store.antipode.check_async(lineage))) == {Status.VISIBLE}

    @category("promises", "abandonment")
    def test_expired_promise_is_abandoned(self, store: ContractStore, key: str) -> None:
        """Without a record a promise ends an hour after its expiry; with one it stays met."""
        kept, broken = (promised(store, expires_in_s=-2 * 3600) for _ in range(2))
        fulfilled(store, key, b"1", kept)
        lineage = Lineage(promises=[kept])
        wait_until(
            lambda: statuses(store.antipode.check(lineage)) == {Status.VISIBLE},
            what="the record of an expired promise",
            timeout_s=store.timeout_s,
        )
        with pytest.raises(DependencyLost):
            store.antipode.barrier(Lineage(promises=[broken]), timeout=store.timeout_s)

    @category("abandonment")
    def test_abandoned_promise_ends_the_barrier(self, store: ContractStore, key: str) -> None:
        """Who waits for a promise that is given up learns so at once, wherever it waits."""
        del key
        lineage = Lineage(promises=[promise := promised(store)])

        async def wait() -> None:
            waiting = asyncio.ensure_future(
                store.antipode.barrier_async(lineage, timeout=store.timeout_s)
            )
            await asyncio.sleep(store.settle_s)
            assert await store.antipode.abandon_async(promise)
            with pytest.raises(DependencyLost) as caught:
                await asyncio.wait_for(waiting, store.timeout_s / 2)
            assert statuses(caught.value.result) == {Status.ABANDONED}

        asyncio.run(wait())

    @category("abandonment")
    def test_fulfilment_after_abandonment_fails(self, store: ContractStore, key: str) -> None:
        """What nobody waits for any more is not written as if they did: the error says so."""
        replicated(store, key, b"old")
        promise = promised(store)
        assert store.antipode.abandon(promise.token)
        with store.antipode.scope() as scope, pytest.raises(PromiseAbandoned):
            store.fulfil(key, b"new", promise)
        assert scope.lineage.empty, "nothing was written, and nothing is in doubt"
        with store.antipode.scope():
            assert store.read_primary(key)[0] == b"old"
        with pytest.raises(DependencyLost):
            store.antipode.barrier(Lineage(promises=[promise]), timeout=store.timeout_s)

    @category("abandonment")
    def test_abandonment_after_fulfilment_is_late(self, store: ContractStore, key: str) -> None:
        """The first record stays: giving up a promise that was fulfilled changes nothing."""
        promise = promised(store)
        fulfilled(store, key, b"1", promise)
        assert not store.antipode.abandon(promise)
        assert store.antipode.barrier(Lineage(promises=[promise]), timeout=store.timeout_s).ok

    @category("abandonment", "race")
    def test_one_record_wins(self, store: ContractStore, key: str) -> None:
        """Of a fulfilment and an abandonment at once one fails, and waiting shows which."""

        def work(index: int) -> None:
            kept = abandoned = False
            promise = promises[index // 2]
            if index % 2:
                abandoned = store.antipode.abandon(promise)
            else:
                with store.antipode.scope(), contextlib.suppress(*store.aborted):
                    store.fulfil(f"{key}-{index}", b"1", promise)
                    kept = True
            ends[index] = kept or abandoned

        for _ in range(5):
            promises = [promised(store) for _ in range(WRITERS)]
            ends = [False] * 2 * WRITERS
            in_threads(work, 2 * WRITERS)
            for number, promise in enumerate(promises):
                result = store.antipode.barrier(
                    Lineage(promises=[promise]), timeout=store.timeout_s, on_unmet="return"
                )
                kept, abandoned = ends[2 * number : 2 * number + 2]
                assert kept is not abandoned
                assert statuses(result) == {Status.VISIBLE if kept else Status.ABANDONED}

    @category("promises", "floors")
    def test_floor_waits_for_the_record(self, store: ContractStore, key: str) -> None:
        """``barrier(at="read")`` holds a read back until its own connection shows the record."""
        replicated(store, key, b"old")
        store.topology.set_lag(100)
        promise = promised(store)
        with store.antipode.scope(Lineage(promises=[promise])):
            assert statuses(store.antipode.barrier(timeout=store.timeout_s, at="read")) == {
                Status.DEFERRED
            }
            fulfilled(store, key, b"new", promise)
            assert store.read(key)[0] == b"new"
            assert asyncio.run(store.read_async(key))[0] == b"new"

    @category("promises", "floors")
    def test_floor_without_the_record_times_out(self, store: ContractStore, key: str) -> None:
        """A read that waits for a branch that does not write raises at its deadline."""
        replicated(store, key, b"old")

        def fails() -> None:
            with store.antipode.scope(Lineage(promises=[promised(store)])):
                store.antipode.barrier(timeout=0.2, at="read")
                with pytest.raises(BarrierTimeout):
                    store.read(key)

        assert in_time(0.2 + LATE_S, fails)

    @category("promises", "floors")
    def test_floor_follows_a_barrier(self, store: ContractStore, key: str) -> None:
        """What a barrier at once found fulfilled, the reads after it find on their connections."""
        promise = promised(store)
        with store.antipode.scope(Lineage(promises=[promise])):
            fulfilled(store, key, b"new", promise)
            assert store.antipode.barrier(timeout=store.timeout_s).ok
            assert store.read(key)[0] == b"new"
            assert asyncio.run(store.read_async(key))[0] == b"new"

    @category("abandonment", "floors")
    def test_floor_on_an_abandoned_promise(self, store: ContractStore, key: str) -> None:
        """A read whose floor demands what was given up raises, and shows nothing."""
        replicated(store, key, b"old")
        promise = promised(store)
        store.antipode.abandon(promise)
        with store.antipode.scope(Lineage(promises=[promise])):
            store.antipode.barrier(timeout=store.timeout_s, at="read")
            with pytest.raises(DependencyLost):
                store.read(key)

    @category("promises", "race")
    def test_record_is_never_before_its_data(self, store: ContractStore, key: str) -> None:
        """With many branches at once, whoever waited for a promise reads what fulfilled it."""
        store.topology.set_lag(2)

        def work(index: int) -> None:
            for number in range(WRITES):
                mine, value = f"{key}-{index}-{number % 3}", str(number).encode()
                promise = promised(store)
                fulfilled(store, mine, value, promise)
                with store.antipode.scope(Lineage(promises=[promise])):
                    store.antipode.barrier(timeout=store.timeout_s)
                    assert store.read(mine)[0] == value, f"barrier passed early: {mine}"

        in_threads(work, WRITERS)

    @category("promises", "reseed")
    def test_record_that_is_gone_is_not_met(self, store: ContractStore, key: str) -> None:
        """A promise that was met before the replica went back is not taken for met after."""
        lineage = Lineage(promises=[promise := promised(store)])
        fulfilled(store, key, b"1", promise)
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok
        with store.regressed():
            result = store.antipode.barrier(lineage, timeout=store.settle_s, on_unmet="return")
            assert not result.ok
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok

    @category("promises", "failover")
    def test_lost_record_leaves_the_promise_open(self, store: ContractStore, key: str) -> None:
        """A fail-over that loses the fulfilment loses no promise: the branch may write again."""
        lineage = Lineage(promises=[promise := promised(store)])
        replicated(store, key)
        store.topology.pause()
        fulfilled(store, key, b"lost", promise)
        store.topology.failover(lose_unreplicated=True)
        times_out(store, lineage, timeout=store.settle_s)
        store.reconnect()
        fulfilled(store, key, b"again", promise)
        assert store.antipode.barrier(lineage, timeout=store.timeout_s).ok

    @category("promises", "dry_run")
    def test_read_without_barrier_for_a_promise(
        self, store: ContractStore, key: str, tmp_path: Path
    ) -> None:
        """In a dry run a read at the replica that does not wait for a promise is a finding."""
        with dry_run(store, tmp_path), store.antipode.scope():
            promise = store.antipode.promise(store.datastore, expires_in_s=EXPIRES_IN_S)
            store.read(key)
            assert store.antipode.barrier(timeout=store.timeout_s).ok
            store.read(key)
        named = {"datastore": store.datastore, "log": "promise", "version": promise.id}
        assert all_verdicts(tmp_path) == [("unguarded", [named]), ("guarded", [named])]


def promised(store: ContractStore, *, expires_in_s: float = EXPIRES_IN_S) -> Promise:
    """A promise on the store, which another service made."""
    if expires_in_s > 0:
        with store.antipode.scope():
            promise: Promise = store.antipode.promise(store.datastore, expires_in_s=expires_in_s)
            return promise
    fresh = promised(store)
    return Promise(fresh.datastore, fresh.id, int(time.time() + expires_in_s))


def fulfilled(store: ContractStore, key: str, value: bytes, promise: Promise) -> None:
    """Write what was promised, outside of the caller's scope."""
    with store.antipode.scope():
        store.fulfil(key, value, promise)
