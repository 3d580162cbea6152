"""What is in docs/results: index.md, rounds.csv and runs.csv; and the start page's block."""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks._machine import code, described
from benchmarks._markdown import listed, table
from benchmarks.judge import INCONCLUSIVE

from . import _sections as sections
from ._plan import LONG_SECTIONS, PROFILES, SECTIONS, TIMED_SECTIONS
from ._text import violations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._results import Results, RoundResult, RunResult

BEGIN = "<!-- results: written by `python -m benchmarks.evaluation render`, not by hand -->"
END = "<!-- end of results -->"
_UNMEASURED = "The evaluation has not been run on this tree; `make bench` runs it."
_WRITTEN = "<!-- Written by `python -m benchmarks.evaluation render` from results.json. -->"
_SECTIONS = {
    "table1": sections.table1,
    "figure6": sections.figure6,
    "figure7": sections.figure7,
    "table3": sections.table3,
    "strategies": sections.strategies,
    "sweep": sections.sweep,
    "nothing": sections.nothing,
    "wandering": sections.wandering,
}


def index(results: Results) -> str:
    """The page of tables and figures."""
    title = "Every pair of stores, 3,000 requests" if _apart(results) else "Evaluation"
    blocks = [f"# {title}", _WRITTEN, _result(results), *_warnings(results), _introduction(results)]
    for name, section in _SECTIONS.items():
        if results.of(name):
            blocks += section(results)
    return _joined(chain(blocks, _measured(results)))


def _apart(results: Results) -> bool:
    """Whether these are of a section that is run alone: its pages lie in a folder below."""
    return all(set(run.sections) <= set(LONG_SECTIONS) for run in results.runs)


def _joined(blocks: Iterator[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _warnings(results: Results) -> Iterator[str]:
    if results.size != "full":
        yield (
            f"**A {results.size} run:** few requests, to see that everything works. "
            "Its figures mean little."
        )
    loaded = [run for run in results.runs if run.busy]
    if loaded:
        yield (
            f"**On a loaded machine:** it was not quiet when {len(loaded)} of {len(results.runs)} "
            f"runs began. Counts hold, times do not: {_distorted(loaded)}. The load of each run is "
            "in [every run](runs.csv)."
        )
    if results.code != code():
        yield (
            "**What is measured has changed since:** the code that ran differs from this tree's. "
            "`make bench` measures anew."
        )
    if results.missing:
        count = len(results.missing)
        yield f"**Incomplete:** {count} planned runs have no result; see the end of the page."


def _distorted(loaded: list[RunResult]) -> str:
    """Which of the sections that show times have such runs."""
    counts = Counter(each for run in loaded for each in run.sections if each in TIMED_SECTIONS)
    if not counts:
        return "no time that is shown here is of one of them"
    return listed([f"*{each}* has {counts[each]} of them" for each in SECTIONS if each in counts])


def _result(results: Results) -> str:
    rounds = sections.guarded(results)
    wrong = sum(each.violations + each.early for each in rounds)
    reads = sum(each.answered for each in rounds)
    waited = sum(each.waited for each in rounds)
    of_what = f"{waited:,} reads that would have been wrong" if waited else f"{reads:,} reads"
    return f"With the library there were **{wrong} violations or early returns in {of_what}**."


def _introduction(results: Results) -> str:
    emulators = sorted({each for run in results.runs for each in run.emulators})
    marked = (
        f"; and **emulators** of AWS (ministack) for {listed(emulators)}, marked so wherever they "
        "are named: nothing was measured at AWS"
        if emulators
        else ""
    )
    guide = ("../" * (2 if _apart(results) else 1)) + "guides/post-notification.md"
    return (
        "The paper's post-notification application (sections 2.2 and 7) in two regions on one "
        f"machine: real servers, a link that delays replication, one clock{marked}. "
        "Unprotected rounds run none of the library: no scope, no header, nothing stored. "
        f"[Measuring]({guide}) says what runs and what the figures mean; "
        "[every round](rounds.csv) is listed, failures counted."
    )


def _measured(results: Results) -> Iterator[str]:
    yield "## How it was measured"
    load = [value for run in results.runs for value in run.load]
    took_s = sum(run.took_s for run in results.runs)
    facts = [
        ("command", f"`{results.command}`"),
        ("dates, UTC", _dates(results.runs)),
        ("duration", f"{took_s / 60:.0f} minutes, {len(results.runs)} runs"),
        *described(results.machine),
        ("load before and after runs", f"{min(load):.1f} to {max(load):.1f}" if load else ""),
        ("code", f"{results.code}, commit {results.commit or 'unknown'}"),
        *results.versions.items(),
    ]
    yield table(("", ""), facts, text_columns=2)
    yield (
        "The load is the machine's over one minute. Where it is above the number of processors, "
        "whatever was measured waited for one, and 99th percentiles are the machine's."
    )
    yield _OF_ROUNDS
    odd = [run for run in results.runs if run.unclear or run.status not in (0, INCONCLUSIVE)]
    if odd:
        yield "Runs that ended with something to say (where no post is late nothing can be shown):"
        yield "\n".join(f"- {run.name}: {run.verdict}" for run in odd)
    if results.missing:
        yield f"Planned, without a result: {listed(results.missing)}."


def _dates(runs: list[RunResult]) -> str:
    days = sorted({run.began[:10] for run in runs})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def rounds(results: Results) -> str:
    """Every round, as CSV."""
    head = ["run", "strategy", "kind", "requests", "violations", "timed_out", "failed", "missing"]
    head += ["early", "came_early", "waited", "unwatched", "wrong_in_warm_up"]
    head += [f"{name}_ms{bound}" for name in _TIMES for bound in ("", "_low", "_high")]
    return _csv(
        head,
        (
            (run.name, each.strategy, _case(run, each), *_figures(each))
            for run in results.runs
            for each in run.rounds
        ),
    )


def runs(results: Results) -> str:
    """Every run, as CSV."""
    head = ["run", "command", "began_utc", "took_s", "status", "load_before", "load_after"]
    return _csv(head, map(_run, results.runs))


def _csv(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _figures(each: RoundResult) -> Iterator[object]:
    yield each.requests
    yield each.violations
    yield from (each.outcomes[name] for name in ("timed_out", "failed", "missing"))
    yield from (each.early, each.exposed, each.waited, each.unwatched)
    yield each.warmup["violation"]
    for name in _TIMES:
        yield from _time(each, f"{name}_ms")


def _time(each: RoundResult, name: str) -> tuple[str, str, str]:
    """A median, and its interval over the turns where there are enough of them."""
    interval = each.interval(name)
    if interval is not None:
        return f"{interval.value:.1f}", f"{interval.low:.1f}", f"{interval.high:.1f}"
    return f"{each.medians[name]:.1f}" if name in each.medians else "", "", ""


def _case(run: RunResult, each: RoundResult) -> str:
    """What the requests did, and how late posts were where a run has several lags."""
    several = len({other.chosen_lag_ms for other in run.rounds}) > 1
    return f"{each.kind}, {each.chosen_lag_ms:g} ms" if several else each.kind


_OF_ROUNDS = (
    "[Every round](rounds.csv) and [every run](runs.csv) are listed as CSV. "
    "Counts are of the measured requests; times are medians, with 95 % intervals over the turns, "
    "where there are five. `came_early`: a read at that moment would have been wrong; `waited`: of "
    "those, right once the post was visible; `unwatched`: the observer cannot tell. A request "
    "without an answer timed out in the barrier, failed otherwise, or its notification was missing."
)
_TIMES = ("window", "writer", "reader")


def _run(run: RunResult) -> tuple[object, ...]:
    began = run.began.replace("+00:00", "").replace("T", " ")
    load = tuple(f"{each:.1f}" for each in run.load)
    return run.name, run.command, began, f"{run.took_s:.0f}", run.status, *load


def start_page_block(results: Results | None) -> str:
    """What the start page has between its markers, markers included."""
    body = _UNMEASURED if results is None or results.size != "full" else _quoted(results)
    return f"{BEGIN}\n{body}\n{END}"


def _quoted(results: Results) -> str:
    runs = results.of("table1")
    pairs = {(run.post_storage, run.notifier) for run in runs}
    rows = []
    for profile in PROFILES:
        cells = (violations(sections.counted(runs, profile, s)) for s in ("none", "barrier"))
        rows.append((profile.says, *cells))
    head = ("how late", "violations without protection", "with `barrier()`")
    window = [each for run in results.of("figure7") for each in run.of("barrier", "new")]
    overshoots = [each.medians["overshoot_ms"] for each in window if "overshoot_ms" in each.medians]
    said = [table(head, rows)]
    emulated = len({(run.post_storage, run.notifier) for run in runs if run.emulators})
    with_emulators = f", {emulated} of them with emulators of AWS" if emulated else ""
    if overshoots:
        said.append(
            f"{len(pairs)} pairs of post storage and notifier{with_emulators}. "
            "The barrier returned "
            f"{min(overshoots):.1f} to {max(overshoots):.1f} ms (medians by store) after the post "
            "was visible. [All tables and figures](results/index.md)."
        )
    return "\n\n".join(said)


def with_block(page: str, block: str) -> str:
    """A page with its block replaced.

    Raises:
        ValueError: it has no markers.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = "the page has no place for results: its markers are missing"
        raise ValueError(msg)
    return before + block + after
