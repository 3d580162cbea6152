"""The steps of replication between two files, without threads: compare, fetch, apply, wipe."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import ConfigurationError

from .file import File
from .store import read_state

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from .store import State

_logger = logging.getLogger("antipode")

#: Most entries that are held for their time to come.
_AHEAD = 2_000
#: Most entries that are applied in one transaction.
_AT_ONCE = 500
_ROWS = (
    "SELECT position, committed_ns, written_hour, key, value, lineage, promise, record FROM log "
    "WHERE position > ? ORDER BY position LIMIT ?"
)
_CHAIN = (
    "SELECT number, history, first_position, started_ns FROM histories "
    "WHERE number > ? AND first_position <= ? ORDER BY number"
)
_ADD_ROW = (
    "INSERT INTO log(position, committed_ns, written_hour, key, value, lineage, promise, record) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_HISTORY = "INSERT INTO histories VALUES (?, ?, ?, ?)"
_EVER = 2**62


class Promoted(ConfigurationError):  # noqa: N818 - a turn of events
    """The target takes writes of its own now: nothing may be applied to it any more."""


class _Event(NamedTuple):
    """Something of the source's log that is to be applied.

    Attributes:
        since_ns: since when it counts, on CLOCK_MONOTONIC: the commit.
        statement: what applies it.
        row: the statement's parameters.
    """

    since_ns: int
    statement: str
    row: tuple[Any, ...]


class Link:
    """A source's and a target's file, and what is on its way between them. Not thread-safe."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source = File(source)
        self.target = File(target)
        self._events: deque[_Event] = deque()
        self.forget()

    def forget(self) -> None:
        """Drop what is on its way: the next fetch compares the two files again."""
        self._events.clear()
        self._node: str | None = None
        self._source_node: str | None = None
        self._version: tuple[int, int] | None = None
        self._position = self._number = 0

    @property
    def next_ns(self) -> int | None:
        """Since when the next entry to be applied counts; None when none was fetched."""
        return self._events[0].since_ns if self._events else None

    def fetch(self) -> bool:
        """Adopt what is new at the source; whether there was anything.

        Raises:
            StoreUnavailable: a file is not usable now.
            Promoted: the target is a primary.
        """
        if self._node is None:
            self._join()
        if len(self._events) >= _AHEAD:
            return False
        version = self.source.version()
        if version == self._version:
            return False
        with self.source.snapshot() as connection:
            if read_state(connection, self.source.path).node != self._source_node:
                self.forget()  # Another file, or seeded again: the next fetch compares.
                return True
            rows = connection.execute(_ROWS, (self._position, _AHEAD)).fetchall()
            full = len(rows) == _AHEAD
            reach = rows[-1][0] if full else _EVER
            chain = connection.execute(_CHAIN, (self._number, reach)).fetchall()
        self._version = None if full else version
        self._take(rows, chain)
        return bool(rows or chain)

    def _take(self, rows: list[tuple[Any, ...]], chain: list[tuple[Any, ...]]) -> None:
        """Queue entries and beginnings of histories, each beginning before its first entry."""
        now_ns = time.monotonic_ns()
        begins = deque(chain)
        for row in rows:
            while begins and begins[0][2] <= row[0]:
                beginning = begins.popleft()
                self._events.append(_event(beginning[3], now_ns, _ADD_HISTORY, beginning))
            self._events.append(_event(row[1], now_ns, _ADD_ROW, row))
        self._events.extend(_event(row[3], now_ns, _ADD_HISTORY, row) for row in begins)
        if rows:
            self._position = rows[-1][0]
        if chain:
            self._number = chain[-1][0]

    def apply(self, until_ns: int) -> bool:
        """Apply what counts since *until_ns* or before, in one transaction; whether any did.

        Raises:
            StoreUnavailable: a file is not usable now.
            Promoted: the target is a primary.
        """
        due: list[_Event] = []
        for event in self._events:
            if event.since_ns > until_ns or len(due) == _AT_ONCE:
                break
            due.append(event)
        if not due:
            return False
        with self.target.transaction() as connection:
            state = _replica_state(connection, self.target)
            if state.node != self._node:
                self.forget()  # Seeded by somebody else meanwhile.
                return True
            for event in due:
                connection.execute(event.statement, event.row)
        for _ in due:
            self._events.popleft()
        return True

    def _join(self) -> None:
        """Find where the target stands; seed it where it is new or on another branch."""
        with self.source.connection() as connection:
            source = read_state(connection, self.source.path)
        with self.target.connection() as connection:
            target = _replica_state(connection, self.target)
        if not _follows(target, source):
            if target.histories:
                _logger.warning(
                    "embedded replica %s is on another branch than %s: seeding it again",
                    self.target.path,
                    self.source.path,
                )
            target = self.wipe()
        self._position, self._number = target.position, len(target.histories)
        self._node, self._source_node = target.node, source.node

    def wipe(self, *, chain: bool = True) -> State:
        """Throw the target's entries away; what it has then.

        Args:
            chain: give it the source's chain of histories at once, so that it can judge tokens;
                without, it counts as never seeded until the next fetch.

        Raises:
            StoreUnavailable: a file is not usable now.
            Promoted: the target is a primary.
        """
        histories: list[tuple[Any, ...]] = []
        if chain:
            with self.source.connection() as connection:
                histories = connection.execute(_CHAIN, (0, _EVER)).fetchall()
        self.forget()
        with self.target.transaction() as connection:
            _replica_state(connection, self.target)
            connection.execute("DELETE FROM log")
            connection.execute("DELETE FROM histories")
            connection.executemany(_ADD_HISTORY, histories)
            connection.execute("UPDATE node SET generation = generation + 1")
            return read_state(connection, self.target.path)

    def close(self) -> None:
        """Release both files. Idempotent."""
        self.source.close()
        self.target.close()


def _event(since: int, now_ns: int, statement: str, row: tuple[Any, ...]) -> _Event:
    """A commit of an earlier boot counts from now: its clock was another one."""
    return _Event(min(since, now_ns), statement, row)


def _replica_state(connection: sqlite3.Connection, file: File) -> State:
    """What a replica has.

    Raises:
        Promoted: it is none any more.
    """
    state = read_state(connection, file.path)
    if state.role != "replica":
        msg = f"{str(file.path)!r} is a primary's file: nothing can be replicated to it"
        raise Promoted(msg)
    return state


def _follows(target: State, source: State) -> bool:
    """Whether everything that the target has is of the source's chain, too."""
    if not target.histories or target.histories != source.histories[: len(target.histories)]:
        return False
    end = source.ends_of(target.histories[-1][0])
    return end is not None and target.position <= end
