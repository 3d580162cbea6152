"""A fake store in real time, for tests of barriers in threads and tasks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from antipode import Lineage, Status, WriteId
from antipode.shim import Endpoint, Observation, Shim, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

POST = WriteId("posts", "log", 7)
LINEAGE = Lineage([POST])


class FakeServer(Shim):
    """A fake store with one position, in real time."""

    def __init__(
        self, datastore: str = "posts", *, position: int = 0, pinned: bool = False
    ) -> None:
        super().__init__(datastore)
        self.position = position
        self.pinned = pinned
        self.looks_made = 0
        self.opened = 0
        self.open_now = 0
        self.looked = threading.Event()
        self.threads: set[int] = set()
        self.fault: Exception | None = None
        self.hang: threading.Event | None = None
        self.connecting: threading.Event | None = None
        self.fenced = 0
        self.fencing = threading.Event()
        self.stuck: threading.Event | None = None
        self.connect_s = self.poll_s = 0.0
        self.unknown_logs: frozenset[str] = frozenset()

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        self.fenced += 1
        self.fencing.set()
        if self.stuck is not None:
            self.stuck.wait(60)
        if self.fault is not None:
            raise self.fault
        return frozenset([WriteId(self.datastore, "log", 9, covering=True)])

    def after_a_look(self, then: Callable[[], None]) -> threading.Thread:
        """Do something while somebody waits: a thread that does it, which the caller joins."""

        def run() -> None:
            assert self.looked.wait(5)
            then()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        self.opened += 1
        self.connect_s = timeout_s
        if self.connecting is not None:
            self.connecting.wait(timeout_s)
        self.open_now += 1
        return FakeConnection(self)


class FakeConnection(Endpoint):
    """A connection to a :class:`FakeServer`."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.pinned = server.pinned

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        server = self.server
        server.looks_made += 1
        server.poll_s = timeout_s
        server.looked.set()
        server.threads.add(threading.get_ident())
        if server.hang is not None:
            server.hang.wait(timeout_s)
            raise Unreachable("no reply")
        if server.fault is not None:
            raise server.fault
        position = server.position
        shown = {w: Status.VISIBLE for w in writes if int(w.version) <= position}
        shown.update({w: Status.UNKNOWN_LOG for w in writes if w.key in server.unknown_logs})
        return Observation("server-1", shown, eta_s=0.25)

    def close(self) -> None:
        self.server.open_now -= 1
