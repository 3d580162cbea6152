"""Random sessions on a real primary: no stale read, no lost write, hardly a needless alarm."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

pytest.importorskip("psycopg2")
pytest.importorskip("asyncpg")
pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(400)]

from ._sessions import CLIENTS, Fuzz  # noqa: E402 - its clients are there


@pytest.mark.parametrize("client", CLIENTS)
def test_random_sessions(
    antipode_postgresql: PostgreSQLTopology, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused without need are at most a tenth of those that were refused rightly."""
    with closing(Fuzz(antipode_postgresql, client)) as fuzz:
        counts = fuzz.sessions(range(150))
    share = 100 * counts["needless"] / (counts["right"] + counts["needless"])
    with capsys.disabled():
        found = f"{share:.1f} % of the StaleSnapshots without need, {dict(counts)}"
        sys.stdout.write(f"\npostgresql, {client}: {found}\n")
    assert counts["right"] > 20, counts
    assert counts["changed"] > 100, counts
    assert counts["needless"] * 10 <= counts["right"], counts
