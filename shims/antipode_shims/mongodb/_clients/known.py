"""What a client remembers of the servers behind its connections, for reads under a floor."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any

from antipode.shim import log_once
from antipode_shims.mongodb._promises.records import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise
    from antipode.shim import Floor
    from antipode_shims.mongodb._look import Question

#: Read concerns whose reads show what a majority has.
COMMITTED = frozenset({"majority", "snapshot"})
#: The question after the servers' default, which an administrator may change.
DEFAULTS: Question = ("admin", {"getDefaultRWConcern": 1, "inMemory": True})
_DEFAULTS_S = 60.0
_MOST_KNOWN = 1_000


class Known:
    """What one server incarnation is known to show; it cannot change under a connection.

    A server closes its clients' connections before it rolls back.
    """

    def __init__(self, server: str) -> None:
        """Know nothing yet of *server*."""
        self.server = server
        self._local: dict[str, int] = {}
        self._committed: dict[str, int] = {}

    def learn(self, held: Floor, *, majority: bool) -> None:
        """Note that reads show what *held* demands."""
        for positions in (self._local, self._committed) if majority else (self._local,):
            for log, version in positions_of(held).items():
                positions[log] = max(version, positions.get(log, -1))
            while len(positions) > _MOST_KNOWN:  # The oldest go, and are asked about again.
                positions.pop(next(iter(list(positions))), None)

    def shows(self, held: Floor, *, majority: bool) -> bool:
        """Whether reads are known to show what *held* demands."""
        return covers(self._committed if majority else self._local, held)


def positions_of(held: Floor) -> dict[str, int]:
    """The largest position of each log that *held* demands; promises have names of their own."""
    positions = dict.fromkeys(map(_named, held.promises), 0)
    for write in held.writes:
        if isinstance(write.version, int):
            positions[write.key] = max(write.version, positions.get(write.key, -1))
    return positions


def covers(positions: Mapping[str, int], held: Floor) -> bool:
    """Whether *positions* reach everything that *held* demands."""
    return all(
        isinstance(write.version, int) and write.version <= positions.get(write.key, -1)
        for write in held.writes
    ) and keeps(positions, held)


def keeps(positions: Mapping[str, int], held: Floor) -> bool:
    """Whether *positions* name every promise that *held* demands."""
    return not held.promises or all(_named(each) in positions for each in held.promises)


def _named(promise: Promise) -> str:
    return f"{MARK}{promise.id}"


class Defaults:
    """The read concern that the servers give to reads that state none."""

    def __init__(self, datastore: str) -> None:
        """Not asked yet."""
        self.majority = False
        self._datastore = datastore
        self._due_s = 0.0

    @property
    def due(self) -> bool:
        """Whether to ask (again)."""
        return time.monotonic() >= self._due_s

    def learn(self, reply: Any) -> None:
        """Take the answer to :data:`DEFAULTS` in, or its refusal."""
        self._due_s = time.monotonic() + _DEFAULTS_S
        if not isinstance(reply, Exception):
            self.majority = reply.get("defaultReadConcern", {}).get("level") in COMMITTED
            return
        log_once(
            "mongodb_default_read_concern",
            self._datastore,
            "",
            "the servers of %r do not show their default read concern, which is taken for 'local': "
            "state readConcernLevel on the client, or grant getDefaultRWConcern (%s)",
            self._datastore,
            reply,
        )


class Memory:
    """What is known of the servers behind a client's connections. Thread-safe."""

    def __init__(self) -> None:
        """Know no server."""
        self._connections: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()
        self._servers: weakref.WeakValueDictionary[str, Known] = weakref.WeakValueDictionary()

    def of(self, connection: Any) -> Known | None:
        """What is known of the server of *connection*; None when it was not asked yet."""
        return self._connections.get(connection)

    def learn(self, connection: Any, server: str, held: Floor, *, majority: bool) -> None:
        """Note that *connection* goes to *server*, and that it shows what *held* demands."""
        known = self._connections.get(connection)
        if known is None or known.server != server:
            known = self._servers.get(server) or Known(server)
            self._servers[server] = self._connections[connection] = known
        known.learn(held, majority=majority)
