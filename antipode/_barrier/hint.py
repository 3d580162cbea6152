"""Hints for held reads: a watcher's word that a server shows by now what a read must see.

Reads that are held back on many connections would each ask their server all the time. The watcher
asks for all of them. It may poll another server than the read is made at, so a hint ends a
pause, and decides nothing.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode._lineage.write_id import Dependency

    from .contract import Observation
    from .watcher import Watcher


class Hint:
    """Waits at a watcher, as a barrier does, until :meth:`cancel`."""

    def __init__(self, watcher: Watcher, wanted: Collection[Dependency]) -> None:
        """Wait for *wanted*, of the watcher's datastore."""
        self._watcher = watcher
        self._left = frozenset(wanted)
        self._given = threading.Event()
        self._end: Callable[[], object] | None = None
        watcher.subscribe(self)

    @property
    def given(self) -> bool:
        """Whether there is no more to come: all was seen, or the watcher cannot see it."""
        return self._given.is_set()

    def pause(self, timeout_s: float) -> None:
        """Wait for the hint, at most *timeout_s* seconds."""
        self._given.wait(timeout_s)

    async def pause_async(self, timeout_s: float) -> None:
        """The asyncio twin of :meth:`pause`."""
        import asyncio

        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = loop.call_later(timeout_s, end)
        self._end = lambda: loop.call_soon_threadsafe(end)
        try:
            if not self.given:
                await over
        finally:
            self._end = None
            timer.cancel()

    def cancel(self) -> None:
        """Wait no longer. Idempotent."""
        self._given.set()
        self._watcher.unsubscribe(self)

    def wanted(self, datastore: str) -> Collection[Dependency]:
        """What was not seen yet."""
        del datastore
        return () if self.given else self._left

    def take(self, datastore: str, observation: Observation, left_s: float | None = None) -> None:
        """Take in what the watcher saw."""
        del datastore, left_s
        self._left = frozenset(each for each in self._left if observation.of(each)[0].pending)
        if not self._left:
            self._give()

    def unreachable(self, datastore: str, cause: str) -> None:
        """The watcher sees less than the read's own connection."""
        del datastore, cause
        self._give()

    def failed(self, datastore: str, cause: str) -> None:
        """Nobody watches any more."""
        del datastore, cause
        self._give()

    def _give(self) -> None:
        self._given.set()
        if (end := self._end) is not None:
            with contextlib.suppress(RuntimeError):  # Its loop was closed.
                end()
