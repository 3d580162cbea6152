"""What is taken from redis-py, and how its releases differ, in one place."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Places

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType

#: Settings of a client's connections that a connection of the library's own adopts.
_KEPT = frozenset(
    """
    host port path db username password credential_provider socket_keepalive
    socket_keepalive_options
    """.split()  # noqa: SIM905 - a table that is read by eye
)


#: How redis-py's Sentinel connections put ``READONLY``.
_DEMOTED = "The previous master is now a slave"


def redis_module() -> ModuleType:
    """The client library.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import redis
        import redis.asyncio.sentinel  # pyright: ignore[reportUnusedImport]
        import redis.sentinel  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        msg = 'the redis shim needs redis-py 5 or later: pip install "antipode-xcy[redis]"'
        raise ConfigurationError(msg) from error
    return redis


def called_once(
    plain: Any, repeated: Callable[[Any], Callable[..., Any]], args: Any, options: Any
) -> Any:
    """Call *plain* as often as *repeated* does: one call to whoever has wrapped it.

    OpenTelemetry's instrumentation, and others, wrap redis-py's own methods by wrapt, and make a
    span of each call. A read that is made again while it waits is one call of the application's.
    """
    wrapper = getattr(plain, "_self_wrapper", None)
    if wrapper is None:
        return repeated(plain)(*args, **options)
    return wrapper(repeated(plain.__wrapped__), plain._self_instance, args, options)  # noqa: SLF001


@lru_cache(maxsize=1)
def response_error() -> type[Exception]:
    """What a server's error reply becomes."""
    error: type[Exception] = redis_module().exceptions.ResponseError
    return error


@lru_cache(maxsize=1)
def link_errors() -> tuple[type[Exception], ...]:
    """What a failed connection raises."""
    errors = redis_module().exceptions
    return errors.ConnectionError, errors.TimeoutError, OSError


def timed_out(away: Exception) -> Exception:
    """What a server that does not answer in time raises."""
    error: Exception = redis_module().exceptions.TimeoutError(str(away))
    return error


@lru_cache(maxsize=1)
def no_script() -> type[Exception]:
    """What the server says to the digest of a script that it does not have."""
    error: type[Exception] = redis_module().exceptions.NoScriptError
    return error


@lru_cache(maxsize=1)
def watch_error() -> type[Exception]:
    """What a transaction ends with when a watched key changed."""
    error: type[Exception] = redis_module().exceptions.WatchError
    return error


@lru_cache(maxsize=1)
def _busy_loading() -> type[Exception]:
    error: type[Exception] = redis_module().exceptions.BusyLoadingError
    return error


def closed_at(error: BaseException) -> bool:
    """Whether *error* says that the other side closed the connection."""
    errors = redis_module().exceptions
    if isinstance(error, (errors.AuthenticationError, errors.BusyLoadingError)):
        return False
    return isinstance(error, (errors.ConnectionError, ConnectionError))


def was_refused(error: BaseException) -> bool:
    """Whether a command failed by a reply that redis-py raises as a failed connection.

    ``LOADING``, and ``READONLY`` where Sentinel made the client. What the latter becomes is known
    by its words: its context alone may be an error that the application handles meanwhile.
    """
    return isinstance(error, _busy_loading()) or _DEMOTED in error.args


def check_client(client: Any) -> bool:
    """Whether *client* is an asyncio client.

    Raises:
        ConfigurationError: it is a cluster client, or no client at all.
    """
    redis = redis_module()
    if isinstance(client, (redis.RedisCluster, redis.asyncio.RedisCluster)):
        msg = (
            "RedisCluster is not supported: after a slot migration the position of the old "
            "shard's log says nothing about the shard that is read; use a client of one primary "
            "and its replicas"
        )
        raise ConfigurationError(msg)
    pipelines = redis.client.Pipeline, redis.asyncio.client.Pipeline
    if isinstance(client, pipelines) or not isinstance(client, (redis.Redis, redis.asyncio.Redis)):
        msg = f"expected a redis.Redis or redis.asyncio.Redis, not {type(client).__name__}"
        raise ConfigurationError(msg)
    return isinstance(client, redis.asyncio.Redis)


@dataclass(frozen=True)
class ServerSettings:
    """How to connect to the server of a client.

    Attributes:
        connection_class: redis-py's, synchronous.
        arguments: what it is made with.
        one_server: whether every connection of the client goes to the same server, as far as
            its pool shows.
    """

    connection_class: Any
    arguments: dict[str, Any]
    one_server: bool

    @property
    def where(self) -> tuple[object, ...]:
        """The address, to recognise two clients of one server."""
        path = self.arguments.get("path")
        if path:
            return (path,)
        return self.arguments.get("host", "localhost"), self.arguments.get("port", 6379)

    @property
    def address(self) -> tuple[object, ...]:
        """The address of the server, for telemetry and logs; empty where it is not known."""
        return self.where

    @classmethod
    def of(cls, client: Any) -> ServerSettings:
        """Read them off a client's pool."""
        redis = redis_module()
        pool = client.connection_pool
        sync, asyncio = redis.connection, redis.asyncio.connection
        found = pool.connection_class
        plain_pools = {
            sync.ConnectionPool,
            sync.BlockingConnectionPool,
            asyncio.ConnectionPool,
            asyncio.BlockingConnectionPool,
        }
        arguments = {
            name: value
            for name, value in pool.connection_kwargs.items()
            if (name in _KEPT or name.startswith("ssl_")) and value is not None
        }
        connection_class = sync.Connection
        if issubclass(found, (sync.SSLConnection, asyncio.SSLConnection)):
            connection_class = sync.SSLConnection
        elif "path" in arguments:
            connection_class = sync.UnixDomainSocketConnection
        one_server = type(pool) in plain_pools and found.__module__.startswith("redis.")
        return cls(connection_class, arguments, one_server)

    def connect(self, *, protocol: int, timeout_s: float) -> Any:
        """A connected connection that does not retry on its own.

        Raises:
            Exception: as redis-py does.
        """
        connection = self.connection_class(
            **self.arguments,
            protocol=protocol,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            **_no_maintenance(self.connection_class),
        )
        try:
            connection.connect()
        except BaseException:
            connection.disconnect()
            raise
        return connection

    def connect_to_primary(self, *, timeout_s: float) -> Any:
        """The same, where a wrong primary's answer would do harm. Its role is still to be asked."""
        return self.connect(protocol=2, timeout_s=timeout_s)


@lru_cache(maxsize=8)
def _no_maintenance(connection_class: Any) -> dict[str, Any]:
    """From redis-py 7 on, RESP3 connections ask for maintenance notices; ours need none."""
    names = {
        name
        for base in connection_class.__mro__
        for name in inspect.signature(base.__init__).parameters
    }
    if "maint_notifications_config" not in names:
        return {}
    from redis.maint_notifications import MaintNotificationsConfig

    return {"maint_notifications_config": MaintNotificationsConfig(enabled=False)}


def encoder_of(connection: Any) -> Any:
    """How a connection encodes and decodes; one with a cache keeps that to itself."""
    found = getattr(connection, "encoder", None)
    return connection._conn.encoder if found is None else found  # noqa: SLF001


def socket_of(connection: Any) -> socket.socket | None:
    """The socket of a synchronous connection, which redis-py has no public name for."""
    found: socket.socket | None = connection._sock  # noqa: SLF001
    return found


def link_of(connection: Any) -> Any:
    """What a connection talks through, another object each time it connects; None without one."""
    connection_class: Any = type(connection)
    return _link_getter(connection_class)(connection)


@lru_cache(maxsize=16)
def _link_getter(connection_class: type) -> Callable[[Any], Any]:
    redis = redis_module()
    if issubclass(connection_class, redis.asyncio.connection.AbstractConnection):
        return attrgetter("_writer")
    if issubclass(connection_class, redis.connection.AbstractConnection):
        return attrgetter("_sock")
    return _wrapped_link


def _wrapped_link(connection: Any) -> Any:
    """The link of one with a cache, which keeps the connection to itself; else it is its own."""
    held = getattr(connection, "_conn", None)
    return connection if held is None else link_of(held)


@lru_cache(maxsize=4)
def _get_connection_arguments(pool_class: Any) -> tuple[str, ...]:
    """redis-py before 5.3 wants a command name, later releases warn about one."""
    parameter = inspect.signature(pool_class.get_connection).parameters["command_name"]
    return ("_",) if parameter.default is inspect.Parameter.empty else ()


def take_connection(pool: Any) -> Any:
    """``pool.get_connection()``: a connection, or an awaitable of one."""
    pool_class: Any = type(pool)
    return pool.get_connection(*_get_connection_arguments(pool_class))


def places_of(pool: Any) -> Places:
    """How many connections of *pool* reads that wait may keep."""
    return Places(lambda: pool.max_connections)


def run_batch(plain: Any, commands: Any, raise_on_error: Any, connection: Any) -> Any:
    """A pipeline's own method, with the connection last."""
    return plain(connection, commands, raise_on_error)
