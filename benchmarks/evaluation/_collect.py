"""From the results of runs, every observation of them, to what the pages are made of."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from benchmarks._machine import code, commit, machine, versions
from benchmarks._statistics import percentile
from benchmarks.judge import busy
from benchmarks.post_notification._observations import Observation
from benchmarks.post_notification._options import EMULATORS

from ._plan import FOOTPRINT
from ._results import FootprintResult, Point, Results, RoundResult, RunResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ._plan import Run, Size
    from ._runner import Record, Runner

TIMES = (
    *("attempt_ms", "window_ms", "lag_ms", "overshoot_ms", "writer_ms", "reader_ms"),
    *("idle_ms", "arrive_ms", "fetch_ms"),
)
#: Of these the whole distribution is kept, where it is drawn.
_DRAWN = ("attempt_ms", "lag_ms")
_QUANTILES = 201
#: Digits after the point of a millisecond.
_DIGITS = 3


def collect(runner: Runner, runs: Sequence[Run], size: Size, command: str) -> Results:
    """What is there of the planned runs; the others are listed as missing."""
    found, missing = [], []
    for run in runs:
        record = runner.record(run)
        if record is None:
            missing.append(run.name)
        else:
            found.append(_run(run, record, runner.result(run)))
    return Results(size.name, command, code(), commit(), machine(), versions(), missing, runs=found)


def _run(run: Run, record: Record, path: Path) -> RunResult:
    found = json.loads(path.read_text(encoding="utf-8"))
    known: dict[str, Any] = {
        "name": run.name,
        "sections": sorted(run.sections),
        "post_storage": run.post_storage,
        "notifier": run.notifier,
        "profile": run.profile,
        "command": " ".join(run.command),
        "began": record.began,
        "took_s": record.took_s,
        "status": record.status,
        "emulators": sorted(EMULATORS & {run.post_storage, run.notifier}),
    }
    if run.module == FOOTPRINT:
        footprints = [FootprintResult(**each) for each in found["footprints"]]
        return RunResult(**known, counts=found["counts"], footprints=footprints)
    drawn = "figure7" in run.sections
    return RunResult(
        **known,
        verdict=found["verdict"]["text"],
        busy=busy(found["machine"]["in_use"], found["machine"]["processors"]),
        load=[round(found["machine"][name][0], 2) for name in ("load", "load_after")],
        rounds=[_round(each, drawn=drawn) for each in found["rounds"]],
    )


def _round(found: dict[str, Any], *, drawn: bool) -> RoundResult:
    summary = found["summary"]
    measured = [Observation(**each) for each in found["observations"] if not each["warmup"]]
    times = {name: _times(measured, name) for name in TIMES}
    return RoundResult(
        strategy=summary["strategy"],
        kind=summary["kind"],
        requests=summary["requests"],
        outcomes=summary["outcomes"],
        warmup=summary["warmup"],
        early=summary["early"],
        medians={name: percentile(each, 50) for name, each in times.items() if each},
        p99s={name: percentile(each, 99) for name, each in times.items() if each},
        chosen_lag_ms=summary["chosen_lag_ms"],
        by_block={name: _by_block(measured, name) for name, each in times.items() if each},
        exposed=summary["exposed"],
        waited=summary["waited"],
        unwatched=summary["unwatched"],
        quantiles={name: _quantiles(times[name]) for name in _DRAWN if drawn and times[name]},
        points=_points(measured),
        bytes={name: round(each, 1) for name, each in summary["bytes"].items()},
        primary=summary["primary"],
        replica=summary["replica"],
        lines=summary["lines"],
    )


def _times(measured: Sequence[Observation], name: str) -> list[float]:
    """In ascending order, of the requests that have such a time."""
    found = (getattr(each, name) for each in measured)
    return sorted(round(value, _DIGITS) for value in found if value is not None)


def _by_block(measured: Sequence[Observation], name: str) -> list[float | None]:
    """The median of a time in each turn."""
    turns: list[list[Observation]] = [[] for _ in range(1 + max(each.block for each in measured))]
    for each in measured:
        turns[each.block].append(each)
    ordered = [_times(turn, name) for turn in turns]
    return [round(percentile(each, 50), _DIGITS) if each else None for each in ordered]


def _quantiles(ordered: Sequence[float]) -> list[float]:
    steps = (100 * number / (_QUANTILES - 1) for number in range(_QUANTILES))
    return [round(percentile(ordered, percent), _DIGITS) for percent in steps]


def _points(measured: Sequence[Observation]) -> list[Point]:
    """Violations by delay."""
    outcomes: dict[float, list[str]] = defaultdict(list)
    for each in measured:
        if each.delay_ms is not None and each.outcome in ("consistent", "violation"):
            outcomes[each.delay_ms].append(each.outcome)
    return [
        Point(delay_ms, outcomes[delay_ms].count("violation"), len(outcomes[delay_ms]))
        for delay_ms in sorted(outcomes)
    ]
