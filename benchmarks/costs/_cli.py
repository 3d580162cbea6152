"""The command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._machine import ROOT

from . import waiting
from ._page import page
from ._reports import BENCHMARKS, NAMES, read

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS = ROOT / "docs" / "results"
#: The page, and the folder beside it with what it is made of.
PAGE = "costs.md"
FOLDER = "costs"
WRONG = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect or render; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        if given.action == "waiting":
            waiting.run(given.json)
            return 0
        if given.action == "collect":
            collect(given.results, given.files)
        render(given.results)
    except (OSError, ValueError) as error:
        print(f"costs: {error}", file=sys.stderr)
        return WRONG
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs",
        description="Makes the page of what the library costs, docs/results/costs.md, of what "
        f"the benchmarks {', '.join(BENCHMARKS)} wrote with --json. Measures nothing itself, but "
        "for the simulation of polls.",
        epilog="exit status: 2 if a file is missing or of something else; else 0",
    )
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="{collect,render,waiting}"
    )
    collect = actions.add_parser(
        "collect", help="copy these files to docs/results/costs, as they are, and render"
    )
    collect.description = (
        "Each file takes the place of what the same benchmark found before, with --as-is and "
        "without; of a benchmark that is not among them, what was found before stays."
    )
    collect.add_argument("files", nargs="+", type=Path, metavar="FILE", help="of one benchmark")
    render = actions.add_parser("render", help="make the page anew from docs/results/costs")
    polls = actions.add_parser("waiting", help="simulate the paces of polls, and print tables")
    polls.add_argument("--json", type=Path, help="where the figures go as well")
    for action in (collect, render):
        action.add_argument(
            "--results", type=Path, default=RESULTS, help="where the page is (docs/results)"
        )
    return parser


def collect(results: Path, files: Sequence[Path]) -> None:
    """Copy what benchmarks wrote to where the page is made of it.

    Raises:
        ValueError: a file is missing, of something else, or of the same benchmark as another.
        OSError: it cannot be copied.
    """
    found: dict[str, str] = {}
    for path in files:
        name = read(path).name
        if name in found:
            msg = f"{path} is the second of {name}"
            raise ValueError(msg)
        found[name] = path.read_text(encoding="utf-8")
    (results / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        (results / FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def render(results: Path) -> None:
    """Make the page anew.

    Raises:
        ValueError: a file that it is made of is of something else.
        OSError: it cannot be written.
    """
    made = rendered(results)
    results.mkdir(parents=True, exist_ok=True)
    (results / PAGE).write_text(made, encoding="utf-8")
    print(f"costs: {results / PAGE}")


def rendered(results: Path) -> str:
    """The page, of the files that there are.

    Raises:
        ValueError: one is of something else.
    """
    reports = {}
    for name in NAMES:
        path = results / FOLDER / f"{name}.json"
        if path.exists():
            reports[name] = read(path)
            if reports[name].name != name:
                msg = f"{path} is of {reports[name].name}"
                raise ValueError(msg)
    return page(reports)
