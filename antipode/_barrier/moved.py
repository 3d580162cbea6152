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

#: Seconds after which a request that goes on may ask whether it can go back to the replica, each
#: time.
LONG_S = 30.0


class Moved:
    """What moved the reads of one request, and when, by datastore. Never changed."""

    def __init__(self, of: Mapping[str, tuple[float, BarrierResult] | None]) -> None:
        """Keep *of*; None where they went back."""
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


def go_back(datastore: str) -> None:
    """Have the reads of *datastore* by this request be made at the replica again."""
    if (held := scope_in()) is not None:
        held.attach(Moved, Moved({datastore: None}))


def stays(datastore: str) -> UnmetError | None:
    """Why the next read of *datastore* by this request is made at the primary; None: it is not.

    What was read there may be newer than what moved it: a request that went back to the replica as
    soon as that one shows the cause could go back in time.
    """
    if (found := _moved(datastore)) is None or (error := error_of(found[1])) is None:
        return None
    error.at_primary = True
    return error


def is_long(datastore: str, *, clock: Clock = SYSTEM_CLOCK) -> BarrierResult | None:
    """What moved the reads of *datastore*, where that is so long ago that they may go back."""
    found = _moved(datastore)
    return None if found is None or clock.monotonic() - found[0] <= LONG_S else found[1]


def _moved(datastore: str) -> tuple[float, BarrierResult] | None:
    held = scope_in()
    if held is None or not (attached := held.attached):
        return None
    moved = attached.get(Moved)
    return moved.of.get(datastore) if isinstance(moved, Moved) else None
