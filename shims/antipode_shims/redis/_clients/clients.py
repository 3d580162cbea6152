"""Instrumented redis-py clients and pipelines: redis-py's own methods, with hooks around them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import UnmetError
from antipode.shim import adopt

from .call import CALL, SCANNING, Call
from .hooks import AsyncHooks, SyncHooks
from .redis_py import run_batch

if TYPE_CHECKING:
    from collections.abc import Callable


class Client:
    """What instrumented clients of both APIs share."""

    _antipode: Any
    _antipode_pipeline: type

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

        return hooks.drive(hooks.command(call, conn, args, strict=False), send)

    def pipeline(self, *args: Any, **options: Any) -> Any:
        """A pipeline that is instrumented, too."""
        plain: Any = super()
        return adopt(plain.pipeline(*args, **options), self._antipode_pipeline, self._antipode)

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
        plain, hooks, mixin = commands.pipeline, self._antipode, self._antipode_pipeline

        def pipeline(*args: Any, **options: Any) -> Any:
            return adopt(plain(*args, **options), mixin, hooks)

        commands.pipeline = pipeline
        return commands

    def client(self) -> Any:
        """A client of one connection that is instrumented, too."""
        plain: Any = super()
        child = plain.client()
        child._antipode = self._antipode  # noqa: SLF001
        return child


class Pipeline:
    """What the pipelines of instrumented clients of both APIs share."""

    _antipode: Any
    command_stack: Any
    explicit_transaction: bool
    scripts: Any
    watching: bool

    def _antipode_begin(self) -> tuple[Any, Callable[[], None], bool]:
        """What is queued, what queues it again before each attempt, and whether there may be more.

        The attempt before, if any, ended as if it had been sent.
        """
        queued, in_transaction = self.command_stack, self.explicit_transaction

        def queue() -> None:
            self.command_stack, self.explicit_transaction = queued, in_transaction

        # What is watched, and scripts that were loaded for it, are of this connection.
        return queued, queue, not (self.watching or self.scripts)

    def _antipode_moved(self, unmet: UnmetError, queued: Any, *, repeats: bool) -> Any:
        """A pipeline of the primary with what is *queued*, for reads that were *unmet* here.

        Raises:
            UnmetError: there is none.
        """
        commands = [each for each, _ in queued]
        primary = self._antipode.rules.elsewhere(unmet, commands) if repeats else None
        if primary is None:
            raise unmet
        own = vars(self)  # redis-py has two names for it.
        pipeline = primary.pipeline(own.get("transaction", own.get("is_transaction", True)))
        pipeline.command_stack = queued
        return pipeline

    def _send_command_parse_response(
        self, conn: Any, command_name: Any, *args: Any, **options: Any
    ) -> Any:
        plain: Any = super()._send_command_parse_response  # type: ignore[misc]
        if (call := CALL.get()) is None:
            return plain(conn, command_name, *args, **options)

        def send(connection: Any) -> Any:
            return plain(connection, command_name, *args, **options)

        hooks = self._antipode
        return hooks.drive(hooks.command(call, conn, args, strict=self.watching), send)

    def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain: Any = super()
        send = partial(run_batch, plain._execute_transaction, commands, raise_on_error)  # noqa: SLF001
        hooks = self._antipode
        steps = hooks.batch(connection, commands, transaction=True, watching=self.watching)
        return hooks.drive(steps, send)

    def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: Any) -> Any:
        plain: Any = super()
        send = partial(run_batch, plain._execute_pipeline, commands, raise_on_error)  # noqa: SLF001
        hooks = self._antipode
        steps = hooks.batch(connection, commands, transaction=False, watching=self.watching)
        return hooks.drive(steps, send)


class SyncPipeline(Pipeline):
    """Mixed into the class of the pipelines of a client of threads."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Send what is queued; positions enter the scope, or the floor holds it back."""
        plain: Any = super()
        hooks = self._antipode
        queued, queue, repeats = self._antipode_begin()
        call = Call(hooks.rules)
        try:
            return hooks.run(call, plain.execute, args, options, repeats=repeats, before=queue)
        except UnmetError as unmet:
            pipeline, moved = self._antipode_moved(unmet, queued, repeats=repeats), unmet
        return hooks.at_primary(moved, pipeline.execute, args, options)

    def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command between ``WATCH`` and ``MULTI``."""
        plain: Any = super().immediate_execute_command  # type: ignore[misc]
        hooks = self._antipode
        return hooks.run(Call(hooks.rules), plain, args, options, repeats=False)


class AsyncPipeline(Pipeline):
    """The asyncio twin of :class:`SyncPipeline`."""

    async def execute(self, *args: Any, **options: Any) -> Any:
        """Send what is queued; positions enter the scope, or the floor holds it back."""
        plain: Any = super()
        hooks = self._antipode
        queued, queue, repeats = self._antipode_begin()
        call = Call(hooks.rules)
        try:
            return await hooks.run(
                call, plain.execute, args, options, repeats=repeats, before=queue
            )
        except UnmetError as unmet:
            pipeline, moved = self._antipode_moved(unmet, queued, repeats=repeats), unmet
        return await hooks.at_primary(moved, pipeline.execute, args, options)

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command between ``WATCH`` and ``MULTI``."""
        plain: Any = super().immediate_execute_command  # type: ignore[misc]
        hooks = self._antipode
        return await hooks.run(Call(hooks.rules), plain, args, options, repeats=False)


class SyncClient(Client):
    """Mixed into the class of an instrumented client of threads."""

    _antipode_pipeline = SyncPipeline

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
        return hooks.at_primary(moved, primary.execute_command, args, options)


class AsyncClient(Client):
    """The asyncio twin of :class:`SyncClient`."""

    _antipode_pipeline = AsyncPipeline

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command; its position enters the scope, or the floor holds it back."""
        plain: Any = super().execute_command  # type: ignore[misc]
        hooks = self._antipode
        try:
            call = hooks.rules.call(args)
            if call is None:
                return await plain(*args, **options)
            if call is SCANNING:
                return await hooks.scan(plain, args, options)
            return await hooks.run(call, plain, args, options, repeats=True)
        except UnmetError as unmet:
            if (primary := hooks.rules.elsewhere(unmet, [args])) is None:
                raise
            moved = unmet
        return await hooks.at_primary(moved, primary.execute_command, args, options)


SyncHooks.client, AsyncHooks.client = SyncClient, AsyncClient
