"""A virtual clock and a scripted fake datastore: the barrier's timing, exact and instant."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import AntipodeError, StaleSnapshot, Status, WriteId, barriers
from antipode._barrier.barrier import Barrier
from antipode._barrier.decisions import MOST_POLL_S
from antipode._barrier.fence import Fencer
from antipode._barrier.floor import HeldRead
from antipode._barrier.registry import shared_watcher
from antipode._runtime.wake import Wake
from antipode.shim import (
    Endpoint,
    Observation,
    ReadsFrom,
    Shim,
    StaleRead,
    Unreachable,
    floor,
    record_read,
    record_write,
)
from antipode.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from antipode import BarrierResult, Lineage, Promise
    from antipode._barrier.fence import Fence
    from antipode._barrier.waiter import Waiter
    from antipode._runtime.clock import Stepper
    from antipode.shim import Floor

#: The hour at which virtual clocks start; any would do.
START_HOUR = 500_000


class VirtualClock:
    """Time that passes only between events; everything runs in the caller's thread.

    Barriers started with :meth:`barrier` use the library's own engine, watchers and pacing, so
    what is shown about polls and overshoot here holds there, less the time that polls take.
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
        refresh: bool = True,
        cancel_at_s: float | None = None,
        **options: Any,
    ) -> VirtualBarrier:
        """Start ``antipode.barrier`` with these arguments when it is *at_s*.

        Where it *checks*, it polls each datastore once, as ``antipode.check`` does, or never
        without *refresh*. It is cancelled when it is *cancel_at_s*, unless it is over by then.
        """
        call = VirtualBarrier(self, once=checks, refresh=refresh)
        self.at(at_s, lambda: call.start(lineage, timeout, options))
        if cancel_at_s is not None:
            self.at(cancel_at_s, call.cancel)
        return call

    def read(
        self,
        store: FakeStore,
        connection: FakeStore,
        *,
        at_s: float = 0.0,
        **options: Any,
    ) -> VirtualRead:
        """Read from *store* when it is *at_s*, as its instrumented client does.

        Args:
            store: whose floor the read satisfies.
            connection: the server behind the connection that reads, for this read alone.
            at_s: when.
            options: as :class:`VirtualRead` takes them.
        """
        read = VirtualRead(self, store, connection, **options)
        self.at(at_s, read.start)
        return read

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
        cancelled: whether it ended by that.
    """

    def __init__(self, clock: VirtualClock, *, once: bool, refresh: bool) -> None:
        """Not started; *once*: one poll of each datastore, or none without *refresh*."""
        self.result: BarrierResult | None = None
        self.error: AntipodeError | None = None
        self.finished_s: float | None = None
        self.cancelled = False
        self._clock = clock
        self._once = once
        self._refresh = refresh
        self._waiter: Waiter | None = None
        self._fences: list[Fence] = []

    def start(self, lineage: Lineage | str | None, timeout: float, options: dict[str, Any]) -> None:
        """Start now."""
        try:
            call = Barrier(lineage, timeout=timeout, clock=self._clock, **options)
        except AntipodeError as error:
            self._fail(error)
            return
        if not self._refresh:
            call.waiter(lambda: None).recall()
            self._finish(call)
            return
        if (comparison := call.comparison()) is None:
            self._fence(call)
            return

        def compared() -> None:
            try:
                call.compared(comparison)
            except AntipodeError as error:
                self._fail(error)
            else:
                self._fence(call)

        self._await(comparison.waiter, min(call.left_s, MOST_POLL_S), compared)

    def cancel(self) -> None:
        """Wait no longer, unless it is over."""
        if self.finished_s is None:
            self.cancelled, self.finished_s = True, self._clock.monotonic()
            for fence in self._fences:
                fence.cancel()
            if self._waiter is not None:
                self._waiter.cancel()

    def _fence(self, call: Barrier) -> None:
        """Ask primaries for their positions, and wait once they are there, or too late."""
        if not call.plan.fenced:
            self._wait(call)
            return
        clock, fences = self._clock, call.ask_fences()
        self._fences, over = [each for asked in fences.values() for each in asked], False

        def go_on() -> None:
            nonlocal over
            if not over and not self.cancelled:
                over = True
                call.raise_fences(fences)
                self._wait(call)

        def answered(_: Fence) -> None:
            if all(fence.done() for fence in self._fences):
                clock.at(clock.monotonic(), go_on)

        clock.at(clock.monotonic() + call.fence_s, go_on)
        for fence in self._fences:
            fence.add_done_callback(answered)

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
                if not self.cancelled:
                    then()

        waiter = self._waiter = make(lambda: clock.at(clock.monotonic(), finish))
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


class VirtualRead:
    """A read on a virtual clock, held back by a floor where there is one.

    Attributes:
        error: what it raised: unmet, or that its connection failed; None once it is answered.
        finished_s: when it was answered, or raised.
        served: whether it was counted as answered although it may be stale.
    """

    def __init__(
        self,
        clock: VirtualClock,
        store: FakeStore,
        connection: FakeStore,
        *,
        watched: bool = False,
        wrote: Sequence[WriteId] = (),
        merges: Lineage | None = None,
        off: bool = False,
        snapshot: Collection[WriteId] | None = None,
        proof_s: float = 0.0,
        unasked: bool = False,
        refused: bool = False,
    ) -> None:
        """Not started.

        Args:
            clock: by which it waits.
            store: whose floor the read satisfies.
            connection: the server behind the connection that reads, for this read alone.
            watched: whether the watcher of *store* polls for the read while it is held back.
            wrote: what the request writes just before.
            merges: what it learns of just before.
            off: whether it is made in a block without automatic barriers.
            snapshot: all that is known to show in the snapshot from which it reads; None: it takes
                a new one.
            proof_s: for how many seconds its connection, which is pinned, need not poll for what
                its server has shown.
            unasked: whether the client gives its connection up before anything was asked.
            refused: whether its server refuses the read itself, once nothing holds it back.
        """
        self.error: Exception | None = None
        self.finished_s: float | None = None
        self.name = f"read-{store.datastore}"
        self.wake: Wake = _HintWake(self)
        self.held: HeldRead | None = None
        self._clock = clock
        self._store = store
        self._connection = connection
        self._watched = watched
        self._wrote = wrote
        self._merges = merges
        self._off = off
        self._snapshot = snapshot
        self._proof_s = proof_s
        self._unasked = unasked
        self._refused = refused
        self._demand: Floor | None = None
        self._stale = StaleRead()
        self.served = False
        self._silent = False

    @property
    def looks(self) -> int:
        """How often its connection was polled."""
        return len(self._connection.look_times_s)

    def start(self) -> None:
        """Read now."""
        with self._counting():
            self._start()

    def _start(self) -> None:
        record_write(*self._wrote)
        if self._merges is not None:
            record_read(self._merges)
        with barriers("explicit") if self._off else nullcontext():
            try:
                demand = floor(self._store, stale=self._stale)
            except AntipodeError as error:
                self.error = error
                self._finish()
                return
        self._demand = demand
        if demand is None or self._passes(demand):
            self._finish()
        elif self._unasked:
            self._clock.at(self._clock.monotonic() + demand.poll_s, lambda: self._give_up(demand))
        else:
            watcher = shared_watcher(self._store) if self._watched else None
            self.held = HeldRead(demand, watcher).__enter__()
            self._clock.spawn(self)

    def _passes(self, demand: Floor) -> bool:
        """Whether the read is over without a poll."""
        if (snapshot := self._snapshot) is None:
            server = self._connection.server
            proved = self._proof_s > 0 and demand.proved(server, within_s=self._proof_s)
            if proved:
                demand.passed()
            return proved
        try:
            if _shows(snapshot, demand):
                demand.passed()
            else:
                demand.fail_snapshot(StaleSnapshot("scripted"), partial(_shows, snapshot))
        except AntipodeError as error:
            self.error = error
        return True

    def _give_up(self, demand: Floor) -> None:
        """Nothing was asked until the time was up."""
        self.error = Unreachable("scripted to be unasked")
        try:
            demand.expire(self.error)
        except AntipodeError as error:
            self.error = error
        self._finish()

    def _finish(self) -> None:
        """The server answers the read, refuses it, or was never sent it."""
        self.finished_s = self._clock.monotonic()
        if self.error is None and self._refused:
            self.error = Unreachable("scripted to be refused")
        if self.error is None:
            self._stale.answered()

    @contextmanager
    def _counting(self) -> Iterator[None]:
        stale = Metric("served_stale", self._store.datastore)
        before = metrics().get(stale, 0)
        yield
        self.served = self.served or metrics().get(stale, 0) > before

    def step(self) -> float | None:
        """Poll once; None when the read is over."""
        with self._counting():
            return self._step()

    def _step(self) -> float | None:
        pause_s = None
        try:
            with ExitStack() as ends:
                if self.held is not None and self._demand is not None:
                    ends.push(self.held)
                    pause_s = self._look(self._demand, self.held)
                if pause_s is not None:
                    ends.pop_all()
        except Exception as error:  # noqa: BLE001 - what the client would raise
            self.error = error
        if pause_s is None:
            self._finish()
        return pause_s

    def _look(self, demand: Floor, held: HeldRead) -> float | None:
        """Seconds until the next poll; a frozen server takes all the time that there is."""
        if self._silent:
            msg = "scripted to be frozen"
            raise Unreachable(msg)
        self._connection.raise_if_down()
        shown = self._connection.look(demand.writes, demand.promises)
        if self._connection.frozen:
            self._silent = True
            return held.poll_s
        return held.take(shown)

    def pause(self, timeout_s: float) -> None:
        """The clock lets time pass."""


def _shows(snapshot: Collection[WriteId], demand: Floor) -> bool:
    return demand.writes <= frozenset(snapshot) and not demand.promises


class _HintWake(Wake):
    """Ends the pauses of a read while a hint may."""

    def __init__(self, read: VirtualRead) -> None:
        """Of *read*."""
        super().__init__()
        self._read = read

    def is_set(self) -> bool:
        """Whether the hint was given."""
        held = self._read.held
        return held is not None and held.hint is not None and held.hint.given


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
    records_servers: list[tuple[float, str]] = field(default_factory=list)
    down: list[tuple[float, float]] = field(default_factory=list)
    broken_from_s: float = float("inf")
    frozen_from_s: float = float("inf")
    etas: list[tuple[float, float]] = field(default_factory=list)
    primary: list[tuple[float, WriteId]] = field(default_factory=list)
    primary_down_from_s: float = float("inf")


class FakeStore(Shim):
    """A fake datastore that follows a script on a :class:`VirtualClock`. For unit tests.

    Attributes:
        look_times_s: when it was polled, failed polls included.
        fence_times_s: when its primary was asked for its position.
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
        fences: bool = False,
        fence_s: float = 0.0,
        polls: bool = True,
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
            promises: whether it can ask for promises.
            unique_logs: whether no other store can have a log of the same name.
            fences: whether its primary can be asked for its position.
            fence_s: how long the primary takes to answer.
            polls: False for a client of which only a read shows which server answers.
        """
        super().__init__(datastore, reads_from=reads_from)
        self.clock = clock
        self._virtual = clock
        self.waitable = waitable
        self.can_poll = polls
        self.floors = floors
        self.pinned = pinned
        self.blocks = blocks
        self.promises = promises
        self.fences = fences
        self.fence_s = fence_s
        self.fence_times_s: list[float] = []
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
        """From *at_s* on, polls reach the incarnation *server*."""
        self._script.servers.append((at_s, server))

    def move_records(self, server: str, *, at_s: float) -> None:
        """From *at_s* on, polls for promises reach *server*, and no others do."""
        self._script.records_servers.append((at_s, server))

    def take_down(self, *, from_s: float, until_s: float = float("inf")) -> None:
        """In this span polls fail and are worth repeating."""
        self._script.down.append((from_s, until_s))

    def break_down(self, *, from_s: float = 0.0) -> None:
        """From *from_s* on polls fail for good."""
        self._script.broken_from_s = from_s

    def freeze(self, *, from_s: float = 0.0) -> None:
        """From *from_s* on its server answers no poll."""
        self._script.frozen_from_s = from_s

    @property
    def frozen(self) -> bool:
        """Whether its server answers no poll now."""
        return self.clock.monotonic() >= self._script.frozen_from_s

    def estimate(self, eta_s: float, *, at_s: float = 0.0) -> None:
        """From *at_s* on polls say that what is missing may be visible in *eta_s* seconds."""
        self._script.etas.append((at_s, eta_s))

    def move_primary(self, position: WriteId, *, at_s: float = 0.0) -> None:
        """From *at_s* on the primary's position in that log is *position*."""
        self._script.primary.append((at_s, position))

    def take_primary_down(self, *, from_s: float = 0.0) -> None:
        """From *from_s* on the primary reports its position to nobody."""
        self._script.primary_down_from_s = from_s

    @property
    def fencer(self) -> Fencer:
        """What asks its primary, which takes a while on the virtual clock."""
        if self._fencer is None:
            self._fencer = _SlowFencer(self)
        return self._fencer

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position.

        Raises:
            Unreachable: it is down, or takes longer than *timeout_s*.
        """
        now_s = self.clock.monotonic()
        if now_s >= self._script.primary_down_from_s or self.fence_s > timeout_s:
            msg = "the primary is scripted to be silent"
            raise Unreachable(msg)
        latest = {each.key: each for at_s, each in self._script.primary if at_s <= now_s}
        return frozenset(latest.values())

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

    @property
    def server(self) -> str:
        """The incarnation that answers now."""
        now_s = self.clock.monotonic()
        return [name for at_s, name in self._script.servers if at_s <= now_s][-1]

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
        servers = self._script.servers + (self._script.records_servers if promises else [])
        server = [name for at_s, name in servers if at_s <= now_s][-1]
        etas = [eta_s for at_s, eta_s in self._script.etas if at_s <= now_s]
        return Observation(
            server,
            {write: self._judge(write, now_s) for write in writes},
            eta_s=etas[-1] if etas else None,
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


class _SlowFencer(Fencer):
    """Asks a primary of a virtual clock: the answer comes later than the question."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__(store)
        self._store = store
        self._asking = False

    def step(self) -> float | None:
        if not self._asking and self.begin():
            self._asking = True
            self._store.fence_times_s.append(self._store.clock.monotonic())
            return self._store.fence_s
        if not self._asking:
            return None
        self._asking = False
        self.end()
        return 0.0


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
