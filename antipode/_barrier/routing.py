"""Where a router of reads sends the next one: to the replica, or to the primary."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.lineage import Lineage
from antipode._lineage.write_id import Incomplete
from antipode._request.context import scope_in
from antipode._runtime import observers
from antipode._runtime.config import config
from antipode._runtime.metrics import count
from antipode._runtime.ruled import has_primary
from antipode._runtime.switch import is_disabled

from .automatic import concerns
from .barrier import Barrier, run_async, run_here
from .moved import go_back, is_long, move, stays
from .registry import shims_of

if TYPE_CHECKING:
    from antipode._lineage.outcomes import BarrierResult
    from antipode._request.scope import Scope

    from .store import ReadsFrom

#: Seconds for one honest poll although the time of the request is used up.
LEAST_S = 0.05
#: Seconds for the question whether a long request may go back: the primary and the replica are
#: asked.
BACK_S = 0.2


def reads_from(datastore: str) -> ReadsFrom:
    """Where the next read of *datastore* goes: to the replica that shows enough, or the primary.

    For a router of reads. A request that depends on nothing there reads at the replica. Otherwise
    this waits, within the time that the reads of the request have (``auto_timeout``), until the
    replica shows what the request depends on. Where it does not, or the request has written in a
    transaction that is open, it is the primary's turn, and that is counted
    (``reads_at_primary``). A replica where no server is, as its host refuses or has no address, is
    not waited for. A request that was sent to the primary is sent there until it ends; one that
    goes on for more than 30 s goes back once the replica shows what the primary has by then. In a
    dry run nothing waits, and reads go to the replica; so they do
    where the library is disabled (``ANTIPODE_DISABLED=true``).

    Args:
        datastore: whose primary and one replica this process has instrumented, or rules name.

    Returns:
        ``replica`` or ``primary``.

    Raises:
        ConfigurationError: this process has no primary of *datastore*, or several replicas.
    """
    asked = _asked(datastore)
    if isinstance(asked, str):
        return _answer(datastore, shown=asked == "replica")
    return asked.told(_ask(asked))


async def reads_from_async(datastore: str) -> ReadsFrom:
    """The asyncio twin of :func:`reads_from`.

    Raises:
        ConfigurationError: as :func:`reads_from`.
    """
    asked = _asked(datastore)
    if isinstance(asked, str):
        return _answer(datastore, shown=asked == "replica")
    return asked.told(await _ask_async(asked))


@observers.traced("route")
def _ask(question: _Question) -> BarrierResult:
    with question as call:
        run_here(call, threading.Event())
    return call.conclude()


@observers.traced_async("route")
async def _ask_async(question: _Question) -> BarrierResult:
    with question as call:
        await run_async(call)
    return call.conclude()


def _asked(datastore: str) -> _Question | ReadsFrom:
    """What to ask the replica; where there is nothing to ask, where to read."""
    if is_disabled():
        return "replica"
    registered = {shim.reads_from for shim in shims_of(datastore)}
    if "primary" not in registered and not has_primary(datastore):
        msg = f"no client of the primary of {datastore!r} is instrumented in this process"
        raise ConfigurationError(msg)
    scope = scope_in()
    if scope is None or config().mode != "enforce":
        return "replica"
    if datastore in scope.uncommitted:
        return "primary"
    moved = is_long(datastore)
    if moved is None and stays(datastore) is not None:
        return "primary"
    if moved is None and not concerns(scope.lineage, datastore):
        return "replica"
    return _Question(scope, datastore, moved) if "replica" in registered else "primary"


def _answer(datastore: str, *, shown: bool) -> ReadsFrom:
    if shown:
        return "replica"
    count("reads_at_primary", datastore)
    return "primary"


class _Question:
    """Whether the replica shows what a request must see; spends the time of the request.

    One that was moved to the primary must see what it may have read there by now: the primary's
    position of this moment.
    """

    def __init__(self, scope: Scope, datastore: str, moved: BarrierResult | None = None) -> None:
        self._scope, self._datastore, self._moved = scope, datastore, moved
        self._allowance = scope.allowance()
        self._clock = shims_of(datastore)[0].clock

    def __enter__(self) -> Barrier:
        now_s = self._clock.monotonic()
        left_s = self._allowance.left_s(now_s)
        self._allowance.begin(now_s)
        options: dict[str, Any] = {"only": self._datastore, "on_unmet": "return"}
        if self._moved is None:
            call = Barrier(None, timeout=max(left_s, LEAST_S), **options)
        else:
            seen = Lineage(incomplete=[Incomplete(self._datastore, "unsampled")])
            about = self._scope.lineage.merge(seen)
            call = Barrier(about, timeout=BACK_S, on_incomplete="raise", **options)
        call.hasty = True
        return call

    def __exit__(self, *_: object) -> None:
        self._allowance.end(self._clock.monotonic())

    def told(self, found: BarrierResult) -> ReadsFrom:
        """The answer after the replica was asked."""
        if not found.ok:
            move(self._datastore, found if self._moved is None else self._moved)
        elif self._moved is not None:
            go_back(self._datastore)
        return _answer(self._datastore, shown=found.ok)
