"""When the machine gave this process no time: a barrier cannot end in a moment that never was."""

from __future__ import annotations

import os
import threading
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How late a barrier may end after its deadline, in seconds.
LATE_S = 0.1
#: How often the clock is looked at, and how late that may be before it counts, in seconds.
_EVERY_S = 0.005
_LATE_S = 0.01
#: How often Linux is asked for how long all threads waited for a processor, in seconds.
_ASK_S = 0.05


class Stalls:
    """A thread that does nothing but wake up, and notes when it could not.

    What keeps it from waking is the machine, not a barrier: it takes no lock of the library. It
    also notes for how long the threads of this process could have run and had no processor.
    """

    def __init__(self) -> None:
        """Begin to watch."""
        # Begin, end, begin, end: one block of memory, however often the machine stalls.
        self._spans = array("d")
        # A moment, and how long threads had waited until then; and so on.
        self._starved = array("d")
        self._waited_s: dict[str, float] = {}
        # The file that tells of a thread, open: to open it anew costs more than what is measured.
        self._files: dict[int, int] = {}
        self._lock = threading.Lock()
        self._ask()
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
            if ended_s - self._starved[-2] > _ASK_S:
                self._ask()

    def _ask(self) -> None:
        """Add up what the threads that there are have waited since the last time."""
        with self._lock:
            total_s = self._starved[-1] if self._starved else 0.0
            before_s, self._waited_s = self._waited_s, dict(_all_waited_s())
            total_s += sum(s - before_s.get(of, 0.0) for of, s in self._waited_s.items())
            self._starved.extend((time.monotonic(), total_s))

    def busy(self, late_s: float) -> bool:
        """Whether the machine had so much to do in the last *late_s* seconds that it was to blame.

        Threads wait for each other, so that each may have been late by what all of them waited
        for a processor, one after the other. On a machine that is not busy that is next to nothing.
        """
        self._ask()
        starved, index = self._starved[:], -2
        while -index < len(starved) and starved[index] > starved[-2] - late_s:
            index -= 2
        return starved[-1] - starved[index + 1] > late_s

    def starved_s(self) -> float:
        """For how long this thread has waited for a processor so far; 0 where nobody tells."""
        thread = threading.get_native_id()
        with suppress(OSError, IndexError):
            if (file := self._files.get(thread)) is None:
                file = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
                self._files[thread] = file
            return _waited_s(os.pread(file, 64, 0))
        return 0.0

    def within(self, from_s: float, to_s: float) -> float:
        """For how many seconds of this span the process stood still."""
        total_s = 0.0
        for index in range(len(self._spans) // 2 * 2 - 2, -1, -2):
            begin_s, end_s = self._spans[index : index + 2]
            if end_s <= from_s:
                break
            total_s += max(min(to_s, end_s) - max(from_s, begin_s), 0.0)
        return total_s

    @property
    def total_s(self) -> float:
        """For how many seconds the process stood still in all."""
        return self.within(0.0, time.monotonic())

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        for file in self._files.values():
            os.close(file)


class Deadline:
    """When a barrier must have ended, asked about by the thread that waits for it.

    Taken off are the moments in which the process stood still, and those in which that thread
    waited for a processor, from the beginning: each put off what it did before the deadline. On a
    machine that is too busy for a judgement there is none. Whoever asks holds up what it measures:
    what takes long is asked of barriers alone that would count as late.
    """

    def __init__(self, stalls: Stalls, timeout_s: float) -> None:
        """In so many seconds from now."""
        self._stalls = stalls
        self._starved_s = -stalls.starved_s()
        self._at_s = time.monotonic() + timeout_s

    def join(self) -> None:
        """Take off what the calling thread waited, too: one that began with the barrier."""
        self._starved_s += self._stalls.starved_s()

    def passed_s(self) -> float:
        """For how many seconds of this process's time it has passed."""
        now_s = time.monotonic()
        if now_s <= self._at_s + LATE_S:
            return max(now_s - self._at_s, 0.0)
        taken_s = self._stalls.within(self._at_s, now_s)
        taken_s += self._starved_s + self._stalls.starved_s()
        late_s = now_s - self._at_s - taken_s
        return 0.0 if late_s > LATE_S and self._stalls.busy(now_s - self._at_s) else late_s


def _all_waited_s() -> Iterator[tuple[str, float]]:
    """For how long each thread of this process has waited for a processor so far."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError, IndexError):  # It has ended, or this Linux does not tell.
            yield task.name, _waited_s((task / "schedstat").read_bytes())


def _waited_s(schedstat: bytes) -> float:
    """The second number: for how many nanoseconds a thread could have run and did not."""
    return int(schedstat.split()[1]) / 1e9
