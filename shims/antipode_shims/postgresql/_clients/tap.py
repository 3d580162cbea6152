"""What is known of one connection, in one file: reads are judged by the state that writes change.

Its transaction, its snapshot, what is in flight. Pure: notified of statements before they are sent
and of how the session stands after them, it decides whether a read may be made and whether a
position is asked for. The state of the transaction is the server's own word, of the packet that
ends each reply.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from antipode import Lineage, StaleSnapshot, Status, WriteId
from antipode.shim import (
    Observation,
    StaleRead,
    Verdict,
    count,
    floor,
    log_once,
    own_time,
    record_uncommitted,
    scope_in,
)
from antipode_shims._sql.own_logs import changes_rows
from antipode_shims._sql.promises import Records
from antipode_shims._sql.texts import LONGEST
from antipode_shims.postgresql._elsewhere import TARGETS, sends_by_dblink
from antipode_shims.postgresql._look import (
    BEFORE_COMMIT,
    BEFORE_TEMPORARY,
    ISOLATION,
    SAMPLE,
    SEES_LOCKS,
    UNREAD,
    Refused,
    observation,
)
from antipode_shims.postgresql._position import LsnError
from antipode_shims.postgresql._promises import records
from antipode_shims.postgresql._shim.covered import CommittedBefore
from antipode_shims.postgresql._statements import (
    ANYTHING,
    BEGINS,
    CALLS,
    COMMITS,
    COMMITS_INSIDE,
    DECLARES,
    ENDS,
    FETCHES,
    HOLDS,
    IMPORTS,
    ISOLATES,
    MANY,
    READS,
    SENDS,
    TWO_PHASES,
    WRITES,
    unknown_functions,
)

from .known import MOST, NOTHING, Cursors, Known
from .temporary import HEAD, Temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode.shim import Floor, Places
    from antipode_shims.postgresql._look import Asking, Backend
    from antipode_shims.postgresql._position import Rows
    from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

#: How long what a poll showed is remembered: behind a pooler another server may answer next.
FRESH_S = 2.0
_PREPARED = "it is prepared for anybody to commit"
#: Of what a transaction consists that writes nothing, where what it reads and calls does not.
_READING = READS | CALLS | BEGINS | COMMITS | ENDS | ISOLATES
_ISOLATED = ("read committed", "read uncommitted")
#: For how long a connection that may not see the catalogue does not ask it again.
LEARNS_S = 60.0
#: How many texts of a transaction are remembered.
_MOST_READS = 64
#: How statements begin that may change what names mean, and how those of a script do.
_SCHEMA = ("CREATE", "ALTER ")
_SCRIPT = re.compile(r"\b(?:CREATE|ALTER)\b", re.IGNORECASE)


class Session(Enum):
    """How a session stands between two commands."""

    IDLE = "idle"
    OPEN = "open"
    #: In a transaction that failed and can only be rolled back.
    FAILED = "failed"
    #: Replies are still to come.
    BUSY = "busy"
    LOST = "lost"


class Read(Exception):  # noqa: N818 - an answer
    """The open transaction may have its snapshot already."""


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
        cursors: of the server, that are open.
        stale_read: counts a read once it is answered, if it may be stale.
        before_commit: what is asked before the open transaction is committed.
        reads_by: the name of the cursor that is declared or read now; empty where only the text
            names it.
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
        self.reads_by = ""
        self._before = Session.IDLE
        self._transaction = ANYTHING
        self._alone = True
        self._before_open: CommittedBefore | None = None
        #: Texts that only read, with what they do by their words: the catalogue has the last word.
        self._reads: dict[str, int] = {}
        self._room = _MOST_READS
        self._defines = False
        #: When the catalogue is asked next for what commits of reads would ask, at the earliest.
        self._learns_s = 0.0
        #: The tables that the transaction changed, and whether any rows of them.
        self._targets: frozenset[str] = frozenset()
        self._changed = False
        self._temporary = Temporary()
        self.before_commit = BEFORE_COMMIT
        self._known, self._known_s = NOTHING, 0.0
        self._sent = NOTHING
        self._server = ""
        self._shown = NOTHING
        self.cursors = Cursors()

    @own_time
    def starts(
        self, sql: str | None, session: Session, *, opens: bool, piped: bool = False
    ) -> tuple[int, Floor | None]:
        """What a statement may do, and what it has to wait for; None for a text nobody can read.

        Args:
            sql: its text.
            session: how the session stands before it.
            opens: whether the client begins a transaction before it.
            piped: whether others are in flight.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        if self.stale_read.served is not None:
            self.stale_read.answered()  # In a pipeline: nobody has heard of its failure.
        found = ANYTHING if sql is None else self.shim.meanings[sql]
        if found == ANYTHING | MANY and ";" in (sql or ""):
            found |= COMMITS | ENDS  # For all that can be read.
        if found & (CALLS | WRITES) and sql and "dblink" in sql.lower():
            found |= self._linked(sql)
        self._begin(found, session, sql or "", piped=piped)
        if found & CALLS and session is not Session.IDLE:
            self._warn({sql or "": found})  # Nobody will ask what they are.
        if found & WRITES:
            self._note_write(sql or "", found)
        if session is Session.FAILED and not (found & MANY and found & ENDS):
            return found, None  # It is refused, whatever it shows.
        if found & READS:
            changes = bool(found & WRITES) and changes_rows(sql or "")
            return found, floor(self.shim, changes=changes, who=self, stale=self.stale_read)
        if session is Session.IDLE and (opens or found & BEGINS):
            return found, floor(self.shim, reads=False, stale=self.stale_read)
        return found, None

    def _begin(self, found: int, session: Session, sql: str, *, piped: bool = False) -> None:
        self._alone = not (self.pending or piped)
        if not self.pending and session is Session.IDLE:
            self._targets, self._changed = frozenset(), False
            self._temporary.others = self._temporary.alone = False
            self.before_commit = BEFORE_COMMIT
        if not self.pending:
            self._before = session
            self.commit = None
            if session is Session.IDLE:
                self._reads = {}
            if not self._reads:
                self._room = _MOST_READS
            self._sent = NOTHING if self._known is NOTHING else self._fresh
        elif self.pending & ENDS:
            self.pending |= COMMITS_INSIDE  # In a pipeline: it holds, though what follows may fail.
        if found & (READS | WRITES | FETCHES) == READS:
            if sql not in self._reads:
                self._room -= 1
                if self._room >= 0:
                    self._reads[sql] = found
        elif found & WRITES and (
            sql.lstrip()[:6].upper() in _SCHEMA
            or (found & (MANY | COMMITS_INSIDE) and _may_define(sql))
        ):
            self._defines = True
            self.shim.catalogue.forget()
        self.pending |= found

    def _note_write(self, sql: str, found: int) -> None:
        """Note what *sql* changes."""
        temporary, head = self._temporary, sql[:HEAD]
        if temporary.names or "TEMP" in head or "temp" in head:
            temporary.note(sql, found)
            is_temporary = temporary.alone and self.shim.sees_locks
            self.before_commit = BEFORE_TEMPORARY if is_temporary else BEFORE_COMMIT
        else:
            temporary.others, temporary.alone = True, False
            self.before_commit = BEFORE_COMMIT
        if len(self._targets) < MOST:
            self._targets |= TARGETS[sql]

    def parses(self, sql: str, session: Session) -> Floor | None:
        """What a statement that is only parsed must see; None unless that may take a snapshot.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        if session is Session.FAILED or not self.shim.meanings[sql] & READS:
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
        if command.startswith("CLOSE "):
            self.cursors.close(command[6:].strip('"').replace('""', '"'))
        self._begin(self.shim.meanings[command], session, command)

    def _linked(self, sql: str) -> int:
        """Whether a statement that names dblink sends by it what may write."""
        called = unknown_functions(sql, self.shim.readonly_functions)
        return SENDS if sends_by_dblink(sql, called) else 0

    def _called(self, reads: Mapping[str, int]) -> frozenset[str]:
        """Functions that *reads* call, and that may write for all that their texts tell."""
        readonly = self.shim.readonly_functions
        return frozenset[str]().union(
            *(unknown_functions(sql, readonly) for sql, found in reads.items() if found & CALLS)
        )

    def _warn(self, reads: Mapping[str, int]) -> None:
        """Say once of a function in *reads* that it may write, for all that is known."""
        may_write = self.shim.catalogue.calls
        names = [name for name in sorted(self._called(reads)) if may_write(name) is not False]
        for name in names[:1]:
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
        if older := self._older(found):
            return Verdict.PASS if all(each.covers(held) for each in older) else Verdict.STALE
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
        return Verdict.STALE if piped or session is Session.FAILED else Verdict.HOLD

    def _older(self, found: int) -> list[Known]:
        """What snapshots show from which a statement reads that were taken before it."""
        if found & READS and self.pending & IMPORTS:
            return [NOTHING]
        return self.cursors.shown_by(self.reads_by) if found & FETCHES else []

    def commits_open(self, session: Session) -> bool:
        """Whether what is in flight is one statement that commits what may have written."""
        alone = self.pending & COMMITS and not self.pending & MANY
        return bool(alone) and session is Session.OPEN and not self.only_read

    @property
    def commits_alone(self) -> bool:
        """Whether what is in flight is one write that is its own transaction."""
        found = self.pending
        alone = self._alone and self._before is Session.IDLE
        return bool(alone and found & WRITES and not found & ~(READS | WRITES))

    @property
    def only_read(self) -> bool:
        """Whether all that the open transaction has sent reads, and is known to write nothing."""
        return not (self._transaction | self.pending) & ~_READING and not self._may_write

    @property
    def _may_write(self) -> bool:
        """Whether what only reads by its words may write, or nobody knows."""
        return self._named(self._reads) is not False

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

    def look(
        self, held: Floor, backend: int | None, session: Callable[[], Session] | None = None
    ) -> Asking[Observation]:
        """Poll once, on the connection that reads, for what *held* demands.

        Args:
            held: what the read must see.
            backend: the number of the connection's process, as its handshake had it; None where
                another connection is asked.
            session: how that connection stands; None where it is the library's own.

        Raises:
            ConfigurationError: another server may be read.
            Refused: the question failed the application's transaction, or its session has ended.
        """
        try:
            state = yield from self.shim.look()
        except (Refused, LsnError) as error:
            if isinstance(error, Refused) and session and session() is not Session.IDLE:
                raise
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
        if len(positions) > MOST or len(promises) > MOST:
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

    def unsent(self) -> None:
        """The client ended its call before it sent more than a BEGIN."""
        self.pending &= BEGINS

    def ended(self, error: BaseException | None, *, busy: bool = False) -> None:
        """A call is over: count it if it was answered stale, unless it failed or is *busy*."""
        if error is not None:
            self.stale_read.failed()
        elif self.stale_read.served is not None and not busy:
            self.stale_read.answered()

    def lost(self) -> None:
        """The connection was lost, or its call was given up, before all replies came."""
        found, self.pending = self.pending, 0
        if found & SENDS:
            self._sent_away()
        wrote = found | (self._transaction if self._before is not Session.IDLE else 0)
        if self._reads and (named := self._named(self._reads)) is not None:
            wrote = wrote | CALLS if named else wrote & ~CALLS
        if self._before is Session.IDLE:
            doubtful = not found & BEGINS or bool(found & COMMITS)
        else:
            doubtful = bool(found & COMMITS or (found & ENDS and found & MANY))
        doubtful = doubtful and bool(wrote & (WRITES | CALLS))
        doubtful = doubtful or bool(found & COMMITS_INSIDE)
        if self.commit is not None:
            doubtful = self.commit.wrote
        doubtful = doubtful or bool(found & CALLS and self.shim.writes_away is not False)
        self.closed()
        if doubtful:
            self.shim.in_doubt("its connection was lost, or its call given up, before the reply")

    def closed(self) -> None:
        """The session is over: its open transaction, if any, will be rolled back."""
        record_uncommitted(self.shim, self, wrote=False)
        self._known = self._sent = self._shown = NOTHING
        self.cursors = Cursors()
        self._before_open = None  # Nobody will ask.
        self._server, self._transaction, self.pending = "", 0, 0
        self._reads = {}
        if self._defines:
            self._forget()

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
        if found & SENDS:
            self._sent_away()
        self._changed = self._changed or bool(found & WRITES and tag and not tag.endswith(" 0"))
        before, done = self._before, self._transaction
        self._before = session
        if session is Session.OPEN or session is Session.FAILED:
            if before is Session.IDLE:
                done, self._shown = 0, self._sent
            self._left_open(found, done, standby=standby)
            chained = self._alone and not (failed or found & MANY) and before is Session.OPEN
            chained = chained and bool(found & COMMITS and found & BEGINS)
            self._transaction = (0 if chained else done) | found
            if chained:
                self._shown = NOTHING
                self.cursors.end_transaction()
            elif found & IMPORTS:
                self._shown = NOTHING
                self._transaction |= READS  # It has its snapshot.
            elif found & (DECLARES | CALLS):
                self._note_cursors(found)
            wrote = bool(self._transaction & WRITES) and not chained
            record_uncommitted(self.shim, self, wrote=wrote)
            if not chained:
                answers = session is Session.OPEN and not failed
                called = found & CALLS and not standby
                return self._committed_away(answers=answers) if called else None
        else:
            self._end_transaction(found, before)
        if standby:
            return None
        steps = self._committed(before, found, done, failed=failed, tag=tag)
        return steps if self._before_open is None else self._settle_before(steps)

    def _end_transaction(self, found: int, before: Session) -> None:
        self._transaction, self._shown = 0, NOTHING
        if found & HOLDS:
            self.cursors.declare(self.reads_by, self._sent, holds=True)
        if self.cursors.some:
            self.cursors.end_transaction()
        if before is not Session.IDLE:
            record_uncommitted(self.shim, self, wrote=False)

    def _note_cursors(self, found: int) -> None:
        """Note what the cursors show that *found* may have opened."""
        if found & DECLARES:
            self.cursors.declare(self.reads_by, self._shown, holds=bool(found & HOLDS))
        if found & CALLS:
            self.cursors.open(self._shown)

    def _left_open(self, found: int, done: int, *, standby: bool) -> None:
        """Put off what may have committed before the transaction began that is open now.

        Whatever is asked in that would take its snapshot: it is asked after its end.
        """
        several = found & MANY or not self._alone
        wrote = (found | done) & (WRITES | CALLS)
        if standby or not (several and (wrote or found & COMMITS)):
            return
        if wrote and found & TWO_PHASES:
            self.shim.in_doubt(_PREPARED)
        if found & COMMITS and (wrote or self._named(self._reads) is not False):
            if self._before_open is None:
                self._before_open = CommittedBefore(self.shim.datastore)
            self._before_open.away = False
            self.shim.defer(self._before_open)

    def _settle_before(self, steps: Asking[None] | None) -> Asking[None]:
        """The transaction is over that a text left open: ask for what that committed before."""
        if steps is not None:
            yield from steps
        before, self._before_open = self._before_open, None
        if before is None:
            return
        try:
            if before.away and not (yield from self.shim.ask_elsewhere()).by_functions:
                before.settle(Lineage())
                return
            found = yield from self.shim.found((yield SAMPLE)[0], exact=False, flushed=False)
        except (Refused, LsnError) as error:
            self.shim.say_unsampled(str(error))
            before.settle(Lineage(incomplete=[(self.shim.datastore, "unsampled")]))
        else:
            before.settle(Lineage([found]) if isinstance(found, WriteId) else found)

    def _committed(
        self, before: Session, found: int, done: int, *, failed: bool, tag: str
    ) -> Asking[None] | None:
        """What is left to ask of what the flight *found*, after *done*, has committed."""
        if self._defines:
            self._forget()
        wrote = found | (done if before is Session.OPEN else 0)
        reads, self._reads = self._reads, {}
        if self.commit is not None:
            commit, self.commit = self.commit, None
            if commit.wrote:
                return self._sampled(commit)
            if wrote & WRITES and self._temporary.alone:
                wrote |= CALLS  # Without an id nothing shows what triggers may have sent away.
            return self._without_id(wrote) or self._learn(reads)
        inside = found & (COMMITS_INSIDE | MANY)
        over = before is not Session.OPEN or found & (COMMITS | TWO_PHASES) or inside
        undone = (failed or before is Session.FAILED) and not inside
        if undone or not over or (tag == "ROLLBACK" and not found & MANY):
            called = found | (0 if before is Session.IDLE else done)
            return self._without_id(called & CALLS)  # What others commit stays.
        prepared = bool(found & TWO_PHASES) and not failed
        if not wrote & WRITES:
            return self._read_alone(reads, calls=bool(wrote & CALLS), prepared=prepared)
        if prepared:
            self.shim.in_doubt(_PREPARED)
            return None
        plain = self._alone and before is Session.IDLE and not (inside or found & CALLS)
        return self._ask(exact=not (failed or inside or tag.endswith(" 0")), covers=not plain)

    def _learn(self, reads: Mapping[str, int]) -> Asking[None] | None:
        """What is left to ask, now and then, so that the next commit of such *reads* asks nothing.

        Whoever may not see the catalogue asks each commit instead.
        """
        now_s = time.monotonic()
        if scope_in() is None or now_s < self._learns_s or self._named(reads) is not None:
            return None
        self._learns_s = now_s + LEARNS_S
        return self._learning(reads)

    def _learning(self, reads: Mapping[str, int]) -> Asking[None]:
        with contextlib.suppress(Refused):
            yield from self.shim.catalogue.ask(self._called(reads))

    def _sent_away(self) -> None:
        """Mark what a function of dblink may have written, whatever became of its call."""
        self.shim.in_doubt(
            "a function of dblink sent it, perhaps to another server. Where such calls only "
            "read, declare them: readonly_functions=['dblink']"
        )

    def _committed_away(self, *, answers: bool) -> Asking[None] | None:
        """What is left to ask of what a function may have committed by dblink.

        Its transaction goes on, and may end in a rollback. One that has failed *answers* nothing.
        """
        if scope_in() is None:
            return None
        if answers:
            return self._ask_called()
        if self.shim.writes_away is not False:
            before = self._before_open or CommittedBefore(self.shim.datastore, away=True)
            self._before_open = before
            self.shim.defer(before)
        return None

    def _ask_called(self) -> Asking[None]:
        try:
            if (yield from self.shim.ask_elsewhere()).by_functions:
                row = (yield SAMPLE)[0]
                yield from self.shim.sampled(row, exact=False, flushed=False)
        except (Refused, LsnError) as error:
            self.shim.unsampled(str(error))

    def _without_id(self, wrote: int) -> Asking[None] | None:
        """What is left to ask where nothing that *wrote* was committed here under an id."""
        if not wrote & (WRITES | CALLS) or scope_in() is None:
            return None
        return self._ask_elsewhere(wrote)

    def _ask_elsewhere(self, wrote: int) -> Asking[None]:
        try:
            elsewhere = yield from self.shim.ask_elsewhere()
            if self._changed and not elsewhere.is_among(self._targets):  # A new one, then.
                elsewhere = yield from self.shim.ask_elsewhere(anew=True)
        except Refused:
            return
        if elsewhere.is_among(self._targets) or (wrote & CALLS and elsewhere.by_functions):
            yield from self._ask(exact=False, covers=True)

    def _read_alone(
        self, reads: Mapping[str, int], *, calls: bool, prepared: bool
    ) -> Asking[None] | None:
        """What is left to ask of *reads*, which only read by their words and are committed."""
        named = self._named(reads)
        if named is False:
            return None
        if prepared:  # psycopg2 sends nothing now.
            if named or calls:
                self.shim.in_doubt(_PREPARED)
            return None
        return self._ask_read(reads) if calls or scope_in() is not None else None

    def _forget(self) -> None:
        """A transaction is over that has changed the schema, and others see it from now on."""
        self._defines = False
        self.shim.catalogue.forget()

    def _named(self, reads: Mapping[str, int]) -> bool | None:
        """Whether *reads*, which only read by their words, may write; None where it is unknown."""
        may_write, readonly = self.shim.catalogue.may_write, self.shim.readonly_functions
        named: bool | None = False if self._room >= 0 else None
        for sql, found in reads.items():
            known = may_write(sql, unknown_functions(sql, readonly) if found & CALLS else ())
            if known:
                return True
            named = named if known is False else None
        return named

    def _ask_read(self, reads: Mapping[str, int]) -> Asking[None]:
        """Ask whether *reads* may have written, where that is unknown, and for a position."""
        if self._named(reads) is None:
            with contextlib.suppress(Refused):  # Else it may, for all that is known.
                yield from self.shim.catalogue.ask(self._called(reads))
            if self._named(reads) is False:
                return
        self._warn(reads)
        yield from self._ask(exact=False, covers=True)

    def _ask(self, *, exact: bool, covers: bool = False) -> Asking[None]:
        """Ask for the position of what was committed.

        Args:
            exact: whether there was a write.
            covers: whether the text does not show what its commit waited for: a function, or
                another statement, may have set ``synchronous_commit`` for its transaction alone.
        """
        try:
            row = (yield SAMPLE)[0]
            flushed = not covers and row["synchronous"] != "off"
            yield from self.shim.sampled(row, exact=exact, flushed=flushed)
            yield from self._ask_away()
        except (Refused, LsnError) as error:
            self.shim.unsampled(str(error))

    def _ask_away(self) -> Asking[None]:
        """Mark what was written at another server, through a foreign table."""
        if not self._targets:
            return
        try:
            elsewhere = yield from self.shim.ask_elsewhere()
        except Refused:  # Who sees no foreign table changes none.
            return
        if elsewhere.writes_away(self._targets):
            self.shim.in_doubt("it was written at another server, through a foreign table")

    def _sampled(self, commit: Commit) -> Asking[None]:
        if commit.sample is None:
            yield from self._ask(exact=True, covers=not commit.flushed)
        else:
            try:
                sample, flushed = commit.sample, commit.flushed
                yield from self.shim.sampled(sample, exact=True, flushed=flushed)
                yield from self._ask_away()
            except (Refused, LsnError) as error:
                self.shim.unsampled(str(error))
        if self._temporary.alone and self.shim.sees_locks is None:
            with contextlib.suppress(Refused):
                self.shim.sees_locks = (yield SEES_LOCKS)[0]["may"] == "t"


def _may_define(sql: str) -> bool:
    """Whether a script may change what names mean; a long one is not read."""
    return len(sql) > LONGEST or _SCRIPT.search(sql) is not None


def commit_of(rows: Rows) -> Commit:
    """What the answer to :attr:`Tap.before_commit` says of the commit after it."""
    return Commit(rows[0]["xid"] is not None, rows[0]["synchronous"] != "off")
