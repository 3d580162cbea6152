"""The table at the end, and the progress bar before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from . import _run
from ._options import OURS

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from typing_extensions import Self

    from benchmarks._statistics import Summary

    from ._options import Kind, Options, Strategy
    from ._result import RoundSummary

#: Columns where there is no terminal to ask: figures of any size fit.
WIDTH = 100
_PROTECTION = ("violations", "lost", "window ms", "overshoot ms")
_COST = ("writer ms", "reader ms", "primary", "bytes", "lines")
_SIZES = ("calls", "notification", "stored")


class Bar(_run.Progress):
    """A progress bar on the standard error, one task for the whole run."""

    def __init__(self, console: Console, options: Options) -> None:
        """Draw on *console*."""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            # A bar that moves too often would compete with what is measured.
            refresh_per_second=4,
        )
        rounds = len(options.strategies) * len(options.kinds)
        total = rounds * (options.requests + options.warmup)
        self._task: TaskID = self._bar.add_task("starting", total=total)

    def say(self, what: str) -> None:
        """Tell what is being done."""
        self._bar.update(self._task, description=what)

    def begin(self, strategy: Strategy, kind: Kind, requests: int) -> None:
        """Tell that a round begins."""
        self.say(f"{strategy}: {requests} {kind}")

    def advance(self) -> None:
        """Count a request."""
        self._bar.advance(self._task)

    def __enter__(self) -> Self:
        """Show it."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        self._bar.stop()


def show(console: Console, options: Options, summaries: list[RoundSummary]) -> None:
    """Print the table, and what must be known to read it."""
    console.print(
        f"post-notification: {options.post_storage} as post storage ({options.lag_ms:g} ms "
        f"behind), {options.notifier} as notifier ({options.notifier_lag_ms:g} ms)",
        style="bold",
        highlight=False,
        soft_wrap=True,
    )
    ordered = sorted(summaries, key=lambda each: options.kinds.index(each.kind))
    for headings, row in (_PROTECTION, _row), (_COST, _cost):
        # Narrow enough for a terminal of 80 columns.
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("request", no_wrap=True)
        table.add_column("strategy", no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for each in ordered:
            last = each.strategy == options.strategies[-1]
            table.add_row(each.kind, each.strategy, *row(each), end_section=last)
        console.print(table)
    for line in notes(options, summaries):
        console.print(line, highlight=False, style="dim", soft_wrap=True)


def _row(each: RoundSummary) -> tuple[str, ...]:
    violations = str(each.violations)
    if each.violations and each.violation_share:
        low, high = (100 * each.violation_share[bound] for bound in ("low", "high"))
        violations += f" ({low:.1f}-{high:.1f} %)"
    if each.strategy in OURS:
        colour = "red" if each.violations else "green"
        violations = f"[bold {colour}]{violations}[/]"
    return (
        violations,
        str(each.lost),
        _spread(each.window_ms),
        _spread(each.overshoot_ms),
    )


def _cost(each: RoundSummary) -> tuple[str, ...]:
    reads, commands = (each.primary.get(name) for name in ("reads", "commands"))
    return (
        _spread(each.writer_ms),
        _spread(each.reader_ms),
        "/".join(f"{count:.1f}" for count in (reads, commands) if count is not None),
        "/".join(f"{each.bytes.get(name, 0):.0f}" for name in _SIZES),
        str(each.lines),
    )


def _spread(summary: Summary | None) -> str:
    return "" if summary is None else f"{summary.median:.1f}/{summary.p99:.1f}"


def notes(options: Options, summaries: list[RoundSummary]) -> list[str]:
    """What the table does not say: warm-up, the measurement's own exactness, the load."""
    lines = [
        (
            f"each line: {options.requests} requests; violations: Wilson's 95 % interval; lost: "
            "without answer; window, overshoot, writer and reader: median/99th percentile; "
            "primary: reads across the link/commands for a request; bytes: calls/notification/"
            "stored; lines: of code"
        )
    ]
    if options.warmup:
        wrong = sum(each.warmup["violation"] for each in summaries if each.strategy in OURS)
        count = options.warmup * len(summaries)
        lines.append(
            f"warm-up: {count} requests are not in the table; {wrong} violations in those with "
            "the barrier"
        )
    exact = [each.granularity_ms for each in summaries if each.granularity_ms]
    if exact:
        median = max(each.median for each in exact)
        p99 = max(each.p99 for each in exact)
        lines.append(
            f"visibility is known to {median:.1f} ms (median) and {p99:.1f} ms (p99) at worst, "
            "and the overshoot is too high by that much at most"
        )
    guarded = [each for each in summaries if each.strategy in OURS and not each.violations]
    if guarded:
        bound = 100 * max(each.not_excluded for each in guarded)
        lines.append(f"0 violations exclude, for each kind, more than {bound:.2g} % (95 %)")
    late = [each.late_ms.p99 for each in summaries if each.late_ms]
    if late:
        lines.append(f"requests were sent {max(late):.1f} ms late (p99) at worst")
    return lines
