"""One connection's side of lineages beside the rows of tables of your own. No I/O.

Before a statement that may write to such a table the session's variables get the lineage; a
statement that shows its rows is rewritten to show their lineages, too, which are taken out of the
reply's packets before the client looks at them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode import Lineage, current
from antipode.shim import (
    config,
    count,
    defer_read,
    record_read,
    stored_lineage,
    stored_text,
    unread,
)
from antipode_shims.mysql._position.flavor import text
from antipode_shims.mysql._position.ok_packet import AUTOCOMMIT, IN_TRANSACTION
from antipode_shims.mysql._statements import MANY, READS, WRITES, meaning, reads

from .migration import tombstones
from .superseded import superseded
from .triggers import LINEAGE, PASSED, SEPARATOR, UNTIL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_shims.mysql._position.flavor import Rows
    from antipode_shims.mysql._shim.base import BaseMySQLShim

    from .migration import Literal

_NULL = 0xFB
_WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}
#: How many different texts one reply's rows are told apart by.
_MOST_TEXTS = 4096


class Beside:
    """What one connection has to do for lineages beside rows.

    Attributes:
        columns: how many columns were appended to the statement in flight.
        due: whether the statement in flight reads, and its position is to be sampled behind it.
        cover: samples what the reads so far may have seen; None where nothing is to be sampled.
    """

    def __init__(self, shim: BaseMySQLShim) -> None:
        """Know its tables; the session's variables are not set yet."""
        self._tables = shim.tables
        self._shim = shim
        self._set = ""
        self._values = 0
        self._texts: set[bytes] = set()
        self._sought: list[tuple[str, list[tuple[Literal, ...]]]] = []
        self._gate = threading.Lock()
        self._holder: int | None = None
        self.columns = 0
        self.due = False
        self.cover: Cover | None = None

    def renewed(self) -> None:
        """The session starts anew: its variables are gone, and what it read cannot be asked."""
        self._set = ""
        cover, self.cover = self.cover, None
        if cover is not None:
            cover.settle(None)

    def take(self) -> None:
        """The application is about to use the connection; whoever samples on it ends first."""
        self._gate.acquire()
        self._holder = threading.get_ident()

    def give(self) -> None:
        """The application's reply has come, all of it. Idempotent."""
        if self._holder is not None:
            self._holder = None
            self._gate.release()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A block that uses the connection, as the whole of a command or a part of one."""
        if self._holder == threading.get_ident():
            yield
            return
        self.take()
        try:
            yield
        finally:
            self.give()

    @contextmanager
    def between(self, timeout_s: float) -> Iterator[bool]:
        """A block between two of the application's commands; whether it could be begun in time."""
        own = self._holder == threading.get_ident()  # Its reply is being read: waiting is no use.
        taken = not own and self._gate.acquire(timeout=timeout_s)
        try:
            yield taken
        finally:
            if taken:
                self._gate.release()

    def lineage(self, found: int) -> str:
        """What a statement's rows get; may sample, on this connection as well."""
        return stored_text(current()) if found & WRITES else self._set

    def about(self, sql: bytes | str) -> tuple[bytes, int]:
        """A statement, and what it may do to rows that have lineages beside them; 0 for nothing."""
        raw = sql.encode("utf-8", "replace") if isinstance(sql, str) else bytes(sql)
        found = meaning(raw)
        if reads(raw, found):
            found |= READS
        return raw, found if found & (READS | WRITES) and self._tables.mentioned(raw) else 0

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
        rewritten = None if found & (WRITES | MANY) else self._tables.select(sql, self._shim.sides)
        if rewritten is None:
            unread(self._shim.datastore, sql[:40].decode("ascii", "replace"))
            return sql
        self.columns = rewritten.columns
        if self.due:
            self._sought = self._tables.sought(sql, self._shim.keys)
        return rewritten.sql

    def behind_check(self, status: int) -> str:
        """What to send behind a check of the tables, which may have opened a snapshot; or nothing.

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
        """What to ask behind a reply that showed no row: for the lineages of deletions."""
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


class Cover:
    """What the reads of one connection may have seen, sampled there once, at or after them.

    Thread-safe; called by whoever uses the lineage first, or before the connection is given back.
    """

    def __init__(self, shim: BaseMySQLShim, ask: Callable[[], Lineage | None]) -> None:
        """Sample by *ask*, which gives None where the connection cannot be asked any more."""
        self._shim = shim
        self._ask: Callable[[], Lineage | None] | None = ask
        self._lineage = Lineage()
        self._lock = threading.Lock()

    def __call__(self) -> Lineage:
        """The covering position, or a lineage that says that there is none."""
        with self._lock:
            if self._ask is not None:
                self._settle(self._ask())
            return self._lineage

    def settle(self, lineage: Lineage | None) -> None:
        """What is known by now; None where it cannot be known any more. Only the first counts."""
        with self._lock:
            if self._ask is not None:
                self._settle(lineage)

    def _settle(self, lineage: Lineage | None) -> None:
        self._ask = None
        self._lineage = self._shim.read_at(lineage)

    @property
    def settled(self) -> bool:
        """Whether it was sampled: later reads need another one."""
        return self._ask is None


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded number and where what it counts begins; nothing for NULL."""
    first = data[at]
    if first < _NULL:
        return first, at + 1
    width = _WIDTHS.get(first, 0)
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
