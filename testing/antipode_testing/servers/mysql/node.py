"""One MySQL or MariaDB server of a topology: its role, its place in the history, its settings."""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from antipode_testing._errors import ClientMissing, ServerFailed
from antipode_testing._wait import wait_until
from antipode_testing.servers.node import FedNode

from .native import ADMINISTRATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

# STOP REPLICA may wait for a receiver that was cut while it connected: a minute.
CLIENT_TIMEOUT_S = 90
REPLICATION_USER = ("repl", "repl")


@dataclass
class MySQLNode(FedNode):
    """A server of either; its settings are global variables.

    Attributes:
        server_id: its number in replication; it never executes events that carry its own.
        applier_held: whether it receives without applying.
    """

    server_id: int
    applier_held: bool = False
    # PyMySQL's connections are for one thread at a time.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _connection: Any = None

    monitor_grant: ClassVar[str]

    @abstractmethod
    def position(self) -> str:
        """How far its history reaches, all it has copied included."""

    @abstractmethod
    def covers(self, position: str) -> bool:
        """Whether everything up to a primary's position is applied here."""

    @abstractmethod
    def _source_statement(self, feed: Address) -> str:
        """The statement that makes it copy through an address, and forget what is not applied."""

    def execute(self, statement: str, *args: object) -> list[dict[str, Any]]:
        """Run one statement as the administrator."""
        self._require_awake()
        with self._lock, self._live_connection().cursor() as cursor:
            cursor.execute(statement, args or None)
            return list(cursor.fetchall())

    def value(self, expression: str, *args: object) -> Any:
        """Select one value."""
        return next(iter(self.execute(f"SELECT {expression} AS value", *args)[0].values()))

    def prepare(self, database: str, accounts: Iterable[str]) -> None:
        """Make the database and the accounts that every server has, outside the log."""
        user, password = REPLICATION_USER
        statements = (
            "SET sql_log_bin = 0",
            f"CREATE DATABASE IF NOT EXISTS {database}",
            f"CREATE USER IF NOT EXISTS {user}@'%' IDENTIFIED BY '{password}'",
            f"GRANT REPLICATION SLAVE ON *.* TO {user}@'%'",
            *accounts,
            "SET sql_log_bin = 1",
        )
        for statement in statements:
            self.execute(statement)

    def lead(self) -> None:
        """Follow nobody, and take writes."""
        self.execute("STOP REPLICA")
        self.execute("RESET REPLICA ALL")
        self.execute("SET GLOBAL read_only = 0")
        self.applier_held = False

    def follow(self) -> None:
        """Copy whatever server the feed leads to, from the place this one has reached."""
        assert self.feed is not None
        self.execute("STOP REPLICA")
        self.execute("SET GLOBAL read_only = 1")
        self.execute(self._source_statement(self.feed.address))
        self.start_copying()

    def start_copying(self) -> None:
        """Start the threads that should run."""
        self.execute("START REPLICA" + (" IO_THREAD" if self.applier_held else ""))

    def hold_applier(self) -> None:
        """Go on receiving, and apply nothing."""
        self.execute("STOP REPLICA SQL_THREAD")
        self.applier_held = True

    def release_applier(self) -> None:
        """Apply what was received, and what comes."""
        self.execute("START REPLICA SQL_THREAD")
        self.applier_held = False

    def reconnect(self) -> None:
        """Connect to the source at once where the server would wait a second before it tries."""
        if self.feed is not None and self.status()["Replica_IO_Running"] != "Yes":
            self.execute("STOP REPLICA IO_THREAD")
            self.execute("START REPLICA IO_THREAD")

    def status(self) -> dict[str, Any]:
        """``SHOW REPLICA STATUS`` in MySQL's words; empty where it copies from nobody."""
        rows = self.execute("SHOW REPLICA STATUS")
        words = {"Master": "Source", "Slave": "Replica"}
        return {
            re.sub("Master|Slave", lambda old: words[old.group()], name): value
            for row in rows
            for name, value in row.items()
        }

    def settings(self, *names: str) -> dict[str, Any]:
        """Read global variables, by names as they are in options too."""
        variables = [_variable(name) for name in names]
        return {name: self.value(f"@@GLOBAL.{name}") for name in variables}

    def apply(self, settings: Mapping[str, Any]) -> None:
        """Change global variables."""
        for name, value in settings.items():
            self.execute(f"SET GLOBAL {_variable(name)} = %s", value)

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address; it is then read-only and follows nobody."""
        if graceful and self.server.running and not self.suspended:
            self._end_sessions()
        self.disconnect()
        super().restart(graceful=graceful, wipe=wipe)
        self.execute("SET GLOBAL server_id = %s", self.server_id)

    def await_following(self, primary: MySQLNode, *, timeout_s: float) -> None:
        """Return once this replica is connected to that very primary.

        Raises:
            ServerFailed: it gave up, and why.
            TopologyTimeout: it did not connect in time.
        """

        def follows() -> bool:
            status = self._healthy_status("IO", "SQL")
            return (
                status.get("Replica_IO_Running") == "Yes"
                and int(status["Source_Server_Id"]) == primary.server_id
            )

        what = f"the replica at {self.address} to follow {primary.address}"
        wait_until(follows, what=what, timeout_s=timeout_s, interval_s=0.01)

    def await_position(self, position: str, *, timeout_s: float) -> None:
        """Return once this replica has applied a primary's history up to a position.

        Raises:
            ServerFailed: it gave up, and why.
            TopologyTimeout: it did not get there in time.
        """

        def reached() -> bool:
            self._healthy_status("IO", "SQL")
            return self.covers(position)

        what = f"the replica at {self.address} to reach {position}"
        wait_until(reached, what=what, timeout_s=timeout_s, interval_s=0.01)

    def drain(self, *, timeout_s: float) -> None:
        """Receive no more, and apply what was received, unless the applier is held."""
        self.execute("STOP REPLICA IO_THREAD")
        if not self.applier_held:
            wait_until(
                self._drained,
                what=f"{self.address} to apply what it received",
                timeout_s=timeout_s,
                interval_s=0.01,
            )

    def disconnect(self) -> None:
        """Close the administrator's connection."""
        with self._lock:
            self._discard_connection()

    def close(self) -> None:
        """Stop the server and its proxy."""
        self.disconnect()
        super().close()

    def _end_sessions(self) -> None:
        """End clients' connections, for which MySQL would wait ten seconds before it ends."""
        others = self.execute(
            "SELECT id AS id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
            " AND command NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID')"
            " AND user NOT IN ('system user', 'event_scheduler')"
        )
        for row in others:
            with suppress(_pymysql().Error):  # it has gone already
                self.execute(f"KILL {row['id']}")

    def _live_connection(self) -> Any:
        """The administrator's connection, or a new one where the server ended the last."""
        if self._connection is not None:
            try:
                self._connection.ping(reconnect=False)
            except _pymysql().Error:
                self._discard_connection()
        if self._connection is None:
            self._connection = _connect(self.address)
        return self._connection

    def _discard_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection._force_close()  # noqa: SLF001 - its close() would talk to a dead server

    def _drained(self) -> bool:
        state = str(self._healthy_status("SQL").get("Replica_SQL_Running_State"))
        return re.match(r"(Slave|Replica) has read all relay log", state) is not None

    def _healthy_status(self, *threads: str) -> dict[str, Any]:
        """The status of a replica none of whose threads has given up."""
        status = self.status()
        for thread in threads:
            if status.get(f"Replica_{thread}_Running") == "No" and status[f"Last_{thread}_Errno"]:
                reason = status[f"Last_{thread}_Error"]
                raise ServerFailed(f"the replica at {self.address} stopped copying: {reason}")
        return status


class MySQL(MySQLNode):
    """A server of MySQL's own; without GTIDs its place is a file and an offset in it."""

    monitor_grant: ClassVar[str] = "REPLICATION CLIENT"

    def position(self) -> str:
        """Its executed GTIDs, or the end of its log."""
        if self._has_gtids():
            return str(self.value("@@GLOBAL.gtid_executed")).replace("\n", "")
        last = self.execute("SHOW BINARY LOGS")[-1]
        return f"{last['Log_name']} {last['File_size']}"

    def covers(self, position: str) -> bool:
        """Whether everything up to a primary's position is applied here."""
        if self._has_gtids():
            return bool(self.value("GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", position))
        status = self.status()
        file, _, offset = position.rpartition(" ")
        reached = (status.get("Relay_Source_Log_File", ""), status.get("Exec_Source_Log_Pos", 0))
        return bool(reached >= (file, int(offset)))

    def _drained(self) -> bool:
        """The coordinator has read everything, and its workers have applied it."""
        received = str(self.status().get("Retrieved_Gtid_Set", "")).replace("\n", "")
        return super()._drained() and (not self._has_gtids() or self.covers(received))

    def _has_gtids(self) -> bool:
        return str(self.value("@@GLOBAL.gtid_mode")) == "ON"

    def _source_statement(self, feed: Address) -> str:
        user, password = REPLICATION_USER
        place = (
            "SOURCE_AUTO_POSITION = 1"
            if self._has_gtids()
            else "SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = 'bin.000001', SOURCE_LOG_POS = 4"
        )
        return (
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{feed.host}', SOURCE_PORT = {feed.port},"
            f" SOURCE_USER = '{user}', SOURCE_PASSWORD = '{password}',"
            f" SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400, GET_SOURCE_PUBLIC_KEY = 1,"
            f" {place}"
        )


class MariaDB(MySQLNode):
    """A server of MariaDB; its place is a sequence number in each domain."""

    monitor_grant: ClassVar[str] = "BINLOG MONITOR, REPLICA MONITOR"

    def position(self) -> str:
        """The last GTID of each domain, of its own log or copied."""
        return str(self.value("@@GLOBAL.gtid_current_pos"))

    def covers(self, position: str) -> bool:
        """Whether everything up to a primary's position is applied here."""
        mine, wanted = _domains(self.position()), _domains(position)
        return all(mine.get(domain, 0) >= number for domain, number in wanted.items())

    def _source_statement(self, feed: Address) -> str:
        user, password = REPLICATION_USER
        return (
            f"CHANGE MASTER TO MASTER_HOST = '{feed.host}', MASTER_PORT = {feed.port},"
            f" MASTER_USER = '{user}', MASTER_PASSWORD = '{password}',"
            f" MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos"
        )


def _variable(name: str) -> str:
    """A variable's name, or an option's."""
    return name.replace("-", "_")


def _domains(position: str) -> dict[int, int]:
    """The sequence number of each domain in a MariaDB GTID position."""
    parts = [[int(number) for number in gtid.split("-")] for gtid in position.split(",") if gtid]
    return {domain: sequence for domain, _server, sequence in parts}


def launch(
    provider: Provider,
    store: str,
    name: str,
    server_id: int,
    *,
    config: Mapping[str, str],
    feed: LagProxy | None,
) -> MySQLNode:
    """Start one server, read-only and without an account but the administrator's.

    Raises:
        ClientMissing: PyMySQL is not installed.
    """
    _pymysql()
    server = provider.start(store, name, {**config, "server-id": str(server_id)})
    kind = MySQL if store == "mysql" else MariaDB
    return kind(server, server_id, feed=feed)


def _pymysql() -> Any:
    try:
        import pymysql
    except ImportError as error:
        raise ClientMissing(
            "a MySQL or MariaDB topology needs PyMySQL: pip install antipode-xcy[mysql]"
        ) from error
    return pymysql


def _connect(address: Address) -> Any:
    pymysql = _pymysql()
    user, password = ADMINISTRATOR
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=user,
        password=password,
        autocommit=True,
        connect_timeout=CLIENT_TIMEOUT_S,
        read_timeout=CLIENT_TIMEOUT_S,
        cursorclass=pymysql.cursors.DictCursor,
    )
