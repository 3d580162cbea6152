"""How figures are spelled, the same in every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._results import share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks._statistics import Interval

    from ._results import RoundResult

NOTHING = "not measured"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table in Markdown: columns of text first, then figures."""
    rules = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    lines = [head, rules, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def violations(rounds: Iterable[RoundResult]) -> str:
    """The share of violations, with its interval."""
    rounds = list(rounds)
    found = share(rounds)
    if found is None:
        return NOTHING
    answered = sum(each.answered for each in rounds)
    if found.value == 0:
        return f"0 of {answered:,} (up to {percent(found.high)})"
    low, high = (_number(100 * each) for each in (found.low, found.high))
    return f"{percent(found.value)} ({low} to {high})"


def percent(value: float) -> str:
    """A share of one."""
    return f"{_number(100 * value)} %"


def _number(value: float) -> str:
    """With one digit after the point, or more where it is close to nothing."""
    if value in (0, 100):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def milliseconds(value: Interval | None) -> str:
    """A median in milliseconds, with its interval."""
    if value is None:
        return ""
    return f"{value.value:.1f} ({value.low:.1f} to {value.high:.1f})"


def more(value: float, base: float) -> str:
    """How many bytes more than without the library."""
    return f"{value - base:+.0f} ({100 * (value - base) / base:+.1f} %)" if base else ""


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
