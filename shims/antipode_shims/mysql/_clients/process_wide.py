"""``instrument``: every connection and engine of this process, by its address."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import ProcessWide, connected_place, place_of, switchable
from antipode_shims._sql.promises import TABLE
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._instrument import implied, share, uninstrument_connection

from .detect import client_of, reached
from .sqlalchemy import (
    instrument_engine,
    instrumented,
    is_supported,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Datastores, Rule


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every connection whose address a rule names, made before or later. Idempotent.

    So the connections that frameworks make are instrumented: engines of SQLAlchemy as by
    :func:`instrument_engine`, Django's and all others of PyMySQL, aiomysql and mysqlclient as by
    :func:`instrument_connection`, with ``datastore`` and ``reads_from``. What a call for one
    engine, alias or connection says goes before the rules. Connections to other addresses stay as
    they are.

    Args:
        datastores: rules for this store, such as ``{"shop": ["mysql://db:3306",
            "mysql://replica:3306?reads_from=replica"]}``, with ``/schema`` where it is of one
            schema alone; they go before those of ``configure(datastores=...)`` and
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


def _engine_made(engine: Any) -> None:
    instrumented.close_gone()
    if not is_supported(engine) or engine in instrumented.implied:
        return
    settings = settings_of(engine)
    if settings.one_server:  # Else each of its connections says where it is.
        _wide.cover(engine, *_address(settings), partial(_take_engine, engine))


def _take_engine(engine: Any, rule: Rule) -> None:
    instrument_engine(engine, datastore=rule.datastore, **_options(rule))
    instrumented.imply(engine)


def _connects(connection: Any) -> None:
    """A connection of PyMySQL or aiomysql is about to connect."""
    if getattr(connection, "_antipode", None) is not None:
        return
    named = {"host": connection.host, "port": connection.port, "database": connection.db}
    named["unix_socket"] = connection.unix_socket
    address = _address(ServerSettings.of(named))

    def take(rule: Rule) -> None:
        _take(connection, client_of(connection).settings(connection), rule)

    _wide.cover(connection, *address, take)


def _take(connection: Any, settings: ServerSettings, rule: Rule) -> None:
    options = {"promise_table": TABLE, **_options(rule)}
    share(connection, settings, rule.datastore, options)
    implied.add(connection)


def _options(rule: Rule) -> dict[str, Any]:
    return {"reads_from": rule.reads_from or "primary", "one_server": rule.one_server}


def _address(settings: ServerSettings) -> tuple[list[tuple[str, int]], str | None]:
    host, port = settings.arguments.get("host"), settings.arguments.get("port")
    if path := settings.arguments.get("unix_socket"):
        # Clients ignore the host then, and rules may name either.
        return [(str(path), 0), place_of(host, int(port or 3306))], settings.database or None
    return [place_of(host, int(port or 3306))], settings.database or None


def _of_pymysql(module: Any) -> None:
    if hasattr(module.Connection, "connect"):
        _wide.before(module.Connection, "connect", _connects)


def _of_aiomysql(module: Any) -> None:
    _wide.before(module.Connection, "_connect", _connects)


def _of_mysqldb(module: Any) -> None:
    """mysqlclient, or PyMySQL under its name."""
    if hasattr(module.Connection, "connect"):
        _of_pymysql(module)
    else:
        _wide.replace(module.Connection, "__init__", _native)
        _wide.see(module.Connection, _native_found)


def _native(original: Callable[..., None]) -> Callable[..., None]:
    """Mysqlclient keeps nothing of what it was given, and may have read it in a file."""

    @functools.wraps(original)
    def init(connection: Any, *args: Any, **options: Any) -> None:
        original(connection, *args, **options)
        given = dict(zip(("host", "user", "password", "database", "port"), args, strict=False))
        _wide.quietly(_native_made, connection, {**given, **options})

    return init


def _native_made(connection: Any, arguments: dict[str, Any]) -> None:
    settings = ServerSettings.of(arguments)
    if not (settings.arguments.get("host") or settings.arguments.get("unix_socket")):
        settings = reached(connection, settings)
    _cover_native(connection, settings)


def _native_found(connection: Any) -> None:
    """A connection that was made before: nobody knows its user any more."""
    if getattr(connection, "_antipode", None) is None and connection.open:
        _cover_native(connection, client_of(connection).settings(connection))


def _cover_native(connection: Any, settings: ServerSettings) -> None:
    places, database = _address(settings)
    if (peer := connected_place(connection.fileno())) is not None:
        places.append(peer)
    _wide.cover(connection, places, database, partial(_take, connection, settings))


def _of_sqlalchemy(module: Any) -> None:
    from sqlalchemy.engine.interfaces import Dialect

    # Not the constructor: SQLAlchemy reads off its code which arguments create_engine() takes.
    _wide.shown(Dialect, "engine_created", module.Engine, _engine_made)


_wide = ProcessWide(
    "mysql",
    {
        # First: their connections are instrumented with them.
        "sqlalchemy.engine.base": _of_sqlalchemy,
        "pymysql.connections": _of_pymysql,
        "aiomysql.connection": _of_aiomysql,
        "MySQLdb.connections": _of_mysqldb,
    },
)
