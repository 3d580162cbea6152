"""How far a check goes: steps, memory, and who hears how far it is."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from antipode import AntipodeError, ConfigurationError

if TYPE_CHECKING:
    from ._history import Progress

#: Some ten seconds of one processor.
BUDGET_STEPS = 20_000_000
#: How many operations lie between two questions for the memory in use.
EVERY = 1 << 14
_STATM = Path("/proc/self/statm")
_MIB = 1 << 20


class ExhaustedError(AntipodeError):
    """A check or a reader needs more than its budget or its memory limit."""

    code = "exhausted"


class Meter:
    """Counts what a check costs, and ends it at its limits.

    Args:
        budget_steps: how many comparisons the serializations of processes may take together.
        memory_limit_mib: how much memory this process may have, in MiB; None for any.
        progress: hears what was done, and of how much.
    """

    def __init__(
        self,
        budget_steps: int = BUDGET_STEPS,
        memory_limit_mib: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._budget_steps = self._left = budget_steps
        self._memory_limit_mib = memory_limit_mib
        self._progress = progress

    def spend(self, steps: int) -> None:
        """Take *steps* from the budget."""
        self._left -= steps
        if self._left < 0:
            raise ExhaustedError(f"the budget of {self._budget_steps:,} steps is spent")

    def passed(self, what: str, done: int, total: int) -> None:
        """Report that *done* of *total* are done, and read the memory in use."""
        if self._progress:
            self._progress(what, done, total)
        limit = self._memory_limit_mib
        if limit is not None and resident_mib() > limit:
            raise ExhaustedError(f"the memory limit of {limit:,} MiB is reached")


def resident_mib() -> float:
    """The memory that this process has now, in MiB; where the system does not say, its most.

    Raises:
        ConfigurationError: the system says neither.
    """
    try:
        return int(_STATM.read_bytes().split()[1]) * mmap.PAGESIZE / _MIB
    except OSError:
        return _most_mib()


def _most_mib() -> float:
    try:
        import resource
    except ImportError as error:
        msg = "this system does not say how much memory a process has: give no memory limit"
        raise ConfigurationError(msg) from error
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (_MIB if sys.platform == "darwin" else 1024)
