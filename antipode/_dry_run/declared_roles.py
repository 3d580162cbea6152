"""Clients that are declared to read from a primary, while their server says that it is a replica.

Their reads are no findings: ``reads_from="replica"`` was forgotten. Asked in the background, on a
connection of the library's own, once for each client whose read has something to miss.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

from antipode._barrier.registry import follows

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode._runtime.observers import Client

#: Seconds that connecting and asking may take, each.
_ASK_S = 2.0


class DeclaredRoles:
    """Asks the servers of clients whether they are what the clients say."""

    def __init__(self) -> None:
        """Nobody was asked yet."""
        self._lock = threading.Lock()
        self._asked: WeakSet[Client] = WeakSet()
        self._asking: list[threading.Thread] = []

    def known(self, client: Client) -> bool:
        """Whether the server of *client* was asked, or is."""
        return client in self._asked

    def ask(self, client: Client, tell: Callable[[], object]) -> None:
        """Call *tell*, from another thread, if the server of *client* is a replica."""

        def run() -> None:
            if follows(client, timeout_s=_ASK_S):
                tell()

        thread = threading.Thread(target=run, name="antipode-dry-run-role", daemon=True)
        with self._lock:
            if client in self._asked:
                return
            self._asked.add(client)
            self._asking = [*filter(threading.Thread.is_alive, self._asking), thread]
            thread.start()

    def settle(self, timeout_s: float) -> None:
        """Wait until all that were asked have answered, at most *timeout_s*."""
        deadline = monotonic() + timeout_s
        with self._lock:
            asking = tuple(self._asking)
        for thread in asking:
            thread.join(max(deadline - monotonic(), 0.0))
