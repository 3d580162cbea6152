"""Processors that do not halt while something is measured.

A halted virtual processor wakes up to a tenth of a millisecond late, at random: of two clients that
wait equally long, the one whose answer comes a little later may find it halted and the other not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from antipode.testing import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

# It runs where nothing else wants to, and ends with the program that started it.
_SPIN = """
import os, sys
os.sched_setaffinity(0, [int(sys.argv[1])])
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""

#: Whether this system has a priority below all others.
AVAILABLE = sys.platform == "linux"


@contextmanager
def awake() -> Iterator[None]:
    """A block in which every processor has something to do, at idle priority. Linux only."""
    with ExitStack() as stack:
        for processor in sorted(os.sched_getaffinity(0)):
            with uninterrupted():
                spinner = subprocess.Popen([sys.executable, "-c", _SPIN, str(processor)])
                stack.callback(spinner.wait)
                stack.callback(spinner.kill)
        yield
