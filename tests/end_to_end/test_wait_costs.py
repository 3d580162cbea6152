"""What the guides say of the requests of a barrier at stores that bill them is what it makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.costs.waits import STORES, Store, measure

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
ROW = re.compile(r"\| (nothing[^|]*|[\d.]+ m?s) \| (\d+) \| (\d+) \|")
WAITS_MS = (0, 100, 1000)


def published(store: Store) -> dict[float, tuple[int, int]]:
    """Requests in the region that reads and in the writer's, by milliseconds of the wait."""
    found = {}
    for wait, here, home in ROW.findall((GUIDES / f"{store}.md").read_text(encoding="utf-8")):
        number, _, unit = wait.partition(" ")
        wait_ms = 0.0 if number == "nothing:" else float(number) * (1 if unit == "ms" else 1000)
        found[wait_ms] = (int(here), int(home))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "store", [pytest.param(store, marks=pytest.mark.store(store)) for store in STORES]
)
def test_a_wait_costs_no_more_than_its_guide_says(
    store: Store, request: pytest.FixtureRequest
) -> None:
    """Nothing to wait for costs one request; a wait has at most a quarter more than published."""
    request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where it is required.
    table = published(store)
    for cost in measure(store, WAITS_MS):
        here, home = table[cost.held_ms]
        # A wait lasts until a copy is there, which is later than it is let go.
        late = cost.waited_ms - cost.held_ms
        assert cost.here <= 1.25 * here + 2 + late / 10
        assert cost.home <= home + 1 + late / 100
    assert table[0] == (1, 0)
