"""What instrumented connections of all clients do before a call and after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode.shim import Guarded, Send, Unreachable, Verdict, guard, shown_outside
from antipode_shims.postgresql._look import Refused, converse, converse_async

from .tap import Read, Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antipode.shim import Floor, Observation, Steps
    from antipode_shims.postgresql._look import Asking, Backend
    from antipode_shims.postgresql._position import Rows
    from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

    from .tap import Tap

Errors = type[Exception] | tuple[type[Exception], ...]
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


class Ask:
    """A step: questions of the library's own, on the application's connection."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Asking[Any]) -> None:
        """Hold the conversation *steps*."""
        self._steps = steps

    def do(self, connection: Any) -> Any:
        """Ask, and be answered."""
        return converse(self._steps, connection._antipode_ask)  # noqa: SLF001 - a mixin of ours

    def do_async(self, connection: Any) -> Awaitable[Any]:
        """The same by asyncio."""
        return converse_async(self._steps, connection._antipode_ask)  # noqa: SLF001 - as above


class AskOutside:
    """A step: the same on a connection of the library's own, for at most some seconds."""

    __slots__ = ("_shim", "_steps", "_timeout_s")

    def __init__(
        self, shim: BasePostgreSQLShim, steps: Asking[Observation], timeout_s: float
    ) -> None:
        """Hold the conversation *steps* with the server of *shim*."""
        self._shim, self._steps, self._timeout_s = shim, steps, timeout_s

    def do(self, connection: object) -> Observation:
        """Ask, and be answered."""
        del connection
        return self._shim.outside(self._steps, timeout_s=self._timeout_s)

    def do_async(self, connection: object) -> Awaitable[Observation]:
        """The same in a thread."""
        import asyncio

        return asyncio.to_thread(self.do, connection)


class HeldRead(Guarded):
    """A statement under a floor: what PostgreSQL answers to the questions of the guard."""

    unproved = (Read, Refused, Unreachable)

    def __init__(
        self, connection: Holding, held: Floor, found: int, session: Session, *, piped: bool
    ) -> None:
        """On *connection*, which must show *held*; the others as :meth:`Tap.judge` takes them."""
        self.held = held
        self._connection = connection
        tap: Tap = connection._antipode  # noqa: SLF001 - a mixin of ours
        self._tap = tap
        self.shim, self.places = tap.shim, tap.places
        self._found, self._session, self._piped = found, session, piped

    def limited(self, steps: Steps[object]) -> Steps[None]:
        """Hold the conversation *steps* for as long as the floor leaves time, and a little more.

        Raises:
            UnmetError: its server does not show enough in time.
            StaleSnapshot: it would read from an older snapshot.
            ConfigurationError: it has to wait, and another server may be read than is asked.
        """
        self._limit(self.held.poll_s)
        try:
            yield from steps
        except Late as late:
            self._connection._antipode_give_up(self.held, late)  # noqa: SLF001 - as above
        finally:
            self._tap.until_s = None

    def opened(self) -> Steps[None]:
        """Wait before the snapshot is taken of a transaction that has none yet."""
        if (yield from self.questions()) is Verdict.OUTSIDE:
            yield from shown_outside(self)

    def _limit(self, timeout_s: float) -> None:
        self._tap.until_s = time.monotonic() + timeout_s + LATE_S

    def judge(self) -> Verdict:
        """By what the connection is known to show."""
        return self._tap.judge(self.held, self._found, self._session, piped=self._piped)

    def questions(self) -> Steps[Verdict]:
        """What the isolation of the open transaction lets it do."""
        backend = self._connection._antipode_backend()  # noqa: SLF001 - as above
        verdict: Verdict = yield Ask(self._tap.isolated(backend))
        return verdict

    def poll(self, timeout_s: float, *, outside: bool) -> Steps[Observation]:
        """Ask for the position and for records."""
        tap, connection = self._tap, self._connection
        backend = connection._antipode_backend()  # noqa: SLF001 - as above
        if outside:
            look = tap.look_outside(self.held, backend)
            seen: Observation = yield Send(AskOutside(tap.shim, look, timeout_s))
            return seen
        self._limit(timeout_s)
        session = connection._antipode_session  # noqa: SLF001 - as above
        seen = yield Send(Ask(tap.look(self.held, backend.pid, session)))
        return seen

    def settle(self, seen: Observation | None, *, outside: bool) -> None:
        """Remember what the connection, and the snapshot that comes, is known to show."""
        tap, held = self._tap, self.held
        if not held.served:
            tap.passed(held, seen)
        if not held.served if outside else self._session is Session.OPEN:
            tap.renewed()

    def stale(self) -> None:
        """Its snapshot is older, or others are in flight before it."""
        self._tap.stale(self.held, piped=self._piped)


class Holding:
    """What both APIs share."""

    __slots__ = ()

    #: The pipeline that is open; psycopg's connections alone have one.
    _pipeline: Any = None

    if TYPE_CHECKING:
        #: The connection's `Tap`.
        _antipode: Any
        #: How the session stands, as the packet that ended its last reply says.
        _antipode_session: Callable[[], Session]
        #: Whether the open pipeline has replies of the application's still to come.
        _antipode_busy: Callable[[], bool]
        #: The connection's process at its server.
        _antipode_backend: Callable[[], Backend]
        #: Close the connection.
        _antipode_end: Callable[[], None]

    def _antipode_hold(self, call: Call) -> Steps[None] | None:
        """How to wait until the statement of *call* may be sent; None: it may be now.

        Raises:
            UnmetError: as :func:`antipode.shim.floor`.
        """
        tap: Tap = self._antipode
        session = self._antipode_session()
        piped = session is Session.BUSY
        if self._pipeline is not None:
            piped = self._antipode_busy()
        tap.reads_by = call.reads_by
        found, held = tap.starts(call.sql, session, opens=call.opens, piped=piped)
        if held is None or session is Session.LOST:
            return None
        read = HeldRead(self, held, found, session, piped=piped)
        return read.limited(guard(read))

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
