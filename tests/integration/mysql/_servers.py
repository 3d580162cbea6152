"""Both flavours of MySQL for tests that hold for either, and shims at their servers."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage
from antipode_shims import mysql as shims
from antipode_testing import MariaDBTopology, MySQLTopology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import WriteId

Topology = MySQLTopology | MariaDBTopology

GRANTS = {"mysql": "REPLICATION CLIENT", "mariadb": "BINLOG MONITOR, REPLICA MONITOR"}

FLAVORS = [
    pytest.param("antipode_mysql", marks=pytest.mark.store("mysql"), id="mysql"),
    pytest.param("antipode_mariadb", marks=pytest.mark.store("mariadb"), id="mariadb"),
]


def grant(topology: Topology) -> str:
    """What lets services ask for the state of replication."""
    return f"GRANT {GRANTS[topology.store]} ON *.* TO app@'%'"


def revoke(topology: Topology) -> str:
    """The opposite of :func:`grant`."""
    return f"REVOKE {GRANTS[topology.store]} ON *.* FROM app@'%'"


def version(topology: Topology) -> tuple[int, ...]:
    """Of the server: older ones lack some statements, or spell them otherwise."""
    (row,) = topology.execute("SELECT VERSION() AS version")
    return tuple(map(int, row["version"].partition("-")[0].split(".")))


def prepare(topology: Topology) -> None:
    """Make the tables, and let services ask for the state of replication."""
    for statement in (
        grant(topology),
        *(made.replace("TABLE `", "TABLE IF NOT EXISTS app.`") for made in shims.ddl()),
    ):
        topology.execute(statement)
    topology.wait_replicated()


class Regions:
    """A writer at the primary and a reader at the replica, registered as ``posts``."""

    def __init__(self, topology: Topology, stack: ExitStack) -> None:
        self.topology = topology
        prepare(topology)
        self.writer: Any = shims.shim("posts", topology.url())
        stack.callback(self.close)
        self.reader: Any = shims.shim("posts", topology.url(topology.replica), reads_from="replica")

    def close(self) -> None:
        """Close whatever shims there are by now."""
        self.writer.close()
        self.reader.close()

    def write(self, key: str = "k", value: bytes = b"1") -> Lineage:
        """What a write outside of the caller's scope minted."""
        with antipode.scope():
            lineage: Lineage = self.writer.write(key, value, Lineage())
            return lineage

    def replicated(self) -> Lineage:
        """A write that the replica shows."""
        lineage = self.write()
        antipode.barrier(lineage, timeout=10)
        return lineage

    def reconnect(self) -> None:
        """Write at the new primary."""
        self.writer.close()
        self.writer = shims.shim("posts", self.topology.url())

    def waiting(self) -> list[str]:
        """What blocks on the replica now."""
        rows = self.topology.execute("SHOW PROCESSLIST", replica=0)
        texts = (str(row["Info"]) for row in rows)
        return [text for text in texts if "GTID_WAIT" in text or "WAIT_FOR_EXECUTED" in text]


@contextmanager
def regions(topology: Topology) -> Iterator[Regions]:
    """Shims at both servers of *topology*."""
    with ExitStack() as stack:
        yield Regions(topology, stack)


def only(lineage: Lineage) -> WriteId:
    """The one write of *lineage*."""
    (write,) = lineage
    return write
