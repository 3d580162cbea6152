"""Riding along: ``INFO`` in the packet of the application's own commands.

A tapped connection is handed to redis-py's own code in place of the real one, so that packing,
parsing, callbacks and errors stay exactly redis-py's. It adds ``INFO replication`` before or
behind the commands of that one call and keeps its reply for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._client import link_errors, response_error, was_refused
from ._commands import Kind, kind_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._look import Command


#: ``INFO replication`` as it goes over the wire.
PACKED_INFO = b"*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"
#: Chunks up to this length are joined, for each is sent by a system call of its own.
_JOINED_BYTES = 65_536


def _joined(first: Any, second: Any) -> list[Any]:
    whole = isinstance(first, bytes) and isinstance(second, bytes)
    if whole and len(first) + len(second) <= _JOINED_BYTES:
        return [first + second]
    return [first, second]


class Tap:
    """What is added to one call, and what came of it. Of one attempt, not thread-safe.

    Attributes:
        led: the reply to ``INFO`` before the commands; an error as a value.
        trailed: the reply to ``INFO`` behind the commands; an error as a value.
        sent: the commands may have reached the server.
        lost: they may have, and not all of them were answered.
        wrote: a covered write was acknowledged.
        last: the last reply, as it came.
    """

    def __init__(
        self,
        *,
        lead: bool = False,
        trail: bool = False,
        last: Sequence[Any] | None = None,
        wrote: bool | None = None,
        strict: bool = False,
    ) -> None:
        """Plan one call.

        Args:
            lead: ask before the commands.
            trail: ask behind them.
            last: the arguments of a pipeline's last command, by which its packet is known;
                None for a single command.
            wrote: whether an ``EXEC`` sent by hand ends writes; None: as the commands say.
            strict: a connection that fails once all is answered fails the call, for its
                watched keys are gone with it.
        """
        self.led: Any = None
        self.trailed: Any = None
        self.sent = self.lost = self.wrote = False
        self.last: Any = None
        self._lead = lead
        self._trail = trail
        self._last = last
        self._manual = wrote
        self.strict = strict
        self._commands: list[Sequence[Any]] = []
        self._answered = 0
        self._packed = False

    @property
    def single(self) -> bool:
        """Whether it is for one command rather than a pipeline."""
        return self._last is None

    @property
    def packed(self) -> bool:
        """Whether the packet that was made last is the one to ride along with."""
        return self._packed and not self.sent

    def pack(self, real: Any, commands: Iterable[Sequence[Any]]) -> list[Any]:
        """Pack *commands* by the *real* connection; what is added shares the packet's ends."""
        packet = list(commands)
        chunks: list[Any] = list(real.pack_commands(packet))
        if self.sent or not packet or not self._mine(packet[-1]):
            return chunks
        return self._ride(packet, chunks)

    def pack_one(self, real: Any, command: Sequence[Any]) -> list[Any]:
        """Pack a single *command*, which is quicker than a packet of one."""
        return self._ride([command], list(real.pack_command(*command)))

    def _ride(self, packet: list[Sequence[Any]], chunks: list[Any]) -> list[Any]:
        self._commands = packet
        self._packed = True
        if self._lead:
            chunks[:1] = _joined(PACKED_INFO, chunks[0])
        if self._trail:
            chunks[-1:] = _joined(chunks[-1], PACKED_INFO)
        return chunks

    def _mine(self, last: Sequence[Any]) -> bool:
        if self._last is None or self._last is last:
            return True
        return len(last) == 1 and len(self._last) == 1 and last[0] == self._last[0] == "EXEC"

    @property
    def riding(self) -> bool:
        """Whether replies to the commands are still to come."""
        return self.sent and self._answered < len(self._commands)

    @property
    def lead_due(self) -> bool:
        """Whether the next reply is the one to ``INFO`` before the commands."""
        return self._lead and self._answered == 0 and self.led is None

    def replied(self, reply: Any) -> bool:
        """Take in a reply or error reply; True when the next is ``INFO``'s behind them."""
        command = self._commands[self._answered]
        self._answered += 1
        self.last = reply
        if self._trail and not isinstance(reply, Exception):
            self.wrote = self.wrote or self._acknowledges(command, reply)
        return self._trail and not self.riding

    def _acknowledges(self, command: Sequence[Any], reply: Any) -> bool:
        """Whether *reply* says that a covered write was done."""
        if self._manual is None and kind_of(command) is Kind.WRITE:
            return not self._transaction
        if name_of(command) != "EXEC":
            return False
        if not isinstance(reply, (list, tuple)):
            return False  # Aborted: a watched key changed.
        if self._manual is not None:
            return self._manual
        return any(
            kind_of(queued) is Kind.WRITE and not isinstance(answer, Exception)
            for queued, answer in zip(self._commands[1:-1], reply, strict=False)
        )

    @property
    def _whole(self) -> bool:
        """Whether one refusal is that of all: not in a pipeline, which is done one by one."""
        return len(self._commands) == 1 or self._transaction

    @property
    def _transaction(self) -> bool:
        return not self.single and name_of(self._commands[0]) == "MULTI"

    def failed(self, error: BaseException) -> None:
        """Take in that the connection failed while replies were due."""
        if self.sent and not (was_refused(error) and self._whole):
            self.lost = True


class TappedConnection:
    """A connection of ``redis.Redis`` for one call; everything else is the real one's."""

    __slots__ = ("_real", "_tap")
    _real: Any
    _tap: Tap

    def __init__(self, real: Any, tap: Tap) -> None:
        """Ride along on *real*."""
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_tap", tap)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def pack_commands(self, commands: Iterable[Sequence[Any]]) -> Any:
        """Pack with ``INFO`` added."""
        return self._tap.pack(self._real, commands)

    def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        if self._tap.single and not self._tap.sent:
            self.send_packed_command(self._tap.pack_one(self._real, args))
        else:
            self._real.send_command(*args, **options)

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002 - redis-py's
        """Send; connecting comes first, so that a refused connection is not in doubt."""
        tap = self._tap
        if not tap.packed:
            self._real.send_packed_command(command, check_health)
            return
        self._real.connect()
        if check_health:
            self._real.check_health()
        tap.sent = True
        try:
            self._real.send_packed_command(command, check_health=False)
        except BaseException as error:
            tap.failed(error)
            raise

    def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        tap = self._tap
        if not tap.riding:
            return self._real.read_response(*args, **options)
        try:
            if tap.lead_due:
                tap.led = self._own_reply()
            reply = self._real.read_response(*args, **options)
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

    def _take_trail(self) -> None:
        try:
            self._tap.trailed = self._own_reply()
        except link_errors() as error:
            # The application's commands are answered: they succeeded for it.
            self._tap.trailed = error
            if self._tap.strict:
                raise

    def _own_reply(self) -> Any:
        try:
            return self._real.read_response(disable_decoding=True)
        except response_error() as error:
            return error


class AsyncTappedConnection:
    """The asyncio twin of :class:`TappedConnection`."""

    __slots__ = ("_real", "_tap")
    _real: Any
    _tap: Tap

    def __init__(self, real: Any, tap: Tap) -> None:
        """Ride along on *real*."""
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_tap", tap)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def pack_commands(self, commands: Iterable[Sequence[Any]]) -> Any:
        """Pack with ``INFO`` added."""
        return self._tap.pack(self._real, commands)

    async def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        if self._tap.single and not self._tap.sent:
            await self.send_packed_command(self._tap.pack_one(self._real, args))
        else:
            await self._real.send_command(*args, **options)

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:  # noqa: FBT001, FBT002 - redis-py's
        """Send; connecting comes first, so that a refused connection is not in doubt."""
        tap = self._tap
        if not tap.packed:
            await self._real.send_packed_command(command, check_health)
            return
        await self._real.connect()
        if check_health:
            await self._real.check_health()
        tap.sent = True
        try:
            await self._real.send_packed_command(command, check_health=False)
        except BaseException as error:
            tap.failed(error)
            raise

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        tap = self._tap
        if not tap.riding:
            return await self._real.read_response(*args, **options)
        try:
            if tap.lead_due:
                tap.led = await self._own_reply()
            reply = await self._real.read_response(*args, **options)
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

    async def _take_trail(self) -> None:
        try:
            self._tap.trailed = await self._own_reply()
        except link_errors() as error:
            # The application's commands are answered: they succeeded for it.
            self._tap.trailed = error
            if self._tap.strict:
                raise
        except BaseException as error:
            self._tap.failed(error)
            raise

    async def _own_reply(self) -> Any:
        try:
            return await self._real.read_response(disable_decoding=True)
        except response_error() as error:
            return error


def packet_mark(commands: Sequence[tuple[Command, Any]], *, transaction: bool) -> Sequence[Any]:
    """By what the packet of a pipeline is known among those that redis-py prepares it with."""
    return ("EXEC",) if transaction else commands[-1][0]
