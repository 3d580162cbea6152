"""``instrument``: every connection and engine of this process, by its address."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import ProcessWide, place_of, switchable
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
    from antipode.shim import Datastores, Rule
    from antipode_shims.postgresql._endpoint import ServerSettings

_PORT = 5432
#: What is registered for connections.
_shims: weakref.WeakSet[Any] = weakref.WeakSet()


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every connection whose address a rule names, made before or later. Idempotent.

    So the connections that frameworks make are instrumented: engines of SQLAlchemy as by
    :func:`instrument_engine`, Django's, those of pools and all others of psycopg 3 as by
    :func:`instrument_connection`, with ``datastore`` and ``reads_from``. What a call for one
    engine, alias or connection says goes before the rules. Connections to other addresses stay as
    they are.

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
    if is_supported(engine) and engine not in instrumented.implied:
        _wide.cover(engine, *_address(settings_of(engine)), partial(_take_engine, engine))


def _take_engine(engine: Any, rule: Rule) -> None:
    instrument_engine(engine, datastore=rule.datastore, **_options(rule))
    instrumented.imply(engine)


def _connected(connection: Any) -> None:
    """A connection of psycopg is made: it is open by then."""
    if getattr(connection, "_antipode", None) is None and not connection.closed:
        info = connection.info
        where = place_of_host(info.host, info.port)
        _wide.cover(connection, [where], info.dbname, partial(_take, connection))


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
    },
)
