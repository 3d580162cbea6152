"""Where the processor time of a round goes, by call and by package."""

from __future__ import annotations

import cProfile
import pstats
import statistics
import time
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING

from benchmarks._machine import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

ROUNDS = 500


def profile(made: Callable[[int], object]) -> dict[str, float]:
    """The share of each package in the processor time of this thread, the most first.

    Args:
        made: makes the round of a number.
    """
    profiler = cProfile.Profile(time.thread_time)
    with profiler:
        for number in range(ROUNDS):
            made(number)
    spent = Counter[str]()
    for (file, _, _), (_, _, own_s, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        spent[package_of(file)] += own_s
    whole = sum(spent.values())
    return {name: round(own_s / whole, 3) for name, own_s in spent.most_common()}


def spent_us(
    call: Callable[[int], object],
    within: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> float:
    """The processor time of this thread for a call, the median in microseconds.

    Args:
        call: gets a number.
        within: makes the block in which it is called, which is not timed.
    """
    times = []
    for number in range(ROUNDS):
        with within():
            began_ns = time.thread_time_ns()
            call(number)
            times.append(time.thread_time_ns() - began_ns)
    return statistics.median(times) / 1000


def package_of(file: str) -> str:
    """What a source file belongs to: a package of ours, or one that is installed."""
    before, installed, inner = file.partition("/site-packages/")
    if installed:
        return inner.split("/")[0]
    project, _, inner = before.partition(str(ROOT) + "/")
    parts = inner.removeprefix("shims/").split("/")
    if project or not inner:
        return "Python"
    return "/".join(parts[:2]) if parts[0].startswith("antipode") else parts[0]
