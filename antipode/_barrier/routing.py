"""Where a router of reads sends the next one: to the replica, or to the primary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._request.context import scope_in
from antipode._runtime.config import config
from antipode._runtime.metrics import count
from antipode._runtime.ruled import has_primary
from antipode._runtime.switch import is_disabled

from .automatic import concerns
from .barrier import barrier, barrier_async
from .moved import move, stays
from .registry import shims_of

if TYPE_CHECKING:
    from antipode._lineage.outcomes import BarrierResult
    from antipode._request.scope import Scope

    from .store import ReadsFrom

#: Seconds for one honest poll although the time of the request is used up.
LEAST_S = 0.05


def reads_from(datastore: str) -> ReadsFrom:
    """Where the next read of *datastore* goes: to the replica that shows enough, or the primary.

    For a router of reads. A request that depends on nothing there reads at the replica. Otherwise
    this waits, within the time that the reads of the request have (``auto_timeout``), until the
    replica shows what the request depends on. Where it does not, or the request has written in a
    transaction that is open, it is the primary's turn, and that is counted
    (``reads_at_primary``). A request that was sent to the primary is sent there until it ends. In a
    dry run nothing waits, and reads go to the replica; so they do
    where the library is disabled (``ANTIPODE_DISABLED=true``).

    Args:
        datastore: whose primary and one replica this process has instrumented, or rules name.

    Returns:
        ``replica`` or ``primary``.

    Raises:
        ConfigurationError: this process has no primary of *datastore*, or several replicas.
    """
    scope = _asked(datastore)
    if isinstance(scope, str):
        return _answer(datastore, shown=scope == "replica")
    with _Spent(scope, datastore) as left_s:
        found = barrier(only=datastore, timeout=left_s, on_unmet="return")
    return _told(datastore, found)


async def reads_from_async(datastore: str) -> ReadsFrom:
    """The asyncio twin of :func:`reads_from`.

    Raises:
        ConfigurationError: as :func:`reads_from`.
    """
    scope = _asked(datastore)
    if isinstance(scope, str):
        return _answer(datastore, shown=scope == "replica")
    with _Spent(scope, datastore) as left_s:
        found = await barrier_async(only=datastore, timeout=left_s, on_unmet="return")
    return _told(datastore, found)


def _asked(datastore: str) -> Scope | ReadsFrom:
    """The scope of what is to be waited for; without anything, where to read."""
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
    if not concerns(scope.lineage, datastore):
        return "replica"
    if "replica" not in registered or stays(datastore) is not None:
        return "primary"
    return scope


def _told(datastore: str, found: BarrierResult) -> ReadsFrom:
    """The answer after the replica was asked."""
    if not found.ok:
        move(datastore, found)
    return _answer(datastore, shown=found.ok)


def _answer(datastore: str, *, shown: bool) -> ReadsFrom:
    if shown:
        return "replica"
    count("reads_at_primary", datastore)
    return "primary"


class _Spent:
    """Spends the time of a request while it waits."""

    def __init__(self, scope: Scope, datastore: str) -> None:
        self._allowance = scope.allowance()
        self._clock = shims_of(datastore)[0].clock

    def __enter__(self) -> float:
        now_s = self._clock.monotonic()
        left_s = self._allowance.left_s(now_s)
        self._allowance.begin(now_s)
        return max(left_s, LEAST_S)

    def __exit__(self, *_: object) -> None:
        self._allowance.end(self._clock.monotonic())
