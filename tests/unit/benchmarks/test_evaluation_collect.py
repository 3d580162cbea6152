"""From every observation of a run to what the pages are made of: nothing is lost or flattered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.evaluation import _collect, _runner
from benchmarks.evaluation._plan import APPLICATION, QUICK, Run
from benchmarks.evaluation._results import Point
from benchmarks.evaluation._runner import Record, Runner

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
OUTCOMES = ("consistent", "violation", "timed_out", "failed", "missing")
RUN = Run("some", frozenset({"table1", "figure7"}), APPLICATION, ("--requests", "4"), "redis")


def observation(number: int, outcome: str = "consistent", **more: Any) -> dict[str, Any]:
    """A request whose read began so many milliseconds after its write."""
    return {
        "id": str(number),
        "kind": "new",
        "strategy": "none",
        "warmup": False,
        "outcome": outcome,
        "begun_ns": 1000 * MS,
        "read_ns": (1000 + number) * MS,
        **more,
    }


def result(observations: list[dict[str, Any]]) -> dict[str, Any]:
    """What the benchmark writes, as far as it is read here."""
    counted = [each["outcome"] for each in observations if not each["warmup"]]
    summary = {
        "strategy": "none",
        "kind": "new",
        "requests": len(counted),
        "outcomes": {name: counted.count(name) for name in OUTCOMES},
        "warmup": dict.fromkeys(OUTCOMES, 0),
        "early": 0,
        "chosen_lag_ms": 100.0,
        "exposed": 3,
        "waited": 2,
        "unwatched": 1,
        "primary": {},
        "replica": {},
        "lines": 0,
        "bytes": {"calls": 300.04},
    }
    return {
        "verdict": {"text": "done"},
        "machine": {"in_use": 1.2, "load": [1.234, 0, 0], "load_after": [2, 0, 0], "processors": 2},
        "rounds": [{"summary": summary, "observations": observations}],
    }


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """One whose every planned run finished here, with what its file has."""

    def record(self: Runner, run: Run) -> Record | None:
        known = Record(run.command, "0123", {}, "2026-01-02T03:04:05+00:00", 60.0, 0)
        return known if self.result(run).is_file() else None

    monkeypatch.setattr(_runner.Runner, "record", record)
    return Runner(tmp_path)


def collected(runner: Runner, observations: list[dict[str, Any]]) -> Any:
    """The one round of a run with these observations."""
    runner.result(RUN).write_text(json.dumps(result(observations)))
    (run,) = _collect.collect(runner, [RUN], QUICK, "typed").runs
    (found,) = run.rounds
    return found


def test_warm_up_is_in_no_figure(runner: Runner) -> None:
    """Times are of measured requests; the distribution goes from the least to the greatest."""
    late = observation(5000, warmup=True)
    found = collected(runner, [late, *(observation(number) for number in range(1, 102))])
    assert found.medians["attempt_ms"] == 51
    assert found.p99s["attempt_ms"] == 100
    assert (found.quantiles["attempt_ms"][0], found.quantiles["attempt_ms"][-1]) == (1, 101)
    assert "overshoot_ms" not in found.medians


def test_turns_are_kept_apart(runner: Runner) -> None:
    """What is claimed of a time is claimed of its turns; one without such a time has none."""
    known = [observation(number, block=number % 5) for number in range(10)]
    found = collected(runner, known)
    assert found.by_block["attempt_ms"] == [2.5, 3.5, 4.5, 5.5, 6.5]
    assert found.interval("attempt_ms").value == 4.5
    assert (found.exposed, found.waited, found.unwatched) == (3, 2, 1)
    few = collected(runner, [each for each in known if each["block"]])
    assert few.by_block["attempt_ms"][0] is None
    assert few.interval("attempt_ms") is None


def test_a_run_on_a_loaded_machine_says_so(runner: Runner) -> None:
    """By what ran before it began."""
    runner.result(RUN).write_text(json.dumps(result([observation(1)])))
    (run,) = _collect.collect(runner, [RUN], QUICK, "typed").runs
    assert "LOADED MACHINE" in run.busy


def test_lost_requests_are_counted_and_in_no_share(runner: Runner) -> None:
    """Neither consistent nor wrong: they are lost, whatever became of them."""
    outcomes = ["consistent", "violation", "timed_out", "failed", "missing"]
    found = collected(runner, [observation(1, outcome) for outcome in outcomes])
    assert (found.requests, found.answered, found.violations, found.lost) == (5, 2, 1, 3)


def test_violations_are_told_by_delay(runner: Runner) -> None:
    """Each point has its own answered requests; one that was lost belongs to none."""
    waited = [(0, "violation"), (0, "violation"), (50, "consistent"), (50, "violation")]
    waited.append((50, "missing"))
    found = collected(runner, [observation(1, what, delay_ms=ms) for ms, what in waited])
    assert found.points == [Point(0, 2, 2), Point(50, 1, 2)]


def test_runs_without_a_result_are_named(runner: Runner) -> None:
    """What was planned and is not there is not passed over."""
    found = _collect.collect(runner, [RUN], QUICK, "typed")
    assert (found.runs, found.missing) == ([], ["some"])
