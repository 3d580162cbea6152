"""SQLAlchemy engines, instrumented or of Table 2, by the connections in their pools.

Connections are instrumented one by one as the pool opens them, so that it is the very connection
that reads which is judged, whatever proxy or creator chose its server.
"""

from __future__ import annotations

import importlib
import inspect
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import AntipodeError, ConfigurationError
from antipode.shim import (
    Places,
    register,
    shims_of,
    stored_names,
    switchable,
    wait_first,
    wait_first_async,
)
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._instrument import attach, detach, is_instrumented, made, stored_by
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK
from antipode_shims.mysql._promises.records import TABLE

from .detect import NO_PACKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom
    from antipode_shims.mysql._shim.base import BaseMySQLShim

EngineT = TypeVar("EngineT")

_DRIVERS = ("pymysql", "aiomysql", "mysqldb")


class EngineHooks:
    """What listens to one engine."""

    def __init__(self, engine: Any, shim: BaseMySQLShim) -> None:
        """Listen to nothing yet."""
        self.shim = shim
        self._engine = weakref.ref(engine)
        self._flagged = not _is_native(engine.dialect)
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        self._places = Places(partial(_size_of, self._engine))
        self._listeners: list[tuple[str, Callable[..., None]]] = [
            ("do_connect", self._do_connect),
            ("connect", self._connected),
            ("handle_error", self._handle_error),
        ]
        if stored_by(shim) is not None:
            self._listeners.append(("checkin", self._checked_in))

    def listen(self) -> None:
        """Start."""
        from sqlalchemy import event

        engine: Any = self._engine()
        for name, listener in self._listeners:
            event.listen(engine, name, listener)
        # Not by an event of connections: with one, each statement goes through all of theirs.
        engine.dialect.do_begin_twophase = self._begin_twophase
        # Only now: what the pool opens from here on is instrumented. A listener at each checkout
        # is dear, so that only pools have one which opened connections before.
        if _opened(engine.pool):
            event.listen(engine, "checkout", self._checked_out)
            self._listeners.append(("checkout", self._checked_out))
        _wait_at(engine.pool, self)

    def stop(self) -> None:
        """Stop, and leave the pool's connections as they were."""
        from sqlalchemy import event

        engine: Any = self._engine()
        for name, listener in self._listeners:
            event.remove(engine, name, listener)
        del engine.dialect.do_begin_twophase
        for name in _POOLED:
            vars(engine.pool).pop(name, None)
        for connection in list(self._connections):
            detach(connection)
        self._connections.clear()

    def wait_first(self) -> None:
        """Let a request wait before it takes a connection, not with one in its hands."""
        engine: Any = self._engine()
        if not engine.dialect.is_async:
            wait_first(self.shim, own=self.shim.own_logs)
            return
        concurrency: Any = importlib.import_module("sqlalchemy.util.concurrency")
        if concurrency.in_greenlet():
            concurrency.await_only(wait_first_async(self.shim, own=self.shim.own_logs))

    def _do_connect(self, dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        """Ask for positions in the handshake."""
        del dialect, record, arguments
        if self._flagged:
            options["client_flag"] = options.get("client_flag", 0) | SESSION_TRACK
        # Only here is seen what create_engine(connect_args=...) adds to the URL.
        self.shim.settings = ServerSettings.of(options, one_server=self.shim.can_poll)

    def _connected(self, dbapi_connection: Any, record: Any) -> None:
        del dbapi_connection
        connection = record.driver_connection
        if not is_instrumented(connection, self.shim.datastore):
            attach(connection, self.shim)
            connection._antipode.places = self._places  # noqa: SLF001
            self._connections.add(connection)

    def _checked_out(self, dbapi_connection: Any, record: Any, proxy: Any) -> None:
        """Let the pool open again what it had opened before it was instrumented."""
        del dbapi_connection, proxy
        if getattr(record.driver_connection, "_antipode", None) is None:
            from sqlalchemy.exc import DisconnectionError

            msg = "opened before the engine was instrumented"
            raise DisconnectionError(msg)

    def _checked_in(self, dbapi_connection: Any, record: Any) -> None:
        """Sample what reads put off before somebody else gets the connection."""
        del dbapi_connection
        tap = getattr(record.driver_connection, "_antipode", None)
        if tap is not None:
            tap.given_back()

    def _handle_error(self, context: Any) -> None:
        """A floor that was not met leaves the connection as it was.

        SQLAlchemy takes a TimeoutError for a cancelled call, and would close it.
        """
        if isinstance(context.original_exception, AntipodeError):
            context.is_disconnect = False

    def _begin_twophase(self, connection: Any, xid: Any) -> None:
        del connection, xid
        msg = (
            f"two-phase transactions on {self.shim.datastore!r} are not supported: between its two "
            "phases a write belongs to no request"
        )
        raise ConfigurationError(msg)


#: What :func:`_wait_at` replaces.
_POOLED = ("connect", "recreate")


def _wait_at(pool: Any, hooks: EngineHooks) -> Any:
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


def _size_of(engine: Callable[[], Any]) -> int:
    """The most connections that the pool of *engine* opens; 0 where it says no limit."""
    pool = getattr(engine(), "pool", None)
    overflow = getattr(pool, "_max_overflow", -1)
    if pool is None or overflow < 0 or not pool.size():
        return 0
    return int(pool.size() + overflow)


def _is_native(dialect: Any) -> bool:
    """Whether it is mysqlclient, and not PyMySQL under its name."""
    return bool(dialect.driver == "mysqldb" and dialect.dbapi.__name__ != "pymysql")


def _opened(pool: Any) -> bool:
    """Whether *pool* may have connections, or be opening some."""
    counts = [getattr(pool, name, None) for name in ("checkedin", "checkedout")]
    return any(count is None or count() for count in counts)


_hooks: weakref.WeakKeyDictionary[Any, EngineHooks] = weakref.WeakKeyDictionary()
_of_shims: weakref.WeakKeyDictionary[BaseMySQLShim, EngineHooks] = weakref.WeakKeyDictionary()


@switchable
def instrument_engine(
    engine: EngineT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    lineage: Literal["none", "beside"] = "none",
    tables: Collection[str] = (),
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    promise_table: str = TABLE,
    readonly_functions: Collection[str] = (),
    barriers: Barriers | None = None,
) -> EngineT:
    """Let the writes of *engine* enter the current lineage, and its reads wait for floors.

    Its pool opens each connection with ``CLIENT_SESSION_TRACK``, by which a committed write's
    position comes with the server's reply; with mysqlclient, and where ``creator=`` opens
    connections without that flag, a commit that wrote costs one round trip more.
    Connections that are idle in the pool already are opened again. Sessions, the ORM and Core
    behave as before; two-phase transactions are refused.

    Args:
        engine: a SQLAlchemy 2 ``Engine`` or ``AsyncEngine`` with PyMySQL, aiomysql or mysqlclient.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it (:func:`migration`); needs PyMySQL or aiomysql.
        tables: with whose rows, by ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        one_server: as :func:`instrument_connection`; ``at="now"`` polls by default only where the
            URL or ``connect_args`` name a host or socket.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: another database or driver, one that cannot keep lineages, or another
            datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    plain = _sync_engine(engine)
    if names and _is_native(plain.dialect):
        raise ConfigurationError(NO_PACKETS)
    if _is_instrumented(plain, datastore):
        if _hooks[plain.dialect].shim in shims_of(datastore):
            return engine
        uninstrument_engine(plain)
    options: dict[str, Any] = {"promise_table": promise_table}
    options |= {"readonly_functions": readonly_functions, "reads_from": reads_from}
    options |= {"on_read": on_read, "one_server": one_server}
    shim = made(datastore, _settings(plain), barriers, names, options)
    _install(plain, shim)
    return engine


def _install(engine: Any, shim: BaseMySQLShim) -> None:
    register(shim)
    hooks = EngineHooks(engine, shim)
    hooks.listen()
    _hooks[engine.dialect] = hooks


def _is_instrumented(engine: Any, datastore: str) -> bool:
    """Whether *engine* is instrumented for *datastore*.

    Raises:
        ConfigurationError: it is, for another one.
    """
    held = _hooks.get(engine.dialect)
    if held is not None and held.shim.datastore != datastore:
        msg = f"this engine is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    return held is not None


def uninstrument_engine(engine: Any) -> None:
    """Undo :func:`instrument_engine`. One that is not instrumented stays as it is."""
    hooks = _hooks.pop(_sync_engine(engine).dialect, None)
    if hooks is not None:
        hooks.stop()
        hooks.shim.close()


def datastore_of(engine: Any) -> str:
    """The datastore as which an engine or its connection is instrumented; empty where it is not."""
    hooks = _hooks.get(engine.dialect)
    return "" if hooks is None else hooks.shim.datastore


def _sync_engine(engine: Any) -> Any:
    """The engine behind an AsyncEngine.

    Raises:
        ConfigurationError: it is no engine of a supported database and driver.
    """
    plain = getattr(engine, "sync_engine", engine)
    dialect = getattr(plain, "dialect", None)
    if dialect is None or not hasattr(plain, "pool"):
        msg = f"{type(engine).__qualname__} is no SQLAlchemy Engine or AsyncEngine"
        raise ConfigurationError(msg)
    if dialect.name not in ("mysql", "mariadb") or dialect.driver not in _DRIVERS:
        msg = (
            f"{dialect.name}+{dialect.driver} is not supported: replies can be read with "
            "mysql+pymysql and mysql+aiomysql; mysql+mysqldb costs a round trip for each commit"
        )
        raise ConfigurationError(msg)
    return plain


def _settings(engine: Any) -> ServerSettings:
    settings = settings_of(engine)
    named = settings.arguments.get("host") or settings.arguments.get("unix_socket")
    return replace(settings, one_server=bool(named))


def engine_of(engine: Any, *, asyncio: bool) -> tuple[Any, bool]:
    """The engine that is meant, and whether it was made here.

    Args:
        engine: a SQLAlchemy engine of the right API, or a URL.
        asyncio: which API.

    Raises:
        ConfigurationError: it is neither, of another database, or SQLAlchemy or the client that
            the URL names is missing.
    """
    try:
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
    except ImportError as error:
        msg = 'Table 2 on MySQL needs SQLAlchemy 2: pip install "antipode-xcy[mysql]"'
        raise ConfigurationError(msg) from error
    create, wanted, other = sqlalchemy.create_engine, sqlalchemy.Engine, "shim_async"
    if asyncio:
        create, wanted, other = *_asynchronous(), "shim"
    owned = isinstance(engine, (str, sqlalchemy.URL))
    if owned:
        try:
            engine = create(engine)
        except ModuleNotFoundError as error:
            msg = f"the URL of this engine needs {error.name}: pip install {error.name}"
            raise ConfigurationError(msg) from error
    if not isinstance(engine, wanted):
        msg = f"expected a {wanted.__name__} or a URL, not {type(engine).__name__}: see {other}()"
        raise ConfigurationError(msg)
    _sync_engine(engine)
    return engine, owned


def _asynchronous() -> tuple[Any, Any]:
    """What makes asynchronous engines, and their class.

    Raises:
        ConfigurationError: greenlet is missing, which SQLAlchemy 2.1 no longer installs.
    """
    try:
        importlib.import_module("greenlet")
        ext: Any = importlib.import_module("sqlalchemy.ext.asyncio")
    except ImportError as error:
        msg = (
            "SQLAlchemy's asynchronous engines need greenlet: pip install "
            '"SQLAlchemy[asyncio]" aiomysql'
        )
        raise ConfigurationError(msg) from error
    return ext.create_async_engine, ext.AsyncEngine


def settings_of(engine: Any) -> ServerSettings:
    """How to reach the server of *engine*, its ``connect_args`` included."""
    synchronous = _sync_engine(engine)
    arguments = dict(synchronous.dialect.create_connect_args(synchronous.url)[1])
    creator = getattr(synchronous.pool, "_creator", None)
    if inspect.isfunction(creator):
        # The one place where SQLAlchemy keeps what create_engine(connect_args=...) was given.
        arguments.update(inspect.getclosurevars(creator).nonlocals.get("cparams", {}))
    named = bool(arguments.get("host") or arguments.get("unix_socket"))
    return ServerSettings.of(arguments, one_server=named)


def attach_engine(engine: Any, shim: BaseMySQLShim) -> None:
    """Let every connection of the engine's pool record for *shim*."""
    hooks = EngineHooks(_sync_engine(engine), shim)
    hooks.listen()
    _of_shims[shim] = hooks


def detach_engine(shim: BaseMySQLShim) -> None:
    """Undo :func:`attach_engine`. Idempotent."""
    if (hooks := _of_shims.pop(shim, None)) is not None:
        hooks.stop()
