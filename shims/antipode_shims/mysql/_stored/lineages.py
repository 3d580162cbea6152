"""Lineages stored with rows: what connections with ``lineage="beside"`` are handed. No I/O.

Before a statement that may write to such a table the session's variables get the lineage; a
statement that shows its rows is rewritten to show their lineages, too, which are taken out of the
reply's packets before the client reads them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from antipode import ConfigurationError, current
from antipode.shim import (
    config,
    count,
    defer_read,
    lineage_not_read,
    record_read,
    stored_lineage,
    stored_text,
)
from antipode_shims._sql.superseded import superseded
from antipode_shims.mysql._clients.cover import Cover
from antipode_shims.mysql._clients.views import FRESH_S
from antipode_shims.mysql._position.flavor import text
from antipode_shims.mysql._position.ok_packet import AUTOCOMMIT, IN_TRANSACTION
from antipode_shims.mysql._statements import (
    CALLS,
    DDL,
    MANY,
    OPAQUE,
    READS,
    WRITES,
    meaning,
    reads,
)

from .migration import missing, primary_key, showing, sided, tombstones
from .rewrite import mention, tables_of
from .triggers import COLUMN, LINEAGE, PASSED, SEPARATOR, UNTIL

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

    from antipode import Lineage
    from antipode_shims.mysql._position.flavor import Asking, Facts, Rows
    from antipode_shims.mysql._shim.base import BaseMySQLShim

    from .migration import Literal

_NULL = 0xFB
_WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
#: How many different texts one reply's rows are distinguished by.
_MOST_TEXTS = 4096


class StoredLineages:
    """The tables of one shim whose rows have lineages.

    Attributes:
        tables: their names.
        keys: the columns of their primary keys, and the character sets of these, if any.
        sides: of those whose lineages lie in side tables, the columns of their primary keys.
    """

    def __init__(self, shim: BaseMySQLShim, tables: tuple[str, ...]) -> None:
        """Know the names; no server was asked yet."""
        self._shim = shim
        self.tables = tables_of(tables)
        self.keys: dict[str, Mapping[str, str]] = {}
        self.sides: dict[str, tuple[str, ...]] = {}
        self._checked: set[str] = set()
        self._viewed_s = -FRESH_S
        self._viewed: re.Pattern[bytes] | None = None

    def views_due(self, status: int) -> bool:
        """Whether it is to be asked which views show their rows, which takes a snapshot."""
        return time.monotonic() - self._viewed_s >= FRESH_S and not status & IN_TRANSACTION

    def check_views(self) -> Asking[None]:
        """Find out which views show their rows."""
        self._viewed_s = time.monotonic()
        views = yield from showing(self.tables.names)
        self._viewed = mention(views) if views else None

    def forget_views(self) -> None:
        """One may have been made."""
        self._viewed_s = -FRESH_S

    def mentioned(self, sql: bytes) -> bool:
        """Whether a statement may be about the tables, or about a view that shows their rows."""
        viewed = self._viewed
        return self.tables.mentioned(sql) or (viewed is not None and viewed.search(sql) is not None)

    def connection(self) -> RowLineages:
        """What one connection has to do for them."""
        return RowLineages(self._shim, self)

    def check_tables(self, facts: Facts) -> Asking[None]:
        """Make sure that the tables can keep lineages, once for each server.

        Raises:
            ConfigurationError: some cannot; says what to run.
        """
        if facts.server in self._checked:
            return
        without = yield from missing(self.tables.names)
        having = yield from sided(without)
        for table in self.tables.names:
            self.keys[table] = yield from primary_key(table)
        self.sides = {table: tuple(self.keys[table]) for table in having if self.keys[table]}
        if lacking := [table for table in without if table not in self.sides]:
            names, datastore = " ".join(lacking), self._shim.datastore
            raise ConfigurationError(
                f"{datastore!r} cannot store lineages with {', '.join(lacking)}: it lacks "
                f"the column {COLUMN!r}, or a side table that this user may read. The library "
                "changes no schema on its own: let "
                f"`python -m antipode_shims.mysql migration {names}` print what to run"
            )
        self._checked.add(facts.server)


class RowLineages:
    """What one connection has to do for the lineages of rows.

    Attributes:
        columns: how many columns were appended to the statement in flight.
        named: whether the statement in flight names one of the tables.
        due: whether the statement in flight reads, and its position is to be sampled after it.
        cover: samples what the reads so far may have seen; None where nothing is to be sampled.
    """

    def __init__(self, shim: BaseMySQLShim, stored: StoredLineages) -> None:
        """Know its tables; the session's variables are not set yet."""
        self._stored = stored
        self._tables = stored.tables
        self._shim = shim
        self._set = ""
        self._values = 0
        self._texts: set[bytes] = set()
        self._sought: list[tuple[str, list[tuple[Literal, ...]]]] = []
        self.columns = 0
        self.named = False
        self.due = False
        self.cover: Cover | None = None

    def check_tables(self, facts: Facts) -> Asking[None]:
        """As :meth:`StoredLineages.check_tables`."""
        return self._stored.check_tables(facts)

    def views_due(self, status: int) -> bool:
        """As :meth:`StoredLineages.views_due`."""
        return self._stored.views_due(status)

    def check_views(self) -> Asking[None]:
        """As :meth:`StoredLineages.check_views`."""
        return self._stored.check_views()

    def renewed(self) -> None:
        """The session starts again: its variables are gone, and what it read cannot be asked."""
        self._set = ""
        cover, self.cover = self.cover, None
        if cover is not None:
            cover.settle(None)

    def lineage(self, found: int, tap: object) -> str:
        """What a statement's rows get; may sample, on the connection of *tap*, as well."""
        return stored_text(current(), within=id(tap)) if found & WRITES else self._set

    def about(self, sql: bytes | str) -> tuple[bytes, int]:
        """A statement, and what it may do to rows that have stored lineages; 0 for nothing.

        What calls something may write where it names no table, and so may, by a trigger, what
        writes elsewhere: while the variables hold a lineage it would be the wrong one.
        """
        raw = sql.encode("utf-8", "replace") if isinstance(sql, str) else bytes(sql)
        found = meaning(raw)
        if reads(raw, found):
            found |= READS
        if found & DDL == DDL:
            self._stored.forget_views()
        self.named = self._stored.mentioned(raw)
        if self.named:
            return raw, found if found & (READS | WRITES) else 0
        calls = found & CALLS or found & OPAQUE == OPAQUE
        return raw, WRITES if calls or (found & WRITES and self.held) else 0

    def setting(self, lineage: str) -> str:
        """What to send so that written rows get *lineage*; nothing where they would."""
        if lineage == self._set:
            return ""
        until = self._shim.clock.hour() + int(config().horizon.total_seconds() // 3600) + 1
        self._set = lineage
        pattern = f"'{found}'" if (found := superseded(lineage)) else "NULL"
        return f"SET {LINEAGE} = '{lineage}', {PASSED} = {pattern}, {UNTIL} = {until}"

    def unset(self) -> None:
        """The variables are not set, or nobody knows."""
        self._set = ""

    @property
    def held(self) -> bool:
        """Whether the session's variables hold a lineage, which later writes would get."""
        return bool(self._set)

    def reading(self, sql: bytes, found: int) -> bytes:
        """The statement with the lineages of its rows, where these can be shown."""
        self._texts.clear()
        if not found & READS:
            return sql
        self.due = self._shim.on_read == "merge"
        sides = self._stored.sides
        rewritten = None if found & (WRITES | MANY) else self._tables.select(sql, sides)
        if rewritten is None:
            lineage_not_read(self._shim.datastore, sql[:40].decode("ascii", "replace"))
            return sql
        self.columns = rewritten.columns
        if self.due:
            self._sought = self._tables.sought(sql, self._stored.keys)
        return rewritten.sql

    def behind_check(self, status: int) -> str:
        """What to send after a check of the tables, which may have opened a snapshot; or nothing.

        Reads of the schema do, where autocommit is off: a read that was held for a position would
        not show it.

        Args:
            status: the server's flags before the check.
        """
        return "" if status & (IN_TRANSACTION | AUTOCOMMIT) else "ROLLBACK"

    def started(self) -> None:
        """A statement is about to be sent that has no lineages yet."""
        self.columns, self._values, self.due = 0, 0, False
        self._sought = []

    def read(self, ask: Callable[[], Lineage | None]) -> None:
        """The application sees what was read; what that may be, *ask* samples later."""
        self.due = False
        if self.cover is None or self.cover.settled:
            self.cover = Cover(self._shim, ask)
        defer_read(self.cover)

    def settle(self) -> None:
        """Sample what was put off, before somebody else gets the connection."""
        if self.cover is not None:
            self.cover()

    def header(self, data: bytes) -> bytes:
        """The packet with the number of a result's columns, as the client should see it."""
        every, _ = _length(data, 0)
        self._values = every - self.columns
        if self._values < _NULL:
            return bytes((self._values,))
        return b"\xfc" + self._values.to_bytes(2, "little")

    def row(self, data: bytes) -> None:
        """Take in the lineages at the end of a row; the client reads no further than its own."""
        self._sought = []
        at = 0
        for _ in range(self._values):
            length, at = _length(data, at)
            at += length
        for _ in range(self.columns):
            if data[at] == _NULL:
                at += 1
                count("companion_absent", self._shim.datastore)
                continue
            length, at = _length(data, at)
            self._found(bytes(data[at : at + length]))
            at += length

    def graves(self) -> list[bytes]:
        """What to ask after a reply that showed no row: for the lineages of deletions."""
        sought, self._sought = self._sought, []
        return [tombstones(table, keys) for table, keys in sought]

    def buried(self, rows: Rows) -> None:
        """What one of these questions was answered with."""
        for row in rows:
            record_read(stored_lineage(self._shim.datastore, text(row["l"])))

    def _found(self, texts: bytes) -> None:
        if texts in self._texts or self._shim.on_read != "merge":
            return
        if len(self._texts) < _MOST_TEXTS:
            self._texts.add(texts)
        for one in texts.split(SEPARATOR.encode()):
            record_read(stored_lineage(self._shim.datastore, one))


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded number and where what it counts begins; nothing for NULL."""
    first = data[at]
    if first < _NULL:
        return first, at + 1
    width = _WIDTHS.get(first, 0)
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
