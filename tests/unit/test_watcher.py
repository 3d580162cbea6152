"""What a watcher knows without a look, and what it forgets; what a cancelled barrier records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode._barrier.decisions import Policies, Wait
from antipode._barrier.waiter import Waiter
from antipode._request.scope import Scope
from antipode.shim import PRIMARY_KEY, Observation
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from antipode._request.scope import Attachment

FIRST, SECOND = WriteId("a", "log", 7, 500_000), WriteId("a", "other", 9, 500_000)
POLICIES = Policies("raise", None, "raise", horizon_h=168, hour=500_000)


@pytest.fixture
def clock() -> VirtualClock:
    """Time that passes only between events."""
    return VirtualClock()


def test_what_a_lost_connection_showed_is_asked_again(clock: VirtualClock) -> None:
    """A server that answers over a new connection, by the same name, may have another history."""
    with FakeStore("a", clock, pinned=True, reads_from="replica") as store:
        antipode.shim.register(store)
        store.set_status(FIRST, Status.VISIBLE)
        store.set_status(SECOND, Status.VISIBLE)
        clock.barrier(Lineage([FIRST]), timeout=1)
        store.take_down(from_s=1, until_s=2)
        store.set_status(FIRST, Status.NOT_YET, at_s=1)
        clock.barrier(Lineage([SECOND]), timeout=0.5, at_s=1, on_unmet="return")
        clock.barrier(Lineage([SECOND]), timeout=1, at_s=3)
        last = clock.barrier(Lineage([FIRST]), timeout=1, at_s=4, on_unmet="return")
        clock.run()
    assert last.result is not None
    assert not last.result


def test_which_primary_is_followed_is_never_known(clock: VirtualClock) -> None:
    """A look that showed it says nothing of a moment later."""
    primary = replace(FIRST, key=PRIMARY_KEY, version="primary-1")
    with FakeStore("a", clock, pinned=True, reads_from="replica") as store:
        antipode.shim.register(store)
        store.set_status(primary, Status.VISIBLE)
        store.set_status(FIRST, Status.VISIBLE)
        clock.barrier(Lineage([primary, FIRST]), timeout=1)
        clock.run()
        assert store.watcher.recall([FIRST]) is not None
        assert store.watcher.recall([primary]) is None


def test_a_cancelled_barrier_records_nothing(clock: VirtualClock) -> None:
    """A look that ends after the cancellation changes no outcome, and notifies nobody."""
    notified: list[None] = []
    with FakeStore("a", clock, reads_from="replica") as store:
        antipode.shim.register(store)
        wait = Wait({"a": [FIRST]}, policies=POLICIES, now_s=0.0, unix_s=0.0, timeout_s=5.0)
        waiter = Waiter(wait, lambda: notified.append(None), clock=clock)
        waiter.cancel()
        waiter.take("a", Observation("server-1", {FIRST: Status.VISIBLE}))
        waiter.unreachable("a", "late")
        assert waiter.wanted("a") == ()
    assert [outcome.status for outcome in wait.result(1.0).outcomes] == [Status.NOT_YET]
    assert notified == []


def test_a_cancelled_barrier_is_watched_no_longer(clock: VirtualClock) -> None:
    """The watcher forgets it at once, and does not find out at its next look."""
    with FakeStore("a", clock, reads_from="replica") as store:
        antipode.shim.register(store)
        wait = Wait({"a": [FIRST]}, policies=POLICIES, now_s=0.0, unix_s=0.0, timeout_s=5.0)
        waiter = Waiter(wait, lambda: None, clock=clock)
        waiter.subscribe()
        store.watcher.wake.clear()
        waiter.cancel()
        assert store.watcher.wake.is_set()
        clock.run()


def test_what_was_met_is_asked_again_when_the_last_other_fails() -> None:
    """A datastore that can never be asked again leaves the others as old as its wait made them."""
    other = WriteId("b", "log", 1, 500_000)
    wait = Wait(
        {"a": [FIRST], "b": [other]},
        policies=replace(POLICIES, on_unknown="report"),
        now_s=0.0,
        unix_s=0.0,
        timeout_s=9.0,
    )
    wait.record("a", Observation("server-1", {FIRST: Status.VISIBLE}), 1.0)
    wait.record("b", Observation("server-2", {other: Status.NOT_YET}), 2.0)
    wait.failed("b", "closed", 3.0)
    assert wait.pending == {"a": frozenset([FIRST])}
    assert not wait.finished


def test_one_look_counts_again_for_what_is_asked_again(clock: VirtualClock) -> None:
    """A barrier of one look at each datastore looks twice at what was met before a wait."""
    other = WriteId("b", "log", 1, 500_000)
    with FakeStore("a", clock) as a, FakeStore("b", clock) as b:
        antipode.shim.register(a)
        antipode.shim.register(b)
        wait = Wait(
            {"a": [FIRST], "b": [other]}, policies=POLICIES, now_s=0.0, unix_s=0.0, timeout_s=9.0
        )
        waiter = Waiter(wait, lambda: None, clock=clock, once=True)
        waiter.take("a", Observation("server-1", {FIRST: Status.VISIBLE}))
        clock.at(1.0, lambda: waiter.take("b", Observation("server-2", {other: Status.VISIBLE})))
        clock.at(0.9, lambda: wait.unreachable("b", "late", 0.9))
        clock.run()
        assert a.look_times_s == [1.0]
        waiter.cancel()


def test_one_look_of_which_a_barrier_is_told_late_counts(clock: VirtualClock) -> None:
    """What a barrier of one look is told counts, although a poll before had no room for it."""
    notified: list[None] = []
    with FakeStore("a", clock, reads_from="replica") as store:
        antipode.shim.register(store)
        wait = Wait({"a": [FIRST]}, policies=POLICIES, now_s=0.0, unix_s=0.0, timeout_s=5.0)
        waiter = Waiter(wait, lambda: notified.append(None), clock=clock, once=True)
        waiter.take("a", Observation("server-1", {FIRST: Status.VISIBLE}), left_s=0.0)
    assert [outcome.status for outcome in wait.result(1.0).outcomes] == [Status.VISIBLE]
    assert notified == [None]


def test_an_outcome_names_the_server_that_showed_all() -> None:
    """What one server showed and another one shows with the rest is the other one's."""
    wait = Wait({"a": [FIRST, SECOND]}, policies=POLICIES, now_s=0.0, unix_s=0.0, timeout_s=9.0)
    wait.record("a", Observation("server-1", {FIRST: Status.VISIBLE, SECOND: Status.NOT_YET}), 1.0)
    wait.record("a", Observation("server-2", {FIRST: Status.VISIBLE, SECOND: Status.VISIBLE}), 2.0)
    assert {outcome.server for outcome in wait.result(2.0).outcomes} == {"server-2"}


def test_nothing_enters_a_request_that_was_stopped() -> None:
    """Neither what is read, nor a sample that is asked for later, nor what is attached."""
    asked: list[None] = []

    def sample() -> Lineage:
        asked.append(None)
        return Lineage([FIRST])

    held = Scope()
    held.stop()
    held.merge(Lineage([SECOND]))
    held.defer(sample)
    held.attach("key", cast("Attachment", object()))
    assert held.lineage == Lineage()
    assert asked == []
    assert held.attached == {}
