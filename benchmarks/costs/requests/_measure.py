"""Timing: calls of the two sides by turns, a few at a time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks._statistics import Summary, bound_of

from ._cases import LEAST
from ._process import side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks._processors import Processors

    from ._process import Client

#: Calls before a side has the next turn.
AT_A_TURN = 10
#: Calls that warm a server up: connections, caches, the interpreter.
WARM_UP = 300


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, over all rounds.

    Attributes:
        case: which.
        ratio: the median of the rounds' ratios.
        rounds: of the medians of a round, with Antipode over OpenTelemetry alone.
        otel_us: microseconds of a call with OpenTelemetry alone, all rounds together.
        antipode_us: microseconds of a call with Antipode as well.
        failed: calls that went wrong, which are in none of these.
        bound: what the ratio may be; None where anything may.
    """

    case: str
    ratio: float
    rounds: Summary
    otel_us: Summary
    antipode_us: Summary
    failed: int
    bound: float | None

    @property
    def missed(self) -> bool:
        """Whether it is over its bound."""
        return self.bound is not None and self.ratio > self.bound


def measure(
    names: list[str],
    rounds: int,
    calls: int,
    processors: Processors,
    advance: Callable[[], None],
) -> Iterator[Measured]:
    """Measure the cases *names*, each in so many rounds of so many calls of each side.

    Each round has processes of its own: how memory happens to lie in one is not measured as if it
    were the library.
    """
    for name in names:
        ratios: list[float] = []
        times: tuple[list[float], list[float]] = ([], [])
        failed = 0
        for number in range(rounds):
            # Who starts first may lie better in memory.
            found, wrong = _round(name, calls, processors, first=bool(number % 2))
            failed += wrong
            medians = [_summary(each).median for each in found]
            ratios.append(medians[1] / medians[0])
            for which, each in enumerate(found):
                times[which].extend(each)
            advance()
        spread = _summary(ratios)
        otel, ours = map(_summary, times)
        bound = None if name == LEAST else bound_of(otel.median)
        yield Measured(name, spread.median, spread, otel, ours, failed, bound)


def _round(
    name: str, calls: int, processors: Processors, *, first: bool
) -> tuple[tuple[list[float], list[float]], int]:
    """Microseconds of every call, with OpenTelemetry alone and with Antipode; failures."""
    times: tuple[list[float], list[float]] = ([], [])
    failed = 0
    with ExitStack() as stack:
        sides: dict[bool, Client] = {
            antipode: stack.enter_context(side(name, processors, antipode=antipode))
            for antipode in (first, not first)
        }
        for client in sides.values():
            client.call(WARM_UP)
        for turn in range(max(calls // AT_A_TURN, 1)):
            for antipode in (bool(turn % 2), not turn % 2):
                took, wrong = sides[antipode].call(AT_A_TURN)
                times[antipode].extend(took)
                failed += wrong
    return times, failed


def _summary(values: list[float]) -> Summary:
    found = Summary.of(values)
    if found is None:
        msg = "not one call went well"
        raise RuntimeError(msg)
    return found
