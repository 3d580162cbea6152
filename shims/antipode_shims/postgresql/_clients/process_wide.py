"""``instrument``: every connection and engine of this process, by its address."""

from __future__ import annotations

import importlib
import weakref
from functools import partial, wraps
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from antipode.shim import (
    ProcessWide,
    connected_place,
    place_of,
    switchable,
    tell_of_undeclared,
)
from antipode_shims.postgresql._instrument import (
    close_unused,
    implied,
    instrument_connection,
    uninstrument_connection,
)

from .sqlalchemy import (
    instrument_engine,
    instrumented,
    is_supported,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Datastores, Rule
    from antipode_shims.postgresql._endpoint import ServerSettings

_PORT = 5432
#: What is registered for connections.
_shims: weakref.WeakSet[Any] = weakref.WeakSet()


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every connection whose address a rule names, made before or later. Idempotent.

    So the connections that frameworks make are instrumented: engines of SQLAlchemy as by
    :func:`instrument_engine`, Django's, those of pools and all others of psycopg 3, asyncpg and
    psycopg2 as by :func:`instrument_connection`, with ``datastore`` and ``reads_from``. What a call
    for one engine, alias or connection says goes before the rules. Connections to other addresses
    stay as they are, and so do those of psycopg2 that were made before, that are made by a function
    (``connection_factory=``) or with ``async_=1``.

    Args:
        datastores: rules for this store, such as ``{"shop": ["postgresql://db:5432",
            "postgresql://standby:5432?reads_from=replica"]}``, with ``/database`` where it is of
            one database alone; they go before those of ``configure(datastores=...)`` and
            ``ANTIPODE_DATASTORES``. None: those alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; what was instrumented by a call stays so. Idempotent."""
    _wide.stop()
    instrumented.uninstrument_implied()
    for connection in list(implied):
        uninstrument_connection(connection)
    close_unused(*_shims)


def _engine_made(engine: Any) -> None:
    instrumented.close_gone()
    close_unused(*_shims)
    if not is_supported(engine) or engine in instrumented.implied:
        return
    settings = settings_of(engine)
    # Where its URL names no host, each of psycopg's connections says where it is.
    if settings.one_server or engine.dialect.driver != "psycopg":
        _wide.cover(engine, *_address(settings), partial(_take_engine, engine))


def _take_engine(engine: Any, rule: Rule) -> None:
    instrument_engine(engine, datastore=rule.datastore, **_options(rule))
    instrumented.imply(engine)


def _connected(connection: Any) -> None:
    """A connection of psycopg or psycopg2 is made: it is open by then."""
    if getattr(connection, "_antipode", None) is None and not connection.closed:
        info = connection.info
        where = place_of_host(info.host, info.port)
        peer = connected_place(connection.fileno())
        _wide.cover(connection, [where], info.dbname, partial(_take, connection), peer=peer)
        _tell_of_standby(connection, where, info.parameter_status("in_hot_standby"))


def _connected_asyncpg(connection: Any) -> None:
    """A connection of asyncpg is made: it is open by then."""
    if hasattr(type(connection), "_antipode") or connection.is_closed():
        return
    address = connection._addr  # noqa: SLF001
    if isinstance(address, tuple):
        where = place_of_host(*address)
    else:  # A socket in the folder that libpq calls the host.
        where = str(PurePosixPath(address).parent), 0
    socket = connection._transport.get_extra_info("socket")  # noqa: SLF001
    peer = connected_place(socket.fileno())
    database = connection._params.database  # noqa: SLF001
    _wide.cover(connection, [where], database, partial(_take, connection), peer=peer)
    standby = getattr(connection.get_settings(), "in_hot_standby", None)
    _tell_of_standby(connection, where, standby)


def _tell_of_standby(connection: Any, where: tuple[str, int], standby: str | None) -> None:
    """Warn of a rule that names no replica, where the server said that it is one."""
    tap = getattr(connection, "_antipode", None)
    if standby == "on" and tap is not None and tap.shim.reads_from == "primary":
        tell_of_undeclared("postgresql", tap.shim.datastore, where)


def _connecting(original: Callable[..., Any]) -> Callable[..., Any]:
    """What stands before ``psycopg2.connect()``, which chooses the class of a connection."""

    @wraps(original)
    def connect(
        dsn: Any = None, connection_factory: Any = None, cursor_factory: Any = None, **options: Any
    ) -> Any:
        if _wide.on and not (options.get("async") or options.get("async_")):
            native: Any = importlib.import_module("antipode_shims.postgresql._clients.psycopg2")
            base = connection_factory or native.plain_connections()
            connection_factory = native.connections(base) if isinstance(base, type) else base
        connection = original(dsn, connection_factory, cursor_factory, **options)
        _wide.quietly(_connected, connection)
        return connection

    return connect


def _take(connection: Any, rule: Rule) -> None:
    instrument_connection(connection, datastore=rule.datastore, **_options(rule))
    implied.add(connection)
    _shims.add(connection._antipode.shim)  # noqa: SLF001


def _options(rule: Rule) -> dict[str, Any]:
    return {"reads_from": rule.reads_from or "primary", "one_server": rule.one_server}


def _address(settings: ServerSettings) -> tuple[list[tuple[str, int]], str | None]:
    given = settings.arguments
    hosts = str(given.get("host") or "").split(",")
    ports = [int(each or _PORT) for each in str(given.get("port") or _PORT).split(",")]
    ports += [ports[-1]] * (len(hosts) - len(ports))
    places = [place_of_host(host, port) for host, port in zip(hosts, ports, strict=False)]
    return places, given.get("dbname")


def place_of_host(host: str, port: int) -> tuple[str, int]:
    """The address of a server; of one that is reached by a socket, the folder of that."""
    return (host, 0) if host.startswith("/") else place_of(host, port)


def _of_psycopg(module: Any) -> None:
    for kind in (module.Connection, module.AsyncConnection):
        _wide.after(kind, "__init__", _connected)


def _of_asyncpg(module: Any) -> None:
    _wide.after(module.Connection, "__init__", _connected_asyncpg)


def _of_psycopg2(module: Any) -> None:
    _wide.replace(module, "connect", _connecting)


def _of_sqlalchemy(module: Any) -> None:
    from sqlalchemy.engine.interfaces import Dialect

    # Not the constructor: SQLAlchemy reads off its code which arguments create_engine() takes.
    _wide.shown(Dialect, "engine_created", module.Engine, _engine_made)


_wide = ProcessWide(
    "postgresql",
    {
        # First: their connections are instrumented with them.
        "sqlalchemy.engine.base": _of_sqlalchemy,
        "psycopg": _of_psycopg,
        "asyncpg": _of_asyncpg,
        "psycopg2": _of_psycopg2,
    },
)
