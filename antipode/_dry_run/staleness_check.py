"""What becomes of the dependencies of unguarded reads: polled after them, in the background.

A poll that began after a read and does not show its dependency proves that the read did not show
it either. That a read is over is known from what its thread or task does next.
"""

from __future__ import annotations

import sys
import threading
import weakref
from asyncio import _get_running_loop, current_task
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from antipode._barrier.decisions import CLOSED
from antipode._barrier.registry import shared_watcher
from antipode._lineage.outcomes import Status
from antipode._runtime.metrics import count

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Mapping

    from antipode._barrier.contract import Observation
    from antipode._barrier.watcher import Watcher
    from antipode._lineage.write_id import Dependency
    from antipode._runtime.observers import Client

    Runner = asyncio.Task[Any] | int

#: Reads that are observed at a time: each waits until its replica shows what it missed, at one
#: watcher, so that many cost little. With few, a replica that lags by a second had most dropped.
MOST = 64
#: Reads of which it is not known yet that they are over.
MOST_OPEN = 64
#: Reads of one finding that are all observed; of more, one in so many seconds. A poll takes
#: longer than the read, and who is sent so many does not learn more from each.
EAGER = 100
EVERY_S = 0.1
_MOST_FINDINGS = 10_000
#: Seconds after a read within which its dependencies are polled.
BOUND_S = 10.0

_SHOWN = frozenset({Status.VISIBLE, Status.SUPERSEDED})
#: Of a server that cannot say: something of it, or of its user's rights, is not as it must be.
_UNSHOWABLE = frozenset({Status.UNKNOWN_LOG, Status.UNDECIDABLE})
_ABSENT = frozenset({Status.NOT_YET, Status.LOST})


class Evidence:
    """Observes unguarded reads, a few at a time; what is beyond is dropped and counted.

    Attributes:
        open_reads: those that may still be under way, by the task or thread that makes them.
    """

    def __init__(self, put: Callable[[Mapping[str, Any]], None]) -> None:
        """Hand findings to *put*, from any thread."""
        self.put = put
        self.lock = threading.Lock()
        self.open_reads: list[tuple[weakref.ref[asyncio.Task[Any]] | int, Look]] = []
        self._running: set[Look] = set()
        #: By finding: how many of its reads were observed, and when the last one was.
        self._looked: dict[object, tuple[int, float]] = {}

    def wants(self, finding: object) -> bool:
        """Whether one more read of *finding* shall be observed."""
        now_s = monotonic()
        looked, last_s = self._looked.get(finding, (0, 0.0))
        if looked >= EAGER and now_s - last_s < EVERY_S:
            return False
        with self.lock:
            if len(self._looked) >= _MOST_FINDINGS:
                self._looked.clear()
            self._looked[finding] = looked + 1, now_s
        return True

    def seek(
        self,
        client: Client,
        writes: Collection[Dependency],
        of: Mapping[str, Any] | None,
        *,
        runner: Runner,
        since_s: float,
        tell: Callable[[str], object],
    ) -> None:
        """Observe a read by *client*, once that is over.

        Args:
            client: which reads.
            writes: what it may miss.
            of: the fields that its evidence begins with; None where it leaves none.
            runner: who reads, as :func:`running`.
            since_s: when, by the client's clock.
            tell: is called with why the server cannot say whether it shows them.
        """
        watcher = shared_watcher(client)
        if watcher is None:
            return
        look = Look(self, client.datastore, watcher, writes, of, since_s=since_s, tell=tell)
        with self.lock:
            if room := len(self.open_reads) < MOST_OPEN:
                held = runner if isinstance(runner, int) else weakref.ref(runner)
                self.open_reads.append((held, look))
        if not room:
            count("dry_run_evidence_dropped", client.datastore)

    def over(self) -> None:
        """This task or thread goes on: its reads are over, as are those of others that ended."""
        if not self.open_reads:
            return
        here = running()
        with self.lock:
            due = [look for runner, look in self.open_reads if _is_over(runner, here)]
            late = [look for _, look in self.open_reads if look not in due and look.late]
            self.open_reads = [each for each in self.open_reads if each[1] not in (*due, *late)]
            begin = due[: max(MOST - len(self._running), 0)]
            self._running.update(begin)
        for look in begin:
            look.begin()
        for look in (*due[len(begin) :], *late):
            count("dry_run_evidence_dropped", look.datastore)

    def ended(self, look: Look) -> None:
        """*look* is over."""
        with self.lock:
            self._running.discard(look)

    def settle(self, timeout_s: float) -> None:
        """Wait until each check that has begun polled once, or is over; at most *timeout_s*."""
        deadline = monotonic() + timeout_s
        with self.lock:
            running = tuple(self._running)
        for look in running:
            look.looked.wait(max(deadline - monotonic(), 0.0))

    def close(self) -> None:
        """Observe nothing any more; what is known by now is recorded."""
        with self.lock:
            running = tuple(self._running)
            self.open_reads = []
        for look in running:
            look.stop()


class Look:
    """Waits at a watcher, as a barrier does, for what one read may have missed."""

    def __init__(
        self,
        evidence: Evidence,
        datastore: str,
        watcher: Watcher,
        writes: Collection[Dependency],
        of: Mapping[str, Any] | None,
        *,
        since_s: float,
        tell: Callable[[str], object],
    ) -> None:
        """Wait for *writes* of *datastore*, from :meth:`begin` on; the read was at *since_s*."""
        self.datastore = datastore
        self.since_s = since_s
        self._evidence = evidence
        self._watcher = watcher
        self._left = set(writes)
        self._of = of
        self._tell = tell
        self.looked = threading.Event()
        self._over = False
        self._confirmed: bool | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """The read is over: what is polled from now on came after it."""
        self._watcher.subscribe(self, until_s=self.since_s + BOUND_S)

    def stop(self) -> None:
        """Give up, with what is known."""
        self._end(None)
        self._watcher.unsubscribe(self)

    def wanted(self, datastore: str) -> Collection[Dependency]:
        """What was not seen yet, until the bound is over."""
        del datastore
        if not self._over and self.late:
            self._end(None)
        return () if self._over else tuple(self._left)

    def take(self, datastore: str, observation: Observation, left_s: float | None = None) -> None:
        """Take in what a poll showed; only the first says what the read can have shown."""
        del datastore, left_s
        outcomes = {w: observation.of(w) for w in self._left}
        statuses = {w: status for w, (status, _) in outcomes.items()}
        found = set(statuses.values())
        for cause in {cause for status, cause in outcomes.values() if status in _UNSHOWABLE}:
            self._tell(cause)
        if not self.looked.is_set():
            self._confirmed = True if found & _ABSENT else None
            self.looked.set()
        self._left = {w for w, status in statuses.items() if status not in _SHOWN}
        if not self._left:
            self._end(self._elapsed_s())
        elif not all(statuses[w].pending for w in self._left):
            self._end(None)

    def unreachable(self, datastore: str, cause: str) -> None:
        """The next poll may not fail."""

    def failed(self, datastore: str, cause: str) -> None:
        """There is no further poll."""
        del datastore
        if cause != CLOSED:
            self._tell(cause)
        self._end(None)

    @property
    def late(self) -> bool:
        """Whether there is nothing to find out any more."""
        return self._elapsed_s() > BOUND_S

    def _elapsed_s(self) -> float:
        return self._watcher.clock.monotonic() - self.since_s

    def _end(self, waited_s: float | None) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
        self.looked.set()
        self._evidence.ended(self)
        if self._of is None:
            return
        waited = None if waited_s is None else round(waited_s, 6)
        self._evidence.put({**self._of, "confirmed": self._confirmed, "waited_s": waited})


def running() -> Runner:
    """The task that runs here; without one the thread, by its identifier: part of many a read."""
    loop = _get_running_loop()
    task = None if loop is None else current_task(loop)
    return task or get_ident()


def _is_over(runner: weakref.ref[asyncio.Task[Any]] | int, here: Runner) -> bool:
    """Whether what *runner* did before is over, now that *here* goes on."""
    if isinstance(runner, int):
        # By its frames, which threads that Python did not start have as well while they read.
        return runner == here or runner not in sys._current_frames()  # noqa: SLF001
    task = runner()
    return task is None or task is here or task.done()
