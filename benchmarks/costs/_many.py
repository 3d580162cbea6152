"""Many barriers that wait at one log: what a poll, one of them and its thread cost."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING

import antipode
from antipode import Lineage, Status, WriteId
from antipode._barrier.barrier import Barrier
from antipode.shim import Endpoint, Observation, Shim
from antipode_testing import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType

    from antipode._runtime.clock import Clock

POSTS, LOG = "posts", "log"
#: Polls of one row, of which each meets one barrier.
POLLS = 20


@dataclass(frozen=True, slots=True)
class Many:
    """What it costs that so many wait.

    Attributes:
        waiting: how many.
        calls: Python calls of a poll that meets one.
        poll_us: the least processor time of such a poll.
        join_us: processor time until the last tenth of them had joined, for each.
        bytes_each: memory of each, its task included.
        threads: of the library.
    """

    waiting: int
    calls: int
    poll_us: float
    join_us: float
    bytes_each: float
    threads: int


class Replica(Shim):
    """A replica of one log: has what is at *position* and before."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(POSTS, reads_from="replica")
        if clock is not None:
            self.clock = clock
        self.position = 0
        self.polls = 0

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        del timeout_s
        return _Connection(self)


class _Connection(Endpoint):
    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        del timeout_s
        self._replica.polls += 1
        at = self._replica.position
        shown = {w: Status.VISIBLE if int(w.version) <= at else Status.NOT_YET for w in writes}
        return Observation("replica", shown)

    def close(self) -> None:
        """Nothing is open."""


def cost_of(waiting: int) -> Many:
    """What it costs that *waiting* barriers wait, each for a position of its own."""
    calls, poll_us, join_us = _polled(waiting)
    bytes_each, threads = asyncio.run(_tasks(waiting))
    return Many(waiting, calls, poll_us, join_us, bytes_each, threads)


def _lineage(position: int) -> Lineage:
    return Lineage([WriteId(POSTS, LOG, position)])


def _polled(waiting: int) -> tuple[int, float, float]:
    """Python calls and microseconds of a poll that meets one; microseconds to join."""
    with Replica(VirtualClock()) as replica:
        antipode.shim.register(replica)
        waiters = []
        for position in range(1, waiting + POLLS + 2):
            call = Barrier(_lineage(position), timeout=30, on_unmet="return")
            waiters.append(call.waiter(lambda: None))
        late = waiters[waiting - waiting // 10 :]
        for each in waiters[: -len(late)]:
            each.subscribe()
        began_s = time.thread_time()
        for each in late:
            each.subscribe()
        join_us = (time.thread_time() - began_s) * 1e6 / len(late)
        watcher = replica.watcher
        watcher.step()  # That of those who just joined.
        times_us = []
        for _ in range(POLLS):
            replica.position += 1
            began_s = time.thread_time()
            watcher.step()
            times_us.append((time.thread_time() - began_s) * 1e6)
        replica.position += 1
        calls = _calls_of_a_step(watcher.step)
        for each in waiters:
            each.cancel()
    return calls, min(times_us), join_us


def _calls_of_a_step(step: Callable[[], object]) -> int:
    count = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        del frame, arg
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(before)
    return count


async def _tasks(waiting: int) -> tuple[float, int]:
    """Bytes of each task that waits, and how many threads there are for all of them."""
    with Replica() as replica:
        antipode.shim.register(replica)
        lineages = [_lineage(position) for position in range(1, waiting + 1)]
        others = set(threading.enumerate())
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            tasks = [
                asyncio.create_task(antipode.barrier_async(each, timeout=30, on_unmet="return"))
                for each in lineages
            ]
            await asyncio.sleep(0)  # Each runs until it waits.
            gc.collect()
            size = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        threads = len(set(threading.enumerate()) - others)
        replica.position = waiting
        await asyncio.gather(*tasks)
    return size / waiting, threads
