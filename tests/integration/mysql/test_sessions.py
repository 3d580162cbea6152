"""Random sessions on real servers: no stale read, and hardly an alarm without need."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("MySQLdb")

import antipode

from ._clients import TIMEOUT_S
from ._sessions import CLIENTS, Fuzz

if TYPE_CHECKING:
    from ._clients import Sql

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pymysql.Warning")]


@pytest.mark.parametrize("client", CLIENTS)
def test_no_session_reads_what_is_older_than_its_barrier(
    sql: Sql, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused without need are at most a tenth of those that were refused rightly."""
    counts = Fuzz(sql, client).sessions(range(50))
    share = 100 * counts["needless"] / (counts["right"] + counts["needless"])
    with capsys.disabled():
        found = f"{share:.1f} % of the StaleSnapshots without need, {dict(counts)}"
        sys.stdout.write(f"\n{sql.topology.store}, {client}: {found}\n")
    assert counts["right"] > 20, counts
    assert counts["needless"] * 10 <= counts["right"], counts


@pytest.mark.parametrize("client", CLIENTS)
def test_reads_that_wait_by_themselves_are_fresh_or_counted(sql: Sql, client: str) -> None:
    """None raises; what a transaction's snapshot cannot show is counted as answered stale."""
    antipode.configure(barriers="auto", auto_timeout=TIMEOUT_S)
    try:
        counts = Fuzz(sql, client, automatic=True).sessions(range(50))
    finally:
        antipode.configure(barriers="explicit", auto_timeout=1.0)
    assert counts["fresh"] > 50, counts
    assert counts["stale"] > 20, counts


@pytest.mark.parametrize("client", CLIENTS)
def test_nor_where_what_it_writes_reads(sql: Sql, client: str) -> None:
    """A trigger takes the snapshot of a transaction that only wrote."""
    counts = Fuzz(sql, client, triggers=True).sessions(range(25))
    assert counts["right"] > 10, counts


@pytest.mark.parametrize("client", ["pymysql", "aiomysql"])
def test_nor_where_the_server_says_what_a_transaction_did(sql: Sql, client: str) -> None:
    """Whether a trigger took the snapshot is no guess there."""
    counts = Fuzz(sql, client, triggers=True, tells=True).sessions(range(25))
    assert counts["right"] > 10, counts
    assert counts["needless"] * 10 <= counts["right"], counts
