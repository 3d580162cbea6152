"""Histories of the post-notification benchmark, and what the checker says of them."""

from __future__ import annotations

from typing import Any

import pytest

from antipode.checker import check
from benchmarks.post_notification._history import history_of, record
from benchmarks.post_notification._observations import Observation
from benchmarks.post_notification._run import Round


def observation(number: int = 0, **known: Any) -> Observation:
    """A request whose notification was received and whose post was read."""
    fields: dict[str, Any] = {
        "id": f"1-{number}",
        "kind": "new",
        "strategy": "none",
        "warmup": False,
        "begun_ns": 1,
        "acknowledged_ns": 2,
        "received_ns": 3,
        "version": 1,
    }
    return Observation(**{**fields, **known})


@pytest.mark.parametrize(
    ("kind", "right", "wrong"), [("new", 1, 0), ("update", 2, 1), ("delete", 0, 1)]
)
def test_a_read_that_came_too_early_is_a_violation(kind: str, right: int, wrong: int) -> None:
    """What the benchmark calls a violation the checker does, as one that lineages carry."""
    requests = [observation(number, kind=kind, version=right) for number in range(20)]
    assert str(check(history_of(requests))) == "ok"
    requests[7] = observation(7, kind=kind, version=wrong)
    result = check(history_of(requests))
    assert str(result) == "violation (XCY, carried)"
    assert result.explanation
    assert {one.lineage for one in result.explanation.operations} == {"1-7"}


@pytest.mark.parametrize(
    "known",
    [
        {"version": None},
        {"received_ns": None, "version": None},
        {"acknowledged_ns": None, "received_ns": None, "version": None},
        {"begun_ns": None, "acknowledged_ns": None, "received_ns": None, "version": None},
    ],
)
def test_requests_that_failed_on_the_way_are_none(known: dict[str, Any]) -> None:
    """What nobody saw violates nothing."""
    assert str(check(history_of([observation(**known), observation(1)]))) == "ok"


def test_each_strategy_has_a_history(tmp_path: Any) -> None:
    """The requests of one strategy alone, of all its rounds, are in its file."""
    early = Round("none", "new", 100.0, [observation(version=0)])
    guarded = Round("barrier", "new", 100.0, [observation(strategy="barrier")])
    told = [record(tmp_path, name, [early, guarded]) for name in ("none", "barrier")]
    assert told == [
        f"history: {tmp_path / 'none.jsonl'}: violation (XCY, carried)",
        f"history: {tmp_path / 'barrier.jsonl'}: ok",
    ]
