"""What one statement may do, by its text alone: the tables of docs/spec/postgresql-statements.md.

A client needs it before it sends a statement: whether that has to wait, and whether a position is
asked for after it. Where the text leaves a choice a statement may do more rather than less. Pure.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from antipode_shims._sql.texts import HEAD, LONGEST, LONGEST_KEPT, Kept

from ._functions import READONLY
from ._hidden import IDENTIFIER, unhidden, valueless

if TYPE_CHECKING:
    from collections.abc import Callable

#: It reads data; it writes; it calls what may write, for all that is known.
READS, WRITES, CALLS = 1, 2, 4
#: It begins a transaction, commits what is open, rolls it back; it leaves its end to others.
BEGINS, COMMITS, ENDS, TWO_PHASES = 8, 16, 32, 64
#: It may commit within itself, so that an error leaves something committed.
COMMITS_INSIDE = 128
#: It reads from the snapshot of its cursor, which was taken when that was declared.
FETCHES = 256
#: It changes the isolation of transactions.
ISOLATES = 512
#: Several statements, in an order that nobody notes.
MANY = 1024
#: A cursor is declared, whose snapshot is of now; it outlasts its transaction.
DECLARES, HOLDS = 2048, 4096
#: It takes a snapshot that another transaction has, however old that is.
IMPORTS = 8192
#: It sends what may write to another server, by dblink; no text shows it alone.
SENDS = 16384
ANYTHING = READS | WRITES | CALLS | COMMITS_INSIDE

_FIRST = re.compile(rf"[\s(]*({IDENTIFIER}|\S)?")
_NAMES = re.compile(IDENTIFIER)
#: A name, from its beginning.
_NAME = rf"(?:\"\"|(?<![\w$.\x80-\U0010ffff]){IDENTIFIER})"
#: Names with dots before a parenthesis, of no more parts than any server takes; not the columns of
#: an alias, nor how rows are drawn.
_CALL = re.compile(
    rf"(\b(?:AS|TABLESAMPLE)\s+)?({_NAME}(?:\s*\.\s*(?:\"\"|{IDENTIFIER})){{0,8}})\s*\(",
    re.IGNORECASE,
)

_READ = frozenset(["SELECT", "TABLE", "VALUES", "WITH", "EXPLAIN"])
_WRITE = frozenset(
    """
    INSERT UPDATE DELETE MERGE TRUNCATE CREATE ALTER DROP GRANT REVOKE COMMENT REFRESH REINDEX
    CLUSTER SECURITY IMPORT REASSIGN VACUUM ANALYZE ANALYSE
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_NOTHING = frozenset(
    """
    SHOW RESET DISCARD DEALLOCATE LISTEN UNLISTEN NOTIFY SAVEPOINT RELEASE CHECKPOINT LOAD CLOSE
    LOCK
    """.split()  # noqa: SIM905 - as above
)
_MODIFY = frozenset(["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"])
_INTO = frozenset({"INTO"})
_LOOKING = frozenset(["SELECT", "FROM", "USING", "RETURNING", "VALUES", "WITH"])
#: Words before a parenthesis that call nothing: of the grammar, and types.
_GRAMMAR = frozenset(
    """
    ALL AND ANY ARRAY AS ASYMMETRIC BETWEEN BIT BOOLEAN BY CASE CAST CHAR CHARACTER CHECK
    COLLATE CONFLICT COPY CROSS CUBE DATE DEC DECIMAL DEFAULT DISTINCT DOUBLE ELSE END EXCEPT
    EXISTS EXTRACT FILTER FLOAT FOR FROM FULL GROUP GROUPING HAVING ILIKE IN INNER INTERSECT
    INTERVAL INTO IS ISNULL JOIN KEY LATERAL LEFT LIKE LIMIT MATERIALIZED NATURAL NCHAR NOT
    NOTNULL NULL NUMERIC OF OFFSET ON ONLY OR ORDER OUTER OVER OVERLAY PARTITION POSITION
    PRECISION RANGE REAL RECURSIVE RETURNING RIGHT ROLLUP ROW ROWS SELECT SET SETS SIMILAR SOME
    SUBSTRING SYMMETRIC TABLE THEN TIME TIMESTAMP TIMESTAMPTZ TIMETZ TREAT TRIM UNION UNIQUE
    USING VALUES VARBIT VARCHAR VARYING WHEN WHERE WINDOW WITH WITHIN
    """.split()  # noqa: SIM905 - as above
)


#: A statement that changes what its session shows, and nothing else. Others change what a commit
#: waits for, or what a snapshot is, or name what no text shows.
_SETTING = re.compile(
    r"""
    \s*SELECT\s+(?:pg_catalog\s*\.\s*)?set_config\s*\(\s*
    '(?:TimeZone|DateStyle|IntervalStyle|client_encoding|application_name|statement_timeout
    |lock_timeout|(?!antipode\.)[a-z_]\w*\.\w+)'\s*,\s*
    (?:%s|%\(\w+\)s|\$\d+|\?|'[^'\\]*')(?:\s*::\s*\w+)?\s*,\s*(?:true|false)\s*\)\s*;?\s*
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


class Meanings(Kept[str, int]):
    """What texts of one or more statements may do, by the text; found once for all of one form."""

    def __init__(self, readonly: frozenset[str] = frozenset()) -> None:
        """With further functions that write nothing, in small letters."""
        super().__init__()
        self._readonly = readonly

    def __missing__(self, sql: str) -> int:
        if sql[LONGEST : LONGEST + 1]:
            return ANYTHING | MANY | self[sql[:HEAD]]
        if _SETTING.fullmatch(sql):
            return READS
        plain = unhidden(sql, _blank)
        if plain is None:
            return ANYTHING | MANY
        plain = valueless(plain)
        if (known := self.get(plain)) is not None:
            return known
        found = _plainly(plain, self._readonly)
        return found if plain[LONGEST_KEPT:] else self.keep(plain, found)


def meaning(sql: str, readonly: frozenset[str] = frozenset()) -> int:
    """What one text may do, with *readonly* as `Meanings` has them."""
    return Meanings(readonly)[sql]


def _plainly(plain: str, readonly: frozenset[str]) -> int:
    """What a text that hides nothing may do."""
    if ";" not in plain:
        return _one(plain, readonly)
    parts = [part for part in plain.split(";") if part.strip()]
    found = 0
    for part in parts:
        found |= _one(part, readonly)
    return found | MANY if len(parts) > 1 else found


def plain_of(sql: str) -> str:
    """A text without what hides words; whole where one cannot tell."""
    return unhidden(sql, _blank) or sql


def unknown_functions(sql: str, readonly: frozenset[str] = frozenset()) -> frozenset[str]:
    """The functions that *sql* calls and that may write, for all that is known."""
    plain = unhidden(sql, _blank) if len(sql) <= LONGEST else None
    return frozenset() if plain is None or _SETTING.fullmatch(sql) else _called(plain, readonly)


def _blank(hidden: str) -> str:
    if hidden[0] == '"':
        return '""'
    return " " if hidden[:2] in ("--", "/*") else "''"


def _one(part: str, readonly: frozenset[str]) -> int:
    match = _FIRST.match(part)
    if match is None or match[1] is None:
        return 0
    first = match[1].upper()
    if first in _NOTHING:
        return 0
    rest = _NAMES.findall(part[match.end() :].upper())
    if (rule := _RULES.get(first)) is not None:
        return rule(rest)
    if first in _WRITE:
        return WRITES | (READS if _looks(first, rest) else 0)
    found = _read(first, rest)
    if found & READS and "(" in part and _called(part, readonly):
        return found | CALLS
    return found


def _looks(first: str, rest: list[str]) -> bool:
    """Whether a statement that writes reads, too; TABLE is mostly the kind of what it changes."""
    if first in _MODIFY and "TABLE" in rest:
        return True
    return not _LOOKING.isdisjoint(rest) or ("AS", "TABLE") in pairwise(rest)


def _read(first: str, rest: list[str]) -> int:
    """What a statement does that may read."""
    if first == "DECLARE":
        return READS | DECLARES | (HOLDS if "HOLD" in rest and "WITHOUT" not in rest else 0)
    if first == "COPY":
        if rest and rest[0] in _READ | _MODIFY:  # A query in parentheses.
            return READS | (WRITES if _MODIFY.intersection(rest) else 0)
        return WRITES if "FROM" in rest else READS
    if first not in _READ:
        return ANYTHING
    modify = _INTO if first == "SELECT" else _MODIFY  # SELECT ... FOR UPDATE locks alone.
    explained = _explained(rest) if first == "EXPLAIN" else 0
    return READS | explained | (WRITES if modify.intersection(rest) else 0)


def _explained(rest: list[str]) -> int:
    """What EXPLAIN ANALYZE executes, too: what is prepared shows nothing of what it does."""
    return (ANYTHING if "EXECUTE" in rest else 0) | (WRITES if "CREATE" in rest else 0)


def _begin(rest: list[str]) -> int:
    return BEGINS | (ISOLATES if "ISOLATION" in rest else 0)


def _commit(rest: list[str]) -> int:
    return WRITES if rest[:1] == ["PREPARED"] else COMMITS | ENDS | _chained(rest)


def _rollback(rest: list[str]) -> int:
    return 0 if rest[:1] == ["PREPARED"] or "TO" in rest else ENDS | _chained(rest)


def _prepare(rest: list[str]) -> int:
    return TWO_PHASES | ENDS if rest[:1] == ["TRANSACTION"] else 0


def _set(rest: list[str]) -> int:
    found = ISOLATES if any("ISOLATION" in word for word in rest) else 0
    return found | (IMPORTS if ("TRANSACTION", "SNAPSHOT") in pairwise(rest) else 0)


def _fetch(rest: list[str]) -> int:
    del rest
    return READS | FETCHES


def _chained(rest: list[str]) -> int:
    return BEGINS if "CHAIN" in rest and "NO" not in rest else 0


_RULES: dict[str, Callable[[list[str]], int]] = {
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _commit,
    "END": _commit,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "PREPARE": _prepare,
    "SET": _set,
    "FETCH": _fetch,
    "MOVE": _fetch,
}


def _called(part: str, readonly: frozenset[str]) -> frozenset[str]:
    """The functions that are called and may write, in small letters where they are plain."""
    found: set[str] = set()
    for match in _CALL.finditer(part):
        name = re.sub(r"\s", "", match[2])
        if match[1] and "." not in name:
            continue
        name = name.lower().removeprefix("pg_catalog.")
        if name.upper() not in _GRAMMAR and name not in READONLY and name not in readonly:
            found.add(name)
    return frozenset(found)
