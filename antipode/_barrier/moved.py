"""Requests whose reads of a datastore went to its primary: they stay there until they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.unmet_errors import error_of
from antipode._request.context import scope_in
from antipode._runtime.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode._lineage.outcomes import BarrierResult
    from antipode._lineage.unmet_errors import UnmetError
    from antipode._runtime.clock import Clock

#: Seconds after which a request that goes on asks the replica again.
LONG_S = 30.0


class Moved:
    """What moved the reads of one request, and when, by datastore. Never changed."""

    def __init__(self, of: Mapping[str, tuple[float, BarrierResult]]) -> None:
        """Keep *of*."""
        self.of = of

    def joined(self, later: Moved) -> Moved:
        """Both; what moved reads last counts."""
        return Moved({**self.of, **later.of})

    def branched(self, own: frozenset[str]) -> Moved:
        """The same for a branch that fulfils the promises of the ids *own*."""
        del own
        return self

    def ended(self) -> None:
        """The request is over, and nothing stays."""


def move(datastore: str, result: BarrierResult, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Have the reads of *datastore* by this request stay at the primary.

    Args:
        datastore: whose replica was asked.
        result: what it did not show.
        clock: what time it is.
    """
    if (held := scope_in()) is not None:
        held.attach(Moved, Moved({datastore: (clock.monotonic(), result)}))


def stays(datastore: str, *, clock: Clock = SYSTEM_CLOCK) -> UnmetError | None:
    """Why the next read of *datastore* by this request is made at the primary; None: it is not.

    What was read there may be newer than what moved it: a request that went back to the replica as
    soon as that one shows the cause could go back in time.
    """
    held = scope_in()
    if held is None or not (attached := held.attached):
        return None
    moved = attached.get(Moved)
    if not isinstance(moved, Moved) or (found := moved.of.get(datastore)) is None:
        return None
    since_s, result = found
    if clock.monotonic() - since_s > LONG_S or (error := error_of(result)) is None:
        return None
    error.at_primary = True
    return error
