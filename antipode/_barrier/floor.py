"""Floors: what a barrier leaves in the scope for the reads that follow it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from antipode._lineage.unmet_errors import error_of
from antipode._runtime import observers
from antipode._runtime.clock import SYSTEM_CLOCK, Allowance

from .contract import Unreachable
from .decisions import Pacer, Wait
from .hint import Hint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable
    from types import TracebackType

    from typing_extensions import Self

    from antipode._lineage.errors import StaleSnapshot
    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import Promise, WriteId
    from antipode._request.scope import Scope
    from antipode._runtime.clock import Clock

    from .contract import Observation
    from .decisions import Policies
    from .watcher import Watcher

    Observe = Callable[[float], Observation]
    ObserveAsync = Callable[[float], Awaitable[Observation]]

#: How many times as long a held read pauses while a watcher looks for it: that one may look at
#: another server, which shows what is demanded later, or never.
RARELY = 8
#: Seconds that a look gets although the time is up.
LEAST_LOOK_S = 0.05


class Floors:
    """The floors of one request by their datastores, as its scope keeps them. Never changed."""

    def __init__(self, floors: Iterable[Floor]) -> None:
        """Keep *floors*, of different datastores."""
        self.of = {floor.datastore: floor for floor in floors}

    def joined(self, later: Floors) -> Floors:
        """Both: reads wait for *later* on top of these."""
        raised = dict(self.of)
        for datastore, floor in later.of.items():
            held = raised.get(datastore)
            raised[datastore] = floor if held is None else held.raised(floor)
        return Floors(raised.values())

    def branched(self, own: frozenset[str]) -> Floors:
        """These for a branch that fulfils the promises of the ids *own* itself."""
        return Floors(floor.without(own) for floor in self.of.values())


def set_floor(scope: Scope, floor: Floor) -> None:
    """Make the next reads of the floor's datastore wait for it, on top of earlier floors."""
    scope.attach(Floors, Floors([floor]))


def floor_in(scope: Scope, datastore: str) -> Floor | None:
    """What the next read of *datastore* must see; None when nothing."""
    attached = scope.attached
    if not attached:  # As for most reads.
        return None
    floors = attached.get(Floors)
    return floors.of.get(datastore) if isinstance(floors, Floors) else None


class Floor:
    """What the next read of one datastore must see, on whatever connection it is made.

    An instrumented connection asks its server, in the read's own round trip where it can, and
    answers the read only when :meth:`accepts` says so; otherwise it holds the read back with
    :meth:`hold` or :meth:`hold_async`. The timeout is spent only while holding.

    Attributes:
        datastore: whose reads it is for.
        writes: what must be visible.
        promises: what must be fulfilled; none where no shim of the datastore looks for them.
        served: whether a read is answered although it was not shown all of that.
        least_look_s: how long a look may last although the time is up, in seconds.
    """

    served = False
    least_look_s = LEAST_LOOK_S

    def __init__(
        self,
        datastore: str,
        writes: frozenset[WriteId],
        *,
        timeout_s: float,
        policies: Policies,
        proved_on: frozenset[str] = frozenset(),
        promises: frozenset[Promise] = frozenset(),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Demand *writes* and *promises*, with *timeout_s* seconds of *clock* for holding reads."""
        self.datastore = datastore
        self.writes = writes
        self.promises = promises
        self._clock = clock
        self._proved = dict.fromkeys(proved_on, clock.monotonic())
        self._policies = policies
        self._allowance = Allowance(timeout_s)

    def raised(self, other: Floor) -> Floor:
        """A floor that demands both; the later barrier's timeout and policies hold."""
        raised = Floor(
            self.datastore,
            self.writes | other.writes,
            timeout_s=other.left_s,
            policies=other._policies,
            promises=self.promises | other.promises,
            clock=other._clock,
        )
        both = self._proved.keys() & other._proved.keys()
        raised._proved = {one: min(self._proved[one], other._proved[one]) for one in both}
        return raised

    def without(self, ids: Collection[str]) -> Floor:
        """This floor for the branch that fulfils the promises of *ids* itself."""
        without = Floor(
            self.datastore,
            self.writes,
            timeout_s=self.left_s,
            policies=self._policies,
            promises=frozenset(each for each in self.promises if each.id not in ids),
            clock=self._clock,
        )
        without._proved = dict(self._proved)
        return without

    @property
    def proved_on(self) -> frozenset[str]:
        """Incarnations of servers that showed all of it before.

        A connection whose history is pinned and that is on one of them need not ask again.
        """
        return frozenset(self._proved)

    def proved(self, server: str, *, within_s: float) -> bool:
        """Whether *server* showed all of it in the last *within_s* seconds."""
        shown_s = self._proved.get(server)
        return shown_s is not None and self._clock.monotonic() - shown_s < within_s

    @property
    def left_s(self) -> float:
        """Seconds left for holding reads back."""
        return self._allowance.left_s(self._clock.monotonic())

    def block_s(self, longest_s: float) -> float:
        """How long the server may block during a look: at most *longest_s*, and what is left."""
        left_s = self.left_s
        return min(longest_s, left_s) if left_s > LEAST_LOOK_S else 0.0

    @property
    def look_s(self) -> float:
        """How long a look may last: what is left, but enough for one honest try."""
        return max(self.left_s, self.least_look_s)

    @property
    def stages(self) -> tuple[Floor, ...]:
        """What holds the read back, one after the other."""
        return (self,)

    def accepts(self, observation: Observation) -> bool:
        """Whether a read made at or after this look may be answered.

        Raises:
            UnmetError: waiting longer cannot help.
        """
        return self._judge(self._wait(self._clock.monotonic()), observation)

    def _wait(self, now_s: float) -> Wait:
        return Wait(
            {self.datastore: {*self.writes, *self.promises}},
            policies=self._policies,
            now_s=now_s,
            unix_s=self._clock.unix_s(),
            timeout_s=self._allowance.left_s(now_s),
        )

    def _judge(self, wait: Wait, observation: Observation) -> bool:
        now_s = self._clock.monotonic()
        wait.record(self.datastore, observation, now_s)
        if not wait.finished:
            return False
        if (error := _error_of(wait, now_s)) is not None:
            self._fail(error)
        else:
            self._prove(observation.server, now_s)
        return True

    def _prove(self, server: str, now_s: float) -> None:
        self._proved = {**self._proved, server: now_s}

    def _fail(self, error: UnmetError) -> None:
        """End a read that is not shown what it demands."""
        raise error

    def fail_snapshot(self, error: StaleSnapshot, shows: Callable[[Floor], bool]) -> None:
        """End a read whose snapshot is too old.

        Args:
            error: says so.
            shows: whether the snapshot is known to show all that another floor demands.

        Raises:
            StaleSnapshot: *error*, unless the read is answered all the same.
        """
        del shows
        raise error

    def hold(self, observe: Observe, *, watcher: Watcher | None = None) -> None:
        """Hold a read back until *observe* shows the floor; then read on that connection.

        Args:
            observe: looks once on the connection that will read; takes the longest it may
                last, in seconds.
            watcher: of the same datastore, where *observe* cannot wait on the server: looks for
                all held reads, which themselves look rarely then.

        Raises:
            UnmetError: the time is up, or waiting longer cannot help.
            Unreachable: the connection failed while there was time left.
        """
        with HeldRead(self, watcher) as read:
            while (pause_s := read.take(observe(read.look_s))) is not None:
                if (hint := read.hint) is None:
                    time.sleep(pause_s)
                else:
                    hint.pause(pause_s)

    async def hold_async(self, observe: ObserveAsync, *, watcher: Watcher | None = None) -> None:
        """The asyncio twin of :meth:`hold`."""
        import asyncio

        with HeldRead(self, watcher) as read:
            while (pause_s := read.take(await observe(read.look_s))) is not None:
                if (hint := read.hint) is None:
                    await asyncio.sleep(pause_s)
                else:
                    await hint.pause_async(pause_s)

    def expire(self, cause: Unreachable) -> None:
        """End a read whose own connection showed nothing until the time was up.

        Raises:
            BarrierTimeout: unless such reads are answered all the same.
        """
        wait = self._wait(self._clock.monotonic() - self.left_s)
        self._allowance.use_up()
        self._tell(wait)
        self._raise_if_over(wait, cause)

    def _raise_if_over(self, wait: Wait, cause: Unreachable) -> None:
        """A look that failed because the time was up says so, not that the server was away.

        Raises:
            BarrierTimeout: the time is up.
        """
        now_s = self._clock.monotonic()
        if now_s >= wait.deadline_s:
            wait.unreachable(self.datastore, str(cause), now_s)
            if (error := _error_of(wait, now_s)) is not None:
                error.__cause__ = cause
                self._fail(error)

    def _tell(self, wait: Wait) -> None:
        now_s = self._clock.monotonic()
        observers.telemetry.held(now_s - wait.started_s, lambda: wait.result(now_s))


class HeldRead:
    """One read that a floor holds back: when it looks, how it ends. Neither looks nor pauses.

    A context manager: at its end the time that it took is spent.

    Attributes:
        hint: may end the present pause; None where nothing does.
    """

    def __init__(self, floor: Floor, watcher: Watcher | None) -> None:
        """Begin to hold; *watcher* as :meth:`Floor.hold` takes it."""
        self.hint: Hint | None = None
        self._floor = floor
        self._clock = floor._clock  # noqa: SLF001 - of this module
        self._watcher = watcher
        self._subscribed: Hint | None = None
        self._pacer = Pacer()
        self._wait = floor._wait(self._clock.monotonic())  # noqa: SLF001
        floor._allowance.begin(self._wait.started_s)  # noqa: SLF001

    @property
    def look_s(self) -> float:
        """How long the next look may last, in seconds."""
        return max(self._wait.deadline_s - self._clock.monotonic(), self._floor.least_look_s)

    def take(self, observation: Observation) -> float | None:
        """Seconds until the next look; None where the read may be answered.

        Raises:
            UnmetError: the time is up, or waiting longer cannot help.
        """
        if self._floor._judge(self._wait, observation):  # noqa: SLF001
            return None
        now_s = self._clock.monotonic()
        left_s = self._wait.deadline_s - now_s
        if left_s <= 0 and (error := _error_of(self._wait, now_s)) is not None:
            self._floor._fail(error)  # noqa: SLF001
            return None
        pause_s = self._pacer.pause_s(now_s - self._wait.started_s)
        if self._watcher is not None and self._subscribed is None:
            floor = self._floor
            self._subscribed = Hint(self._watcher, {*floor.writes, *floor.promises})
        self.hint = self._subscribed
        if self.hint is None or self.hint.given:
            self.hint = None
        else:
            pause_s *= RARELY
        return min(pause_s, max(left_s, 0.0))

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
            BarrierTimeout: the last look failed, and the time is up.
        """
        try:
            if isinstance(exc, Unreachable):
                self._floor._raise_if_over(self._wait, exc)  # noqa: SLF001
        finally:
            self._floor._allowance.end(self._clock.monotonic())  # noqa: SLF001
            self._floor._tell(self._wait)  # noqa: SLF001
            if self._subscribed is not None:
                self._subscribed.cancel()


def _error_of(wait: Wait, now_s: float) -> UnmetError | None:
    """The error that ends *wait* for the read, counted; None where all is met."""
    error = error_of(wait.result(now_s))
    if error is not None:
        observers.telemetry.unmet(error)
    return error
