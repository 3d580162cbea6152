"""Which MongoDB commands read and write."""

from __future__ import annotations

from typing import Any

import pytest

from antipode_shims.mongodb import COVERED_READS, COVERED_WRITES
from antipode_shims.mongodb._commands import Kind, kind_of


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ({"find": "c"}, Kind.READ),
        ({"getMore": 1}, Kind.READ),
        ({"insert": "c"}, Kind.WRITE),
        ({"findAndModify": "c"}, Kind.WRITE),
        ({"findandmodify": "c"}, Kind.WRITE),
        ({"bulkWrite": 1}, Kind.WRITE),
        ({"commitTransaction": 1}, Kind.WRITE),
        ({"abortTransaction": 1}, Kind.NEUTRAL),
        ({"hello": 1}, Kind.NEUTRAL),
        ({"killCursors": "c"}, Kind.NEUTRAL),
        ({"eval": "code"}, Kind.OTHER),
        ({"applyOps": []}, Kind.OTHER),
        ({"": 1}, Kind.OTHER),
        ({"aggregate": "c", "pipeline": []}, Kind.READ),
        ({"aggregate": "c", "pipeline": [{"$match": {}}]}, Kind.READ),
        ({"aggregate": "c", "pipeline": [{"$match": {"$out": 1}}]}, Kind.READ),
        ({"aggregate": "c", "pipeline": [{"$match": {}}, {"$out": "d"}]}, Kind.WRITE),
        ({"aggregate": "c", "pipeline": ({"$merge": {"into": "d"}},)}, Kind.WRITE),
        ({"aggregate": "c"}, Kind.READ),
        ({"mapReduce": "c", "out": {"inline": 1}}, Kind.READ),
        ({"mapReduce": "c", "out": "d"}, Kind.WRITE),
        ({"mapReduce": "c", "out": {"merge": "d"}}, Kind.WRITE),
    ],
)
def test_kind(command: dict[str, Any], kind: Kind) -> None:
    """The name decides, and for aggregations what they do with their result."""
    assert kind_of(next(iter(command)), command) is kind


def test_tables_are_disjoint() -> None:
    """No command is both, whatever the order of the tables."""
    assert not COVERED_READS & COVERED_WRITES
