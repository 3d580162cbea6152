"""One connection's session, told of statements and replies: what is known, due and in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Promise, WriteId
from antipode._runtime.clock import SystemClock
from antipode_shims.mysql._clients.session import Due, Session, Verdict
from antipode_shims.mysql._look import FRESH_S
from antipode_shims.mysql._position.ok_packet import (
    AUTOCOMMIT,
    IN_TRANSACTION,
    MORE_RESULTS,
    STATE_CHANGED,
    Ok,
)
from antipode_shims.mysql._statements import WRITES, meaning
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from antipode.shim import Floor

OPEN = AUTOCOMMIT | IN_TRANSACTION
WRITE = WriteId("notes", "0.1", 7)


class Told:
    """A session to which a server answers as it is told here."""

    def __init__(
        self, status: int = AUTOCOMMIT, *, tracked: bool = True, told: bool = True
    ) -> None:
        self.session = Session(status=status, tracked=tracked, told=told)
        self.session.server = "server"

    def ok(
        self,
        sql: str,
        status: int = AUTOCOMMIT,
        *,
        affected: int = 0,
        gtid: str = "",
        info: str = "",
    ) -> Due:
        """A statement is answered with an OK packet."""
        self.session.starts(meaning(sql.encode()))
        self.session.replied(Ok(status, affected, info.encode(), gtid or None))
        return self.session.ended()

    def rows(self, sql: str, status: int = AUTOCOMMIT, *, changed: bool = False) -> Due:
        """A statement is answered with rows."""
        self.session.starts(meaning(sql.encode()))
        self.session.rows_ended(status, changed=changed)
        return self.session.ended()

    def error(self, sql: str, number: int = 0) -> Due:
        """A statement is answered with an error."""
        self.session.starts(meaning(sql.encode()))
        return self.session.ended(failed=True, number=number)

    def lost(self, sql: str) -> bool:
        """The connection is lost with a statement in flight."""
        self.session.starts(meaning(sql.encode()))
        return self.session.lost()

    def judge(self, floor: Floor, sql: str = "SELECT a FROM t") -> Verdict:
        """What a statement under a floor may do."""
        return self.session.judge(floor, meaning(sql.encode()))


def demand(*writes: WriteId, proved_on: str = "") -> Floor:
    """A floor of these writes."""
    return floor_of("notes", *(writes or [WRITE]), proved_on=proved_on)


def promised(*numbers: int) -> Floor:
    """A floor of promises alone."""
    promises = (Promise("notes", f"{each:032x}", 4_000_000_000) for each in numbers)
    return floor_of("notes", *promises)


def test_a_position_in_the_reply_leaves_nothing_to_do() -> None:
    """Tracked: writes, commits and DDL bring their own."""
    told = Told()
    assert told.ok("INSERT INTO t VALUES (1)", affected=1, gtid="g:1") is Due.NOTHING
    assert told.ok("BEGIN", OPEN) is Due.NOTHING
    assert told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1) is Due.NOTHING
    assert told.ok("COMMIT", gtid="g:2") is Due.NOTHING
    assert told.ok("CREATE TABLE u (a INT)", gtid="g:3") is Due.NOTHING


def test_no_position_is_believed_once_positions_came() -> None:
    """Until the first one, a proxy may be swallowing them: a change without one is asked for."""
    told = Told()
    assert told.ok("UPDATE t SET a = 1", affected=1) is Due.SAMPLE
    assert told.ok("UPDATE t SET a = 1", affected=1, gtid="g:1") is Due.NOTHING
    assert told.ok("UPDATE t SET a = 1", affected=1) is Due.NOTHING
    assert told.ok("UPDATE t SET a = 1", affected=0) is Due.NOTHING


def test_a_position_that_is_missing_is_asked_about() -> None:
    """MySQL can be told to give no numbers; where nothing was changed none was due."""
    told = Told()
    told.session.may_stop = True
    told.ok("INSERT INTO t VALUES (1)", affected=1, gtid="g:1")
    assert told.ok("INSERT INTO t VALUES (1)", affected=1) is Due.CHECK
    assert (
        told.ok("UPDATE t SET a = 1", affected=1, info="Rows matched: 1  Changed: 0") is Due.NOTHING
    )
    assert told.ok("UPDATE t SET a = 1", affected=0) is Due.NOTHING
    assert told.ok("CALL reads()") is Due.NOTHING
    told.ok("BEGIN", OPEN)
    assert told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1) is Due.NOTHING
    assert told.ok("COMMIT") is Due.CHECK
    told.ok("BEGIN", OPEN)
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    assert told.ok("ROLLBACK") is Due.NOTHING
    told.ok("BEGIN", OPEN)
    assert told.ok("COMMIT") is Due.NOTHING


def test_untracked_commits_are_sampled_where_they_wrote() -> None:
    """After an autocommitted write and the COMMIT, and perhaps, after each write before it."""
    told = Told(tracked=False)
    assert told.ok("INSERT INTO t VALUES (1)", affected=1) is Due.SAMPLE
    assert told.ok("UPDATE t SET a = 1", affected=0) is Due.NOTHING
    assert told.rows("SELECT a FROM t") is Due.NOTHING
    assert told.ok("BEGIN", OPEN) is Due.NOTHING
    assert told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1) is Due.INSIDE
    assert told.ok("UPDATE t SET a = 1", OPEN, affected=0) is Due.NOTHING
    assert told.ok("COMMIT") is Due.SAMPLE
    assert told.ok("BEGIN", OPEN) is Due.NOTHING
    assert told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1) is Due.INSIDE
    assert told.ok("ROLLBACK") is Due.NOTHING
    assert told.ok("COMMIT") is Due.NOTHING
    assert told.ok("CALL p()") is Due.SAMPLE


@pytest.mark.parametrize("tracked", [True, False])
def test_an_error_that_commits_is_sampled(tracked: bool) -> None:  # noqa: FBT001 - pytest's
    """Failed DDL commits what was open; a failed INSERT may leave rows where none can go back."""
    told = Told(tracked=tracked)
    told.ok("INSERT INTO t VALUES (1)", affected=1, gtid="g:1" if tracked else "")
    assert told.error("INSERT INTO t VALUES (1)") is Due.PERHAPS
    assert told.error("INSERT INTO t VALUES (1)", 1146) is Due.NOTHING
    told.ok("BEGIN", OPEN)
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    assert told.error("INSERT INTO t VALUES (1)") is Due.INSIDE
    assert told.error("INSERT INTO t VALUES (1)", 1146) is Due.NOTHING
    assert told.error("CREATE TABLE t (a INT)") is Due.SAMPLE
    assert told.error("CALL p()") is Due.SAMPLE


def test_behind_an_error_each_write_may_be_a_transaction() -> None:
    """A deadlock ended the transaction without saying so: the next write is not lost."""
    for told in (Told(tracked=False), Told(tracked=False, told=False)):
        told.ok("BEGIN", OPEN)
        told.error("UPDATE t SET a = 1")
        status = AUTOCOMMIT if told.session._told else OPEN
        assert told.ok("INSERT INTO t VALUES (1)", status, affected=1) is Due.SAMPLE


def test_rows_of_a_write_are_sampled() -> None:
    """RETURNING brings no position; nor does a function that writes, which MariaDB hints at."""
    told = Told()
    told.ok("INSERT INTO t VALUES (1)", affected=1, gtid="g:1")
    assert told.rows("INSERT INTO t VALUES (1) RETURNING a") is Due.SAMPLE
    assert told.rows("SELECT f()", changed=True) is Due.SAMPLE
    assert told.rows("SELECT f()") is Due.NOTHING
    told.ok("BEGIN", OPEN)
    assert told.rows("INSERT INTO t VALUES (1) RETURNING a", OPEN) is Due.NOTHING
    assert told.rows("INSERT INTO t VALUES (1) RETURNING a", OPEN, changed=True) is Due.INSIDE


def test_a_position_says_nothing_of_later_statements() -> None:
    """Of several, one that answers with rows or an error may have written after it."""
    told = Told()
    told.session.may_stop = True  # MySQL: rows come without a hint.
    for later in (b"SELECT f()", b"EXECUTE s"):
        told.session.starts(meaning(b"INSERT INTO t VALUES (1); " + later) | WRITES)
        told.session.replied(Ok(AUTOCOMMIT | MORE_RESULTS, 1, b"", "g:1"))
        told.session.rows_ended(AUTOCOMMIT, changed=False)
        assert told.session.ended() is Due.PERHAPS
    assert told.rows("EXECUTE s") is Due.SAMPLE
    told.session.starts(meaning(b"CALL p()"))
    told.session.rows_ended(AUTOCOMMIT | MORE_RESULTS, changed=False)
    told.session.replied(Ok(AUTOCOMMIT, 0, b""))
    assert told.session.ended() is Due.NOTHING
    told.session.starts(meaning(b"INSERT INTO t VALUES (1); UPDATE t SET a = 1"))
    told.session.replied(Ok(AUTOCOMMIT | MORE_RESULTS, 1, b"", "g:2"))
    assert told.session.ended(failed=True) is Due.PERHAPS


def test_what_is_not_logged_is_uncovered() -> None:
    """Until logging is on again."""
    told = Told()
    told.ok("SET sql_log_bin = 0")
    told.ok("SET sql_log_bin = 0")
    assert told.ok("INSERT INTO t VALUES (1)", affected=1) is Due.UNCOVERED
    told.ok("SET sql_log_bin = 1")
    assert told.ok("INSERT INTO t VALUES (1)", affected=1, gtid="g:1") is Due.NOTHING


def test_two_phases() -> None:
    """Prepared work is uncovered; its commit is too, unless it brings a position."""
    told = Told()
    told.ok("XA START 'x'", OPEN)
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    told.ok("XA END 'x'", OPEN)
    assert told.ok("XA PREPARE 'x'", gtid="g:1") is Due.UNCOVERED
    assert told.ok("XA COMMIT 'x'", gtid="g:2") is Due.NOTHING
    assert told.ok("XA PREPARE 'x'; XA COMMIT 'x'", gtid="g:1") is Due.UNCOVERED
    assert told.ok("XA COMMIT 'y'") is Due.UNCOVERED
    assert told.lost("XA COMMIT 'z'")
    told.ok("XA START 'x'", OPEN)
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    assert told.lost("XA PREPARE 'x'")


@pytest.mark.parametrize("told", [True, False])
def test_two_phases_without_tracking(*, told: bool) -> None:
    """The position of their commit is asked for, as that of any other."""
    session = Told(tracked=False, told=told)
    session.ok("XA START 'x'", OPEN)
    session.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    session.ok("XA END 'x'", OPEN)
    assert session.ok("XA PREPARE 'x'") is Due.UNCOVERED
    assert session.ok("XA COMMIT 'x'") is Due.SAMPLE
    assert session.ok("XA PREPARE 'x'; XA COMMIT 'x'") is Due.UNCOVERED


@pytest.mark.parametrize(
    ("before", "sql", "doubt"),
    [
        ("", "INSERT INTO t VALUES (1)", True),
        ("", "SELECT a FROM t", False),
        ("", "CREATE TABLE t (a INT)", True),
        ("", "CALL p()", True),
        ("", "COMMIT", False),
        ("", "INSERT INTO t VALUES (1); SELECT 1", True),
        ("write", "COMMIT", True),
        ("write", "COMMIT AND CHAIN", True),
        ("write", "BEGIN", True),
        ("write", "SET autocommit = 1", True),
        ("write", "ROLLBACK", False),
        ("write", "INSERT INTO t VALUES (1)", False),
        ("write", "SELECT a FROM t", False),
        ("read", "COMMIT", False),
    ],
)
def test_in_doubt(before: str, sql: str, doubt: bool) -> None:  # noqa: FBT001 - pytest's
    """Only what may commit a write is in doubt."""
    told = Told()
    if before:
        told.ok("BEGIN", OPEN)
    if before == "write":
        told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    if before == "read":
        told.rows("SELECT a FROM t", OPEN)
    assert told.lost(sql) is doubt


def test_a_plain_write_takes_no_snapshot() -> None:
    """But a trigger of its table may: a barrier behind it has to ask, one before it had it wait."""
    told = Told()
    told.ok("BEGIN", OPEN)
    assert told.session.fresh
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    assert not told.session.fresh
    assert told.judge(demand()) is Verdict.TRIGGERED
    told.session.passed(demand(), [WRITE], renews=True)
    told.rows("SELECT a FROM t", OPEN)
    assert told.judge(demand()) is Verdict.PASS
    assert told.judge(demand(WriteId("notes", "0.1", 8))) is Verdict.OLD_SNAPSHOT


def test_a_snapshot_is_kept_until_its_transaction_is_over() -> None:
    """As the flags say, or the statement proves; errors say nothing."""
    for told in (Told(), Told(told=False)):
        told.ok("BEGIN; SELECT a FROM t", OPEN)
        told.ok("UNLOCK TABLES", OPEN)
        told.error("SELECT b FROM t")
        assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
        told.ok("BEGIN", OPEN)
        assert told.judge(demand()) is Verdict.HOLD
        told.ok("SHOW TABLES", OPEN)
        assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
        told.ok("COMMIT")
        assert told.judge(demand()) is Verdict.HOLD


def test_what_was_not_executed_takes_no_snapshot() -> None:
    """A statement that does not parse, or names no table that there is."""
    for number, verdict in (
        (1064, Verdict.HOLD),
        (1146, Verdict.HOLD),
        (1317, Verdict.OLD_SNAPSHOT),
    ):
        told = Told()
        told.ok("BEGIN", OPEN)
        told.session.starts(meaning(b"SELECT a FROM t"))
        told.session.ended(failed=True, number=number)
        assert told.judge(demand()) is verdict


@pytest.mark.parametrize("sql", ["SELECT a FROM t FOR UPDATE", "SET @x = (SELECT a FROM t)"])
def test_what_locks_takes_no_snapshot(sql: str) -> None:
    """But a view may: a barrier after it has to ask; what reads without locks takes one."""
    told = Told()
    told.ok("BEGIN", OPEN)
    told.rows(sql, OPEN)
    assert told.judge(demand()) is Verdict.LOCKED
    told.ok("INSERT INTO t VALUES (1)", OPEN, affected=1)
    assert told.judge(demand()) is Verdict.LOCKED
    told.rows("SELECT a FROM t", OPEN)
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT


@pytest.mark.parametrize("number", [1054, 1792])
def test_what_was_refused_may_have_read_through_a_view(number: int) -> None:
    """A name that there is not, or a write that may not be, takes no snapshot of its own."""
    told = Told()
    told.ok("BEGIN", OPEN)
    told.session.starts(meaning(b"SELECT a FROM t"))
    told.session.ended(failed=True, number=number)
    assert told.judge(demand()) is Verdict.LOCKED
    told.rows("SELECT a FROM t", OPEN)
    told.session.starts(meaning(b"SELECT a FROM t"))
    told.session.ended(failed=True, number=number)
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT


def test_a_floor_is_asked_for_once() -> None:
    """What was shown, or proved on this server, or written here, needs no question again."""
    told = Told()
    assert told.judge(demand()) is Verdict.HOLD
    assert told.judge(demand(proved_on="other")) is Verdict.HOLD
    proved = WriteId("notes", "0.3", 1)
    assert told.judge(demand(proved, proved_on="server")) is Verdict.PASS
    assert told.judge(demand(proved)) is Verdict.PASS
    told.session.passed(demand(), [WRITE])
    assert told.judge(demand(WriteId("notes", "0.1", 6))) is Verdict.PASS
    assert told.judge(demand(WriteId("notes", "0.1", 8))) is Verdict.HOLD
    assert told.judge(demand(WriteId("notes", "0.2", 1))) is Verdict.HOLD
    told.session.minted([WriteId("notes", "0.2", 5)])
    assert told.judge(demand(WriteId("notes", "0.2", 5))) is Verdict.PASS
    assert told.judge(demand(WriteId("notes", "0.2", 4))) is Verdict.HOLD


def test_what_was_shown_is_remembered_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is reset in place keeps its connections: what it showed is asked for again."""
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    monkeypatch.setattr(SystemClock, "monotonic", staticmethod(lambda: now_s))
    told, proved = Told(), demand(proved_on="server")
    told.session.passed(demand(), [WRITE])
    now_s += FRESH_S / 2
    assert told.judge(demand()) is told.judge(proved) is Verdict.PASS
    now_s += FRESH_S
    assert told.judge(demand()) is told.judge(proved) is Verdict.HOLD


def test_a_snapshot_shows_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that opens later shows nothing of which anybody knows; one that is open stays."""
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    told, floor = Told(), demand()
    told.session.passed(floor, [WRITE])
    told.ok("BEGIN", OPEN)
    told.rows("SELECT a FROM t", OPEN)
    now_s += 2 * FRESH_S
    assert told.judge(floor) is Verdict.PASS
    told.ok("COMMIT")
    told.ok("BEGIN", OPEN)
    told.rows("SELECT a FROM t", OPEN)
    assert told.judge(floor) is Verdict.OLD_SNAPSHOT


@pytest.mark.parametrize(
    ("begin", "status"), [("BEGIN", OPEN), ("SET autocommit = 0", 0)], ids=["begin", "autocommit"]
)
def test_an_open_snapshot_is_old(begin: str, status: int) -> None:
    """From the first read on, until the transaction ends."""
    told = Told()
    told.ok(begin, status)
    assert told.judge(demand()) is Verdict.HOLD
    told.rows("SELECT a FROM t", status | IN_TRANSACTION)
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
    assert told.judge(demand(proved_on="server")) is Verdict.OLD_SNAPSHOT
    told.session.passed(demand(), [WRITE])
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
    assert told.judge(demand(), "START TRANSACTION WITH CONSISTENT SNAPSHOT") is Verdict.PASS
    told.ok("SAVEPOINT s", status | IN_TRANSACTION)
    told.ok("ROLLBACK TO s", status | IN_TRANSACTION)
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
    told.ok("ROLLBACK AND CHAIN", status | IN_TRANSACTION)
    assert told.judge(demand()) is Verdict.PASS


def test_a_snapshot_shows_what_was_waited_for_before_it() -> None:
    """Reads within a transaction that began behind the wait pass without a question."""
    told = Told()
    floor = demand()
    told.session.passed(floor, [WRITE])
    told.ok("BEGIN", OPEN)
    told.rows("SELECT a FROM t", OPEN)
    assert told.judge(floor) is Verdict.PASS
    assert told.judge(demand()) is Verdict.PASS
    assert told.judge(demand(WriteId("notes", "0.1", 8))) is Verdict.OLD_SNAPSHOT


def test_a_connection_that_was_open_may_have_an_old_snapshot() -> None:
    """What a transaction did before it was instrumented is not known."""
    assert Told(OPEN).judge(demand()) is Verdict.OLD_SNAPSHOT
    assert Told(OPEN).lost("COMMIT")


def test_isolation() -> None:
    """READ COMMITTED counts only where it must be that of the open transaction."""
    told = Told()
    told.ok("BEGIN", OPEN)
    assert told.session.reads_committed("READ-COMMITTED")
    assert not told.session.reads_committed("REPEATABLE-READ")
    told.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", OPEN)
    assert not told.session.reads_committed("READ-COMMITTED")
    told.ok("COMMIT")
    told.ok("BEGIN", OPEN)
    assert told.session.reads_committed("READ-COMMITTED")
    told.ok("COMMIT")
    told.ok("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    told.ok("BEGIN", OPEN)
    assert not told.session.reads_committed("READ-COMMITTED")


def test_several_statements_keep_what_was_open_old() -> None:
    """In what order they end and read, nobody knows."""
    told = Told()
    told.ok("BEGIN", OPEN)
    told.rows("SELECT a FROM t", OPEN)
    assert told.judge(demand(), "SELECT a FROM t; COMMIT") is Verdict.OLD_SNAPSHOT
    told.rows("COMMIT; BEGIN; SELECT a FROM t", OPEN)
    assert told.judge(demand()) is Verdict.OLD_SNAPSHOT
    told.ok("COMMIT")
    assert told.judge(demand()) is Verdict.HOLD


def test_promises_that_were_seen_kept_hold_no_read() -> None:
    """On this connection they are not asked for again; another one is."""
    told = Told()
    assert told.judge(promised(1)) is Verdict.HOLD
    told.session.passed(promised(1), [])
    assert told.judge(promised(1)) is Verdict.PASS
    assert told.judge(promised(1, 2)) is Verdict.HOLD
    assert told.judge(demand()) is Verdict.HOLD


def test_a_snapshot_shows_the_promises_that_were_seen_before_it() -> None:
    """And none that was seen kept later, unless its reads see what was committed last."""
    told = Told(IN_TRANSACTION)
    told.ok("COMMIT", 0)
    told.session.passed(promised(1), [])
    told.rows("SELECT a FROM t", IN_TRANSACTION)
    assert told.judge(promised(1)) is Verdict.PASS
    assert told.judge(promised(1, 2)) is Verdict.OLD_SNAPSHOT
    told.session.passed(promised(2), [], renews=True)
    assert told.judge(promised(1, 2)) is Verdict.PASS


def test_a_look_that_took_the_snapshot_shows_nothing_later() -> None:
    """What the library's own look opened is as old for the reads behind it."""
    told = Told()
    told.ok("BEGIN", OPEN)
    assert told.judge(promised(1)) is Verdict.HOLD
    told.session.snapshot_taken()
    assert told.judge(promised(1)) is Verdict.OLD_SNAPSHOT


def test_promises_that_are_remembered_are_bounded() -> None:
    """Over the bound all are asked about again."""
    told = Told()
    for number in range(256):
        told.session.passed(promised(number), [])
    assert told.judge(promised(0, 255)) is Verdict.PASS
    told.session.passed(promised(256), [])
    assert told.judge(promised(0)) is Verdict.HOLD


STATUSES = [0, AUTOCOMMIT, IN_TRANSACTION, OPEN, OPEN | MORE_RESULTS, AUTOCOMMIT | STATE_CHANGED]
STATEMENTS = [
    "SELECT a FROM t",
    "SELECT a FROM t; SELECT b FROM t",
    "INSERT INTO t VALUES (1) RETURNING a",
    "UPDATE t SET a = 1",
    "CALL p()",
    "BEGIN",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "COMMIT AND CHAIN",
]


@given(
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(STATUSES), st.booleans())),
)
def test_the_short_way_of_a_read_leaves_what_the_long_one_does(
    told: bool,  # noqa: FBT001 - drawn
    steps: list[tuple[str, int, bool]],
) -> None:
    """Whatever came before, a read that is taken in at once is as if taken in step by step."""
    short, long = (Told(told=told) for _ in range(2))
    for sql, status, rows in steps:
        if not rows:
            assert short.ok(sql, status, affected=1) is long.ok(sql, status, affected=1)
        else:
            due = long.rows(sql, status, changed=bool(status & STATE_CHANGED))
            short.session.starts(meaning(sql.encode()))
            if short.session.read_ended(status):
                assert due is Due.NOTHING
            else:
                short.session.rows_ended(status, changed=bool(status & STATE_CHANGED))
                assert short.session.ended() is due
        assert vars(short.session) == vars(long.session)
        assert short.session.uncommitted == long.session.uncommitted


def test_most_reads_take_the_short_way() -> None:
    """A read alone does, in a transaction or not; one that has more behind it does not."""
    session = Told().session
    for status, expected in ((AUTOCOMMIT, True), (OPEN, True), (OPEN | MORE_RESULTS, False)):
        session.starts(meaning(b"SELECT a FROM t"))
        assert session.read_ended(status) is expected


def test_what_was_written_to_another_server_proves_nothing() -> None:
    """A connection that leads to another server by now has taken no write there."""
    told = Told()
    told.session.minted([WRITE])
    assert told.judge(floor_of("notes", WRITE)) is Verdict.PASS
    told.session.reaches("another")
    assert told.judge(floor_of("notes", WRITE)) is Verdict.HOLD
