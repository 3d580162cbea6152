"""What the tests of lineages beside rows share: a table that was migrated, and two causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import WriteId
from antipode_shims import mysql

if TYPE_CHECKING:
    from tests.integration._mysql_clients import Topology

CAUSE = WriteId("elsewhere", "log", 7, minted_h=500_000)
OTHER = WriteId("elsewhere", "log2", 9, minted_h=500_000)


def make_posts(topology: Topology) -> None:
    """Make the table ``posts`` with what lineages need, and ``plain`` without."""
    run, where = topology.execute, topology.database
    if topology.store == "mysql":
        run("SET GLOBAL log_bin_trust_function_creators = ON")
    for table in ("posts", "plain", "antipode_tombstone"):
        run(f"DROP TABLE IF EXISTS {where}.{table}")
    for table in ("posts", "plain"):
        run(f"CREATE TABLE {where}.{table} (id INT PRIMARY KEY, body TEXT, extra TEXT)")
    for statement in mysql.migration(f"{where}.posts"):
        run(statement)
    topology.wait_replicated()
