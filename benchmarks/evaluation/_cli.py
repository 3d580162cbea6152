"""The command line."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._machine import ROOT
from benchmarks.judge import INCONCLUSIVE
from benchmarks.post_notification._options import NOTIFIERS, POST_STORAGES

from ._pages import index, rounds, runs, start_page_block, with_block
from ._plan import FULL, LONG_SECTIONS, QUICK, SECTIONS, plan
from ._results import FILE, Results, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._plan import Run

RESULTS = ROOT / "docs" / "results"
#: Of the sections that are run alone.
LONG_RESULTS = RESULTS / "wandering"
VIOLATED = 1
UNFINISHED = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, render, or list what would be run; the exit status."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    size = QUICK if given.quick else FULL
    stores = given.post_storages or size.post_storages
    runs = plan(size, given.only, stores, given.notifiers)
    pages = LONG_RESULTS if set(given.only) <= set(LONG_SECTIONS) else RESULTS
    results: Path = given.results or (given.out / "quick" / "results" if given.quick else pages)
    try:
        if given.action == "list":
            _list(runs)
        elif given.action == "render":
            render(results)
        else:
            return _run(given, runs, results)
    except KeyboardInterrupt:
        print(
            "evaluation: interrupted: servers are stopped, finished runs are kept; "
            "the same command goes on from there",
            file=sys.stderr,
        )
        return INTERRUPTED
    except (OSError, ValueError) as error:
        print(f"evaluation: {error}", file=sys.stderr)
        return UNFINISHED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evaluation",
        description="The paper's evaluation: tables 1 and 3, figures 6 and 7, and the strategies "
        "that users have besides. Starts every store's servers itself, one run after another.",
        epilog="exit status: 1 if there was a violation with the barrier; 2 if a run left no "
        "result; 3 if one is inconclusive whose posts were late; 130 if interrupted; else 0. A run "
        "that is finished is not run again as long as its options, the code and the machine are "
        "the same.",
    )
    add = parser.add_argument
    add(
        "action",
        nargs="?",
        choices=("run", "render", "list"),
        default="run",
        help="run and render (the default), render docs/results anew, or list the runs",
    )
    add("--quick", action="store_true", help="few requests, few stores: minutes, and rough figures")
    add("--fresh", action="store_true", help="run what is finished already, too")
    add(
        "--only",
        type=_some((*SECTIONS, *LONG_SECTIONS)),
        default=SECTIONS,
        help=f"some of {','.join(SECTIONS)} (all of these); or {','.join(LONG_SECTIONS)}, which "
        f"takes long and has pages of its own in {LONG_RESULTS.relative_to(ROOT)}",
    )
    add("--post-storages", type=_some(POST_STORAGES), help="some of them (all; --quick: two)")
    add("--notifiers", type=_some(NOTIFIERS), default=NOTIFIERS, help="some of them (all)")
    add("--out", type=Path, default=ROOT / "build" / "bench", help="of the runs (build/bench)")
    add("--results", type=Path, help="of the pages (docs/results; --quick: beside the runs)")
    return parser


def _some(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A type of arguments: some of *names*, in their order."""

    def parse(text: str) -> tuple[str, ...]:
        named = [part.strip() for part in text.split(",")]
        unknown = [name for name in named if name not in names]
        if unknown:
            msg = f"{unknown[0]!r} is none of {', '.join(names)}"
            raise argparse.ArgumentTypeError(msg)
        return tuple(name for name in names if name in named)

    return parse


def _list(runs: Sequence[Run]) -> None:
    for run in runs:
        print(f"{run.expected_s:5.0f} s  {run.name}: {' '.join(run.command)}")
    minutes = sum(run.expected_s for run in runs) / 60
    requests = sum(run.requests for run in runs)
    print(f"{len(runs)} runs, {requests:,} requests, about {minutes:.0f} minutes")


def _run(given: argparse.Namespace, runs: Sequence[Run], results: Path) -> int:
    from ._collect import collect
    from ._runner import Runner, run_all

    for package in ("rich", "matplotlib"):
        if importlib.util.find_spec(package) is None:
            msg = f"the package {package!r} is missing: pip install 'antipode-xcy[bench]'"
            raise ValueError(msg)
    size = QUICK if given.quick else FULL
    runner = Runner(given.out / size.name, fresh=given.fresh)
    failures = run_all(runner, runs)
    found = collect(runner, runs, size, _typed(given))
    if not found.runs:
        return UNFINISHED
    found.write(results / FILE)
    render(results)
    if failures:
        print(f"evaluation: {len(failures)} runs left no result", file=sys.stderr)
        return UNFINISHED
    wrong = [run.name for run in found.runs if run.status == VIOLATED]
    if wrong:
        print(f"evaluation: violations with the barrier: {', '.join(wrong)}", file=sys.stderr)
        return VIOLATED
    there = {run.name: run for run in found.runs}
    unclear = [run.name for run in runs if run.late and there[run.name].unclear]
    if unclear:
        print(f"evaluation: inconclusive: {', '.join(unclear)}", file=sys.stderr)
    return INCONCLUSIVE if unclear else 0


def _typed(given: argparse.Namespace) -> str:
    """The command that makes these results, without places."""
    parts = ["python -m benchmarks.evaluation"]
    parts += ["--quick"] if given.quick else []
    for name, names in (("only", SECTIONS), ("post_storages", None), ("notifiers", NOTIFIERS)):
        value = getattr(given, name)
        if value not in (names, None):
            parts.append(f"--{name.replace('_', '-')} {','.join(value)}")
    return " ".join(parts)


def render(folder: Path) -> None:
    """Make every page and figure of a folder anew from its results, and the start page's block.

    Raises:
        OSError: there are no results.
        ValueError: they are of another format.
    """
    from ._charts import draw

    found = read(folder / FILE)
    for name, text in pages(found).items():
        (folder / name).write_text(text, encoding="utf-8")
    draw(folder, found)
    print(f"results: {folder / 'index.md'}")
    if folder.resolve() == RESULTS:
        path = ROOT / "docs" / "index.md"
        page = with_block(path.read_text(encoding="utf-8"), start_page_block(found))
        path.write_text(page, encoding="utf-8")


def pages(found: Results) -> dict[str, str]:
    """The pages by their file names."""
    return {"index.md": index(found), "rounds.csv": rounds(found), "runs.csv": runs(found)}
