"""What is known of one connection's session: transaction, snapshot, and what is in flight.

Pure: told of statements before they are sent and of what the server says of them, it decides
whether a read may be made, whether a write's position is missing, and whether a lost connection
leaves a write in doubt. The server's own flags decide wherever a reply has them; where none tells,
a transaction may be open, its snapshot may be old and a statement may have written.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING

from antipode_shims.mysql._look import FRESH_S
from antipode_shims.mysql._position.ok_packet import (
    AUTOCOMMIT,
    IN_TRANSACTION,
    MORE_RESULTS,
    STATE_CHANGED,
)
from antipode_shims.mysql._statements import (
    COMMITS,
    ENDS,
    ISOLATES,
    LOGS,
    MANY,
    ONCE,
    OPAQUE,
    READS,
    UNLOGS,
    WRITES,
    XA,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antipode import WriteId
    from antipode.shim import Floor
    from antipode_shims.mysql._position.ok_packet import Ok

_MOST_LOGS = 64
_MOST_PROMISES = 256
#: In the text of an UPDATE's reply: it may count the rows that it found, and changed none of them.
_UNCHANGED = b"Changed: 0"
_MORE_TO_SAY = MORE_RESULTS | STATE_CHANGED


class Verdict(Enum):
    """What to do with a read under a floor."""

    PASS = "pass"  # noqa: S105 - it lets a read pass
    HOLD = "hold"
    #: A snapshot is open that does not show the floor, unless reads see what was committed last.
    OLD_SNAPSHOT = "old_snapshot"


class Due(Enum):
    """What the end of a reply leaves to do."""

    NOTHING = "nothing"
    SAMPLE = "sample"
    #: A position should have come and did not: ask whether the server still gives any.
    CHECK = "check"
    UNCOVERED = "uncovered"


#: Python 3.11 looks an enumeration's members up slowly; these are wanted for every statement.
_NOTHING, _PASS = Due.NOTHING, Verdict.PASS


class Session:
    """One connection between its handshake and its end.

    Attributes:
        status: the server's flags, as last heard.
        tracked: whether replies carry positions.
        server: the server's incarnation, once known.
        may_stop: whether the server can be told to give writes no numbers (MySQL's ``gtid_mode``).
    """

    def __init__(self, *, status: int, tracked: bool, told: bool = True) -> None:
        """A session in *status*; what an open transaction did before is not known.

        Args:
            status: the server's flags.
            tracked: whether replies carry positions.
            told: whether the client shows the server's flags. Where it does not, they are what
                the statements so far amount to.
        """
        self.status = status
        self.tracked = tracked
        self.server = ""
        self.may_stop = False
        self._told = told
        self._unsure = False
        self._opened = bool(status & IN_TRANSACTION)
        self._snapshot = self._opened
        self._wrote = self._opened
        self._proved = False
        self._unlogged = False
        self._isolation_unsure = False
        self._isolated_once = False
        self._known: Mapping[str, int] = {}
        self._known_s = 0.0
        self._own: dict[str, int] = {}
        self._shown: Mapping[str, int] = {}
        self._kept: frozenset[str] = frozenset()
        self._shown_kept: frozenset[str] = frozenset()
        self._passed: Floor | None = None
        self._shown_floor: Floor | None = None
        self._flight = 0
        self._commits = False
        self._committed = False
        self._changed = False
        self._lacks = False
        self._hinted = False

    def judge(self, floor: Floor, meaning: int) -> Verdict:
        """Whether a statement that reads may be sent."""
        self._forget_old()
        renews = meaning & ENDS and not meaning & MANY
        if self._snapshot and not renews:
            shown = floor is self._shown_floor or (
                _covers(self._shown, {}, floor) and _keeps(self._shown_kept, floor)
            )
            return _PASS if shown else Verdict.OLD_SNAPSHOT
        if floor.proved(self.server, within_s=FRESH_S) or (
            _covers(self._known, self._own, floor) and _keeps(self._kept, floor)
        ):
            self._pass(floor)
            return _PASS
        return Verdict.HOLD

    def reads_committed(self, level: str) -> bool:
        """Whether reads of the open transaction see what was committed last.

        Args:
            level: the session's ``transaction_isolation``.
        """
        if self._told and not self.status & IN_TRANSACTION:
            return True
        if self._isolation_unsure or self._isolated_once:
            return False
        return level.upper().replace(" ", "-") in ("READ-COMMITTED", "READ-UNCOMMITTED")

    def passed(self, floor: Floor, visible: Iterable[WriteId], *, renews: bool = False) -> None:
        """A floor was satisfied on this connection, which showed *visible*.

        Args:
            floor: what was demanded.
            visible: the last look's writes.
            renews: whether reads of the open transaction see it.
        """
        self._forget_old()
        self._pass(floor)
        known = dict(self._known)
        for write in visible:
            if isinstance(write.version, int):
                known[write.key] = max(known.get(write.key, -1), write.version)
        self._known = known if len(known) <= _MOST_LOGS else {}
        if floor.promises:
            kept = self._kept.union(promise.id for promise in floor.promises)
            self._kept = kept if len(kept) <= _MOST_PROMISES else frozenset()
        if renews:
            self._shown, self._shown_kept, self._shown_floor = self._known, self._kept, floor

    def _forget_old(self) -> None:
        """Looks are remembered for seconds: a server that is reset in place tells nobody."""
        if self._passed is not None and time.monotonic() - self._known_s > FRESH_S:
            self._known, self._kept, self._passed = {}, frozenset(), None

    def _pass(self, floor: Floor) -> None:
        """A floor was satisfied; what is remembered is as old as the first of these."""
        if self._passed is None:
            self._known_s = time.monotonic()
        self._passed = floor

    @property
    def isolated_once(self) -> bool:
        """Whether a transaction's isolation may be another than the session's."""
        return self._isolated_once

    def snapshot_taken(self) -> None:
        """A look of the library's own opened the snapshot of the application's transaction."""
        self._snapshot = True
        self._shown, self._shown_kept, self._shown_floor = {}, frozenset(), None

    def reaches(self, server: str) -> None:
        """The server behind the connection is *server*; what another one showed counts no more."""
        if server != self.server:
            self.server = server
            self._known, self._own, self._shown = {}, {}, {}
            self._kept = self._shown_kept = frozenset()
            self._passed = self._shown_floor = None

    def starts(self, meaning: int) -> None:
        """A statement is about to be sent."""
        self._flight = meaning
        autonomous = self.status & (AUTOCOMMIT | IN_TRANSACTION) == AUTOCOMMIT
        # A deadlock ends a transaction, other errors do not: behind one nobody knows.
        unsure = self._unsure and self.status & AUTOCOMMIT
        self._commits = bool(meaning & COMMITS or autonomous or unsure)
        self._committed = self._changed = self._hinted = False
        if meaning & (READS | WRITES) and (not self._snapshot or meaning & ENDS):
            self._forget_old()
            self._shown, self._shown_kept = self._known, self._kept
            self._shown_floor = self._passed
            self._snapshot = True
        if meaning & ISOLATES:
            self._isolated_once = self._isolated_once or bool(meaning & ONCE)
            self._isolation_unsure = self._isolation_unsure or not autonomous

    def replied(self, ok: Ok) -> None:
        """One of the flight's statements was answered with an OK packet."""
        self.status = ok.status
        if ok.gtid is not None:
            self._committed = self._proved = True
            self._hinted = False
            self._lacks = False
        elif ok.affected and self._flight & WRITES and _UNCHANGED not in ok.plain:
            self._lacks = True
        unseen = self._flight & MANY and not self._told  # Only the first of them is heard of.
        if ok.affected or unseen or self._flight & OPAQUE == OPAQUE or self._flight & ENDS:
            self._changed = self._changed or bool(self._flight & WRITES)

    def read_ended(self, status: int) -> bool:
        """Take in that a flight which reads alone was answered with rows; False where it was more.

        In place of :meth:`rows_ended` and :meth:`ended`: most flights are such reads.
        """
        if self._flight != READS or self._wrote or not self._told or status & _MORE_TO_SAY:
            return False
        self.status = status
        self._flight = 0
        self._unsure = False
        if not status & IN_TRANSACTION:
            self._snapshot = self._isolation_unsure = False
        return True

    def rows_ended(self, status: int, *, changed: bool) -> None:
        """One of the flight's statements was answered with rows.

        Args:
            status: the server's flags behind them.
            changed: whether the server says that a tracked value changed (MariaDB).
        """
        self.status = status
        self._hinted = self._hinted or changed
        self._changed = self._changed or bool(self._flight & WRITES)
        if self._flight & WRITES and not self._flight & (COMMITS | MANY):
            self._hinted = True  # INSERT ... RETURNING: rows come without a position.

    def minted(self, writes: Iterable[WriteId]) -> None:
        """Writes of this connection were committed on its server."""
        for write in writes:
            if isinstance(write.version, int):
                self._own[write.key] = write.version

    def ended(self, *, failed: bool = False) -> Due:
        """The flight's last reply came; what is left to do."""
        flight, self._flight = self._flight, 0
        if failed and flight & COMMITS and flight & WRITES:
            self._changed = True  # What came before the error may be committed.
        due = self._due(flight, failed=failed)
        if failed:
            self._settle_failed(flight)
        else:
            self._settle(flight)
        return due

    def _due(self, flight: int, *, failed: bool) -> Due:
        if not failed and flight & XA and not (self._committed and flight & WRITES):
            return Due.UNCOVERED
        changed = self._changed or (self._wrote and flight & COMMITS)
        if not self._hinted and (self._committed or not changed):
            return _NOTHING  # What failed by itself left nothing.
        inside = self._told and not failed and self.status & IN_TRANSACTION
        if not self._commits or (inside and not flight & COMMITS):
            return _NOTHING
        if self._unlogged and not self._committed:
            return Due.UNCOVERED
        if self._hinted or failed or not (self.tracked and self._proved):
            return Due.SAMPLE
        return Due.CHECK if self.may_stop and self._lacks else _NOTHING

    def _settle(self, flight: int) -> None:
        if flight & ENDS and not flight & MANY:
            self._wrote = self._lacks = self._isolation_unsure = False
            self._snapshot = self._snapshot and bool(flight & READS)
        self._wrote = self._wrote or self._changed
        if not self.status & IN_TRANSACTION:
            self._wrote = self._lacks = self._snapshot = self._isolation_unsure = False
        if flight & (LOGS | UNLOGS):
            self._unlogged = bool(flight & UNLOGS)
        if self._told or (flight & ENDS and not flight & MANY):
            self._unsure = False
        elif flight & MANY or flight & OPAQUE == OPAQUE:
            self._unsure = True

    def _settle_failed(self, flight: int) -> None:
        """An error carries no flags: what was open may still be, what was not hardly is."""
        if self._commits and not flight & (COMMITS | MANY):
            self._snapshot = False
        self._wrote = self._wrote or self._changed
        autonomous = self.status & (AUTOCOMMIT | IN_TRANSACTION) == AUTOCOMMIT
        self._unsure = self._unsure or not autonomous or bool(flight & COMMITS)

    def heard(self, status: int) -> None:
        """The server's flags behind a question of the library's own."""
        self.status = status
        self._unsure = False
        if not status & IN_TRANSACTION:
            self._wrote = self._lacks = self._snapshot = self._isolation_unsure = False

    @property
    def uncommitted(self) -> bool:
        """Whether the open transaction wrote."""
        return self._wrote and bool(self.status & IN_TRANSACTION or not self._told)

    @property
    def doubtful(self) -> bool:
        """Whether what is in flight may commit a write, or leave it to others to commit."""
        if self._flight & XA and self._wrote:
            return True
        wrote = self._flight & WRITES or (self._wrote and self._flight & COMMITS)
        return self._commits and bool(wrote)

    def lost(self) -> bool:
        """The connection is lost; whether that leaves a write in doubt."""
        doubtful, self._flight = self.doubtful, 0
        return doubtful

    def unsent(self) -> None:
        """What was about to be sent never was, or to nobody."""
        self._flight = 0


def _covers(known: Mapping[str, int], own: Mapping[str, int], floor: Floor) -> bool:
    """Whether positions seen before show a floor.

    Writes of the connection's own prove themselves alone: on a primary, numbers are given out
    before commits are done.
    """
    return all(
        isinstance(write.version, int)
        and (known.get(write.key, -1) >= write.version or own.get(write.key) == write.version)
        for write in floor.writes
    )


def _keeps(kept: frozenset[str], floor: Floor) -> bool:
    """Whether the promises of a floor were seen fulfilled before."""
    return not floor.promises or all(promise.id in kept for promise in floor.promises)
