"""Sessions of one connection, as a pool hands it out: made again when it is gone."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from .bench import Bench
from .both import run_awaited

if TYPE_CHECKING:
    import random
    from collections.abc import Coroutine


class InLoop(Bench):
    """What an asyncio client does: its calls run in one event loop."""

    def __enter__(self) -> Any:
        self._loop = asyncio.new_event_loop()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """In the loop."""
        self._loop.run_until_complete(coroutine)

    async def cancel(self, call: Coroutine[Any, Any, Any], after_s: float) -> None:
        """Begin a call, and cancel its task so many seconds later.

        Raises:
            Exception: what the call raised, where it was over before.
        """
        task = asyncio.ensure_future(call)
        await asyncio.sleep(after_s)
        self.trace.append("-- cancelled")
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


class AsCalls(Bench):
    """What a synchronous client does: plain calls."""

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Without an event loop."""
        run_awaited(coroutine)


class Connected(Bench):
    """A session's connection to the primary, and one of the same client to the replica.

    Attributes:
        session: the one to the primary.
        reader: the one to the replica, where each statement commits by itself.
        autocommit: whether it does so in the session, too.
    """

    session: Any
    reader: Any
    autocommit: bool

    def open(self, choose: random.Random) -> None:
        """Connect to both servers; the session commits by itself, or not."""
        self.autocommit = choose.random() < 0.5
        self.run(self._open())

    async def _open(self) -> None:
        self.session = await self.connect(replica=False)
        self.reader = await self.connect(replica=True)

    def settle(self) -> None:
        """Roll back, and connect again where the connection is gone."""
        self.run(self._settle())

    async def _settle(self) -> None:
        with contextlib.suppress(*self.refusals):
            await self.roll_back()
        await self.whole()

    async def whole(self) -> Any:
        """The session's connection; another where it is gone."""
        if self.gone():
            self.trace.append("-- reconnect")
            await self.disconnect(self.session)
            self.session = await self.connect(replica=False)
        return self.session

    def close(self) -> None:
        """Close both."""
        for each in (self.session, self.reader):
            self.run(self.disconnect(each))

    @abstractmethod
    async def connect(self, *, replica: bool) -> Any:
        """An instrumented connection."""

    @abstractmethod
    def gone(self) -> bool:
        """Whether the client says that the session's connection is closed."""

    @abstractmethod
    async def roll_back(self) -> None:
        """Roll back, as this client does."""

    @abstractmethod
    async def disconnect(self, connection: Any) -> None:
        """Close it; it may be closed."""
