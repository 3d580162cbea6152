"""A server as a process of this machine, with its data in a temporary directory."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from antipode import ConfigurationError
from antipode_testing._address import ReservedPort
from antipode_testing._errors import ServerFailed
from antipode_testing._process import inherited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from antipode_testing._address import Address
    from antipode_testing._process import ServerProcess

T = TypeVar("T")
S = TypeVar("S", bound="Startable")
PROBE_TIMEOUT_S = 5.0
TOOL_TIMEOUT_S = 30.0


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
