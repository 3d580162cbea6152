"""Instrumented connections of libmariadb, on real servers."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conformance._agents import command
from tests.integration.mysql._clients import STORES, Sql, run

pytestmark = pytest.mark.slow

LAG_MS = 200
NEVER_MS = 5_000
#: What each check of cpp/tests/mysql/client_program.cc claims, and how far the replica is behind.
CHECKS = {
    "held": LAG_MS,
    "writes": 0,
    "transactions": 0,
    "prepared": LAG_MS,
    "snapshots": LAG_MS,
    "untold": 0,
    "late": NEVER_MS,
    "lost": 0,
}
TABLES = (
    "DROP TABLE IF EXISTS words",
    "CREATE TABLE words (id INT PRIMARY KEY, word VARCHAR(9))",
    "DROP PROCEDURE IF EXISTS adds",
    "CREATE PROCEDURE adds (n INT) BEGIN SELECT 1; INSERT INTO words VALUES (n, 'added'); END",
)


@pytest.fixture(params=STORES)
def servers(request: pytest.FixtureRequest) -> Any:
    """MySQL and MariaDB in turn, with a table and what writes to it out of sight."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    with closing(Sql(topology)) as sql:
        connection = sql.plain()
        for each in TABLES:
            run(connection, each)
    return topology


@pytest.mark.parametrize("check", CHECKS)
def test_connection(servers: Any, check: str) -> None:
    """Commits enter the scope with their positions or a mark, and reads wait as they must."""
    program = Path(command("cpp")[0]).with_name("antipode_mysql_client")
    servers.set_lag(CHECKS[check])
    addresses = [f"{host}:{port}" for host, port in (servers.primary, servers.replica)]
    account = [servers.user, servers.password, servers.database]
    ran = subprocess.run(
        [program, *addresses, *account, check],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
