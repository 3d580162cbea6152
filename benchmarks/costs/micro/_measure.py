"""Timing: the operation and its floor by turns, in many short rounds."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks._statistics import Summary

from ._cases import FLOORS, INPUTS, OPERATIONS, SIZES, Case, Source, calls, text_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._cases import Calls

#: Entries handled in one timed stretch: long against the clock, short against the scheduler.
_ENTRIES_AT_ONCE = 400
_FEWEST_CALLS = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, over all rounds.

    Attributes:
        case: what was timed.
        text_bytes: length of the lineage's text, and of the floor's.
        ratios: of the operation to its floor, round by round.
        ours_us: microseconds of the operation.
        floor_us: microseconds of the floor.
    """

    case: Case
    text_bytes: int
    ratios: Summary
    ours_us: Summary
    floor_us: Summary

    @property
    def floor(self) -> str:
        """What it is compared to."""
        return FLOORS[self.case.operation]


def cases() -> list[Case]:
    """All of them."""
    return [
        Case(operation, entries, inputs)
        for operation in OPERATIONS
        for entries in SIZES
        for inputs in INPUTS
    ]


def measure(rounds: int, seed: int, advance: Callable[[], None]) -> list[Measured]:
    """Time every case in every round, so that what disturbs one round disturbs all cases."""
    source = Source(seed)
    times: dict[Case, list[tuple[float, float]]] = {case: [] for case in cases()}
    for number in range(rounds + 1):
        for case, found in times.items():
            timed = _time(case, source, floor_first=number % 2 == 1)
            if number:  # the first round warms the interpreter up
                found.append(timed)
        advance()
    return list(_summaries(times, source))


def _summaries(times: dict[Case, list[tuple[float, float]]], source: Source) -> Iterator[Measured]:
    for case, found in times.items():
        ratios = Summary.of(ours / floor for ours, floor in found)
        ours_us = Summary.of(ours for ours, _ in found)
        floor_us = Summary.of(floor for _, floor in found)
        assert ratios and ours_us and floor_us  # noqa: PT018, S101 - there is a round at least
        yield Measured(case, text_length(case, source), ratios, ours_us, floor_us)


def _time(case: Case, source: Source, *, floor_first: bool) -> tuple[float, float]:
    """Microseconds a call: of the operation, of the floor."""
    count = max(_ENTRIES_AT_ONCE // case.entries, _FEWEST_CALLS)
    ours, floor = calls(case, source, count)
    gc.collect(0)
    gc.disable()
    try:
        if floor_first:
            floor_us = _stretch(floor)
            return _stretch(ours), floor_us
        ours_us = _stretch(ours)
        return ours_us, _stretch(floor)
    finally:
        gc.enable()


def _stretch(prepared: Calls) -> float:
    began_ns = time.perf_counter_ns()
    for call in prepared:
        call()
    return (time.perf_counter_ns() - began_ns) / len(prepared) / 1000
