"""A native ElasticMQ server: not SQS, but as strict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import ReservedPort

INSTALL = "tools/fetch_elasticmq.sh .stores"
#: A JVM, beside what is tested.
START_TIMEOUT_S = 60.0


def elasticmq(name: str, config: Mapping[str, str]) -> NativeServer:
    """An ElasticMQ server that keeps everything in memory, not yet started.

    Args:
        name: of the server in its topology, for messages.
        config: its environment variables.

    Raises:
        ServerMissing: it is not installed.
    """
    program = find_executable("elasticmq", install=INSTALL)

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("elasticmq")
        settings = {
            "rest-sqs.bind-hostname": address.host,
            "rest-sqs.bind-port": address.port,
            "rest-stats.enabled": "false",
            "node-address.host": address.host,
            "node-address.port": address.port,
        }
        process = ServerProcess(
            f"elasticmq-{name}",
            [str(program), *(f"-D{key}={value}" for key, value in settings.items())],
            directory=directory,
            ready=lambda: probe(address, b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1."),
            environment={**config, "HOME": str(directory), "TMPDIR": str(directory)},
            timeout_s=START_TIMEOUT_S,
        )
        return NativeServer(directory, ports, process, data=())

    return reserving(("client",), build)
