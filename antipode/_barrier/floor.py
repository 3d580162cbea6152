"""Floors: what a barrier leaves in the scope for the reads that follow it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from antipode._lineage.unmet_errors import error_of
from antipode._runtime import observers

from .contract import Unreachable
from .decisions import Pacer, Wait
from .hint import Hint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import Promise, WriteId
    from antipode._request.scope import Scope

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
    """

    def __init__(
        self,
        datastore: str,
        writes: frozenset[WriteId],
        *,
        timeout_s: float,
        policies: Policies,
        proved_on: frozenset[str] = frozenset(),
        promises: frozenset[Promise] = frozenset(),
    ) -> None:
        """Demand *writes* and *promises*, with *timeout_s* seconds for holding reads back."""
        self.datastore = datastore
        self.writes = writes
        self.promises = promises
        self._proved = dict.fromkeys(proved_on, time.monotonic())
        self._policies = policies
        self._left_s = timeout_s
        self._lock = threading.Lock()

    def raised(self, other: Floor) -> Floor:
        """A floor that demands both; the later barrier's timeout and policies hold."""
        raised = Floor(
            self.datastore,
            self.writes | other.writes,
            timeout_s=other._left_s,
            policies=other._policies,
            promises=self.promises | other.promises,
        )
        both = self._proved.keys() & other._proved.keys()
        raised._proved = {one: min(self._proved[one], other._proved[one]) for one in both}
        return raised

    def without(self, ids: Collection[str]) -> Floor:
        """This floor for the branch that fulfils the promises of *ids* itself."""
        without = Floor(
            self.datastore,
            self.writes,
            timeout_s=self._left_s,
            policies=self._policies,
            promises=frozenset(each for each in self.promises if each.id not in ids),
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
        return shown_s is not None and time.monotonic() - shown_s < within_s

    @property
    def left_s(self) -> float:
        """Seconds left for holding reads back."""
        return self._left_s

    @property
    def look_s(self) -> float:
        """How long a look may last: what is left, but enough for one honest try."""
        return max(self._left_s, LEAST_LOOK_S)

    def accepts(self, observation: Observation) -> bool:
        """Whether a read made at or after this look may be answered.

        Raises:
            UnmetError: waiting longer cannot help.
        """
        return self._judge(self._wait(0.0), observation, 0.0)

    def _wait(self, now_s: float) -> Wait:
        return Wait(
            {self.datastore: {*self.writes, *self.promises}},
            policies=self._policies,
            now_s=now_s,
            unix_s=time.time(),
            timeout_s=self._left_s,
        )

    def _judge(self, wait: Wait, observation: Observation, now_s: float) -> bool:
        wait.record(self.datastore, observation, now_s)
        if not wait.finished:
            return False
        if (error := _error_of(wait, now_s)) is not None:
            raise error
        self._proved = {**self._proved, observation.server: time.monotonic()}
        return True

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
        pacer = Pacer()
        wait = self._wait(time.monotonic())
        hint: Hint | None = None
        try:
            while not self._judge(wait, observe(self._look_s(wait)), time.monotonic()):
                pause_s = self._next_s(wait, pacer)
                hint = hint or self._hint(watcher)
                if hint is None or hint.given:
                    time.sleep(pause_s)
                else:
                    hint.pause(self._rarely_s(wait, pause_s))
        except Unreachable as error:
            self._raise_if_over(wait, error)
            raise
        finally:
            self._spend(wait)
            if hint is not None:
                hint.cancel()

    async def hold_async(self, observe: ObserveAsync, *, watcher: Watcher | None = None) -> None:
        """The asyncio twin of :meth:`hold`."""
        import asyncio

        pacer = Pacer()
        wait = self._wait(time.monotonic())
        hint: Hint | None = None
        try:
            while not self._judge(wait, await observe(self._look_s(wait)), time.monotonic()):
                pause_s = self._next_s(wait, pacer)
                hint = hint or self._hint(watcher)
                if hint is None or hint.given:
                    await asyncio.sleep(pause_s)
                else:
                    await hint.pause_async(self._rarely_s(wait, pause_s))
        except Unreachable as error:
            self._raise_if_over(wait, error)
            raise
        finally:
            self._spend(wait)
            if hint is not None:
                hint.cancel()

    def expire(self, cause: Unreachable) -> None:
        """End a read whose own connection showed nothing until the time was up.

        Raises:
            BarrierTimeout: always.
        """
        wait = self._wait(time.monotonic() - self._left_s)
        self._spend(wait)
        self._raise_if_over(wait, cause)

    def _hint(self, watcher: Watcher | None) -> Hint | None:
        return None if watcher is None else Hint(watcher, {*self.writes, *self.promises})

    def _rarely_s(self, wait: Wait, pause_s: float) -> float:
        """The pause until the next look of a read that a hint is to come for."""
        left_s = wait.deadline_s - time.monotonic()
        return min(pause_s * RARELY, max(left_s, 0.0))

    def _look_s(self, wait: Wait) -> float:
        """The same while a read is held back."""
        return max(wait.deadline_s - time.monotonic(), LEAST_LOOK_S)

    def _next_s(self, wait: Wait, pacer: Pacer) -> float:
        """Seconds until the next look.

        Raises:
            BarrierTimeout: the time is up.
        """
        now_s = time.monotonic()
        left_s = wait.deadline_s - now_s
        if left_s <= 0:
            error = _error_of(wait, now_s)
            if error is not None:
                raise error
        return min(pacer.pause_s(now_s - wait.started_s), max(left_s, 0.0))

    def _raise_if_over(self, wait: Wait, cause: Unreachable) -> None:
        """A look that failed because the time was up says so, not that the server was away.

        Raises:
            BarrierTimeout: the time is up.
        """
        now_s = time.monotonic()
        if now_s >= wait.deadline_s:
            wait.unreachable(self.datastore, str(cause), now_s)
            if (error := _error_of(wait, now_s)) is not None:
                raise error from cause

    def _spend(self, wait: Wait) -> None:
        now_s = time.monotonic()
        with self._lock:
            self._left_s = max(self._left_s - (now_s - wait.started_s), 0.0)
        observers.telemetry.held(now_s - wait.started_s, lambda: wait.result(now_s))


def _error_of(wait: Wait, now_s: float) -> UnmetError | None:
    """The error that ends *wait* for the read, counted; None where all is met."""
    error = error_of(wait.result(now_s))
    if error is not None:
        observers.telemetry.unmet(error)
    return error
