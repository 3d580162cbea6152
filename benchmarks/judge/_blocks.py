"""Blocks: what is compared is measured in turns, and what differs between turns is no difference.

A machine is never the same twice. Values of one turn resemble each other more than those of
another, so their number says nothing about how sure a figure is; the number of turns does.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, TypeVar

from benchmarks._statistics import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")

#: With fewer blocks nothing is said about how sure a figure is.
LEAST_BLOCKS = 5
#: Student's quantiles at 97.5 %, by degrees of freedom from 1 on; the last one is the normal's.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060,
)  # fmt: skip


def rotated(names: Sequence[T], block: int) -> tuple[T, ...]:
    """The order of one block: each block begins with another one, so that none is always first."""
    first = block % len(names)
    return (*names[first:], *names[:first])


def shares(total: int, blocks: int) -> tuple[int, ...]:
    """How many of *total* trials each block gets: none differs from another by more than one."""
    return tuple(total // blocks + (number < total % blocks) for number in range(blocks))


def over_blocks(figures: Iterable[float]) -> Interval | None:
    """The mean of one figure a block, and where it lies with 95 % confidence (Student's).

    None with fewer than `LEAST_BLOCKS`.
    """
    found = list(figures)
    if len(found) < LEAST_BLOCKS:
        return None
    mean = statistics.fmean(found)
    quantile = _STUDENT[min(len(found) - 1, len(_STUDENT)) - 1]
    half = quantile * statistics.stdev(found) / math.sqrt(len(found))
    return Interval(mean, mean - half, mean + half)


def differ(ones: Mapping[int, float], others: Mapping[int, float]) -> Interval | None:
    """By how much one thing differs from another, block by block, with the interval of that.

    Blocks that only one of them has do not count. Who claims a difference claims that the
    interval leaves 0 out.

    Args:
        ones: a figure for each block.
        others: the same of what it is compared with.
    """
    return over_blocks(ones[block] - others[block] for block in sorted(ones.keys() & others.keys()))
