"""What is known of one connection's session: transaction, snapshot, and what is in flight.

Pure: notified of statements before they are sent and of what the server says of them, it decides
whether a read may be made, whether a write's position is missing, and whether a lost connection
leaves a write in doubt. The server's own flags decide wherever a reply has them; where none does,
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
    WROTE_ALONE,
)
from antipode_shims.mysql._statements import (
    BEGINS,
    CALLS,
    COMMITS,
    DDL,
    ENDS,
    ISOLATES,
    LOCKS,
    LOGS,
    MANY,
    ONCE,
    OPAQUE,
    OPENS,
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
#: Of a status: AUTOCOMMIT alone where a statement commits on its own.
OPEN_OR_NOT = AUTOCOMMIT | IN_TRANSACTION
#: Which statements take a snapshot. Plain writes read what was committed last, but for triggers.
_TAKES = READS | OPENS
#: Errors of a statement that was not executed: it does not parse, or names no table that there is.
_UNREAD = frozenset({1064, 1146})
#: And of one that names a column that there is not, or that a read-only transaction may not have:
#: unless a trigger, a function or a view had read by then.
_UNRESOLVED = frozenset({1054, 1792})
#: And of one that its user may not run, that names what there is not, that a server refuses which
#: only reads, or that lost a transaction's locks.
_UNWRITTEN = _UNREAD | {
    *(1044, 1045, 1046, 1049, 1052, 1054, 1093, 1099, 1100, 1109, 1110, 1136, 1142, 1143, 1227),
    *(1205, 1213, 1290, 1305, 1318, 1370, 1785, 1792, 1836),
}
#: Errors with which a server rolls a transaction back, or may.
_UNDONE = frozenset({1205, 1206, 1213})
#: Errors of DDL that it meets after its commit: a table is there already, or is none.
_COMMITTED = frozenset({1050, 1051})
#: Whether a transaction has a snapshot: if a trigger or a function took one, or a view, too.
_NONE, _PERHAPS, _LOCKED, _TAKEN = range(4)
_MORE_TO_SAY = MORE_RESULTS | STATE_CHANGED


class Verdict(Enum):
    """What to do with a read under a floor."""

    PASS = "pass"  # noqa: S105 - it lets a read pass
    HOLD = "hold"
    #: A snapshot is open that does not show the floor, unless reads see what was committed last.
    OLD_SNAPSHOT = "old_snapshot"
    #: The transaction wrote, and read nothing: it has such a snapshot if a trigger of its tables,
    #: or a function in its statements, took one.
    TRIGGERED = "triggered"
    #: It read, and locked what it read: a view of its statements may have taken one, too.
    LOCKED = "locked"


class Due(Enum):
    """What the end of a reply leaves to do."""

    NOTHING = "nothing"
    SAMPLE = "sample"
    #: The same, where nobody knows whether there was a write.
    PERHAPS = "perhaps"
    #: The same of an open transaction, whose end will be asked about: only what no rollback undoes.
    INSIDE = "inside"
    #: A position should have come and did not: ask whether the server still gives any.
    CHECK = "check"
    UNCOVERED = "uncovered"


_OLD = {
    _PERHAPS: Verdict.TRIGGERED,
    _LOCKED: Verdict.LOCKED,
    _TAKEN: Verdict.OLD_SNAPSHOT,
}
#: Python 3.11 looks an enumeration's members up slowly; these are wanted for every statement.
_NOTHING, _PASS = Due.NOTHING, Verdict.PASS


class Session:
    """One connection between its handshake and its end.

    Attributes:
        status: the server's flags, as last heard.
        tracked: whether replies carry positions.
        server: the server's incarnation, once known.
        may_stop: whether the server can be set to give writes no numbers (MySQL's ``gtid_mode``).
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
        self._snapshot = _TAKEN if self._opened else _NONE
        self._wrote = self._opened
        self._did = ""
        self._proved = False
        self._unlogged = False
        self._isolation_unsure = False
        self._isolated_once = False
        self._known: Mapping[str, int] = {}
        self._known_s = 0.0
        self._own: Mapping[str, int] = {}
        self._shown: Mapping[str, int] = {}
        self._shown_own: Mapping[str, int] = {}
        self._kept: frozenset[str] = frozenset()
        self._shown_kept: frozenset[str] = frozenset()
        self._passed: Floor | None = None
        self._shown_floor: Floor | None = None
        self._before = self._snapshot
        self._looked = False
        self._flight = 0
        self._alone = False
        self._commits = False
        self._committed = False
        self._changed = False
        self._lacks = False
        self._hinted = False
        self._untold = False
        self._certain = self._opened
        self._lasting = False

    @property
    def proved(self) -> bool:
        """Whether replies have reported what the session committed."""
        return self.tracked and self._proved

    @property
    def fresh(self) -> bool:
        """Whether the next statement may take the snapshot of a transaction."""
        return not self._snapshot and self.status & OPEN_OR_NOT != AUTOCOMMIT

    @property
    def unread(self) -> bool:
        """Whether the open transaction, or the one that the next statement opens, has read nothing.

        Nothing that is known to have taken its snapshot.
        """
        return self._snapshot != _TAKEN and self.status & OPEN_OR_NOT != AUTOCOMMIT

    def judge(self, floor: Floor, meaning: int) -> Verdict:
        """Whether a statement that reads, or may take the transaction's snapshot, may be sent."""
        self._forget_old()
        renews = meaning & ENDS and not meaning & MANY
        if self._snapshot and not renews:
            if self.shows(floor):
                return _PASS
            return _OLD[self._snapshot]
        if floor.proved(self.server, within_s=FRESH_S):
            self._pass(floor)
            self._learn(floor.writes, floor)
            return _PASS
        if _covers(self._known, self._own, floor) and _keeps(self._kept, floor):
            self._pass(floor)
            return _PASS
        return Verdict.HOLD

    def shows(self, floor: Floor) -> bool:
        """Whether the snapshot of the open transaction shows all that *floor* demands."""
        return floor.within(self._shown_floor) or (
            _covers(self._shown, self._shown_own, floor) and _keeps(self._shown_kept, floor)
        )

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
            visible: the last poll's writes.
            renews: whether reads of the open transaction see it.
        """
        self._forget_old()
        self._pass(floor)
        self._learn(visible, floor)
        if renews or self._looked:
            self._show()
            self._looked = False

    def _learn(self, visible: Iterable[WriteId], floor: Floor) -> None:
        known = dict(self._known)
        for write in visible:
            if isinstance(write.version, int):
                known[write.key] = max(known.get(write.key, -1), write.version)
        self._known = known if len(known) <= _MOST_LOGS else {}
        if floor.promises:
            kept = self._kept.union(promise.id for promise in floor.promises)
            self._kept = kept if len(kept) <= _MOST_PROMISES else frozenset()

    def _show(self) -> None:
        """What is known now, the transaction's snapshot shows."""
        self._shown, self._shown_own, self._shown_kept = self._known, self._own, self._kept
        self._shown_floor = self._passed

    def _show_nothing(self) -> None:
        self._shown, self._shown_own, self._shown_kept = {}, {}, frozenset()
        self._shown_floor = None

    def _forget_old(self) -> None:
        """Polls are remembered for seconds: a server that is reset in place notifies nobody."""
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
        """A poll of the library's own opened the snapshot of the application's transaction."""
        self._snapshot, self._looked = _TAKEN, True
        self._show_nothing()

    def reaches(self, server: str) -> None:
        """The server behind the connection is *server*; what another one showed counts no more."""
        if server != self.server:
            self.server = server
            self._known, self._own, self._kept, self._passed = {}, {}, frozenset(), None
            self._show_nothing()

    def starts(self, meaning: int) -> None:
        """A statement is about to be sent."""
        self._flight = meaning
        self._looked, self._before = False, self._snapshot
        autonomous = self.status & OPEN_OR_NOT == AUTOCOMMIT
        self._alone = autonomous and not self._unsure
        # A deadlock ends a transaction, other errors do not: after one nobody knows.
        unsure = self._unsure and self.status & AUTOCOMMIT
        self._commits = bool(meaning & COMMITS or autonomous or unsure)
        self._committed = self._changed = self._hinted = self._untold = False
        if autonomous:
            self._certain = False
        self._lasting = self._lasting or bool(meaning & CALLS and not self._told)
        self._take(meaning)
        if meaning & ISOLATES:
            self._isolated_once = self._isolated_once or bool(meaning & ONCE)
            self._isolation_unsure = self._isolation_unsure or not autonomous

    def _take(self, meaning: int) -> None:
        """Note what a statement that is about to be sent does to the transaction's snapshot."""
        if meaning & _TAKES:
            taken = _LOCKED if meaning & LOCKS else _TAKEN
        elif meaning & WRITES and not meaning & ENDS:
            taken = _PERHAPS
        else:
            return
        if not self._snapshot or meaning & ENDS:
            self._forget_old()
            self._show()
            self._snapshot = taken
        else:
            self._snapshot = max(self._snapshot, taken)

    def replied(self, ok: Ok) -> None:
        """One of the flight's statements was answered with an OK packet."""
        self.status = ok.status
        self._did = ok.transaction or self._did
        if self._snapshot == _PERHAPS and self._did[1:] == WROTE_ALONE:
            self._snapshot = _NONE
        if ok.gtid is not None:
            self._committed = self._proved = True
            self._lacks = False
        elif ok.affected and self._flight & WRITES and _UNCHANGED not in ok.plain:
            self._lacks = True
        if ok.gtid is not None or self.may_stop:
            self._hinted = False  # MySQL's OK packet has the position of rows before it, too.
        if self._flight & ENDS and self._wrote and ok.warned:
            self._lasting = True  # What is in tables without transactions was not rolled back.
        unseen = self._flight & MANY and not self._told  # Only the first of them is heard of.
        sure = bool(ok.affected or unseen or self._flight & OPAQUE == OPAQUE or self._flight & ENDS)
        if sure or self._flight & CALLS:
            self._certain = self._certain or (sure and bool(self._flight & WRITES))
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
            self._snapshot, self._isolation_unsure = _NONE, False
        return True

    def rows_ended(self, status: int, *, changed: bool) -> None:
        """One of the flight's statements was answered with rows.

        Args:
            status: the server's flags after them.
            changed: whether the server says that a tracked value changed (MariaDB).
        """
        self.status = status
        self._hinted = self._hinted or changed
        self._changed = self._changed or bool(self._flight & WRITES)
        calls = bool(self._flight & CALLS)
        self._certain = self._certain or changed or (self._changed and not calls)
        alone = not self._flight & (COMMITS | MANY)
        unknown = self.may_stop and (calls or self._flight & OPAQUE == OPAQUE)
        if self._flight & WRITES and (alone or unknown):
            # Rows come without a position: INSERT ... RETURNING, a function, a prepared statement.
            self._hinted = True
            self._untold = self._untold or changed or self.may_stop

    def minted(self, writes: Iterable[WriteId]) -> None:
        """Writes of this connection were committed on its server."""
        own = {write.key: write.version for write in writes if isinstance(write.version, int)}
        self._own = {**self._own, **own}

    def ended(self, *, failed: bool = False, number: int = 0) -> Due:
        """The flight's last reply came; what is left to do.

        Args:
            failed: whether it is an error.
            number: the error's.
        """
        flight, self._flight = self._flight, 0
        if failed and flight & WRITES and (flight & COMMITS or number not in _UNWRITTEN):
            # What came before the error may be committed, or in a table without transactions; the
            # position of an earlier statement says nothing of that.
            self._changed = self._untold = self._hinted = True
            self._certain = self._certain or bool(flight & COMMITS)
        self._untold = self._told and (self._untold or (self._changed and not self.tracked))
        due = self._due(flight, failed=failed)
        if failed:
            self._settle_failed(flight, number)
        else:
            self._settle(flight)
        return due

    def _due(self, flight: int, *, failed: bool) -> Due:
        # Whether a GTID of several statements is that of the commit nobody knows. A client that
        # is told of none asks for it.
        named = (self._committed or not self.tracked) and flight & WRITES and not flight & MANY
        if flight & XA and not named and (flight & MANY or not failed):
            return Due.UNCOVERED
        undone = bool(self._lasting and flight & ENDS and not flight & COMMITS)
        changed = self._changed or (self._wrote and flight & COMMITS) or undone
        if not self._hinted and (self._committed or not changed):
            return _NOTHING  # What failed alone left nothing.
        inside = self._told and not failed and self.status & IN_TRANSACTION
        if not undone and (not self._commits or (inside and not flight & COMMITS)):
            # Tables without transactions have it by now, which no reply reports.
            return Due.INSIDE if self._untold else _NOTHING
        if self._unlogged and not self._committed:
            return Due.UNCOVERED
        if self._hinted or failed or undone or not self.proved:
            certain = self._certain and not (undone or self._committed)
            return Due.SAMPLE if certain else Due.PERHAPS
        return Due.CHECK if self.may_stop and self._lacks else _NOTHING

    def _settle(self, flight: int) -> None:
        inside = self.status & IN_TRANSACTION
        # After what ends one, a server that shows its flags has none open, but for a new one.
        if (
            flight & ENDS
            and not flight & MANY
            and not (self._told and inside and not flight & BEGINS)
        ):
            # What BEGIN ends, or AND CHAIN, hands its isolation on.
            unsure = self._isolation_unsure and bool(flight & BEGINS)
            self._closed()
            self._isolation_unsure = unsure
            self._snapshot = _TAKEN if flight & READS else _NONE
        self._wrote = self._wrote or self._changed
        if not inside:
            self._closed()
        if flight & (LOGS | UNLOGS):
            self._unlogged = bool(flight & UNLOGS)
        if self._told or (flight & ENDS and not flight & MANY):
            self._unsure = False
        elif flight & MANY or flight & OPAQUE == OPAQUE:
            self._unsure = True

    def _settle_failed(self, flight: int, number: int) -> None:
        """An error carries no flags: what was open may still be, what was not hardly is."""
        single = not flight & (COMMITS | MANY)
        if self._alone and single:
            self._snapshot = _NONE
        elif single and number in _UNREAD:
            self._snapshot = self._before
        elif single and number in _UNRESOLVED:
            self._snapshot = max(self._before, min(self._snapshot, _LOCKED))
        elif flight & DDL == DDL and number in _COMMITTED and not flight & MANY:
            self.status &= ~IN_TRANSACTION
            self._closed()
        elif flight & ENDS:
            self._show_nothing()  # Whether it began again nobody knows.
        self._wrote = self._wrote or self._changed
        if number in _UNDONE and not self.tracked:
            self._lasting = self._lasting or self._wrote  # A rollback has nothing to warn of.
        autonomous = self.status & OPEN_OR_NOT == AUTOCOMMIT
        self._unsure = self._unsure or not autonomous or bool(flight & COMMITS)

    def heard(self, status: int) -> None:
        """The server's flags after a question of the library's own."""
        self.status = status
        self._unsure = False
        if not status & IN_TRANSACTION:
            self._closed()

    def unparsed(self) -> None:
        """The server could not parse what is in flight, and did nothing."""
        self._snapshot, self._flight = self._before, 0

    def switched(self, autocommit: int) -> None:
        """The reply to a statement that may have switched autocommit was read to its end.

        Args:
            autocommit: :data:`AUTOCOMMIT` where each statement commits on its own now, else 0.
        """
        if autocommit == self.status & AUTOCOMMIT:
            return
        if autocommit:
            self.status = AUTOCOMMIT
            self._closed()
        else:  # What else it did may have opened a transaction.
            self.status, self._snapshot = IN_TRANSACTION, _TAKEN
            self._show_nothing()

    def _closed(self) -> None:
        """No transaction is open, or one that has done nothing."""
        self._wrote = self._lacks = self._isolation_unsure = False
        self._certain = self._lasting = False
        self._did, self._snapshot = "", _NONE

    @property
    def uncommitted(self) -> bool:
        """Whether the open transaction wrote."""
        return self._wrote and bool(self.status & IN_TRANSACTION or not self._told)

    @property
    def wrote_inside(self) -> bool:
        """Whether the flight that ended last may have written, in a transaction that is open."""
        return self._changed and self.uncommitted

    @property
    def preparing(self) -> bool:
        """Whether what is in flight leaves a write to others: its GTID is of no commit."""
        return bool(self._flight & XA) and not self._flight & WRITES

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
