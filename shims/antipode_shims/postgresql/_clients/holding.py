"""What instrumented connections of all clients do before a call and after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode.shim import Unreachable, shared_watcher
from antipode_shims.postgresql._look import Refused, converse, converse_async

from .tap import Read, Session, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor, Observation
    from antipode_shims.postgresql._look import Asking, Backend
    from antipode_shims.postgresql._position import Rows

Errors = type[Exception] | tuple[type[Exception], ...]
#: Why nobody can say that a transaction has no snapshot.
_UNPROVED = (Read, Refused, Unreachable)
#: Seconds after the floor's time within which the last poll may be answered.
LATE_S = 0.25
#: Why a write that is committed has no position.
GIVEN_UP = "its call was given up while that was asked for"


class Late(Exception):  # noqa: N818 - an answer
    """The server did not answer a question of the library's own in time."""


class Call(NamedTuple):
    """What the client is about to do.

    Attributes:
        sql: the statement; None where it cannot be read.
        cursor: that sends it; None for the connection itself.
        opens: whether it begins a transaction on its own.
        reads_by: the name of the cursor of the server that it declares or reads; empty for one
            that only its text names.
    """

    sql: str | None
    cursor: Any = None
    opens: bool = False
    reads_by: str = ""


def clients_own(refused: Refused) -> BaseException:
    """The client's error for a question that was refused in the application's transaction.

    That has failed by it, or the session has ended: the application's own statement would have met
    the same error.
    """
    return refused.__cause__ or refused


class Holding:
    """What both APIs share."""

    __slots__ = ()

    if TYPE_CHECKING:
        #: The connection's `Tap`.
        _antipode: Any
        #: How the session stands, as the packet that ended its last reply says.
        _antipode_session: Callable[[], Session]
        #: Whether replies of the application's are still to come.
        _antipode_busy: Callable[[], bool]
        #: The connection's process at its server.
        _antipode_backend: Callable[[], Backend]
        #: Close the connection.
        _antipode_end: Callable[[], None]

    def _antipode_ended(self, error: BaseException | None) -> None:
        """A call is over: count it if it was answered stale, unless it failed."""
        if error is not None:
            self._antipode.stale_read.failed()
        elif not self._antipode_busy():
            self._antipode.stale_read.answered()

    def _antipode_unsent(self, pending: int) -> None:
        """A call is not sent; before it, so much was *pending*."""
        self._antipode.pending = pending
        self._antipode.stale_read.failed()

    def _antipode_give_up(self, held: Floor, error: BaseException) -> None:
        """Close the connection: the server did not answer while a read was held back.

        Raises:
            BarrierTimeout: unless such reads are answered, when the client's own error follows.
        """
        self._antipode_end()
        self._antipode.closed()
        held.expire(Unreachable(str(error)))


class SyncHolding(Holding):
    """Of a synchronous client."""

    __slots__ = ()

    if TYPE_CHECKING:
        #: The rows of a question of the library's own.
        _antipode_ask: Callable[[str], Rows]

    def _antipode_settle(self, steps: Asking[None] | None, errors: Errors) -> None:
        """Ask what is left; what ends that marks the write. *errors* of the client end here."""
        if steps is not None:
            try:
                converse(steps, self._antipode_ask)
            except errors as lost:
                self._antipode.shim.unsampled(str(lost))
            except BaseException:  # An interrupt: what is committed stays so.
                self._antipode.shim.unsampled(GIVEN_UP)
                raise

    def _antipode_hold(self, call: Call) -> None:
        """Wait until the statement of *call* may be sent.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
            StaleSnapshot: it would read from an older snapshot.
            ConfigurationError: it has to wait, and another server may be read than is asked.
        """
        tap, session = self._antipode, self._antipode_session()
        piped = self._antipode_busy()
        tap.reads_by = call.reads_by
        found, held = tap.starts(call.sql, session, opens=call.opens, piped=piped)
        if held is None or session is Session.LOST:
            return
        verdict = tap.judge(held, found, session, piped=piped)
        tap.until_s = time.monotonic() + held.poll_s + LATE_S
        try:
            if verdict is Verdict.ASK:
                verdict = converse(tap.isolated(self._antipode_backend()), self._antipode_ask)
            if verdict is Verdict.OUTSIDE and not self._antipode_wait_outside(held):
                verdict = Verdict.STALE
            if verdict is Verdict.PASS:
                held.passed()
            elif verdict is Verdict.STALE:
                tap.stale(held, piped=piped)
            elif verdict is Verdict.HOLD:
                self._antipode_wait_for(held)
                if session is Session.OPEN:
                    tap.renewed()
        except Late as late:
            self._antipode_give_up(held, late)
        finally:
            tap.until_s = None

    def _antipode_wait_for(self, held: Floor) -> None:
        tap = self._antipode
        seen: list[Observation] = []

        def look(timeout_s: float) -> Observation:
            tap.until_s = time.monotonic() + timeout_s + LATE_S
            steps = tap.look(held, self._antipode_backend().pid, self._antipode_session)
            seen[:] = [converse(steps, self._antipode_ask)]
            return seen[0]

        held.hold(look, watcher=shared_watcher(tap.shim), places=tap.places)
        if not held.served:
            tap.passed(held, seen[-1] if seen else None)

    def _antipode_wait_outside(self, held: Floor) -> bool:
        """Wait on another connection; False where the transaction may have its snapshot."""
        tap, backend = self._antipode, self._antipode_backend()
        seen: list[Observation] = []

        def look(timeout_s: float) -> Observation:
            steps = tap.look_outside(held, backend)
            seen[:] = [tap.shim.outside(steps, timeout_s=timeout_s)]
            return seen[0]

        try:
            held.hold(look, watcher=shared_watcher(tap.shim), places=tap.places)
        except _UNPROVED:
            return False
        if not held.served:
            tap.passed(held, seen[-1] if seen else None)
            tap.renewed()
        return True


class AsyncHolding(Holding):
    """The asyncio twin of :class:`SyncHolding`."""

    __slots__ = ()

    if TYPE_CHECKING:
        _antipode_ask: Callable[[str], Any]

    async def _antipode_settle(self, steps: Asking[None] | None, errors: Errors) -> None:
        if steps is not None:
            try:
                await converse_async(steps, self._antipode_ask)
            except errors as lost:
                self._antipode.shim.unsampled(str(lost))
            except BaseException:  # A cancellation: what is committed stays so.
                self._antipode.shim.unsampled(GIVEN_UP)
                raise

    async def _antipode_hold(self, call: Call) -> None:
        tap, session = self._antipode, self._antipode_session()
        piped = self._antipode_busy()
        tap.reads_by = call.reads_by
        found, held = tap.starts(call.sql, session, opens=call.opens, piped=piped)
        if held is None or session is Session.LOST:
            return
        verdict = tap.judge(held, found, session, piped=piped)
        tap.until_s = time.monotonic() + held.poll_s + LATE_S
        try:
            if verdict is Verdict.ASK:
                isolated = tap.isolated(self._antipode_backend())
                verdict = await converse_async(isolated, self._antipode_ask)
            if verdict is Verdict.OUTSIDE and not await self._antipode_wait_outside(held):
                verdict = Verdict.STALE
            if verdict is Verdict.PASS:
                held.passed()
            elif verdict is Verdict.STALE:
                tap.stale(held, piped=piped)
            elif verdict is Verdict.HOLD:
                await self._antipode_wait_for(held)
                if session is Session.OPEN:
                    tap.renewed()
        except Late as late:
            self._antipode_give_up(held, late)
        finally:
            tap.until_s = None

    async def _antipode_wait_for(self, held: Floor) -> None:
        tap = self._antipode
        seen: list[Observation] = []

        async def look(timeout_s: float) -> Observation:
            tap.until_s = time.monotonic() + timeout_s + LATE_S
            steps = tap.look(held, self._antipode_backend().pid, self._antipode_session)
            seen[:] = [await converse_async(steps, self._antipode_ask)]
            return seen[0]

        await held.hold_async(look, watcher=shared_watcher(tap.shim), places=tap.places)
        if not held.served:
            tap.passed(held, seen[-1] if seen else None)

    async def _antipode_wait_outside(self, held: Floor) -> bool:
        tap, backend = self._antipode, self._antipode_backend()
        seen: list[Observation] = []

        async def look(timeout_s: float) -> Observation:
            import asyncio

            steps = tap.look_outside(held, backend)
            outside = asyncio.to_thread(tap.shim.outside, steps, timeout_s=timeout_s)
            seen[:] = [await outside]
            return seen[0]

        try:
            await held.hold_async(look, watcher=shared_watcher(tap.shim), places=tap.places)
        except _UNPROVED:
            return False
        if not held.served:
            tap.passed(held, seen[-1] if seen else None)
            tap.renewed()
        return True
