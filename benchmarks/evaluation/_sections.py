"""The sections of the page: one function for each table or figure of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks._markdown import listed, table
from benchmarks.post_notification._options import NOTIFIERS, OURS, POST_STORAGES, title_of

from ._plan import (
    DELAYED,
    FIGURE_NOTIFIER,
    LAG_MS,
    LAG_SPREAD,
    LINK_MS,
    OF_NO_STORE,
    OF_NO_STORE_OVER,
    PROFILES,
    SWEEP_LINK_MS,
    paired,
)
from ._text import NOTHING, milliseconds, more, share_text, violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._plan import Profile
    from ._results import FootprintResult, Point, Results, RoundResult, RunResult


_BLOCKS = (
    "means of the turns' with Student's 95 % interval over the turns, and without an interval "
    "where there are fewer than five of them"
)
#: What is compared between strategies.
_CLAIMED = (("window_ms", "the window"), ("writer_ms", "the writer's latency"))
#: The barrier that others are compared with in the sweep.
SWEEP_BARRIER = "instrumented"


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
        "to behave like each. Shares are of the answered requests; without protection the lags "
        "that were chosen dictate them, so they have no intervals."
    )
    rows = [(f"`{each.name}`", each.says, each.paper) for each in PROFILES]
    yield table(("lags", "what is late", "in the paper"), rows, text_columns=3)
    for notifier in (n for n in NOTIFIERS if any(run.notifier == n for run in runs)):
        chosen = [run for run in runs if run.notifier == notifier]
        yield f"Without protection, {title_of(notifier)} as the notifier:"
        yield _by_profile(chosen, "none")
    yield f"![Violations by lags, post storage and notifier]({IMAGES['table1']})"
    yield "With `barrier()`, all lags and all kinds of request together:"
    yield _pairs(runs, "barrier")


def counted(
    runs: Sequence[RunResult], profile: Profile, strategy: str
) -> list[RoundResult] | list[Point]:
    """What some runs say of a profile: everything of its own, of those by delay what waited so."""
    own = [each for run in runs if run.profile == profile.name for each in run.of(strategy)]
    delayed = [each for run in runs if run.profile == DELAYED for each in run.of(strategy)]
    points = [point for each in delayed for point in each.points]
    return own or [point for point in points if point.delay_ms in profile.delays_ms]


def _by_profile(runs: Sequence[RunResult], strategy: str) -> str:
    named = stores(runs)
    rows = []
    for profile in PROFILES:
        cells = []
        for store in named:
            of_store = [run for run in runs if run.post_storage == store]
            cells.append(violations(counted(of_store, profile, strategy)))
        rows.append((f"`{profile.name}`", *cells))
    return table(("lags", *map(title_of, named)), rows)


def wandering(results: Results) -> Iterator[str]:
    """Thousands of requests of each pair, without protection and with the barrier."""
    runs = results.of("wandering")
    yield "## Every pair under a lag that wanders"
    yield (
        f"New posts, updates and deletes, as many of each, while the lag of posts wanders about "
        f"{LAG_MS} ms as in figure 6 and notifications come at once. Without protection a tenth as "
        "many requests are made: shares that the chosen lags dictate need no more."
    )
    yield "Without protection:"
    yield _pairs(runs, "none")
    yield "With `barrier()`:"
    yield _pairs(runs, "barrier")


def _pairs(runs: Sequence[RunResult], strategy: str) -> str:
    named = [notifier for notifier in NOTIFIERS if any(run.notifier == notifier for run in runs)]
    rows = []
    for store in stores(runs):
        cells = []
        for notifier in named:
            found = [r for r in runs if (r.post_storage, r.notifier) == (store, notifier)]
            rounds = [each for run in found for each in run.of(strategy)]
            early = sum(each.early for each in rounds)
            missing = NOTHING if paired(store, notifier) else ""
            wrong = violations(rounds) if rounds else missing
            cells.append(wrong + (f", {early} early" if early else ""))
        rows.append((title_of(store), *cells))
    return table(("post storage", *(f"with {title_of(each)}" for each in named)), rows)


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
        "when the lag is longer. With `barrier()` it makes no difference: the line at zero."
    )
    yield f"![Violations against the delay, by post storage]({IMAGES['figure6']})"
    named = stores(runs)
    delays = sorted({p.delay_ms for run in runs for r in run.of("none") for p in r.points})
    rows = [(f"{delay:g}", *(_at_delay(runs, store, delay) for store in named)) for delay in delays]
    guarded = [each for run in runs for each in run.of("barrier")]
    if guarded:
        yield f"With `barrier()`, all delays and stores together: {violations(guarded)} wrong."
    yield table(("delay, ms", *map(title_of, named)), rows, text_columns=0)


def _at_delay(runs: Sequence[RunResult], store: str, delay_ms: float) -> str:
    for run in runs:
        if run.post_storage == store:
            for point in (p for r in run.of("none") for p in r.points if p.delay_ms == delay_ms):
                return share_text(point.violations / point.answered, point.answered)
    return NOTHING


def figure7(results: Results) -> Iterator[str]:
    """The consistency window."""
    runs = results.of("figure7")
    yield "## The consistency window: the paper's figure 7"
    yield (
        f"From the write until the follower's read, {FIGURE_NOTIFIER} as the notifier, posts "
        f"{LAG_MS} ms late, new posts. Without protection the read comes at once, and is wrong; "
        "with the barrier it comes when the post is visible, and the overshoot is what the barrier "
        f"adds to that. Medians in milliseconds, {_BLOCKS}."
    )
    yield f"![When reads begin, by post storage, without and with the barrier]({IMAGES['figure7']})"
    head = ["post storage", "read, unprotected", "read, barrier", "99th percentile"]
    head += ["post visible", "overshoot", "its 99th percentile"]
    rows = []
    for run in runs:
        for none, barrier in zip(run.of("none", "new"), run.of("barrier", "new"), strict=True):
            rows.append((title_of(run.post_storage), *_window(none, barrier)))
    yield table(head, rows)


def _window(none: RoundResult, barrier: RoundResult) -> Iterator[str]:
    yield milliseconds(none, "attempt_ms")
    yield milliseconds(barrier, "attempt_ms")
    yield _p99(barrier, "attempt_ms")
    yield milliseconds(barrier, "lag_ms")
    yield milliseconds(barrier, "overshoot_ms")
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
        (title_of(run.post_storage), *_footprint(run.footprints), run.counts)
        for run in runs
        if run.footprints
    ]
    yield table(head, rows)
    yield "What travels for a request, bytes on average: without protection, and how much more."
    head = ["post storage", "notifier", "notification, without", "with the barrier"]
    head += ["all calls, without", "with the barrier"]
    rows = [
        (title_of(run.post_storage), title_of(run.notifier), *_travels(none, barrier))
        for run in runs
        for none, barrier in zip(run.of("none", "new"), run.of("barrier", "new"), strict=True)
    ]
    yield table(head, rows, text_columns=2)


def _footprint(found: Sequence[FootprintResult]) -> Iterator[str]:
    base, *others = found
    yield f"{base.payload_bytes:.0f}"
    yield from (more(each.payload_bytes, base.payload_bytes) for each in others)
    yield f"{base.store_bytes:.0f}" if base.store_bytes else ""
    yield from (more(each.store_bytes, base.store_bytes) for each in others)


def _travels(none: RoundResult, barrier: RoundResult) -> Iterator[str]:
    for name in ("notification", "calls"):
        yield f"{none.bytes[name]:.0f}"
        yield more(barrier.bytes[name], none.bytes[name])


def strategies(results: Results) -> Iterator[str]:
    """What else one could do, and what it costs."""
    there = stores(results.of("strategies"))
    over = [title_of(store) for store in OF_NO_STORE_OVER if store in there]
    yield "## What one could do instead"
    yield (
        f"New posts and updates, {FIGURE_NOTIFIER} as the notifier, posts late by a lag that "
        f"wanders about {LAG_MS} ms, as in figure 6; "
        f"notifications, reads of the primary and answers to it take {LINK_MS} ms one way. "
        "The window is from the write until the reader has it; writer is how long the user waits "
        "for the reply, reader how long the follower waits for the read once the notification is "
        f"there: medians in milliseconds, {_BLOCKS}. Primary is commands for each request "
        "by the primary's own count, replica the same without the observer's, with its "
        "milliseconds of processor time (the observer's looks included); lines is the code that "
        "the strategy adds to the application. "
        f"{listed([f'`{each}`' for each in OF_NO_STORE])} know nothing of the store and are "
        f"compared over {listed(over)}. "
        "[The guide](../guides/post-notification.md) says what each strategy does."
    )
    yield (
        "![Violations, consistency window, writer's and reader's cost of each strategy]"
        f"({IMAGES['strategies']})"
    )
    head = ["strategy", "violations", "lost", "window", "writer", "reader", "primary", "replica"]
    head.append("lines")
    for run in results.of("strategies"):
        yield f"### {title_of(run.post_storage)}"
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
        *(milliseconds(first, name) for name in ("window_ms", "writer_ms", "reader_ms")),
        "" if commands is None else f"{commands:.1f}",
        _replica(first),
        "" if first.lines is None else str(first.lines),
    )


def _replica(found: RoundResult) -> str:
    commands, spent_ms = (found.replica.get(name) for name in ("commands", "processor_ms"))
    said = [] if commands is None else [f"{commands:.1f}"]
    return ", ".join(said + ([] if spent_ms is None else [f"{spent_ms:.2f} ms"]))


def _judgement(run: RunResult, strategy: str, named: Sequence[str]) -> str:
    """Whether any without the library and violations beats *strategy* beyond doubt, in what."""
    ours = run.of(strategy)[0]
    better, told = [], False
    for name in named:
        rounds = run.of(name)
        if name in OURS or any(each.violations for each in rounds):
            continue
        for time, what in _CLAIMED:
            above = ours.above(rounds[0], time)
            told = told or above is not None
            if above is not None and above.low > 0:
                by = f"{above.low:.1f} to {above.high:.1f} ms"
                better.append(f"`{name}` in {what} (by {by})")
    if better:
        return f"Without violations and below `{strategy}`, turn by turn: {'; '.join(better)}."
    if not told:
        return f"Too few turns to compare `{strategy}` with the other strategies."
    return (
        "No other strategy without violations is shown to be below "
        f"`{strategy}` in {listed([what for _, what in _CLAIMED])}."
    )


def sweep(results: Results) -> Iterator[str]:
    """Where something else is better than waiting, as the lag grows."""
    yield "## The longer the lag"
    yield (
        f"Updates, {FIGURE_NOTIFIER} as the notifier, posts late by a lag that wanders about each "
        f"of these; notifications, and what goes to the primary and back, take {SWEEP_LINK_MS} ms "
        f"one way. The window, from the write until the reader has it: medians in milliseconds, "
        f"{_BLOCKS}. *Wrong* is said where reads were: their window ends when the post is visible."
    )
    yield f"![The consistency window against the lag]({IMAGES['sweep']})"
    for run in results.of("sweep"):
        lags = sorted({each.chosen_lag_ms for each in run.rounds})
        named = list(dict.fromkeys(each.strategy for each in run.rounds))
        yield f"### {run.post_storage}"
        rows = [(f"`{name}`", *(_at_lag(run, name, lag) for lag in lags)) for name in named]
        yield table(("strategy", *(f"{lag:g} ms late" for lag in lags)), rows)
        for name in named:
            if name not in (*OURS, "none"):
                yield _against_the_barrier(run, name, lags)


def _at_lag(run: RunResult, strategy: str, lag_ms: float) -> str:
    (found,) = run.of(strategy, lag_ms=lag_ms)
    wrong = f", {violations([found])} wrong" if found.violations else ""
    return milliseconds(found, "window_ms") + wrong


def _against_the_barrier(run: RunResult, name: str, lags: Sequence[float]) -> str:
    """At which lags a strategy gives its readers the post before the barrier does, and after."""
    sides: dict[str, list[str]] = {"before": [], "after": [], "": []}
    for lag in lags:
        ((theirs,), (ours,)) = (run.of(each, lag_ms=lag) for each in (name, SWEEP_BARRIER))
        above = ours.above(theirs, "window_ms")
        if above is None:
            return f"Too few turns to compare `{name}` with `barrier()`."
        if theirs.violations or above.low <= 0 <= above.high:
            sides[""].append(f"{lag:g}")
        else:
            sides["before" if above.low > 0 else "after"].append(
                f"{lag:g} (by {min(abs(above.low), abs(above.high)):.0f} to "
                f"{max(abs(above.low), abs(above.high)):.0f} ms)"
            )
    said = [
        f"{side} `barrier()` at a lag of {listed(sides[side])}"
        for side in ("before", "after")
        if sides[side]
    ]
    if not said:
        return f"`{name}`: no lag at which it is shown to be better or worse than `barrier()`."
    rest = f"; no difference is shown at {listed(sides[''])}" if sides[""] else ""
    return f"With `{name}` readers have the post {', and '.join(said)}{rest}."


def nothing(results: Results) -> Iterator[str]:
    """What most requests pay: the post is there before its notification."""
    yield "## With nothing to wait for"
    yield (
        f"Posts at once, every notification {LAG_MS} ms late: what most requests pay. Reader is "
        "from the arrival of the notification until the answer, of which: the call of the service "
        "that follows, with the headers of each strategy; `barrier()` itself, called when the post "
        "was visible; and the call that reads, with headers and the store's client. Replica is "
        "commands for each request by its own count without the observer's, with milliseconds of "
        "its processor time: the barrier asks it where nothing that is known tells that the post "
        "is there (Redis: always, for its history may change under a connection), and the Table 2 "
        "of `barrier` asks MySQL a second time, for a position that covers what it has read. "
        f"Medians in milliseconds, {_BLOCKS}."
    )
    head = ("strategy", "writer", "reader", "its call", "`barrier()`", "the read", "replica")
    names = ("writer_ms", "reader_ms", "arrive_ms", "idle_ms", "fetch_ms")
    for run in results.of("nothing"):
        yield f"### {run.post_storage} with nothing to wait for"
        rows = [
            (f"`{each.strategy}`", *(milliseconds(each, name) for name in names), _replica(each))
            for each in run.rounds
        ]
        yield table(head, rows)
        bare = run.of("none")[0]
        said = [
            f"`{each.strategy}` by {above.low:.2f} to {above.high:.2f} ms"
            for each in run.rounds
            if (above := each.above(bare, "reader_ms")) is not None and above.low > 0
        ]
        if said:
            yield f"Above `none` for the reader, turn by turn: {'; '.join(said)}."


#: The figures of the page, beside it.
IMAGES = {
    "table1": "table1.png",
    "figure6": "figure6.png",
    "figure7": "figure7.png",
    "strategies": "strategies.png",
    "sweep": "sweep.png",
}
