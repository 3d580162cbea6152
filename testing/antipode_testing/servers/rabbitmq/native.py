"""A native RabbitMQ broker with a node name, cookie, home and epmd of its own."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from antipode_testing._address import Address, ReservedPort

INSTALL = "apt-get install rabbitmq-server"
PORTS = ("client", "management", "distribution", "epmd")
PLUGINS = ("rabbitmq_federation", "rabbitmq_federation_management", "rabbitmq_management")
CONFIG = {
    "disk_free_limit.absolute": "50MB",
    "log.file.level": "warning",
    "vm_memory_high_watermark.absolute": "1GB",
}
# Loopback alone; our epmd or none; one scheduler that never spins, for brokers under test share the
# machine with what is tested.
ERLANG_FLAGS = (
    "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false"
    " +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
)
AMQP_GREETING = b"AMQP\x00\x00\x09\x01"
CONNECTION_START = b"\x01\x00\x00"  # a method frame on channel 0
EPMD_NAMES = b"\x00\x01n"


def rabbitmq(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one broker; it is started by its `NativeServer`."""
    broker = _unwrapped(find_executable("rabbitmq-server", install=INSTALL))
    control = _unwrapped(find_executable("rabbitmqctl", install=INSTALL))
    epmd = find_executable("epmd", install=INSTALL)

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        directory = make_directory("rabbitmq")
        addresses = {key: port.address for key, port in ports.items()}
        _write_files(directory, CONFIG | dict(config), addresses)
        node = f"antipode-{name}-{os.getpid()}-{addresses['client'].port}@localhost"
        erlang = _erlang_environment(directory, addresses["epmd"]) | {"RABBITMQ_NODENAME": node}
        return NativeServer(
            directory,
            ports,
            _broker_process(name, broker, directory, addresses, erlang),
            data=(directory / "mnesia",),
            companions=(_epmd_process(name, epmd, directory, addresses["epmd"]),),
            tools={"rabbitmqctl": control},
            tool_environment=erlang | {"RABBITMQ_CTL_ERL_ARGS": ERLANG_FLAGS},
        )

    return reserving(PORTS, build)


def _unwrapped(found: Path) -> Path:
    """RabbitMQ's own script: Debian's wrapper of it insists on root or on user rabbitmq."""
    real = found.resolve()
    unwrapped = real.parent / found.name
    return unwrapped if real.name == "rabbitmq-script-wrapper" and unwrapped.exists() else found


def _write_files(directory: Path, config: Mapping[str, str], ports: Mapping[str, Address]) -> None:
    for folder in ("mnesia", "log"):
        (directory / folder).mkdir()
    settings = {
        **config,
        "management.tcp.ip": ports["management"].host,
        "management.tcp.port": str(ports["management"].port),
    }
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    (directory / "rabbitmq.conf").write_text(lines)
    (directory / "enabled_plugins").write_text(f"[{','.join(PLUGINS)}].\n")
    cookie = directory / ".erlang.cookie"
    cookie.touch(mode=0o600)
    cookie.write_text(secrets.token_hex(16))
    cookie.chmod(0o400)


def _broker_process(
    name: str,
    script: Path,
    directory: Path,
    ports: Mapping[str, Address],
    erlang: Mapping[str, str],
) -> ServerProcess:
    host, port = ports["client"]
    environment = dict(erlang) | {
        "RABBITMQ_BASE": str(directory),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq"),
        "RABBITMQ_DIST_PORT": str(ports["distribution"].port),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_NODE_IP_ADDRESS": host,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG_FLAGS,
        # The script then becomes the Erlang machine instead of waiting next to it.
        "RUNNING_UNDER_SYSTEMD": "true",
    }
    return ServerProcess(
        f"rabbitmq-{name}",
        [str(script)],
        directory=directory,
        environment=environment,
        ready=lambda: _is_up(ports),
    )


def _is_up(ports: Mapping[str, Address]) -> bool:
    """Whether both AMQP and the management API answer."""
    return probe(ports["client"], AMQP_GREETING, CONNECTION_START) and probe(
        ports["management"], b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1."
    )


def _epmd_process(name: str, executable: Path, directory: Path, address: Address) -> ServerProcess:
    """The port mapper that each Erlang node needs; ours, or the node would leave one."""
    return ServerProcess(
        f"epmd-{name}",
        [str(executable), "-address", address.host, "-port", str(address.port)],
        directory=directory,
        environment=_erlang_environment(directory, address),
        ready=lambda: probe(address, EPMD_NAMES, address.port.to_bytes(4, "big")),
    )


def _erlang_environment(directory: Path, epmd: Address) -> dict[str, str]:
    return {
        "ERL_EPMD_ADDRESS": epmd.host,
        "ERL_EPMD_PORT": str(epmd.port),
        "HOME": str(directory),
    }
