"""The sections of the page: one function for each table or figure of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks._markdown import listed, table
from benchmarks._statistics import share_of
from benchmarks.post_notification._options import NOTIFIERS, OURS, POST_STORAGES

from ._plan import FIGURE_NOTIFIER, LAG_MS, LAG_SPREAD, LINK_MS, PROFILES
from ._text import NOTHING, milliseconds, more, share_text, violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._results import FootprintResult, Results, RoundResult, RunResult


def stores(runs: Sequence[RunResult]) -> list[str]:
    """The post storages of some runs, in their usual order."""
    there = {run.post_storage for run in runs}
    return [store for store in POST_STORAGES if store in there]


def guarded(results: Results) -> list[RoundResult]:
    """Every round with a barrier, of every run."""
    return [each for run in results.runs for ours in OURS for each in run.of(ours)]


def table1(results: Results) -> Iterator[str]:
    """Violations for each pair, without protection and with the barrier."""
    runs = results.of("table1")
    yield "## Violations: the paper's table 1"
    yield (
        "A violation is a notification whose post cannot be read as it says: not found, an older "
        "version, or still there after a delete. The rows compare how late posts and notifications "
        "are, as the columns and rows of the paper's table do; every pair of stores is made "
        "to behave like each. Shares are of the answered requests, with Wilson's 95 % interval."
    )
    rows = [(f"`{each.name}`", each.says, each.paper) for each in PROFILES]
    yield table(("lags", "what is late", "in the paper"), rows, text_columns=3)
    for notifier in (n for n in NOTIFIERS if any(run.notifier == n for run in runs)):
        chosen = [run for run in runs if run.notifier == notifier]
        yield f"Without protection, {notifier} as the notifier:"
        yield _by_profile(chosen, "none")
    yield f"![Violations by lags, post storage and notifier]({IMAGES['table1']})"
    yield "With `barrier()`, all lags and all kinds of request together:"
    yield _guarded_pairs(runs)


def _by_profile(runs: Sequence[RunResult], strategy: str) -> str:
    named = stores(runs)
    rows = []
    for profile in PROFILES:
        cells = []
        for store in named:
            found = [r for r in runs if (r.post_storage, r.profile) == (store, profile.name)]
            cells.append(violations(each for run in found for each in run.of(strategy)))
        rows.append((f"`{profile.name}`", *cells))
    return table(("lags", *named), rows)


def _guarded_pairs(runs: Sequence[RunResult]) -> str:
    named = [notifier for notifier in NOTIFIERS if any(run.notifier == notifier for run in runs)]
    rows = []
    for store in stores(runs):
        cells = []
        for notifier in named:
            found = [r for r in runs if (r.post_storage, r.notifier) == (store, notifier)]
            rounds = [each for run in found for each in run.of("barrier")]
            early = sum(each.early for each in rounds)
            cells.append(violations(rounds) + (f", {early} early" if early else ""))
        rows.append((store, *cells))
    return table(("post storage", *(f"with {notifier}" for notifier in named)), rows)


def figure6(results: Results) -> Iterator[str]:
    """Violations against an artificial delay."""
    runs = results.of("figure6")
    yield "## More time for the post: the paper's figure 6"
    yield (
        f"Without protection, {FIGURE_NOTIFIER} as the notifier. Each request waits before it "
        f"publishes its notification, while the lag of posts wanders about {LAG_MS} ms: ten times "
        f"a second it becomes another one, log-normal, of which two in three lie between "
        f"{LAG_MS * math.exp(-LAG_SPREAD):.0f} and {LAG_MS * math.exp(LAG_SPREAD):.0f} ms. The "
        "delays are dealt out among the requests of one run, so that what else happened touches "
        "all alike. Whoever waits for a fixed time pays all of it each time, and is still wrong "
        "when the lag is longer."
    )
    yield f"![Violations against the delay, by post storage]({IMAGES['figure6']})"
    named = stores(runs)
    delays = sorted({p.delay_ms for run in runs for r in run.of("none") for p in r.points})
    rows = [(f"{delay:g}", *(_at_delay(runs, store, delay) for store in named)) for delay in delays]
    yield table(("delay, ms", *named), rows, text_columns=0)


def _at_delay(runs: Sequence[RunResult], store: str, delay_ms: float) -> str:
    for run in runs:
        if run.post_storage == store:
            for point in (p for r in run.of("none") for p in r.points if p.delay_ms == delay_ms):
                return share_text(share_of(point.violations, point.answered), point.answered)
    return NOTHING


def figure7(results: Results) -> Iterator[str]:
    """The consistency window."""
    runs = results.of("figure7")
    yield "## The consistency window: the paper's figure 7"
    yield (
        f"From the write until the follower's read, {FIGURE_NOTIFIER} as the notifier, posts "
        f"{LAG_MS} ms late, new posts. Without protection the read comes at once, and is wrong; "
        "with the barrier it comes when the post is visible, and the overshoot is what the barrier "
        "adds to that. Medians in milliseconds, with 95 % intervals from order statistics."
    )
    yield f"![When reads begin, by post storage, without and with the barrier]({IMAGES['figure7']})"
    head = ["post storage", "read, unprotected", "read, barrier", "99th percentile"]
    head += ["post visible", "overshoot", "its 99th percentile"]
    rows = []
    for run in runs:
        for none, barrier in zip(run.of("none", "new"), run.of("barrier", "new"), strict=True):
            rows.append((run.post_storage, *_window(none, barrier)))
    yield table(head, rows)


def _window(none: RoundResult, barrier: RoundResult) -> Iterator[str]:
    yield milliseconds(none.medians.get("attempt_ms"))
    yield milliseconds(barrier.medians.get("attempt_ms"))
    yield _p99(barrier, "attempt_ms")
    yield milliseconds(barrier.medians.get("lag_ms"))
    yield milliseconds(barrier.medians.get("overshoot_ms"))
    yield _p99(barrier, "overshoot_ms")


def _p99(found: RoundResult, name: str) -> str:
    value = found.p99s.get(name)
    return "" if value is None else f"{value:.1f}"


def table3(results: Results) -> Iterator[str]:
    """Stored bytes, and what travels."""
    runs = results.of("table3")
    yield "## Bytes: the paper's table 3"
    yield (
        "Posts of 1,024 random letters in a store of their own. *Stored* is key, value and what "
        "lies beside; *in the store* is by how much the store's own figure grew for a post. A "
        "*first* write of a request depends on nothing yet, as in this application; a *dependent* "
        "one stores a lineage with an entry of the same store. The paper: MySQL +14 kB, Redis "
        "+105 B, MongoDB +46 B, RabbitMQ +87 B."
    )
    head = ["post storage", "stored, without", "first write", "dependent write"]
    head += ["in the store, without", "first write", "dependent write", "what the store counts"]
    rows = [
        (run.post_storage, *_footprint(run.footprints), run.counts)
        for run in runs
        if run.footprints
    ]
    yield table(head, rows)
    yield "What travels for a request, bytes on average: without protection, and how much more."
    head = ["post storage", "notifier", "notification, without", "with the barrier"]
    head += ["all calls, without", "with the barrier"]
    rows = [
        (run.post_storage, run.notifier, *_travels(none, barrier))
        for run in runs
        for none, barrier in zip(run.of("none", "new"), run.of("barrier", "new"), strict=True)
    ]
    yield table(head, rows, text_columns=2)


def _footprint(found: Sequence[FootprintResult]) -> Iterator[str]:
    base, *others = found
    yield f"{base.payload_bytes:.0f}"
    yield from (more(each.payload_bytes, base.payload_bytes) for each in others)
    yield f"{base.store_bytes:.0f}"
    yield from (more(each.store_bytes, base.store_bytes) for each in others)


def _travels(none: RoundResult, barrier: RoundResult) -> Iterator[str]:
    for name in ("notification", "calls"):
        yield f"{none.bytes[name]:.0f}"
        yield more(barrier.bytes[name], none.bytes[name])


def strategies(results: Results) -> Iterator[str]:
    """What else one could do, and what it costs."""
    yield "## What one could do instead"
    yield (
        f"New posts and updates, {FIGURE_NOTIFIER} as the notifier, posts {LAG_MS} ms late; "
        f"notifications, reads of the primary and answers to it take {LINK_MS} ms one way. "
        "The window is from the write until the reader has it; writer is how long the user waits "
        "for the reply, reader how long the follower waits for the read once the notification is "
        "there: medians in milliseconds with 95 % intervals. Primary is commands for each request "
        "by the primary's own count; lines is the code that the strategy adds to the "
        "application. [The guide](../guides/post-notification.md) says what each strategy does."
    )
    yield f"![Violations and consistency window of each strategy]({IMAGES['strategies']})"
    head = ("strategy", "violations", "lost", "window", "writer", "reader", "primary", "lines")
    for run in results.of("strategies"):
        yield f"### {run.post_storage}"
        named = list(dict.fromkeys(each.strategy for each in run.rounds))
        yield table(head, [_strategy(run, strategy) for strategy in named])
        for ours in OURS:
            if ours in named:
                yield _judgement(run, ours, named)


def _strategy(run: RunResult, strategy: str) -> tuple[str, ...]:
    rounds = run.of(strategy)
    first = rounds[0]  # times of new posts; violations and losses of all kinds
    commands = first.primary.get("commands")
    return (
        f"`{strategy}`",
        violations(rounds),
        str(sum(each.lost for each in rounds)),
        milliseconds(first.medians.get("window_ms")),
        milliseconds(first.medians.get("writer_ms")),
        milliseconds(first.medians.get("reader_ms")),
        "" if commands is None else f"{commands:.1f}",
        "" if first.lines is None else str(first.lines),
    )


def _judgement(run: RunResult, strategy: str, named: Sequence[str]) -> str:
    """Whether any without the library and violations beats *strategy* beyond doubt, in what."""
    ours = run.of(strategy)[0].medians
    better = []
    for name in named:
        rounds = run.of(name)
        if name in OURS or any(each.violations for each in rounds):
            continue
        theirs = rounds[0].medians
        in_what = [
            what
            for time, what in (("window_ms", "the window"), ("writer_ms", "the writer's latency"))
            if time in theirs and time in ours and theirs[time].high < ours[time].low
        ]
        if in_what:
            better.append(f"`{name}` in {listed(in_what)}")
    if not better:
        return (
            "No other strategy without violations had a shorter window or a lower writer's "
            f"latency than `{strategy}`, beyond the intervals."
        )
    return f"Without violations and below `{strategy}`, beyond the intervals: {'; '.join(better)}."


#: The figures of the page, beside it.
IMAGES = {
    "table1": "table1.png",
    "figure6": "figure6.png",
    "figure7": "figure7.png",
    "strategies": "strategies.png",
}
