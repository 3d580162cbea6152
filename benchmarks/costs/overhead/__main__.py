"""``python -m benchmarks.costs.overhead``."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from antipode import AntipodeError
from benchmarks._machine import versions
from benchmarks._processors import AS_IS, AS_IS_HELP, AS_IS_ROUNDS, ROUNDS, steady
from benchmarks._report import Start, write

from ._measure import CALLS, Measured, measure, rounds_of
from ._registry import BROKERS, CLIENTS, PACKAGES, store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._processors import Processors

FAILED = 1
MISSING = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge if asked to; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs.overhead",
        description="What an instrumented client costs over the plain one, and a dry run over "
        "none, call by call, on loopback and with 0.5 ms of network. Starts the stores' servers "
        "itself.",
        epilog="exit status: 1 if --check is given and a ratio is over its bound; 2 if a server or "
        "client is missing; else 0",
    )
    add = parser.add_argument
    rounds = f"rounds of {CALLS} calls of each kind ({ROUNDS}, with --as-is {AS_IS_ROUNDS})"
    add("--rounds", type=int, help=rounds)
    every = [*CLIENTS, *BROKERS]
    add("--clients", nargs="+", choices=every, default=every, help="which (all)")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    add("--as-is", action="store_true", help=AS_IS_HELP)
    add("--check", action="store_true", help="fail where a bound is missed")
    given = parser.parse_args(arguments)
    usual = AS_IS_ROUNDS if given.as_is else ROUNDS
    given.rounds = usual if given.rounds is None else given.rounds
    given.short = given.rounds < usual
    if given.rounds < 1:
        parser.error("argument --rounds: at least 1")
    start = Start.now()
    try:
        with nullcontext(AS_IS) if given.as_is else steady() as processors:
            measured = _measure(given, processors)
    except AntipodeError as error:
        print(f"overhead: {str(error).splitlines()[0]}", file=sys.stderr)
        return MISSING
    except KeyboardInterrupt:
        print("overhead: interrupted: servers are stopped, nothing was written", file=sys.stderr)
        return INTERRUPTED
    _show(measured)
    if given.json is not None:
        _write(given.json, measured, start, given, processors)
    missed = [each for each in measured if each.ratio > each.bound]
    for each in missed:
        print(f"over {each.bound:g}: {each.client}, {each.link}, {each.call}: {each.ratio:.2f}")
    return FAILED if missed and given.check else 0


def _measure(given: argparse.Namespace, processors: Processors) -> list[Measured]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rounds", total=rounds_of(given.clients, given.rounds))
        advance = lambda: progress.advance(task)  # noqa: E731 - too small for a name
        return list(measure(given.clients, given.rounds, processors, advance))


def _show(measured: list[Measured]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="an instrumented call over a plain one", box=box.SIMPLE_HEAD)
    for heading in ("client", "link", "call"):
        table.add_column(heading)
    for heading in ("plain µs", "instrumented µs", "ratio", "rounds", "bound"):
        table.add_column(heading, justify="right")
    for each in measured:
        ratio = f"{each.ratio:.2f}"
        table.add_row(
            each.client,
            each.link,
            each.call,
            f"{each.plain_us.median:.0f}",
            f"{each.instrumented_us.median:.0f}",
            ratio if each.ratio <= each.bound else f"[bold red]{ratio}[/]",
            f"{each.rounds.least:.2f}-{each.rounds.greatest:.2f}",
            f"{each.bound:g}",
        )
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(table)


def _write(
    path: Path,
    measured: list[Measured],
    start: Start,
    given: argparse.Namespace,
    processors: Processors,
) -> None:
    options = ["--rounds", str(given.rounds)]
    options += [] if given.clients == [*CLIENTS, *BROKERS] else ["--clients", *given.clients]
    report = {
        "benchmark": "overhead",
        **start.conditions(
            "python -m benchmarks.costs.overhead",
            options,
            short=given.short,
            versions=versions(PACKAGES, [store_of(name) for name in given.clients]),
            processors=processors,
        ),
        "rounds": given.rounds,
        "calls": CALLS,
    }
    write(path, report, [asdict(each) for each in measured])


if __name__ == "__main__":
    sys.exit(main())
