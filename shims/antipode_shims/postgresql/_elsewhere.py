"""What a session may write that is in no transaction of its own: at other servers, by extensions.

dblink's functions commit at once, whatever becomes of the session's transaction; a foreign table is
written with its commit. Neither gives the transaction an id. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode_shims._sql.texts import LONGEST_KEPT, Kept

from ._hidden import unhidden, valueless

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ._position import Rows

#: How much of a text is searched for what it changes.
_HEAD = 10_000
_NAME = r'(?:"(?:[^"]|"")+"|[\w$\x80-\U0010ffff]+)'
_TARGET = re.compile(
    r"\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|UPDATE|COPY|TRUNCATE(?:\s+TABLE)?)"
    rf"\s+(?:ONLY\s+)?({_NAME}(?:\s*\.\s*{_NAME})?)",
    re.IGNORECASE,
)
#: Functions of dblink that send a statement to another server.
DBLINK = frozenset(["dblink", "dblink_exec", "dblink_send_query"])
#: How texts begin that `dblink` sends: those that only read, and others.
_READS = re.compile(r"'\s*(?:SELECT|TABLE|VALUES)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"'\s*(?:INSERT|UPDATE|DELETE|MERGE|CALL|DO|CREATE|DROP|ALTER|TRUNCATE)\b", re.IGNORECASE
)
#: Names of foreign tables, of their parents and of views of these, and whether they lie on this
#: server; an empty name where functions of dblink are there.
ELSEWHERE = (
    "WITH RECURSIVE foreigners AS (SELECT f.ftrelid AS oid,"
    " coalesce((SELECT substr(o, 6) FROM unnest(s.srvoptions) AS o WHERE o LIKE 'port=%'), '5432')"
    " = current_setting('port') AND coalesce((SELECT substr(o, 6) FROM unnest(s.srvoptions) AS o"
    " WHERE o LIKE 'host=%'), '') IN ('', 'localhost', '127.0.0.1', '::1',"
    " coalesce(host(inet_server_addr()), '')) AS here"
    " FROM pg_foreign_table f JOIN pg_foreign_server s ON s.oid = f.ftserver),"
    " spread AS (SELECT oid, here FROM foreigners UNION SELECT p.oid, s.here FROM spread s"
    " JOIN LATERAL (SELECT i.inhparent AS oid FROM pg_inherits i WHERE i.inhrelid = s.oid"
    " UNION ALL SELECT r.ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid"
    " WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass"
    " AND d.refobjid = s.oid AND r.ev_class <> s.oid) AS p ON true)"
    " SELECT lower(c.relname::text) AS name, s.here FROM spread s JOIN pg_class c ON c.oid = s.oid"
    " UNION ALL SELECT '', true WHERE EXISTS (SELECT FROM pg_proc"
    " WHERE proname = 'dblink_exec' AND probin LIKE '%dblink')"
)


class _Targets(Kept[str, frozenset[str]]):
    """The names of the tables that texts change, without their schemas, in small letters."""

    def __missing__(self, sql: str) -> frozenset[str]:
        names = (match[1] for match in _TARGET.finditer(sql[:_HEAD]))
        found = frozenset(_plain(name) for name in names)
        has_values = sql != valueless(unhidden(sql, _blank) or "")
        return found if has_values or len(sql) > LONGEST_KEPT else self.keep(sql, found)


#: By text.
TARGETS = _Targets()


def _blank(_: str) -> str:
    return ""


def _plain(name: str) -> str:
    last = name.rpartition(".")[2].strip() if '"' not in name else name
    if last.endswith('"'):
        last = re.findall(_NAME, last)[-1][1:-1].replace('""', '"')
    return last.lower()


def sends_by_dblink(sql: str, called: Collection[str]) -> bool:
    """Whether a text that has *called* functions may have written at another server."""
    used = {name.rpartition(".")[2] for name in called} & DBLINK
    if used != {"dblink"}:
        return bool(used)
    return not _READS.search(sql) or bool(_CHANGES.search(sql))


@dataclass(frozen=True)
class Elsewhere:
    """What a database may write without a transaction of its own.

    Attributes:
        tables: names that are written elsewhere, and whether all of these lie on this server.
        by_functions: whether functions may have written without an id.
    """

    tables: Mapping[str, bool] = field(default_factory=dict)
    by_functions: bool = False

    def writes_away(self, names: Collection[str]) -> bool:
        """Whether another server is written where tables with these *names* are changed."""
        tables = self.tables
        return bool(tables) and any(tables.get(name) is False for name in names)

    def is_among(self, names: Collection[str]) -> bool:
        """Whether what is changed under these *names* gives no id to its transaction."""
        return any(name in self.tables for name in names)


def elsewhere_of(rows: Rows) -> Elsewhere:
    """What the answer to `ELSEWHERE` says."""
    tables: dict[str, bool] = {}
    for row in rows:
        if name := row["name"]:
            tables[name] = tables.get(name, True) and row["here"] == "t"
    return Elsewhere(tables, any(not row["name"] for row in rows))
