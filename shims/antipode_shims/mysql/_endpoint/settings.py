"""How to reach the server of a client with a connection of the library's own: PyMySQL."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, own_client
from antipode_shims.mysql._position.flavor import Refused, text
from antipode_shims.mysql._promises.records import REFUSED, explained, recording

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from types import ModuleType

    from antipode import Promise
    from antipode_shims.mysql._position.flavor import Rows

#: Arguments of a client's connections that a connection of the library's own adopts.
_KEPT = frozenset(
    """
    host port user password unix_socket ssl ssl_ca ssl_capath ssl_cert ssl_key ssl_disabled
    ssl_verify_cert ssl_verify_identity ssl_key_password server_public_key bind_address
    program_name read_default_file read_default_group
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: Names of the same by other clients.
_ALIASES = {"passwd": "password", "username": "user", "db": "database"}
#: Errors that say that the server is starting, stopping or full; a later poll may succeed.
_CLIENTS_ERRORS = frozenset({("pymysql.err", "MySQLError"), ("MySQLdb.err", "MySQLError")})
_PASSING = frozenset({1040, 1053, 1077, 1078, 1079, 1129, 1203, 1205, 1213, 1226, 1317, 1927, 3032})


def pymysql_module() -> ModuleType:
    """The client library that the library's own connections are made with.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        module = importlib.import_module("pymysql")
    except ImportError as error:
        msg = 'the mysql shim needs PyMySQL 1.1 or later: pip install "antipode-xcy[mysql]"'
        raise ConfigurationError(msg) from error
    return module


@dataclass(frozen=True)
class ServerSettings:
    """How to connect to the server of a client.

    Attributes:
        arguments: for ``pymysql.connect``, without a database.
        database: of the client; empty where it is not known.
        one_server: whether every connection of the client goes to the same server, as far as it
            shows.
        seen: where a client leads whose arguments are not known; empty where they are.
    """

    arguments: Mapping[str, Any]
    one_server: bool = True
    database: str = ""
    seen: tuple[object, ...] = ()

    @classmethod
    def of(cls, arguments: Mapping[str, Any], *, one_server: bool = True) -> ServerSettings:
        """From a client's own arguments, of which those that say where and who are kept."""
        named = {_ALIASES.get(name, name): value for name, value in arguments.items()}
        kept = {name: named[name] for name in named if name in _KEPT and named[name] is not None}
        return cls(kept, one_server, text(named.get("database")))

    @property
    def where(self) -> tuple[object, ...]:
        """The address, to recognise two clients of one server."""
        if path := self.arguments.get("unix_socket"):
            return (path,)
        return self.arguments.get("host", "localhost"), int(self.arguments.get("port") or 3306)

    @property
    def address(self) -> tuple[object, ...]:
        """The address of the server, for telemetry and logs."""
        return self.seen or self.where

    def at(self, host: str, port: int) -> ServerSettings:
        """The same user at another server."""
        arguments = {k: v for k, v in self.arguments.items() if k != "unix_socket"}
        return replace(self, arguments={**arguments, "host": host, "port": port})

    def connect(self, *, timeout_s: float) -> Any:
        """A connection within *timeout_s*, whose reads and writes end after as long.

        Raises:
            Unreachable: not now.
            pymysql.Error: the server refuses this user.
        """
        pymysql = pymysql_module()
        try:
            return own_client(
                partial(
                    pymysql.connect,
                    **self.arguments,
                    connect_timeout=_whole(timeout_s),
                    read_timeout=timeout_s,
                    write_timeout=timeout_s,
                    autocommit=True,
                    charset="utf8mb4",
                    cursorclass=importlib.import_module("pymysql.cursors").DictCursor,
                )
            )
        except link_errors() as error:
            if refused(error):
                raise
            raise Unreachable(str(error)) from error


def _whole(timeout_s: float) -> float:
    """PyMySQL takes connect timeouts from 1 ms to a year."""
    return min(max(timeout_s, 0.001), 31536000)


@lru_cache(maxsize=1)
def link_errors() -> tuple[type[Exception], ...]:
    """What a failed connection raises, and what a server refuses as well."""
    pymysql = pymysql_module()
    return pymysql.OperationalError, pymysql.InterfaceError, pymysql.InternalError, OSError


def is_clients(error: BaseException) -> bool:
    """Whether *error* is one of PyMySQL's, as aiomysql raises them too.

    Known by names: after ``pymysql.install_as_MySQLdb()``, ``import MySQLdb.converters``, which
    Django does, loads ``pymysql.err`` a second time, and puts it in the place of the first.
    """
    return any((base.__module__, base.__name__) in _CLIENTS_ERRORS for base in type(error).__mro__)


def errno_of(error: BaseException) -> int:
    """The number of a client's error, 0 where it has none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def refused(error: BaseException) -> bool:
    """Whether *error* is a server's answer that asking again does not change."""
    number = errno_of(error)
    answered = 1000 <= number < 2000 or 3000 <= number < 5000  # noqa: PLR2004 - the server's range
    return answered and number not in _PASSING


def execute(connection: Any, sql: str) -> Rows:
    """The rows of *sql* on a connection made here.

    Raises:
        Refused: the server answered with an error that stays.
        Unreachable: the connection failed, or the error passes.
    """
    pymysql = pymysql_module()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            rows: Rows = cursor.fetchall()
            return rows
    except (pymysql.Error, OSError) as error:
        if refused(error):
            raise Refused(str(error), number=errno_of(error)) from error
        raise Unreachable(str(error) or type(error).__name__) from error


def socket_of(connection: Any) -> socket.socket | None:
    """The socket of a connection made here, which PyMySQL has no public name for; None if shut."""
    found: socket.socket | None = connection._sock  # noqa: SLF001
    return found


def abandon(connection: Any, datastore: str, table: str, promise: Promise) -> bool:
    """Record on a connection made here that *promise* is abandoned; False if it was fulfilled.

    Raises:
        Unreachable: somebody holds its record for too long, or the server takes no writes now.
        ConfigurationError: the table is missing, or this user may not write to it.
    """
    pymysql = pymysql_module()
    try:
        with connection.cursor() as cursor:
            changed = cursor.execute(recording(table, promise, fulfilled=False))
    except (pymysql.Error, OSError) as error:
        better = explained(datastore, table, errno_of(error), str(error))
        if better is not None:
            raise better from error
        raise Unreachable(str(error) or type(error).__name__) from error
    return bool(changed != REFUSED)
