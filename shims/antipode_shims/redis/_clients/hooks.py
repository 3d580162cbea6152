"""What happens around redis-py's own code: a conversation, the same for threads and asyncio.

How often a call is attempted, and where, is written for each.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, UnmetError
from antipode.shim import (
    Unreachable,
    adopt,
    disown,
    drive,
    drive_async,
    guard,
    heed_cancellation,
)
from antipode_shims.redis._commands import READ, WRITE, Batch, Kind, kind_of

from .asked import Asked
from .call import CALL, Call, Rules, Staying, is_named
from .exchange import Exchange, asking
from .held import HeldRead
from .primary import AT_PRIMARY, MOVED, cursor_of, marked, without_mark
from .redis_py import called_once, link_errors, response_error
from .tap import Tap, packet_mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor, Steps
    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._shim.base import BaseRedisShim


class Plain:
    """A step: redis-py makes the call, and nothing is added."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        """On *connection*."""
        self._connection = connection

    def do(self, send: Callable[[Any], Any]) -> Any:
        """Make it, in either API."""
        return send(self._connection)

    do_async = do


def _nothing() -> None:
    """Come before an attempt that needs nothing."""


class Hooks:
    """What happens around redis-py's methods for the clients of one shim."""

    #: The mixin of the clients, and what drives a conversation with them.
    client: type
    drive: Callable[..., Any]

    def __init__(self, shim: BaseRedisShim, client: Any) -> None:
        """Record positions for *shim* and satisfy its floors on the connections of *client*."""
        self.shim = shim
        self.rules = Rules(shim, client.connection_pool)
        weak = weakref.ref(client)
        self.staying = Staying(partial(_adopt, weak, self), partial(_disown, weak, self))

    def command(self, call: Call, connection: Any, args: Any, *, strict: bool) -> Steps[Any]:
        """One attempt at a single command on a connection."""
        kind, rules = kind_of(args), self.rules
        if rules.by_hand and rules.queuing(connection) and kind is not Kind.QUEUING:
            return (yield from self._queued(connection, args))
        # What no lineage is stored with needs no transaction of ours.
        alone = self.shim.stored is None or (not strict and rules.alone(connection))
        if kind is WRITE:
            refusal = yield from asking(connection, strict=strict)
            tap = rules.write_tap([args], alone=alone, strict=strict, refusal=refusal)
            tap.kind = kind
            return (yield from self._tapped(call, connection, tap))
        if kind is Kind.QUEUING:
            return (yield from self._by_hand(call, connection, args))
        if kind is Kind.NEUTRAL:
            return (yield Plain(connection))
        return (yield from self._read(call, connection, args, alone=alone, strict=strict))

    def _read(
        self, call: Call, connection: Any, args: Any, *, alone: bool, strict: bool
    ) -> Steps[Any]:
        """A command that reads, or may."""
        kind, rules = kind_of(args), self.rules
        held, refusal = rules.floor(call, connection, reads=kind is not Kind.OTHER), None
        if held or kind is Kind.OTHER or rules.concerns(args):
            refusal = yield from self._refusal(call, held, connection, strict=strict)
        plan: dict[str, Any] = {"alone": alone, "refusal": refusal}
        if held and refusal is None and kind is READ:
            taps = partial(rules.read_tap, [args], lead=True, **plan)
            return (yield from self._guarded(call, held, connection, taps))
        if held and not (yield from self._held(call, held, connection, refusal)):
            return None
        if kind is Kind.OTHER:
            tap = rules.write_tap([args], others=True, strict=strict, **plan)
            return (yield from self._tapped(call, connection, tap))
        return (yield from self._shown(call, connection, rules.read_tap([args], **plan)))

    def batch(
        self, connection: Any, commands: Any, *, transaction: bool, watching: bool
    ) -> Steps[Any]:
        """One attempt at a pipeline's commands."""
        call = CALL.get()
        if call is None or not commands:
            return (yield Plain(connection))
        every = [args for args, _ in commands]
        meant = Batch.of(every)
        asks = meant.reads or meant.others
        held = self.rules.floor(call, connection, reads=meant.reads) if asks else None
        mark = packet_mark(commands, transaction=transaction)
        plan: dict[str, Any] = {"last": mark, "alone": not transaction and not watching}
        refusal = None
        if held or meant.may_write or self.shim.stored is not None:
            refusal = yield from self._refusal(call, held, connection, strict=watching)
        plan["refusal"] = refusal
        if held and refusal is None and meant.repeatable and not watching:
            call.verdict = self.rules.stays(held, every)
            taps = partial(self.rules.read_tap, every, lead=True, **plan)
            return (yield from self._guarded(call, held, connection, taps))
        if held and not (yield from self._held(call, held, connection, refusal)):
            return []
        if meant.queuing:
            # Whatever is added to commands around a MULTI of their own would be queued too.
            self.rules.missed(every)
            if meant.may_write:
                self.shim.unsampled("a pipeline has a MULTI of its own within")
            return (yield Plain(connection))
        if meant.may_write:
            tap = self.rules.write_tap(every, others=meant.others, **plan)
            return (yield from self._tapped(call, connection, tap))
        return (yield from self._shown(call, connection, self.rules.read_tap(every, **plan)))

    def _shown(self, call: Call, connection: Any, tap: Tap) -> Steps[Any]:
        """Reads that nothing holds back, and what they show to depend on."""
        if not tap.adds:
            return (yield Plain(connection))
        tap.connection = connection
        try:
            reply = yield tap
        except response_error():
            if not tap.refused:
                raise
            reply = None
        finally:
            call.saw(tap)
        if tap.refused:
            return (yield from self._shown(call, connection, tap.loosened()))
        return reply

    def _tapped(self, call: Call, connection: Any, tap: Tap) -> Steps[Any]:
        """A call that writes, or may."""
        tap.connection = connection
        try:
            return (yield tap)
        except response_error():
            if not (tap.adds and tap.single and tap.refused):
                raise
            return (yield from self._tapped(call, connection, tap.loosened()))
        finally:
            call.took(tap)
            if not tap.strict and (commands := self.shim.log_commands(tap.trailed)):
                yield from self._note_log(connection, commands)

    def _note_log(self, connection: Any, commands: list[Command]) -> Steps[None]:
        try:
            yield Exchange(connection, commands)
        except link_errors():
            pass  # The application's command is done; replicas learn of the log otherwise.

    def _guarded(
        self, call: Call, held: Floor, connection: Any, taps: Callable[[], Tap]
    ) -> Steps[Any]:
        """Reads that take their question along, in what *taps* makes for each attempt."""
        read = HeldRead(self.rules, call, held, connection, taps=taps)
        if not (yield from self._let(call, read)):
            return None
        if read.tap.adds:
            call.saw(read.tap)
            if read.tap.refused:
                return (yield from self._guarded(call, held, connection, read.tap.loosened))
        return read.answer()

    def _held(
        self, call: Call, held: Floor, connection: Any, refusal: Exception | None = None
    ) -> Steps[bool]:
        """Whether reads may be sent that are asked for alone. False: the attempt ends."""
        return self._let(call, HeldRead(self.rules, call, held, connection, refusal=refusal))

    def _let(self, call: Call, read: HeldRead) -> Steps[bool]:
        """Hold *read* back; what it ends with is kept, and raised outside of redis-py."""
        if call.verdict is not None:
            return False
        try:
            return (yield from guard(read))
        except UnmetError as unmet:
            call.verdict = unmet
            return False

    def _refusal(
        self, call: Call, held: Floor | None, connection: Any, *, strict: bool
    ) -> Steps[Exception | None]:
        """Why ``INFO`` may not ride along; under a floor that is the verdict after its time."""
        timeout_s = None if held is None else held.poll_s
        try:
            return (yield from asking(connection, strict=strict, timeout_s=timeout_s))
        except Unreachable as away:
            if held is None:
                raise
            try:
                held.expire(away)
            except UnmetError as unmet:
                call.verdict = unmet
            return away

    def _queued(self, connection: Any, args: Any) -> Steps[Any]:
        """A command after a ``MULTI`` sent explicitly."""
        self.rules.missed([args])
        tap = Tap()
        tap.connection = connection
        try:
            return (yield tap)
        finally:
            self.rules.queued(connection, args, tap)

    def _by_hand(self, call: Call, connection: Any, args: Any) -> Steps[Any]:
        """``MULTI``, ``EXEC`` or ``DISCARD`` sent explicitly."""
        if is_named(args, "MULTI"):
            yield from asking(connection)  # After it the question would be queued.
            reply = yield Plain(connection)
            self.rules.opened(connection)
            return reply
        wrote = self.rules.ended(connection)
        if is_named(args, "DISCARD"):
            return (yield Plain(connection))
        call.repeats = False  # What is queued lies on this connection.
        held = self.rules.floor(call, connection, reads=not wrote)
        if held and not (yield from self._held(call, held, connection)):
            return None
        asked = Asked.of(connection)
        refusal = asked.refusal if asked.settled(connection) else None
        tap = self.rules.write_tap((), wrote=wrote, refusal=refusal)
        return (yield from self._tapped(call, connection, tap))

    def scanned(self, args: Any) -> Call | None:
        """What a command with a cursor comes to, where that is not one of the primary's.

        Raises:
            UnmetError: as :meth:`Rules.call`.
        """
        return self.rules.call(args, scans=True, movable=not cursor_of(args))

    def moved_scan(self, unmet: UnmetError, args: Any) -> Any:
        """The client of the primary at which a command with a cursor is made that was *unmet*.

        Raises:
            UnmetError: it began at the replica, which does not show enough now.
        """
        begins = not cursor_of(args)
        primary = self.rules.elsewhere(unmet, [args], scans=True) if begins else None
        if primary is None:
            raise unmet
        return primary

    def scanning(self) -> Any:
        """The client of the primary that gave a cursor.

        Raises:
            ConfigurationError: this client does not know it.
        """
        if (primary := self.rules.primary) is None:
            msg = f"a cursor of the primary of {self.shim.datastore!r}, which is not known here"
            raise ConfigurationError(msg)
        return primary


class SyncHooks(Hooks):
    """Of a client of threads."""

    drive = staticmethod(drive)

    def run(
        self,
        call: Call,
        plain: Callable[..., Any],
        args: Any,
        options: Any,
        *,
        repeats: bool,
        before: Callable[[], None] = _nothing,
    ) -> Any:
        """One call of the application, attempts and all.

        Args:
            call: what it comes to.
            plain: makes it. An attempt that was too early has returned nothing, and its
                connection is free.
            args: of *plain*.
            options: of *plain*.
            repeats: whether *plain* may be called again for a read that waits.
            before: comes before each attempt.
        """
        call.repeats = repeats

        def repeated(made: Callable[..., Any]) -> Callable[..., Any]:
            def attempts(*args: Any, **options: Any) -> Any:
                before()
                reply = made(*args, **options)
                waits = call.waits
                if not waits:
                    return reply
                with self.staying:
                    while waits:
                        call.again.pause()
                        before()
                        reply = made(*args, **options)
                        waits = call.waits
                return reply

            return attempts

        token = CALL.set(call)
        try:
            if call.may_wait:
                reply = called_once(plain, repeated, args, options)
            else:
                reply = plain(*args, **options)
        except BaseException:
            CALL.reset(token)
            call.settle_failed()
            raise
        CALL.reset(token)
        call.settle()
        return reply

    def scan(self, plain: Callable[..., Any], args: Any, options: Any) -> Any:
        """A command with a cursor: it goes on at the server that gave the cursor.

        Raises:
            ConfigurationError: that is a primary which this client does not know.
            UnmetError: it began at the replica, which does not show enough now.
        """
        if cursor_of(args) >= AT_PRIMARY:
            return marked(self.scanning().execute_command(*without_mark(args), **options))
        try:
            if (call := self.scanned(args)) is None:
                return plain(*args, **options)
            return self.run(call, plain, args, options, repeats=True)
        except UnmetError as unmet:
            primary, moved = self.moved_scan(unmet, args), unmet
        return marked(self.at_primary(moved, primary.execute_command, args, options))

    def at_primary(
        self, moved: UnmetError, made: Callable[..., Any], args: Any, options: Any
    ) -> Any:
        """Make a read that was *moved*; a server that is no primary does not answer it."""
        token = MOVED.set(moved)
        try:
            return made(*args, **options)
        finally:
            MOVED.reset(token)


class AsyncHooks(Hooks):
    """Of a client of asyncio."""

    drive = staticmethod(drive_async)

    async def run(
        self,
        call: Call,
        plain: Callable[..., Any],
        args: Any,
        options: Any,
        *,
        repeats: bool,
        before: Callable[[], None] = _nothing,
    ) -> Any:
        """The asyncio twin of :meth:`SyncHooks.run`."""
        call.repeats = repeats

        def repeated(made: Callable[..., Any]) -> Callable[..., Any]:
            made = heed_cancellation(made)

            async def attempts(*args: Any, **options: Any) -> Any:
                before()
                reply = await made(*args, **options)
                waits = call.waits
                if not waits:
                    return reply
                with self.staying:
                    while waits:
                        await call.again.pause_async()
                        before()
                        reply = await made(*args, **options)
                        waits = call.waits
                return reply

            return attempts

        token = CALL.set(call)
        try:
            if call.may_wait:
                reply = await called_once(plain, repeated, args, options)
            else:
                reply = await plain(*args, **options)
        except BaseException:
            CALL.reset(token)
            call.settle_failed()
            raise
        CALL.reset(token)
        call.settle()
        return reply

    async def scan(self, plain: Callable[..., Any], args: Any, options: Any) -> Any:
        """The asyncio twin of :meth:`SyncHooks.scan`."""
        if cursor_of(args) >= AT_PRIMARY:
            return marked(await self.scanning().execute_command(*without_mark(args), **options))
        try:
            if (call := self.scanned(args)) is None:
                return await plain(*args, **options)
            return await self.run(call, plain, args, options, repeats=True)
        except UnmetError as unmet:
            primary, moved = self.moved_scan(unmet, args), unmet
        return marked(await self.at_primary(moved, primary.execute_command, args, options))

    async def at_primary(
        self, moved: UnmetError, made: Callable[..., Any], args: Any, options: Any
    ) -> Any:
        """The asyncio twin of :meth:`SyncHooks.at_primary`."""
        token = MOVED.set(moved)
        try:
            return await made(*args, **options)
        finally:
            MOVED.reset(token)


def _adopt(weak: weakref.ref[Any], hooks: Hooks) -> None:
    """Instrument the client of *hooks* again, for a read that waits."""
    client = weak()
    if client is not None and getattr(client, "_antipode", None) is None:
        adopt(client, hooks.client, hooks)


def _disown(weak: weakref.ref[Any], hooks: Hooks) -> None:
    """Leave the client of *hooks* plain, unless it has others by now."""
    client = weak()
    if client is not None and getattr(client, "_antipode", None) is hooks:
        disown(client, hooks.client)
        vars(client.connection_pool).pop("get_connection", None)
