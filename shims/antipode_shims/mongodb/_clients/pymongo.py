"""What is taken from PyMongo, and how a client's server is reached, in one place."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, own_client
from antipode_shims.mongodb._position.reply import INTERRUPTED, MONGOS, STANDALONE, check_member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from antipode.shim import ReadsFrom

#: Options of a client that a connection of the library's own adopts, besides tls*.
_KEPT = frozenset(
    """
    username password authsource authmechanism authmechanismproperties compressors
    zlibcompressionlevel server_api
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: The longest that any command of the library's own may take, in milliseconds.
_SOCKET_TIMEOUT_MS = 3000
#: The longest that saying goodbye to a server may take, in seconds.
_CLOSE_S = 0.05
#: How often a new client is asked whether it knows its server, in seconds.
_KNOWN_EVERY_S = 0.001
_REFUSED = {"Mongos": MONGOS, "LoadBalancer": MONGOS, "Standalone": STANDALONE}


def pymongo_module() -> ModuleType:
    """The client library.

    Raises:
        ConfigurationError: it is not installed, or too old.
    """
    try:
        import pymongo
        from pymongo import AsyncMongoClient  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        msg = 'the mongodb shim needs PyMongo 4.9 or later: pip install "antipode-xcy[mongodb]"'
        raise ConfigurationError(msg) from error
    return pymongo


@lru_cache(maxsize=1)
def refusals() -> tuple[type[Exception], ...]:
    """What a server's error reply becomes, where the connection is sound."""
    errors = pymongo_module().errors
    return (errors.OperationFailure,)


@lru_cache(maxsize=1)
def link_errors() -> tuple[type[Exception], ...]:
    """What a failed, slow or demoted server raises: worth repeating."""
    errors = pymongo_module().errors
    return errors.ConnectionFailure, errors.ExecutionTimeout, OSError


def is_async(client: Any) -> bool:
    """Whether *client* is an asyncio client.

    Raises:
        ConfigurationError: it is no client.
    """
    pymongo = pymongo_module()
    if not isinstance(client, (pymongo.MongoClient, pymongo.AsyncMongoClient)):
        msg = f"expected a pymongo MongoClient or AsyncMongoClient, not {type(client).__name__}"
        raise ConfigurationError(msg)
    return isinstance(client, pymongo.AsyncMongoClient)


def known_set_name(client: Any) -> str:
    """The replica set that *client* has found, without I/O; empty while it has found none.

    Raises:
        ConfigurationError: it has found a mongos, or a server that is no member of a set.
    """
    for server in client.topology_description.server_descriptions().values():
        if (why := _REFUSED.get(server.server_type_name)) is not None:
            raise ConfigurationError(why)
        if server.replica_set_name:
            return str(server.replica_set_name)
    return ""


@dataclass(frozen=True)
class ServerSettings:
    """How to connect to the server of a client.

    Attributes:
        arguments: of a client of the library's own.
        seeds: addresses of servers, one of them for a direct connection.
        direct: whether the client talks to that server alone.
    """

    arguments: dict[str, Any]
    seeds: tuple[tuple[str, int], ...]
    direct: bool

    @classmethod
    def of(cls, client: Any) -> ServerSettings:
        """Read them off a client.

        Raises:
            ConfigurationError: it talks to a sharded cluster through a load balancer.
        """
        from pymongo.uri_parser import parse_uri

        if client.options.load_balanced:
            raise ConfigurationError(MONGOS)
        given = dict(client._init_kwargs)  # noqa: SLF001 - PyMongo shows these nowhere else
        hosts, port = given.get("host") or "localhost", given.get("port") or 27017
        seeds: list[tuple[str, int]] = []
        options: dict[str, Any] = {}
        for host in [hosts] if isinstance(hosts, str) else hosts:
            parsed = parse_uri(host if "://" in host else f"mongodb://{host}", port)
            seeds += parsed["nodelist"]
            if parsed["database"]:
                options["authsource"] = parsed["database"]
            options.update((name.lower(), value) for name, value in parsed["options"].items())
            if parsed["username"]:
                options.update(username=parsed["username"], password=parsed["password"])
        options.update((name.lower(), each) for name, each in given.items() if each is not None)
        kept = {name: value for name, value in options.items() if _kept(name)}
        if not (kept.get("username") or kept.get("authmechanism")):
            kept.pop("authsource", None)
        return cls(kept, tuple(seeds), bool(client.options.direct_connection))

    @property
    def where(self) -> tuple[object, ...]:
        """The addresses, to recognise two clients of one server."""
        return (*sorted(self.seeds), self.direct)

    def connect(self, reads_from: ReadsFrom, *, timeout_s: float) -> Any:
        """A client of the one server where the process reads, which listens.

        One seed may not use up the time of the others.

        Raises:
            Unreachable: the server is not known now.
            ConfigurationError: there are several, a mongos, or a server outside of a set.
        """
        if self.direct:
            return self._client(self.seeds[0], timeout_s)
        cause = "no seed"
        passing: tuple[type[Exception], ...] = (Unreachable, *link_errors())
        for seed in self.seeds:
            try:
                with farewell(self._client(seed, timeout_s / len(self.seeds))) as client:
                    reply = client.admin.command("hello")
            except passing as error:
                cause = str(error)
                continue
            check_member(reply)
            return self._client(_chosen(reply, reads_from), timeout_s)
        msg = f"no member of the replica set answers: {cause}"
        raise Unreachable(msg)

    def _client(self, address: tuple[str, int], timeout_s: float) -> Any:
        _knock(address, timeout_s)
        deadline_s = time.monotonic() + timeout_s
        timeout_ms = max(int(timeout_s * 1000), 1)
        make = partial(
            pymongo_module().MongoClient,
            host=address[0],
            port=address[1],
            **self.arguments,
            appname="antipode",
            directConnection=True,
            maxPoolSize=4,
            retryReads=False,
            serverMonitoringMode="poll",
            serverSelectionTimeoutMS=timeout_ms,
            connectTimeoutMS=timeout_ms,
            socketTimeoutMS=_SOCKET_TIMEOUT_MS,
        )
        client = own_client(make)
        try:
            _await_known(client, deadline_s)
        except BaseException:
            close(client)
            raise
        return client


def is_known(client: Any) -> bool:
    """Whether a server answered PyMongo's last poll of it.

    Asked before each command: a client that selects a server which is not known reads the clock
    every half second only, however little time it has.

    Raises:
        Unreachable: the last poll failed.
    """
    description = client.topology_description
    for each in description.server_descriptions().values():
        if each.error is not None:
            raise Unreachable(str(each.error))
    return bool(description.known_servers)


def _await_known(client: Any, deadline_s: float) -> None:
    while not is_known(client):
        if time.monotonic() >= deadline_s:
            raise Unreachable("the server does not say what it is")
        time.sleep(_KNOWN_EVERY_S)


def close(client: Any) -> None:
    """Close *client*, without waiting for a server that does not answer any more.

    PyMongo would search a server for up to half a second, to inform it that sessions end: one that
    is away ends them on its own.
    """
    try:
        known = is_known(client)
    except Unreachable:
        known = False
    if not known:
        client._topology.pop_all_sessions()  # noqa: SLF001 - as PyMongo's own close does
    with pymongo_module().timeout(_CLOSE_S):
        client.close()


@contextmanager
def farewell(client: Any) -> Iterator[Any]:
    """Close *client* at the end."""
    try:
        yield client
    finally:
        close(client)


def _knock(address: tuple[str, int], timeout_s: float) -> None:
    """Fail at once where nothing listens: PyMongo would go on trying until the time is up.

    Raises:
        Unreachable: nothing listens there.
    """
    if address[0].startswith("/"):
        return  # A Unix domain socket.
    try:
        socket.create_connection(address, timeout_s).close()
    except OSError as error:
        msg = f"{address[0]}:{address[1]}: {error}"
        raise Unreachable(msg) from error


def _kept(name: str) -> bool:
    return name in _KEPT or name.startswith(("tls", "ssl"))


def _chosen(hello: Any, reads_from: ReadsFrom) -> tuple[str, int]:
    """The address of the primary, or of the only secondary, from a member's ``hello``.

    Raises:
        Unreachable: there is none now.
        ConfigurationError: there are several secondaries.
    """
    primary = hello.get("primary")
    if reads_from == "primary":
        if not primary:
            msg = "the replica set has no primary now"
            raise Unreachable(msg)
        return _address(primary)
    members = [*hello.get("hosts", ()), *hello.get("passives", ())]
    others = [each for each in members if each != primary]
    if len(others) > 1:
        msg = (
            f"the replica set has {len(others)} servers to read from besides its primary: a "
            "barrier at='now' needs one_server=False here (use at='read'), or a client with "
            "directConnection=True"
        )
        raise ConfigurationError(msg)
    if not others:
        msg = "the replica set has no secondary now"
        raise Unreachable(msg)
    return _address(others[0])


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


@lru_cache(maxsize=1)
def slow_errors() -> tuple[type[Exception], ...]:
    """What a server raises, or a client about it, that has not answered in its time."""
    errors = pymongo_module().errors
    return errors.NetworkTimeout, errors.ExecutionTimeout


#: Refusals that come before a write begins: NotWritablePrimary, NotPrimaryNoSecondaryOk,
#: NotPrimaryOrSecondary.
_NOT_BEGUN = frozenset({10107, 13435, 13436})


def in_doubt(error: BaseException) -> bool:
    """Whether a write of one document may have been done, though it ended in *error*."""
    errors: Any = pymongo_module().errors
    code = getattr(error, "code", None)
    if isinstance(error, errors.OperationFailure):
        return code in INTERRUPTED
    if isinstance(error, errors.NotPrimaryError):
        details: Any = getattr(error, "details", None) or {}
        return details.get("code") not in _NOT_BEGUN
    never_sent = (
        errors.ServerSelectionTimeoutError,
        errors.WaitQueueTimeoutError,
        errors.InvalidOperation,
        errors.ConfigurationError,
        errors.DocumentTooLarge,
    )
    if isinstance(error, never_sent):
        return False
    # Encoding errors and the like come before anything is sent.
    return isinstance(error, errors.PyMongoError) or not isinstance(error, Exception)


def asked(connection: Any, database: str, command: dict[str, Any]) -> Any:
    """What the server answers on *connection*, or its refusal; unseen by the client's monitors."""
    plain, anywhere = type(connection).command, _any_member()
    try:
        return plain(connection, database, dict(command), anywhere, publish_events=False)
    except refusals() as error:
        return error


async def asked_async(connection: Any, database: str, command: dict[str, Any]) -> Any:
    """The asyncio twin of :func:`asked`."""
    plain, anywhere = type(connection).command, _any_member()
    try:
        return await plain(connection, database, dict(command), anywhere, publish_events=False)
    except refusals() as error:
        return error


def _any_member() -> Any:
    """The read preference of a question to whatever member the connection goes to."""
    return pymongo_module().ReadPreference.PRIMARY_PREFERRED


def closes(options: Any) -> bool:
    """Whether PyMongo itself ends sessions, as a client that is refused may be closed, too."""
    return bool(options.get("operation") == "endSessions")
