"""What is printed at the end, and the progress bar before it."""

from __future__ import annotations

import statistics
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
from ._options import OURS, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from rich.console import Console
    from typing_extensions import Self

    from benchmarks._statistics import Summary

    from ._options import Kind, Options, Strategy
    from ._result import RoundSummary

#: Columns where there is no terminal to ask: figures of any size fit.
WIDTH = 100
_SHOWN = ("requests", "wrong", "came early", "reader ms")
_PROTECTION = ("lost", "waited", "window ms", "50/99 %", "overshoot ms")
_COST = ("writer ms", "reader ms", "bytes", "lines")
_LOAD = ("primary", "replica")
CALLS: dict[Strategy, str] = {
    "barrier": "a barrier",
    "instrumented": "a barrier and the store's own client",
    "at-read": "a barrier at the read",
    "auto": "automatic barriers",
    "routed": "a router of reads",
}
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
        total = rounds * (options.requests + options.warmup * options.blocks)
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


def show(console: Console, options: Options, summaries: list[RoundSummary], busy: str) -> None:
    """Print what the run shows, and with details everything that was measured.

    Args:
        console: where.
        options: of the run.
        summaries: of its rounds.
        busy: what has to be said first, if the machine was not quiet.
    """
    if busy:
        console.print(busy, style="bold red", highlight=False, soft_wrap=True)
    for line in sentences(options, summaries):
        console.print(line, highlight=False, soft_wrap=True)
    ordered = sorted(summaries, key=lambda it: (options.kinds.index(it.kind), it.chosen_lag_ms))
    console.print(_table(options, ordered, _SHOWN, _shown))
    if options.details:
        console.print(_table(options, ordered, _PROTECTION, _protection))
        console.print(_table(options, ordered, _COST, _cost))
        console.print(_table(options, ordered, _LOAD, _load))
        for line in notes(options, summaries):
            console.print(line, highlight=False, style="dim", soft_wrap=True)


def sentences(options: Options, summaries: list[RoundSummary]) -> list[str]:
    """What the run shows, for somebody who has never heard of it."""
    named = ", ".join(f"{each:g}" for each in options.lags_ms)
    lag = f"{named} ms later"
    if options.lag_spread:
        lag = f"about {named} ms later, now more and now less"
    lines = [
        (
            "Posts are written in one region and read in another; followers there are notified of "
            f"them. The other region has a post {lag} ({title_of(options.post_storage)}), "
            "its notification "
            f"{options.notifier_lag_ms:g} ms later ({title_of(options.notifier)})."
        ),
    ]
    bare = [each for each in summaries if each.strategy == "none"]
    if bare:
        wrong, all_of = sum(each.violations for each in bare), sum(each.requests for each in bare)
        lines.append(
            f"Without a barrier {wrong} of {all_of} notifications were opened before the post "
            "could be read as they told of it."
        )
    for strategy in OURS:
        found = [each for each in summaries if each.strategy == strategy]
        if not found:
            continue
        wrong, all_of = sum(each.violations for each in found), sum(each.requests for each in found)
        waited = sum(each.waited for each in found)
        line = f"With {CALLS[strategy]}, {wrong} of {all_of}; {waited} that came early waited"
        waits = [each.wait_ms.median for each in found if each.wait_ms]
        if waits:
            line += f", half of them less than {statistics.median(waits):.0f} ms"
        lines.append(f"{line}.")
    return lines


def _table(
    options: Options,
    ordered: list[RoundSummary],
    headings: Sequence[str],
    row: Callable[[RoundSummary], tuple[str, ...]],
) -> Table:
    """A line for each round, narrow enough for a terminal of 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("request", no_wrap=True)
    table.add_column("strategy", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for each in ordered:
        last = each.strategy == options.strategies[-1]
        case = each.kind
        if len(options.lags_ms) > 1:
            case += f" {each.chosen_lag_ms:g} ms"  # type: ignore[assignment]
        table.add_row(case, each.strategy, *row(each), end_section=last)
    return table


def _shown(each: RoundSummary) -> tuple[str, ...]:
    wrong = str(each.violations)
    if each.strategy in OURS:
        wrong = f"[bold {'red' if each.violations else 'green'}]{wrong}[/]"
    reader = each.reader_ms
    return (
        str(each.requests),
        wrong,
        str(each.exposed),
        "" if reader is None else f"{reader.median:.1f}",
    )


def _protection(each: RoundSummary) -> tuple[str, ...]:
    return (
        str(each.lost),
        str(each.waited),
        _median(each, "window_ms"),
        _spread(each.window_ms),
        _spread(each.overshoot_ms),
    )


def _median(each: RoundSummary, name: str) -> str:
    found = each.medians.get(name)
    return "" if found is None else f"{found.low:.1f} to {found.high:.1f}"


def _cost(each: RoundSummary) -> tuple[str, ...]:
    return (
        _spread(each.writer_ms),
        _spread(each.reader_ms),
        "/".join(f"{each.bytes.get(name, 0):.0f}" for name in _SIZES),
        str(each.lines),
    )


def _load(each: RoundSummary) -> tuple[str, ...]:
    """What both servers had to do for a request."""
    reads, commands = (each.primary.get(name) for name in ("reads", "commands"))
    return (
        "/".join(f"{count:.1f}" for count in (reads, commands) if count is not None),
        "/".join(f"{load:.1f}" for load in each.replica.values() if load is not None),
    )


def _spread(summary: Summary | None) -> str:
    return "" if summary is None else f"{summary.median:.1f}/{summary.p99:.1f}"


def notes(options: Options, summaries: list[RoundSummary]) -> list[str]:
    """What the table does not say: warm-up, the measurement's own exactness, the load."""
    lines = [
        (
            "wrong: without protection the chosen lags dictate how many; came early: a read "
            "at that moment would have been wrong; reader: from the notification to the answer, "
            "median"
        ),
        (
            "waited: of those that came early, answered right once the write was visible; "
            "window ms: 95 % interval of "
            f"{options.blocks} blocks' medians "
            "(none with fewer than 5); window, overshoot, writer and reader: median/99th percentile"
        ),
        (
            "lost: without answer; primary: reads across the link/commands for a request; replica: "
            "commands/ms of processor time for a request; bytes: calls/notification/stored; "
            "lines: of code"
        ),
    ]
    unwatched = sum(each.unwatched for each in summaries)
    if unwatched:
        lines.append(f"unwatched: of {unwatched} requests nobody knows when the write was visible")
    if options.warmup:
        wrong = sum(each.warmup["violation"] for each in summaries if each.strategy in OURS)
        count = options.warmup * options.blocks * len(summaries)
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
