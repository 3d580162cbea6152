"""``python -m benchmarks.costs.micro``."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._machine import versions
from benchmarks._report import Start, write

from ._measure import Measured, cases, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

#: At this many entries no operation may cost more than this many times its floor.
ENTRIES = 5
ROUNDS = 60
BOUND = 3.0
FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge if asked to; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs.micro",
        description="What the library adds to a call, as ratios to bare OpenTelemetry calls.",
        epilog=f"exit status: 1 if --check is given and a median at {ENTRIES} entries is over "
        f"{BOUND:g}; else 0",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"rounds of all cases ({ROUNDS})"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--check", action="store_true", help="fail where the bound is missed")
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error("argument --rounds: at least 1")
    start = Start.now()
    measured = _measure(given.rounds, given.seed)
    _show(measured)
    missed = [
        each for each in measured if each.case.entries == ENTRIES and each.ratios.median > BOUND
    ]
    if given.json is not None:
        _write(given.json, measured, start, given)
    for each in missed:
        case = each.case
        print(
            f"over {BOUND:g} at {ENTRIES} entries: {case.operation} ({case.inputs}), "
            f"{each.ratios.median:.2f} times {each.floor}"
        )
    return FAILED if missed and given.check else 0


def _measure(rounds: int, seed: int) -> list[Measured]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rounds", total=rounds + 1)
        return measure(rounds, seed, lambda: progress.advance(task))


def _show(measured: list[Measured]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="cost of an operation over its floor", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (
        "operation",
        "inputs",
        "entries",
        "bytes",
        "µs",
        "floor µs",
        "ratio",
        "quartiles",
    ):
        right = heading not in ("operation", "inputs")
        table.add_column(heading, justify="right" if right else "left")
    for each in measured:
        case, ratios = each.case, each.ratios
        over = case.entries == ENTRIES and ratios.median > BOUND
        last = (case.entries, case.inputs) == (cases()[-1].entries, cases()[-1].inputs)
        table.add_row(
            case.operation,
            case.inputs,
            str(case.entries),
            str(each.text_bytes),
            f"{each.ours_us.median:.2f}",
            f"{each.floor_us.median:.2f}",
            f"[bold red]{ratios.median:.2f}[/]" if over else f"{ratios.median:.2f}",
            f"{ratios.lower_quartile:.1f}-{ratios.upper_quartile:.1f}",
            end_section=last,
        )
    console = Console()
    if not console.is_terminal:
        console.width = 110  # No heading is broken, however large a figure is.
    console.print(table)


def _write(path: Path, measured: list[Measured], start: Start, given: argparse.Namespace) -> None:
    report = {
        "benchmark": "micro",
        **start.conditions(
            "python -m benchmarks.costs.micro",
            ("--rounds", str(given.rounds), "--seed", str(given.seed)),
            short=given.rounds < ROUNDS,
            versions=versions(("opentelemetry-api",), ()),
        ),
        "rounds": given.rounds,
        "bound": {"entries": ENTRIES, "ratio": BOUND},
    }
    write(path, report, [{**asdict(each), "floor": each.floor} for each in measured])


if __name__ == "__main__":
    # Lineages of 100 entries are shortened for a header, which is what is timed, not its warning.
    logging.getLogger("antipode").setLevel(logging.ERROR)
    sys.exit(main())
