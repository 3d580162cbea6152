"""A lag that wanders is different at every moment, and the same in every run."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest

from antipode_testing import wait_until
from benchmarks.post_notification._wander import Wander, factors


@pytest.fixture
def told() -> list[float]:
    """What a replicator was told."""
    return []


def test_lags_lie_about_their_median() -> None:
    """Half are longer; two in three are within one deviation; the seed decides which come."""
    drawn = [100 * each for each in itertools.islice(factors(0.5, 7), 3000)]
    assert statistics.median(drawn) == pytest.approx(100, rel=0.05)
    near = sum(100 * math.exp(-0.5) < each < 100 * math.exp(0.5) for each in drawn)
    assert near / 3000 == pytest.approx(0.683, abs=0.03)
    assert drawn == [100 * each for each in itertools.islice(factors(0.5, 7), 3000)]


def test_a_lag_wanders_until_it_is_closed(told: list[float]) -> None:
    """It begins with the median, goes on by itself, and stays where it was at the end."""
    with Wander(told.append, 100, 0.5, 7):
        wait_until(lambda: len(told) >= 4, what="three more lags", timeout_s=30)
    count = len(told)
    assert told[0] == 100
    assert len(set(told)) == count
    assert told[1:] == [100 * each for each in itertools.islice(factors(0.5, 7), count - 1)]


def test_it_wanders_about_another_median_from_then_on(told: list[float]) -> None:
    """The other one at once, and the same factors on it."""
    wander = Wander(told.append, 100, 0, 7)
    wander.about(25)
    wander.close()
    assert told == [100, 25]


def test_without_a_spread_nothing_wanders(told: list[float]) -> None:
    """One lag, and no thread that could set another."""
    wander = Wander(told.append, 100, 0, 7)
    wander.close()
    wander.close()
    assert told == [100]
