"""One poll of a server as a conversation without I/O: its place in the log, and its history."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from antipode.shim import Observation

from ._position import HISTORY_FILE, RECEIVED, Rows, State, judge, parse_state, unreadable

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
    " coalesce(has_function_privilege(to_regprocedure('antipode_history(integer)'), 'execute')"
    " AND has_function_privilege(to_regprocedure('antipode_received(integer,pg_lsn)'), 'execute'),"
    " false) AS function, pg_has_role('pg_read_all_stats', 'usage') AS stream"
)
_HISTORY = {
    NOT: "NULL",
    STREAM: "NULL",
    FILES: HISTORY_FILE,
    FUNCTION: "antipode_history({timeline})",
}
_RECEIVED = {
    NOT: "NULL",
    STREAM: "NULL",
    FILES: RECEIVED,
    FUNCTION: "antipode_received({timeline}, {place})",
}
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
#: How often the server flushes what was committed without waiting for that.
WRITER_DELAY = "SELECT setting AS ms FROM pg_settings WHERE name = 'wal_writer_delay'"
_WROTE = "SELECT {xid} AS xid, current_setting('synchronous_commit') AS synchronous"
_XID = "pg_current_xact_id_if_assigned()"
#: What is asked before it: whether the transaction wrote, and whether its commit is flushed.
BEFORE_COMMIT = _WROTE.format(xid=_XID)
#: The same of one that seems to have changed temporary tables alone: without an id where it has.
#: Its locks are kept until its end, but for those on most catalogs, of which the server counts the
#: rows that were changed. Those that are named are changed where a table is made.
BEFORE_TEMPORARY = _WROTE.format(
    xid="CASE WHEN current_setting('track_counts') <> 'on'"
    " OR EXISTS (SELECT FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation"
    " WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'"
    " AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')"
    " AND c.relpersistence IS DISTINCT FROM 't')"
    " OR EXISTS (SELECT FROM pg_class WHERE oid < 16384 AND relkind = 'r'"
    " AND relname NOT IN ('pg_attrdef', 'pg_attribute', 'pg_class', 'pg_constraint', 'pg_depend',"
    " 'pg_index', 'pg_namespace', 'pg_sequence', 'pg_shdepend', 'pg_statistic', 'pg_trigger',"
    " 'pg_type') AND pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)"
    f" + pg_stat_get_xact_tuples_deleted(oid) > 0) THEN {_XID} END"
)
#: What may be asked before a commit.
BEFORE = (BEFORE_COMMIT, BEFORE_TEMPORARY)
#: Whether this user may ask the second.
SEES_LOCKS = (
    "SELECT has_table_privilege('pg_locks', 'select')"
    " AND has_table_privilege('pg_class', 'select') AS may"
)
#: Whether whatever role runs them may be told by notices, which PL/pgSQL alone raises.
NOTICES = (
    "SELECT coalesce(has_language_privilege('public', (SELECT oid FROM pg_language"
    " WHERE lanname = 'plpgsql' AND lanpltrusted), 'usage'), false) AS may"
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
    """What one poll asks of a server of whose timelines a user with *rights* may learn.

    Whether it is on the next timeline already, and where that is left, is asked of standbys that
    have its history.
    """
    numbers = [_NUMBER.format(more=more) for more in range(3)]
    own, following, later = (_HISTORY[rights].format(timeline=number) for number in numbers)
    received = _RECEIVED[rights].format(timeline=numbers[1], place="p.position")
    moving = "CASE WHEN p.recovering AND p.next IS NOT NULL THEN {} END"
    return (
        f"SELECT p.*, {moving.format(received)} AS follows, {moving.format(later)} AS later"
        f" FROM (SELECT p.*, {own} AS history, {following} AS next, '{rights}' AS rights"
        f" FROM ({_PLACE}) AS p OFFSET 0) AS p"
    )


def rights() -> Asking[str]:
    """How this user may learn of timelines."""
    row = (yield RIGHTS)[0]
    return next((how for how in (FUNCTION, FILES, STREAM) if row[how] == "t"), NOT)


def observation(state: State, writes: Collection[WriteId]) -> Observation:
    """What a server in *state* shows of *writes*."""
    verdicts = {write: judge(state, write) for write in writes}
    causes = {write: cause for write, (_, cause) in verdicts.items() if cause}
    statuses = {write: status for write, (status, _) in verdicts.items()}
    caveat = unreadable(state) if state.chain is None and not state.unseen else ""
    return Observation(state.server, statuses, causes=causes, caveat=caveat)


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
