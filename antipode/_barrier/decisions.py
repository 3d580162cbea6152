"""The barrier's decisions, without I/O, threads or clocks: all APIs and floors share them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from antipode._lineage.outcomes import BarrierResult, Outcome, Status
from antipode._lineage.write_id import Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from antipode._lineage.write_id import Dependency, Incomplete
    from antipode._runtime.config import Policy

    from .contract import Observation

OnUnmet = Literal["raise", "return"]

#: Seconds after its expiry during which a promise may still be fulfilled by a slow clock.
PROMISE_GRACE_S = 3600
#: The longest pause between two polls, in seconds; polls this far apart are of one moment.
MOST_PAUSE_S = 0.050

#: The longest that one poll may take, in seconds; a stopped server is noticed after this.
MOST_POLL_S = 1.0
#: The longest that making a connection may take: several round trips, to a server far away too.
CONNECT_S = 5.0
#: Why nobody polls any more.
CLOSED = "its shim was closed"

#: Outcomes that ``on_unknown="report"`` lets pass.
UNKNOWN = frozenset({Status.UNKNOWN_STORE, Status.UNKNOWN_LOG, Status.UNDECIDABLE})


@dataclass(frozen=True, slots=True)
class Policies:
    """What a barrier does about outcomes that are not plain success.

    Attributes:
        on_unmet: ``raise``, or ``return`` the result.
        on_unknown: ``raise`` or ``report`` unknown stores, unknown logs and the undecidable;
            None: raise, but for what the plan reports.
        on_incomplete: ``raise`` or ``report`` an incomplete lineage.
        horizon_h: hours after which a write on an unknown log counts as aged.
        hour: the Unix hour it is now.
    """

    on_unmet: OnUnmet
    on_unknown: Policy | None
    on_incomplete: Policy
    horizon_h: float
    hour: int

    def settle(self, outcome: Outcome) -> Outcome:
        """*outcome* as it counts under these policies."""
        write, status = outcome.write, outcome.status
        if (
            status is Status.UNKNOWN_LOG
            and isinstance(write, WriteId)
            and 0 < write.written_hour < self.hour - self.horizon_h
        ):
            return replace(outcome, status=Status.AGED)
        if status in UNKNOWN and self.on_unknown is not None:
            return replace(outcome, reported=self.on_unknown == "report")
        return outcome

    def judge(self, promise: Promise, unix_s: float) -> tuple[Status, str]:
        """The outcome of *promise* of which a server has no record, and why.

        Records last until the horizon after the expiry: from then on their absence says nothing.
        """
        late_s = unix_s - promise.expires_s
        if late_s <= PROMISE_GRACE_S:
            return Status.NOT_YET, ""
        if late_s > self.horizon_h * 3600:
            return Status.AGED, "its record would be gone by now"
        return Status.ABANDONED, "it expired unfulfilled"


class Wait:
    """One barrier, or one floor, while it waits. Not thread-safe.

    A datastore is met by *one* poll that shows all that is asked of it: two polls may reach
    servers of different histories. Where others had to be waited for, its server may have been
    replaced meanwhile: it is asked again before the barrier succeeds.

    Attributes:
        pending: for each datastore that no poll has met, all that is asked of it.
        deadline_s: on the clock that all ``now_s`` come from.
    """

    def __init__(
        self,
        pending: Mapping[str, Iterable[Dependency]],
        *,
        settled: Iterable[Outcome] = (),
        incomplete: Iterable[Incomplete] = (),
        policies: Policies,
        now_s: float,
        unix_s: float,
        timeout_s: float,
        before_s: float = 0.0,
    ) -> None:
        """Start at *now_s*, which is Unix second *unix_s*, with *settled* already known.

        For the same, *before_s* seconds were waited by then.
        """
        self.policies = policies
        self.incomplete = frozenset(incomplete)
        self.started_s = now_s
        self._from_s = now_s - before_s
        self.deadline_s = now_s + timeout_s
        self.pending = {name: frozenset(found) for name, found in pending.items() if found}
        self._unix_at_zero_s = unix_s - now_s
        self._outcomes: dict[Dependency, Outcome] = {}
        self._etas: dict[str, float] = {}
        self._met: dict[str, tuple[float, frozenset[Dependency]]] = {}
        self._late_s = now_s
        self._fresh_from_s: float | None = None
        self._fatal = False
        for outcome in settled:
            self._settle(outcome)
        for writes in self.pending.values():
            for write in writes:
                self._outcomes[write] = Outcome(write, Status.NOT_YET)

    def _settle(self, outcome: Outcome) -> None:
        outcome = self.policies.settle(outcome)
        self._outcomes[outcome.write] = outcome
        if not outcome.met and not outcome.status.pending:
            self._fatal = True

    @property
    def finished(self) -> bool:
        """Whether nothing is pending, or waiting longer cannot make the barrier succeed."""
        incomplete = bool(self.incomplete) and self.policies.on_incomplete == "raise"
        return self._fatal or incomplete or not self.pending

    def discharge(
        self, datastore: str, writes: Iterable[WriteId], marks: Iterable[Incomplete]
    ) -> None:
        """Wait for *writes*, the primary's position, in place of what *marks* say is missing."""
        self.incomplete -= frozenset(marks)
        if asked := self.pending.get(datastore, frozenset()) | frozenset(writes):
            self.pending[datastore] = asked
        for write in writes:
            self._outcomes.setdefault(write, Outcome(write, Status.NOT_YET))

    def unmet(self, outcomes: Iterable[Outcome]) -> None:
        """Merge what was found out about dependencies that had been let pass."""
        for outcome in outcomes:
            self._settle(outcome)

    def defer(self, writes: Iterable[WriteId]) -> None:
        """Leave *writes* to the reads that follow."""
        for write in writes:
            self._settle(Outcome(write, Status.DEFERRED))

    def record(self, datastore: str, observation: Observation, now_s: float) -> None:
        """Merge what a server of *datastore* showed at one poll."""
        asked = self.pending.get(datastore)
        if asked is None:
            return
        if observation.eta_s is not None:
            self._etas[datastore] = observation.eta_s
        late = [write for write in asked if self._judge(write, observation, now_s)]
        if late:
            self.wait_on(now_s)
            return
        del self.pending[datastore]
        self._met[datastore] = now_s, asked
        if not self.pending:
            self._doubt(now_s)

    def _judge(self, write: Dependency, observation: Observation, now_s: float) -> bool:
        """Merge the outcome of *write*; whether it is pending."""
        status, cause = observation.of(write)
        if isinstance(write, Promise) and observation.promises.get(write) is Status.NOT_YET:
            status, why = self.policies.judge(write, now_s + self._unix_at_zero_s)
            cause = why or cause
        held = self._outcomes[write]
        if held.met and held.status is status and held.server == observation.server:
            return False  # As before: how long it was waited for stays.
        self._settle(Outcome(write, status, now_s - self._from_s, observation.server, cause))
        return status.pending

    def _give_up(self, now_s: float) -> None:
        """The time is up, and a poll's as well: a server that answered none is unreachable."""
        for datastore, asked in self.pending.items():
            silent = [self._outcomes[each] for each in asked]
            if all(each.status is Status.NOT_YET and not each.server for each in silent):
                self.unreachable(datastore, _SILENT, now_s)

    def wait_on(self, now_s: float) -> None:
        """Note that a poll left something to wait for."""
        self._late_s = now_s
        self._fresh_from_s = None

    def _doubt(self, now_s: float) -> None:
        """Ask again for what was met before others had to be waited for."""
        if self._fresh_from_s is None:
            self._fresh_from_s = max(self._late_s, now_s - MOST_PAUSE_S)
        for datastore, (met_s, asked) in self._met.items():
            if met_s < self._fresh_from_s:
                self.pending[datastore] = asked
                for write in asked:
                    held = self._outcomes[write]
                    self._outcomes[write] = replace(held, status=Status.NOT_YET, cause=_DOUBTED)

    def unreachable(self, datastore: str, cause: str, now_s: float) -> None:
        """Note that a poll failed; the next one may not."""
        if (asked := self.pending.get(datastore)) is None:
            return
        self.wait_on(now_s)
        for write in asked:
            self._outcomes[write] = Outcome(
                write, Status.UNREACHABLE, now_s - self._from_s, cause=cause
            )

    def failed(self, datastore: str, cause: str, now_s: float) -> None:
        """Note that polling again cannot help: what is pending there is undecidable."""
        for write in self.pending.pop(datastore, ()):
            self._settle(Outcome(write, Status.UNDECIDABLE, now_s - self._from_s, cause=cause))
        if not self.pending:
            self._doubt(now_s)

    def result(self, now_s: float) -> BarrierResult:
        """How things stand at *now_s*; whatever is pending then is unmet."""
        if now_s >= self.deadline_s and now_s >= self.started_s + MOST_POLL_S:
            self._give_up(now_s)
        etas = [eta for datastore, eta in self._etas.items() if datastore in self.pending]
        return BarrierResult(
            outcomes=tuple(sorted(self._outcomes.values(), key=_order)),
            waited_s=now_s - self._from_s,
            eta_s=max(etas, default=None),
            incomplete=self.incomplete,
            incomplete_ok=self.policies.on_incomplete == "report",
        )


#: The cause of what no poll showed until the deadline.
_SILENT = "its server answered no poll in time"
#: The cause of what was visible, while it is asked whether it still is.
_DOUBTED = "it was visible, and was to be seen once more before the barrier succeeds"


def _order(outcome: Outcome) -> tuple[str, str, bool, bool, int, str]:
    write = outcome.write
    if isinstance(write, Promise):
        return write.datastore, write.id, True, False, 0, ""
    opaque = isinstance(write.version, str)
    number, text = (0, str(write.version)) if opaque else (int(write.version), "")
    return write.datastore, write.key, write.covering, opaque, number, text


class Pacer:
    """How long a held read pauses between two polls, and anyone after a poll that failed.

    A pause of a held read grows with the time waited already, so that a poll comes at most 2 %
    (or 1 ms) late. Random, so that many processes do not poll in step. After failed polls it backs
    off exponentially.
    """

    SHARE = 0.02
    LEAST_S = 0.001
    MOST_S = MOST_PAUSE_S
    JITTER = 0.25
    BACKOFF_LEAST_S = 0.010
    BACKOFF_MOST_S = 1.0

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        """Draw jitter from *uniform*."""
        self._uniform = uniform
        self._failures = 0

    def pause_s(self, waited_s: float) -> float:
        """Seconds until the next poll of a held read that has waited *waited_s*."""
        longest = min(max(self.LEAST_S, waited_s * self.SHARE), self.MOST_S)
        return self._uniform(longest * (1 - self.JITTER), longest)

    def backoff_s(self) -> float:
        """Seconds until the next poll after one that failed."""
        longest = min(self.BACKOFF_LEAST_S * 2**self._failures, self.BACKOFF_MOST_S)
        self._failures = min(self._failures + 1, 16)
        return self._uniform(longest * (1 - self.JITTER), longest)

    def succeeded(self) -> None:
        """A poll did not fail: the next one that does begins the count again."""
        self._failures = 0


def why(error: BaseException) -> str:
    """The cause that an outcome gives."""
    return str(error) or type(error).__name__
