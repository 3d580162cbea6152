"""The evaluation's pages: made of results.json alone, and the start page quotes what they say."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks._machine import ROOT, code
from benchmarks.evaluation import _cli
from benchmarks.evaluation._pages import (
    BEGIN,
    END,
    index,
    rounds,
    runs,
    start_page_block,
    with_block,
)
from benchmarks.evaluation._plan import DELAYED, FOOTPRINT, FULL, LONG_SECTIONS, plan
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
from benchmarks.judge import INCONCLUSIVE
from benchmarks.post_notification._options import EMULATORS, NOTIFIERS, POST_STORAGES

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.evaluation._plan import Run

#: What is wrong of 1,000 reads with each profile.
WRONG = {"posts-far": 1000, DELAYED: 500, "notices-far": 0, "": 700}
#: Where requests waited; the second without violations.
POINTS = [
    [Point(0, each * 900, 994), Point(150, 0, 3), Point(200, each * 100, 1000)] for each in (1, 0)
]
TIMES = ("attempt_ms", "window_ms", "lag_ms", "overshoot_ms", "writer_ms", "reader_ms")
#: By how much a turn differs from the middle of five.
TURNS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def round_of(strategy: str, kind: str, wrong: int, **more: Any) -> RoundResult:
    """A round of 1,000 requests of which three were lost."""
    outcomes = dict.fromkeys(("consistent", "violation", "timed_out", "failed", "missing"), 0)
    outcomes |= {"violation": min(wrong, 997), "failed": 3}
    outcomes["consistent"] = 997 - outcomes["violation"]
    warmup = dict.fromkeys(outcomes, 0)
    middle = more.pop("middle", 100.0)
    known: dict[str, Any] = {
        "early": 0,
        "waited": 400 if strategy == "barrier" else 0,
        "medians": dict.fromkeys(TIMES, middle),
        "by_block": {name: [middle + each for each in TURNS] for name in TIMES},
        "p99s": dict.fromkeys(TIMES, 150.0),
        "quantiles": {"attempt_ms": [float(each) for each in range(201)]},
        "points": POINTS[strategy != "none"],
        "bytes": {"calls": 300.0, "notification": 200.0, "stored": 1031.0},
        "primary": {"commands": 2.5},
        "replica": {"commands": 3.5, "processor_ms": 0.25},
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
    known["emulators"] = sorted(EMULATORS & {run.post_storage, run.notifier})
    if run.module == FOOTPRINT:
        taken = [FootprintResult(name, 1031.0, 1400.0) for name in ("none", "first", "dependent")]
        return RunResult(run.name, sections, *where, **known, counts="pages", footprints=taken)
    if "sweep" in run.sections:
        return RunResult(run.name, sections, *where, **known, load=[0.1, 2.0], rounds=swept())
    kinds = ("new", "update", "delete")
    made = [round_of("none", kind, WRONG[run.profile]) for kind in kinds]
    made += [round_of("barrier", kind, 0) for kind in kinds]
    return RunResult(run.name, sections, *where, **known, load=[1.5, 2.0], rounds=made)


def swept() -> list[RoundResult]:
    """The primary is slower than the barrier where posts are 25 ms late, and faster at 400."""
    return [
        round_of(strategy, "update", wrong, chosen_lag_ms=lag, middle=middle)
        for strategy, wrong, middles in (
            ("none", 900, (25.0, 100.0, 400.0)),
            ("instrumented", 0, (30.0, 100.0, 405.0)),
            ("primary", 0, (70.0, 100.3, 72.0)),
        )
        for lag, middle in zip((25, 100, 400), middles, strict=True)
    ]


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


def listed(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file, by its heads."""
    return list(csv.DictReader(text.splitlines()))


def test_the_page_has_every_section_and_counts_every_violation(results: Results) -> None:
    """Tables of the paper, the machine, the command, the date; what the lags dictate, plain."""
    page = index(results)
    headings = ("table 1", "figure 6", "figure 7", "table 3", "could do instead")
    for heading in (*headings, "The longer the lag", "With nothing to wait for"):
        assert heading in page
    waited = sum(each.waited for run in results.runs for each in run.rounds)
    assert f"**0 violations or early returns in {waited:,} reads that would have been" in page
    assert "| 90.3 % |" in page
    assert "100.0 (99.0 to 101.0)" in page  # Student's, over five turns
    assert "`python -m benchmarks.evaluation`" in page
    assert "2026-01-02" in page
    assert "not measured" not in page


def test_every_pair_has_a_page_of_its_own(results: Results) -> None:
    """What takes long is not on the evaluation's page; its links lead out of its own folder."""
    long = [run_of(run) for run in plan(FULL, LONG_SECTIONS)]
    page = index(replace(results, runs=long))
    assert page.startswith("# Every pair of stores")
    assert "../../guides/post-notification.md" in page
    assert "table 1" not in page


def test_a_run_of_the_barrier_alone_is_not_odd(results: Results) -> None:
    """It cannot say by itself that the barrier was needed; one that could and did not is listed."""
    told: dict[str, Any] = {
        "sections": [*LONG_SECTIONS],
        "status": INCONCLUSIVE,
        "verdict": "nothing was wrong",
    }
    both = replace(results.runs[0], **told)
    alone = replace(both, rounds=both.of("barrier"))
    assert "nothing was wrong" not in index(replace(results, runs=[alone]))
    assert f"- {both.name}: nothing was wrong" in index(replace(results, runs=[both]))


@pytest.mark.parametrize(
    ("events", "trials", "text"),
    [
        (0, 3000, "0 of 3,000"),
        (3000, 3000, "all of 3,000"),
        (2999, 3000, "99.9 %"),
        (1, 3000, "0.1 %"),
        (900, 1000, "90.0 %"),
    ],
)
def test_a_share_never_looks_like_nothing_or_everything(
    events: int, trials: int, text: str
) -> None:
    """Unless it is: then it is counted."""
    assert share_text(events / trials, trials) == text


def test_the_page_says_where_something_else_beats_the_barrier(results: Results) -> None:
    """In words, by how much, turn by turn; and where no difference is shown."""
    page = index(results)
    assert (
        "With `primary` readers have the post before `barrier()` at a lag of 400 (by 333 to 333 "
        "ms), and after `barrier()` at a lag of 25 (by 40 to 40 ms)" in page
    )


def test_few_turns_support_no_claim(results: Results) -> None:
    """Without five of them there is no interval, and no strategy is below another."""
    runs = [
        replace(run, rounds=[replace(each, by_block={}) for each in run.rounds])
        for run in results.runs
    ]
    page = index(replace(results, runs=runs))
    assert " to 101.0)" not in page
    assert "Too few turns to compare" in page
    assert "beats" not in page


def test_a_loaded_machine_is_said_at_the_top(results: Results) -> None:
    """Before anything that was measured on it."""
    runs = [replace(results.runs[0], busy="LOADED MACHINE: ..."), *results.runs[1:]]
    page = index(replace(results, runs=runs))
    assert 0 < page.index("**On a loaded machine:**") < page.index("The paper's post-notification")
    assert "**On a loaded machine:**" not in index(results)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (["table1"], "times do not: no time that is shown here is of one of them"),
        (["figure7", "table1"], "times do not: *figure7* has 1 of them."),
    ],
)
def test_a_loaded_machine_concerns_times_alone(
    results: Results, sections: list[str], said: str
) -> None:
    """Whoever reads them sees which ones."""
    run = replace(results.runs[0], busy="LOADED MACHINE: ...", sections=sections)
    assert said in index(replace(results, runs=[run, *results.runs[1:]]))


def test_a_violation_behind_the_barrier_is_in_the_first_paragraph(results: Results) -> None:
    """What the library promises and did not keep is not hidden in a table."""
    run = results.runs[0]
    worse = [replace(each, early=2) if each.strategy == "barrier" else each for each in run.rounds]
    broken = replace(results, runs=[replace(run, rounds=worse, status=1), *results.runs[1:]])
    assert "**6 violations or early returns in" in index(broken)
    assert {each["early"] for each in listed(rounds(broken))} == {"0", "2"}


def test_emulators_are_called_so(results: Results) -> None:
    """In the first paragraph, tables and the start page; where there are none nothing is said."""
    page = index(results)
    assert "and **emulators** of AWS (ministack) for dynamodb and sns" in page
    for name in sorted(EMULATORS.intersection((*POST_STORAGES, *NOTIFIERS))):
        assert f"| {name} |" not in page
        assert f"{name} (emulator)" in page
    said = "32 pairs of post storage and notifier, 14 of them with emulators of AWS"
    assert said in start_page_block(results)
    real = replace(results, runs=[run for run in results.runs if not run.emulators])
    assert "emulator" not in index(real) + start_page_block(real)


def test_what_is_missing_is_said(results: Results) -> None:
    """A run without a result is named, its cells say so, and the page begins with it."""
    gone = results.runs[0]
    page = index(replace(results, runs=results.runs[1:], missing=[gone.name]))
    assert "**Incomplete:** 1 planned run" in page
    assert f"Planned, without a result: {gone.name}." in page
    assert "not measured" in page


def test_every_round_is_listed_with_its_failures(results: Results) -> None:
    """No round is left out, and lost requests are counted in it."""
    found = listed(rounds(results))
    for run in results.runs:
        assert len([each for each in found if each["run"] == run.name]) == len(run.rounds)
    names = ("requests", "violations", "timed_out", "failed", "missing", "early")
    assert ["1000", "900", "0", "3", "0", "0"] in [[each[name] for name in names] for each in found]
    assert "update, 25 ms" in {each["kind"] for each in found}


def test_every_run_is_listed_with_its_command(results: Results) -> None:
    """Whoever doubts a figure can run it again."""
    assert [(each["run"], each["command"]) for each in listed(runs(results))] == [
        (run.name, run.command) for run in results.runs
    ]


def test_a_quick_run_says_so_and_is_not_quoted(results: Results) -> None:
    """Rough figures never look like those of a full run."""
    quick = replace(results, size="quick")
    assert "**A quick run:**" in index(quick)
    assert "has not been run" in start_page_block(quick)


def test_the_start_page_quotes_shares_of_every_profile(results: Results) -> None:
    """Each row has what happens without protection and with the barrier."""
    block = start_page_block(results)
    rows = [line for line in block.splitlines() if "late" in line and line.startswith("|")][1:]
    assert len(rows) == 4
    assert all("0 of" in row.rsplit("|", 2)[1] for row in rows)
    unprotected = [row.split("|")[2].strip() for row in rows]
    assert unprotected[0].startswith("all of")
    assert unprotected[1:3] == ["90.3 %", "10.0 %"]
    assert unprotected[3].startswith("0 of")


def test_the_block_is_put_between_its_markers() -> None:
    """What is around it stays; without markers it is an error."""
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_block(page, f"{BEGIN}\nnew\n{END}") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="markers"):
        with_block("no place", "block")


def test_figures_are_drawn_for_what_was_measured(results: Results, tmp_path: Path) -> None:
    """Each is a picture; equal results make equal files."""
    pytest.importorskip("matplotlib")
    results.write(tmp_path / FILE)
    _cli.render(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(made) == {
        *("table1.png", "figure6.png", "figure7.png", "strategies.png", "sweep.png")
    }
    assert all(each.startswith(b"\x89PNG") for each in made.values())
    _cli.render(tmp_path)
    assert made == {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}


def test_the_page_says_when_what_it_measures_has_changed(results: Results) -> None:
    """By the code that ran and the code that is there."""
    assert "**What is measured has changed since:**" in index(results)
    assert "has changed since" not in index(replace(results, code=code()))


def test_what_is_committed_is_what_render_makes() -> None:
    """No figure of the start page or of docs/results was typed by hand.

    Fails, too, once what they measure changes: `python -m benchmarks.evaluation render` then says
    so on the page, until it is measured anew.
    """
    for folder in (_cli.RESULTS, _cli.LONG_RESULTS):
        path = folder / FILE
        found = read(path) if path.exists() else None
        if folder == _cli.RESULTS:
            page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
            assert start_page_block(found) in page
        for name, text in (_cli.pages(found) if found else {}).items():
            assert path.with_name(name).read_text(encoding="utf-8") == text
