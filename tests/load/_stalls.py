"""When the machine gave this process no time: a barrier cannot end in a moment that never was."""

from __future__ import annotations

import threading
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How often the clock is looked at, and how late that may be before it counts, in seconds.
_EVERY_S = 0.005
_LATE_S = 0.02
#: How often Linux is asked for how long threads waited for a processor, in seconds.
_ASK_S = 0.05


class Stalls:
    """A thread that does nothing but wake up, and notes when it could not.

    What keeps it from waking is the machine, not a barrier: it takes no lock of the library. It
    also notes for how long the threads of this process could have run and had no processor.
    """

    def __init__(self) -> None:
        """Begin to watch."""
        # Pairs in a row, one block of memory however many: begin and end of a stall, and a moment
        # with the seconds for which threads had waited for a processor until then.
        self._spans = array("d")
        self._starved = array("d")
        self._waited_ns: dict[str, int] = {}
        self._total_s = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ask()
        self._thread = threading.Thread(target=self._watch, name="load-stalls")
        self._thread.start()

    def _watch(self) -> None:
        began_s = time.monotonic()
        while not self._over.wait(_EVERY_S):
            ended_s = time.monotonic()
            if ended_s - began_s > _EVERY_S + _LATE_S:
                self._spans.extend((began_s + _EVERY_S, ended_s))
            began_s = ended_s
            if began_s - self._starved[-2] > _ASK_S:
                self._ask()

    def _ask(self) -> None:
        """Add up what the threads that there are have waited since the last time."""
        with self._lock:
            waited_ns = dict(_waited_ns())
            before_ns = self._waited_ns
            self._total_s += sum(ns - before_ns.get(of, 0) for of, ns in waited_ns.items()) / 1e9
            self._waited_ns = waited_ns
            self._starved.extend((time.monotonic(), self._total_s))

    def within(self, from_s: float, to_s: float) -> float:
        """For how many seconds of this span the process stood still."""
        spans = self._spans[:]
        pairs = zip(spans[::2], spans[1::2], strict=False)
        return sum(max(min(to_s, end) - max(from_s, begin), 0.0) for begin, end in pairs)

    def starved_since(self, from_s: float) -> float:
        """For how many seconds threads have waited for a processor, all together."""
        if time.monotonic() - self._starved[-2] > _EVERY_S:
            self._ask()
        starved = self._starved[:]
        index = len(starved) - 2
        while index > 0 and starved[index] > from_s:
            index -= 2
        return starved[-1] - starved[index + 1]

    def late_s(self, deadline_s: float) -> float:
        """For how many seconds a deadline has passed, those aside that the machine took."""
        now_s = time.monotonic()
        if now_s <= deadline_s:
            return 0.0
        late_s = now_s - deadline_s - self.within(deadline_s, now_s)
        return late_s - self.starved_since(deadline_s)

    def __str__(self) -> str:
        stood_s = self.within(0.0, time.monotonic())
        return f"stood still for {stood_s:.1f} s, waited for a processor for {self._total_s:.1f} s"

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()


def _waited_ns() -> Iterator[tuple[str, int]]:
    """For how many nanoseconds each thread has waited for a processor; nothing where unknown."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError, IndexError):  # It has ended, or this Linux does not tell.
            yield task.name, int((task / "schedstat").read_bytes().split()[1])
