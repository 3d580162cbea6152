"""Servers as processes of this machine, found on PATH, with data in temporary directories."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from antipode import ConfigurationError

from ._address import LOOPBACK, Address, ReservedPort
from ._errors import ServerFailed
from ._process import ServerProcess, find_executable, inherited
from ._proxy import LagProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ._topology import Server

T = TypeVar("T")
S = TypeVar("S", bound="Startable")
PROBE_TIMEOUT_S = 5.0
TOOL_TIMEOUT_S = 30.0
REDIS_DEFAULTS = {
    "appendonly": "no",
    "daemonize": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
    "save": "",
    # A primary that is stopped would otherwise wait for a replica that lags on purpose.
    "shutdown-timeout": "0",
}


class Startable(Protocol):
    """A server that is prepared and not yet started."""

    def start(self) -> None:
        """Start it; return once it answers."""
        ...

    def close(self) -> None:
        """End it for good, however far its start came."""
        ...


class NativeServer:
    """One process with its directory and its reserved ports.

    Args:
        directory: removed by `close`.
        ports: reserved by name; the one called ``client`` is the address.
        process: the server.
        data: what ``restart(wipe=True)`` removes.
        template: what the data directories are copies of at first; None for empty ones.
        companions: processes that live and die with it.
        tools: executables by name, for `run_tool`.
        tool_environment: the variables they need.
    """

    def __init__(
        self,
        directory: Path,
        ports: Mapping[str, ReservedPort],
        process: ServerProcess,
        *,
        data: Iterable[Path],
        template: Path | None = None,
        companions: Iterable[ServerProcess] = (),
        tools: Mapping[str, Path] | None = None,
        tool_environment: Mapping[str, str] | None = None,
    ) -> None:
        self.endpoints: Mapping[str, Address] = {key: port.address for key, port in ports.items()}
        self.address = self.endpoints["client"]
        self.process = process
        self._directory = directory
        self._ports = dict(ports)
        self._data = tuple(data)
        self._template = template
        self._companions = tuple(companions)
        self._tools = dict(tools or {})
        self._tool_environment = dict(tool_environment or {})

    @property
    def running(self) -> bool:
        """Whether its process exists, suspended included."""
        return self.process.running

    def start(self) -> None:
        """Start it and its companions; return once it answers."""
        self._fill()
        for companion in self._companions:
            companion.start()
        self.process.start()

    def suspend(self) -> None:
        """Freeze it: connections stay and nothing answers."""
        self.process.suspend()

    def resume_process(self) -> None:
        """Let it run again after `suspend`."""
        self.process.resume_process()

    def stop(self) -> None:
        """End it politely; its address and data are kept for `restart`."""
        self.process.stop()

    def kill(self) -> None:
        """End it at once; its address and data are kept for `restart`."""
        self.process.kill()

    def restart(self, *, graceful: bool = True, wipe: bool = False) -> None:
        """Start it again at the same address, with its data or with none."""
        if graceful:
            self.process.stop()
        else:
            self.process.kill()
        if wipe:
            for path in self._data:
                shutil.rmtree(path, ignore_errors=True)
        self._fill()
        self.process.start()

    def run_tool(self, *command: str) -> str:
        """Run a tool that comes with the store; see `Server.run_tool`."""
        name, *arguments = command
        if name not in self._tools:
            raise ConfigurationError(f"{self.process.name} has no tool {name!r}")
        done = subprocess.run(
            [str(self._tools[name]), *arguments],
            env=inherited() | self._tool_environment,
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def close(self) -> None:
        """End it for good: process, companions, ports and directory. Idempotent."""
        self.process.kill()
        for companion in self._companions:
            companion.kill()
        for port in self._ports.values():
            port.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _fill(self) -> None:
        """Make the data directories that are not there."""
        for path in self._data:
            if path.exists():
                continue
            if self._template is None:
                path.mkdir()
            else:
                shutil.copytree(self._template, path)


class NativeProvider:
    """Runs the servers that are installed on this machine."""

    host = LOOPBACK

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server; see `Provider.start`."""
        if store == "redis":
            server = _redis(name, config)
        elif store == "rabbitmq":
            from ._native_rabbitmq import rabbitmq

            server = rabbitmq(name, config)
        elif store in {"mysql", "mariadb"}:
            from . import _native_mysql

            make = _native_mysql.mysql if store == "mysql" else _native_mysql.mariadb
            server = make(name, config)
        elif store == "mongodb":
            from ._native_mongodb import mongodb

            server = mongodb(name, config)
        else:
            raise ConfigurationError(f"no native server for the store {store!r}")
        return started(server)

    def link(self, upstream: Address) -> LagProxy:
        """A proxy on loopback; see `Provider.link`."""
        return LagProxy(upstream)


def started(server: S) -> S:
    """Start a server; close it if it fails, or if the wait is interrupted."""
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server


def make_directory(name: str) -> Path:
    """Make a temporary directory, readable by its owner alone."""
    return Path(tempfile.mkdtemp(prefix=f"antipode-{name}-"))


def probe(address: Address, request: bytes, expected: bytes) -> bool:
    """Whether a server answers a first request as one of its kind does."""
    with socket.create_connection(address, PROBE_TIMEOUT_S) as sock:
        sock.sendall(request)
        return sock.recv(64).startswith(expected)


def reserving(names: Iterable[str], build: Callable[[dict[str, ReservedPort]], T]) -> T:
    """Build something on reserved ports, which are given back if it fails."""
    ports = {name: ReservedPort() for name in names}
    try:
        return build(ports)
    except BaseException:
        for port in ports.values():
            port.close()
        raise


def _redis(name: str, config: Mapping[str, str]) -> NativeServer:
    executable = find_executable("redis-server", install="apt-get install redis-server")

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("redis")
        data = directory / "data"
        data.mkdir()
        settings = REDIS_DEFAULTS | {
            **config,
            "bind": address.host,
            "port": str(address.port),
            "dir": str(data),
        }
        command = [str(executable)]
        for key, value in settings.items():
            # `replicaof` takes two words and `save ""` none: split what is not a path.
            command += [f"--{key}", *([value] if key == "dir" or not value else value.split())]
        process = ServerProcess(
            f"redis-{name}",
            command,
            directory=directory,
            ready=lambda: probe(address, b"PING\r\n", b"+PONG"),
        )
        return NativeServer(directory, ports, process, data=(data,))

    return reserving(("client",), build)
