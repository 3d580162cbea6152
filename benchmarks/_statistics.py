"""Percentiles and spreads, spelled once so that every figure means the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

#: What the library may add to a call: a share of it, or so many microseconds if that is more.
BOUND, BOUND_US = 1.05, 30.0


def bound_of(plain_us: float) -> float:
    """How many times the *plain_us* microseconds of a call one with the library may take."""
    return round(max(BOUND, 1 + BOUND_US / plain_us), 3)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value below which *percent* of *ordered* lie, interpolated between neighbours.

    Args:
        ordered: in ascending order, not empty.
        percent: from 0, the least, to 100, the greatest.

    Raises:
        ValueError: there are no values, or *percent* is out of range.
    """
    if not ordered or not 0 <= percent <= 100:
        msg = f"no {percent}th percentile of {len(ordered)} values"
        raise ValueError(msg)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True)
class Summary:
    """The spread of some values, in their own unit."""

    count: int
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    p99: float
    greatest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self | None:
        """The summary of *values*; None when there are none."""
        ordered = sorted(values)
        if not ordered:
            return None
        spread = (percentile(ordered, percent) for percent in (0, 25, 50, 75, 99, 100))
        return cls(len(ordered), *spread)


def upper_bound(events: int, trials: int) -> float:
    """The largest share of events that *trials* do not exclude with 95 % confidence.

    Wilson's one-sided bound; for no event at all the rule of three, which is a little wider.
    """
    if not 0 <= events <= trials or trials == 0:
        msg = f"{events} events of {trials} trials"
        raise ValueError(msg)
    if events == 0:
        return min(3 / trials, 1.0)
    z = 1.6449
    share = events / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return min((centre + half) / (1 + z * z / trials), 1.0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and what it may be with 95 % confidence, in its own unit."""

    value: float
    low: float
    high: float
