"""Writes that were committed and have no position yet: covered first, marked where that fails."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Protocol

from antipode import Lineage
from antipode.shim import Unreachable, count, log_once
from antipode_shims.postgresql._look import Refused
from antipode_shims.postgresql._position import LsnError

if TYPE_CHECKING:
    from antipode import WriteId
    from antipode_shims.postgresql._position import Log

#: Seconds within which a commit has to be flushed once its lineage is used: the server does it
#: within three of its `wal_writer_delay`, 0.6 by default.
_FLUSHED_S = 1.0
#: Between two questions whether it is.
_PAUSE_S = 0.01
#: What is said of commits that were not.
_UNFLUSHED = (
    "a write to %r was committed without waiting for its flush, and is not flushed yet: its lineage"
    " is incomplete (in_doubt)"
)
_OPEN = (
    "the lineage of a write to %r was used before the transaction ended that its own text began:"
    " it is incomplete (in_doubt). Send COMMIT and BEGIN as statements of their own"
)


class Server(Protocol):
    """What is asked of a shim here; see `BasePostgreSQLShim`."""

    @property
    def datastore(self) -> str:
        """What every service calls it."""
        ...

    def flush_seen(self, started: str) -> int:
        """How far the process was seen to have flushed."""
        ...

    def flushed(self, started: str, until: int, *, timeout_s: float, pause_s: float | None) -> int:
        """How far it has flushed, asked now."""
        ...

    def write_of(self, log: Log, position: int, *, exact: bool) -> WriteId:
        """The entry of a position."""
        ...


class Unflushed:
    """A write that was committed and may not be flushed: a crash of the primary would undo it.

    Asked for again once its lineage is used: until the flush has passed it, it is in doubt.
    """

    def __init__(self, shim: Server, log: Log, until: int, started: str, *, exact: bool) -> None:
        """The commit is flushed with the position *until* of *log*, on that very process."""
        self._shim, self._log, self._until, self._started = shim, log, until, started
        self._exact = exact
        self._lineage: Lineage | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Lineage:
        """The write, or a lineage that says that it is in doubt."""
        with self._lock:
            if self._lineage is None:
                self._lineage = self._ask()
            return self._lineage

    def _ask(self) -> Lineage:
        flushed = self._shim.flush_seen(self._started)
        if flushed < self._until:
            try:
                flushed = self._shim.flushed(
                    self._started, self._until, timeout_s=_FLUSHED_S, pause_s=_pause_s()
                )
            except (Unreachable, Refused, LsnError):
                flushed = 0
        if flushed >= self._until:
            return Lineage([self._shim.write_of(self._log, flushed, exact=self._exact)])
        return _in_doubt(self._shim.datastore, "postgresql_unflushed", _UNFLUSHED)


def _pause_s() -> float | None:
    """Between two questions; None for one question alone: nothing waits in an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _PAUSE_S
    return None


class CommittedBefore:
    """What one text committed before it left a transaction open, in which nothing can be asked.

    It is asked for when that transaction is over; a lineage that is used before is in doubt.

    Attributes:
        away: whether nothing but a function of dblink can have committed it.
    """

    def __init__(self, datastore: str, *, away: bool = False) -> None:
        """In *datastore*."""
        self._datastore = datastore
        self.away = away
        self._found: Unflushed | Lineage | None = None

    def settle(self, found: Unflushed | Lineage) -> None:
        """Be *found*: a position that covers it, or what says that there is none."""
        self._found = found

    def __call__(self) -> Lineage:
        """What was found, or a lineage that says that it is in doubt."""
        found = self._found
        if found is None:
            return _in_doubt(self._datastore, "postgresql_left_open", _OPEN)
        return found() if isinstance(found, Unflushed) else found


def _in_doubt(datastore: str, what: str, message: str) -> Lineage:
    count("incomplete", datastore)
    log_once(what, datastore, "", message, datastore)
    return Lineage(incomplete=[(datastore, "in_doubt")])
