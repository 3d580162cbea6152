"""The truth: when a write becomes visible at the reader's replica, seen by looking all the time."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._rpc import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._storage import PostStorage

# A write is looked for without rest from this long before its replication lag is over. Until then
# one look in some milliseconds is enough to notice that replication did not take its time.
CLOSE_S = 0.025
FAR_LOOK_S = 0.004
# Between two looks the processor is given up, for a moment shorter than what is measured: on a
# machine with two of them a poller that never rests would delay the very thing it times.
REST_S = 0.000_1


class Announcer:
    """Tells the poller of writes, from the process that makes them."""

    def __init__(self, port: int) -> None:
        """Send datagrams to *port* on the loopback interface."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((LOOPBACK, port))

    def __call__(self, write: dict[str, Any]) -> None:
        """Announce a write."""
        self._socket.send(json.dumps(write).encode())

    def close(self) -> None:
        """Release the socket. Idempotent."""
        self._socket.close()


@dataclass(slots=True)
class _Sought:
    """A write that is not visible yet.

    Attributes:
        version: the version it leaves behind, 0 for a delete.
        begun_ns: when the writer's region began to write it.
        unseen_ns: when the last look began that did not show it.
    """

    version: int
    begun_ns: int
    unseen_ns: int


class Poller:
    """Looks at one replica for the writes it is told of, and at nothing else.

    Attributes:
        commands: that it has sent to the replica.
    """

    def __init__(
        self, storage: PostStorage, emit: Callable[[dict[str, Any]], None], *, lag_s: float
    ) -> None:
        """Look at *storage*, where writes are expected *lag_s* seconds after their beginning."""
        self._storage = storage
        self._emit = emit
        self._close_after_ns = int(max(lag_s - CLOSE_S, 0) * 1e9)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind((LOOPBACK, 0))
        self._socket.setblocking(False)  # noqa: FBT003 - the name of the call says it
        self._sought: dict[str, _Sought] = {}
        self._far_look_ns = 0
        self.commands = 0

    @property
    def port(self) -> int:
        """Where writes are announced."""
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Release the socket. Idempotent."""
        self._socket.close()

    def run(self) -> None:
        """Look for as long as this process lives."""
        while True:
            self.step()

    def step(self) -> None:
        """Wait until there is something to look for, and look once."""
        wait_s = self._wait_s()
        if wait_s is None or wait_s > REST_S:
            select.select([self._socket], [], [], wait_s)
        else:
            time.sleep(REST_S)
        self._receive()
        now_ns = time.monotonic_ns()
        if now_ns >= self._far_look_ns:
            self._far_look_ns = now_ns + int(FAR_LOOK_S * 1e9)
            self._look(list(self._sought))
        else:
            self._look([post_id for post_id, each in self._sought.items() if self._close(each)])

    def _close(self, sought: _Sought) -> bool:
        return time.monotonic_ns() >= sought.begun_ns + self._close_after_ns

    def _wait_s(self) -> float | None:
        """Until the next look; None when there is nothing to look for."""
        if not self._sought:
            return None
        oldest_ns = min(each.begun_ns for each in self._sought.values())
        left_s = (oldest_ns + self._close_after_ns - time.monotonic_ns()) / 1e9
        return min(max(left_s, 0.0), FAR_LOOK_S)

    def _receive(self) -> None:
        while True:
            try:
                write = json.loads(self._socket.recv(4096))
            except BlockingIOError:
                return
            begun_ns = write["begun_ns"]
            self._sought[write["id"]] = _Sought(write["version"], begun_ns, begun_ns)

    def _look(self, post_ids: list[str]) -> None:
        if not post_ids:
            return
        began_ns = time.monotonic_ns()
        found = self._storage.versions(post_ids)
        self.commands += 1 if self._storage.BATCHED else len(post_ids)
        ended_ns = time.monotonic_ns()
        for post_id in post_ids:
            sought = self._sought[post_id]
            version = found.get(post_id, 0)
            if version >= sought.version if sought.version else version == 0:
                del self._sought[post_id]
                self._emit(
                    {
                        "event": "visible",
                        "id": post_id,
                        "unseen_ns": sought.unseen_ns,
                        "seen_ns": ended_ns,
                    }
                )
            else:
                sought.unseen_ns = began_ns
