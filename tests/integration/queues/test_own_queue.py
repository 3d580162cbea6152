"""The guide's two lines for a queue that nothing integrates, over a list in a real Redis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import Lineage, WriteId

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "integrations.md"
SECTION = GUIDE.read_text(encoding="utf-8").partition("\n### A queue of your own\n")[2]
POST = WriteId("posts", "p1", 1, 498_669)


@pytest.mark.store("redis")
def test_two_lines_carry_the_lineage(antipode_redis: RedisTopology) -> None:
    """The work depends on what its sender did; a job of an older version on nothing."""
    names: dict[str, Any] = {"antipode": antipode, "json": json}
    exec(SECTION.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - the guide's code
    seen: dict[str, Lineage] = {}

    def handle(order: str) -> None:
        seen[order] = antipode.current()

    with redis.Redis(*antipode_redis.primary) as queue:
        queue.delete("jobs")
        with antipode.scope(Lineage([POST])):
            names["enqueue"](queue, "first")
        queue.rpush("jobs", json.dumps({"order": "second"}))
        for _ in range(2):
            names["work"](queue, handle)
        assert not queue.llen("jobs")
    assert seen == {"first": Lineage([POST]), "second": Lineage()}
