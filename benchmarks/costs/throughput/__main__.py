"""``python -m benchmarks.costs.throughput``."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from antipode import AntipodeError
from benchmarks._machine import versions
from benchmarks._processors import AS_IS, AS_IS_HELP, steady
from benchmarks._report import Start, write

from ._measure import STORES, THREADS, WAYS, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._processors import Processors

    from ._measure import Measured

BLOCKS, TURN_S = 5, 1.0
FAILED = 1
MISSING = 2
INTERRUPTED = 130
PACKAGES = ("opentelemetry-api", "redis", "PyMySQL", "SQLAlchemy", "pymongo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge if asked to; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs.throughput",
        description=f"Rounds of a write to a primary and a read at its replica, by {THREADS} "
        "threads of one process that never rest: rounds a second, and processor time of client and "
        "servers for a round, with plain clients, instrumented ones, a barrier at the read and "
        "automatic barriers, in turns. Starts the stores' servers itself.",
        epilog="exit status: 1 if --check is given and a ratio is over its bound; 2 if a server or "
        "client is missing; else 0",
    )
    add = parser.add_argument
    add("--blocks", type=int, default=BLOCKS, help=f"in which each way has a turn ({BLOCKS})")
    add("--turn", type=float, default=TURN_S, help=f"seconds of a turn ({TURN_S:g})")
    add("--stores", nargs="+", choices=STORES, default=list(STORES), help="which (all)")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    add("--as-is", action="store_true", help=AS_IS_HELP)
    add("--check", action="store_true", help="fail where a bound is missed")
    given = parser.parse_args(arguments)
    if given.blocks < 1 or given.turn <= 0:
        parser.error("arguments --blocks, --turn: at least 1, and above 0")
    start = Start.now()
    try:
        with nullcontext(AS_IS) if given.as_is else steady() as processors:
            measured = _measure(given, processors)
    except AntipodeError as error:
        print(f"throughput: {str(error).splitlines()[0]}", file=sys.stderr)
        return MISSING
    except KeyboardInterrupt:
        print("throughput: interrupted: servers are stopped, nothing was written", file=sys.stderr)
        return INTERRUPTED
    _show(measured)
    if given.json is not None:
        _write(given.json, measured, start, given, processors)
    missed = [each for each in measured if each.bound is not None and each.ratio > each.bound]
    for each in missed:
        print(f"over {each.bound:g}: {each.store}, {each.way}: {each.ratio:.2f}")
    return FAILED if missed and given.check else 0


def _measure(given: argparse.Namespace, processors: Processors) -> list[Measured]:
    from rich.console import Console
    from rich.progress import Progress

    turns = len(WAYS) * len(given.stores) * (given.blocks + 1)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("turns", total=turns)
        how = {"blocks": given.blocks, "turn_s": given.turn, "processors": processors}
        return [
            each
            for store in given.stores
            for each in measure(store, **how, advance=lambda: progress.advance(task))
        ]


def _show(measured: Sequence[Measured]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="rounds of a write and a read at saturation", box=box.SIMPLE_HEAD)
    for heading in ("store", "way"):
        table.add_column(heading)
    for heading in ("rounds/s", "plain", "client µs", "plain", "servers µs", "plain", "ratio"):
        table.add_column(heading, justify="right")
    for each in measured:
        servers = each.servers_us or ("", "")
        table.add_row(
            each.store,
            each.way,
            *(f"{value:.0f}" for value in reversed(each.per_s)),
            *(f"{value.median:.0f}" for value in (each.ours_us, each.plain_us)),
            *(f"{value:.0f}" if value else "" for value in reversed(servers)),
            f"{each.ratio:.3f}",
        )
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(table)
    for each in measured:
        named = ", ".join(f"{name} {100 * share:.0f} %" for name, share in each.shares.items())
        console.print(f"{each.store}, {each.way}: {named}", soft_wrap=True, highlight=False)


def _write(
    path: Path,
    measured: Sequence[Measured],
    start: Start,
    given: argparse.Namespace,
    processors: Processors,
) -> None:
    options = ["--blocks", str(given.blocks), "--turn", f"{given.turn:g}"]
    options += [] if given.stores == list(STORES) else ["--stores", *given.stores]
    report = {
        "benchmark": "throughput",
        **start.conditions(
            "python -m benchmarks.costs.throughput",
            options,
            short=given.blocks < BLOCKS or given.turn < TURN_S,
            versions=versions(PACKAGES, given.stores),
            processors=processors,
        ),
        "threads": THREADS,
    }
    write(path, report, [asdict(each) for each in measured])


if __name__ == "__main__":
    sys.exit(main())
