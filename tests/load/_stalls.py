"""When the machine gave this process no time: a barrier cannot end in a moment that never was."""

from __future__ import annotations

import threading
import time
from array import array

#: How often the clock is looked at, and how late that may be before it counts, in seconds.
_EVERY_S = 0.005
_LATE_S = 0.02


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
