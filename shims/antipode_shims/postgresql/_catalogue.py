"""By what a statement that only reads may write: what the catalogue of its database says of names.

A name means what the server resolves it to. So nothing is taken for PostgreSQL's own as long as the
application has made something of that name, in whichever schema: a search path may change without a
client seeing it, by a function or a pooler. What is asked here is remembered for a minute.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._statements import plain_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ._look import Asking
    from ._position import Rows

#: How long it is remembered: others may change the schema.
FRESH_S = 60.0
#: How many names of functions are remembered.
_MOST = 1024
#: What PostgreSQL made itself has a smaller object identifier.
_OWN = "p.oid >= 16384"
#: Functions of the server's own that are no volatile ones and read whatever a text names.
_READS_ALL = "p.proname ~ '_to_xml'"
#: What may write and does not look like it, each with its kind. ``call``: functions of the
#: application's with the name of one of the server's, or with a word of the grammar. ``word``:
#: functions that an attribute of a row may stand for (``t.f``), and relations and types that use a
#: function of the application's: by a view, a policy, a condition of a domain, and through each
#: other. ``any``: operators and casts do, which have no name in a statement. What depends on what
#: is the server's own word (pg_depend). Functions in C are an extension's there.
_WRITING = """
WITH RECURSIVE own AS (
  SELECT p.oid, p.proname, p.prolang, p.proargtypes FROM pg_proc p
  JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE {own} AND p.prorettype <> 'trigger'::regtype AND lower(p.proname) NOT IN ({readonly})
  AND lower(n.nspname || '.' || p.proname) NOT IN ({readonly})
), spread(class, oid) AS (
  SELECT 'pg_proc'::regclass::oid, o.oid FROM own o JOIN pg_language l ON l.oid = o.prolang
  WHERE l.lanname NOT IN ('c', 'internal')
  UNION SELECT e.class, e.oid FROM spread s CROSS JOIN LATERAL (
    SELECT d.classid AS class, d.objid AS oid FROM pg_depend d
    WHERE d.refclassid = s.class AND d.refobjid = s.oid AND d.classid IN (
      'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_cast'::regclass, 'pg_amproc'::regclass,
      'pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_constraint'::regclass,
      'pg_type'::regclass, 'pg_class'::regclass)
    UNION ALL SELECT 'pg_class'::regclass, r.ev_class FROM pg_rewrite r
    WHERE s.class = 'pg_rewrite'::regclass AND r.oid = s.oid
    UNION ALL SELECT 'pg_class'::regclass, p.polrelid FROM pg_policy p
    WHERE s.class = 'pg_policy'::regclass AND p.oid = s.oid
    UNION ALL SELECT 'pg_type'::regclass, c.contypid FROM pg_constraint c
    WHERE s.class = 'pg_constraint'::regclass AND c.oid = s.oid AND c.contypid <> 0
    UNION ALL SELECT 'pg_type'::regclass, c.reltype FROM pg_class c
    WHERE s.class = 'pg_class'::regclass AND c.oid = s.oid AND c.reltype <> 0
  ) e
)
SELECT 'call' AS kind, lower(o.proname) AS name FROM own o
WHERE o.proname IN (SELECT p.proname FROM pg_proc p WHERE NOT {own})
OR o.proname IN (SELECT k.word FROM pg_get_keywords() k)
UNION SELECT 'word', lower(o.proname) FROM own o JOIN pg_type t ON t.oid = o.proargtypes[0]
WHERE t.typtype IN ('c', 'd', 'p')
UNION SELECT 'word', lower(c.relname) FROM spread s JOIN pg_class c ON c.oid = s.oid
WHERE s.class = 'pg_class'::regclass AND c.relkind NOT IN ('i', 'I', 't')
UNION SELECT 'word', lower(t.typname) FROM spread s JOIN pg_type t ON t.oid = s.oid
WHERE s.class = 'pg_type'::regclass
UNION SELECT 'any', '' FROM spread s
WHERE s.class IN ('pg_operator'::regclass, 'pg_cast'::regclass, 'pg_amproc'::regclass)
"""
#: What clients take for a question: it begins as one.
_ROWS = "SELECT q.kind, q.name FROM ({}) AS q"
#: Which of some names are of functions that may write. A name of none calls nothing, in a statement
#: that succeeded: it is a type, or that of columns.
_FUNCTIONS = (
    "SELECT DISTINCT p.proname AS name FROM pg_proc p WHERE p.proname IN ({names})"
    " AND ({own} OR p.provolatile = 'v' OR {reads_all})"
)


@dataclass(frozen=True)
class Writing:
    """What may write in a database, and does not look like it.

    Attributes:
        everything: whether no name in a statement says so.
        words: finds names that may stand anywhere, in a text in small letters; None for none.
        calls: finds names that may stand before a parenthesis; None for none.
    """

    everything: bool
    words: re.Pattern[str] | None
    calls: re.Pattern[str] | None

    @classmethod
    def of(cls, rows: Rows) -> Writing:
        """From the rows of the question."""
        names: dict[str, set[str]] = {"any": set(), "call": set(), "word": set()}
        for row in rows:
            names[row["kind"] or "any"].add(row["name"] or "")
        return cls(
            bool(names["any"]),
            _finding(names["word"], r"(?![\w$\x80-\U0010ffff])"),
            _finding(names["call"], r"\s*\("),
        )


def _finding(names: Iterable[str], end: str) -> re.Pattern[str] | None:
    """A pattern that finds one of *names*, before *end*; none that a schema qualifies if called."""
    found = "|".join(re.escape(name.replace('"', '""')) for name in sorted(names))
    before = r"[\w$.\x80-\U0010ffff]" if end.endswith("(") else r"[\w$\x80-\U0010ffff]"
    return re.compile(f"(?<!{before})(?:{found}){end}") if found else None


class Catalogue:
    """What is known of one database; for all of a client's connections to it. Thread-safe.

    Attributes:
        changes: how often the schema was seen to change.
    """

    def __init__(self, readonly: Collection[str]) -> None:
        """Knows the functions of the application's that are *readonly*, in small letters."""
        self._readonly = readonly
        self.changes = 0
        self._writing: tuple[float, Writing] | None = None
        self._functions: dict[str, tuple[float, bool]] = {}

    def forget(self) -> None:
        """The schema changes, or has changed."""
        self.changes += 1
        self._writing, self._functions = None, {}

    def may_write(self, sql: str, functions: Collection[str]) -> bool | None:
        """Whether *sql*, which only reads by its words, may write; None where that is unknown.

        Args:
            sql: one or more statements.
            functions: what it calls that may write, for all that its text tells.
        """
        asks = False
        for name in functions:
            may_write = self.calls(name)
            if may_write:
                return True
            asks = asks or may_write is None
        known = self._writing
        if known is None or known[0] < time.monotonic() - FRESH_S:
            return None
        writing = known[1]
        if writing.everything:
            return True
        if writing.words is not None:
            text = sql.lower()
            if writing.words.search(text) or 'u&"' in text:  # Names may be written in escapes.
                return True
        if writing.calls is not None and writing.calls.search(plain_of(sql).lower()):
            return True
        return None if asks else False

    def calls(self, name: str) -> bool | None:
        """Whether the function *name* may write; None where that is unknown."""
        return _verdict(self._functions.get(name), name, time.monotonic() - FRESH_S)

    def ask(self, functions: Collection[str]) -> Asking[None]:
        """Learn what is unknown, with these *functions*.

        Raises:
            Refused: this user may not see it.
        """
        asked_s, changes = time.monotonic(), self.changes
        known = self._writing
        if known is None or known[0] < asked_s - FRESH_S:
            rows = yield writing_sql(self._readonly)
            known = asked_s, Writing.of(rows)
        learnt: dict[str, tuple[float, bool]] = {}
        if names := [name for name in functions if self.calls(name) is None]:
            rows = yield functions_sql(names)
            may_write = {row["name"] for row in rows}
            learnt = {name: (asked_s, _last(name) in may_write) for name in names}
        if changes == self.changes:  # Else what was seen may be older than the change.
            self._writing = known
            kept = self._functions if len(self._functions) + len(learnt) <= _MOST else {}
            self._functions = {**kept, **learnt}


def writing_sql(readonly: Collection[str]) -> str:
    """The question by what a read may write, but for functions that are *readonly*."""
    names = ", ".join("'{}'".format(name.replace("'", "''")) for name in ("", *sorted(readonly)))
    sql = " ".join(_WRITING.split()).format(own=_OWN, readonly=names)
    return _ROWS.format(sql)


def functions_sql(names: Iterable[str]) -> str:
    """The question which functions of these *names* may write."""
    listed = ", ".join(sorted({f"'{_last(name)}'::name" for name in names}))
    return _FUNCTIONS.format(names=listed, own=_OWN, reads_all=_READS_ALL)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _verdict(known: tuple[float, bool] | None, name: str, old_s: float) -> bool | None:
    """Whether the function *name* may write; one in quotes, or of other letters, is not asked."""
    last = _last(name)
    if '"' in last or not last.isascii():
        return True
    return None if known is None or known[0] < old_s else known[1]
