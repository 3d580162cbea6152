"""Connections and counts that the tests of MySQL's and MariaDB's clients share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode.telemetry import Metric
from antipode_shims import mysql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, LagProxy, MariaDBTopology, MySQLTopology

    Topology = MySQLTopology | MariaDBTopology

NOTES = "notes"
TRACK = 1 << 23
MULTI = 1 << 16
#: What a server does by itself where it is configured to say what a transaction did.
TELLS = "SET SESSION session_track_transaction_info = STATE"
TIMEOUT_S = 15.0
IN_DOUBT = Incomplete(NOTES, "in_doubt")
UNSAMPLED = Incomplete(NOTES, "unsampled")

#: Both servers, for fixtures.
STORES = [pytest.param(name, marks=pytest.mark.store(name)) for name in ("mysql", "mariadb")]


class Sql:
    """One topology, and what a test opened on it.

    Attributes:
        side_table: whether its tables keep lineages in side tables.
    """

    def __init__(self, topology: Topology, *, side_table: bool = False) -> None:
        self.topology = topology
        self.side_table = side_table
        self._opened: list[Any] = []

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return self.topology.store == "mariadb"

    def plain(self, address: Address | None = None, **options: Any) -> Any:
        """A PyMySQL connection, to the primary by default, that nothing instruments."""
        place = address or self.topology.primary
        options = {
            "autocommit": True,
            "client_flag": TRACK,
            "user": self.topology.user,
            "password": self.topology.password,
            **options,
        }
        connection = pymysql.connect(
            host=place.host,
            port=place.port,
            database=self.topology.database,
            **options,
        )
        self._opened.append(connection)
        return connection

    def connect(
        self, address: Address | None = None, *, reads_from: str = "primary", **options: Any
    ) -> Any:
        """An instrumented PyMySQL connection whose server is known already."""
        connection = self.plain(address, **options)
        mysql.instrument_connection(connection, datastore=NOTES, reads_from=reads_from)  # type: ignore[arg-type]
        with antipode.scope():
            run(connection, "SELECT 1")
        return connection

    def replica(self, **options: Any) -> Any:
        """An instrumented connection to the replica."""
        return self.connect(self.topology.replica, reads_from="replica", **options)

    def position(self) -> tuple[str, int]:
        """Where the primary's log stands: the key and the version of its last write."""
        if self.mariadb:
            row = self.topology.execute("SELECT @@GLOBAL.gtid_binlog_pos AS at")[0]
            domain, server, number = row["at"].rpartition(",")[2].split("-")
            return f"{domain}.{server}", int(number)
        row = self.topology.execute("SELECT @@server_uuid AS u, @@GLOBAL.gtid_executed AS at")[0]
        ranges = row["at"].replace("\n", "").partition(row["u"])[2].partition(",")[0]
        return row["u"], int(ranges.rpartition(":")[2].rpartition("-")[2])

    def close(self) -> None:
        """Close what was opened."""
        for connection in self._opened:
            mysql.uninstrument_connection(connection)
            if connection.open:
                connection.close()


def run(connection: Any, statement: str, *args: Any) -> list[Any]:
    """All rows of a statement, its last result's where it has several."""
    with connection.cursor() as cursor:
        cursor.execute(statement, args or None)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            rows = list(cursor.fetchall()) or rows
        return rows


def learn_views(connection: Any, table: str = "notes") -> None:
    """Read once: which views there are is asked now and then, for all connections of a client."""
    with antipode.scope():
        run(connection, f"SELECT * FROM {table}")  # noqa: S608 - a name of the tests


def drop_triggers(topology: Topology) -> None:
    """Drop triggers, functions and views that other tests left.

    While there are some, a transaction that wrote cannot be told from one that read. Tests make
    their own anew.
    """
    found = topology.execute(
        "SELECT 'TRIGGER' AS kind, TRIGGER_NAME AS name FROM information_schema.TRIGGERS"
        " WHERE TRIGGER_SCHEMA = 'app' UNION SELECT ROUTINE_TYPE, ROUTINE_NAME"
        " FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'app'"
        " AND ROUTINE_TYPE = 'FUNCTION' UNION SELECT 'VIEW', TABLE_NAME"
        " FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'app'"
    )
    for row in found:
        topology.execute(f"DROP {row['kind']} app.`{row['name']}`")


def writes_of(lineage: Lineage) -> list[WriteId]:
    """The exact entries."""
    return [write for write in lineage if not write.covering]


def minted(scope: Any) -> list[tuple[str, int | str]]:
    """Keys and versions of a scope's exact entries."""
    return [(write.key, write.version) for write in writes_of(scope.lineage)]


def counted(name: str) -> int:
    """How often a metric was counted so far."""
    return antipode.telemetry.metrics().get(Metric(name, NOTES), 0)


@contextmanager
def exchanges(proxy: LagProxy) -> Iterator[list[int]]:
    """How many round trips a block makes through *proxy*, in a list of one."""
    before, result = proxy.traffic(), [0]
    yield result
    result[0] = (proxy.traffic() - before).exchanges
