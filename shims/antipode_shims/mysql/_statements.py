"""What a statement may do, judged by its text alone.

Pure. Where the text leaves a choice, a statement may do more rather than less: a read held back
without need costs a round trip, one that is missed is stale.
"""

from __future__ import annotations

import re
from typing import Final

from antipode_shims._sql.texts import HEAD, LONGEST

from ._functions import called

#: It may read data: a floor holds it back.
READS: Final = 1
#: It may change data.
WRITES: Final = 2
#: It may commit: what is open, or what it does itself, whatever autocommit says.
COMMITS: Final = 4
#: It ends the open transaction and begins again, where it succeeds.
ENDS: Final = 8
#: It takes a snapshot at once.
SNAPSHOTS: Final = 16
#: It may change the isolation of this or later transactions.
ISOLATES: Final = 32
#: It may change what the server says of the session.
RESETS: Final = 64
#: A step of a transaction of two phases after which its end is in others' hands.
XA: Final = 128
#: This session's writes may not be logged from now on, and so not be replicated.
UNLOGS: Final = 256
#: Several statements: in what order they do what, the flags do not say.
MANY: Final = 512
#: The isolation it sets is, or may be, that of the next transaction alone.
ONCE: Final = 1024
#: This session's writes are logged from now on.
LOGS: Final = 2048
#: It opens a transaction.
BEGINS: Final = 4096
#: It may read data besides: its text has to be searched, see :func:`reads`.
NESTS: Final = 8192

#: It changes which tables of this session alone there are, or what their names stand for.
TEMPORARY: Final = 16384
#: It may take a snapshot at once, although it shows nothing that anybody waits for.
OPENS: Final = 32768
#: Its session's writes may be given the numbers of another server from now on.
ASSIGNS: Final = 1 << 20

#: It calls a function that may not be built in, and so may write: see :mod:`._functions`.
CALLS: Final = 1 << 21

#: It locks what it reads, which takes no snapshot: but for views, triggers and functions.
LOCKS: Final = 1 << 22

#: A call whose text says nothing of what it does.
OPAQUE: Final = READS | WRITES | COMMITS

#: It commits what is open, and itself.
DDL: Final = WRITES | COMMITS | ENDS
#: Of whose text it is asked which functions it calls; others do anything, or call none.
_MAY_CALL: Final = READS | WRITES | OPENS
_WORD: Final = re.compile(rb"[\s(;]*([a-zA-Z]+)")
_COMMENT: Final = re.compile(
    rb"[\s(;]*(?:/\*(?!M?!).*?\*/|(?:#|--(?=\s))[^\n]*(?:\n|$))", re.DOTALL
)
_VERSIONED: Final = re.compile(rb"/\*M?!\d*(.*?)\*/", re.DOTALL)
# What is not closed goes to the end, so that no text takes more than linear time.
_QUOTED: Final = re.compile(
    rb"""'(?:[^'\\]+|\\(?:.|\Z))*(?:'|\Z)|"(?:[^"\\]+|\\(?:.|\Z))*(?:"|\Z)|`[^`]*(?:`|\Z)"""
    rb"""|/\*.*?(?:\*/|\Z)|(?:\#|--(?=\s))[^\n]*""",
    re.DOTALL,
)
_SESSION_VALUE: Final = (
    rb"(?:@@?[\w.]+|\d+|'[^'\\]*'|null|true|false|(?:last_insert_id|found_rows|row_count|"
    rb"connection_id|database|schema|version|user|current_user|session_user|system_user|"
    rb"current_role|now|sysdate|curdate|curtime|current_date|current_time|current_timestamp|"
    rb"localtime|localtimestamp|utc_date|utc_time|utc_timestamp|unix_timestamp|uuid|rand|pi)"
    rb"\(\s*\d*\s*\)|current_(?:user|date|time|timestamp)|localtime(?:stamp)?|"
    rb"utc_(?:date|time|timestamp))(?:\s+as\s+\w+)?"
)
_SESSION_READ: Final = re.compile(
    rb"(?:select|do)\s+" + _SESSION_VALUE + rb"(?:\s*,\s*" + _SESSION_VALUE + rb")*"
    rb"(?:\s+limit\s+1)?[\s;]*$",
    re.IGNORECASE,
)
_LOGGED: Final = re.compile(rb"SQL_LOG_BIN\s*:?=\s*(?:1|ON)\b|SKIP_REPLICATION\s*:?=\s*(?:0|OFF)\b")
_TEMPORARY_TABLE: Final = re.compile(
    rb"\s*create\s+(?:or\s+replace\s+)?temporary\s+table\s+(?:if\s+not\s+exists\s+)?([\w$`.]+)",
    re.IGNORECASE,
)
_TARGET: Final = re.compile(
    rb"\s*(?:insert|replace|update|delete)\s+(?:(?:low_priority|high_priority|quick|ignore|into|from)"
    rb"\s+)*([\w$`.]+)",
    re.IGNORECASE,
)
_NESTED_READ: Final = re.compile(rb"\b(?:select|returning)\b", re.IGNORECASE)
_WRITES_READ: Final = re.compile(rb"\b(?:select|returning|table)\b", re.IGNORECASE)
_NESTED_WRITE: Final = re.compile(rb"\b(?:update|delete|insert|replace)\b", re.IGNORECASE)
#: How many bytes at its end say that a SELECT locks what it reads.
_TAIL: Final = 40
_LOCKING: Final = re.compile(
    rb"\b(?:FOR\s+(?:UPDATE|SHARE)|LOCK\s+IN\s+SHARE\s+MODE)"
    rb"(?:\s+(?:NOWAIT|SKIP\s+LOCKED|WAIT\s+\d+))?[\s;]*$"
)
#: What may read besides, without a lock; and comments, which may hold the words of a lock.
_UNLOCKED: Final = re.compile(rb"\b(?:SELECT|TABLE|VALUES|OF)\b|--|#|/\*")
#: In the names of schemas whose tables nothing locks.
_SYSTEM: Final = (b"SCHEMA", b"MYSQL", b"SYS")

_SHOWN: Final = frozenset(
    b"CREATE VARIABLES STATUS GLOBAL SESSION LOCAL WARNINGS ERRORS COUNT(*) GRANTS PROCESSLIST"
    b" ENGINE ENGINES PLUGINS PRIVILEGES OPEN PROFILE PROFILES BINARY BINLOG MASTER SLAVE REPLICA"
    b" REPLICAS RELAYLOG".split()
)
_BY_WORD: Final[dict[bytes, int]] = {
    **dict.fromkeys(b"SELECT TABLE VALUES EXPLAIN DESCRIBE DESC CHECKSUM".split(), READS),
    **dict.fromkeys(b"INSERT REPLACE UPDATE DELETE".split(), WRITES | NESTS),
    **dict.fromkeys(b"HELP SAVEPOINT RELEASE DEALLOCATE PREPARE KILL GET PURGE".split(), 0),
    b"USE": TEMPORARY,
    b"LOCK": COMMITS | ENDS,
    # Whether they commit what is open, the server's flags say alone.
    **dict.fromkeys(b"UNLOCK CACHE CHANGE STOP RESET INSTALL UNINSTALL".split(), COMMITS),
    **dict.fromkeys(
        b"ALTER CREATE DROP RENAME TRUNCATE GRANT REVOKE FLUSH OPTIMIZE REPAIR IMPORT".split(),
        DDL,
    ),
}


def meaning(sql: bytes) -> int:
    """What *sql* may do, all its statements together."""
    if sql[LONGEST : LONGEST + 1]:
        return OPAQUE | MANY | (meaning(sql[:HEAD]) & ~LOCKS)
    if b";" not in sql:
        # Most statements, known without another call.
        found = _select(sql) if sql[:7] in _SELECT else _one(sql)
    else:
        found = _several(sql)
    if found & _MAY_CALL and found & OPAQUE != OPAQUE and found & DDL != DDL and called(sql):
        found |= CALLS
    return found


def _several(sql: bytes) -> int:
    parts = [part for part in _QUOTED.sub(_blank, sql).split(b";") if part.strip()]
    if len(parts) == 1:
        return _one(sql)
    found = MANY if parts else 0
    for part in parts:
        found |= _one(part)
    return found & ~LOCKS  # Which of them reads it does not say.


def closes(sql: bytes) -> bool:
    """Whether the last statement of *sql* ends the transaction, and does nothing else."""
    if len(sql) > LONGEST:
        return False
    parts = [part for part in _QUOTED.sub(_blank, sql).split(b";") if part.strip()]
    last = _one(parts[-1]) if parts else 0
    return bool(last & ENDS) and not last & (READS | WRITES | BEGINS | XA)


def reads(sql: bytes, found: int) -> int:
    """How *sql* may read data: :data:`READS`, with :data:`LOCKS` where it locks that; else 0.

    Args:
        sql: what is about to be sent.
        found: its :func:`meaning`.
    """
    if found & READS or not found & NESTS:
        return found & (READS | LOCKS)
    # Values are long: what has none of the words needs no search for whole ones.
    lower = (_QUOTED.sub(_blank, sql) if found & MANY else sql).lower()
    if not (b"select" in lower or b"returning" in lower or b"table" in lower):
        return 0
    if _WRITES_READ.search(lower) is None:
        return 0
    return READS if found & MANY else READS | _locking(sql.upper())


def _locking(text: bytes) -> int:
    """Whether a text in capitals, which may lock what it reads, names no table without locks."""
    return 0 if any(name in text for name in _SYSTEM) else LOCKS


def _blank(match: re.Match[bytes]) -> bytes:
    """What stands for a quoted text or a comment; versioned comments are statements."""
    text = match.group()
    versioned = _VERSIONED.fullmatch(text)
    if versioned is not None:
        return versioned.group(1)
    return b"''" if text[:1] in b"'\"" else b"``" if text[:1] == b"`" else b" "


def _one(sql: bytes) -> int:
    head = sql[: sql.find(b" ") + 1] or sql
    usual = _USUAL.get(head)
    if usual is not None:
        return usual
    if head in _SELECT:
        return _select(sql)
    word = _WORD.match(sql)
    if word is None:
        return _commented(sql)
    start = word.start(1)
    return _of_word(word.group(1).upper(), sql[start:] if start else sql)


def _commented(sql: bytes) -> int:
    """A statement after comments, which are skipped one by one."""
    at = 0
    while (comment := _COMMENT.match(sql, at)) is not None:
        at = comment.end()
    rest = sql[at:].lstrip(b" \t\r\n(;")
    if not rest:
        return 0
    versioned = _VERSIONED.match(rest)
    if versioned is not None:
        rest = versioned.group(1) + rest[versioned.end() :]
    word = _WORD.match(rest)
    return OPAQUE | ENDS if word is None else _of_word(word.group(1).upper(), rest)


def _of_word(word: bytes, sql: bytes) -> int:
    found = _BY_WORD.get(word)
    special = _SPECIAL.get(word)
    if special is not None:
        return special(sql)
    # Unknown words, CALL, EXECUTE, HANDLER, ANALYZE and compound statements among them.
    return OPAQUE if found is None else found


def _select(sql: bytes) -> int:
    tail = sql[-_TAIL:].upper()
    if (b"FOR" in tail or b"LOCK" in tail) and _LOCKING.search(tail) is not None:
        text = sql.upper()
        return READS | (0 if _UNLOCKED.search(text, len(b"SELECT")) else _locking(text))
    if b"FROM" in sql or b"from" in sql:
        return READS
    return 0 if _is_session_read(sql[:200]) else READS


def _is_session_read(head: bytes) -> bool:
    """Whether it asks for the session's own values alone, which no log replicates."""
    return len(head) < 200 and _SESSION_READ.match(head) is not None  # noqa: PLR2004


def _do(sql: bytes) -> int:
    return 0 if _is_session_read(sql[:200]) else OPAQUE


def _load(sql: bytes) -> int:
    return WRITES | READS if _NESTED_READ.search(sql) else WRITES


def _with(sql: bytes) -> int:
    return READS | WRITES if _NESTED_WRITE.search(sql) else READS


def _start(sql: bytes) -> int:
    words = sql.upper().split(None, 2)
    if len(words) < 2 or not words[1].startswith(b"TRANSACTION"):  # noqa: PLR2004
        return COMMITS  # START REPLICA.
    snapshot = SNAPSHOTS | READS if b"SNAPSHOT" in sql.upper() else 0
    return COMMITS | ENDS | BEGINS | snapshot


def _begin(sql: bytes) -> int:
    # MariaDB's BEGIN NOT ATOMIC holds statements.
    return OPAQUE | ENDS if b"NOT" in sql.upper().split() else COMMITS | ENDS | BEGINS


def _commit(sql: bytes) -> int:
    return COMMITS | ENDS | _chains(sql)


def _chains(sql: bytes) -> int:
    words = sql.upper().split()
    if b"CHAIN" not in words:
        return 0
    return BEGINS if words[words.index(b"CHAIN") - 1] != b"NO" else 0


def _rollback(sql: bytes) -> int:
    # ROLLBACK [WORK] TO keeps the transaction and its snapshot.
    return 0 if b"TO" in sql.upper().split() else ENDS | _chains(sql)


def _xa(sql: bytes) -> int:
    step = sql.upper().split(None, 2)[1:2]
    if step == [b"COMMIT"]:
        return XA | WRITES | COMMITS | ENDS
    if step == [b"PREPARE"]:
        return XA | ENDS  # What is prepared may be committed by anybody, at any time.
    return BEGINS if step in ([b"START"], [b"BEGIN"]) else 0


def _set(sql: bytes) -> int:
    text = sql.upper()
    found = 0
    if b"SELECT" in text or b"(" in text or (b"NEXT" in text and b"VALUE" in text):
        # SET @x = (SELECT ...), a function of the user's, or NEXT VALUE FOR a sequence.
        found |= OPAQUE | _locking(text)
    if b"AUTOCOMMIT" in text or b"PASSWORD" in text:
        found |= COMMITS
    if b"ISOLATION" in text:
        found |= ISOLATES if b"SESSION" in text else ISOLATES | ONCE
    if b"SESSION_TRACK" in text:
        found |= RESETS
    if b"GTID_NEXT" in text or b"SERVER_ID" in text:
        found |= ASSIGNS
    if b"SQL_LOG_BIN" in text or b"SKIP_REPLICATION" in text:
        found |= LOGS if _LOGGED.search(text) else UNLOGS
    if b"STATEMENT" in text.split(None, 2)[1:2]:
        found = (found | OPAQUE) & ~LOCKS  # MariaDB's SET STATEMENT ... FOR <any statement>.
    return found


def _create(sql: bytes) -> int:
    words = sql.upper().split(None, 3)
    temporary = b"TEMPORARY" in words[1:3]
    nested = READS if _NESTED_READ.search(sql) else 0
    return nested | (TEMPORARY if temporary else DDL)


def temporary(sql: bytes) -> bytes:
    """The table that ``CREATE TEMPORARY TABLE`` makes, as it is spelled; else nothing."""
    match = _TEMPORARY_TABLE.match(sql)
    return match.group(1).replace(b"`", b"") if match is not None else b""


def target(sql: bytes) -> bytes:
    """The table that a statement writes to, as it is spelled, where that is plain to see."""
    match = _TARGET.match(sql)
    return match.group(1).replace(b"`", b"") if match is not None else b""


def _show(sql: bytes) -> int:
    # MySQL answers the others from tables of its own.
    return 0 if _SHOWN.issuperset(sql.upper().split(None, 2)[1:2]) else OPENS


def _explain(sql: bytes) -> int:
    return READS | WRITES if b"ANALYZE" in sql.upper().split() else READS


_SPECIAL: Final = {
    b"SELECT": _select,
    b"DO": _do,
    b"LOAD": _load,
    b"WITH": _with,
    b"START": _start,
    b"BEGIN": _begin,
    b"COMMIT": _commit,
    b"ROLLBACK": _rollback,
    b"XA": _xa,
    b"SET": _set,
    b"SHOW": _show,
    b"CREATE": _create,
    b"DROP": _create,
    b"EXPLAIN": _explain,
}
#: What needs no search: how most writes begin, and what clients themselves send after each unit
#: of work.
_USUAL: Final = {
    head: found
    for word, found in (
        (b"INSERT ", WRITES | NESTS),
        (b"REPLACE ", WRITES | NESTS),
        (b"UPDATE ", WRITES | NESTS),
        (b"DELETE ", WRITES | NESTS),
        (b"COMMIT", COMMITS | ENDS),
        (b"ROLLBACK", ENDS),
    )
    for head in (word, word.lower())
}
_SELECT: Final = (b"SELECT ", b"select ")
