"""The errors that stand for a barrier's result, and which goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import AntipodeError
from .outcomes import Status, describe

if TYPE_CHECKING:
    from .errors import ServerName
    from .outcomes import BarrierResult, Outcome


class UnmetError(AntipodeError):
    """A barrier ended with dependencies that are not visible.

    Attributes:
        result: every outcome of the barrier, met and unmet.
        at_primary: whether it ends a read that may be made at the primary instead
            (``on_stale="primary"``).
        server: where the read was made; None for a barrier.
    """

    code = "unmet"
    at_primary = False
    server: ServerName | None = None

    def __init__(self, message: str, result: BarrierResult) -> None:
        """Keep the whole result with the message."""
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the result."""
        return type(self), (str(self), self.result)

    @property
    def unmet(self) -> tuple[Outcome, ...]:
        """The outcomes that were asked for and not met."""
        return self.result.unmet


class BarrierTimeout(UnmetError, TimeoutError):
    """The deadline passed while a dependency was not yet visible or its server unreachable."""

    code = "barrier_timeout"


class DependencyLost(UnmetError):
    """A dependency is proved gone, or its promise was abandoned: waiting longer cannot help."""

    code = "dependency_lost"


class UnknownDatastore(UnmetError):
    """The lineage names a datastore for which no shim or instrumented client is registered."""

    code = "unknown_datastore"


class VisibilityCheckError(UnmetError):
    """Whether a dependency is visible cannot be decided, or the check itself failed."""

    code = "visibility_check"


class IncompleteLineage(UnmetError):
    """The lineage is known to miss dependencies, so its visibility proves too little."""

    code = "incomplete_lineage"


#: Which error an unmet outcome raises; where several apply, the first. Proof comes before
#: ignorance, and both before impatience. Specified in docs/spec/barrier-and-outcomes.md.
PRECEDENCE: tuple[tuple[type[UnmetError], frozenset[Status], str], ...] = (
    (
        DependencyLost,
        frozenset({Status.LOST, Status.ABANDONED}),
        "waiting cannot bring it back: fail the request or read what is left on purpose",
    ),
    (
        UnknownDatastore,
        frozenset({Status.UNKNOWN_STORE}),
        (
            "register its shim or instrument its client, or pass only=, exclude= or "
            "on_unknown='report'"
        ),
    ),
    (
        VisibilityCheckError,
        frozenset({Status.UNKNOWN_LOG, Status.UNDECIDABLE}),
        "the server cannot relate it to its history: read the primary, or pass on_unknown='report'",
    ),
    (
        BarrierTimeout,
        frozenset({Status.NOT_YET, Status.UNREACHABLE}),
        "retry later, read the primary, or give a longer timeout",
    ),
)


def error_of(result: BarrierResult) -> UnmetError | None:
    """The error that stands for *result* under the raising policy; None when it is ok."""
    if result.ok:
        return None
    for error, statuses, advice in PRECEDENCE[:-1]:
        if unmet := result.having(*statuses):
            return error(f"{describe(unmet)}: {advice}", result)
    if result.incomplete and not result.incomplete_ok:
        missing = ", ".join(sorted(map(str, result.incomplete)))
        return IncompleteLineage(
            f"the lineage is known to miss dependencies: {missing}. Their visibility cannot be "
            "awaited: read the primary, or pass on_incomplete='report'",
            result,
        )
    error, statuses, advice = PRECEDENCE[-1]
    unmet = result.having(*statuses)
    return error(f"not visible after {result.waited_s:.3f} s: {describe(unmet)}: {advice}", result)
