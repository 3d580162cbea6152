"""What became of each dependency, and of a barrier as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .write_id import Dependency, Incomplete


class Status(str, Enum):
    """The outcome of one dependency (specification, barrier and outcomes)."""

    VISIBLE = "visible"
    SUPERSEDED = "superseded"
    NOT_YET = "not_yet"
    LOST = "lost"
    UNKNOWN_LOG = "unknown_log"
    AGED = "aged"
    UNREACHABLE = "unreachable"
    UNKNOWN_STORE = "unknown_store"
    NOT_WAITABLE = "not_waitable"
    ABANDONED = "abandoned"
    UNDECIDABLE = "undecidable"
    DEFERRED = "deferred"
    EXCLUDED = "excluded"

    @property
    def met(self) -> bool:
        """Whether a barrier may succeed with this outcome under the default policies."""
        return self in _MET

    @property
    def pending(self) -> bool:
        """Whether waiting longer may change it."""
        return self in _PENDING

    def __str__(self) -> str:
        """The word of the specification."""
        return self.value


_MET = frozenset(
    {
        Status.VISIBLE,
        Status.SUPERSEDED,
        Status.AGED,
        Status.NOT_WAITABLE,
        Status.DEFERRED,
        Status.EXCLUDED,
    }
)
_PENDING = frozenset({Status.NOT_YET, Status.UNREACHABLE})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one dependency.

    Attributes:
        write: the dependency.
        status: its outcome.
        waited_s: seconds from the start of the barrier to this outcome.
        server: the incarnation of the server that showed it; empty when none was asked.
        cause: what the server or the check said, for a person; empty when nothing.
        reported: a policy turned this outcome, unmet as such, into a report.
    """

    write: Dependency
    status: Status
    waited_s: float = 0.0
    server: str = ""
    cause: str = ""
    reported: bool = False

    @property
    def met(self) -> bool:
        """Whether this outcome lets the barrier succeed."""
        return self.reported or self.status.met

    def __str__(self) -> str:
        """One line for a person."""
        cause = f" ({self.cause})" if self.cause else ""
        return f"{self.write} {self.status}{cause}"


@dataclass(frozen=True)
class BarrierResult:
    """How a barrier or a check ended.

    Attributes:
        outcomes: one for each dependency, sorted by datastore, key and version.
        waited_s: seconds from call to end.
        eta_s: seconds after which the unmet dependencies may be visible, where a store can
            estimate it; None when none can.
        incomplete: what the lineage is known to miss, within the datastores asked for.
        incomplete_ok: whether the policy lets an incomplete lineage pass.
        open_branches: how many branches of the request were running besides the one that asked:
            what they write is not in its lineage, and was not waited for.
    """

    outcomes: tuple[Outcome, ...] = ()
    waited_s: float = 0.0
    eta_s: float | None = None
    incomplete: frozenset[Incomplete] = frozenset()
    incomplete_ok: bool = False
    open_branches: int = 0

    @cached_property
    def unmet(self) -> tuple[Outcome, ...]:
        """The outcomes that keep the barrier from succeeding."""
        return tuple(outcome for outcome in self.outcomes if not outcome.met)

    @property
    def ok(self) -> bool:
        """Whether everything asked for is visible where the caller will read."""
        return not self.unmet and (self.incomplete_ok or not self.incomplete)

    def __bool__(self) -> bool:
        """Same as :attr:`ok`."""
        return self.ok

    def having(self, *statuses: Status) -> tuple[Outcome, ...]:
        """The unmet outcomes with one of *statuses*."""
        return tuple(outcome for outcome in self.unmet if outcome.status in statuses)


def describe(outcomes: Iterable[Outcome], *, most: int = 5) -> str:
    """The first few outcomes in one line."""
    lines = [str(outcome) for outcome in outcomes]
    rest = f", and {len(lines) - most} more" if len(lines) > most else ""
    return "; ".join(lines[:most]) + rest
