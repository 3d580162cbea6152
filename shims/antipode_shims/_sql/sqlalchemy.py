"""SQLAlchemy engines, instrumented by the connections in their pools.

Connections are instrumented one by one as the pool opens them, so that it is the very connection
that reads which is judged, whatever proxy or creator chose its server.
"""

from __future__ import annotations

import importlib
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from antipode import AntipodeError, ConfigurationError
from antipode.shim import (
    Places,
    named_client,
    register,
    shims_of,
    unrecorded,
    wait_first,
    wait_first_async,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connections import Connections

#: What a store registers for an engine: a shim that has the settings of its own connections.
ShimT = TypeVar("ShimT", bound=Any)
#: What :func:`_wait_at` replaces.
_POOLED = ("connect", "recreate")


class EngineHooks(Generic[ShimT]):
    """What listens to one engine. A store's own subclass says how its connections are opened.

    Attributes:
        shim: what the engine records for.
        connections: how a connection of the store is instrumented.
    """

    connections: ClassVar[Connections]

    def __init__(self, engine: Any, shim: ShimT) -> None:
        """Listen to nothing yet."""
        self.shim = shim
        self._engine = weakref.ref(engine)
        self._held: weakref.WeakSet[Any] = weakref.WeakSet()
        self._places = Places(partial(_size_of, self._engine))
        self._listeners: list[tuple[str, Callable[..., None]]] = [
            ("do_connect", self.connects),
            ("connect", self._connected),
            ("handle_error", self._handle_error),
        ]

    def connects(self, dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        """The pool opens a connection with *arguments* and *options*, which may be changed.

        Only here is seen what ``create_engine(connect_args=...)`` adds to the URL.
        """
        raise NotImplementedError

    def listen(self) -> None:
        """Start."""
        from sqlalchemy import event

        engine: Any = self._engine()
        for name, listener in self._listeners:
            event.listen(engine, name, listener)
        # Only now: what the pool opens from here on is instrumented. A listener at each checkout
        # is dear, so that only pools have one which opened connections before.
        if _opened(engine.pool):
            event.listen(engine, "checkout", self._checked_out)
            self._listeners.append(("checkout", self._checked_out))
        _wait_at(engine.pool, self)
        _ask_unrecorded(engine.dialect)

    def stop(self) -> None:
        """Stop, and leave the pool's connections as they were."""
        from sqlalchemy import event

        engine: Any = self._engine()
        for name, listener in self._listeners:
            event.remove(engine, name, listener)
        for name in _POOLED:
            vars(engine.pool).pop(name, None)
        for name in _ASKED:
            vars(engine.dialect).pop(name, None)
        for connection in list(self._held):
            self.connections.detach(connection)
        self._held.clear()

    def wait_first(self) -> None:
        """Let a request wait before it takes a connection, not with one in its hands."""
        engine: Any = self._engine()
        if not engine.dialect.is_async:
            wait_first(self.shim, own=self.shim.own_logs)
            return
        concurrency: Any = importlib.import_module("sqlalchemy.util.concurrency")
        if concurrency.in_greenlet():
            concurrency.await_only(wait_first_async(self.shim, own=self.shim.own_logs))

    def _connected(self, dbapi_connection: Any, record: Any) -> None:
        del dbapi_connection
        connection = record.driver_connection
        self.connections.release(connection)
        if not self.connections.is_instrumented(connection, self.shim.datastore):
            self.connections.attach(connection, self.shim)
            connection._antipode.places = self._places  # noqa: SLF001
            self._held.add(connection)

    def _checked_out(self, dbapi_connection: Any, record: Any, proxy: Any) -> None:
        """Let the pool open again what it had opened before it was instrumented."""
        del dbapi_connection, proxy
        connection = record.driver_connection
        implied = connection in self.connections.implied
        if implied or getattr(connection, "_antipode", None) is None:
            from sqlalchemy.exc import DisconnectionError

            msg = "opened before the engine was instrumented"
            raise DisconnectionError(msg)

    def _handle_error(self, context: Any) -> None:
        """A floor that was not met leaves the connection as it was.

        SQLAlchemy takes a TimeoutError for a cancelled call, and would close it.
        """
        if isinstance(context.original_exception, AntipodeError):
            context.is_disconnect = False


class Engines(Generic[ShimT]):
    """The engines of one store that this process has instrumented.

    Attributes:
        implied: those that are because of their address: a call for one of them is new.
    """

    def __init__(
        self,
        hooks: Callable[[Any, ShimT], EngineHooks[ShimT]],
        *,
        is_supported: Callable[[Any], bool],
        advice: str,
    ) -> None:
        """None yet.

        Args:
            hooks: the store's own.
            is_supported: whether a plain engine is of this store and a client that is supported.
            advice: what to use instead, for the error text.
        """
        self.implied: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        #: Implied engines, and what is registered for each.
        self._registered: list[tuple[weakref.ref[Any], Any]] = []
        self._make = hooks
        self._is_supported = is_supported
        self._advice = advice
        #: By dialect, which the options of an engine leave as it is.
        self._hooks: weakref.WeakKeyDictionary[Any, EngineHooks[ShimT]] = (
            weakref.WeakKeyDictionary()
        )
        self._of_table2: weakref.WeakKeyDictionary[ShimT, EngineHooks[ShimT]] = (
            weakref.WeakKeyDictionary()
        )

    def plain(self, engine: Any) -> Any:
        """The synchronous engine of an ``AsyncEngine``; of another the same.

        Raises:
            ConfigurationError: it is no engine of a supported database and driver.
        """
        plain = getattr(engine, "sync_engine", engine)
        dialect = getattr(plain, "dialect", None)
        if dialect is None or not hasattr(plain, "pool"):
            msg = f"{type(engine).__qualname__} is no SQLAlchemy Engine or AsyncEngine"
            raise ConfigurationError(msg)
        if not self._is_supported(plain):
            msg = f"{dialect.name}+{dialect.driver} is not supported: {self._advice}"
            raise ConfigurationError(msg)
        return plain

    def instrument(self, engine: Any, datastore: str, make: Callable[[], ShimT]) -> None:
        """Let a plain *engine* record for what *make* returns, unless it does for *datastore*.

        Raises:
            ConfigurationError: it does for another datastore.
        """
        if engine in self.implied:
            self.uninstrument(engine)
        held = self._hooks.get(engine.dialect)
        if held is not None:
            if held.shim.datastore != datastore:
                msg = f"this engine is instrumented as {held.shim.datastore!r} already"
                raise ConfigurationError(msg)
            if held.shim in shims_of(datastore):
                return
            self.uninstrument(engine)
        shim = make()
        register(shim)
        self._hooks[engine.dialect] = self._listening(engine, shim)

    def uninstrument(self, engine: Any) -> None:
        """Undo :meth:`instrument`. A plain *engine* that is not instrumented stays as it is."""
        self.implied.discard(engine)
        hooks = self._hooks.pop(engine.dialect, None)
        if hooks is not None:
            hooks.stop()
            hooks.shim.close()

    def shim_of(self, engine: Any) -> ShimT | None:
        """What an instrumented engine, or a connection of it, records for; None for no other."""
        hooks = self._hooks.get(engine.dialect)
        return None if hooks is None else hooks.shim

    def imply(self, engine: Any) -> None:
        """Note that *engine* is instrumented because of its address."""
        self.implied.add(engine)
        with self._lock:
            self._registered.append((weakref.ref(engine), self.shim_of(engine)))

    def close_gone(self) -> None:
        """Close what is registered for implied engines that are gone: some programs make many."""
        with self._lock:
            gone = [shim for engine, shim in self._registered if engine() is None]
            self._registered = [each for each in self._registered if each[0]() is not None]
        for shim in gone:
            shim.close()

    def uninstrument_implied(self) -> None:
        """Undo what addresses implied."""
        for engine in list(self.implied):
            self.uninstrument(engine)
        self.close_gone()

    def attach(self, engine: Any, shim: ShimT) -> None:
        """Let every connection of the engine's pool record for *shim*, which Table 2 made."""
        plain = self.plain(engine)
        if plain in self.implied:
            self.uninstrument(plain)
        self._of_table2[shim] = self._listening(plain, shim)

    def detach(self, shim: ShimT) -> None:
        """Undo :meth:`attach`. Idempotent."""
        if (hooks := self._of_table2.pop(shim, None)) is not None:
            hooks.stop()

    def _listening(self, engine: Any, shim: ShimT) -> EngineHooks[ShimT]:
        hooks = self._make(engine, shim)
        hooks.listen()
        named_client(engine)
        return hooks


def _wait_at(pool: Any, hooks: EngineHooks[Any]) -> Any:
    """Have requests wait before they take a connection of *pool*, and of those in its place.

    Attributes of its own, without a cycle: a pool's class cannot be changed.
    """
    weak = weakref.ref(pool)

    def connect() -> Any:
        hooks.wait_first()
        one: Any = weak()
        return type(one).connect(one)

    def recreate() -> Any:
        one: Any = weak()
        return _wait_at(type(one).recreate(one), hooks)

    pool.connect, pool.recreate = connect, recreate
    return pool


#: What SQLAlchemy asks on its own: at the first connection, and with ``pool_pre_ping`` before it
#: hands one out.
_ASKED = ("initialize", "do_ping")


def _ask_unrecorded(dialect: Any) -> None:
    """Have what SQLAlchemy asks a server on its own be no read of a request's."""
    weak = weakref.ref(dialect)

    def asking(name: str) -> Callable[[Any], Any]:
        def ask(connection: Any) -> Any:
            one: Any = weak()
            with unrecorded():
                return getattr(type(one), name)(one, connection)

        return ask

    for name in _ASKED:
        setattr(dialect, name, asking(name))


def _size_of(engine: Callable[[], Any]) -> int:
    """The most connections that the pool of *engine* opens; 0 where it says no limit."""
    pool = getattr(engine(), "pool", None)
    overflow = getattr(pool, "_max_overflow", -1)
    if pool is None or overflow < 0 or not pool.size():
        return 0
    return int(pool.size() + overflow)


def _opened(pool: Any) -> bool:
    """Whether *pool* may have connections, or be opening some."""
    counts = [getattr(pool, name, None) for name in ("checkedin", "checkedout")]
    return any(count is None or count() for count in counts)
