"""Random requests under lag, with cancellations and a fail-over, whose reads wait by themselves."""

from __future__ import annotations

import pytest

pytest.importorskip("MySQLdb")

from ._benches import BENCHES, STORES
from ._judge import Judge

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pymysql.Warning")]


@pytest.mark.parametrize("store", STORES)
async def test_no_read_is_stale_that_is_not_counted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Nor does any read hang, or any request after one that was cancelled."""
    bench = BENCHES[store](request.getfixturevalue(f"antipode_{store}"), asynchronous=True)
    counts = await Judge(bench, 1, monkeypatch).episode(12)
    assert counts["fresh"] > 20, counts
    assert counts["stale"], counts
    assert counts["cancels"], counts
