"""How many connections of a pool reads that wait may keep."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Places:
    """How many connections of one pool reads that wait may keep: half of them, and at least one.

    A pool of one connection, and one without a limit, has a place for every read.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        """Of a pool of *size()* connections; 0 where there is no limit, or none that is known."""
        self._size = size
        self._taken = 0
        self._next: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Keep a connection, if there is a place for that."""
        return self._take(None)

    def give_back(self) -> None:
        """Keep it no longer: whoever waited longest for the place has it."""
        while True:
            with self._lock:
                if not self._next:
                    self._taken -= 1
                    return
                given = self._next.popleft()
            with suppress(RuntimeError):  # Its loop was closed.
                given()
                return

    def wait(self, timeout_s: float) -> bool:
        """Keep a connection once there is a place; False after *timeout_s* seconds."""
        given = threading.Event()
        if self._take(given.set):
            return True
        try:
            given.wait(timeout_s)
        except BaseException:
            self._cancel(given.set)
            raise
        return not self._left(given.set)

    async def wait_async(self, timeout_s: float) -> bool:
        """The asyncio twin of :meth:`wait`."""
        import asyncio

        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        given = partial(loop.call_soon_threadsafe, end)
        if self._take(given):
            return True
        timer = loop.call_later(timeout_s, end)
        try:
            await over
        except BaseException:
            self._cancel(given)
            raise
        finally:
            timer.cancel()
        return not self._left(given)

    def _take(self, given: Callable[[], object] | None) -> bool:
        """Whether there is a place now; else *given*, if any, is called once there is."""
        size = self._size()
        with self._lock:
            if size > 1 and self._taken >= size // 2:
                if given is not None:
                    self._next.append(given)
                return False
            self._taken += 1
            return True

    def _cancel(self, given: Callable[[], object]) -> None:
        """Wait no longer, and keep no place that was given meanwhile."""
        if not self._left(given):
            self.give_back()

    def _left(self, given: Callable[[], object]) -> bool:
        """Wait no longer; whether no place was given."""
        with self._lock:
            if given in self._next:
                self._next.remove(given)
                return True
            return False
