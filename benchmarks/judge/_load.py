"""Whether a machine was quiet enough for what was measured on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The share of its processors that may be wanted by others before a run begins.
_QUIET = 0.25


def busy(load: Sequence[float], processors: int | None) -> str:
    """What a report says first of a machine that was not quiet; empty where it was.

    Args:
        load: of the minute before the run, then of longer times; the run's own is not in it.
        processors: how many there are; None where nobody knows.
    """
    if load[0] <= _QUIET * (processors or 1):
        return ""
    return (
        f"LOADED MACHINE: {load[0]:.1f} processes wanted to run before this one began, on "
        f"{processors or 'an unknown number of'} processors: counts hold, times do not"
    )
