"""A native ministack server: an emulator of AWS, not AWS."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from antipode_testing._errors import ServerMissing
from antipode_testing._process import ServerProcess
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import ReservedPort

#: What signs requests: the emulator takes any, and tells the region by it.
ACCOUNT = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}
INSTALL = 'pip install "antipode-xcy-testing[emulators]"'


def ministack(name: str, config: Mapping[str, str], *, module: str = "ministack") -> NativeServer:
    """A ministack server that keeps everything in memory, not yet started.

    Args:
        name: of the server in its topology, for messages.
        config: its environment variables, over the defaults.
        module: what is run.

    Raises:
        ServerMissing: the package is not installed with this one.
    """
    if find_spec("ministack") is None:
        raise ServerMissing(f"the emulator ministack is not installed: {INSTALL}")

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("ministack")
        environment = {
            "PERSIST_STATE": "0",
            "LOG_LEVEL": "WARNING",
            **config,
            "BIND_HOST": address.host,
            "MINISTACK_HOST": address.host,
            "GATEWAY_PORT": str(address.port),
            "HOME": str(directory),
            "TMPDIR": str(directory),
        }
        process = ServerProcess(
            f"ministack-{name}",
            [sys.executable, "-m", module],
            directory=directory,
            ready=lambda: probe(address, b"GET /_ministack/health HTTP/1.0\r\n\r\n", b"HTTP/1."),
            environment=environment,
        )
        return NativeServer(directory, ports, process, data=())

    return reserving(("client",), build)
