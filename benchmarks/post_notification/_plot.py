"""The figure: how many reads were wrong, and what it cost to get them right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from benchmarks._statistics import Summary

from ._options import title_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from matplotlib.axes import Axes

    from ._observations import Observation
    from ._options import Options
    from ._result import RoundSummary
    from ._run import Round

_COLOURS = {
    "none": "#c44e52",
    "barrier": "#2a7f62",
    "instrumented": "#17becf",
    "at-read": "#8fb339",
    "auto": "#1f3b2f",
    "routed": "#5b8c85",
    "artefact": "#bcbd22",
    "sleep": "#dd8452",
    "retry": "#937860",
    "primary": "#4c72b0",
    "synchronous": "#8172b3",
    "sticky": "#64b5cd",
    "session": "#da8bc3",
    "unguarded": "#a05195",
}
#: With more strategies than this the bars have no room for figures.
_LABELLED = 3
_KIND_COLOURS = {"new": "#2a7f62", "update": "#4c72b0", "delete": "#8172b3"}
_LABELS = {
    "new": "new post\n(not found)",
    "update": "update\n(stale read)",
    "delete": "delete\n(still there)",
}


def draw(path: Path, options: Options, rounds: list[Round], summaries: list[RoundSummary]) -> None:
    """Draw the run into a PNG file at *path*."""
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    figure.suptitle(
        f"Post-notification: {title_of(options.post_storage)} replicates posts "
        f"{_lags(options)} ms late, {title_of(options.notifier)} carries notifications; "
        f"{options.requests} requests of each kind",
        fontsize=12,
    )
    left, middle, right = figure.subplots(1, 3)
    _violations(left, options, summaries)
    _windows(middle, rounds)
    _overshoots(right, rounds, summaries)
    figure.savefig(path, dpi=130)


def _violations(axes: Axes, options: Options, summaries: list[RoundSummary]) -> None:
    width, lags = 0.76 / len(options.strategies), sorted(options.lags_ms)
    for place, strategy in enumerate(options.strategies):
        chosen = [each for each in summaries if each.strategy == strategy]
        cases = sorted(chosen, key=lambda it: (options.kinds.index(it.kind), it.chosen_lag_ms))
        at = [
            number + (place - (len(options.strategies) - 1) / 2) * width
            for number in range(len(cases))
        ]
        shares = [100 * each.violations / each.requests for each in cases]
        bars = axes.bar(at, shares, width * 0.92, color=_COLOURS[strategy], label=strategy)
        if len(options.strategies) <= _LABELLED:
            labels = [_share(each) for each in cases]
            axes.bar_label(bars, labels, fontsize=8, padding=2)
    ticks = [_LABELS[kind] + _beside(options, lag) for kind in options.kinds for lag in lags]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_ylim(0, 124)
    axes.set_yticks(range(0, 101, 25))
    axes.set_ylabel("% of notifications")
    axes.set_title("Notifications that overtook their post", fontsize=10)
    axes.legend(fontsize=8, loc="upper center", ncols=4, frameon=False)
    _plain(axes)


def _lags(options: Options) -> str:
    return ", ".join(f"{lag:g}" for lag in options.lags_ms)


def _beside(options: Options, lag_ms: float) -> str:
    """Names the lag where there are several."""
    return f"\n{lag_ms:g} ms" if len(options.lags_ms) > 1 else ""


def _share(summary: RoundSummary) -> str:
    if not summary.violations:
        return f"0 of\n{summary.requests}"
    return f"{100 * summary.violations / summary.requests:.1f} %"


def _windows(axes: Axes, rounds: list[Round]) -> None:
    drawn = []
    for strategy in dict.fromkeys(done.strategy for done in rounds):
        chosen = [o for done in rounds if done.strategy == strategy for o in done.observations]
        drawn.append([_after(each, each.done_ns) for each in chosen if not each.warmup])
        _steps(axes, drawn[-1], _COLOURS[strategy], strategy)
    every = [o for done in rounds for o in done.observations if not o.warmup]
    drawn.append([_after(each, each.seen_ns) for each in every])
    _steps(axes, drawn[-1], "#777777", "post visible", style="--")
    axes.set_xlabel("ms after the write began")
    axes.set_ylabel("% of answers, of posts visible")
    axes.set_title("When followers have an answer", fontsize=10)
    furthest = [Summary.of(v for v in values if v is not None) for values in drawn]
    axes.set_xlim(0, 1.15 * max((each.p99 for each in furthest if each), default=1.0))
    axes.legend(fontsize=8, loc="center", bbox_to_anchor=(0.45, 0.5), frameon=False)
    _plain(axes)


def _after(observed: Observation, moment_ns: int | None) -> float | None:
    """Milliseconds from the beginning of the write."""
    if observed.begun_ns is None or moment_ns is None:
        return None
    return (moment_ns - observed.begun_ns) / 1e6


def _overshoots(axes: Axes, rounds: list[Round], summaries: list[RoundSummary]) -> None:
    axes.set_title("Return of the barrier after true visibility", fontsize=10)
    spreads = {
        s.kind: s.overshoot_ms for s in summaries if s.strategy == "barrier" and s.overshoot_ms
    }
    if not spreads:
        axes.text(0.5, 0.5, "no barrier had to wait", ha="center", transform=axes.transAxes)
        return
    for done in rounds:
        spread = spreads.get(done.kind)
        if done.strategy == "barrier" and spread is not None:
            label = f"{done.kind}: median {spread.median:.1f} ms, 99 % {spread.p99:.1f} ms"
            values = [o.overshoot_ms for o in done.observations if not o.warmup]
            _steps(axes, values, _KIND_COLOURS[done.kind], label)
    for share in (50, 99):
        axes.axhline(share, color="#cccccc", linewidth=0.7, zorder=0)
    axes.set_xlabel("overshoot, ms")
    axes.set_ylabel("% of barriers that waited")
    axes.set_xlim(0, max(5.0, *(1.3 * spread.p99 for spread in spreads.values())))
    axes.legend(fontsize=8, loc="lower right", frameon=False)
    _plain(axes)


def _steps(
    axes: Axes, values: Iterable[float | None], colour: str, label: str, *, style: str = "-"
) -> None:
    """Draw how many of *values* are how small."""
    ordered = sorted(value for value in values if value is not None)
    shares = [100 * (place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(ordered, shares, where="post", color=colour, label=label, linestyle=style)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
