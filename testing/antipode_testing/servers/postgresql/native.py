"""A native PostgreSQL server: a primary with a data directory of its own, or a copy of one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode_testing._process import ServerProcess
from antipode_testing.servers.server import PROBE_TIMEOUT_S, NativeServer, make_directory, reserving

from .install import as_another_user, give_away, programs, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from antipode_testing._address import Address, ReservedPort

#: Whom every server lets in without a password, on loopback.
ADMINISTRATOR = "postgres"
#: The setting that says what a standby copies; a server without it is a primary.
FOLLOWS = "primary_conninfo"
#: What a standby calls itself, with the number of its port, at the server that it follows.
NAME = "antipode-"
#: Small, and quick to end: what was written outlives the process, but not the machine.
DEFAULTS = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "hot_standby": "on",
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "max_prepared_transactions": "5",
    "max_wal_senders": "8",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
    "wal_keep_size": "512MB",
    "wal_level": "replica",
    "wal_log_hints": "on",
    "wal_receiver_timeout": "10s",
    "wal_retrieve_retry_interval": "200ms",
    "wal_sender_timeout": "10s",
}
HBA = (
    f"host all {ADMINISTRATOR} 127.0.0.1/32 trust\n"
    f"host replication {ADMINISTRATOR} 127.0.0.1/32 trust\n"
    "host all all 127.0.0.1/32 scram-sha-256\n"
)
INITDB = (f"-U{ADMINISTRATOR}", "-Atrust", "--no-sync", "-EUTF8", "--locale=C", "--wal-segsize=1")
STOP_TIMEOUT_S = 5.0


class PostgreSQLProcess(ServerProcess):
    """The postmaster and its processes, each of which is a session of its own."""

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it politely without waiting for its clients (a fast shutdown). Idempotent."""
        self._end(signal.SIGINT, timeout_s)
        self.kill()

    def kill(self) -> None:
        """End all of its processes at once, as a crash does. Idempotent.

        An immediate shutdown, so that no shared memory of the system is left.
        """
        self._end(signal.SIGQUIT, STOP_TIMEOUT_S)
        family = list(self._family()) if self.running else []
        for pid in family:
            _send(pid, signal.SIGKILL)
        super().kill()

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        """Have the postmaster end itself and all others, frozen ones too."""
        if self.running:
            self._signal(signal.SIGCONT)
            super()._signal(number)
            process: Any = self._process
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout_s)

    def _signal(self, number: signal.Signals) -> None:
        super()._signal(number)
        for pid in self._family():
            _send(pid, number)

    def _family(self) -> Iterator[int]:
        """The processes that the postmaster started."""
        mine = str(self.pid)
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, IndexError):
                if stat.read_text().rpartition(")")[2].split()[1] == mine:
                    yield int(stat.parent.name)


class PostgreSQLServer(NativeServer):
    """One server; a standby's data is a copy of what it follows."""

    def __init__(
        self,
        directory: Path,
        ports: Mapping[str, ReservedPort],
        process: ServerProcess,
        config: Mapping[str, str],
    ) -> None:
        super().__init__(directory, ports, process, data=(directory / "data",))
        self._directory = directory
        self._config = dict(config)

    def _fill(self) -> None:
        """Make the data directory, where there is none."""
        data = self._directory / "data"
        if data.exists():
            return
        source = self._config.get(FOLLOWS)
        if source is None:
            run("initdb", "-D", str(data), *INITDB, folder=self._directory)
        else:
            options = ("-X", "stream", "-c", "fast", "--no-sync")
            run("pg_basebackup", "-d", source, "-D", str(data), *options, folder=self._directory)
            (data / "standby.signal").touch()
        lines = (f"{name} = '{value}'\n" for name, value in self._config.items())
        (data / "postgresql.conf").write_text("".join(lines))
        (data / "postgresql.auto.conf").write_text("")
        (data / "pg_hba.conf").write_text(HBA)


def postgresql(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one server; it is started by its `NativeServer`.

    ``config`` holds settings; with `FOLLOWS` among them it is a standby of what these name.
    """
    server = programs() / "postgres"

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("postgresql")
        give_away(directory)
        process = PostgreSQLProcess(
            f"postgresql-{name}",
            [*as_another_user(), str(server), "-D", str(directory / "data")],
            directory=directory,
            ready=lambda: _lets_in(address),
        )
        own = {"cluster_name": f"{NAME}{address.port}", "port": str(address.port)}
        settings = DEFAULTS | {**config, **own}
        return PostgreSQLServer(directory, ports, process, settings)

    return reserving(("client",), build)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _lets_in(address: Address) -> bool:
    """Whether a server lets the administrator in: one that starts refuses."""
    parts = ("user", ADMINISTRATOR, "database", "postgres", "")
    body = struct.pack("!i", 196608) + b"".join(part.encode() + b"\0" for part in parts)
    with socket.create_connection(address, PROBE_TIMEOUT_S) as sock:
        sock.sendall(struct.pack("!i", len(body) + 4) + body)
        return sock.recv(1) == b"R"
