"""Many more random requests of other seeds than CI's, by clients of both APIs."""

from __future__ import annotations

import pytest

pytest.importorskip("MySQLdb")

from ._benches import BENCHES, STORES
from ._judge import Judge

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::pymysql.Warning")]


@pytest.mark.parametrize("seed", range(100, 103))
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("store", STORES)
async def test_no_read_of_hundreds_is_stale_that_is_not_counted(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
    *,
    asynchronous: bool,
    seed: int,
) -> None:
    """The claim of the short run, whose fail-over comes late in a longer one."""
    bench = BENCHES[store](request.getfixturevalue(f"antipode_{store}"), asynchronous=asynchronous)
    counts = await Judge(bench, seed, monkeypatch).episode(30)
    assert counts["fresh"] > 100, counts
    assert counts["stale"], counts
    assert (counts["cancels"] > 0) is asynchronous, counts
