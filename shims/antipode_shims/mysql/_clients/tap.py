"""What an instrumented connection remembers in addition to its client: which packets a reply has.

No I/O: the sync and asyncio connections hand it the packets that they read.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, StaleSnapshot, Status, scope
from antipode.shim import (
    StaleRead,
    count,
    defer_read,
    floor,
    log_once,
    mark_incomplete,
    own_time,
    record_uncommitted,
    record_write,
    scope_in,
)
from antipode_shims._sql.own_logs import changes_rows
from antipode_shims._sql.texts import LONGEST
from antipode_shims.mysql._functions import OWN, SEQUENCES, called
from antipode_shims.mysql._position.flavor import (
    COVER,
    SEVERAL_SERVERS,
    UNNUMBERED,
    Ask,
    Facts,
    Flavor,
    Refused,
    numbers,
    text,
)
from antipode_shims.mysql._position.ok_packet import (
    AUTOCOMMIT,
    MORE_RESULTS,
    STATE_CHANGED,
    eof_status,
    is_eof,
    is_ok,
    parse_ok,
)
from antipode_shims.mysql._position.states import is_on
from antipode_shims.mysql._statements import (
    ASSIGNS,
    CALLS,
    DDL,
    LOCKS,
    NESTS,
    OPENS,
    READS,
    RESETS,
    TEMPORARY,
    WRITES,
    meaning,
    reads,
    target,
    temporary,
)

from .cover import Cover, Gate
from .session import OPEN_OR_NOT, Due, Session
from .views import ANYTHING, Views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from antipode import WriteId
    from antipode.shim import Floor, Observation, Places
    from antipode_shims.mysql._position.flavor import Asking, Rows
    from antipode_shims.mysql._shim.base import BaseMySQLShim

#: The longest that a connection that reads blocks on its server at once, in seconds.
SLICE_S = 1.0

#: Who answers a sample, and whether it can have committed a write.
_WHO = ", @@server_id AS server_id, @@GLOBAL.read_only AS read_only"
#: What a write without a position is found by, on its own connection, after its commit.
SAMPLE = {
    Flavor.MYSQL: COVER[Flavor.MYSQL] + _WHO,
    Flavor.MARIADB: "SELECT @@SESSION.last_gtid AS gtid" + _WHO,
}
#: The isolation of the session.
ISOLATION = {
    Flavor.MYSQL: "SELECT @@SESSION.transaction_isolation AS level",
    Flavor.MARIADB: "SELECT @@SESSION.tx_isolation AS level",
}

#: The error of MySQL where tracking is turned on within a transaction.
_WITHIN_TRANSACTION = 1766
_PERHAPS = frozenset({Due.PERHAPS, Due.INSIDE})
_ASKED = _PERHAPS | {Due.SAMPLE, Due.CHECK}
_NOTHING, _UNCOVERED = Due.NOTHING, Due.UNCOVERED
#: A statement with the first of these alone is asked for views that write.
READS_OR_WRITES = READS | WRITES
_FIRST = 1
#: Where its columns come.
COLUMNS = 2
#: Where a reply's rows come.
ROWS = 3
_LOCAL_FILE = 0xFB
#: The first byte of the packet after them.
EOF = 0xFE


class Unread:
    """A reply that was not read to its end: nobody knows yet what its command committed."""

    def __init__(self, datastore: str) -> None:
        """In doubt until it is read."""
        self._datastore = datastore
        self._writes: tuple[WriteId, ...] = ()
        self._ended = False

    def __call__(self) -> Lineage:
        """What goes into a lineage that is used now: the positions that came, or a mark."""
        if self._ended:
            return Lineage(self._writes)
        count("incomplete", self._datastore)
        log_once(
            "mysql_unread",
            self._datastore,
            "",
            "a lineage was used before the reply of a write to %r was read to its end, and is "
            "incomplete (in_doubt): read all rows and results first, or close the cursor",
            self._datastore,
        )
        return Lineage(incomplete=[(self._datastore, "in_doubt")])

    def wrote(self, writes: Iterable[WriteId]) -> None:
        """A part of the reply reported *writes*."""
        self._writes = (*self._writes, *writes)

    def read(self) -> None:
        """The reply was read to its end."""
        self._ended = True


class Tap:
    """One instrumented connection's side.

    Attributes:
        shim: whose positions its writes record and whose floors its reads satisfy.
        session: what is known of the server's session; new after each handshake.
        facts: about the server behind it; None until asked.
        ready: whether that was asked, and positions are tracked, in this session.
        state: which packet of a reply comes next; 0 outside the application's replies.
        own: whether the library itself is asking.
        due: what the end of a reply left to do.
        ended: whether the server had closed the connection before the command was sent.
        gate: keeps others out while the application uses the connection.
        peer: asks the kernel about the server's end; None where it does not say.
        more: whether more results of a command that may commit a write come with the reply.
        reading_ahead: whether these are being read before the application comes to them.
        until_s: when a question of the library's own is given up, on the monotonic clock, while a
            floor holds a read back; None otherwise: as the client is set up.
        ahead: what of a reply was read before the application came to it: packets, and the error
            that it ends with.
        places: of the connection's pool; None where it has none that is known.
        stale_read: counts a read once it is answered, if it may be stale.
        views: that statements read, where a reply with rows shows no position; else None.
    """

    __slots__ = (
        "__weakref__",
        "_assigns",
        "_error",
        "_foreign",
        "_inside",
        "_last_gtid",
        "_left",
        "_status",
        "_temporary",
        "_told",
        "_unread",
        "ahead",
        "due",
        "ended",
        "facts",
        "gate",
        "more",
        "own",
        "peer",
        "places",
        "reading_ahead",
        "ready",
        "session",
        "shim",
        "stale_read",
        "state",
        "until_s",
        "views",
    )

    def __init__(
        self,
        shim: BaseMySQLShim,
        *,
        status: int,
        tracked: bool,
        told: bool = True,
    ) -> None:
        """Ride along on a connection that may be open already."""
        self.shim = shim
        self.own = False
        self.stale_read = StaleRead()
        self.until_s: float | None = None
        self.places: Places | None = None
        self._told = told
        self._inside: Cover | None = None
        self.gate = Gate()
        self.connected(status=status, tracked=tracked)

    def connected(self, *, status: int, tracked: bool) -> None:
        """The connection went through a handshake; its session starts again."""
        self.closed()
        self.session = Session(status=status, tracked=tracked, told=self._told)
        self.renewed()
        self.views = None if tracked else Views()
        self.facts: Facts | None = None
        self.ready = False
        self.state = 0
        self.due = Due.NOTHING
        self.ended = False
        self.peer: Callable[..., bytes] | None = None
        self.more = self.reading_ahead = False
        self.ahead: deque[Any] = deque()
        self._unread: Unread | None = None
        self._temporary: set[bytes] = set()
        self._error: BaseException | None = None
        self._last_gtid = ""
        self._status: int | None = None
        self._left = False
        self._foreign = ""
        self._assigns = False

    def renewed(self) -> None:
        """The session starts again: what a kind of tap set there is gone."""

    def given_back(self) -> None:
        """The application gives the connection back to its pool."""

    def preparing(self, accepted: Callable[[], int]) -> Asking[None]:
        """Find out about the server, and turn tracking on.

        What is wrong with the server is raised by a read that has to wait there, and by nothing
        else: until then it is logged, and writes are marked.

        Args:
            accepted: has the connection's number in its handshake.
        """
        self.ready = True
        try:
            facts = yield from self.shim.detect()
            if self._foreign and not facts.owns(self._foreign):
                facts = facts.with_problem(SEVERAL_SERVERS)
            if facts.track and self.session.tracked and not facts.problems:
                yield from self._track(facts)
        except Refused as error:
            facts = Facts(Flavor.MYSQL, "", problems=(str(error),))
            self.ready = not error.passing
        self.facts = facts
        self.shim.problems = facts.problems
        if facts.session is not None:
            self.shim.reached(facts, accepted())
        self.session.reaches(facts.server)
        self.session.may_stop = facts.flavor is Flavor.MYSQL
        if self.session.tracked and not facts.problems and facts.flavor is Flavor.MYSQL:
            self.views = Views(self.shim.views_of(facts.server))
        if facts.problems:
            self._warn(facts.lacking)
        elif self._told and not self.session.tracked:  # mysqlclient has no choice.
            log_once(
                "mysql_untracked",
                self.shim.datastore,
                "session_track",
                "a connection to %r gets no positions with its replies, as it was opened before it "
                "was instrumented: each commit costs a round trip more",
                self.shim.datastore,
            )

    def _track(self, facts: Facts) -> Asking[None]:
        try:
            yield Ask(facts.track)
        except Refused as error:
            if error.number != _WITHIN_TRANSACTION:
                raise
            self.ready = False  # One was open before the library came: the next statement asks.

    def _warn(self, lacking: tuple[str, ...]) -> None:
        """Say once what a server lacks: this is no statement's error."""
        log_once(
            "mysql_configuration",
            self.shim.datastore,
            self.shim.settings.where,
            "writes through a connection to %r have no positions: %s",
            self.shim.datastore,
            "; ".join(lacking),
        )

    def hides(self, found: int) -> bool:
        """Whether what a request's statement writes by a view may show in no reply.

        That of a transaction may show at its end, and that of one without rows at once.
        """
        views = self.views
        if views is None or time.monotonic() < views.listing.calm_until_s:
            return False
        autonomous = self.session.status & OPEN_OR_NOT == AUTOCOMMIT
        if views.listing is not ANYTHING and (found & TEMPORARY or not autonomous):
            return False
        return scope_in() is not None

    def viewing(self, sql: bytes | bytearray | str, found: int) -> Asking[int]:
        """Ask whether what a statement reads is a view that may write; what it may do."""
        if (views := self.views) is None:
            return found
        sql = sql.encode("utf-8", "replace") if isinstance(sql, str) else bytes(sql)
        if names := views.unknown(sql):
            yield from views.asking(names, self.known().flavor, self.shim.readonly_functions)
        return found | WRITES | CALLS if views.may_write(sql) else found

    @own_time
    def starts(self, sql: bytes | bytearray | str) -> tuple[int, Floor | None]:
        """What a statement may do, and what it has to wait for.

        Raises:
            ConfigurationError: it has to wait, and the server has no positions, or another one may
                be read.
        """
        self.stale_read.failed()
        if sql[LONGEST : LONGEST + 1]:
            sql = sql[: LONGEST + 1]
        if type(sql) is not bytes:
            sql = sql.encode("utf-8", "replace") if isinstance(sql, str) else bytes(sql)
        found = meaning(sql)
        if found & TEMPORARY or found & DDL == DDL:
            self._defines(sql, found)
        if found & RESETS:
            self.ready = False  # Asked for again after it.
        if found & ASSIGNS:
            self._assigns = True
        if found & CALLS:
            found = self._calling(sql, found)
        if found & READS:
            changes = bool(found & WRITES) and changes_rows(sql)
            held = floor(self.shim, changes=changes, who=self, stale=self.stale_read)
        elif found & (NESTS | OPENS):
            found, held = self._first(sql, found)
        else:
            return found, None
        if held is not None:
            self.shim.require(self.known())
        return found, held

    def _defines(self, sql: bytes, found: int) -> None:
        """Take in that names may stand for others."""
        if found & TEMPORARY or self._temporary:
            # After others than CREATE, a name may stand for a table of everybody's.
            name = temporary(sql)
            self._temporary = {*self._temporary, name} if name else set()
        if self.views is not None:
            self.views.forget(made=found & DDL == DDL)

    def _calling(self, sql: bytes, found: int) -> int:
        """The same for what calls functions: one that is not known may write."""
        names = called(sql[:LONGEST]) - OWN[self.known().flavor] - self.shim.readonly_functions
        if not names:
            return found & ~CALLS
        if unknown := names - SEQUENCES:
            datastore, name = self.shim.datastore, min(unknown).decode("utf-8", "replace")
            count("unknown_function", datastore)
            log_once(
                "mysql_unknown_function",
                datastore,
                name,
                "a statement to %r calls %s(), which may write: whether it did is asked after it. "
                "Where it only reads, declare it: readonly_functions=[%r]",
                datastore,
                name,
                name,
            )
        return found | WRITES

    def _first(self, sql: bytes, found: int) -> tuple[int, Floor | None]:
        """The same for what waits where it reads besides, or may take a transaction's snapshot."""
        fresh = self.session.fresh
        if not found & NESTS:
            if self.known().flavor is Flavor.MARIADB:
                return found & ~OPENS, None  # It shows its tables without reading any.
            return found, floor(self.shim, reads=False, stale=self.stale_read) if fresh else None
        if self._temporary and self.session.tracked and target(sql) in self._temporary:
            found &= ~WRITES  # What it writes nobody else sees, and no log replicates.
        held = floor(self.shim, reads=False, stale=self.stale_read)
        # A text is searched where that shows something alone.
        if self.session.unread or held is not None:
            how = reads(sql, found)
            if how:
                return found | OPENS | (how & LOCKS), held
        return found, held if fresh else None

    def other(self, *, moves: bool = True) -> None:
        """A command that is no statement is about to be sent.

        Args:
            moves: whether names may stand for others after it.
        """
        if moves:
            self.moved()
        self.stale_read.failed()
        self._temporary = set()
        self.session.starts(0)

    def moved(self) -> None:
        """Another schema is the default, or may be."""
        if self.views is not None:
            self.views.forget(made=False)

    def reset(self) -> None:
        """A command gave the connection a new session."""
        tracked = self.session.tracked
        self.closed()
        self.session = Session(status=AUTOCOMMIT, tracked=tracked, told=self._told)
        self.renewed()
        self.ready = False
        self._temporary = set()

    def sent(self) -> None:
        """A command is sent; its reply is next."""
        self.state = _FIRST

    def asked(self, data: bytes) -> None:
        """A packet outside the application's replies: of the library's own, or of a handshake."""
        if self.own and is_eof(data):
            self._status = eof_status(data)
        elif self.own and is_ok(data):
            self._left = bool(parse_ok(data, tracked=False).status & STATE_CHANGED)

    def answered(self) -> None:
        """A question of the library's own was answered: its last packet says what is open.

        The one before the rows does not: MariaDB may send it within a transaction of its own.
        """
        if self._status is not None:
            self.session.heard(self._status)
            self._status = None

    def packet(self, data: bytes) -> bytes | None:
        """A packet of a reply; what the client should see in its place, if anything."""
        state = self.state
        if state == _FIRST:
            first = data[0]
            if first == _LOCAL_FILE:  # It is sent first, and answered after it.
                return None
            self.stale_read.answered()
            if not first and is_ok(data):
                return self._ok(data)
            self.state = COLUMNS
        elif is_eof(data):
            if state == COLUMNS:
                self.state = ROWS
                if self.session.doubtful:
                    self.begun()
            elif self.session.read_ended(status := eof_status(data)):
                self.state = 0
            else:
                self.session.rows_ended(status, changed=bool(status & STATE_CHANGED))
                self._result_ended(status)
        return None

    def _ok(self, data: bytes) -> bytes:
        ok = parse_ok(data, tracked=self.session.tracked)
        self.session.replied(ok)
        if ok.torn:
            self.shim.unsampled("its reply could not be read")
        if ok.gtid is not None:
            self._mint(ok.gtid)
        self._result_ended(ok.status)
        return ok.plain

    def _result_ended(self, status: int) -> None:
        if not status & MORE_RESULTS:
            self.finished()
            return
        self.state = _FIRST
        if self.session.doubtful:
            self.more = not self.reading_ahead
            self.begun()

    def begun(self) -> None:
        """The application may see a part of a reply whose command may have committed a write."""
        if self._unread is None:
            self._unread = Unread(self.shim.datastore)
            defer_read(self._unread)

    def over(self) -> None:
        """Nothing of a reply is left to read, and what it committed was recorded. Idempotent."""
        self.more = self.reading_ahead = False
        if self._unread is not None:
            self._unread.read()
            self._unread = None

    @own_time
    def finished(self, *, failed: bool = False, number: int = 0) -> None:
        """The reply came, all of it or all that its client reports."""
        self.state = 0
        due = self.session.ended(failed=failed, number=number)
        if due in _ASKED and (facts := self.known()).lacking:
            inside = due is Due.INSIDE
            due = _UNCOVERED if facts.unminted and not inside else _NOTHING
            self._warn(facts.lacking)
            if not (facts.unminted or inside):
                count("uncovered_write", self.shim.datastore)
                mark_incomplete(self.shim.datastore, "unsampled")
        self.due = due
        if not self.asks:
            self.over()
        record_uncommitted(self.shim, self, wrote=self.session.uncommitted)
        if due is _UNCOVERED:
            self.due = _NOTHING
            self._uncovered(
                "it is prepared for anybody to commit, or it is not logged with a number"
            )

    @property
    def asks(self) -> bool:
        """Whether the end of a reply left a question to ask: :data:`SAMPLE`."""
        return self.due in _ASKED

    def _uncovered(self, why: str) -> None:
        """A write for which no position will ever stand, nor a later one of the primary."""
        count("uncovered_write", self.shim.datastore)
        mark_incomplete(self.shim.datastore, "in_doubt")
        log_once(
            "mysql_uncovered",
            self.shim.datastore,
            why,
            "a write to %r cannot be waited for, and its lineage is incomplete (in_doubt): %s",
            self.shim.datastore,
            why,
        )

    def failed(self, number: int) -> None:
        """The server answered with an error of this number."""
        if self.state:
            self.finished(failed=True, number=number)

    def lost(self) -> None:
        """The connection was lost before its reply came."""
        self.state = 0
        self.closed()
        if self.session.lost() and not self.ended:
            self._unread = None  # Whoever has it is in doubt for good.
            mark_incomplete(self.shim.datastore, "in_doubt")
        self.over()

    def closed(self) -> None:
        """The session is over: its open transaction, if any, will be rolled back."""
        record_uncommitted(self.shim, self, wrote=False)

    def wrote_inside(self, ask: Callable[[], Lineage]) -> None:
        """Put off what an open transaction may have left in tables without transactions.

        Nothing rolls that back, and no reply of this client has its position. *ask* gives it if
        the lineage is used before the transaction's end.
        """
        if self._inside is None or self._inside.settled:
            self._inside = Cover(self.shim, ask)
        defer_read(self._inside)

    def settle(self, *, ask: bool = True) -> None:
        """Ask for what was put off; or do not, since the transaction's end reported it."""
        inside, self._inside = self._inside, None
        if inside is not None:
            inside() if ask else inside.settle(Lineage())

    def inside(self, ask: Callable[[str], Rows]) -> Lineage:
        """What was put off, by a question that *ask* sends; a mark where it has no answer."""
        facts = self.known()
        if facts.lacking:
            return Lineage()  # The transaction's end marks it.
        try:
            with scope() as own:
                self.sampled(ask(SAMPLE[facts.flavor]), Due.INSIDE)
                return own.lineage
        except Exception as error:  # noqa: BLE001 - whatever it is, the position is not known
            with scope() as own:
                self.shim.unsampled(str(error))
                return own.lineage

    def _mint(self, gtid: str) -> None:
        self._last_gtid = gtid
        if self.session.preparing:
            return
        facts = self.known()
        writes = self.shim.minted(facts.flavor, gtid)
        foreign = next((write.key for write in writes if not facts.owns(write.key)), "")
        if not foreign:
            self.session.minted(writes)
            self.shim.own_logs.update(write.key for write in writes)
        elif not (self._assigns or facts.problems):
            # Another server than the one that said what it is; the next statement asks again.
            self._foreign, self.ready = foreign, False
        self._record(writes)

    def _record(self, writes: Sequence[WriteId]) -> None:
        if self._unread is not None:
            self._unread.wrote(writes)
        try:
            record_write(*writes)
        except ConfigurationError as error:
            self._error = error

    @property
    def hints(self) -> str:
        """What to ask first, where the reply's flags show whether there is a position to ask for.

        MySQL says so of what no reply could show: after an error, and after rows.
        """
        perhaps = self.due in _PERHAPS and self.session.proved
        return "DO 0" if perhaps and self.known().flavor is Flavor.MYSQL else ""

    def hinted(self) -> bool:
        """Whether the reply to :attr:`hints` reported a write; nothing is due where it did not."""
        if not self._left:
            self.due = _NOTHING
        return self._left

    @own_time
    def sampled(self, rows: Rows, due: Due) -> None:
        """Take in the answer to :data:`SAMPLE` after a commit without a position.

        Args:
            rows: the answer.
            due: what was asked for: the position, or whether the server still gives any.
        """
        facts, row = self.known(), rows[0]
        here, idle = text(row["server_id"]) == str(facts.server_id), is_on(row["read_only"])
        if here and idle and self.shim.reads_from == "replica":
            return  # A procedure that reads: a replica took no write.
        if idle or not here:
            self.shim.unsampled("another server answered than the one that committed it")
            return
        if not numbers(facts.flavor, rows):
            if due is not Due.INSIDE:
                self._uncovered(UNNUMBERED)
            return
        if due is Due.CHECK:
            return
        if facts.flavor is Flavor.MARIADB:
            self._sampled(text(row["gtid"]), due)
            return
        found = self.shim.position(facts.flavor, rows)
        own = [write for write in found if facts.owns(write.key)]
        if not own:
            self.shim.unsampled("its server has given none yet")
        self.shim.own_logs.update(write.key for write in own)
        self._record(own)

    def _sampled(self, gtid: str, due: Due) -> None:
        """Take in the session's last GTID on MariaDB."""
        if gtid and gtid != self._last_gtid:
            self._mint(gtid)
        elif not gtid and due not in _PERHAPS:  # Else it has written nothing.
            self.shim.unsampled("its session knows of none")

    @property
    def pending(self) -> bool:
        """Whether the end of a reply left anything to do."""
        return self.due is not _NOTHING or self._error is not None

    def raise_pending(self) -> None:
        """Raise what a finished reply could not; nothing is left to do for that.

        Raises:
            ConfigurationError: a write had no scope, and ``on_unscoped="raise"``.
        """
        if not self.state:
            self.over()
        if self._error is not None and not self.state:
            error, self._error = self._error, None
            raise error

    def stale(self, held: Floor) -> None:
        """End a read from a snapshot that is older than *held*.

        Raises:
            StaleSnapshot: unless *held* lets such reads be answered.
        """
        held.fail_snapshot(
            StaleSnapshot(
                f"this connection to {self.shim.datastore!r} reads from a snapshot that is older "
                "than what the barrier waited for: commit or roll back its transaction before the "
                "read"
            ),
            self.session.shows,
        )

    def block_s(self, held: Floor, longest_s: float, *, first: bool) -> float:
        """How long the server may block during a poll: not before the pool has a place for that.

        Args:
            held: what the read must see.
            longest_s: the longest that it may, in seconds.
            first: whether the read has not polled before.
        """
        return 0.0 if first and self.places is not None else held.block_s(longest_s)

    def known(self) -> Facts:
        """The server behind the connection, known since its first statement."""
        if self.facts is None:
            msg = f"the server of {self.shim.datastore!r} was not asked what it is"
            raise RuntimeError(msg)
        return self.facts

    def shown(self, held: Floor, seen: Sequence[Observation], *, renews: bool) -> None:
        """A hold ended well; the last poll showed what its floor demanded."""
        statuses = seen[-1].statuses if seen else {}
        visible = [write for write, status in statuses.items() if status is Status.VISIBLE]
        self.session.passed(held, visible, renews=renews)
