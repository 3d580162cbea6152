"""When a watcher polls next: bounds on pauses, polls and lateness, for any lag."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from antipode._barrier.expectation import LEAST_US, MOST_US, Expectation
from benchmarks.costs._paces import simulated

LAGS_US = st.integers(min_value=1, max_value=3_000_000)


def taught(lags_us: list[int]) -> Expectation:
    """What these waits, one after the other, have taught."""
    pace = Expectation()
    if lags_us:
        simulated(pace, [(10_000_000 * nth, each) for nth, each in enumerate(lags_us, 1)])
    return pace


def polls_of(pace: Expectation, lag_us: int) -> tuple[int, int]:
    """The polls of one wait that may end after *lag_us*, and how late it ended."""
    now_us, polls = 0, 1
    while now_us < lag_us:
        next_us = pace.next_us(now_us, [0])
        assert LEAST_US <= next_us - now_us <= MOST_US
        now_us = next_us
        polls += 1
    return polls, now_us - lag_us


@settings(deadline=None, max_examples=200)
@given(st.lists(LAGS_US, max_size=20), LAGS_US)
def test_no_lag_costs_more_polls_than_the_bound_or_is_seen_later(
    lags_us: list[int], lag_us: int
) -> None:
    """Whatever was learned: at most 50 ms late, and 53 polls and one for each 50 ms."""
    polls, late_us = polls_of(taught(lags_us), lag_us)
    assert late_us < MOST_US
    assert polls <= 53 + lag_us / MOST_US


@settings(deadline=None, max_examples=200)
@given(st.lists(LAGS_US, min_size=1, max_size=20), LAGS_US)
def test_where_something_is_learned_a_wait_costs_fewer_polls(
    lags_us: list[int], lag_us: int
) -> None:
    """At most 32 polls and one for each 50 ms, whatever was learned and whatever comes."""
    pace = Expectation()
    for each in lags_us:
        pace.learn(each, each)
    assert polls_of(pace, lag_us)[0] <= 32 + lag_us / MOST_US


@settings(deadline=None, max_examples=200)
@given(LAGS_US)
def test_where_nothing_is_learned_a_wait_is_a_tenth_late_at_most(lag_us: int) -> None:
    """Never later than the greater of 1 ms and 10 % of the wait; at most 60 polls in 500 ms."""
    polls, late_us = polls_of(Expectation(), lag_us)
    assert late_us <= max(LEAST_US, lag_us // 10)
    if lag_us <= 500_000:
        assert polls <= 60


@settings(deadline=None, max_examples=100)
@given(
    st.lists(LAGS_US, max_size=20),
    st.lists(st.integers(min_value=0, max_value=5_000_000), min_size=1, max_size=50),
)
def test_however_many_wait_no_pause_is_longer_or_shorter(
    lags_us: list[int], waited_us: list[int]
) -> None:
    """Between 1 and 50 ms, whenever those that wait joined."""
    now_us = 10_000_000
    pause_us = taught(lags_us).next_us(now_us, sorted(now_us - each for each in waited_us)) - now_us
    assert LEAST_US <= pause_us <= MOST_US
