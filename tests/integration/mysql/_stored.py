"""What the tests of lineages beside rows share: a table that was migrated, and two causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antipode import WriteId
from antipode_shims import mysql

from ._clients import run

if TYPE_CHECKING:
    from ._clients import Sql, Topology

CAUSE = WriteId("elsewhere", "log", 7, written_hour=490_000)
OTHER = WriteId("elsewhere", "log2", 9, written_hour=490_000)

#: Both servers with the invisible column, and as servers have it that know none; for fixtures.
IN_COLUMNS = [
    pytest.param((name, False), id=name, marks=pytest.mark.store(name))
    for name in ("mysql", "mariadb")
]
IN_SIDE_TABLES = [
    pytest.param((name, True), id=f"{name}-side-table", marks=pytest.mark.store(name))
    for name in ("mysql", "mariadb")
]


def make_posts(topology: Topology, *, side_table: bool = False) -> None:
    """Make the table ``posts`` with what lineages need, and ``plain`` without."""
    execute, where = topology.execute, topology.database
    if topology.store == "mysql":
        execute("SET GLOBAL log_bin_trust_function_creators = ON")
    for table in ("posts", "posts_ap", "plain", "plain_ap", "antipode_tombstone"):
        execute(f"DROP TABLE IF EXISTS {where}.{table}")
    for table in ("posts", "plain"):
        execute(f"CREATE TABLE {where}.{table} (id INT PRIMARY KEY, body TEXT, extra TEXT)")
    for statement in mysql.migration(f"{where}.posts", side_table=side_table):
        execute(statement)
    topology.wait_replicated()


#: What writes a row of posts by a procedure or a trigger of the application's own.
UNNAMED = ("CALL rewrite()", "INSERT INTO plain VALUES (9, 'x', 'y')")


def make_unnamed_writes(posts: Sql) -> None:
    """Make what :data:`UNNAMED` uses, which ends with the table."""
    where = posts.topology.database
    rewrite = f"UPDATE {where}.posts SET body = 'z' WHERE id = 1"  # noqa: S608 - names of ours
    for statement in (
        f"DROP PROCEDURE IF EXISTS {where}.rewrite",
        f"CREATE PROCEDURE {where}.rewrite() {rewrite}",
        f"CREATE TRIGGER {where}.copies AFTER INSERT ON {where}.plain FOR EACH ROW {rewrite}",
    ):
        posts.topology.execute(statement)


def texts(posts: Sql, key: int = 1) -> list[str]:
    """What lies beside a row of posts."""
    column = "l FROM posts_ap WHERE k" if posts.side_table else "_ap FROM posts WHERE id"
    rows = run(posts.plain(), f"SELECT {column} = %s", key)
    return [] if not rows or rows[0][0] is None else rows[0][0].decode().split(",")
