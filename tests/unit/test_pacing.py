"""Bounds on looks and overshoot, proved on the virtual clock with the library's own watchers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Pacer
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

POST = Lineage([WriteId("posts", "log", 7)])


@pytest.fixture(autouse=True)
def _unregister() -> Iterator[None]:
    """Hypothesis runs many examples in one test: nothing stays registered."""
    yield
    antipode.shim.unregister("posts")


def wait_for(visible_s: float, timeout_s: float, **options: bool) -> tuple[float, int]:
    """When a barrier ended and how many looks it took, for a write visible at *visible_s*."""
    antipode.shim.unregister("posts")
    clock = VirtualClock()
    store = FakeStore("posts", clock, **options, reads_from="replica")
    antipode.shim.register(store)
    store.advance("log", 7, at_s=visible_s)
    call = clock.barrier(POST, timeout=timeout_s, on_unmet="return")
    clock.run()
    assert call.finished_s is not None
    return call.finished_s, len(store.look_times_s)


def most_looks(waited_s: float) -> float:
    """The specified bound on looks in a wait of *waited_s* seconds, where nothing is learned."""
    return 53 + waited_s / 0.050


@settings(deadline=None, max_examples=200)
@given(st.floats(min_value=0.0, max_value=29.0))
def test_a_barrier_ends_soon_after_the_dependency_is_visible(visible_s: float) -> None:
    """Overshoot is at most 1 ms, or 10 % of the wait, and never more than 50 ms."""
    ended_s, looks = wait_for(visible_s, 30)
    overshoot_s = ended_s - visible_s
    assert 0 <= overshoot_s <= min(max(0.001, 0.1 * visible_s), 0.05) + 2e-6
    assert looks <= most_looks(ended_s)


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.01, max_value=30.0))
def test_a_barrier_in_vain_ends_at_its_deadline(timeout_s: float) -> None:
    """It never outlives its timeout, and the looks on the way are bounded."""
    ended_s, looks = wait_for(math.inf, timeout_s)
    assert ended_s == timeout_s
    assert looks <= most_looks(timeout_s)


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.0, max_value=29.0))
def test_a_store_that_pushes_costs_no_overshoot(visible_s: float) -> None:
    """A push ends the pause at once."""
    ended_s, _ = wait_for(visible_s, 30, push=True)
    assert ended_s == visible_s


@settings(deadline=None, max_examples=50)
@given(st.floats(min_value=0.0, max_value=29.0))
def test_a_store_that_blocks_is_looked_at_once_a_second(visible_s: float) -> None:
    """A wait on the server costs a look at its beginning, one a second and one at its end."""
    ended_s, looks = wait_for(visible_s, 30, push=True, blocks=True)
    assert ended_s == visible_s
    assert looks <= visible_s + 2


def test_a_hundred_barriers_cost_the_looks_of_one() -> None:
    """Equal waits share every look, whenever they start together."""
    clock = VirtualClock()
    store = FakeStore("posts", clock, reads_from="replica")
    antipode.shim.register(store)
    store.advance("log", 7, at_s=1.0)
    calls = [clock.barrier(POST, timeout=5) for _ in range(100)]
    clock.run()
    assert all(call.error is None for call in calls)
    assert len(store.look_times_s) <= most_looks(1.0)


def test_a_barrier_is_polled_for_by_what_the_ones_before_lasted() -> None:
    """The twentieth wait of 100 ms costs six polls, where the first cost 36."""
    clock = VirtualClock()
    store = FakeStore("posts", clock, reads_from="replica")
    antipode.shim.register(store)
    calls = []
    for nth in range(20):
        store.advance("log", nth, at_s=2 * nth + 0.1)
        lineage = Lineage([WriteId("posts", "log", nth)])
        calls.append(clock.barrier(lineage, timeout=1, at_s=2 * nth))
    clock.run()
    assert all(call.error is None for call in calls)
    looks = [sum(2 * nth <= at_s < 2 * nth + 1 for at_s in store.look_times_s) for nth in (0, 19)]
    assert looks[0] == 36
    assert looks[1] <= 6


def test_failed_looks_back_off() -> None:
    """A server that is down for 20 seconds is asked a few dozen times, not thousands."""
    clock = VirtualClock()
    store = FakeStore("posts", clock, reads_from="replica")
    antipode.shim.register(store)
    store.advance("log", 7)
    store.take_down(from_s=0, until_s=20)
    call = clock.barrier(POST, timeout=30)
    clock.run()
    assert call.error is None
    assert call.finished_s is not None
    assert call.finished_s - 20 <= Pacer.BACKOFF_MOST_S
    assert len(store.look_times_s) <= 45
