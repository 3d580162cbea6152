"""The shim: Table 2's ``write``, ``read`` and ``wait`` over one region's file, and a queue."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from antipode import ConfigurationError, Lineage, Status, WriteId, current, serialize
from antipode.shim import (
    SYSTEM_CLOCK,
    Endpoint,
    Observation,
    OnRead,
    ReadsFrom,
    Shim,
    StaleRead,
    Unreachable,
    floor,
    mark_incomplete,
    record_read,
    record_shown,
    record_write,
    recorded,
    register,
    stored_lineage,
    stored_text,
)

from ._promises import judged
from ._store.file import File
from ._store.store import HISTORY, EmbeddedStore, Token, check_types, read_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from os import PathLike
    from pathlib import Path

    from antipode import Promise
    from antipode.shim import Wake

    from ._store.store import Entry, State


#: How often a pause asks whether the file changed: a few microseconds' work each time.
_PUSH_LEAST_S, _PUSH_MOST_S = 0.0005, 0.001
#: What is not stored: a value without a lineage has this one.
_EMPTY = serialize(Lineage())
_NOT_SEEDED = "this replica was never seeded: is its replicator running?"


class Message(NamedTuple):
    """One write of the log as a consumer gets it.

    Attributes:
        key: what was written.
        value: the bytes; None for a delete.
        lineage: what was stored with it, and the write itself.
        position: go on after it with ``follow(position)``.
    """

    key: str
    value: bytes | None
    lineage: Lineage
    position: int


class EmbeddedShim(Shim):
    """One region's file of an embedded store. Thread-safe.

    Attributes:
        store: the file.
    """

    floors = True
    promises = True

    def __init__(
        self,
        datastore: str,
        path: str | PathLike[str],
        *,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """As :func:`shim`, without registering."""
        super().__init__(datastore, reads_from=reads_from)
        if on_read not in ("merge", "ignore"):
            msg = f"on_read must be 'merge' or 'ignore', not {on_read!r}"
            raise ConfigurationError(msg)
        create: Literal["primary"] | None = "primary" if reads_from == "primary" else None
        self.store = EmbeddedStore(path, create=create)
        self.fences = self.abandons = reads_from == "primary"
        self._merges = on_read == "merge"

    @recorded("write")
    def write(
        self,
        key: str,
        value: bytes,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """Write *value* with its lineage, replacing whatever *key* had.

        Args:
            key: what to write.
            value: the bytes.
            lineage: what to store with it; default the current lineage.
            fulfils: a promise that this write fulfils, in the same transaction.

        Returns:
            That lineage with the new write, which also enters the current scope.

        Raises:
            TypeError: *key* is no text, or *value* no bytes.
            PromiseAbandoned: *fulfils* was abandoned; nothing is written.
            NotPrimary: the file is a replica's.
            StoreUnavailable: the file is missing, locked, corrupt, or the disk full.
        """
        check_types(key, value, absent=False)
        return self._write(key, value, lineage, fulfils)

    @recorded("delete")
    def delete(
        self, key: str, lineage: Lineage | None = None, *, fulfils: Promise | None = None
    ) -> Lineage:
        """Delete *key*, leaving a tombstone with the lineage; as :meth:`write` otherwise.

        Raises:
            PromiseAbandoned: as :meth:`write`.
            NotPrimary: the file is a replica's.
            StoreUnavailable: as :meth:`write`.
        """
        return self._write(key, None, lineage, fulfils)

    def _write(
        self, key: str, value: bytes | None, lineage: Lineage | None, fulfils: Promise | None
    ) -> Lineage:
        stored = current() if lineage is None else lineage
        # A recorder of histories puts a note into the text, and who has branches their number.
        text: str | None = stored_text(stored)
        if text == _EMPTY:
            text = None
        in_doubt = False

        def committing() -> None:
            nonlocal in_doubt
            in_doubt = True

        try:
            token = self.store.put(key, value, lineage=text, fulfils=fulfils, committing=committing)
        except BaseException:
            if in_doubt:
                mark_incomplete(self.datastore, "in_doubt")
            raise
        write = WriteId(self.datastore, token.history, token.position, SYSTEM_CLOCK.hour())
        record_write(write)
        return stored.append(write)

    @recorded("read")
    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """The value of *key*, and the lineage that the write stored with it.

        After ``barrier(at="read")`` the read is held back until this very file, in the
        transaction of the read, shows what the barrier demands.

        Returns:
            The value, None where there is none, and its lineage, which is also merged into the
            current scope unless ``on_read="ignore"``. A key that was deleted has the lineage of
            its tombstone, one that was never written an empty one.

        Raises:
            UnmetError: the time of a floor is up, or waiting longer cannot help.
            StoreUnavailable: the file is missing, locked or corrupt.
        """
        stale = StaleRead()
        held = floor(self, stale=stale)
        if held is None:
            return self._result(self.store.get(key), stale)
        while True:
            state, promises, entry = self.store.get_at(key, held.promises)
            if held.accepts(_show(held.writes, state, promises)):
                return self._result(entry, stale)
            held.hold(lambda _: _show(held.writes, *self.store.records(held.promises)))

    @recorded("read")
    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        """As :meth:`read`, without blocking the event loop while the read is held back.

        Raises:
            UnmetError: as :meth:`read`.
            StoreUnavailable: as :meth:`read`.
        """
        stale = StaleRead()
        held = floor(self, stale=stale)
        if held is None:
            return self._result(self.store.get(key), stale)

        async def observe(_: float) -> Observation:
            return _show(held.writes, *self.store.records(held.promises))

        while True:
            state, promises, entry = self.store.get_at(key, held.promises)
            if held.accepts(_show(held.writes, state, promises)):
                return self._result(entry, stale)
            await held.hold_async(observe)

    def follow(self, after: int = 0, *, idle_s: float | None = None) -> Iterator[Message]:
        """The writes after position *after*, then each new one as it comes: a queue.

        Nothing is merged into the current scope: run each message in a scope of its own,
        ``with antipode.scope(message.lineage)``.

        Args:
            after: the position to go on after; 0 for all.
            idle_s: end after so many seconds without a message; None: never.

        Raises:
            StoreUnavailable: as :meth:`read`.
        """
        for entry in self.store.follow(after, idle_s=idle_s):
            yield Message(entry.key, entry.value, self._lineage_of(entry), entry.position)

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Open the file again, for polling only.

        Raises:
            StoreUnavailable: it is missing, locked, corrupt or no embedded store.
        """
        return _EmbeddedEndpoint(self.store.path, timeout_s)

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now; empty where nothing was ever written.

        Raises:
            Unreachable: the file is a replica's by now.
            StoreUnavailable: it is missing, locked or corrupt.
        """
        del timeout_s  # A poll takes some ten microseconds.
        state = self.store.state()
        if state.role != "primary":
            raise Unreachable(f"{self.store.path} is a replica now")
        if not state.position:
            return frozenset()
        log, hour = state.histories[-1][0], SYSTEM_CLOCK.hour()
        return frozenset([WriteId(self.datastore, log, state.position, hour, covering=True)])

    def log_start(self, key: str) -> WriteId | None:
        """The first position of a history, whose id is random."""
        return WriteId(self.datastore, key, 1) if HISTORY.fullmatch(key) else None

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record that *promise* is abandoned, unless it was fulfilled.

        Raises:
            NotPrimary: the file is a replica's by now.
            StoreUnavailable: as :meth:`write`.
        """
        del timeout_s  # As for a write.
        return self.store.abandon(promise)

    def close(self) -> None:
        """Unregister and close the file. Idempotent."""
        super().close()
        self.store.close()

    def _result(self, entry: Entry | None, stale: StaleRead) -> tuple[bytes | None, Lineage]:
        stale.answered()
        if entry is None:
            return None, Lineage()
        record_shown(self, self._write_of(entry))
        lineage = self._lineage_of(entry)
        if self._merges:
            record_read(lineage)
        return entry.value, lineage

    def _lineage_of(self, entry: Entry) -> Lineage:
        """What was stored with *entry*, never silently empty, and the write itself."""
        return stored_lineage(self.datastore, entry.lineage).append(self._write_of(entry))

    def _write_of(self, entry: Entry) -> WriteId:
        return WriteId(self.datastore, entry.history, entry.position, entry.written_hour)


class _EmbeddedEndpoint(Endpoint):
    """A connection that polls a file. The file may be promoted or seeded again under it."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._file = File(path, busy_s=timeout_s)
        self._version = self._file.version()

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once: a read of some ten microseconds, for which nobody waits in line.

        Raises:
            StoreUnavailable: the file is missing, locked, corrupt or no embedded store.
        """
        del timeout_s
        self._version = self._file.version()
        with self._file.connection() as connection:
            state = read_state(connection, self._file.path)
        return _show(writes, state)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*, as :meth:`observe`.

        Raises:
            StoreUnavailable: as :meth:`observe`.
        """
        del timeout_s
        self._version = self._file.version()
        with self._file.snapshot() as connection:
            state = read_state(connection, self._file.path)
            return _show((), state, judged(connection, promises))

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait until the file changes, at most *timeout_s* seconds or until *wake*.

        Raises:
            StoreUnavailable: as :meth:`observe`.
        """
        deadline_s = time.monotonic() + timeout_s
        nap_s = min(max(_PUSH_LEAST_S, timeout_s / 20), _PUSH_MOST_S)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if wake.wait(min(nap_s, left_s)) or self._file.version() != self._version:
                return

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._file.close()


def _show(
    writes: Collection[WriteId], state: State, promises: Mapping[Promise, Status] | None = None
) -> Observation:
    """What a file with *state* and these records of *promises* shows of *writes*."""
    statuses = {write: _judge(write, state) for write in writes}
    records = promises or {}
    return Observation(
        state.incarnation,
        statuses,
        causes={} if state.histories else dict.fromkeys(writes, _NOT_SEEDED),
        promises=records,
        promise_causes={} if state.histories else dict.fromkeys(records, _NOT_SEEDED),
    )


def _judge(write: WriteId, state: State) -> Status:
    if not isinstance(write.version, int):
        return Status.UNDECIDABLE  # No embedded store issued it.
    return state.judge(Token(write.key, write.version))


def shim(
    datastore: str,
    path: str | PathLike[str],
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
) -> EmbeddedShim:
    """Use the embedded store's file of this region, and register it for barriers.

    Args:
        datastore: the logical name that every service spells alike.
        path: the region's file. A primary's is created where it is missing; a replica's is
            created by its :class:`Replicator`, and unreachable until then.
        reads_from: whether the file is the primary's or a replica's. Which of them takes
            writes is noted in the files themselves and changes with a fail-over.
        on_read: whether reads ``merge`` the stored lineage into the current scope, or
            ``ignore`` it.

    Raises:
        ConfigurationError: an argument has no meaning, or no file can be at *path*.
        StoreUnavailable: the primary's file cannot be created.
    """
    made = EmbeddedShim(datastore, path, reads_from=reads_from, on_read=on_read)
    register(made)
    return made
