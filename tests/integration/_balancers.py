"""Real proxies before real servers: HAProxy, MySQL Router, PgBouncer, twemproxy, as processes."""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing._address import ReservedPort
from antipode_testing._process import ServerProcess, find_executable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

_HAPROXY = """\
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend probe
    bind {probe}
listen balancer
    bind {address}
    balance roundrobin
{servers}
"""
_TWEMPROXY = """\
one:
  listen: {address}
  redis: true
  servers:
    - {server}:1
"""
_ROUTER = """\
[DEFAULT]
logging_folder =
runtime_folder = .
data_folder = .
[routing:balancer]
bind_address = {address.host}
bind_port = {address.port}
destinations = {servers}
routing_strategy = round-robin
protocol = classic
[routing:probe]
bind_address = {probe.host}
bind_port = {probe.port}
destinations = {servers}
routing_strategy = round-robin
protocol = classic
"""
_PGBOUNCER = """\
[databases]
* = {target}
[pgbouncer]
listen_addr = {address.host}
listen_port = {address.port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {connections}
server_round_robin = 1
"""


@contextmanager
def haproxy(*servers: Address) -> Iterator[Address]:
    """HAProxy in TCP mode: each new connection goes to the next server, and stays there."""
    lines = "\n".join(f"    server s{n} {address}" for n, address in enumerate(servers))
    with _ports() as (address, probe):
        config = _HAPROXY.format(address=address, probe=probe, servers=lines)
        with _running("haproxy", ["-db", "-f", "config"], config, probe):
            yield address


@contextmanager
def mysqlrouter(*servers: Address) -> Iterator[Address]:
    """A port of MySQL Router: each new connection goes to the next server, and stays there."""
    with _ports() as (address, probe):
        config = _ROUTER.format(address=address, probe=probe, servers=",".join(map(str, servers)))
        with _running("mysqlrouter", ["-c", "config"], config, probe):
            yield address


@contextmanager
def twemproxy(server: Address) -> Iterator[Address]:
    """Twemproxy, which Debian calls nutcracker, before one Redis server."""
    with _ports() as (address, probe):
        config = _TWEMPROXY.format(address=address, server=server)
        options = ["-c", "config", "-o", "log", "-p", "pid", "-a", probe.host]
        with _running("nutcracker", [*options, "-s", str(probe.port)], config, probe):
            yield address


@contextmanager
def pgbouncer(
    server: Address, *, user: str, password: str, mode: str = "transaction"
) -> Iterator[Address]:
    """PgBouncer: a transaction, or a session, stays on one of its connections to *server*."""
    target = f"host={server.host} port={server.port} user={user} password={password}"
    with closing(ReservedPort()) as clients:
        connections = 4 if mode == "transaction" else 20  # So that transactions change connections.
        config = _PGBOUNCER.format(
            address=clients.address, target=target, mode=mode, connections=connections
        )
        unprivileged = ["-u", "nobody"] if os.geteuid() == 0 else []  # It refuses to run as root.
        with _running("pgbouncer", [*unprivileged, "config"], config, clients.address):
            yield clients.address


@contextmanager
def _ports() -> Iterator[tuple[Address, Address]]:
    """Where a proxy takes clients, and where it can be asked whether it runs."""
    with closing(ReservedPort()) as clients, closing(ReservedPort()) as probe:
        yield clients.address, probe.address


@contextmanager
def _running(name: str, options: list[str], config: str, probe: Address) -> Iterator[None]:
    """A proxy for the length of a block; no connection of a client's is used to see it run."""
    program = find_executable(name, install=f"sudo apt-get install {name}")

    def ready() -> bool:
        socket.create_connection(probe, 5).close()
        return True

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="antipode-")))
        (directory / "config").write_text(config, encoding="ascii")
        process = ServerProcess(name, [str(program), *options], directory=directory, ready=ready)
        stack.callback(process.kill)  # They keep nothing, and PgBouncer would wait for its clients.
        process.start()
        yield
