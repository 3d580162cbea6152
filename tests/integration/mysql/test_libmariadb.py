"""Instrumented connections of libmariadb, on real servers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance._agents import command
from tests.integration._dry_run import dry_run_into, lints
from tests.integration.mysql._clients import STORES, drop_triggers
from tests.integration.mysql._proxies import StatementProxy, by_plain_reads, to_readers

if TYPE_CHECKING:
    from antipode_testing import Address

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
    "forked": LAG_MS,
    "functions": LAG_MS,
    "rollbacks": LAG_MS,
    "failures": LAG_MS,
    "declared": 0,
    "cut_off": NEVER_MS,
    "called": LAG_MS,
    "views": LAG_MS,
    "routed": LAG_MS,
}
TABLES = (
    "DROP TABLE IF EXISTS app.words, app.loose, app.kept",
    "CREATE TABLE app.words (id INT PRIMARY KEY, word VARCHAR(9))",
    "CREATE TABLE app.loose (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TABLE app.kept (id INT PRIMARY KEY)",
    "INSERT INTO app.kept VALUES (9)",
    "DROP PROCEDURE IF EXISTS app.adds",
    """CREATE PROCEDURE app.adds (n INT)
    BEGIN SELECT 1; INSERT INTO app.words VALUES (n, 'added'); END""",
    "DROP FUNCTION IF EXISTS app.noting",
    """CREATE FUNCTION app.noting(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
    BEGIN INSERT INTO app.words VALUES (i, 'f'); RETURN i; END""",
    "DROP FUNCTION IF EXISTS app.loosely",
    """CREATE FUNCTION app.loosely(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA
    BEGIN INSERT INTO app.loose VALUES (i); RETURN i; END""",
    "DROP FUNCTION IF EXISTS app.reading",
    "CREATE FUNCTION app.reading(i INT) RETURNS INT NO SQL RETURN i",
    *(
        f"CREATE OR REPLACE VIEW app.noted_{number} AS SELECT app.noting({number}) AS id"
        for number in range(31, 36)
    ),
    "CREATE OR REPLACE VIEW app.above AS SELECT id FROM app.noted_32",
)
SEQUENCE = "CREATE OR REPLACE SEQUENCE app.numbers"


@pytest.fixture(params=STORES)
def servers(request: pytest.FixtureRequest) -> Any:
    """MySQL and MariaDB in turn, with a table and what writes to it out of sight."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    for each in (*TABLES, *([SEQUENCE] if request.param == "mariadb" else [])):
        topology.execute(each)
    return topology


@pytest.mark.parametrize("check", CHECKS)
def test_connection(servers: Any, check: str) -> None:
    """Commits enter the scope with their positions or a mark, and reads wait as they must."""
    servers.set_lag(CHECKS[check])
    if check == "snapshots":  # Whatever may read in a statement of others'.
        drop_triggers(servers)
    ran(servers, check, {})


def test_a_proxy_that_splits_statements_is_refused(servers: Any) -> None:
    """A read that has to wait is not sent through a proxy whose number is in the handshake."""
    servers.set_lag(0)
    with StatementProxy(servers, by_plain_reads) as proxy:
        ran(servers, "proxied", {}, far=proxy.address)


def test_a_connection_stays_with_one_server_of_a_group(servers: Any) -> None:
    """What is asked first names a variable, after which a proxy keeps the session where it is."""
    servers.set_lag(LAG_MS)
    group = {"read": (servers.replica, servers.primary)}
    with StatementProxy(servers, to_readers, group) as proxy:
        ran(servers, "grouped", {}, far=proxy.address)


def test_what_leaves_within_a_transaction_is_a_lint(servers: Any, tmp_path: Path) -> None:
    """A dry run says so while a transaction that wrote is open; so of a read that cannot see it."""
    servers.set_lag(0)
    ran(servers, "uncommitted", dry_run_into(tmp_path))
    assert lints(tmp_path) == [("in-transaction", "posts"), ("read-before-commit", "posts")]


def ran(servers: Any, check: str, variables: dict[str, str], *, far: Address | None = None) -> None:
    """Run the program, in which each check that does not hold is an error."""
    program = Path(command("cpp")[0]).with_name("antipode_mysql_client")
    addresses = [f"{host}:{port}" for host, port in (servers.primary, far or servers.replica)]
    account = [servers.user, servers.password, servers.database]
    done = subprocess.run(
        [program, *addresses, *account, check],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
