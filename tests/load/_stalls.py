"""When the machine gave this process no time: a barrier cannot end in a moment that never was."""

from __future__ import annotations

import threading
import time
from array import array
from contextlib import suppress
from pathlib import Path

#: How often the clock is looked at, and how late that may be before it counts, in seconds.
_EVERY_S = 0.005
_LATE_S = 0.01
#: What Linux tells the thread that reads it; the second number is for how many nanoseconds it
#: could have run and had no processor.
_OWN = Path("/proc/thread-self/schedstat")


class Stalls:
    """A thread that does nothing but wake up, and notes when it could not.

    What keeps it from waking is the machine, not a barrier: it takes no lock of the library.
    """

    def __init__(self) -> None:
        """Begin to watch."""
        # Begin, end, begin, end: one block of memory, however often the machine stalls.
        self._spans = array("d")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="load-stalls")
        self._thread.start()

    def _watch(self) -> None:
        began_s = time.monotonic()
        while not self._over.wait(_EVERY_S):
            ended_s = time.monotonic()
            if ended_s - began_s > _EVERY_S + _LATE_S:
                self._spans.extend((began_s + _EVERY_S, ended_s))
            began_s = ended_s

    def within(self, from_s: float, to_s: float) -> float:
        """For how many seconds of this span the process stood still."""
        spans = self._spans[:]
        pairs = zip(spans[::2], spans[1::2], strict=False)
        return sum(max(min(to_s, end) - max(from_s, begin), 0.0) for begin, end in pairs)

    @property
    def total_s(self) -> float:
        """For how many seconds the process stood still in all."""
        return self.within(0.0, time.monotonic())

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()


class Deadline:
    """When a barrier must have ended, asked about by the thread that waits for it.

    Taken off are the moments in which the process stood still, and those in which that thread
    waited for a processor, from the beginning: each put off what it did before the deadline.
    """

    def __init__(self, stalls: Stalls, timeout_s: float) -> None:
        """In so many seconds from now."""
        self._stalls = stalls
        self._starved_s = -_starved_s()
        self._at_s = time.monotonic() + timeout_s

    def join(self) -> None:
        """Take off what the calling thread waited, too: one that began with the barrier."""
        self._starved_s += _starved_s()

    def passed_s(self) -> float:
        """For how many seconds of this process's time it has passed."""
        now_s = time.monotonic()
        if now_s <= self._at_s:
            return 0.0
        taken_s = self._stalls.within(self._at_s, now_s) + self._starved_s + _starved_s()
        return now_s - self._at_s - taken_s


def _starved_s() -> float:
    """For how long this thread has waited for a processor so far; 0 where nobody tells."""
    with suppress(OSError, IndexError):
        return int(_OWN.read_bytes().split()[1]) / 1e9
    return 0.0
