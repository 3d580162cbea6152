"""Counts of what must never pass unseen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from antipode._runtime import metrics as _metrics
from antipode.shim import count
from antipode.telemetry import metrics

if TYPE_CHECKING:
    import pytest


def test_forged_names_take_no_memory_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many names what is new is counted together; what was counted goes on."""
    monkeypatch.setattr(_metrics, "_counts", Counter())
    count("incomplete", "posts")
    for number in range(3 * _metrics._MOST_COUNTS):
        count("incomplete", f"forged-{number}")
    count("incomplete", "posts")
    found = metrics()
    assert len(found) == _metrics._MOST_COUNTS + 1
    assert found[_metrics.Metric("incomplete", "posts")] == 2
    assert found[_metrics.Metric("incomplete", "_OTHER")] > _metrics._MOST_COUNTS
    assert sum(found.values()) == 3 * _metrics._MOST_COUNTS + 2
