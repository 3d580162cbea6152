"""``python -m benchmarks.costs.requests``."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._machine import versions
from benchmarks._processors import AS_IS, AS_IS_HELP, AS_IS_ROUNDS, ROUNDS, steady
from benchmarks._report import Start, write

from ._cases import CASES, PACKAGES
from ._measure import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks._processors import Processors

    from ._measure import Measured

CALLS = 2000
FAILED = 1
MISSING = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge if asked to; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs.requests",
        description="What an empty request costs with Antipode, over OpenTelemetry's "
        "instrumentation alone: two servers on loopback, called by turns.",
        epilog="exit status: 1 if a call failed, or if --check is given and a ratio is over its "
        "bound; 2 if a side did not start; else 0",
    )
    add = parser.add_argument
    rounds = f"each of fresh processes ({ROUNDS}, with --as-is {AS_IS_ROUNDS})"
    add("--rounds", type=int, help=rounds)
    add("--calls", type=int, default=CALLS, help=f"of each side in a round ({CALLS})")
    add("--cases", nargs="+", choices=CASES, default=list(CASES), help="which (all)")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    add("--as-is", action="store_true", help=AS_IS_HELP)
    add("--check", action="store_true", help="fail where a bound is missed")
    given = parser.parse_args(arguments)
    usual = AS_IS_ROUNDS if given.as_is else ROUNDS
    given.rounds = usual if given.rounds is None else given.rounds
    given.short = given.rounds < usual
    if given.rounds < 1 or given.calls < 1:
        parser.error("arguments --rounds, --calls: at least 1")
    start = Start.now()
    try:
        with nullcontext(AS_IS) if given.as_is else steady() as processors:
            measured = _measure(given, processors)
    except RuntimeError as error:
        print(f"requests: {error}", file=sys.stderr)
        return MISSING
    except KeyboardInterrupt:
        print("requests: interrupted: servers are stopped, nothing was written", file=sys.stderr)
        return INTERRUPTED
    _show(measured)
    if given.json is not None:
        _write(given.json, measured, start, given, processors)
    missed = [each for each in measured if each.missed]
    for each in missed:
        print(f"over {each.bound:g}: {each.case}: {each.ratio:.3f}")
    wrong = any(each.failed for each in measured)
    return FAILED if wrong or (missed and given.check) else 0


def _measure(given: argparse.Namespace, processors: Processors) -> list[Measured]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rounds", total=len(given.cases) * given.rounds)
        advance = lambda: progress.advance(task)  # noqa: E731 - too small for a name
        return list(measure(given.cases, given.rounds, given.calls, processors, advance))


def _show(measured: list[Measured]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = "an empty request with Antipode over one with OpenTelemetry alone"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("case")
    for heading in ("OpenTelemetry µs", "Antipode µs", "ratio", "rounds", "failed", "bound"):
        table.add_column(heading, justify="right")
    for each in measured:
        ratio = f"{each.ratio:.3f}"
        table.add_row(
            each.case,
            f"{each.otel_us.median:.0f}",
            f"{each.antipode_us.median:.0f}",
            f"[bold red]{ratio}[/]" if each.missed else ratio,
            f"{each.rounds.least:.3f}-{each.rounds.greatest:.3f}",
            str(each.failed),
            "" if each.bound is None else f"{each.bound:g}",
        )
    console = Console()
    if not console.is_terminal:
        console.width = 110
    console.print(table)


def _write(
    path: Path,
    measured: list[Measured],
    start: Start,
    given: argparse.Namespace,
    processors: Processors,
) -> None:
    options = ["--rounds", str(given.rounds), "--calls", str(given.calls)]
    options += [] if given.cases == list(CASES) else ["--cases", *given.cases]
    report = {
        "benchmark": "requests",
        **start.conditions(
            "python -m benchmarks.costs.requests",
            options,
            short=given.short or given.calls < CALLS,
            versions=versions(PACKAGES, ()),
            processors=processors,
        ),
        "rounds": given.rounds,
        "calls": given.calls,
    }
    write(path, report, [asdict(each) for each in measured])


if __name__ == "__main__":
    sys.exit(main())
