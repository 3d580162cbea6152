"""The evaluation's pages: made of results.json alone, and README quotes what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks._machine import ROOT
from benchmarks._statistics import Interval, share_of
from benchmarks.evaluation import _cli
from benchmarks.evaluation._pages import BEGIN, END, index, readme_block, rounds, with_block
from benchmarks.evaluation._plan import FOOTPRINT, FULL, plan
from benchmarks.evaluation._results import (
    FILE,
    FootprintResult,
    Point,
    Results,
    RoundResult,
    RunResult,
    read,
)
from benchmarks.evaluation._text import share_text

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.evaluation._plan import Run

#: What is wrong of 1,000 reads with each profile.
WRONG = {"posts-far": 1000, "posts-late": 900, "notices-late": 100, "notices-far": 0, "": 700}
TIMES = ("attempt_ms", "window_ms", "lag_ms", "overshoot_ms", "writer_ms", "reader_ms")


def round_of(strategy: str, kind: str, wrong: int, **more: Any) -> RoundResult:
    """A round of 1,000 requests of which three were lost."""
    outcomes = dict.fromkeys(("consistent", "violation", "timed_out", "failed", "missing"), 0)
    outcomes |= {"violation": min(wrong, 997), "failed": 3}
    outcomes["consistent"] = 997 - outcomes["violation"]
    warmup = dict.fromkeys(outcomes, 0)
    times = {name: Interval(100.0, 99.0, 101.5) for name in TIMES}
    known: dict[str, Any] = {
        "early": 0,
        "medians": times,
        "p99s": dict.fromkeys(TIMES, 150.0),
        "quantiles": {"attempt_ms": [float(each) for each in range(201)]},
        "points": [Point(0, 90, 100), Point(150, 0, 100)],
        "bytes": {"calls": 300.0, "notification": 200.0, "stored": 1031.0},
        "primary": {"commands": 2.5},
        "lines": 7,
    }
    return RoundResult(strategy, kind, 1000, outcomes, warmup, **{**known, **more})


def run_of(run: Run) -> RunResult:
    """A result of a planned run."""
    known: dict[str, Any] = {
        "command": " ".join(run.command),
        "began": "2026-01-02T03:04:05+00:00",
        "took_s": 60.0,
        "status": 0,
    }
    sections = sorted(run.sections)
    where = run.post_storage, run.notifier, run.profile
    if run.module == FOOTPRINT:
        taken = [FootprintResult(name, 1031.0, 1400.0) for name in ("none", "first", "dependent")]
        return RunResult(run.name, sections, *where, **known, counts="pages", footprints=taken)
    kinds = ("new", "update", "delete")
    made = [round_of("none", kind, WRONG[run.profile]) for kind in kinds]
    made += [round_of("barrier", kind, 0) for kind in kinds]
    return RunResult(run.name, sections, *where, **known, load=[1.5, 2.0], rounds=made)


@pytest.fixture(scope="module")
def results() -> Results:
    """Results of the whole plan."""
    machine = {
        "processors": 2,
        "model": "some",
        "memory_gib": 8.0,
        "system": "Linux",
        "python": "CPython 3.11",
    }
    runs = [run_of(run) for run in plan(FULL)]
    versions = {"redis": "8.0"}
    command = "python -m benchmarks.evaluation"
    return Results("full", command, "0123", "abc", machine, versions, missing=[], runs=runs)


def test_results_come_back_as_they_were_written(results: Results, tmp_path: Path) -> None:
    """One line for each run, and nothing is lost on the way."""
    path = tmp_path / "deeper" / FILE
    results.write(path)
    assert read(path) == results
    assert len(path.read_text().splitlines()) > len(results.runs)


def test_another_format_is_refused(results: Results, tmp_path: Path) -> None:
    """Nobody renders figures whose meaning has changed."""
    path = tmp_path / FILE
    results.write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    with pytest.raises(ValueError, match="another format"):
        read(path)


def test_the_page_has_every_section_and_counts_every_violation(results: Results) -> None:
    """Tables of the paper, the machine, the command, the date, shares with their intervals."""
    page = index(results)
    for heading in ("table 1", "figure 6", "figure 7", "table 3", "could do instead"):
        assert heading in page
    assert "**0 violations or early returns in" in page
    assert "90.3 % (89.2 to 91.3)" in page  # Wilson's, of 2,991 answered
    assert "`python -m benchmarks.evaluation`" in page
    assert "2026-01-02" in page
    assert "not measured" not in page


@pytest.mark.parametrize(
    ("events", "trials", "text"),
    [
        (0, 3000, "0 of 3,000 (up to 0.13 %)"),
        (3000, 3000, "all of 3,000 (at least 99.87 %)"),
        (0, 12, "0 of 12 (up to 24 %)"),
        (2999, 3000, "100.0 % (99.8 to 100.0)"),
        (900, 1000, "90.0 % (88.0 to 91.7)"),
    ],
)
def test_a_share_is_never_more_certain_than_it_is(events: int, trials: int, text: str) -> None:
    """Nothing and everything come with what was not excluded, the rest with its interval."""
    assert share_text(share_of(events, trials), trials) == text


def test_a_violation_behind_the_barrier_is_in_the_first_paragraph(results: Results) -> None:
    """What the library promises and did not keep is not hidden in a table."""
    run = results.runs[0]
    worse = [replace(each, early=2) if each.strategy == "barrier" else each for each in run.rounds]
    broken = replace(results, runs=[replace(run, rounds=worse, status=1), *results.runs[1:]])
    assert "**6 violations or early returns in" in index(broken)
    assert "2 |" in rounds(broken)


def test_what_is_missing_is_said(results: Results) -> None:
    """A run without a result is named, its cells say so, and the page begins with it."""
    gone = results.runs[0]
    page = index(replace(results, runs=results.runs[1:], missing=[gone.name]))
    assert "**Incomplete:** 1 planned run" in page
    assert f"Planned, without a result: {gone.name}." in page
    assert "not measured" in page


def test_every_round_is_listed_with_its_failures(results: Results) -> None:
    """No round is left out, and lost requests are counted in it."""
    page = rounds(results)
    for run in results.runs:
        assert page.count(f"| {run.name} |") == len(run.rounds) + 1
    assert "| 1000 | 900 | 0 | 3 | 0 | 0 |" in page


def test_a_quick_run_says_so_and_is_not_quoted(results: Results) -> None:
    """Rough figures never look like those of a full run."""
    quick = replace(results, size="quick")
    assert "**A quick run:**" in index(quick)
    assert "has not been run" in readme_block(quick)


def test_the_readme_quotes_shares_of_every_profile(results: Results) -> None:
    """Each row has what happens without protection and with the barrier."""
    block = readme_block(results)
    rows = [line for line in block.splitlines() if "late" in line and line.startswith("|")][1:]
    assert len(rows) == 4
    assert all("0 of" in row.rsplit("|", 2)[1] for row in rows)


def test_the_block_is_put_between_its_markers() -> None:
    """What is around it stays; without markers it is an error."""
    readme = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_block(readme, f"{BEGIN}\nnew\n{END}") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="markers"):
        with_block("no place", "block")


def test_figures_are_drawn_for_what_was_measured(results: Results, tmp_path: Path) -> None:
    """Each is a picture; equal results make equal files."""
    pytest.importorskip("matplotlib")
    results.write(tmp_path / FILE)
    _cli.render(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(made) == {"table1.png", "figure6.png", "figure7.png", "strategies.png"}
    assert all(each.startswith(b"\x89PNG") for each in made.values())
    _cli.render(tmp_path)
    assert made == {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}


def test_what_is_committed_is_what_render_makes() -> None:
    """No figure in README or docs/results was typed by hand."""
    path = ROOT / "docs" / "results" / FILE
    found = read(path) if path.exists() else None
    assert readme_block(found) in (ROOT / "README.md").read_text(encoding="utf-8")
    for name, text in (_cli.pages(found) if found else {}).items():
        assert path.with_name(name).read_text(encoding="utf-8") == text
