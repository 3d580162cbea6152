"""A native Redis server that writes nothing to the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import ReservedPort

DEFAULTS = {
    "appendonly": "no",
    "daemonize": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
    "save": "",
    # A primary that is stopped would otherwise wait for a replica that lags on purpose.
    "shutdown-timeout": "0",
}


def redis(name: str, config: Mapping[str, str]) -> NativeServer:
    """A Redis server, not yet started."""
    executable = find_executable("redis-server", install="apt-get install redis-server")

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("redis")
        data = directory / "data"
        data.mkdir()
        settings = DEFAULTS | {
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
