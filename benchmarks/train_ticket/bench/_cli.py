"""The command line."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._cells import Cells
from benchmarks._machine import ROOT, versions
from benchmarks._report import Start
from benchmarks.load import LoadDriverError
from benchmarks.train_ticket._variants import TrainTicketError

from ._plan import FULL, QUICK, START_S, plan
from ._run import code, run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._plan import Cell, Size
    from ._run import Found

USAGE = 2
INTERRUPTED = 130
_PROGRAM = "python -m benchmarks.train_ticket.bench"
_OUT = ROOT / "build" / "bench" / "train-ticket"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="The paper's TrainTicket: how often a refund is missing, and what Antipode "
        "costs, as docs/results/train-ticket.md. After an interrupt the same command goes on.",
        epilog="exit status: 0 no refund was missing with a barrier, where some were without, and "
        "the money adds up; 1 one was missing; 2 bad arguments, a missing server or no Go; "
        "3 inconclusive, it says why; 130 interrupted",
    )
    parser.add_argument("--quick", action="store_true", help="ten minutes instead of an hour")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--only", metavar="PARTS", help="proof,think,costs,rates,burst")
    parser.add_argument("--out", type=Path, default=_OUT, help="where finished cells are kept")
    parser.add_argument("--pages", type=Path, help="where the page goes (docs/results; with "
                        "--quick or --only below --out)")  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="measure again what is finished")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; its exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    size = QUICK if given.quick else FULL
    cells = plan(size)
    if given.only:
        parts = given.only.split(",")
        if unknown := set(parts) - {it.part for it in cells}:
            parser.error(f"there is no part {min(unknown)!r}")
        cells = tuple(it for it in cells if it.part in parts)
    # A program that was started in the background may have been told to ignore SIGINT.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(given, size, cells, list(sys.argv[1:] if arguments is None else arguments))
    except (TrainTicketError, LoadDriverError) as error:
        print(f"train_ticket: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print(
            "train_ticket: interrupted, everything is stopped; the same command goes on with what "
            "is not finished",
            file=sys.stderr,
        )
        return INTERRUPTED


def _run(given: argparse.Namespace, size: Size, cells: Sequence[Cell], arguments: list[str]) -> int:
    from . import _charts, _figures, _page

    start = Start.now()
    folder = given.out / size.name
    found = _progressing(cells, Cells(folder, code(), fresh=given.fresh), size)
    conditions = start.conditions(
        _PROGRAM,
        arguments,
        short=given.quick or bool(given.only),
        versions=versions((), ("mysql", "mongodb", "rabbitmq", "redis")),
    )
    full = size is FULL and not given.only
    pages = given.pages or (ROOT / "docs" / "results" if full else folder / "results")
    pages.mkdir(parents=True, exist_ok=True)
    (pages / _page.PAGE).write_text(_page.page(found, conditions), encoding="utf-8")
    _charts.draw(pages, found)
    judged = _figures.verdict(found)
    if given.json is not None:
        report = {**conditions, "status": judged.status, "said": judged.said}
        report["cells"] = [asdict(it) for it in found]
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"{judged.said}\nthe page is {pages / _page.PAGE}")
    return judged.status


def _progressing(cells: Sequence[Cell], kept: Cells, size: Size) -> list[Found]:
    """Run the cells, and show what is under way and how long it takes."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    starts = len({it.regions for it in cells})
    total = sum(it.expected_s for it in cells) + starts * START_S
    console.print(f"{len(cells)} cells, about {total / 60:.0f} minutes on two quiet processors")
    # A bar that moves too often would compete with what is measured.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1) as bar:
        task = bar.add_task("", total=total)

        def said(text: str) -> None:
            bar.update(task, description=text)
            if not console.is_terminal:
                console.print(text)

        return run_all(
            cells,
            kept,
            warm_up=size.warm_up,
            said=said,
            advance=lambda seconds: bar.advance(task, seconds),
        )
