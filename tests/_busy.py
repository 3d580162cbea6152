"""How busy and how slow the machine is, and for how long that held a test up."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, thread_time  # As they are now: tests replace those of the module.
from typing import Literal

__all__ = ["Stopwatch", "cpu_s", "load", "slowness", "starved_s", "stolen_s"]

#: Processor seconds of `_fixed_work` on the quiet machine for which the limits of tests are meant.
FIXED_WORK_S = 0.04

#: The fields of a line of /proc/stat: the eighth is the time that the hypervisor gave to others.
STEAL = 8


def starved_s() -> float:
    """For how long this thread has waited for a processor so far; 0 where the system is silent."""
    with suppress(OSError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0


def crowded_s(resource: Literal["cpu", "io"]) -> float:
    """For how long tasks of the machine have waited so far; 0 as above.

    For a test that waits for a program or a server: what these waited is told of no process. Any
    task counts that waits for a processor. A disk counts while nothing goes on but for it: another
    test's writes hold nobody up.
    """
    with suppress(OSError, ValueError):
        some, full = Path("/proc/pressure", resource).read_text(encoding="ascii").splitlines()
        line = some if resource == "cpu" else full
        return int(line.rpartition("total=")[2]) / 1e6
    return 0.0


class Stopwatch:
    """Measures what this thread does, without the time for which a busy machine held it up."""

    def __init__(self) -> None:
        self._began_s = monotonic()
        self._waits_s = self._waited_s()

    @staticmethod
    def _waited_s() -> tuple[float, float, float]:
        return starved_s(), crowded_s("cpu"), crowded_s("io")

    def read(self) -> tuple[float, float]:
        """Seconds of its own since it began, and seconds for which it was held up."""
        took_s = monotonic() - self._began_s
        waits_s = zip(self._waited_s(), self._waits_s, strict=True)
        held_up_s = min(took_s, max(now - before for now, before in waits_s))
        return took_s - held_up_s, held_up_s


def _fixed_work() -> None:
    for _ in range(5):
        json.loads(json.dumps([{"key": n, "name": str(n), "of": [n]} for n in range(5_000)]))


def slowness() -> float:
    """How many times longer a processor takes now than that machine's; 1 at least.

    A lower clock, and a neighbour on the other half of the same core, slow a test down without
    keeping it from a processor: no count of waits shows it. The slowest of three counts.
    """
    took_s = []
    for _ in range(3):
        began_s = thread_time()
        _fixed_work()
        took_s.append(thread_time() - began_s)
    return max(1.0, max(took_s) / FIXED_WORK_S)


def load() -> float:
    """How many tasks ran or wanted to, on average over the last minute."""
    with suppress(OSError):
        return os.getloadavg()[0]
    return 0.0


def stolen_s() -> float:
    """For how long the machine's processors have stood at others' disposal so far; 0 as above."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return int(fields[STEAL]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def cpu_s() -> float:
    """Processor time of this process, and of those children that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
