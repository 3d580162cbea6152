"""Watchers: for each shim one connection, and one thread while somebody waits, none otherwise."""

from __future__ import annotations

import heapq
import math
import os
import threading
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from antipode._lineage.outcomes import Status
from antipode._lineage.write_id import Promise
from antipode._runtime.clock import SYSTEM_CLOCK, NoThread
from antipode._runtime.metrics import count, log_seldom, logger
from antipode._runtime.wake import Wake

from .contract import PRIMARY_KEY, Observation, Unreachable, is_absent
from .decisions import CLOSED, CONNECT_S, MOST_POLL_S, Pacer, why
from .expectation import Expectation
from .subscribers import Subscribers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from antipode._lineage.write_id import Dependency, WriteId
    from antipode._runtime.clock import Clock

    from .contract import Endpoint
    from .subscribers import Subscriber, Waiting

#: The longest pause at a server that ends it; what it cannot push is polled then.
SLICE_S = 1.0
#: Seconds for which nobody who is in a hurry asks again where no server was.
ABSENT_S = 1.0
#: Seconds for which a server that did not know a log is taken not to know it.
UNKNOWN_S = 30.0
#: Writes of unknown logs that are remembered: the names of logs come from outside.
MOST_UNKNOWN = 1_000
#: What the second half of a poll gets at least: clients take 0 for "no limit".
LEAST_LOOK_S = 0.005
#: A pause that ends so many microseconds before its time was ended by the server.
PUSHED_US = 500


class Watched(Protocol):
    """Where a watcher polls: a store."""

    @property
    def datastore(self) -> str:
        """Its name."""
        ...

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect; as a shim does."""
        ...


class Knowledge:
    """What one server incarnation is known to show, over one connection.

    Sound only while the server's history cannot change under the connection
    (``Endpoint.pinned``); a position that regresses drops everything.
    """

    def __init__(self) -> None:
        """Know nothing."""
        self._server = self._caveat = ""
        self._positions: dict[tuple[str, str], int] = {}
        self._opaque: set[WriteId] = set()
        self._fulfilled: set[str] = set()
        self._unknown: dict[WriteId, float] = {}

    def learn(self, observation: Observation, now_s: float) -> None:
        """Merge what a poll showed at *now_s*."""
        if observation.server != self._server:
            self.forget()
            self._server = observation.server
        self._caveat = observation.caveat
        for write, status in observation.statuses.items():
            self._note_unknown(write, status, now_s)
            if status is Status.VISIBLE:
                self._add(write)
            elif self._has(write):
                self.forget()
                return
        for promise, status in observation.promises.items():
            if status is Status.VISIBLE:
                self._fulfilled.add(promise.id)
            elif self._has(promise):
                self.forget()
                return

    def recall(self, wanted: Iterable[Dependency]) -> Observation | None:
        """The part of *wanted* that is known to be visible; None where that is nothing."""
        known = [each for each in wanted if self._has(each)]
        if not known:
            return None
        writes, promises = _sorted_out(known)
        return Observation(
            self._server,
            dict.fromkeys(writes, Status.VISIBLE),
            promises=dict.fromkeys(promises, Status.VISIBLE),
            caveat=self._caveat,
        )

    def lacks(self, write: WriteId, now_s: float) -> bool:
        """Whether the server did not know the log of *write*, so recently that it counts."""
        since_s = self._unknown.get(write)
        return since_s is not None and now_s - since_s < UNKNOWN_S

    def forget(self) -> None:
        """Know nothing again."""
        self._server = ""
        self._unknown.clear()
        self._positions.clear()
        self._opaque.clear()
        self._fulfilled.clear()

    def _note_unknown(self, write: WriteId, status: Status, now_s: float) -> None:
        """Remember that the log of *write* is unknown, and forget it by any other answer."""
        self._unknown.pop(write, None)
        if status is Status.UNKNOWN_LOG:
            if len(self._unknown) >= MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[write] = now_s

    def _add(self, write: WriteId) -> None:
        if isinstance(write.version, int):
            log = write.datastore, write.key
            self._positions[log] = max(self._positions.get(log, 0), write.version)
        elif write.key != PRIMARY_KEY:  # Which primary it follows is asked each time.
            self._opaque.add(write)

    def _has(self, wanted: Dependency) -> bool:
        if isinstance(wanted, Promise):
            return wanted.id in self._fulfilled
        if isinstance(wanted.version, int):
            return wanted.version <= self._positions.get((wanted.datastore, wanted.key), -1)
        return wanted in self._opaque


class Watcher:
    """Polls one server for everybody who waits there: equal waits share each poll."""

    def __init__(self, shim: Watched, clock: Clock = SYSTEM_CLOCK) -> None:
        """Watch for *shim*; nothing is opened before somebody waits."""
        self.name = f"antipode-watch-{shim.datastore}"
        self._shim = shim
        self.clock = clock
        self._reset()
        _watchers.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._using = threading.Lock()
        self._subscribers = Subscribers()
        self._bounds: list[tuple[float, int, Subscriber]] = []  # When some end by themselves.
        self._running = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._endpoint: Endpoint | None = None
        self._knowledge = Knowledge()
        self._pacer = Pacer()
        self._expectation = Expectation()
        # When the last polls began, of those that follow each other at once the first; None for
        # one that showed nothing.
        self._polled_us: int | None = None
        self._since_us: int | None = None
        self._due_us = 0
        self._is_polled = False  # Who waits polled in vain just now.
        self._away = ""
        self._absent_s = -math.inf
        self.wake = Wake()

    def subscribe(
        self, subscriber: Subscriber, *, is_polled: bool = False, until_s: float | None = None
    ) -> None:
        """Poll for *subscriber* until it wants nothing more or unsubscribes.

        At once, unless it *is_polled*: :meth:`try_look` was in vain just now. Where nobody can
        poll, it learns so at once; who comes later tries again. One that wants nothing more from
        *until_s* on is forgotten then.
        """
        wanted = subscriber.wanted(self._shim.datastore)
        if not wanted:
            return
        with self._lock:
            cause = CLOSED if self._closed else self._join(subscriber, wanted, is_polled=is_polled)
            if until_s is not None and not cause:
                heapq.heappush(self._bounds, (until_s, id(subscriber), subscriber))
            if not subscriber.wanted(self._shim.datastore):  # It ended meanwhile, elsewhere.
                self._leave(subscriber)
        if cause:
            subscriber.failed(self._shim.datastore, cause)

    def _join(
        self, subscriber: Subscriber, wanted: Collection[Dependency], *, is_polled: bool
    ) -> str:
        """Take *subscriber* in; why nobody polls for it, empty where somebody does."""
        now_us = self._now_us()
        if self._running and (self._thread is None or self._thread.is_alive()):
            self._is_polled = False
            self.wake.set()
        else:
            self._is_polled, self._polled_us = is_polled, now_us if is_polled else None
            try:
                self._thread = self.clock.spawn(self)
            except NoThread as error:
                return str(error)
            self._running = True
        self._subscribers.join(subscriber, wanted, now_us)
        return ""

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop polling for *subscriber*; without others the thread ends."""
        with self._lock:
            self._leave(subscriber)

    def _leave(self, subscriber: Subscriber) -> None:
        self._subscribers.leave(subscriber)
        if not self._subscribers:
            self.wake.set()

    def _now_us(self) -> int:
        return round(self.clock.monotonic() * 1e6)

    def recall(self, wanted: Iterable[Dependency]) -> Observation | None:
        """What of *wanted* is known to be visible without a poll, None where nothing is."""
        endpoint = self._endpoint
        if endpoint is None or not endpoint.pinned:
            return None
        return self._knowledge.recall(wanted)

    def lacks(self, write: WriteId) -> bool:
        """Whether it is known without a poll that the server does not know the log of *write*."""
        return self._knowledge.lacks(write, self.clock.monotonic())

    @property
    def away(self) -> str:
        """Why the last poll failed; empty where it did not."""
        return self._away

    @property
    def absent(self) -> bool:
        """Whether no server was there a moment ago: refused, or its name has no address."""
        return self.clock.monotonic() - self._absent_s < ABSENT_S

    def try_look(self, wanted: Collection[Dependency], timeout_s: float) -> Observation | None:
        """Poll from the caller's thread; None when the watcher has to.

        That is when it is at work itself, and when there is no connection: to make one may
        outlast a short deadline, only to be given up and begun again by the next caller.

        Raises:
            Unreachable: the poll failed.
            Exception: polling again cannot help.
        """
        if self._closed or not self._using.acquire(blocking=False):
            return None
        try:
            return None if self._endpoint is None else self._look(wanted, timeout_s)
        finally:
            self._using.release()

    def step(self) -> float | None:
        """Poll once; seconds until the next poll, None when nobody waits."""
        is_woken = self.wake.is_set()
        self.wake.clear()
        if not self._is_waited_for():
            self._rest()
            return None
        is_polled, self._is_polled = self._is_polled, False
        if is_polled and not self._ends_pauses():  # That pause needs a poll of its own.
            return self._pause_s()
        polled_us, is_first = self._now_us(), not self._subscribers.unasked
        if is_first:
            self._since_us, self._polled_us = self._polled_us, None
        with self._lock:
            wanted = self._subscribers.asks()
        if not wanted:  # The last one has left at this moment.
            return 0.0
        try:
            with self._using:
                observation = self._look(wanted, MOST_POLL_S)
        except Unreachable as error:
            count("poll_failed", self._shim.datastore)
            cause = why(error)
            self._fail(lambda each: each.unreachable(self._shim.datastore, cause))
            return self._pacer.backoff_s()
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may hang on it
            logger.warning("a poll of %r failed for good", self._shim.datastore, exc_info=True)
            cause = f"{type(error).__name__}: {error}"
            self._fail(lambda each: each.failed(self._shim.datastore, cause))
            return 0.0
        self._pacer.succeeded()
        if is_first:
            self._polled_us = polled_us
        ended = self._tell(observation)
        is_pushed = not is_woken and polled_us < self._due_us - PUSHED_US
        self._learn(ended, polled_us if is_pushed else self._since_us, polled_us)
        return 0.0 if self._subscribers.unasked else self._pause_s()

    def _is_waited_for(self) -> bool:
        """Whether anybody waits; where nobody does, the watcher is at rest."""
        now_s = self.clock.monotonic()
        with self._lock:
            while self._bounds and self._bounds[0][0] < now_s:
                _, _, subscriber = heapq.heappop(self._bounds)
                if not subscriber.wanted(self._shim.datastore):
                    self._subscribers.leave(subscriber)
            self._running = bool(self._subscribers)
            if not self._running:
                self._bounds.clear()
                self.wake.close()
            return self._running

    def _fail(self, tell: Callable[[Subscriber], None]) -> None:
        """Tell those who waited when the poll began that it showed nothing."""
        self._polled_us = None
        with self._lock:
            waiting = self._subscribers.failed()
        for each in waiting:
            tell(each.subscriber)
        self._settled(waiting)

    def _tell(self, observation: Observation) -> list[int]:
        """Tell whom a poll was for, or met; when those joined who wait no longer."""
        with self._lock:
            told = self._subscribers.shown(observation, self.clock.monotonic())
        for each, left_s in told.whom.items():
            each.subscriber.take(self._shim.datastore, told.observation, left_s)
        return self._settled(told.whom)

    def _settled(self, told: Iterable[Waiting]) -> list[int]:
        """Forget those of *told* that wait no longer; when they joined."""
        with self._lock:
            return self._subscribers.settle(told, self._shim.datastore)

    def _learn(self, joined: Iterable[int], since_us: int | None, polled_us: int) -> None:
        """Remember one wait of those that a poll ended which one at *since_us* had not."""
        if since_us is None:
            return
        waits = sorted(each for each in joined if each <= since_us)
        if waits:
            joined_us = waits[len(waits) // 2]
            self._expectation.learn(since_us - joined_us, polled_us - joined_us)

    def _pause_s(self) -> float:
        """Seconds until the next poll, after one that left something to wait for."""
        if self._ends_pauses():
            self._due_us = self._now_us() + round(SLICE_S * 1e6)
            return SLICE_S
        with self._lock:
            if not self._subscribers:
                return 0.0
            now_us = self._now_us()
            self._due_us = self._expectation.next_us(now_us, self._subscribers.joined)
        return (self._due_us - now_us) / 1e6

    def _ends_pauses(self) -> bool:
        """Whether the server ends a pause once anything that is waited for may be visible."""
        endpoint = self._endpoint
        if endpoint is None or not endpoint.blocks:
            return False
        return endpoint.pushes_promises or not self._subscribers.promised

    def _look(self, wanted: Collection[Dependency], timeout_s: float) -> Observation:
        """Poll once within *timeout_s*, after connecting if need be, which has its own limit.

        Who waits may give up while a connection is made: it is kept for who waits next.
        """
        count("polls", self._shim.datastore)
        try:
            if self._endpoint is None:
                self._endpoint = self._shim.open_endpoint(timeout_s=CONNECT_S)
            deadline_s = self.clock.monotonic() + timeout_s
            observation = _observed(self._endpoint, wanted, deadline_s, self.clock)
        except BaseException as error:
            self._away = why(error) if isinstance(error, Unreachable) else ""
            self._note_absence(error)
            self._drop_endpoint()
            raise
        self._away = ""
        self._absent_s = -math.inf
        self._knowledge.learn(observation, self.clock.monotonic())
        return observation

    def _note_absence(self, error: BaseException) -> None:
        """Know, and log once while it lasts, that no server is there."""
        if not (isinstance(error, Unreachable) and is_absent(error)):
            self._absent_s = -math.inf
            return
        known, self._absent_s = self._absent_s, self.clock.monotonic()
        if known == -math.inf:
            message = "no server of %r is there, and reads that can go elsewhere do not wait: %s"
            log_seldom(
                "absent_server", self._shim.datastore, message, self._shim.datastore, why(error)
            )

    def _drop_endpoint(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        self._knowledge.forget()
        if endpoint is not None:
            try:
                endpoint.close()
            except Exception:  # noqa: BLE001 - it is given up either way
                logger.debug("closing the endpoint of %r failed", self._shim.datastore)

    def pause(self, timeout_s: float) -> None:
        """Wait for *timeout_s* seconds, for a push of the server, or for a subscriber."""
        if timeout_s <= 0:
            return
        with self._using:
            if self._endpoint is None:
                self.wake.wait(timeout_s)
                return
            try:
                self._endpoint.pause(timeout_s, self.wake)
            except Exception:  # noqa: BLE001 - the next poll connects again and reports
                self._drop_endpoint()

    def _rest(self) -> None:
        """Inform the endpoint that nobody waits, unless somebody came meanwhile."""
        with self._using:
            if self._closed:
                self._drop_endpoint()
            if self._endpoint is None or self._running:
                return
            try:
                self._endpoint.rest()
            except Exception:  # noqa: BLE001 - the next poll connects again and reports
                self._drop_endpoint()

    def retire(self) -> None:
        """Take nobody in any more, and end once those who wait here are done. Idempotent."""
        with self._lock:
            self._closed = True
            waited_for = self._running and bool(self._subscribers)
        if not waited_for:
            self.close()

    def close(self) -> None:
        """Fail whoever waits, end the thread and release the connection. Idempotent."""
        with self._lock:
            self._closed = True
            left, self._subscribers = tuple(self._subscribers), Subscribers()
            thread, self._thread = self._thread, None
        self.wake.set()
        if (endpoint := self._endpoint) is not None:
            endpoint.interrupt()
        for each in left:
            each.failed(self._shim.datastore, CLOSED)
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * MOST_POLL_S)
            if thread.is_alive():
                return  # It is making a connection, which it releases itself.
        with self._using:
            self._drop_endpoint()

    def after_patch(self) -> None:
        """Start over with other locks, unless a thread is at work with these."""
        if not (self._running or self._closed):
            self._drop_endpoint()
            self._reset()

    def after_fork(self) -> None:
        """Start over in a child process: the parent keeps the connection and the thread."""
        self._reset()


def _sorted_out(wanted: Iterable[Dependency]) -> tuple[list[WriteId], list[Promise]]:
    """The writes and the promises of *wanted*."""
    writes: list[WriteId] = []
    promises: list[Promise] = []
    for each in wanted:
        if isinstance(each, Promise):
            promises.append(each)
        else:
            writes.append(each)
    return writes, promises


def _observed(
    endpoint: Endpoint, wanted: Iterable[Dependency], deadline_s: float, clock: Clock
) -> Observation:
    """What *endpoint* shows of *wanted*: one poll of one history.

    Raises:
        Unreachable: as ``Endpoint.observe``; or the history changed between the two halves.
    """

    def left_s() -> float:
        return max(deadline_s - clock.monotonic(), LEAST_LOOK_S)

    writes, promises = _sorted_out(wanted)
    if not promises:
        return endpoint.observe(writes, timeout_s=left_s())
    records = endpoint.promised(promises, timeout_s=left_s())
    found = {each: records.promises.get(each, Status.NOT_YET) for each in promises}
    if not writes:
        return replace(records, promises=found)
    shown = endpoint.observe(writes, timeout_s=left_s())
    if shown.server != records.server:
        msg = "the server's history changed during the poll"
        raise Unreachable(msg)
    return replace(shown, promises=found, promise_causes=records.promise_causes)


_watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()


def after_patch() -> None:
    """Take locks of the kind that ``threading`` has by now, where nobody waits."""
    for watcher in tuple(_watchers):
        watcher.after_patch()


def _after_fork() -> None:
    for watcher in tuple(_watchers):
        watcher.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
