"""Riding along with lineages: what is added to commands, and whose replies nobody else sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode.shim import lineage_not_stored
from antipode_shims.redis._clients.redis_py import encoder_of, response_error, watch_error
from antipode_shims.redis._clients.tap import AsyncTappedConnection, Tap, TappedConnection
from antipode_shims.redis._commands import name_of

from .companions import Companions, Part, again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from antipode_shims.redis._commands import Command


@dataclass(slots=True)
class _Frame:
    """The replies that stand for one reply to the application.

    Attributes:
        replies: how many there are.
        at: which of them is the application's.
        part: the command, where something was added to it.
        wrapped: whether the replies proper are those in the last one, to ``EXEC``.
        queued: for the ``EXEC`` of a transaction of the application's, its parts: where the
            replies of each begin, and each itself.
    """

    replies: int = 1
    at: int = 0
    part: Part | None = None
    wrapped: bool = False
    queued: list[tuple[int, Part | None]] = field(default_factory=list)


class StoredTap(Tap):
    """A tap that adds to the application's commands as well."""

    adds = True

    def __init__(self, companions: Companions, *, alone: bool = True, **plan: Any) -> None:
        """Plan one call; *alone* is False between ``WATCH`` and ``MULTI``."""
        super().__init__(**plan)
        self._companions = companions
        self._alone = alone
        self._frames: list[_Frame] = []
        self._encode: Any = None
        self._decode: Any = None
        self.shown = []
        self._plan = plan

    def do(self, send: Callable[[Any], Any]) -> Any:
        """Have redis-py *send* the call on the connection."""
        return send(StoredConnection(self.connection, self))

    def do_async(self, send: Callable[[Any], Any]) -> Any:
        """The asyncio twin of :meth:`do`."""
        return send(AsyncStoredConnection(self.connection, self))

    def pack(self, real: Any, commands: Iterable[Sequence[Any]]) -> Sequence[Any]:
        """Pack *commands* with all that is added."""
        packet = list(commands)
        if self.sent or not packet or not self._mine(packet[-1]):
            chunks: Sequence[Any] = real.pack_commands(packet)
            return chunks
        encoder = encoder_of(real)
        self._encode, self._decode = encoder.encode, encoder.decode
        return self.ride(packet, list(real.pack_commands(self._expanded(packet))))

    def loosened(self) -> StoredTap:
        """The same once more, without a transaction.

        A server without memory refuses any command in one, even those that read or delete.
        """
        return StoredTap(self._companions, alone=False, **self._plan)

    def _expanded(self, packet: list[Sequence[Any]]) -> list[Sequence[Any]]:
        self._frames.clear()
        if self._last is not None and len(packet) > 1 and name_of(packet[0]) == "MULTI":
            return self._transaction_of(packet)
        commands: list[Sequence[Any]] = []
        for args in packet:
            if not self._companions.concerns(args):
                self._frames.append(_Frame())
                commands.append(args)
                continue
            part = self._companions.part(args, self._encode, alone=self._alone)
            added = _around(part, loaded=False)
            if part.atomic and part.behind:
                added = [("MULTI",), *added, ("EXEC",)]
            wrapped = len(added) > 1 and part.atomic
            self._frames.append(_Frame(len(added), len(part.before), part, wrapped))
            commands += added
        return commands

    def _transaction_of(self, packet: list[Sequence[Any]]) -> list[Sequence[Any]]:
        """The application's own transaction, with what is added within it."""
        commands: list[Sequence[Any]] = [packet[0]]
        self._frames.append(_Frame())
        ending = _Frame()
        loaded = False
        for args in packet[1:-1]:
            part = None
            added: list[Sequence[Any]] = [args]
            if self._companions.concerns(args):
                part = self._companions.part(args, self._encode, alone=False)
                added = _around(part, loaded=loaded)
                loaded = loaded or any(each[0] == "EVAL" for each in part.behind)
            ending.queued.append((len(commands) - 1, part))
            self._frames.append(_Frame(len(added)))
            commands += added
        self._frames.append(ending)
        return [*commands, packet[-1]]

    def awaited(self) -> int:
        """How many replies stand for the next one to the application."""
        return self._frames[-self.due].replies

    def unwrapped(self, replies: list[Any], *, decoded: bool) -> Any:
        """The application's reply among *replies*, an error as a value.

        Args:
            replies: undecoded, errors among them as values.
            decoded: whether to decode it as the client is set up.
        """
        frame = self._frames[-self.due]
        reply = replies[frame.at]
        if frame.wrapped:
            inner = replies[-1]
            if isinstance(inner, list):
                reply = self._seen(frame.part, inner, 0)
            else:
                refused = (replies[1 + frame.at], *replies)
                errors = (each for each in refused if isinstance(each, Exception))
                reply = next(errors, None) or watch_error()()
                self.refused = self.refused or "maxmemory" in str(reply)
        elif frame.part is not None:
            reply = self._seen(frame.part, replies, 0)
        elif frame.queued and isinstance(reply, list):
            inner = reply
            reply = [
                inner[at] if part is None else self._seen(part, inner, at)
                for at, part in frame.queued
            ]
        try:
            return self._decoded(reply) if decoded else reply
        except UnicodeDecodeError as error:
            return error  # Raised once all replies are read.

    def _seen(self, part: Part | None, replies: list[Any], at: int) -> Any:
        """Take in what a command and what was added to it came to; the command's own reply."""
        if part is None:
            return replies[at]
        at += len(part.before)
        reply, behind = replies[at], replies[at + 1 : at + 1 + len(part.behind)]
        if part.reads:
            self.covers = True
            companions = behind[0] if behind else ()
            companions = behind if isinstance(companions, Exception) else companions
        else:
            companions = behind
            failed = any(isinstance(each, Exception) for each in behind)
            if failed and not isinstance(reply, Exception):
                lineage_not_stored(self._companions.datastore, name_of(part.command))
        self.shown.append(self._companions.found(part, reply, companions, self._encode))
        return reply

    def _decoded(self, reply: Any) -> Any:
        if isinstance(reply, bytes):
            return self._decode(reply)
        if isinstance(reply, (list, tuple, set, frozenset)):
            return type(reply)(map(self._decoded, reply))
        if isinstance(reply, dict):
            return {self._decoded(key): self._decoded(each) for key, each in reply.items()}
        return reply


def _around(part: Part, *, loaded: bool) -> list[Sequence[Any]]:
    behind: list[Command] = [
        again(each) if loaded or (at and part.atomic) else each
        for at, each in enumerate(part.behind)
    ]
    return [*part.before, part.command, *behind]


class StoredConnection(TappedConnection):
    """A connection of ``redis.Redis`` for one call that lineages ride along with."""

    __slots__ = ()

    def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        if self._tap.single and not self._tap.sent:
            self.send_packed_command(self.pack_commands([args]))
        else:
            self._real.send_command(*args, **options)

    def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        tap: Any = self._tap
        if not tap.due:
            return self._real.read_response(*args, **options)
        raw = {**options, "disable_decoding": True}
        try:
            if tap.lead_due:
                self._take_lead()
            replies = [self._one(raw) for _ in range(tap.awaited())]
        except BaseException as error:
            tap.failed(error)
            raise
        reply = tap.unwrapped(replies, decoded=not _undecoded(args, options))
        if tap.replied(reply):
            self._take_trail()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _one(self, options: dict[str, Any]) -> Any:
        try:
            return self._real.read_response(**options)
        except response_error() as error:
            return error


class AsyncStoredConnection(AsyncTappedConnection):
    """The asyncio twin of :class:`StoredConnection`."""

    __slots__ = ()

    async def send_command(self, *args: Any, **options: Any) -> None:
        """Send one command, as a packet of its own."""
        if self._tap.single and not self._tap.sent:
            await self.send_packed_command(self.pack_commands([args]))
        else:
            await self._real.send_command(*args, **options)

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply to the application's commands."""
        tap: Any = self._tap
        if not tap.due:
            return await self._real.read_response(*args, **options)
        raw = {**options, "disable_decoding": True}
        try:
            if tap.lead_due:
                await self._take_lead()
            replies = [await self._one(raw) for _ in range(tap.awaited())]
        except BaseException as error:
            tap.failed(error)
            raise
        reply = tap.unwrapped(replies, decoded=not _undecoded(args, options))
        if tap.replied(reply):
            await self._take_trail()
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _one(self, options: dict[str, Any]) -> Any:
        try:
            return await self._real.read_response(**options)
        except response_error() as error:
            return error


def _undecoded(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    return bool(args[0] if args else options.get("disable_decoding"))
