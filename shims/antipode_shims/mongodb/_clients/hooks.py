"""Instrumented clients of MongoDB: PyMongo's own code, with its replies observed.

Four of a client's methods see everything, in PyMongo 4.9 as in 4.20: those that run an operation on
a connection, the one that every command passes before it is encoded, and the one that every reply
passes after it is decoded. Databases, collections and cursors call them on the client whenever they
were made. Where those of both APIs are named alike, what they return is awaited by PyMongo.
"""

from __future__ import annotations

import weakref
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import StaleRead, drive, drive_async, floor, heed_cancellation

from .call import CALL, QUERY, Call, Rules
from .held import Attempt, HeldBatch, Plain, TooEarly
from .pymongo import closes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

    from antipode.shim import Steps
    from antipode_shims.mongodb._shim.base import BaseMongoShim
    from antipode_shims.mongodb._stored.lineages import StoredLineages


class Around:
    """What is done to a connection for one attempt at an operation, and undone after it."""

    __slots__ = ("_bulk", "_call", "_connection", "_hooks", "_read", "_wire")

    def __init__(self, hooks: Hooks, call: Call, connection: Any, bulk: Any) -> None:
        """Of *call*, on *connection*; *bulk* is PyMongo's bulk write, if it may be one."""
        self._hooks, self._call, self._connection, self._bulk = hooks, call, connection, bulk
        self._read: Attempt | None = None
        self._wire: Any = None

    def __enter__(self) -> Attempt | None:
        """Store and find lineages, and hold reads back, where there is anything to do.

        Raises:
            ConfigurationError: the server is a mongos, or no member of a replica set.
        """
        hooks, connection, held = self._hooks, self._connection, self._call.floor
        if held is not None:
            hooks.rules.check(connection)
        if hooks.wire is not None:
            self._wire = hooks.wire(connection, self._bulk)
            self._wire.__enter__()
        if held is not None:
            self._read = Attempt(hooks.rules, self._call, held, connection)
            self._read.install(hooks.drive)
        return self._read

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Undo it."""
        if error is not None and not isinstance(error, TooEarly):
            self._call.failed(self._connection, error)
        if self._read is not None:
            self._read.remove()
        if self._wire is not None:
            self._wire.__exit__(kind, error, traceback)


class Hooks:
    """What happens around PyMongo's methods for one client."""

    #: The mixin of the client, and what drives a conversation with its connections.
    client: type
    drive: Callable[..., Any]

    def __init__(self, shim: BaseMongoShim, client: Any, names: tuple[str, ...] = ()) -> None:
        """Record positions of *client* for *shim*, and satisfy its floors.

        Lineages are stored in the documents of the collections *names*.
        """
        self.shim = shim
        self.rules = Rules(shim, client)
        self.stored: StoredLineages | None = None
        self.wire: Callable[..., AbstractContextManager[Any]] | None = None
        if names:
            from antipode_shims.mongodb._stored.lineages import StoredLineages
            from antipode_shims.mongodb._stored.wire import AsyncWire, SyncWire

            wire = AsyncWire if isinstance(self, AsyncHooks) else SyncWire
            self.stored = StoredLineages(self.rules, names)
            self.wire = partial(wire, self.stored)

    def batch(self, plain: Any, operation: Any, *args: Any, **options: Any) -> Steps[Any]:
        """The next batch of a cursor that has a connection of its own."""
        manager, stale = operation.conn_mgr, StaleRead()
        connection, streams = manager.conn, manager.more_to_come
        if (held := floor(self.shim, reads=False, stale=stale)) is not None:
            yield from HeldBatch(self.rules, held, connection, streams=streams).let()
        with nullcontext() if self.wire is None else self.wire(connection, None) as wire:
            if wire is not None and streams:
                wire.expect(operation)
            reply = yield Plain(plain, operation, *args, **options)
        stale.answered()
        return reply

    def transaction(self, session: Any, *args: Any, **options: Any) -> Steps[Any]:
        """``with_transaction``: a commit that it repeats is in doubt only in the end."""
        with self.rules.repeating(session):
            return (yield Plain(type(session).with_transaction, session, *args, **options))


class SyncHooks(Hooks):
    """Of a client of threads."""

    drive = staticmethod(drive)

    def run(self, plain: Callable[..., Any], func: Any, args: Any, options: Any) -> Any:
        """One operation of the application: *func* makes an attempt at it on a connection."""
        call, query = Call(self.rules, repeats=True), QUERY.get()
        bulk = options.get("bulk", args[1] if len(args) > 1 else None)

        def attempt(*given: Any) -> Any:
            connection = given[1] if len(given) == 3 else given[2]  # noqa: PLR2004 - write, or read
            with Around(self, call, connection, bulk) as read:
                if read is not None and query is not None:
                    drive(read.ask_first(query), connection)
                return func(*given)

        with call:
            while True:
                try:
                    result = plain(attempt, *args, **options)
                    break
                except TooEarly as early:
                    early.again.pause()
        return result

    @contextmanager
    def checked_out(self, plain: Any, *, writes: bool = False) -> Iterator[Any]:
        """A connection that PyMongo takes for one command, outside of its retry loop."""
        with plain as value, Call(self.rules) as call:
            if writes:
                call.presume_write()
            connection = value[0] if isinstance(value, tuple) else value
            with Around(self, call, connection, bulk=plain):
                yield value


class AsyncHooks(Hooks):
    """Of a client of asyncio."""

    drive = staticmethod(drive_async)

    async def run(self, plain: Callable[..., Any], func: Any, args: Any, options: Any) -> Any:
        """The asyncio twin of :meth:`SyncHooks.run`."""
        call, query = Call(self.rules, repeats=True), QUERY.get()
        bulk = options.get("bulk", args[1] if len(args) > 1 else None)

        async def attempt(*given: Any) -> Any:
            connection = given[1] if len(given) == 3 else given[2]  # noqa: PLR2004 - write, or read
            with Around(self, call, connection, bulk) as read:
                if read is not None and query is not None:
                    await drive_async(read.ask_first(query), connection)
                return await func(*given)

        with call:
            if call.floor is not None:
                plain = heed_cancellation(plain)
            while True:
                try:
                    result = await plain(attempt, *args, **options)
                    break
                except TooEarly as early:
                    await early.again.pause_async()
        return result

    @asynccontextmanager
    async def checked_out(self, plain: Any, *, writes: bool = False) -> AsyncIterator[Any]:
        """The asyncio twin of :meth:`SyncHooks.checked_out`."""
        async with plain as value:
            with Call(self.rules) as call:
                if writes:
                    call.presume_write()
                connection = value[0] if isinstance(value, tuple) else value
                with Around(self, call, connection, bulk=plain):
                    yield value


class Client:
    """What instrumented clients of both APIs share."""

    _antipode: Any

    def _retry_internal(self, func: Any, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        if options.get("conn_mgr") is not None:
            # From PyMongo 4.20.1 on, a cursor's own connection: `_run_operation` has seen to it.
            return plain._retry_internal(func, *args, **options)  # noqa: SLF001
        return self._antipode.run(plain._retry_internal, func, args, options)  # noqa: SLF001

    def _antipode_batch(self, operation: Any, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        hooks = self._antipode
        steps = hooks.batch(plain._run_operation, operation, *args, **options)  # noqa: SLF001
        return hooks.drive(steps, operation.conn_mgr.conn)

    def _send_cluster_time(self, command: Any, session: Any) -> None:
        plain: Any = super()
        plain._send_cluster_time(command, session)  # noqa: SLF001
        if (call := CALL.get()) is not None:
            call.announce(command, session)

    def _process_response(self, reply: Any, session: Any) -> Any:
        if (call := CALL.get()) is not None:
            call.took(reply)
        plain: Any = super()
        return plain._process_response(reply, session)  # noqa: SLF001

    def start_session(self, *args: Any, **options: Any) -> Any:
        """A session that is instrumented, too.

        An attribute of its own, without a cycle: a session's class cannot be changed.
        """
        plain: Any = super()
        session, hooks = plain.start_session(*args, **options), self._antipode
        weak = weakref.ref(session)

        def with_transaction(*args: Any, **options: Any) -> Any:
            return hooks.drive(hooks.transaction(weak(), *args, **options), None)

        session.with_transaction = with_transaction
        return session


class SyncClient(Client):
    """Mixed into the class of an instrumented client of threads."""

    def _conn_for_reads(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = plain._conn_for_reads(*args, **options)  # noqa: SLF001
        return inner if closes(options) else self._antipode.checked_out(inner)

    def _conn_for_writes(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = plain._conn_for_writes(*args, **options)  # noqa: SLF001
        return self._antipode.checked_out(inner, writes=True)

    def _run_operation(self, operation: Any, *args: Any, **options: Any) -> Any:
        if operation.conn_mgr is not None:
            return self._antipode_batch(operation, *args, **options)
        plain: Any = super()
        token = QUERY.set(operation)
        try:
            return plain._run_operation(operation, *args, **options)  # noqa: SLF001
        finally:
            QUERY.reset(token)


class AsyncClient(Client):
    """The asyncio twin of :class:`SyncClient`."""

    async def _conn_for_reads(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = await plain._conn_for_reads(*args, **options)  # noqa: SLF001
        return inner if closes(options) else self._antipode.checked_out(inner)

    async def _conn_for_writes(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = await plain._conn_for_writes(*args, **options)  # noqa: SLF001
        return self._antipode.checked_out(inner, writes=True)

    async def _run_operation(self, operation: Any, *args: Any, **options: Any) -> Any:
        if operation.conn_mgr is not None:
            return await self._antipode_batch(operation, *args, **options)
        plain: Any = super()
        token = QUERY.set(operation)
        try:
            return await plain._run_operation(operation, *args, **options)  # noqa: SLF001
        finally:
            QUERY.reset(token)


SyncHooks.client = SyncClient
AsyncHooks.client = AsyncClient
