"""Reads that wait, and the pools of the connections that they are made on.

A read that keeps its connection while it waits takes it away from reads that wait for nothing, and
perhaps from the write that it waits for. So a client that can give it back does so
(:class:`Repeated`), one that is asked for a connection waits first (:func:`wait_first`), and where
neither is possible, half of a pool is all that may be kept (``places``).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from antipode._lineage.errors import AntipodeError

from .contract import Unreachable
from .floor import HeldRead
from .reads import floor
from .registry import shared_watcher
from .waiter import Waiter, one_server, wait_async, wait_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from .contract import Observation
    from .decisions import Wait
    from .demands import Demand
    from .floor import Floor
    from .places import Places
    from .store import Store


class Repeated:
    """A read that is made again after each pause: it keeps no connection while it waits.

    Each attempt polls once on its connection. Where :meth:`look` says no, the attempt ends and the
    connection goes back, and the client calls :meth:`pause` before it makes the next one. Those
    that were woken together take their connections one after the other, in the places of the pool.

    Attributes:
        floor: what the read must see, once an attempt has polled; the same for all attempts.
        waits: whether the last poll was too early.
    """

    def __init__(self, shim: Store, places: Places) -> None:
        """Of a client of *shim*, whose pool has *places*."""
        self.floor: Floor | None = None
        self.waits = False
        self._places, self._placed = places, False
        self._shim = shim
        self._read: HeldRead | None = None
        self._pause_s = 0.0

    def look(self, held: Floor, observe: Callable[[float], Observation]) -> bool:
        """Whether one poll, as :meth:`Floor.hold` takes it, shows *held*.

        Raises:
            UnmetError: the time is up, or waiting longer cannot help.
            Unreachable: the connection failed while there was time left.
        """
        if held.over:
            return True
        read = self.held(held)
        try:
            return self.noted(read.take(observe(read.poll_s)))
        except Unreachable as away:
            read.late(away)
            raise

    async def look_async(
        self, held: Floor, observe: Callable[[float], Awaitable[Observation]]
    ) -> bool:
        """The asyncio twin of :meth:`look`."""
        if held.over:
            return True
        from antipode._runtime.cancellation import unless_cancelled

        read = self.held(held)
        try:
            return self.noted(read.take(await unless_cancelled(observe(read.poll_s))))
        except Unreachable as away:
            read.late(away)
            raise

    def held(self, held: Floor) -> HeldRead:
        """When it polls and how it ends, in all attempts together."""
        if self._read is None:
            self.floor = held
            self._read = HeldRead(held, shared_watcher(self._shim))
        return self._read

    def noted(self, pause_s: float | None) -> bool:
        """Take in how long it pauses; whether it need not, for the poll showed all of it."""
        self.waits = pause_s is not None
        self._pause_s = pause_s or 0.0
        return not self.waits

    def pause(self) -> None:
        """Wait until the next attempt is due."""
        self._leave()
        if self._read is not None:
            self._read.pause(self._pause_s)
            self._placed = self._places.wait(self._read.poll_s)

    async def pause_async(self) -> None:
        """The asyncio twin of :meth:`pause`."""
        self._leave()
        if self._read is not None:
            await self._read.pause_async(self._pause_s)
            self._placed = await self._places.wait_async(self._read.poll_s)

    def _leave(self) -> None:
        """The attempt is over, and its connection is free."""
        self.waits = False
        if self._placed:
            self._placed = False
            self._places.give_back()

    def end(self) -> None:
        """The read is over. Idempotent."""
        self._leave()
        read, self._read = self._read, None
        if read is not None:
            read.end()


def wait_first(shim: Store, *, own: Collection[str] = ()) -> None:
    """Wait until the library's own connection shows what the next read of *shim* must see.

    For a client that is about to take a connection from its pool. It decides nothing: whatever is
    not shown when the time is up, or where no server is there, the connection that reads is asked
    for.

    Args:
        shim: of the client.
        own: names of the logs that its server writes on its own, and so shows.
    """
    for held, demand, wait in _first(shim, own):
        finished = threading.Event()
        with _spending(held, demand, wait):
            wait_here(_waiter(wait, shim, finished.set), finished)


async def wait_first_async(shim: Store, *, own: Collection[str] = ()) -> None:
    """The asyncio twin of :func:`wait_first`."""
    for held, demand, wait in _first(shim, own):
        with _spending(held, demand, wait):
            await wait_async(partial(_waiter, wait, shim))


def _waiter(wait: Wait, shim: Store, notify: Callable[[], None]) -> Waiter:
    return Waiter(wait, notify, clock=shim.clock, hasty=True)


def _first(shim: Store, own: Collection[str]) -> Iterator[tuple[Floor, Demand, Wait]]:
    """What to wait for, one demand after the other; nothing that any server has shown by now."""
    try:
        held = floor(shim, reads=False)
    except AntipodeError:
        return  # The read itself raises it.
    if held is None or shared_watcher(shim) is None:
        return
    for demand in held.demands:
        if demand.shown or not _asked(demand, own):
            continue
        wait = held.wait_for(demand)
        if wait.deadline_s > wait.started_s:
            yield held, demand, wait


def _asked(demand: Demand, own: Collection[str]) -> bool:
    """Whether *demand* is of more than what the server wrote on its own."""
    return bool(demand.promises) or any(each.key not in own for each in demand.writes)


@contextmanager
def _spending(held: Floor, demand: Demand, wait: Wait) -> Iterator[None]:
    """Spend the time of *demand*; what a server showed meanwhile its connections need not."""
    demand.allowance.begin(wait.started_s)
    try:
        yield
    finally:
        now_s = held.spend(demand, wait)
    result = wait.result(now_s)
    if result.ok:
        for server in one_server(result, held.datastore):
            demand.prove(server, now_s)
