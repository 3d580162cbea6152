"""What is known of one instrumented connection: its transaction, its snapshot, what is in flight.

Pure: notified of statements before they are sent and of how the session stands after them, it
decides whether a read may be made and whether a position is asked for. The state of the transaction
is the server's own word, of the packet that ends each reply.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from antipode import StaleSnapshot, Status
from antipode.shim import (
    Observation,
    StaleRead,
    count,
    floor,
    log_once,
    own_time,
    record_uncommitted,
    scope_in,
)
from antipode_shims._sql.promises import Records
from antipode_shims.postgresql._look import ISOLATION, SAMPLE, UNREAD, Refused, observation
from antipode_shims.postgresql._position import LsnError
from antipode_shims.postgresql._promises import records
from antipode_shims.postgresql._statements import (
    ANYTHING,
    BEGINS,
    CALLS,
    COMMITS,
    COMMITS_INSIDE,
    DECLARES,
    FETCHES,
    HOLDS,
    MANY,
    READS,
    TWO_PHASES,
    WRITES,
    meaning,
    unknown_functions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode.shim import Floor, Places
    from antipode_shims.postgresql._look import Asking, Backend
    from antipode_shims.postgresql._position import Rows
    from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

#: How long what a poll showed is remembered: behind a pooler another server may answer next.
FRESH_S = 2.0
_MOST = 64
_ISOLATED = ("read committed", "read uncommitted")
#: How statements begin that may change what a view does.
_SCHEMA = ("CREATE", "ALTER ")


class Session(Enum):
    """How a session stands between two commands."""

    IDLE = "idle"
    OPEN = "open"
    #: In a transaction that failed and can only be rolled back.
    FAILED = "failed"
    #: Replies are still to come.
    BUSY = "busy"
    LOST = "lost"


class Verdict(Enum):
    """What to do with a read under a floor."""

    PASS = "pass"  # noqa: S105 - it lets a read pass
    HOLD = "hold"
    #: It depends on the isolation of the open transaction, which is asked for.
    ASK = "ask"
    #: Another connection waits for it, for nothing can be asked here without taking the snapshot.
    OUTSIDE = "outside"
    STALE = "stale"


class Read(Exception):  # noqa: N818 - an answer
    """The open transaction may have its snapshot already."""


@dataclass(frozen=True)
class Known:
    """What a server showed.

    Attributes:
        positions: the largest position that was visible, by log.
        promises: ids of those that had a record.
        floor: what was demanded last, all of which was shown.
    """

    positions: Mapping[str, int]
    promises: frozenset[str] = frozenset()
    floor: Floor | None = None

    def covers(self, held: Floor) -> bool:
        """Whether it shows all that *held* demands."""
        if held.within(self.floor):
            return True
        seen = all(
            isinstance(write.version, int) and self.positions.get(write.key, -1) >= write.version
            for write in held.writes
        )
        return seen and self.promises.issuperset(promise.id for promise in held.promises)


NOTHING = Known({})


@dataclass
class Commit:
    """What came with a commit in one packet.

    Attributes:
        wrote: whether the transaction had an id, which each writes that writes.
        flushed: whether the commit waited until it was flushed.
        sample: the answer to `SAMPLE`; None where none came.
    """

    wrote: bool
    flushed: bool
    sample: Mapping[str, str | None] | None = None


class Tap:
    """One instrumented connection's side.

    Attributes:
        shim: whose positions its writes record, and whose floors its reads satisfy.
        own: whether the library itself is asking.
        places: of the connection's pool; None where it has none that is known.
        pending: what the commands do whose replies are not all there.
        commit: of the commit in flight; None where nothing came with it.
        until_s: when a question of the library's own is given up, on the monotonic clock; None
            where no floor limits it.
        stale_read: counts a read once it is answered, if it may be stale.
    """

    def __init__(self, shim: BasePostgreSQLShim) -> None:
        """Of a connection that may have a transaction open already."""
        self.shim = shim
        self.own = False
        self.places: Places | None = None
        self.pending = 0
        self.commit: Commit | None = None
        self.until_s: float | None = None
        self.stale_read = StaleRead()
        self._before = Session.IDLE
        self._transaction = ANYTHING
        self._read = ""
        self._known, self._known_s = NOTHING, 0.0
        self._sent = NOTHING
        self._server = ""
        self._shown = NOTHING
        self._declared: Known | None = None
        self._holds = False

    @own_time
    def starts(self, sql: str | None, session: Session, *, opens: bool) -> tuple[int, Floor | None]:
        """What a statement may do, and what it has to wait for; None for a text nobody can read.

        Args:
            sql: its text.
            session: how the session stands before it.
            opens: whether the client begins a transaction before it.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        self.stale_read.answered()  # In a pipeline: nobody has heard of its failure.
        found = ANYTHING if sql is None else meaning(sql, self.shim.readonly_functions)
        if found & CALLS and sql is not None and not found & WRITES:
            self._warn(sql)
        self._begin(found, session, sql or "")
        if session is Session.FAILED:
            return found, None  # It is refused, whatever it shows.
        if found & READS:
            return found, floor(self.shim, who=self, stale=self.stale_read)
        if session is Session.IDLE and (opens or found & BEGINS):
            return found, floor(self.shim, reads=False, stale=self.stale_read)
        return found, None

    def _begin(self, found: int, session: Session, sql: str) -> None:
        if not self.pending:
            self._before = session
            self.commit = None
            self._read = ""
            self._sent = self._fresh
        if found & WRITES and sql.lstrip()[:6].upper() in _SCHEMA:
            self.shim.hidden = None
        self._read += sql if found == READS else ""
        self.pending |= found

    def parses(self, sql: str, session: Session) -> Floor | None:
        """What a statement that is only parsed must see; None unless that may take a snapshot.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        if session is Session.FAILED or not meaning(sql, self.shim.readonly_functions) & READS:
            return None
        return floor(self.shim, reads=False, stale=self.stale_read)

    def parsed(self, held: Floor | None) -> None:
        """A statement is parsed outside of a transaction, which stays open until the next call.

        Its snapshot shows *held*, and nothing that other connections learn of the server from now
        on.
        """
        if held is not None:
            self._known = replace(self._known, floor=held)
        self._server = ""

    def sends(self, command: str, session: Session) -> None:
        """A command of the client's own, such as BEGIN, is sent."""
        self._begin(meaning(command), session, command)

    def _warn(self, sql: str) -> None:
        for name in sorted(unknown_functions(sql, self.shim.readonly_functions))[:1]:
            count("unknown_function", self.shim.datastore)
            called, advice = f"{name}()", f"declare it: readonly_functions=[{name!r}]"
            if '"' in name:
                called, advice = (
                    "a function in quotes",
                    "call it without: none in quotes is declared",
                )
            log_once(
                "postgresql_unknown_function",
                self.shim.datastore,
                name,
                "a statement to %r calls %s, which may write: whether it did is asked after it. "
                "Where it only reads, %s",
                self.shim.datastore,
                called,
                advice,
            )

    def judge(self, held: Floor, found: int, session: Session, *, piped: bool = False) -> Verdict:
        """Whether a statement that reads, or opens a transaction, may be sent.

        Args:
            held: what it must see.
            found: what it does.
            session: how the session stands.
            piped: whether nothing can be asked before it, for others are in flight.
        """
        if found & FETCHES and self._declared is not None:
            return Verdict.PASS if self._declared.covers(held) else Verdict.STALE
        if session is Session.OPEN or (session is Session.BUSY and self._before is Session.OPEN):
            if found & FETCHES:
                return Verdict.STALE
            if self._shown.covers(held):
                return Verdict.PASS
            return Verdict.STALE if piped else Verdict.ASK
        known = self._fresh
        proved = known is not NOTHING and held.proved(self._server, within_s=FRESH_S)
        if proved or known.covers(held):
            self._sent = replace(known, floor=held)
            return Verdict.PASS
        return Verdict.STALE if piped else Verdict.HOLD

    def commits_open(self, session: Session) -> bool:
        """Whether what is in flight is one statement that commits the open transaction."""
        alone = self.pending & COMMITS and not self.pending & MANY
        return bool(alone) and session is Session.OPEN

    def isolated(self, backend: Backend) -> Asking[Verdict]:
        """What the isolation of the open transaction, on *backend*, lets a read do: a question."""
        row = (yield ISOLATION)[0]
        if row["transaction_isolation"] in _ISOLATED:
            return Verdict.HOLD
        provable = self.unread and self.shim.claimed is not None and backend.host
        return Verdict.OUTSIDE if provable else Verdict.STALE

    @property
    def unread(self) -> bool:
        """Whether the open transaction has sent nothing so far that reads data, or changes it."""
        return not self._transaction & ANYTHING

    def look_outside(self, held: Floor, backend: Backend) -> Asking[Observation]:
        """Poll once, on another connection, for what the first read of a transaction will see.

        Raises:
            Read: that server does not show that *backend* has an open transaction, and no snapshot.
        """
        seen = yield from self.look(held, None)
        # Afterwards: whoever takes the snapshot, it will be later than what was seen.
        if (yield UNREAD.format(**backend._asdict()))[0]["unread"] != "t":
            raise Read
        return seen

    def look(self, held: Floor, backend: int | None) -> Asking[Observation]:
        """Poll once, on the connection that reads, for what *held* demands.

        Args:
            held: what the read must see.
            backend: the number of the connection's process, as its handshake had it; None where
                another connection is asked.

        Raises:
            ConfigurationError: another server may be read.
        """
        try:
            state = yield from self.shim.look()
        except (Refused, LsnError) as error:
            return Observation(self._server, {}, causes=dict.fromkeys(held.writes, str(error)))
        if backend is not None:
            self.shim.require(state, backend)
        self._server = state.server
        shown = observation(state, held.writes)
        if not held.promises:
            return shown
        found = yield from self._records(held)
        causes = found.causes(held.promises)
        return replace(shown, promises=found.statuses, promise_causes=causes)

    def _records(self, held: Floor) -> Asking[Records]:
        """The records of promises, asked so that no error ends the application's transaction."""
        table = self.shim.promise_table
        row = (
            yield f"SELECT coalesce(has_table_privilege(to_regclass('{table}'), 'select'), false)"
            " AS may"
        )[0]
        if row["may"] != "t":
            return Records(cause=f"the server has no table {table!r}, or it may not be read")
        try:
            return (yield from records(table, held.promises))
        except Refused as error:
            return Records(cause=str(error))

    def passed(self, held: Floor, seen: Observation | None) -> None:
        """A floor was satisfied on this connection, by what was *seen* last."""
        now_s = time.monotonic()
        old = self._fresh
        positions = dict(old.positions)
        for write, status in (seen.statuses if seen else {}).items():
            if status is Status.VISIBLE and isinstance(write.version, int):
                positions[write.key] = max(positions.get(write.key, -1), write.version)
        promises = old.promises.union(promise.id for promise in held.promises)
        if len(positions) > _MOST or len(promises) > _MOST:
            positions, promises = {}, frozenset()
        if old is NOTHING:
            self._known_s = now_s
        self._known = self._sent = Known(positions, promises, held)

    @property
    def _fresh(self) -> Known:
        """What the server that answers next is known to show."""
        return self._known if time.monotonic() - self._known_s <= FRESH_S else NOTHING

    def shows(self, held: Floor) -> bool:
        """Whether what the next read sees is known to have all that *held* demands."""
        known = self._shown if self._before is Session.OPEN else self._fresh
        return known.covers(held)

    def stale(self, held: Floor, *, piped: bool = False) -> None:
        """End a read from a snapshot that is older than *held*.

        Raises:
            StaleSnapshot: unless *held* lets such reads be answered.
        """
        why = (
            "reads in a pipeline, where nothing can be asked before a read: wait with barrier() "
            "before it"
            if piped
            else "reads from a snapshot that is older than what the barrier waited for: commit or "
            "roll back its transaction before the read"
        )
        error = StaleSnapshot(f"this connection to {self.shim.datastore!r} {why}")
        held.fail_snapshot(error, self.shows)

    def renewed(self) -> None:
        """Reads of the open transaction see what is committed: what is known, they show."""
        self._shown = self._sent

    def lost(self) -> None:
        """The connection was lost, or its call was given up, before all replies came."""
        found, self.pending = self.pending, 0
        if self._before is Session.IDLE:
            doubtful = bool(found & (WRITES | CALLS)) and not found & BEGINS
            doubtful = doubtful or bool(found & WRITES and found & COMMITS)
        else:
            doubtful = bool(found & COMMITS and (self._transaction | found) & (WRITES | CALLS))
        doubtful = doubtful or bool(found & COMMITS_INSIDE)
        if self.commit is not None:
            doubtful = self.commit.wrote
        self.closed()
        if doubtful:
            self.shim.in_doubt("its connection was lost, or its call given up, before the reply")

    def closed(self) -> None:
        """The session is over: its open transaction, if any, will be rolled back."""
        record_uncommitted(self.shim, self, wrote=False)
        self._known = self._sent = self._shown = NOTHING
        self._declared, self._holds = None, False
        self._server, self._transaction, self.pending = "", 0, 0

    def settled(
        self, session: Session, *, failed: bool, tag: str, standby: bool
    ) -> Asking[None] | None:
        """Take in that all replies came; what is left to ask, if anything.

        Args:
            session: how the session stands now.
            failed: whether the last one was an error.
            tag: what the server says it did last; empty where that is not known.
            standby: whether the server says that it takes no writes.
        """
        found, self.pending = self.pending, 0
        before, done = self._before, self._transaction
        self._before = session
        if session is Session.OPEN or session is Session.FAILED:
            if before is Session.IDLE:
                done, self._shown = 0, self._sent
            chained = found & COMMITS and found & BEGINS and before is Session.OPEN and not failed
            self._transaction = (0 if chained else done) | found
            if chained:
                self._shown = NOTHING
            elif found & DECLARES and self._declared is None:
                self._declared = self._shown  # Of several cursors, the oldest counts.
            self._holds = self._holds or bool(found & HOLDS)
            wrote = bool(self._transaction & WRITES) and not chained
            record_uncommitted(self.shim, self, wrote=wrote)
            if not chained:
                return None
        else:
            self._transaction, self._shown = 0, NOTHING
            self._holds = self._holds or bool(found & HOLDS)
            if not self._holds:
                self._declared = None
            elif self._declared is None:
                self._declared = self._sent
            if before is not Session.IDLE:
                record_uncommitted(self.shim, self, wrote=False)
        if standby:
            return None
        return self._committed(before, found, done, failed=failed, tag=tag)

    def _committed(
        self, before: Session, found: int, done: int, *, failed: bool, tag: str
    ) -> Asking[None] | None:
        """What is left to ask of what the flight *found*, after *done*, has committed."""
        wrote = found | (done if before is Session.OPEN else 0)
        if self.commit is not None:
            commit, self.commit = self.commit, None
            return self._sampled(commit) if commit.wrote else None
        if not wrote & (WRITES | CALLS) or before is Session.FAILED:
            return self._hidden() if before is Session.IDLE and not failed else None
        if found & TWO_PHASES and not failed:
            self.shim.in_doubt("it is prepared for anybody to commit")
            return None
        inside = found & (COMMITS_INSIDE | MANY)
        if before is Session.OPEN and not (found & COMMITS or inside):
            return None
        if (failed and not inside) or (tag == "ROLLBACK" and not found & MANY):
            return None
        exact = bool(wrote & WRITES) and not (failed or inside or tag.endswith(" 0"))
        return self._ask(exact=exact)

    def _hidden(self) -> Asking[None] | None:
        """What is left to ask after a read that commits on its own: a view may have written."""
        names, read = self.shim.hidden, self._read.lower()
        if not read or (names is not None and not any(name in read for name in names)):
            return None
        return None if scope_in() is None else self._ask_hidden(read)

    def _ask_hidden(self, read: str) -> Asking[None]:
        try:
            names = yield from self.shim.ask_hidden()
        except Refused:
            names = frozenset([""])
        if any(name in read for name in names):
            yield from self._ask(exact=False)

    def _ask(self, *, exact: bool) -> Asking[None]:
        try:
            row = (yield SAMPLE)[0]
            flushed = row["synchronous"] != "off"
            yield from self.shim.sampled(row, exact=exact, flushed=flushed)
        except (Refused, LsnError) as error:
            self.shim.unsampled(str(error))

    def _sampled(self, commit: Commit) -> Asking[None]:
        if commit.sample is None:
            yield from self._ask(exact=True)
            return
        try:
            yield from self.shim.sampled(commit.sample, exact=True, flushed=commit.flushed)
        except (Refused, LsnError) as error:
            self.shim.unsampled(str(error))


def commit_of(rows: Rows) -> Commit:
    """What the answer to `BEFORE_COMMIT` says of the commit after it."""
    return Commit(rows[0]["xid"] is not None, rows[0]["synchronous"] != "off")
