"""The command line."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._machine import ROOT
from benchmarks._report import Start, write

from ._assumptions import TAILS, WORST, Assumptions
from ._page import PAGE, REPORT, render
from ._run import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESULTS = ROOT / "docs" / "results"
REQUESTS, SWEPT = 1_000_000, 50_000
WRONG = 2

#: What each point of the sweep changes of the default.
SWEEP: tuple[dict[str, Any], ...] = (
    {},
    {"writes": 0.1},
    {"writes": 1.0},
    {"tail": "log-logistic"},
    {"keyed": 0.2},
    {"keyed": 1.0},
    {"services_a_log": 3},
    {"services_a_log": 10},
    {"mysql": 1.0, "redis": 0.0},
    {"mysql": 0.0, "redis": 1.0},
    {"mysql": 0.0, "redis": 0.0},
    {"name_chars": 4},
    {"name_chars": 16},
    {"depth": 3.0},
    {"depth": 8.0},
    {"calls_a_service": 1.0},
    {"calls_a_service": 3.0},
    {"parallel": 0.0},
    {"parallel": 1.0},
    {"answers": False},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or render; the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.action == "run":
        try:
            cases = _cases(given)
        except ValueError as error:
            parser.error(str(error))
        return _run(given, cases)
    try:
        render(given.results)
    except (OSError, ValueError) as error:
        print(f"metadata: {error}", file=sys.stderr)
        return WRONG
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.metadata",
        description="How large lineages become in requests as large as Alibaba's: draws trees of "
        "calls after the published numbers and sends the library's own lineages through them.",
        epilog="exit status: 2 if an option or a file is wrong; else 0",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="{run,render}")
    running = actions.add_parser(
        "run",
        help="draw requests, print the figures",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    running.description = (
        "Counts the bytes of the lineage with each call and answer. The same seed gives the same "
        "figures with any number of processes, but for the time."
    )
    running.add_argument("--requests", type=_positive, default=REQUESTS, help="of each large case")
    running.add_argument(
        "--sweep", type=int, default=SWEPT, help="requests of each point; 0: no sweep"
    )
    running.add_argument("--seed", type=int, default=1, help="of the requests")
    running.add_argument(
        "--processes", type=_positive, default=os.cpu_count() or 1, help="that share the work"
    )
    running.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    _add_assumptions(running.add_argument_group("what is assumed, where no number is published"))
    rendering = actions.add_parser("render", help=f"make docs/results/{PAGE} of {REPORT} again")
    rendering.add_argument("--results", type=Path, default=RESULTS, help="where both are")
    return parser


def _add_assumptions(group: argparse._ArgumentGroup) -> None:
    default = Assumptions()
    helps = {
        "writes": "share of the calls of stateful services that are dependencies",
        "tail": f"of calls and of unique services: {' or '.join(TAILS)}",
        "keyed": "share of the stores that have an entry for each key",
        "services_a_log": "stateful services that share one log",
        "mysql": "share of the logs that a UUID names",
        "redis": "share of the logs that 40 hexadecimal digits name",
        "name_chars": "length of a datastore's name",
        "depth": "mean depth of the tree of stateless services",
        "calls_a_service": "calls of stateful services by a stateless one, in the mean",
        "parallel": "share of the stateless services that call others concurrently",
    }
    for name, text in helps.items():
        value = getattr(default, name)
        group.add_argument(
            f"--{name.replace('_', '-')}", type=type(value), default=value, help=text
        )
    group.add_argument(
        "--no-answers", dest="answers", action="store_false", help="answers bring nothing back"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"{number} is less than 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def _cases(given: argparse.Namespace) -> list[tuple[str, Assumptions, int]]:
    """What is run: a name, what is assumed, how many requests."""
    assumed = Assumptions(**{each.name: getattr(given, each.name) for each in fields(Assumptions)})
    cases = [("default" if assumed == Assumptions() else "as given", assumed, given.requests)]
    if assumed == Assumptions():
        cases.append(("worst case", WORST, given.requests))
        if given.sweep > 0:
            cases += [("sweep", replace(assumed, **point), given.sweep) for point in SWEEP]
    return cases


def _run(given: argparse.Namespace, cases: list[tuple[str, Assumptions, int]]) -> int:
    start = Start.now()
    found = list(_measured(given, cases))
    _show(found)
    if given.json is not None:
        report = {
            "benchmark": "metadata",
            **start.conditions(
                "python -m benchmarks.metadata run",
                (
                    "--requests",
                    str(given.requests),
                    "--sweep",
                    str(given.sweep),
                    "--seed",
                    str(given.seed),
                ),
                short=given.requests < REQUESTS or given.sweep < SWEPT,
                versions={},
            ),
        }
        write(given.json, report, found)
    return 0


def _measured(
    given: argparse.Namespace, cases: list[tuple[str, Assumptions, int]]
) -> Iterator[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("requests", total=sum(count for *_, count in cases))
        for name, assumed, count in cases:
            changes = ", ".join(f"{key}={value}" for key, value in assumed.changed().items())
            progress.update(task, description=f"{name} {changes}".strip())
            figures = run(
                assumed,
                count,
                seed=given.seed,
                processes=given.processes,
                advance=lambda done: progress.advance(task, done),
            )
            yield {
                "case": name,
                "changed": assumed.changed(),
                "assumed": asdict(assumed),
                **figures.summary(),
            }


def _show(found: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="bytes of lineages", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case")
    for heading in (
        "call mean",
        "p99",
        "answer",
        "largest",
        "p99",
        "entry",
        "shortened",
        "µs a text",
    ):
        table.add_column(heading, justify="right")
    for case in found:
        changes = ", ".join(f"{key}={value}" for key, value in case["changed"].items())
        table.add_row(
            case["case"] if case["case"] != "sweep" else changes or "default",
            f"{case['call_bytes']['mean']:.0f}",
            f"{case['call_bytes']['p99']:,}",
            f"{case['answer_bytes']['mean']:.0f}",
            f"{case['largest_bytes']['mean']:.0f}",
            f"{case['largest_bytes']['p99']:,}",
            f"{case['entry_bytes']:.1f}",
            f"{100 * case['shortened_requests'] / case['requests']:.2f} %",
            f"{case['processor_us_a_text']:.0f}",
        )
    console = Console()
    if not console.is_terminal:
        console.width = 110
    console.print(table)
    print(
        "call, answer: the text with each; largest: of the texts of a request; shortened: requests"
    )
