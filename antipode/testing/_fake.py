"""A virtual clock and a scripted fake datastore: the barrier's timing, exact and instant."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import AntipodeError, Status, WriteId
from antipode._barrier.barrier import Barrier
from antipode._barrier.watcher import LOOK_S
from antipode.shim import Endpoint, Observation, ReadsFrom, Shim, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode import BarrierResult, Lineage, Promise
    from antipode._barrier.waiter import Waiter
    from antipode._runtime.clock import Stepper

#: The hour at which virtual clocks start; any would do.
START_HOUR = 500_000


class VirtualClock:
    """Time that passes only between events; everything runs in the caller's thread.

    Barriers started with :meth:`barrier` use the library's own engine, watchers and pacing, so
    what is shown about looks and overshoot here holds there, less the time that looks take.
    """

    def __init__(self, *, hour: int = START_HOUR) -> None:
        """Start at 0 seconds, in Unix hour *hour*."""
        self._now_s = 0.0
        self._hour = hour
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._due: dict[Stepper, float] = {}

    def monotonic(self) -> float:
        """Virtual seconds since the start."""
        return self._now_s

    def hour(self) -> int:
        """The virtual Unix hour."""
        return self._hour + int(self._now_s // 3600)

    def unix_s(self) -> float:
        """The virtual Unix second."""
        return self._hour * 3600 + self._now_s

    def spawn(self, stepper: Stepper) -> None:
        """Step *stepper* when its pauses are over."""
        self._due[stepper] = self._now_s

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Do *action* when it is *when_s*; in the past means now."""
        event = max(when_s, self._now_s), next(self._order), action
        heapq.heappush(self._events, event)

    def barrier(
        self,
        lineage: Lineage | str | None = None,
        *,
        timeout: float,
        at_s: float = 0.0,
        checks: bool = False,
        **options: Any,
    ) -> VirtualBarrier:
        """Start ``antipode.barrier`` with these arguments when it is *at_s*.

        Where it *checks*, it looks once at each datastore, as ``antipode.check`` does.
        """
        call = VirtualBarrier(self, once=checks)
        self.at(at_s, lambda: call.start(lineage, timeout, options))
        return call

    def run(self) -> None:
        """Let time pass until nothing is left to happen."""
        while self._events or self._due:
            next_event_s = self._events[0][0] if self._events else float("inf")
            next_step_s = min(self._due.values(), default=float("inf"))
            self._now_s = min(next_event_s, next_step_s)
            if next_event_s <= next_step_s:
                heapq.heappop(self._events)[2]()
            else:
                self._step(min(self._due, key=self._due.__getitem__))
            for stepper in self._due:
                if stepper.wake.is_set():
                    self._due[stepper] = self._now_s

    def _step(self, stepper: Stepper) -> None:
        del self._due[stepper]
        delay_s = stepper.step()
        if delay_s is not None:
            self._due.setdefault(stepper, self._now_s + delay_s)


class VirtualBarrier:
    """A barrier on a virtual clock.

    Attributes:
        result: how it ended, once it has.
        error: what ``antipode.barrier`` would have raised; None when nothing.
        finished_s: when it ended.
    """

    def __init__(self, clock: VirtualClock, *, once: bool) -> None:
        """Not started; *once*: one look at each datastore."""
        self.result: BarrierResult | None = None
        self.error: AntipodeError | None = None
        self.finished_s: float | None = None
        self._clock = clock
        self._once = once

    def start(self, lineage: Lineage | str | None, timeout: float, options: dict[str, Any]) -> None:
        """Start now."""
        try:
            call = Barrier(lineage, timeout=timeout, clock=self._clock, **options)
        except AntipodeError as error:
            self._fail(error)
            return
        if (comparison := call.comparison()) is None:
            self._wait(call)
            return

        def compared() -> None:
            try:
                call.compared(comparison)
            except AntipodeError as error:
                self._fail(error)
            else:
                self._wait(call)

        self._await(comparison.waiter, min(call.left_s, LOOK_S), compared)

    def _wait(self, call: Barrier) -> None:
        self._await(partial(call.waiter, once=self._once), call.left_s, lambda: self._finish(call))

    def _await(
        self,
        make: Callable[[Callable[[], None]], Waiter],
        timeout_s: float,
        then: Callable[[], None],
    ) -> None:
        """Call *then* when the waiter that *make* makes is finished, or after *timeout_s*."""
        clock, over = self._clock, False

        def finish() -> None:
            nonlocal over
            if not over:
                over = True
                waiter.cancel()
                then()

        waiter = make(lambda: clock.at(clock.monotonic(), finish))
        waiter.recall()
        if waiter.finished:
            finish()
        else:
            waiter.subscribe()
            clock.at(clock.monotonic() + timeout_s, finish)

    def _finish(self, call: Barrier) -> None:
        self.finished_s = self._clock.monotonic()
        try:
            self.result = call.conclude()
        except AntipodeError as error:
            self._fail(error)

    def _fail(self, error: AntipodeError) -> None:
        self.error, self.finished_s = error, self._clock.monotonic()
        self.result = getattr(error, "result", None)


@dataclass
class _Script:
    """What a fake server does when."""

    statuses: dict[WriteId, list[tuple[float, Status]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    records: dict[Promise, list[tuple[float, Status]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    positions: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    servers: list[tuple[float, str]] = field(default_factory=lambda: [(0.0, "server-1")])
    down: list[tuple[float, float]] = field(default_factory=list)
    broken_from_s: float = float("inf")


class FakeStore(Shim):
    """A fake datastore that follows a script on a :class:`VirtualClock`. For unit tests.

    Attributes:
        look_times_s: when it was looked at, failed looks included.
        open_endpoints: how many connections to it are open.
    """

    def __init__(
        self,
        datastore: str,
        clock: VirtualClock,
        *,
        reads_from: ReadsFrom = "primary",
        waitable: bool = True,
        floors: bool = False,
        pinned: bool = False,
        push: bool = False,
        blocks: bool = False,
        promises: bool = False,
        unique_logs: bool = False,
    ) -> None:
        """A store without any log or write.

        Args:
            datastore: its name.
            clock: on which its script runs.
            reads_from: as of every shim.
            waitable: False for a message store without receipts.
            floors: whether its imaginary client satisfies floors.
            pinned: whether its history cannot change under a connection: to be replaced or down
                breaks those that there are.
            push: whether it wakes its watcher when something changes.
            blocks: whether its pauses last until it does so; for promises they do not.
            promises: whether it can look for promises.
            unique_logs: whether no other store can have a log of the same name.
        """
        super().__init__(datastore, reads_from=reads_from)
        self.clock = clock
        self._virtual = clock
        self.waitable = waitable
        self.floors = floors
        self.pinned = pinned
        self.blocks = blocks
        self.promises = promises
        self._unique_logs = unique_logs
        self.look_times_s: list[float] = []
        self.open_endpoints = 0
        self._push = push
        self._script = _Script()

    def log_start(self, key: str) -> WriteId | None:
        """The first position of a log, where its name is unique."""
        return WriteId(self.datastore, key, 1) if self._unique_logs else None

    def _changed(self, at_s: float) -> None:
        if self._push:
            self._virtual.at(at_s, self.watcher.wake.set)

    def advance(self, log: str, version: int, *, at_s: float = 0.0) -> None:
        """From *at_s* on, the replica has *log* up to *version*."""
        self._script.positions[log].append((at_s, version))
        self._changed(at_s)

    def set_status(self, write: WriteId, status: Status, *, at_s: float = 0.0) -> None:
        """From *at_s* on, *write* has *status*, whatever the positions say."""
        self._script.statuses[write].append((at_s, status))
        self._changed(at_s)

    def record(self, promise: Promise, status: Status, *, at_s: float = 0.0) -> None:
        """From *at_s* on, the record of *promise* says *status*, ``not_yet`` for none."""
        self._script.records[promise].append((at_s, status))
        self._changed(at_s)

    def replace_server(self, server: str, *, at_s: float) -> None:
        """From *at_s* on, looks reach the incarnation *server*."""
        self._script.servers.append((at_s, server))

    def take_down(self, *, from_s: float, until_s: float = float("inf")) -> None:
        """In this span looks fail and are worth repeating."""
        self._script.down.append((from_s, until_s))

    def break_down(self, *, from_s: float = 0.0) -> None:
        """From *from_s* on looks fail for good."""
        self._script.broken_from_s = from_s

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect.

        Raises:
            Unreachable: it is down now.
        """
        del timeout_s
        self.raise_if_down()
        return _FakeEndpoint(self)

    def raise_if_down(self) -> None:
        """Fail like a server that is down.

        Raises:
            Unreachable: it is down now.
        """
        now_s = self.clock.monotonic()
        if any(from_s <= now_s < until_s for from_s, until_s in self._script.down):
            self.look_times_s.append(now_s)
            msg = "scripted to be down"
            raise Unreachable(msg)

    def lost_since(self, opened_s: float) -> bool:
        """Whether a connection that was opened then has broken: replaced or down after it."""
        changes = [at_s for at_s, _ in (*self._script.servers, *self._script.down)]
        return any(opened_s < at_s <= self.clock.monotonic() for at_s in changes)

    def lose(self) -> None:
        """Fail like a server at which the connection has broken.

        Raises:
            Unreachable: always.
        """
        self.look_times_s.append(self.clock.monotonic())
        msg = "scripted to be replaced"
        raise Unreachable(msg)

    def look(self, writes: Collection[WriteId], promises: Collection[Promise] = ()) -> Observation:
        """Judge by what the script says for now.

        Raises:
            RuntimeError: it is broken.
        """
        now_s = self.clock.monotonic()
        self.look_times_s.append(now_s)
        if now_s >= self._script.broken_from_s:
            msg = "scripted to be broken"
            raise RuntimeError(msg)
        server = [name for at_s, name in self._script.servers if at_s <= now_s][-1]
        return Observation(
            server,
            {write: self._judge(write, now_s) for write in writes},
            promises={promise: self._recorded(promise, now_s) for promise in promises},
        )

    def _recorded(self, promise: Promise, now_s: float) -> Status:
        records = self._script.records.get(promise, ())
        return ([Status.NOT_YET] + [status for at_s, status in records if at_s <= now_s])[-1]

    def _judge(self, write: WriteId, now_s: float) -> Status:
        statuses = [s for at_s, s in self._script.statuses.get(write, ()) if at_s <= now_s]
        if statuses:
            return statuses[-1]
        timeline = self._script.positions.get(write.key, ())
        positions = [version for at_s, version in timeline if at_s <= now_s]
        if positions and isinstance(write.version, int) and positions[-1] >= write.version:
            return Status.VISIBLE
        return Status.NOT_YET


class _FakeEndpoint(Endpoint):
    def __init__(self, store: FakeStore) -> None:
        self._store: FakeStore | None = store
        self._opened_s = store.clock.monotonic()
        self.blocks = store.blocks
        store.open_endpoints += 1

    @property
    def pinned(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        store = self._store
        return store is not None and store.pinned and not store.lost_since(self._opened_s)

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        del timeout_s
        return self._open_store().look(writes)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        del timeout_s
        return self._open_store().look((), promises)

    def _open_store(self) -> FakeStore:
        if self._store is None:
            msg = "closed"
            raise Unreachable(msg)
        self._store.raise_if_down()
        if self._store.pinned and not self.pinned:
            self._store.lose()
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.open_endpoints -= 1
            self._store = None
