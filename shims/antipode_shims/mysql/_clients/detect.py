"""Which client a connection is of, known without importing clients that nobody uses."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import connected_place
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._position.ok_packet import AUTOCOMMIT, IN_TRANSACTION, SESSION_TRACK

if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSED = {
    "asyncmy": "asyncmy reads packets in C, where no position can be seen: use aiomysql",
    "mysql": "MySQL Connector/Python is not supported: use PyMySQL, aiomysql or mysqlclient",
}
#: Why mysqlclient stores no lineages with rows.
NO_PACKETS = (
    "mysqlclient reads replies in C, where no lineage can be taken out of them: lineage='beside' "
    "needs PyMySQL or aiomysql"
)


@dataclass(frozen=True)
class Client:
    """One client library.

    Attributes:
        settings: how to reach the server of a connection.
        begin: makes a connection ask for session state from its next handshake on; returns its
            flags and whether the handshake it went through, if any, asked.
        end: undoes it.
        told: whether it shows the server's flags.
        module: where the class lies that is mixed into its connections' classes.
        name: of that class.
        stored: module and name of the one that stores lineages with rows, too; None where its
            client shows no packets.
    """

    settings: Callable[[Any], ServerSettings]
    begin: Callable[[Any], tuple[int, bool]]
    end: Callable[[Any], None]
    module: str
    name: str
    told: bool = True
    stored: tuple[str, str] | None = None

    def mixin(self, *, stored: bool) -> type:
        """The class that is mixed in.

        Raises:
            ConfigurationError: it shall store lineages with rows, and cannot.
        """
        module, name = self.module, self.name
        if stored:
            if self.stored is None:
                raise ConfigurationError(NO_PACKETS)
            module, name = self.stored
        found: type = getattr(import_module(module, __package__), name)
        return found


def client_of(connection: Any) -> Client:
    """The client library of *connection*.

    Raises:
        ConfigurationError: it is none that is supported.
    """
    for package, name, client in _CLIENTS:
        module = sys.modules.get(package)
        if module is not None and isinstance(connection, getattr(module, name)):
            return client
    family = type(connection).__module__.partition(".")[0]
    msg = _REFUSED.get(
        family,
        f"{type(connection).__qualname__} is no connection of PyMySQL, aiomysql or mysqlclient",
    )
    raise ConfigurationError(msg)


def unwrapped(connection: Any) -> Any:
    """The client's own connection under proxies, which other instrumentations put round it.

    OpenTelemetry's of PyMySQL and mysqlclient return ``wrapt`` proxies from ``connect()``.
    """
    while (inner := getattr(connection, "__wrapped__", None)) is not None:
        connection = inner
    return connection


def _begin(connection: Any) -> tuple[int, bool]:
    status = getattr(connection, "server_status", 0)
    if not status & AUTOCOMMIT:
        # Replies with rows leave it as it was: they may have opened a transaction. The first answer
        # to the library says.
        status |= IN_TRANSACTION
    agreed = connection.client_flag & getattr(connection, "server_capabilities", 0)
    connection.client_flag |= SESSION_TRACK
    return status, bool(agreed & SESSION_TRACK)


def _end(connection: Any) -> None:
    connection.client_flag &= ~SESSION_TRACK


def _begin_untracked(connection: Any) -> tuple[int, bool]:
    # Its flags are not reported: what shows whether it commits on its own is.
    return (AUTOCOMMIT if connection.get_autocommit() else 0), False


def _end_untracked(connection: Any) -> None:
    del connection


def _of_pymysql(connection: Any) -> ServerSettings:
    # PyMySQL 1.2 takes TLS where the server has it; earlier ones only where it is asked for.
    required = connection.ssl and getattr(connection, "_ssl_required", True)
    return ServerSettings.of(
        {
            "host": connection.host,
            "port": connection.port,
            "user": connection.user,
            "password": connection.password,
            "database": connection.db,
            "unix_socket": connection.unix_socket,
            "ssl": connection.ctx if required else None,
            "server_public_key": connection.server_public_key,
            "bind_address": connection.bind_address,
        }
    )


def _of_aiomysql(connection: Any) -> ServerSettings:
    return ServerSettings.of(
        {
            "host": connection.host,
            "port": connection.port,
            "user": connection.user,
            "password": connection._password,  # noqa: SLF001 - it has no other place
            "database": connection.db,
            "unix_socket": connection.unix_socket,
            "ssl": connection._ssl_context,  # noqa: SLF001
            "server_public_key": connection.server_public_key,
        }
    )


def reached(connection: Any, settings: ServerSettings) -> ServerSettings:
    """*settings* with the address that a connection of mysqlclient shows: a file had it."""
    where, _, how = connection.get_host_info().partition(" via ")
    if how == "TCP/IP":
        return settings.at(where, int(connection.port))
    peer = connected_place(connection.fileno())
    if peer is None:
        return settings
    return replace(settings, arguments={**settings.arguments, "unix_socket": peer[0]})


def _of_mysqlclient(connection: Any) -> ServerSettings:
    # It keeps no password: where it went is all that can be known.
    info = f"{connection.get_host_info()} {connection.thread_id()}"
    settings = ServerSettings.of({"host": info}, one_server=False)
    return replace(settings, seen=reached(connection, settings).where)


_PYMYSQL = Client(
    _of_pymysql,
    _begin,
    _end,
    ".pymysql",
    "SyncConnection",
    stored=("antipode_shims.mysql._stored.pymysql", "SyncStoredConnection"),
)
_CLIENTS = (
    ("pymysql.connections", "Connection", _PYMYSQL),
    (
        "aiomysql.connection",
        "Connection",
        Client(
            _of_aiomysql,
            _begin,
            _end,
            ".aiomysql",
            "AsyncConnection",
            stored=("antipode_shims.mysql._stored.aiomysql", "AsyncStoredConnection"),
        ),
    ),
    (
        "MySQLdb._mysql",
        "connection",
        Client(
            _of_mysqlclient,
            _begin_untracked,
            _end_untracked,
            ".mysqlclient",
            "NativeConnection",
            told=False,
        ),
    ),
    # PyMySQL's module of this name, loaded once more by ``pymysql.install_as_MySQLdb()``.
    ("MySQLdb.connections", "Connection", _PYMYSQL),
)
