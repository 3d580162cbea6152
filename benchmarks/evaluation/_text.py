"""How figures are spelled, the same in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._results import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks._statistics import Interval

    from ._results import RoundResult

NOTHING = "not measured"


def violations(rounds: Iterable[RoundResult]) -> str:
    """The share of violations, with its interval."""
    rounds = list(rounds)
    found = share(rounds)
    return NOTHING if found is None else share_text(found, sum(each.answered for each in rounds))


def share_text(found: Interval, trials: int) -> str:
    """A share with its interval; for nothing and for everything the one bound that there is."""
    if found.value == 0:
        return f"0 of {trials:,} (up to {_least(found.high)} %)"
    if found.value == 1:
        return f"all of {trials:,} (at least {100 - float(_least(1 - found.low)):g} %)"
    value, low, high = (f"{100 * each:.1f}" for each in (found.value, found.low, found.high))
    return f"{value} % ({low} to {high})"


def _least(value: float) -> str:
    """A small share in percent: two digits that count, whatever comes before them."""
    return f"{100 * value:.2g}"


def milliseconds(value: Interval | None) -> str:
    """A median in milliseconds, with its interval."""
    if value is None:
        return ""
    return f"{value.value:.1f} ({value.low:.1f} to {value.high:.1f})"


def more(value: float, base: float) -> str:
    """How many bytes more than without the library."""
    return f"{value - base:+.0f} ({100 * (value - base) / base:+.1f} %)" if base else ""
