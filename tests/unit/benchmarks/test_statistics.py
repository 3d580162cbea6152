"""The benchmarks' figures mean what they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._statistics import Summary, bound_of, percentile, upper_bound


def test_percentiles_interpolate_between_neighbours() -> None:
    """Half-way between two values lies their mean; the ends are the least and the greatest."""
    ordered = [1.0, 2.0, 4.0]
    assert percentile(ordered, 0) == 1.0
    assert percentile(ordered, 50) == 2.0
    assert percentile(ordered, 75) == 3.0
    assert percentile(ordered, 100) == 4.0


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], -1), ([1.0], 101)])
def test_there_is_no_percentile_of_nothing(values: list[float], percent: float) -> None:
    """No values, or no percentage, is an error and never a number."""
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, percent)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_summary_is_in_order(values: list[float]) -> None:
    """From the least to the greatest value every figure is at least the one before."""
    summary = Summary.of(values)
    assert summary is not None
    assert summary.count == len(values)
    figures = [
        summary.least,
        summary.lower_quartile,
        summary.median,
        summary.upper_quartile,
        summary.p99,
        summary.greatest,
    ]
    assert figures[0] == min(values)
    assert figures[-1] == max(values)
    assert figures == pytest.approx(sorted(figures))


def test_a_summary_of_nothing_is_none() -> None:
    """A missing measurement is missing, not zero."""
    assert Summary.of([]) is None


@pytest.mark.parametrize(("plain_us", "bound"), [(100.0, 1.3), (600.0, 1.05), (6000.0, 1.05)])
def test_a_call_may_cost_five_percent_or_thirty_microseconds(plain_us: float, bound: float) -> None:
    """Whichever is more."""
    assert bound_of(plain_us) == bound


def test_no_event_in_3000_trials_excludes_a_thousandth() -> None:
    """The rule of three: zero of 3,000 leaves at most 0.1 %."""
    assert upper_bound(0, 3000) == pytest.approx(0.001)


@given(st.integers(1, 5000), st.data())
def test_the_bound_is_above_what_was_seen(trials: int, data: st.DataObject) -> None:
    """What is not excluded is at least the share that was seen, and at most everything."""
    events = data.draw(st.integers(0, trials))
    assert events / trials - 1e-9 <= upper_bound(events, trials) <= 1


@pytest.mark.parametrize(("events", "trials"), [(1, 0), (0, 0), (2, 1), (-1, 5)])
def test_impossible_counts_are_errors(events: int, trials: int) -> None:
    """More events than trials, or no trials, have no share."""
    with pytest.raises(ValueError, match="events"):
        upper_bound(events, trials)
