"""Native servers of MySQL and MariaDB: two stores that are started in nearly the same words."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from antipode_testing._process import ServerProcess
from antipode_testing.servers.server import PROBE_TIMEOUT_S, NativeServer, make_directory, reserving

from . import install as mysql_install

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address, ReservedPort

# Whom a provider of these stores lets in, from wherever the topology connects.
ADMINISTRATOR = ("root", "antipode")
# A greeting is a packet header of four bytes, then the version of the protocol.
GREETING = (4, b"\x0a")
# Each server starts read-only and follows nobody, until its topology says otherwise: so also after
# a restart. The sizes keep it small. What it wrote outlives its process but not the machine: no
# file is forced to the disk, which makes a start twice as fast where the disk is busy.
COMMON = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "32M",
    "innodb-doublewrite": "0",
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-flush-method": "nosync",
    "innodb-log-buffer-size": "1M",
    "log-bin": "bin",
    "max-connections": "100",
    "read-only": "1",
    "relay-log": "relay",
    "skip-name-resolve": "1",
    "sync-binlog": "0",
    "table-definition-cache": "400",
    "table-open-cache": "200",
}
MYSQL = {
    **COMMON,
    "enforce-gtid-consistency": "ON",
    # With it a polite shutdown takes ten seconds longer.
    "event-scheduler": "OFF",
    "gtid-mode": "ON",
    "innodb-redo-log-capacity": "16M",
    "log-replica-updates": "ON",
    "mysqlx": "OFF",
    "replica-parallel-workers": "2",
    "secure-file-priv": "NULL",
    "session-track-gtids": "OWN_GTID",
    "skip-replica-start": "ON",
}
MARIADB = {
    **COMMON,
    "binlog-format": "ROW",
    "gtid-strict-mode": "1",
    "innodb-log-file-size": "16M",
    "log-slave-updates": "1",
    "session-track-system-variables": (
        "autocommit,character_set_client,character_set_connection,"
        "character_set_results,time_zone,last_gtid"
    ),
    "skip-slave-start": "1",
}


def mysql(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one MySQL server; it is started by its `NativeServer`."""
    return _server("mysql", name, MYSQL | dict(config))


def mariadb(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one MariaDB server; it is started by its `NativeServer`."""
    return _server("mariadb", name, MARIADB | dict(config))


def _server(store: str, name: str, config: Mapping[str, str]) -> NativeServer:
    installed = mysql_install.mysql() if store == "mysql" else mysql_install.mariadb()
    template = installed.template()

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory(store)
        (directory / "init.sql").write_text(_administrator_statements())
        temporary = directory / "tmp"
        temporary.mkdir()
        settings = {
            **config,
            "datadir": str(directory / "data"),
            "init-file": str(directory / "init.sql"),
            "pid-file": str(directory / "pid"),
            "port": str(address.port),
            "socket": str(directory / "socket"),
            # As it starts, a server of either store removes what others have at work in theirs.
            "tmpdir": str(temporary),
        }
        command = [str(installed.server), "--no-defaults", *mysql_install.as_this_user()]
        process = ServerProcess(
            f"{store}-{name}",
            [*command, *(f"--{key}={value}" for key, value in settings.items())],
            directory=directory,
            ready=lambda: _greets(address),
        )
        return NativeServer(
            directory, ports, process, data=(directory / "data",), template=template
        )

    return reserving(("client",), build)


def _administrator_statements() -> str:
    """What a server executes before it listens, at every start: without leaving a trace in logs."""
    user, password = ADMINISTRATOR
    account = f"{user}@'127.0.0.1'"
    return (
        "SET sql_log_bin = 0;\n"
        f"CREATE USER IF NOT EXISTS {account};\n"
        f"ALTER USER {account} IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON *.* TO {account} WITH GRANT OPTION;\n"
    )


def _greets(address: Address) -> bool:
    """Whether a server sends its greeting: here it speaks first."""
    with socket.create_connection(address, PROBE_TIMEOUT_S) as sock:
        offset, version = GREETING
        return sock.recv(64)[offset:].startswith(version)
