"""How figures are spelled, the same in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._results import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._results import Point, RoundResult

NOTHING = "not measured"


def violations(rounds: Iterable[RoundResult | Point]) -> str:
    """The share of violations."""
    rounds = list(rounds)
    found = share(rounds)
    return NOTHING if found is None else share_text(found, sum(each.answered for each in rounds))


def share_text(found: float, trials: int) -> str:
    """A share of so many trials; nothing and everything are counted."""
    if found in (0, 1):
        return f"{'all' if found else '0'} of {trials:,}"
    # What is not nothing, or not everything, never looks like it.
    return f"{min(max(100 * found, 0.1), 99.9):.1f} %"


def milliseconds(found: RoundResult, name: str) -> str:
    """A median in milliseconds, with its interval over the turns where there are enough of them."""
    interval = found.interval(name)
    if interval is not None:
        return f"{interval.value:.1f} ({interval.low:.1f} to {interval.high:.1f})"
    return f"{found.medians[name]:.1f}" if name in found.medians else ""


def more(value: float, base: float) -> str:
    """How many bytes more than without the library."""
    return f"{value - base:+.0f} ({100 * (value - base) / base:+.1f} %)" if base else ""
