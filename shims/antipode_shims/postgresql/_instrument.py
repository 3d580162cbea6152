"""``instrument_connection``: existing code keeps its connection and its calls."""

from __future__ import annotations

import sys
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import adopt, disown, register, shims_of, stored_names, switchable
from antipode_shims._sql.promises import TABLE

from ._clients.tap import Tap
from ._endpoint import ServerSettings
from ._shim.base import BasePostgreSQLShim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom

    from ._stored.lineages import StoredLineages

ConnectionT = TypeVar("ConnectionT")

_MADE_PLAIN = (
    "a connection of psycopg2 has to be made for it: psycopg2.connect(..., "
    "connection_factory=postgresql.connection_factory(datastore=...))"
)
_RETURNS_EARLY = (
    "a connection of psycopg2 with async_=1 returns from each call before the server has answered, "
    "so that nothing can be asked on it: take psycopg.AsyncConnection, or leave it plain and "
    "append() what it writes"
)

#: Why other clients store no lineages with rows.
NO_ROWS = (
    "lineage='beside' on PostgreSQL is for psycopg 3, and SQLAlchemy and Django over it: asyncpg "
    "and psycopg2 cannot store lineages with rows"
)


class InstrumentedShim(BasePostgreSQLShim):
    """What instrumented connections register: one for all that reach one server alike.

    Attributes:
        stored: the lineages that they store with rows; None for none.
    """

    stored: StoredLineages | None = None

    def store_lineages(self, tables: tuple[str, ...]) -> None:
        """Store lineages with the rows of *tables*."""
        from ._stored.lineages import StoredLineages

        self.stored = StoredLineages(self, tables)


def made(
    datastore: str,
    settings: ServerSettings,
    barriers: Barriers | None,
    tables: tuple[str, ...],
    options: dict[str, Any],
) -> InstrumentedShim:
    """A shim of instrumented connections, whose reads wait as *barriers* says.

    With the rows of *tables* they store lineages.
    """
    shim = InstrumentedShim(datastore, settings, **options)
    if tables:
        shim.store_lineages(tables)
    shim.wait_by(barriers)
    return shim


#: Connections that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()
#: Shims with their connections: one that is gone is no user any more.
_shared: dict[tuple[object, ...], tuple[BasePostgreSQLShim, weakref.WeakSet[Any]]] = {}
_lock = threading.Lock()


def _shared_shim(
    key: tuple[object, ...], make: Callable[[], BasePostgreSQLShim], connection: Any
) -> BasePostgreSQLShim:
    """The shim of *key*, for *connection* too; a new one where that was unregistered."""
    with _lock:
        shim, users = _shared.get(key, (None, weakref.WeakSet()))
        if shim is None or shim not in shims_of(shim.datastore):
            shim, users = make(), weakref.WeakSet()
            register(shim)
        users.add(connection)
        _shared[key] = shim, users
    return shim


def close_unused(*shims: BasePostgreSQLShim) -> None:
    """Close those of *shims* that no connection records for any more."""
    with _lock:
        for key, (shim, users) in list(_shared.items()):
            if shim in shims and not users:
                del _shared[key]
                shim.close()


@switchable
def instrument_connection(
    connection: ConnectionT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    one_server: bool | None = None,
    promise_table: str = TABLE,
    readonly_functions: Collection[str] = (),
    lineage: Literal["none", "beside"] = "none",
    tables: Collection[str] = (),
    on_read: OnRead = "merge",
    barriers: Barriers | None = None,
) -> ConnectionT:
    """Let the writes of *connection* enter the current lineage, and its reads wait for floors.

    The position of a transaction comes with its ``commit()``, in the same packet; with psycopg2
    that costs one round trip more, and so does a statement that commits on its own and may have
    written. Results and exceptions stay the client's.

    Args:
        connection: a ``psycopg.Connection`` or ``psycopg.AsyncConnection``, or one of asyncpg; for
            psycopg2 see :func:`connection_factory`.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        one_server: True states that the address, perhaps a pooler's, leads to one server. With
            False, for a balancer, ``at="now"`` does not poll it. None: as far as the connection
            shows.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it, and reads of these find it; psycopg 3 alone.
        tables: with ``beside``: their names, ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: a connection of another client, one that cannot keep lineages, or
            another datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    given, connection = connection, _unwrapped(connection)
    connection_class(connection, stored=bool(names))
    release(connection)
    if is_instrumented(connection, datastore):
        if _shim_of(connection) in shims_of(datastore):
            return given
        uninstrument_connection(connection)
    settings = settings_of(connection)
    functions = frozenset(readonly_functions)
    key: tuple[object, ...] = datastore, reads_from, one_server, settings.where, promise_table
    key += barriers, functions, names, on_read
    options: dict[str, Any] = {"promise_table": promise_table, "reads_from": reads_from}
    options |= {"readonly_functions": readonly_functions, "one_server": one_server}
    options["on_read"] = on_read
    make = partial(made, datastore, settings, barriers, names, options)
    attach(connection, _shared_shim(key, make, connection))
    return given


def connection_factory(*, base: type | None = None, **options: Any) -> Callable[..., Any]:
    """What makes instrumented connections of psycopg2: its ``connection_factory=``.

    psycopg2 chooses the class of a connection when it is made, also in its pools.

    Args:
        base: the class of connections to extend; default psycopg2's own.
        options: as :func:`instrument_connection` takes them; *datastore* is needed.

    Raises:
        ConfigurationError: psycopg2 is not installed; when a connection is made, too, one with
            ``async_=1``.
    """
    try:
        from ._clients.psycopg2 import connections, plain_connections
    except ImportError as error:
        msg = 'connection_factory needs psycopg2: pip install "antipode-xcy[postgresql,psycopg2]"'
        raise ConfigurationError(msg) from error
    made_of = connections(base or plain_connections())

    def make(*args: Any, **more: Any) -> Any:
        connection = made_of(*args, **more)
        try:
            return instrument_connection(connection, **options)
        except ConfigurationError:
            connection.close()
            raise

    return make


def uninstrument_connection(connection: Any) -> None:
    """Undo :func:`instrument_connection`. One that is not instrumented stays as it is."""
    connection = _unwrapped(connection)
    tap = getattr(connection, "_antipode", None)
    if tap is None:
        return
    implied.discard(connection)
    detach(connection)
    with _lock:
        for _, users in _shared.values():
            users.discard(connection)
    close_unused(tap.shim)


def release(connection: Any) -> None:
    """Undo what the address of *connection* implied, before it is instrumented by a call."""
    if connection in implied:
        uninstrument_connection(connection)


def is_instrumented(connection: Any, datastore: str) -> bool:
    """Whether *connection* is instrumented for *datastore*.

    Raises:
        ConfigurationError: it is, for another one.
    """
    tap = getattr(connection, "_antipode", None)
    if tap is not None and tap.shim.datastore != datastore:
        msg = f"this connection is instrumented as {tap.shim.datastore!r} already"
        raise ConfigurationError(msg)
    return tap is not None


def is_open(connection: Any) -> bool:
    """Whether a connection is open still."""
    return not connection.closed


def _shim_of(connection: Any) -> BasePostgreSQLShim:
    """What an instrumented *connection* records for."""
    tap: Tap = connection._antipode  # noqa: SLF001
    return tap.shim


def connection_class(connection: Any, *, stored: bool = False) -> type:
    """The class that is mixed into that of *connection*, perhaps to store lineages with rows.

    Raises:
        ConfigurationError: its client is none that is supported, or that can do so.
    """
    if _of("psycopg", connection, "Connection", "AsyncConnection"):
        plain = _of("psycopg", connection, "Connection")
        if stored:
            from ._stored.psycopg import AsyncStoredConnection, SyncStoredConnection

            return SyncStoredConnection if plain else AsyncStoredConnection
        from ._clients.psycopg import AsyncConnection, SyncConnection

        return SyncConnection if plain else AsyncConnection
    if stored:
        raise ConfigurationError(NO_ROWS)
    if _of("asyncpg", connection, "Connection"):
        from ._clients.asyncpg import AsyncpgConnection

        return AsyncpgConnection
    if _of("psycopg2.extensions", connection, "connection"):
        from ._clients.psycopg2 import NativeConnection

        if connection.async_:
            raise ConfigurationError(_RETURNS_EARLY)
        if not isinstance(connection, NativeConnection):
            raise ConfigurationError(_MADE_PLAIN)
        return NativeConnection
    msg = f"{type(connection).__qualname__} is no connection of psycopg 3, asyncpg or psycopg2"
    raise ConfigurationError(msg)


def _of(module: str, connection: Any, *names: str) -> bool:
    """Whether *connection* is one of a module that is imported."""
    client = sys.modules.get(module)
    return client is not None and isinstance(connection, tuple(getattr(client, n) for n in names))


def settings_of(connection: Any) -> ServerSettings:
    """How to reach the server of *connection*, which shows its address and its password."""
    if (params := getattr(connection, "_params", None)) is not None:
        host, port = connection._addr if isinstance(connection._addr, tuple) else (None, None)  # noqa: SLF001
        mode = params.sslmode.name.replace("_", "-") if params.sslmode is not None else None
        arguments = {"user": params.user, "password": params.password, "dbname": params.database}
        arguments |= {"host": host, "port": port, "sslmode": mode}
        return ServerSettings.of(arguments)
    info = connection.info
    asked = getattr(info, "get_parameters", None)
    arguments = info.dsn_parameters if asked is None else asked()
    arguments = {**arguments, "password": info.password, "port": str(info.port)}
    return ServerSettings.of({"host": info.host, **arguments})


def stored_by(shim: BasePostgreSQLShim) -> StoredLineages | None:
    """The lineages that connections of *shim* store with rows; None for none."""
    return shim.stored if isinstance(shim, InstrumentedShim) else None


def attach(connection: Any, shim: BasePostgreSQLShim) -> None:
    """Let *connection* record for *shim*."""
    connection = _unwrapped(connection)
    mixin = connection_class(connection, stored=stored_by(shim) is not None)
    adopt(connection, mixin, _tap_of(shim))


def _tap_of(shim: BasePostgreSQLShim) -> Tap:
    if (stored := stored_by(shim)) is None:
        return Tap(shim)
    from ._stored.lineages import StoredTap

    return StoredTap(shim, stored.connection())


def detach(connection: Any) -> None:
    """Undo :func:`attach`."""
    connection = _unwrapped(connection)
    connection._antipode.closed()  # noqa: SLF001
    mixin = connection_class(connection, stored=stored_by(_shim_of(connection)) is not None)
    if (forget := getattr(connection, "_antipode_forget", None)) is not None:
        forget()
    if mixin in type(connection).__bases__ and mixin.__name__ != "NativeConnection":
        disown(connection, mixin)


def _unwrapped(connection: Any) -> Any:
    """The connection that a pool of asyncpg's lends."""
    return getattr(connection, "_con", connection)
