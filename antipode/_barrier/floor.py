"""A read that is held back until its server shows what demands want it to see."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from antipode._lineage.unmet_errors import UnmetError, error_of
from antipode._runtime import observers
from antipode._runtime.clock import SYSTEM_CLOCK
from antipode._runtime.metrics import log_seldom

from .contract import Unreachable
from .decisions import Pacer, Wait
from .demands import LEAST_LOOK_S
from .served import refused, serve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from antipode._lineage.errors import ServerName, StaleSnapshot
    from antipode._lineage.write_id import Promise, WriteId
    from antipode._runtime.clock import Clock

    from .contract import Observation
    from .demands import Demand
    from .hint import Hint
    from .places import Places
    from .served import StaleRead
    from .store import Store
    from .watcher import Watcher

    Observe = Callable[[float], Observation]
    ObserveAsync = Callable[[float], Awaitable[Observation]]

#: How many times as long a held read pauses while a watcher polls for it: that one may poll
#: another server, which shows what is demanded later, or never.
RARELY = 8
#: Why a read does not wait though it has time.
CROWDED = (
    "reads that wait hold half of the pool of %r, so that this one may not: wait before the "
    "connection is taken, or make the pool larger"
)


class Floor:
    """What the next read of one datastore must see, on whatever connection it is made.

    A list of demands: of barriers that were called first, which have their time and their errors
    before the automatic one of the read itself has its own. One poll shows all of them, or the
    read is not answered.

    An instrumented connection asks its server, in the read's own round trip where it can, and
    answers the read only when :meth:`accepts` says so; otherwise it holds the read back with
    :meth:`hold` or :meth:`hold_async`. Where it knows without a poll that all is shown, it calls
    :meth:`passed`. Time is spent only while holding.

    Attributes:
        datastore: whose reads it is for.
        demands: who asks for what.
        writes: what must be visible.
        promises: what must be fulfilled; none where no shim of the datastore asks for them.
        served: whether the read may be answered although it was not shown all of that.
        counted: whether it counts as stale: served, or of an incomplete lineage.
        server: where the connection leads that reads; None: where its client says.
    """

    def __init__(
        self,
        datastore: str,
        demands: Sequence[Demand],
        *,
        flaw: UnmetError | None = None,
        raises: bool = False,
        stale: StaleRead | None = None,
        store: Store | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Hold a read back for *demands*.

        Args:
            datastore: whose reads it is for.
            demands: who asks for what.
            flaw: what no poll can show the read; None for nothing.
            raises: whether a read that was shown all the rest raises *flaw*, instead of being
                answered.
            stale: counts it once it is answered; None: it is counted where it is let go.
            store: whose client reads.
            clock: what time it is, without *store*.
        """
        self.datastore = datastore
        self.demands = demands
        self.writes: frozenset[WriteId] = frozenset().union(*(each.writes for each in demands))
        self.promises: frozenset[Promise] = frozenset().union(*(each.promises for each in demands))
        self.served = self.counted = False
        self.server: ServerName | None = None
        self._flaw, self._raises = flaw, raises
        self._stale = stale
        self._store = store
        self._clock = clock if store is None else store.clock
        for each in demands:
            if each.awaited:
                each.meet()

    def proved(self, server: str, *, within_s: float = math.inf) -> bool:
        """Whether the incarnation *server* showed all of it, in the last *within_s* seconds.

        A connection whose history is pinned and that is on it need not ask again.
        """
        since_s = self._clock.monotonic() - within_s
        return all(each.proved_s(server) > since_s for each in self.demands)

    def within(self, other: Floor | None) -> bool:
        """Whether *other* demands all of it, too."""
        return other is not None and all(each in other.demands for each in self.demands)

    @property
    def left_s(self) -> float:
        """Seconds left for holding the read back."""
        now_s = self._clock.monotonic()
        return max(each.allowance.left_s(now_s) for each in self.demands)

    def block_s(self, longest_s: float) -> float:
        """How long the server may block during a poll: at most *longest_s*, and what is left."""
        left_s = self.left_s
        return min(longest_s, left_s) if left_s > LEAST_LOOK_S else 0.0

    @property
    def poll_s(self) -> float:
        """How long a poll may last: what is left, but enough for one honest try."""
        return max(self.left_s, *(each.least_look_s for each in self.demands))

    def accepts(self, observation: Observation) -> bool:
        """Whether a read made at or after this poll may be answered.

        Raises:
            UnmetError: waiting longer cannot help.
        """
        if all(self._judge(each, self.wait_for(each), observation) for each in self.demands):
            self.passed()
            return True
        return False

    def passed(self) -> None:
        """The read is answered: it is known to be shown all of it that a poll can show.

        Raises:
            UnmetError: it is not: it depends on what no poll can show.
        """
        if self._flaw is not None:
            self._flaw.server = self._server
            if self._raises:
                raise refused(self._flaw)
            self._count(self._flaw)

    @property
    def _server(self) -> ServerName | None:
        """Where its client reads."""
        if self.server is not None or self._store is None:
            return self.server
        return self._store.server_name

    def wait_for(self, demand: Demand, *, is_over: bool = False) -> Wait:
        """A wait for *demand* that begins now, or *is_over* now."""
        now_s = self._clock.monotonic()
        left_s = demand.allowance.left_s(now_s)
        return Wait(
            {self.datastore: demand.wanted},
            policies=demand.policies,
            now_s=now_s - left_s if is_over else now_s,
            unix_s=self._clock.unix_s(),
            timeout_s=left_s,
            before_s=demand.allowance.spent_s(now_s),
        )

    def _judge(self, demand: Demand, wait: Wait, observation: Observation) -> bool:
        """Whether *demand* lets the read go; one whose time is up does, or raises."""
        if self.served and demand.automatic:
            return True
        now_s = self._clock.monotonic()
        wait.record(self.datastore, observation, now_s)
        if not wait.finished and now_s < wait.deadline_s:
            return False
        if (error := self._error_of(demand, wait, now_s)) is not None:
            self._fail(demand, error)
        else:
            demand.prove(observation.server, now_s)
        return True

    def _fail(self, demand: Demand, error: UnmetError) -> None:
        """End a read that is not shown what *demand* wants."""
        if demand.raises:
            raise refused(demand.marked(error))
        self._serve(error)

    def _serve(self, error: UnmetError | StaleSnapshot) -> None:
        """Let the read go although it is not shown what an automatic demand wants."""
        self.served = True
        self._count(error)

    def _count(self, error: UnmetError | StaleSnapshot) -> None:
        if not self.counted:
            self.counted = True
            (serve if self._stale is None else self._stale.serve)(self.datastore, error)

    def fail_snapshot(self, error: StaleSnapshot, shows: Callable[[Floor], bool]) -> None:
        """End a read whose snapshot is too old.

        It is answered, and counted, where no barrier that was called is against it, nor
        ``on_stale``: what reads from an open snapshot cannot go elsewhere.

        Args:
            error: says so.
            shows: whether the snapshot is known to show all that another floor demands.

        Raises:
            StaleSnapshot: *error*, unless the read is answered all the same.
        """
        if any(each.automatic and each.raises for each in self.demands):
            raise error
        called = [each for each in self.demands if not each.automatic]
        if len(called) == len(self.demands) or (
            called and not shows(Floor(self.datastore, called, clock=self._clock))
        ):
            raise error
        error.server = self._server
        self._serve(error)

    def hold(
        self, observe: Observe, *, watcher: Watcher | None = None, places: Places | None = None
    ) -> None:
        """Hold a read back until *observe* shows the floor; then read on that connection.

        The connection is kept meanwhile. A client that can give it back uses :class:`Repeated`.

        Args:
            observe: polls once on the connection that will read; takes the longest it may
                last, in seconds.
            watcher: of the same datastore, where *observe* cannot wait on the server: polls for
                all held reads, which themselves poll rarely then.
            places: of the pool of the connection; None without one.

        Raises:
            UnmetError: the time is up, or waiting longer cannot help.
            Unreachable: the connection failed while there was time left.
        """
        if self.over:
            return
        with HeldRead(self, watcher, places) as read:
            while (pause_s := read.take(observe(read.poll_s))) is not None:
                read.pause(pause_s)

    async def hold_async(
        self, observe: ObserveAsync, *, watcher: Watcher | None = None, places: Places | None = None
    ) -> None:
        """The asyncio twin of :meth:`hold`."""
        if self.over:
            return
        from antipode._runtime.cancellation import unless_cancelled

        with HeldRead(self, watcher, places) as read:
            while (pause_s := read.take(await unless_cancelled(observe(read.poll_s)))) is not None:
                await read.pause_async(pause_s)

    @property
    def over(self) -> bool:
        """Whether no demand is left that a poll may show."""
        return self.served and all(each.automatic for each in self.demands)

    def expire(self, cause: Unreachable) -> None:
        """End a read whose own connection showed nothing until the time was up.

        Raises:
            BarrierTimeout: unless such reads are answered all the same.
        """
        for demand in self.demands:
            wait = self.wait_for(demand, is_over=True)
            demand.allowance.use_up()
            wait.unreachable(self.datastore, str(cause), self._clock.monotonic())
            self._tell(demand, wait)
            self._late(demand, wait, cause)

    def _late(self, demand: Demand, wait: Wait, cause: Unreachable) -> None:
        """A poll that failed because the time was up says so, not that the server was away.

        Where such reads are answered, the client's own error follows: there is nothing to serve.

        Raises:
            BarrierTimeout: the time is up.
        """
        now_s = self._clock.monotonic()
        if demand.raises and now_s >= wait.deadline_s:
            wait.unreachable(self.datastore, str(cause), now_s)
            if (error := self._error_of(demand, wait, now_s)) is not None:
                raise refused(demand.marked(error)) from cause

    def spend(self, demand: Demand, wait: Wait) -> float:
        """Spend the time of *demand* since *wait* began; the moment that it is."""
        now_s = self._clock.monotonic()
        demand.allowance.end(now_s)
        self._tell(demand, wait)
        return now_s

    def _tell(self, demand: Demand, wait: Wait) -> None:
        """Record for how long *demand* held the read, where, and whether the read raises for it."""
        now_s = self._clock.monotonic()
        over = wait.finished or now_s >= wait.deadline_s
        raises = over and demand.raises and not demand.moves
        observers.telemetry.held(
            now_s - wait.started_s, lambda: wait.result(now_s), lambda: self._server, raises=raises
        )

    def _error_of(self, demand: Demand, wait: Wait, now_s: float) -> UnmetError | None:
        """The error that ends *wait* for the read; None where all is met.

        It is counted, unless the read goes to the primary instead: that is no failure.
        """
        error = error_of(wait.result(now_s))
        if error is not None:
            error.server = self._server
            if not demand.moves:
                observers.telemetry.unmet(error)
        return error


class HeldRead:
    """One read that a floor holds back: when it polls, how it ends. Neither polls nor pauses.

    One demand at a time has its turn, the first that the last poll did not show: its time is
    spent, and it paces. A context manager, at whose end the turn is over.

    Attributes:
        hint: may end the present pause; None where nothing does.
    """

    def __init__(self, floor: Floor, watcher: Watcher | None, places: Places | None = None) -> None:
        """Begin to hold; *watcher* and *places* as :meth:`Floor.hold` takes them."""
        self.hint: Hint | None = None
        self._places, self._placed = places, False
        self._floor = floor
        self._clock = floor._clock  # noqa: SLF001 - of this module
        self._watcher = watcher
        self._pacer = Pacer()
        self._begin(floor.demands[0], floor.wait_for(floor.demands[0]))

    def _begin(self, demand: Demand, wait: Wait) -> None:
        self._demand, self._wait = demand, wait
        self._subscribed: Hint | None = None
        demand.allowance.begin(wait.started_s)

    def _end(self) -> None:
        """Spend the time of the demand that has its turn."""
        self._floor.spend(self._demand, self._wait)
        if self._subscribed is not None:
            self._subscribed.cancel()

    @property
    def poll_s(self) -> float:
        """How long the next poll may last, in seconds."""
        return max(self._wait.deadline_s - self._clock.monotonic(), self._demand.least_look_s)

    def take(self, observation: Observation) -> float | None:
        """Seconds until the next poll; None where the read may be answered.

        Raises:
            UnmetError: the time is up, or waiting longer cannot help.
        """
        for demand in self._floor.demands:
            has_turn = demand is self._demand
            wait = self._wait if has_turn else self._floor.wait_for(demand)
            if not self._floor._judge(demand, wait, observation):  # noqa: SLF001
                if not has_turn:
                    self._end()
                    self._begin(demand, wait)
                if self._place():
                    return self._pause_s()
                self._turn_away(observation)
                return None
        self._floor.passed()
        return None

    def _place(self) -> bool:
        """Whether the read may keep its connection while it waits."""
        if not self._placed and self._places is not None:
            self._placed = self._places.take()
            return self._placed
        return True

    def _turn_away(self, observation: Observation) -> None:
        """End a read for which its pool has no connection to spare, as if its time were up.

        Raises:
            BarrierTimeout: unless such reads are answered all the same.
        """
        floor = self._floor
        log_seldom("pool_half_held", floor.datastore, CROWDED, floor.datastore)
        try:
            for each in floor.demands:
                floor._judge(each, floor.wait_for(each, is_over=True), observation)  # noqa: SLF001
        except UnmetError as error:
            raise error from Unreachable(CROWDED % floor.datastore)
        floor.passed()

    def _pause_s(self) -> float:
        now_s = self._clock.monotonic()
        pause_s = self._pacer.pause_s(now_s - self._wait.started_s)
        if self._watcher is not None and self._subscribed is None:
            from .hint import Hint

            self._subscribed = Hint(self._watcher, self._demand.wanted)
        self.hint = self._subscribed
        if self.hint is None or self.hint.given:
            self.hint = None
        else:
            pause_s *= RARELY
        return min(pause_s, max(self._wait.deadline_s - now_s, 0.0))

    def pause(self, pause_s: float) -> None:
        """Let *pause_s* seconds go by, or fewer where a hint ends them."""
        if (hint := self.hint) is None:
            time.sleep(pause_s)
        else:
            hint.pause(pause_s)

    async def pause_async(self, pause_s: float) -> None:
        """The asyncio twin of :meth:`pause`."""
        import asyncio

        if (hint := self.hint) is None:
            await asyncio.sleep(pause_s)
        else:
            await hint.pause_async(pause_s)

    def __enter__(self) -> Self:
        """Hold."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Spend the time.

        Raises:
            BarrierTimeout: the last poll failed, and the time is up.
        """
        try:
            if isinstance(exc, Unreachable):
                self.late(exc)
        finally:
            self.end()

    def late(self, away: Unreachable) -> None:
        """The last poll failed.

        Raises:
            BarrierTimeout: the time is up.
        """
        self._floor._late(self._demand, self._wait, away)  # noqa: SLF001

    def end(self) -> None:
        """Spend the time: the read waits no longer."""
        self._end()
        if self._placed and self._places is not None:
            self._places.give_back()
