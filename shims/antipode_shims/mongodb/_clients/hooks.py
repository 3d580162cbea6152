# Generated from async_hooks.py by `make generate`; do not edit.
"""Instrumented clients of MongoDB: PyMongo's own code, with its replies observed.

Four of a client's methods see everything, in PyMongo 4.9 as in 4.20: those that run an operation on
a connection, the one that every command passes before it is encoded, and the one that every reply
passes after it is decoded. Databases, collections and cursors call them on the client whenever they
were made.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import StaleRead, floor

from .call import CALL, QUERY, Call, Rules
from .guard import SyncGuard, TooEarly
from .pymongo import closes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from contextvars import Token
    from types import TracebackType

    from antipode.shim import Floor
    from antipode_shims.mongodb._shim.base import BaseMongoShim
    from antipode_shims.mongodb._stored.lineages import StoredLineages

Plain = Callable[..., Any]

_NOTHING = nullcontext()


class SyncHooks:
    """What happens around PyMongo's methods for one client."""

    def __init__(self, shim: BaseMongoShim, client: Any, names: tuple[str, ...] = ()) -> None:
        """Record positions of *client* for *shim*, and satisfy its floors.

        Lineages are stored in the documents of the collections *names*.
        """
        self.shim = shim
        self.rules = Rules(shim, client)
        self.stored: StoredLineages | None = None
        self._wire: Callable[..., AbstractContextManager[Any]] | None = None
        if names:
            self._store_lineages(names)

    def _store_lineages(self, names: tuple[str, ...]) -> None:
        from antipode_shims.mongodb._stored.lineages import StoredLineages
        from antipode_shims.mongodb._stored.wire import SyncWire

        self.stored = StoredLineages(self.rules, names)
        self._wire = partial(SyncWire, self.stored)

    def run(self, plain: Plain, func: Plain, args: Any, options: Any) -> Any:
        """One operation of the application: *func* makes an attempt at it on a connection."""
        call = Call(self.rules, repeats=True)
        bulk = options.get("bulk", args[1] if len(args) > 1 else None)
        query = QUERY.get()

        def attempt(*given: Any) -> Any:
            connection = given[1] if len(given) == 3 else given[2]  # noqa: PLR2004 - write, or read
            with self.wired(connection, bulk):
                guard = self.guard(call, held, connection)
                try:
                    if guard is not None and query is not None:
                        guard.ask_first(query)
                    return func(*given)
                except TooEarly:
                    raise
                except BaseException as error:
                    call.failed(connection, error)
                    raise
                finally:
                    if guard is not None:
                        guard.remove()

        token = CALL.set(call)
        try:
            held = call.floor
            while True:
                try:
                    result = plain(attempt, *args, **options)
                    break
                except TooEarly as early:
                    early.again.pause()
        except BaseException:
            CALL.reset(token)
            call.settle_failed()
            raise
        CALL.reset(token)
        call.settle()
        return result

    def wired(self, connection: Any, bulk: Any = None) -> AbstractContextManager[Any]:
        """What stores and finds lineages on *connection* for one attempt."""
        return _NOTHING if self._wire is None else self._wire(connection, bulk)

    def guard(self, call: Call, held: Floor | None, connection: Any) -> SyncGuard | None:
        """Hold reads on *connection* back, if *held* says so.

        Raises:
            ConfigurationError: the server is a mongos, or no member of a replica set.
        """
        if held is None:
            return None
        self.rules.check(connection)
        guard = SyncGuard(self.rules, call, held, connection)
        guard.install()
        return guard

    def hold_pinned(self, manager: Any, stale: StaleRead) -> None:
        """Hold back a ``getMore`` of a cursor that has a connection of its own."""
        held = floor(self.shim, reads=False, stale=stale)
        if held is None:
            return
        guard = SyncGuard(self.rules, None, held, manager.conn)
        majority = guard.demand_pinned(streams=manager.more_to_come)
        if majority is not None:
            guard.hold(majority=majority)


class SyncHeld:
    """A connection that PyMongo checked out for one command, outside of its retry loop."""

    def __init__(self, plain: Any, hooks: SyncHooks) -> None:
        """Observe what is done within *plain*, a context manager."""
        self._plain = plain
        self._hooks = hooks
        self.call = Call(hooks.rules)
        self._guard: SyncGuard | None = None
        self._token: Token[Call | None] | None = None

    def __enter__(self) -> Any:
        """Check out."""
        value = self._plain.__enter__()
        self._connection = value[0] if isinstance(value, tuple) else value
        self._wired = self._hooks.wired(self._connection, self)
        self._wired.__enter__()
        try:
            self._guard = self._hooks.guard(self.call, self.call.floor, self._connection)
        except BaseException as error:
            self._wired.__exit__(None, None, None)
            self._plain.__exit__(type(error), error, error.__traceback__)
            raise
        self._token = CALL.set(self.call)
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        """Check in; what was written enters the scope."""
        if self._guard is not None:
            self._guard.remove()
        self._wired.__exit__(None, None, None)
        if self._token is not None:
            CALL.reset(self._token)
        if error is None:
            result = self._plain.__exit__(kind, error, traceback)
            self.call.settle()
            return result
        self.call.failed(self._connection, error)
        self.call.settle_failed()
        return self._plain.__exit__(kind, error, traceback)


class SyncClient:
    """Mixed into the class of an instrumented client."""

    _antipode: SyncHooks

    def _retry_internal(self, func: Plain, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        if options.get("conn_mgr") is not None:
            # From PyMongo 4.20.1 on, a cursor's own connection: `_run_operation` has seen to it.
            return plain._retry_internal(func, *args, **options)  # noqa: SLF001
        return self._antipode.run(plain._retry_internal, func, args, options)  # noqa: SLF001

    def _conn_for_reads(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = plain._conn_for_reads(*args, **options)  # noqa: SLF001
        return inner if closes(options) else SyncHeld(inner, self._antipode)

    def _conn_for_writes(self, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        inner = plain._conn_for_writes(*args, **options)  # noqa: SLF001
        held = SyncHeld(inner, self._antipode)
        held.call.presume_write()
        return held

    def _run_operation(self, operation: Any, *args: Any, **options: Any) -> Any:
        plain: Any = super()
        if (manager := operation.conn_mgr) is None:
            token = QUERY.set(operation)
            try:
                return plain._run_operation(operation, *args, **options)  # noqa: SLF001
            finally:
                QUERY.reset(token)
        stale = StaleRead()
        self._antipode.hold_pinned(manager, stale)
        with self._antipode.wired(manager.conn) as wire:
            if wire is not None and manager.more_to_come:
                wire.expect(operation)
            reply = plain._run_operation(operation, *args, **options)  # noqa: SLF001
        stale.answered()
        return reply

    def _send_cluster_time(self, command: Any, session: Any) -> None:
        plain: Any = super()
        plain._send_cluster_time(command, session)  # noqa: SLF001
        if (call := CALL.get()) is not None:
            call.announce(command, session)

    def _process_response(self, reply: Any, session: Any) -> None:
        if (call := CALL.get()) is not None:
            call.took(reply)
        plain: Any = super()
        plain._process_response(reply, session)  # noqa: SLF001

    def start_session(self, *args: Any, **options: Any) -> Any:
        """A session that is instrumented, too."""
        plain: Any = super()
        return repeating(plain.start_session(*args, **options), self._antipode.rules)


def repeating(session: Any, rules: Rules) -> Any:
    """Instrument *session*: a commit that it repeats is in doubt only in the end.

    An attribute of its own, without a cycle: a session's class cannot be changed.
    """
    weak = weakref.ref(session)

    def with_transaction(*args: Any, **options: Any) -> Any:
        one: Any = weak()
        with rules.repeating(one):
            return type(one).with_transaction(one, *args, **options)

    session.with_transaction = with_transaction
    return session
