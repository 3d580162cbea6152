"""One region's file: its layout, its connections, and what can go wrong with it."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from antipode import AntipodeError, ConfigurationError
from antipode.shim import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

#: Longest that one statement waits for another process's lock, in seconds.
BUSY_S = 5.0

# The log is the store: a value is the newest log row of its key, a NULL value a tombstone.
# Positions need no AUTOINCREMENT: rows are never removed but by wiping a replica, whose positions
# come from its primary anyway. History n ends where history n+1 begins; the last one is current.
# The record of a promise is part of the row that fulfils it, and travels with it; one that was
# abandoned has a row of its own, which is no value of any key.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS node(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('primary', 'replica')),
    boot TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS histories(
    number INTEGER PRIMARY KEY,
    history TEXT NOT NULL UNIQUE,
    first_position INTEGER NOT NULL,
    started_ns INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS log(
    position INTEGER PRIMARY KEY,
    committed_ns INTEGER NOT NULL,
    written_hour INTEGER NOT NULL,
    key TEXT NOT NULL,
    value BLOB,
    lineage TEXT,
    promise TEXT,
    record TEXT CHECK (record IN ('fulfilled', 'abandoned'))
);
CREATE INDEX IF NOT EXISTS log_key ON log(key);
"""
#: For files that were made before there were promises, too.
_PROMISES = """
CREATE UNIQUE INDEX IF NOT EXISTS log_promise ON log(promise) WHERE promise IS NOT NULL
"""


class StoreUnavailable(Unreachable, AntipodeError):  # noqa: N818 - a condition, like Unreachable
    """The file is missing, locked for too long, corrupt, or no embedded store.

    An :class:`~antipode.shim.Unreachable` for barriers, which try again until their deadline.
    """

    code = "store_unavailable"


class NotPrimary(AntipodeError):  # noqa: N818 - a condition, like NotPrimaryError of servers
    """A write was sent to a replica's file, or to a primary that was replaced."""

    code = "not_primary"


def checked_path(path: str | PathLike[str]) -> Path:
    """*path*, absolute.

    Raises:
        ConfigurationError: no file can be there.
    """
    found = Path(path).absolute()
    if not found.parent.is_dir():
        msg = f"no folder {str(found.parent)!r} for the embedded store {found.name!r}"
        raise ConfigurationError(msg)
    if found.exists() and not found.is_file():
        msg = f"{str(found)!r} is no file: an embedded store is one SQLite file for each region"
        raise ConfigurationError(msg)
    return found


def boot_id() -> str:
    """What changes when the machine restarts; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class File:
    """A connection to one region's file that notices when the file is another one. Thread-safe.

    Opened at first use; opened again after a failure, in a forked child, and when the path holds
    another file than before, which an open connection would never see.
    """

    def __init__(self, path: Path, *, create: bool = False, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._busy_s = busy_s
        self._create = create
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] | None = None
        self._opens = 0
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone while the block lasts.

        Raises:
            StoreUnavailable: it cannot be opened, or a statement in the block failed.
        """
        with self._lock:
            try:
                yield self._current()
            except sqlite3.Error as error:
                self._drop()
                why = error if self.path.exists() else "there is no such file"
                msg = f"embedded store {str(self.path)!r}: {why}"
                raise StoreUnavailable(msg) from error

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """The connection in one read transaction: all of its reads see the same moment.

        Raises:
            StoreUnavailable: as :meth:`connection`.
        """
        with self.connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def transaction(
        self, *, committing: Callable[[], None] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """The connection in a write transaction, committed unless the block raises.

        Args:
            committing: called just before the commit: whatever fails later is in doubt.

        Raises:
            StoreUnavailable: as :meth:`connection`.
        """
        with self.connection() as connection:
            _retried(connection, "BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            if committing is not None:
                committing()
            connection.execute("COMMIT")

    def version(self) -> tuple[int, int]:
        """What changes with every commit of another connection, and with every other file.

        Raises:
            StoreUnavailable: as :meth:`connection`.
        """
        with self.connection() as connection:
            return self._opens, connection.execute("PRAGMA data_version").fetchone()[0]

    def _current(self) -> sqlite3.Connection:
        if self._closed:
            msg = f"embedded store {str(self.path)!r} is closed"
            raise StoreUnavailable(msg)
        identity = _identity(self.path)
        if self._connection is not None and identity != self._opened:
            self._drop()
        if self._connection is None:
            self._connection = self._open()
            self._opens += 1
            self._opened = _identity(self.path)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "rw"
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._busy_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # A crash of the machine may cost the last writes, one of a process none: enough for
            # what the store is for, and a new boot starts a new history (see `Store.put`).
            connection.execute("PRAGMA synchronous=OFF")
            if self._create:
                _retried(connection, "PRAGMA journal_mode=WAL")
                _retried(connection, "BEGIN IMMEDIATE")
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                known = {row[1] for row in connection.execute("PRAGMA table_info(log)")}
                for column in ("promise", "record"):
                    if column not in known:
                        connection.execute(f"ALTER TABLE log ADD COLUMN {column} TEXT")
                connection.execute(_PROMISES)
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        """Release the connection. Idempotent."""
        with self._lock:
            self._closed = True
            self._drop()


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat, at every poll
    except OSError:
        return None
    return found.st_dev, found.st_ino, os.getpid()


def _retried(connection: sqlite3.Connection, statement: str) -> None:
    """Execute what needs the file's lock, trying again sooner than SQLite itself would.

    The naps of its busy handler grow to 100 ms; a write here holds the lock for some 20 µs.
    """
    connection.execute("PRAGMA busy_timeout=0")
    deadline_s = time.monotonic() + BUSY_S
    try:
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:  # noqa: PERF203 - it is a loop of attempts
                if "locked" not in str(error) or time.monotonic() > deadline_s:
                    raise
                time.sleep(random.uniform(0.000_05, 0.000_5))  # noqa: S311 - jitter
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
