"""Fences: a primary's position of now, asked for in one thread a shim, whoever waits for it."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from antipode._runtime.clock import NoThread
from antipode._runtime.wake import Wake

if TYPE_CHECKING:
    from concurrent.futures import Future

    from antipode._lineage.write_id import WriteId
    from antipode._runtime.clock import Clock

    Fence = Future[frozenset[WriteId]]


class Fenced(Protocol):
    """Whose primary is asked: a store."""

    @property
    def clock(self) -> Clock:
        """What its thread runs on."""
        ...

    @property
    def datastore(self) -> str:
        """Its name."""
        ...

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """Ask; as a shim does."""
        ...


class Fencer:
    """Asks one primary for whoever wants its position, one after another.

    A client may take longer than it is allowed: to find out that a host has no address, say. So no
    barrier asks in a thread of its own, which it could not leave, nor in one for each barrier.
    """

    def __init__(self, shim: Fenced) -> None:
        """Ask the primary of *shim*; nothing runs before somebody wants to know."""
        self.name = f"antipode-fence-{shim.datastore}"
        self.wake = Wake()
        self._shim = shim
        self._reset()
        _fencers.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[tuple[Fence, float]] = []
        self._asked: dict[Fence, float] = {}
        self._running = False

    def ask(self, timeout_s: float) -> Fence:
        """The position of a moment from now on, for who waits for it *timeout_s* seconds.

        What is being asked already does not count: it began before.
        """
        from concurrent.futures import Future  # Few processes ever ask.

        fence: Fence = Future()
        with self._lock:
            self._wanted.append((fence, timeout_s))
            if not self._running:
                try:
                    self._shim.clock.spawn(self)
                except NoThread as error:
                    self._wanted.clear()
                    fence.set_exception(error)
                else:
                    self._running = True
        return fence

    def step(self) -> float | None:
        """Ask once for everybody who wants to know by now; None when nobody does."""
        if not self.begin():
            return None
        self.end()
        return 0.0

    def begin(self) -> bool:
        """Take in who wants to know by now; whether anybody does."""
        with self._lock:
            wanted, self._wanted = self._wanted, []
            self._asked = {each: s for each, s in wanted if each.set_running_or_notify_cancel()}
            if not self._asked:
                self._running = False
        return bool(self._asked)

    def end(self) -> None:
        """Ask, and notify them."""
        asked, self._asked = self._asked, {}
        try:
            writes = self._shim.fence(timeout_s=max(asked.values()))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what they get
            for each in asked:
                each.set_exception(error)
        else:
            for each in asked:
                each.set_result(writes)

    def pause(self, timeout_s: float) -> None:
        """There is no reason to wait: who asks later asks again."""

    def after_fork(self) -> None:
        """Start over in a child process: the thread is the parent's."""
        self._reset()


_fencers: weakref.WeakSet[Fencer] = weakref.WeakSet()


def _after_fork() -> None:
    for fencer in tuple(_fencers):
        fencer.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
