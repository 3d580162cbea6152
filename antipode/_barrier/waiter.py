"""What connects one barrier, in whatever API, to the watchers of its datastores."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from antipode._runtime.metrics import logger

from .arguments import tell_of_stall
from .contract import Unreachable
from .decisions import CLOSED, MOST_POLL_S, why
from .registry import looking_shim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from antipode._lineage.outcomes import BarrierResult
    from antipode._lineage.write_id import Dependency
    from antipode._runtime.clock import Clock

    from .contract import Observation
    from .decisions import Wait
    from .watcher import Watcher


class Waiter:
    """A :class:`Wait` that watchers feed. Thread-safe."""

    def __init__(
        self,
        wait: Wait,
        notify: Callable[[], None],
        *,
        clock: Clock,
        once: bool = False,
        hasty: bool = False,
    ) -> None:
        """Call *notify*, from any thread, when *wait* is finished.

        Args:
            wait: the state, from now on changed by this object alone.
            notify: called once.
            clock: of the ``now_s`` that *wait* gets.
            once: be content with one poll of each datastore.
            hasty: end as soon as no server is there: who waits has another way to go.
        """
        self._wait = wait
        self._notify = notify
        self._clock = clock
        self._once = once
        self._hasty = hasty
        self._lock = threading.Lock()
        self._looked: set[str] = set()
        self._over = False
        self._is_polled = False
        self._watchers: dict[str, Watcher] = {}
        for datastore in tuple(wait.pending):
            if (shim := looking_shim(datastore)) is None:
                wait.failed(datastore, CLOSED, wait.started_s)
            else:
                self._watchers[datastore] = shim.watcher

    @property
    def left_s(self) -> float:
        """Seconds until the deadline of its wait."""
        return max(self._wait.deadline_s - self._clock.monotonic(), 0.0)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to wait for."""
        if self._hasty and any(self._watchers[each].absent for each in self._wait.pending):
            return True
        if self._once:  # Even if it cannot succeed any more: the caller asks what is visible.
            return self._looked.issuperset(self._wait.pending)
        return self._wait.finished

    def recall(self) -> None:
        """Settle what the watchers know already, without a round trip."""
        for datastore, watcher in self._watchers.items():
            if watcher.away:
                self._wait.unreachable(datastore, watcher.away, self._clock.monotonic())
        self._recall(self._watchers)

    def _recall(self, datastores: Iterable[str]) -> None:
        for datastore in datastores:
            known = self._watchers[datastore].recall(self._wait.pending[datastore])
            if known is not None:
                self._wait.record(datastore, known, self._clock.monotonic())

    def look_here(self) -> bool:
        """Poll from this thread, where there is one datastore and nobody polls it already.

        Saves starting a thread for the barrier that has nothing to wait for. False when the
        watcher has to do it, which alone makes connections.
        """
        pending = self._wait.pending
        if len(pending) != 1:
            return False
        ((datastore, asked),) = pending.items()
        try:
            observation = self._watchers[datastore].try_look(asked, min(self.left_s, MOST_POLL_S))
        except Unreachable as error:
            self.unreachable(datastore, why(error))
            return True
        except Exception:  # noqa: BLE001 - the watcher polls again, and knows what to retry
            return False
        if observation is None:
            return False
        self.take(datastore, observation)
        self._is_polled = True
        return True

    def subscribe(self) -> None:
        """Start to wait at the watchers of all that is pending."""
        for datastore in tuple(self._wait.pending):
            self._watchers[datastore].subscribe(self, is_polled=self._is_polled)

    def cancel(self) -> None:
        """Stop to wait; nothing is recorded any more. Idempotent."""
        with self._lock:
            self._over = True
        for watcher in self._watchers.values():
            watcher.unsubscribe(self)

    def wanted(self, datastore: str) -> Collection[Dependency]:
        """What it still waits for at *datastore*."""
        with self._lock:
            if self._over or self.finished or (self._once and datastore in self._looked):
                return ()
            return self._wait.pending.get(datastore, ())

    def take(self, datastore: str, observation: Observation, left_s: float | None = None) -> None:
        """Record what a server showed, and that it showed less at *left_s*."""

        def record(now_s: float) -> None:
            if left_s is not None:
                self._wait.wait_on(left_s)
            self._wait.record(datastore, observation, now_s)

        self._update(datastore, record)

    def unreachable(self, datastore: str, cause: str) -> None:
        """Record that a poll failed."""
        self._update(datastore, lambda now_s: self._wait.unreachable(datastore, cause, now_s))

    def failed(self, datastore: str, cause: str) -> None:
        """Record that there is no further poll."""
        self._update(datastore, lambda now_s: self._wait.failed(datastore, cause, now_s))

    def _update(self, datastore: str, record: Callable[[float], None]) -> None:
        with self._lock:
            if self._over:
                return
            before = frozenset(self._wait.pending)
            record(self._clock.monotonic())
            self._looked.add(datastore)
            doubted = [each for each in self._wait.pending if each not in before]
            self._looked.difference_update(doubted)
            self._recall(doubted)
            doubted = [each for each in doubted if each in self._wait.pending]
            finished = self.finished
            self._over = finished
        if finished:
            for each in self._watchers:
                if each != datastore:  # This one sees it, and learns how long the wait was.
                    self._watchers[each].unsubscribe(self)
            self._notify()
            return
        for each in doubted:  # Its watcher believes that nobody waits here any more.
            self._watchers[each].subscribe(self)


def one_server(result: BarrierResult, datastore: str) -> frozenset[str]:
    """The incarnation that showed all that was waited for of *datastore*; empty for several."""
    outcomes = (each for each in result.outcomes if each.write.datastore == datastore)
    servers = frozenset(each.server for each in outcomes if each.server)
    return servers if len(servers) == 1 else frozenset()


def wait_here(waiter: Waiter, finished: threading.Event) -> None:
    """Wait until *finished* is set, or the waiter's deadline, which a poll here may come near."""
    waiter.recall()
    if waiter.finished or _looked_here(waiter):
        return
    try:
        waiter.subscribe()
        finished.wait(waiter.left_s)
    finally:
        waiter.cancel()


def _looked_here(waiter: Waiter) -> bool:
    """Poll from this thread; whether that was enough."""
    tell_of_stall()
    return waiter.look_here() and waiter.finished


async def wait_async(make: Callable[[Callable[[], None]], Waiter]) -> None:
    """The asyncio twin of :func:`wait_here`; *make* gets what to call once it is finished."""
    import asyncio

    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    def notify() -> None:
        try:
            loop.call_soon_threadsafe(end)
        except RuntimeError:
            logger.debug("a barrier finished after its event loop was closed")

    waiter = make(notify)
    waiter.recall()
    if waiter.finished:
        return
    # Not wait_for: before Python 3.12 it swallows a cancellation that meets the end.
    timer = loop.call_later(waiter.left_s, end)
    try:
        waiter.subscribe()
        await over
    finally:
        timer.cancel()
        waiter.cancel()
