"""A native mongod with its own data directory, small caches and the test commands."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import PROBE_TIMEOUT_S, NativeServer, make_directory, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address, ReservedPort

INSTALL = "make stores STORES=mongodb` in a checkout, or with MongoDB's own `mongodb-org-server"
PARAMETER = "setParameter."
DEFAULTS = {
    "oplogSize": "64",
    "wiredTigerCacheSizeGB": "0.25",
    "wiredTigerEngineConfigString": "log=(file_max=2MB,prealloc=false)",
    f"{PARAMETER}diagnosticDataCollectionEnabled": "false",
    # A primary that is stopped must not choose its successor: the topology does.
    f"{PARAMETER}enableElectionHandoff": "false",
    # Fail points; and members say who they are when they connect to each other.
    f"{PARAMETER}enableTestCommands": "1",
    # It would otherwise wait for a secondary that lags on purpose.
    f"{PARAMETER}shutdownTimeoutMillisForSignaledShutdown": "100",
}
# OP_MSG with the document {hello: 1, $db: "admin"}: its header, flags and the section's kind.
HELLO = (
    b"\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00"
    b"\x00\x00\x00\x00\x00"
    b"\x1f\x00\x00\x00\x10hello\x00\x01\x00\x00\x00\x02$db\x00\x06\x00\x00\x00admin\x00\x00"
)
OP_MSG = b"\xdd\x07\x00\x00"


def mongodb(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one server; it is started by its `NativeServer`.

    ``config`` holds options of the command line, and parameters as ``setParameter.<name>``.
    """
    executable = find_executable("mongod", install=INSTALL)

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("mongodb")
        data = directory / "data"
        data.mkdir()
        settings = DEFAULTS | {
            **config,
            "bind_ip": address.host,
            "port": str(address.port),
            "dbpath": str(data),
        }
        command = [str(executable), "--nounixsocket", *_options(settings)]
        process = ServerProcess(
            f"mongodb-{name}", command, directory=directory, ready=lambda: _answers(address)
        )
        return NativeServer(directory, ports, process, data=(data,))

    return reserving(("client",), build)


def _options(settings: Mapping[str, str]) -> list[str]:
    options: list[str] = []
    for key, value in settings.items():
        if key.startswith(PARAMETER):
            options += ["--setParameter", f"{key.removeprefix(PARAMETER)}={value}"]
        else:
            options += [f"--{key}", value]
    return options


def _answers(address: Address) -> bool:
    """Whether a server answers ``hello``; the reply begins with its own length."""
    with socket.create_connection(address, PROBE_TIMEOUT_S) as sock:
        sock.sendall(HELLO)
        return sock.recv(16, socket.MSG_WAITALL)[12:] == OP_MSG
