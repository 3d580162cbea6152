"""One poll of a server as a conversation without I/O: its place in the log, and its history."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from antipode.shim import Observation

from ._position import Rows, State, judge, parse_state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from antipode import WriteId

T = TypeVar("T")
#: Yields SQL, is sent its rows, with text for values.
Asking = Generator[str, Rows, T]

#: How this user may learn of timelines: not at all; which one a standby receives; their histories,
#: from files, or by the migration's function.
NOT, STREAM, FILES, FUNCTION = "", "stream", "files", "function"
RIGHTS = (
    "SELECT has_function_privilege('pg_read_file(text,bigint,bigint,boolean)', 'execute') AS files,"
    " coalesce(has_function_privilege(to_regprocedure('antipode_history(integer)'), 'execute'),"
    " false) AS function, pg_has_role('pg_read_all_stats', 'usage') AS stream"
)
_FILE = (
    "pg_read_file('pg_wal/' || lpad(upper(to_hex({number})), 8, '0') || '.history', 0, 65536, true)"
)
_HISTORY = {NOT: "NULL", STREAM: "NULL", FILES: _FILE, FUNCTION: "antipode_history({number})"}
#: Columns in the order in which they are evaluated: the position before what it is judged by.
#: Whether the server recovers is asked once: a promotion may come in between.
_PLACE = (
    "SELECT r AS recovering,"
    " CASE WHEN r THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END AS position,"
    " CASE WHEN r THEN greatest((SELECT timeline_id FROM pg_control_checkpoint()),"
    " (SELECT min_recovery_end_timeline FROM pg_control_recovery()))::text"
    " ELSE left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) END AS timeline,"
    " (SELECT system_identifier FROM pg_control_system()) AS system,"
    " extract(epoch FROM pg_postmaster_start_time())::text AS started,"
    " pg_backend_pid() AS backend,"
    " EXISTS (SELECT FROM pg_stat_wal_receiver) AS receiving,"
    " (SELECT received_tli FROM pg_stat_wal_receiver WHERE status = 'streaming') AS received"
    " FROM (SELECT pg_is_in_recovery() AS r) AS s OFFSET 0"
)
_NUMBER = (
    "CASE WHEN p.recovering THEN p.timeline::int"
    " ELSE ('x' || p.timeline)::bit(32)::int END + {more}"
)
#: What is asked after a commit, in the same packet where the client can.
SAMPLE = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END AS flushed,"
    " CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_insert_lsn() END AS inserted,"
    " extract(epoch FROM pg_postmaster_start_time())::text AS started,"
    " current_setting('synchronous_commit') AS synchronous"
)
#: What is asked before it: whether the transaction wrote, and whether its commit is flushed.
BEFORE_COMMIT = (
    "SELECT pg_current_xact_id_if_assigned() AS xid,"
    " current_setting('synchronous_commit') AS synchronous"
)
#: What a plain SELECT may write by, and its text does not show: views, and views of them, that use
#: functions of the application's; the empty name, which is in each text, stands for operators,
#: casts, conditions of domains and policies that do. Functions in C are an extension's.
HIDDEN = (
    "SELECT q.name FROM (WITH RECURSIVE own AS (SELECT p.oid FROM pg_proc p JOIN pg_language l"
    " ON l.oid = p.prolang WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')"
    " AND lower(p.proname) NOT IN ({readonly})),"
    " uses AS (SELECT d.classid, d.objid FROM pg_depend d JOIN own ON d.refobjid = own.oid"
    " WHERE d.refclassid = 'pg_proc'::regclass), spread AS (SELECT classid, objid FROM uses"
    " UNION SELECT d.classid, d.objid FROM pg_depend d JOIN uses u ON d.refclassid = u.classid"
    " AND d.refobjid = u.objid WHERE u.classid IN ('pg_operator'::regclass, 'pg_cast'::regclass)),"
    " views AS (SELECT r.ev_class FROM pg_rewrite r JOIN spread s ON s.objid = r.oid"
    " AND s.classid = 'pg_rewrite'::regclass UNION SELECT r.ev_class FROM views v"
    " JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = v.ev_class"
    " AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite r ON r.oid = d.objid)"
    " SELECT lower(c.relname::text) AS name FROM views v JOIN pg_class c ON c.oid = v.ev_class"
    " UNION SELECT '' FROM spread s LEFT JOIN pg_constraint c ON c.oid = s.objid"
    " AND s.classid = 'pg_constraint'::regclass WHERE s.classid IN ('pg_operator'::regclass,"
    " 'pg_cast'::regclass, 'pg_policy'::regclass) OR c.contypid <> 0) AS q"
)
#: The isolation of the open transaction: the one question that takes no snapshot.
ISOLATION = "SHOW transaction_isolation"
#: Asked on another connection: whether a backend is idle in a transaction without a snapshot.
UNREAD = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid}"
    " AND host(client_addr) = '{host}' AND client_port = {port}"
    " AND state = 'idle in transaction' AND backend_xmin IS NULL) AS unread"
)


class Backend(NamedTuple):
    """A connection's process at its server, and what distinguishes it from those of other servers.

    Attributes:
        pid: its number, as the server told the client.
        host: the client's own address; empty where it has none.
        port: the client's own port. A server that sees both has no pooler or balancer before it.
    """

    pid: int
    host: str = ""
    port: int = 0


class Refused(Exception):  # noqa: N818 - an answer
    """The server answered with an error.

    Attributes:
        code: its SQLSTATE.
    """

    def __init__(self, message: str, code: str = "") -> None:
        """Say what the server said."""
        super().__init__(message)
        self.code = code


def look_sql(rights: str) -> str:
    """What one poll asks of a server of whose timelines a user with *rights* may learn."""
    own, following = (_HISTORY[rights].format(number=_NUMBER.format(more=more)) for more in (0, 1))
    return (
        f"SELECT p.*, {own} AS history, {following} AS next, '{rights}' AS rights"
        f" FROM ({_PLACE}) AS p"
    )


def hidden_sql(readonly: Collection[str]) -> str:
    """The question by what a plain SELECT may write, but for functions that are *readonly*."""
    names = (name.rpartition(".")[2].replace("'", "''") for name in sorted(readonly))
    return HIDDEN.format(readonly=", ".join(f"'{name}'" for name in ("", *names)))


def rights() -> Asking[str]:
    """How this user may learn of timelines."""
    row = (yield RIGHTS)[0]
    return next((how for how in (FUNCTION, FILES, STREAM) if row[how] == "t"), NOT)


def observation(state: State, writes: Collection[WriteId]) -> Observation:
    """What a server in *state* shows of *writes*."""
    verdicts = {write: judge(state, write) for write in writes}
    causes = {write: cause for write, (_, cause) in verdicts.items() if cause}
    statuses = {write: status for write, (status, _) in verdicts.items()}
    return Observation(state.server, statuses, causes=causes)


def look(how: str | None) -> Asking[tuple[State, str]]:
    """Poll once, with *how* of :func:`rights`; None where that is not known yet.

    Returns:
        What was seen, and how: asked again where it is too little, for it may be granted by now.
    """
    if how is None:
        how = yield from rights()
    state = parse_state((yield look_sql(how)))
    if state.chain is None and how in (NOT, STREAM):
        granted = yield from rights()
        if granted != how:
            return parse_state((yield look_sql(granted))), granted
    return state, how


def look_beside(steps: Asking[State], beside: str) -> Asking[tuple[State, Rows]]:
    """Poll as *steps* do, and ask *beside*, whose answer is one row, in the same question.

    Returns:
        What was seen, and the last answer, which has the columns of both.

    Raises:
        Refused: the server answered with an error.
    """
    sql = next(steps)
    rows: Rows = []
    try:
        while True:
            rows = yield f"SELECT * FROM ({sql}) AS look, ({beside}) AS beside"
            sql = steps.send(rows)
    except StopIteration as end:
        return end.value, rows


def converse(steps: Asking[T], ask: Callable[[str], Rows]) -> T:
    """Hold a conversation over *ask*, which raises `Refused` for a server's error."""
    try:
        sql = next(steps)
        while True:
            try:
                rows = ask(sql)
            except Refused as error:  # noqa: PERF203 - each answer may be an error
                sql = steps.throw(error)
            else:
                sql = steps.send(rows)
    except StopIteration as end:
        found: T = end.value
        return found


async def converse_async(steps: Asking[T], ask: Callable[[str], Awaitable[Rows]]) -> T:
    """The asyncio twin of :func:`converse`."""
    try:
        sql = next(steps)
        while True:
            try:
                rows = await ask(sql)
            except Refused as error:  # noqa: PERF203 - each answer may be an error
                sql = steps.throw(error)
            else:
                sql = steps.send(rows)
    except StopIteration as end:
        found: T = end.value
        return found
