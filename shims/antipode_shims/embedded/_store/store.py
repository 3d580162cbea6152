"""The embedded store: one region's SQLite file, whose log is its data."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from antipode import Status
from antipode.shim import SYSTEM_CLOCK
from antipode_shims.embedded._promises import fulfilment, judged, record_of

from .file import File, NotPrimary, StoreUnavailable, boot_id, checked_path

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterator
    from os import PathLike
    from pathlib import Path

    from typing_extensions import Self

    from antipode import Promise

Role = Literal["primary", "replica"]

_STATE = """
SELECT n.id, n.generation, n.role, n.boot, h.history, h.first_position,
       (SELECT coalesce(max(position), 0) FROM log)
FROM node n LEFT JOIN histories h ORDER BY h.number
"""
_ENTRY = """
SELECT position, key, value, lineage, written_hour, committed_ns,
       (SELECT history FROM histories WHERE first_position <= log.position
        ORDER BY number DESC LIMIT 1)
FROM log
"""
_WRITTEN = "record IS NOT 'abandoned'"
_GET = f"{_ENTRY} WHERE key = ? AND {_WRITTEN} ORDER BY position DESC LIMIT 1"
_AFTER = f"{_ENTRY} WHERE position > ? AND {_WRITTEN} ORDER BY position LIMIT ?"
_INSERT = (
    "INSERT INTO log(committed_ns, written_hour, key, value, lineage, promise, record) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
#: The id of a history: random, so that no other store has a log of that name.
HISTORY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
#: More than any position.
_BEYOND = 2**63
_FOLLOWED_AT_ONCE = 500
_FOLLOW_LEAST_S = 0.0005
_FOLLOW_MOST_S = 0.002


class Token(NamedTuple):
    """What the store issues for a write: a position in one history."""

    history: str
    position: int


class Entry(NamedTuple):
    """One write, as the log has it.

    Attributes:
        position: its place in the log; positions go on counting across histories.
        key: what was written.
        value: the bytes; None for a delete.
        lineage: the text of the lineage stored with it; None when there is none.
        written_hour: the Unix hour in which the primary committed it.
        committed_ns: when the primary committed it, in nanoseconds of CLOCK_MONOTONIC.
        history: the id of the history in which it was written.
    """

    position: int
    key: str
    value: bytes | None
    lineage: str | None
    written_hour: int
    committed_ns: int
    history: str


@dataclass(frozen=True, slots=True)
class State:
    """What one region's file had at one moment.

    Attributes:
        node: the id of the file and how often it was seeded.
        role: whether it takes writes.
        boot: the boot of the machine under which its current history runs.
        histories: the chain of histories with the first position of each, the current one last;
            each earlier one ended where the next begins. Empty in a replica never seeded.
        position: of the last entry; 0 when there is none.
    """

    node: str
    role: Role
    boot: str
    histories: tuple[tuple[str, int], ...]
    position: int

    @property
    def incarnation(self) -> str:
        """Changes whenever the file's history may have: at promotion and at seeding."""
        return f"{self.histories[-1][0] if self.histories else ''}/{self.node}"

    def ends_of(self, history: str) -> int | None:
        """The last position that this file's chain has, or will ever have, of *history*.

        None when the chain does not know it; a number beyond all positions for the current one.
        """
        next_first = _BEYOND
        for known, first in reversed(self.histories):
            if known == history:
                return next_first - 1
            next_first = first
        return None

    def judge(self, token: Token) -> Status:
        """Whether this file shows the write *token*.

        Exact for every history of the chain, for a history is never re-issued and its end is
        recorded with the promotion that ended it. A replica never seeded has nothing yet.
        """
        if not self.histories:
            return Status.NOT_YET
        end = self.ends_of(token.history)
        if end is None:
            return Status.UNKNOWN_LOG
        if token.position > end:
            return Status.LOST
        return Status.VISIBLE if token.position <= self.position else Status.NOT_YET


class EmbeddedStore:
    """One region's file. Thread-safe; any number of processes may use the same file.

    Keys are texts, values bytes. A write is one transaction: value, stored lineage and log
    position. Nothing is pruned: the file grows with the number of writes.
    """

    def __init__(self, path: str | PathLike[str], *, create: Role | None = None) -> None:
        """Use the file at *path*.

        Args:
            path: the region's file.
            create: make the file, if there is none, in this role.

        Raises:
            ConfigurationError: no file can be at *path*.
            StoreUnavailable: it could not be created.
        """
        self.path: Path = checked_path(path)
        self._reader = File(self.path)
        self._writer = File(self.path, create=create is not None)
        if create is not None:
            with self._writer.transaction() as connection:
                _found(connection, create)

    def state(self) -> State:
        """What the file has now. Costs some ten microseconds.

        Raises:
            StoreUnavailable: it is missing, locked, corrupt or no embedded store.
        """
        with self._reader.connection() as connection:
            return read_state(connection, self.path)

    def position(self) -> int:
        """The position of the last entry; 0 when there is none.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        return self.state().position

    def version(self) -> tuple[int, int]:
        """What changes with every commit to the file, and when the path gets another file.

        Two microseconds' work, for whoever waits for a change.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        return self._reader.version()

    def put(
        self,
        key: str,
        value: bytes | None,
        *,
        lineage: str | None = None,
        fulfils: Promise | None = None,
        committing: Callable[[], None] | None = None,
    ) -> Token:
        """Write *value*, replacing the whole of what *key* had; None deletes it.

        Args:
            key: what to write.
            value: the bytes; None leaves a tombstone, which keeps *lineage*.
            lineage: a text to store with it.
            fulfils: a promise whose fulfilment is recorded with it; a second time changes nothing.
            committing: called just before the commit: whatever fails later is in doubt.

        Raises:
            TypeError: *key* is no text, or *value* no bytes.
            PromiseAbandoned: *fulfils* was abandoned; nothing is written.
            NotPrimary: the file is a replica's.
            StoreUnavailable: as :meth:`state`, or the disk is full.
        """
        check_types(key, value)
        with self._writer.transaction(committing=committing) as connection:
            history = _writable_history(connection, self.path)
            row = time.monotonic_ns(), SYSTEM_CLOCK.hour(), key, value, lineage
            kept = fulfilment(connection, fulfils)
            position = connection.execute(_INSERT, (*row, *kept)).lastrowid
        assert position is not None  # noqa: S101 - an INSERT has a row
        return Token(history, position)

    def abandon(self, promise: Promise) -> bool:
        """Record that *promise* is abandoned, unless it has a record; whether it is abandoned.

        Raises:
            NotPrimary: the file is a replica's.
            StoreUnavailable: as :meth:`put`.
        """
        with self._writer.transaction() as connection:
            _writable_history(connection, self.path)
            if (record := record_of(connection, promise)) is not None:
                return record == "abandoned"
            row = time.monotonic_ns(), SYSTEM_CLOCK.hour(), "", None, None
            connection.execute(_INSERT, (*row, promise.id, "abandoned"))
            return True

    def records(self, promises: Collection[Promise]) -> tuple[State, dict[Promise, Status]]:
        """What the file has, and what it shows of *promises* at that very moment.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._reader.snapshot() as connection:
            state = read_state(connection, self.path)
            return state, judged(connection, promises)

    def delete(self, key: str, *, lineage: str | None = None) -> Token:
        """Delete *key*, leaving a tombstone; a key that is not there gets one, too.

        Raises:
            NotPrimary: the file is a replica's.
            StoreUnavailable: as :meth:`put`.
        """
        return self.put(key, None, lineage=lineage)

    def get(self, key: str) -> Entry | None:
        """The newest entry of *key*, which may be a tombstone; None if it was never written.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._reader.connection() as connection:
            row = connection.execute(_GET, (key,)).fetchone()
        return None if row is None else Entry(*row)

    def get_at(
        self, key: str, promises: Collection[Promise] = ()
    ) -> tuple[State, dict[Promise, Status], Entry | None]:
        """As :meth:`get`, with what the file had at the very moment of the read.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._reader.snapshot() as connection:
            state = read_state(connection, self.path)
            shown = judged(connection, promises)
            row = connection.execute(_GET, (key,)).fetchone()
        return state, shown, None if row is None else Entry(*row)

    def entries(self, after: int, *, most: int = _FOLLOWED_AT_ONCE) -> list[Entry]:
        """Up to *most* entries after position *after*, in order.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._reader.connection() as connection:
            return [Entry(*row) for row in connection.execute(_AFTER, (after, most))]

    def follow(self, after: int = 0, *, idle_s: float | None = None) -> Iterator[Entry]:
        """The entries after position *after*, then each new one as it comes: a queue.

        Where the file is seeded again it goes on after the last entry that both old and new
        history have, so that an entry may come twice but none is passed over.

        Args:
            after: the position to go on after; 0 for all, ``position()`` for new ones only.
            idle_s: end after so many seconds without an entry; None: never.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        state = self.state()
        last = Token(state.histories[-1][0] if state.histories else "", after)
        nap_s = _FOLLOW_LEAST_S
        quiet_since_s = time.monotonic()
        while True:
            version = self.version()
            if (now := self.state()).incarnation != state.incarnation:
                last = Token(last.history, min(last.position, now.ends_of(last.history) or 0))
                state = now
            while found := self.entries(last.position):
                for entry in found:
                    last = Token(entry.history, entry.position)
                    yield entry
                nap_s, quiet_since_s = _FOLLOW_LEAST_S, time.monotonic()
            while self.version() == version:
                if idle_s is not None and time.monotonic() - quiet_since_s >= idle_s:
                    return
                time.sleep(nap_s)
                nap_s = min(nap_s * 1.02, _FOLLOW_MOST_S)

    def promote(self) -> str:
        """Make this file the primary: a new history branches off here. Its id.

        Positions go on from the last entry that is here. What the old primary wrote after it
        stays in the old history, which this chain records as ended. Nothing changes, and the
        current history is returned, where the file is the primary already.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._writer.transaction() as connection:
            state = read_state(connection, self.path)
            if state.role == "primary":
                return state.histories[-1][0]
            connection.execute("UPDATE node SET role = 'primary', boot = ?", (_boot(),))
            return _branch(connection, state.position)

    def demote(self) -> None:
        """Make this file a replica: it refuses writes from now on.

        Raises:
            StoreUnavailable: as :meth:`state`.
        """
        with self._writer.transaction() as connection:
            connection.execute("UPDATE node SET role = 'replica'")

    def close(self) -> None:
        """Release the connections. Idempotent."""
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_state(connection: sqlite3.Connection, path: Path) -> State:
    """What the file of *connection* has, in one statement: a snapshot of one moment.

    Raises:
        StoreUnavailable: there is no node in it.
    """
    rows = connection.execute(_STATE).fetchall()
    if not rows:
        msg = f"{str(path)!r} is no embedded store, or is just being created"
        raise StoreUnavailable(msg)
    node, generation, role, boot, *_, position = rows[0]
    histories = tuple((row[4], row[5]) for row in rows if row[4] is not None)
    return State(f"{node}.{generation}", role, boot, histories, position)


def check_types(key: object, value: object, *, absent: bool = True) -> None:
    """SQLite would store anything, and give it back as something else.

    Raises:
        TypeError: *key* is no text, or *value* no bytes nor, where allowed, None.
    """
    if not isinstance(key, str) or not (isinstance(value, bytes) or (absent and value is None)):
        key_type, value_type = type(key).__name__, type(value).__name__
        msg = f"key must be a str and value bytes, not {key_type} and {value_type}"
        raise TypeError(msg)


@lru_cache(maxsize=1)
def _boot() -> str:
    return boot_id()


def _found(connection: sqlite3.Connection, role: Role) -> None:
    """Give a new file its node, and a primary its first history."""
    added = connection.execute(
        "INSERT OR IGNORE INTO node VALUES (1, ?, 0, ?, ?)", (uuid.uuid4().hex, role, _boot())
    )
    if added.rowcount and role == "primary":
        _branch(connection, 0)


def _branch(connection: sqlite3.Connection, position: int) -> str:
    """Begin a new history after *position*; its id."""
    history = str(uuid.uuid4())
    connection.execute(
        "INSERT INTO histories(history, first_position, started_ns) VALUES (?, ?, ?)",
        (history, position + 1, time.monotonic_ns()),
    )
    return history


def _writable_history(connection: sqlite3.Connection, path: Path) -> str:
    """The history that the next write belongs to.

    A restart of the machine may have cost the last writes: positions after it must not be taken
    for those, so a new boot starts a new history.

    Raises:
        NotPrimary: the file is a replica's.
    """
    state = read_state(connection, path)
    if state.role != "primary":
        msg = f"{str(path)!r} is a replica's file: write to the primary's, or promote this one"
        raise NotPrimary(msg)
    if state.boot == _boot():
        return state.histories[-1][0]
    connection.execute("UPDATE node SET boot = ?", (_boot(),))
    return _branch(connection, state.position)
