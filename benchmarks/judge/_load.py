"""Whether a machine was quiet enough for what was measured on it."""

from __future__ import annotations

#: The share of its processors that may be in use by others before a run begins.
_QUIET = 0.25


def busy(used: float, processors: int | None) -> str:
    """What a report says first of a machine that was not quiet; empty where it was.

    Args:
        used: how many processors were in use before the run, by others.
        processors: how many there are; None where nobody knows.
    """
    if used <= _QUIET * (processors or 1):
        return ""
    return (
        f"LOADED MACHINE: others used {used:.1f} of {processors or 'an unknown number of'} "
        "processors before this run began: counts hold, times do not"
    )
