"""Riding along: ``INFO`` in the packet of the application's own commands.

A tapped connection is handed to redis-py's own code in place of the real one, so that packing,
parsing, callbacks and errors stay exactly redis-py's. It adds ``INFO replication`` before or
after the commands of that one call and keeps its reply for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import Unreachable
from antipode_shims.redis._commands import WRITE, Kind, kind_of, name_of

from .redis_py import link_errors, no_script, response_error, was_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from antipode import Lineage
    from antipode_shims.redis._commands import Command


#: ``INFO replication`` as it goes over the wire.
PACKED_INFO = b"*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"
#: Packets up to this length leave whole, for each chunk is sent by a system call of its own.
_JOINED_BYTES = 65_536


class Tap:
    """What is added to one call, and what came of it. Of one attempt, not thread-safe.

    Attributes:
        connection: of redis-py, that the call is made on.
        led: the reply to ``INFO`` before the commands; an error as a value.
        trailed: the reply to ``INFO`` after the commands; an error as a value.
        lead_s: seconds within which that has to be answered; None: as the connection is set up.
        lead_due: the next reply is the one to ``INFO`` before the commands.
        kind: of its single command, where that is known.
        single: it is for one command rather than a pipeline.
        packed: how many commands are in the packet that is to ride along; 0 before it is made.
        sent: the commands may have reached the server.
        due: replies to the commands that are still to come.
        lost: the commands may have reached the server, and not all of them were answered.
        wrote: a covered write was acknowledged.
        ran: a command that may have written was done, or failed on its way.
        last: the last reply, as it came.
        adds: whether it adds to the application's commands, too, and finds lineages in replies.
        shown: what the replies depend on, so far.
        covers: whether a read was answered, which the position after all covers.
        refused: whether a server without memory refused a command for its transaction alone.
    """

    # Most calls change few of these: what an instance does not set costs it nothing.
    connection: Any = None
    lead_s: float | None = None
    led: Any = None
    trailed: Any = None
    sent = lost = wrote = ran = False
    packed = due = 0
    last: Any = None
    adds = covers = refused = False
    shown: list[Lineage]
    kind: Kind | None = None
    _commands: Sequence[Sequence[Any]] = ()
    _transaction = False

    def __init__(
        self,
        *,
        lead: bool = False,
        trail: bool = False,
        last: Sequence[Any] | None = None,
        wrote: bool | None = None,
        strict: bool = False,
        refusal: Exception | None = None,
    ) -> None:
        """Plan one call.

        Args:
            lead: ask before the commands.
            trail: ask after them, and take in what they did.
            last: the arguments of a pipeline's last command, by which its packet is known;
                None for a single command.
            wrote: whether an ``EXEC`` sent by hand ends writes; None: as the commands say.
            strict: a connection that fails once all is answered fails the call, for its
                watched keys are gone with it.
            refusal: why ``INFO`` may not ride along: it stands for the reply.
        """
        self.single = last is None
        self._asks = refusal is None
        if refusal is not None:
            self.trailed = refusal
        self.lead_due = self._lead = lead and self._asks
        self._trail = trail
        self._last = last
        self._manual = wrote
        self.strict = strict

    def do(self, send: Callable[[Any], Any]) -> Any:
        """Have redis-py *send* the call on the connection: a step of a conversation."""
        return send(TappedConnection(self.connection, self))

    def do_async(self, send: Callable[[Any], Any]) -> Any:
        """The asyncio twin of :meth:`do`."""
        return send(AsyncTappedConnection(self.connection, self))

    def loosened(self) -> Tap:
        """The same once more, without what was refused."""
        raise NotImplementedError

    def pack(self, real: Any, commands: Iterable[Sequence[Any]]) -> Sequence[Any]:
        """Pack *commands* by the *real* connection; what is added shares the packet's ends."""
        packet = list(commands)
        chunks: Sequence[Any] = real.pack_commands(packet)
        if self.sent or not packet or not self._mine(packet[-1]):
            return chunks
        return self.ride(packet, chunks)

    def ride(self, commands: Sequence[Sequence[Any]], chunks: Sequence[Any]) -> Sequence[Any]:
        """Add to *chunks*, into which *commands* were packed."""
        self._commands = commands
        self.packed = len(commands)
        if self._last is not None:
            self._transaction = name_of(commands[0]) == "MULTI"
        if self._lead:
            chunks = [PACKED_INFO, *chunks]
        if self._trail and self._asks:
            chunks = [*chunks, PACKED_INFO]
        return [b"".join(chunks)] if sum(map(len, chunks)) <= _JOINED_BYTES else _closed_up(chunks)

    def _mine(self, last: Sequence[Any]) -> bool:
        if self._last is None or self._last is last:
            return True
        return len(last) == 1 and len(self._last) == 1 and last[0] == self._last[0] == "EXEC"

    def replied(self, reply: Any) -> bool:
        """Take in a reply or error reply; True when the next is ``INFO``'s after them."""
        self.due -= 1
        self.last = reply
        if not self._trail:
            return False
        if not self.wrote:
            self._note(self._commands[~self.due], reply)
        return self._asks and not self.due

    def _note(self, command: Sequence[Any], reply: Any) -> None:
        """Take in what a command did, by its *reply*."""
        kind = kind_of(command) if self.kind is None else self.kind
        if kind is Kind.QUEUING:
            self._note_end(command, reply)
        elif self._manual is None and not self._transaction:
            self._note_done(kind, reply)

    def _note_done(self, kind: Kind, reply: Any) -> None:
        """Take in a command that was done; a script that fails may have written before that."""
        if kind is WRITE:
            self.wrote = self.wrote or not isinstance(reply, Exception)
        elif kind is Kind.OTHER:
            self.ran = self.ran or not isinstance(reply, no_script())

    def _note_end(self, command: Sequence[Any], reply: Any) -> None:
        """Take in what an ``EXEC`` did: nothing, where it was aborted or a watched key changed."""
        if name_of(command) != "EXEC" or not isinstance(reply, (list, tuple)):
            return
        if self._manual is not None:
            self.wrote = self._manual
            return
        for queued, answer in zip(self._commands[1:-1], reply, strict=False):
            self._note_done(kind_of(queued), answer)

    @property
    def _whole(self) -> bool:
        """Whether one refusal is that of all: not in a pipeline, which is done one by one."""
        return len(self._commands) == 1 or self._transaction

    def failed(self, error: BaseException) -> None:
        """Take in that the connection failed while replies were due."""
        if self.sent and not (was_refused(error) and self._whole):
            self.lost = True


def _closed_up(chunks: Sequence[Any]) -> Sequence[Any]:
    """Let ``INFO`` share its neighbour's system call in a long packet, too.

    A server that has the whole of a write and not yet ``INFO`` answers the one before the other.
    """
    closer = list(chunks)
    for ends in (slice(-2, None), slice(2)):
        if sum(map(len, closer[ends])) <= _JOINED_BYTES:
            closer[ends] = [b"".join(closer[ends])]
    return closer


class _Tapped:
    """A connection for one call: what is not overridden is the real one's."""

    __slots__ = ("_real", "_tap")
    _real: Any
    _tap: Tap

    def __init__(self, real: Any, tap: Tap) -> None:
        """Ride along on *real*."""
        _set_real(self, real)
        _set_tap(self, tap)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def pack_commands(self, commands: Iterable[Sequence[Any]]) -> Any:
        """Pack with ``INFO`` added."""
        return self._tap.pack(self._real, commands)


class TappedConnection(_Tapped):
    """A connection of ``redis.Redis`` for one call; everything else is the real one's."""

    __slots__ = ()

    def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        real, tap = self._real, self._tap
        if tap.single and not tap.sent:
            self.send_packed_command(tap.ride((args,), real.pack_command(*args)))
        else:
            real.send_command(*args, **options)

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002 - redis-py's
        """Send; connecting comes first, so that a refused connection is not in doubt."""
        real, tap = self._real, self._tap
        if tap.sent or not tap.packed:
            real.send_packed_command(command, check_health)
            return
        if getattr(real, "_sock", None) is None:  # Asked first: connect() has a price of its own.
            real.connect()
        if check_health:
            real.check_health()
        tap.sent = True
        tap.due = tap.packed
        try:
            real.send_packed_command(command, check_health=False)
        except BaseException as error:
            tap.failed(error)
            raise

    def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        read, tap = self._real.read_response, self._tap
        if not tap.due:
            return read(*args, **options)
        try:
            if tap.lead_due:
                self._take_lead()
            reply = read(*args, **options)
        except response_error() as error:
            if tap.replied(error):
                self._take_trail()
            raise
        except BaseException as error:
            tap.failed(error)
            raise
        if tap.replied(reply):
            self._take_trail()
        return reply

    def _take_lead(self) -> None:
        real, tap = self._real, self._tap
        tap.lead_due = False
        if tap.lead_s is not None and not real.can_read(tap.lead_s):
            real.disconnect()
            raise Unreachable(f"no reply within {tap.lead_s:.3f} s")
        try:
            tap.led = real.read_response(disable_decoding=True)
        except response_error() as error:
            tap.led = error

    def _take_trail(self) -> None:
        tap = self._tap
        try:
            tap.trailed = self._real.read_response(disable_decoding=True)
        except response_error() as error:
            tap.trailed = error
        except link_errors() as error:
            # The application's commands are answered: they succeeded for it.
            tap.trailed = error
            if tap.strict:
                raise


class AsyncTappedConnection(_Tapped):
    """The asyncio twin of :class:`TappedConnection`."""

    __slots__ = ()

    async def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        real, tap = self._real, self._tap
        if tap.single and not tap.sent:
            await self.send_packed_command(tap.ride((args,), real.pack_command(*args)))
        else:
            await real.send_command(*args, **options)

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002 - redis-py's
        """Send; connecting comes first, so that a refused connection is not in doubt."""
        real, tap = self._real, self._tap
        if tap.sent or not tap.packed:
            await real.send_packed_command(command, check_health)
            return
        if not real.is_connected:
            await real.connect()
        if check_health:
            await real.check_health()
        tap.sent = True
        tap.due = tap.packed
        try:
            await real.send_packed_command(command, check_health=False)
        except BaseException as error:
            tap.failed(error)
            raise

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        read, tap = self._real.read_response, self._tap
        if not tap.due:
            return await read(*args, **options)
        try:
            if tap.lead_due:
                await self._take_lead()
            reply = await read(*args, **options)
        except response_error() as error:
            if tap.replied(error):
                await self._take_trail()
            raise
        except BaseException as error:
            tap.failed(error)
            raise
        if tap.replied(reply):
            await self._take_trail()
        return reply

    async def _take_lead(self) -> None:
        real, tap = self._real, self._tap
        tap.lead_due = False
        try:
            # With a limit of its own, redis-py returns None when the time is up.
            tap.led = await real.read_response(disable_decoding=True, timeout=tap.lead_s)
        except response_error() as error:
            tap.led = error
        if tap.led is None:
            await real.disconnect(nowait=True)
            raise Unreachable(f"no reply within {tap.lead_s:.3f} s")

    async def _take_trail(self) -> None:
        tap = self._tap
        try:
            tap.trailed = await self._real.read_response(disable_decoding=True)
        except response_error() as error:
            tap.trailed = error
        except link_errors() as error:
            # The application's commands are answered: they succeeded for it.
            tap.trailed = error
            if tap.strict:
                raise
        except BaseException as error:
            tap.failed(error)
            raise


# The slots' own setters, after ``__setattr__``: half the price of ``object.__setattr__``.
_set_real: Any = _Tapped.__dict__["_real"].__set__
_set_tap: Any = _Tapped.__dict__["_tap"].__set__


def packet_mark(commands: Sequence[tuple[Command, Any]], *, transaction: bool) -> Sequence[Any]:
    """By what the packet of a pipeline is known among those that redis-py prepares it with."""
    return ("EXEC",) if transaction else commands[-1][0]
