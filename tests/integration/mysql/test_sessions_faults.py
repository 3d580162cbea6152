"""Many more random sessions of other seeds than CI's, and longer ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("MySQLdb")

from ._sessions import CLIENTS, Fuzz

if TYPE_CHECKING:
    from ._clients import Sql

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::pymysql.Warning")]


@pytest.mark.parametrize("triggers", [False, True])
@pytest.mark.parametrize("client", CLIENTS)
def test_no_session_of_hundreds_reads_what_is_older(
    sql: Sql, client: str, *, triggers: bool
) -> None:
    """The claim of the short run, and its bound where no trigger makes a guess of each write."""
    counts = Fuzz(sql, client, triggers=triggers).sessions(range(1000, 1300), steps=40)
    assert counts["right"] > 100, counts
    assert triggers or counts["needless"] * 10 <= counts["right"], counts
