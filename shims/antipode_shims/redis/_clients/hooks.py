# Generated from async_hooks.py by `make generate`; do not edit.
"""Instrumented redis-py clients and pipelines: redis-py's own code over tapped connections."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, UnmetError
from antipode.shim import Unreachable, adopt, disown, shared_watcher
from antipode_shims.redis._commands import READ, WRITE, Kind, kind_of

from .asked import Asked
from .call import CALL, SCANNING, Call, Rules, Staying, is_named
from .exchange import exchange, look_on, refusal_on
from .primary import AT_PRIMARY, MOVED, cursor_of, marked, without_mark
from .redis_py import called_once, link_errors, response_error, run_batch, timed_out
from .tap import Tap, TappedConnection, packet_mark

if TYPE_CHECKING:
    from antipode.shim import Floor
    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._shim.base import BaseRedisShim

Send = Callable[[Any], Any]


def _nothing() -> None:
    """Come before an attempt that needs nothing."""


def _at_primary(moved: UnmetError, made: Callable[..., Any], args: Any, options: Any) -> Any:
    """Make a read that was *moved*; a server that is no primary does not answer it."""
    token = MOVED.set(moved)
    try:
        return made(*args, **options)
    finally:
        MOVED.reset(token)


class SyncHooks:
    """What happens around redis-py's methods for the clients of one shim."""

    def __init__(self, shim: BaseRedisShim, client: Any) -> None:
        """Record positions for *shim* and satisfy its floors on the connections of *client*."""
        self.shim = shim
        self.rules = Rules(shim, client.connection_pool)
        weak = weakref.ref(client)
        self.staying = Staying(partial(_adopt, weak, self), partial(_disown, weak, self))

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
                stays = self.staying.begin()
                try:
                    while waits:
                        call.again.pause()
                        before()
                        reply = made(*args, **options)
                        waits = call.waits
                finally:
                    if stays:
                        self.staying.end()
                return reply

            return attempts

        token = CALL.set(call)
        try:
            reply = called_once(plain, repeated, args, options)
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
        rules, cursor = self.rules, cursor_of(args)
        if cursor < AT_PRIMARY:
            try:
                call = rules.call(args, scans=True, movable=not cursor)
                if call is None:
                    return plain(*args, **options)
                return self.run(call, plain, args, options, repeats=True)
            except UnmetError as unmet:
                primary = None if cursor else rules.elsewhere(unmet, [args], scans=True)
                if primary is None:
                    raise
                moved = unmet
            return marked(_at_primary(moved, primary.execute_command, args, options))
        if (primary := rules.primary) is None:
            msg = f"a cursor of the primary of {self.shim.datastore!r}, which is not known here"
            raise ConfigurationError(msg)
        return marked(primary.execute_command(*without_mark(args), **options))

    def command(self, call: Call, send: Send, connection: Any, args: Any, *, strict: bool) -> Any:
        """One attempt at a single command, which *send* makes on a connection."""
        kind, rules = kind_of(args), self.rules
        if rules.by_hand and rules.queuing(connection) and kind is not Kind.QUEUING:
            return self._queued(send, connection, args)
        # What no lineage is stored with needs no transaction of ours.
        alone = self.shim.stored is None or (not strict and rules.alone(connection))
        if kind is WRITE:
            refusal = refusal_on(connection, strict=strict)
            tap = rules.write_tap([args], alone=alone, strict=strict, refusal=refusal)
            return self._tapped(call, send, connection, tap)
        if kind is Kind.QUEUING:
            return self._by_hand(call, send, connection, args)
        if kind is Kind.NEUTRAL:
            return send(connection)
        return self._read(call, send, connection, args, alone=alone, strict=strict)

    def _read(
        self, call: Call, send: Send, connection: Any, args: Any, *, alone: bool, strict: bool
    ) -> Any:
        """A command that reads, or may."""
        kind, rules = kind_of(args), self.rules
        held, refusal = rules.floor(call, connection, reads=kind is not Kind.OTHER), None
        if held or kind is Kind.OTHER or rules.concerns(args):
            refusal = self._refusal(call, held, connection, strict=strict)
        plan: dict[str, Any] = {"alone": alone, "refusal": refusal}
        if held and refusal is None and kind is READ:
            return self._guarded(
                call,
                held,
                send,
                connection,
                lambda: rules.read_tap([args], lead=True, lead_s=held.poll_s, **plan),
            )
        if held and not self._held(call, held, connection, refusal):
            return None
        if kind is Kind.OTHER:
            tap = rules.write_tap([args], others=True, strict=strict, **plan)
            return self._tapped(call, send, connection, tap)
        return self._shown(call, send, connection, rules.read_tap([args], **plan))

    def batch(
        self, send: Send, connection: Any, commands: Any, *, transaction: bool, watching: bool
    ) -> Any:
        """One attempt at a pipeline's commands."""
        call = CALL.get()
        if call is None or not commands:
            return send(connection)
        meant = self.rules.batch(commands)
        asks = meant.reads or meant.others
        held = self.rules.floor(call, connection, reads=meant.reads) if asks else None
        mark = packet_mark(commands, transaction=transaction)
        every = [args for args, _ in commands]
        plan: dict[str, Any] = {"last": mark, "alone": not transaction and not watching}
        refusal = None
        if held or meant.may_write or self.shim.stored is not None:
            refusal = self._refusal(call, held, connection, strict=watching)
        plan["refusal"] = refusal
        if held and refusal is None and meant.repeatable and not watching:
            call.verdict = self.rules.stays(held, every)
            return self._guarded(
                call,
                held,
                send,
                connection,
                lambda: self.rules.read_tap(every, lead=True, lead_s=held.poll_s, **plan),
            )
        if held and not self._held(call, held, connection, refusal):
            return []
        if meant.queuing:
            # Whatever is added to commands around a MULTI of their own would be queued too.
            self.rules.missed(every)
            if meant.may_write:
                self.shim.unsampled("a pipeline has a MULTI of its own within")
            return send(connection)
        if meant.may_write:
            tap = self.rules.write_tap(every, others=meant.others, **plan)
            return self._tapped(call, send, connection, tap)
        return self._shown(call, send, connection, self.rules.read_tap(every, **plan))

    def _shown(self, call: Call, send: Send, connection: Any, tap: Tap) -> Any:
        """Reads that nothing holds back, and what they show to depend on."""
        if not tap.adds:
            return send(connection)
        try:
            reply = send(tap.around(connection))
        except response_error():
            if not tap.refused:
                raise
            reply = None
        finally:
            call.saw(tap)
        if tap.refused:
            return self._shown(call, send, connection, tap.loosened())
        return reply

    def _tapped(self, call: Call, send: Send, connection: Any, tap: Tap) -> Any:
        try:
            return send(tap.around(connection))
        except response_error():
            if not (tap.adds and tap.single and tap.refused):
                raise
            return self._tapped(call, send, connection, tap.loosened())
        finally:
            call.took(tap)
            if not tap.strict and (commands := self.shim.log_commands(tap.trailed)):
                self._note_log(connection, commands)

    def _note_log(self, connection: Any, commands: list[Command]) -> None:
        try:
            exchange(connection, commands)
        except link_errors():
            pass  # The application's command is done; replicas learn of the log otherwise.

    def _guarded(
        self, call: Call, held: Floor, send: Send, connection: Any, plan: Callable[[], Tap]
    ) -> Any:
        """Read after a poll in the same packet, until the poll shows the floor.

        Records of promises are asked for before, where the floor demands any. So is all of it by
        a read that has waited.
        """
        final = call.begun
        if call.verdict is not None:
            return None
        if (held.promises or final) and not self._held(call, held, connection):
            return None
        while True:
            tap = plan()
            try:
                reply, error = self._sent(held, send, tap.around(connection), tap)
                if self.rules.judge(held, tap.led, final=final, recorded=call.recorded):
                    break
            except UnmetError as unmet:
                call.verdict = unmet
                return None
            if not self._held(call, held, connection):
                return None
            final = True
        if tap.adds:
            call.saw(tap)
            if tap.refused:
                return self._guarded(call, held, send, connection, tap.loosened)
        if error is not None:
            raise error
        return reply

    def _refusal(
        self, call: Call, held: Floor | None, connection: Any, *, strict: bool
    ) -> Exception | None:
        """Why ``INFO`` may not ride along; under a floor that is the verdict after its time."""
        if held is None:
            return refusal_on(connection, strict=strict)
        try:
            return refusal_on(connection, strict=strict, timeout_s=held.poll_s)
        except Unreachable as away:
            try:
                held.expire(away)
            except UnmetError as unmet:
                call.verdict = unmet
            return away

    def _sent(
        self, held: Floor, send: Send, connection: Any, tap: Tap
    ) -> tuple[Any, Exception | None]:
        """The reply to a read with a poll before it, or the server's error.

        Raises:
            UnmetError: the poll was not answered in the floor's time.
        """
        try:
            return send(connection), None
        except response_error() as error:
            if not tap.sent:
                raise
            return None, error
        except Unreachable as away:
            held.expire(away)
            raise timed_out(away) from away

    def _held(
        self, call: Call, held: Floor, connection: Any, refusal: Exception | None = None
    ) -> bool:
        """Whether *connection* shows the floor. False: the attempt ends, and nothing was sent.

        Then it is made again, if it can be; otherwise the connection is kept until it does.
        """
        if call.verdict is not None:
            return False
        if refusal is not None:
            return self.rules.excused(call, held, refusal)
        look = self._look(held, connection)

        def observe(timeout_s: float) -> Any:
            shown = look(timeout_s)
            call.recorded = shown.server
            return shown

        try:
            if call.repeats and call.shim is self.shim:
                return call.again.look(held, observe)
            watcher = shared_watcher(self.shim)
            held.hold(observe, watcher=watcher, places=self.rules.kept)
        except UnmetError as unmet:
            call.verdict = unmet
            return False
        return True

    def _look(self, held: Floor, connection: Any) -> Callable[[float], Any]:
        def observe(timeout_s: float) -> Any:
            return look_on(connection, held, self.shim.look_for(held), timeout_s=timeout_s)

        return observe

    def _queued(self, send: Send, connection: Any, args: Any) -> Any:
        """A command after a ``MULTI`` sent explicitly."""
        self.rules.missed([args])
        tap = Tap()
        try:
            return send(TappedConnection(connection, tap))
        finally:
            self.rules.queued(connection, args, tap)

    def _by_hand(self, call: Call, send: Send, connection: Any, args: Any) -> Any:
        """``MULTI``, ``EXEC`` or ``DISCARD`` sent by hand."""
        if is_named(args, "MULTI"):
            refusal_on(connection)  # After it the question would be queued.
            reply = send(connection)
            self.rules.opened(connection)
            return reply
        wrote = self.rules.ended(connection)
        if is_named(args, "DISCARD"):
            return send(connection)
        call.repeats = False  # What is queued lies on this connection.
        held = self.rules.floor(call, connection, reads=not wrote)
        if held and not self._held(call, held, connection):
            return None
        asked = Asked.of(connection)
        refusal = asked.refusal if asked.settled(connection) else None
        tap = self.rules.write_tap((), wrote=wrote, refusal=refusal)
        return self._tapped(call, send, connection, tap)


def _adopt(weak: weakref.ref[Any], hooks: SyncHooks) -> None:
    """Instrument the client of *hooks* again, for a read that waits."""
    client = weak()
    if client is not None and getattr(client, "_antipode", None) is None:
        adopt(client, SyncClient, hooks)


def _disown(weak: weakref.ref[Any], hooks: SyncHooks) -> None:
    """Leave the client of *hooks* plain, unless it has others by now."""
    client = weak()
    if client is not None and getattr(client, "_antipode", None) is hooks:
        disown(client, SyncClient)
        vars(client.connection_pool).pop("get_connection", None)


class SyncClient:
    """Mixed into the class of an instrumented client."""

    _antipode: SyncHooks

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command; its position enters the scope, or the floor holds it back."""
        plain: Any = super().execute_command  # type: ignore[misc]
        hooks = self._antipode
        try:
            call = hooks.rules.call(args)
            if call is None:
                return plain(*args, **options)
            if call is SCANNING:
                return hooks.scan(plain, args, options)
            return hooks.run(call, plain, args, options, repeats=True)
        except UnmetError as unmet:
            if (primary := hooks.rules.elsewhere(unmet, [args])) is None:
                raise
            moved = unmet
        return _at_primary(moved, primary.execute_command, args, options)

    def _send_command_parse_response(
        self, conn: Any, command_name: Any, *args: Any, **options: Any
    ) -> Any:
        plain: Any = super()._send_command_parse_response  # type: ignore[misc]
        if (call := CALL.get()) is None:
            return plain(conn, command_name, *args, **options)

        hooks = self._antipode
        if hooks.shim.stored is not None:
            hooks.rules.watched(conn, args)  # A transaction of ours would end it.

        def send(connection: Any) -> Any:
            return plain(connection, command_name, *args, **options)

        return hooks.command(call, send, conn, args, strict=False)

    def pipeline(self, *args: Any, **options: Any) -> Any:
        """A pipeline that is instrumented, too."""
        plain: Any = super()
        return adopt(plain.pipeline(*args, **options), SyncPipeline, self._antipode)

    def json(self, *args: Any, **options: Any) -> Any:
        """Commands of a module, whose pipelines are instrumented, too."""
        plain: Any = super()
        return self._of_module(plain.json(*args, **options))

    def ft(self, *args: Any, **options: Any) -> Any:
        """As :meth:`json`."""
        plain: Any = super()
        return self._of_module(plain.ft(*args, **options))

    def ts(self, *args: Any, **options: Any) -> Any:
        """As :meth:`json`."""
        plain: Any = super()
        return self._of_module(plain.ts(*args, **options))

    def _of_module(self, commands: Any) -> Any:
        plain, hooks = commands.pipeline, self._antipode

        def pipeline(*args: Any, **options: Any) -> Any:
            return adopt(plain(*args, **options), SyncPipeline, hooks)

        commands.pipeline = pipeline
        return commands

    def client(self) -> Any:
        """A client of one connection that is instrumented, too."""
        plain: Any = super()
        child = plain.client()
        child._antipode = self._antipode  # noqa: SLF001
        return child


class SyncPipeline:
    """Mixed into the class of an instrumented client's pipelines."""

    _antipode: SyncHooks
    command_stack: Any
    explicit_transaction: bool
    scripts: Any
    watching: bool

    def execute(self, *args: Any, **options: Any) -> Any:
        """Send what is queued; positions enter the scope, or the floor holds it back."""
        plain: Any = super()
        hooks = self._antipode
        queued, in_transaction = self.command_stack, self.explicit_transaction

        def queue() -> None:  # The attempt before, if any, ended as if they had been sent.
            self.command_stack, self.explicit_transaction = queued, in_transaction

        # What is watched, and scripts that were loaded for it, are of this connection.
        repeats = not (self.watching or self.scripts)
        commands = [each for each, _ in queued]
        try:
            return hooks.run(
                Call(hooks.rules), plain.execute, args, options, repeats=repeats, before=queue
            )
        except UnmetError as unmet:
            primary = hooks.rules.elsewhere(unmet, commands) if repeats else None
            if primary is None:
                raise
            moved = unmet
        own = vars(self)  # redis-py has two names for it.
        pipeline = primary.pipeline(own.get("transaction", own.get("is_transaction", True)))
        pipeline.command_stack = queued
        return _at_primary(moved, pipeline.execute, args, options)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command between ``WATCH`` and ``MULTI``."""
        plain: Any = super().immediate_execute_command  # type: ignore[misc]
        hooks = self._antipode
        call = Call(hooks.rules)
        return hooks.run(call, plain, args, options, repeats=False)

    def _send_command_parse_response(
        self, conn: Any, command_name: Any, *args: Any, **options: Any
    ) -> Any:
        plain: Any = super()._send_command_parse_response  # type: ignore[misc]
        if (call := CALL.get()) is None:
            return plain(conn, command_name, *args, **options)

        def send(connection: Any) -> Any:
            return plain(connection, command_name, *args, **options)

        return self._antipode.command(call, send, conn, args, strict=self.watching)

    def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain: Any = super()
        send = partial(run_batch, plain._execute_transaction, commands, raise_on_error)  # noqa: SLF001
        return self._antipode.batch(
            send, connection, commands, transaction=True, watching=self.watching
        )

    def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain: Any = super()
        send = partial(run_batch, plain._execute_pipeline, commands, raise_on_error)  # noqa: SLF001
        return self._antipode.batch(
            send, connection, commands, transaction=False, watching=self.watching
        )
