"""The figures, in colours that all eyes tell apart and with marks that print without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from benchmarks._statistics import share_of
from benchmarks.post_notification._options import NOTIFIERS

from ._plan import FIGURE_NOTIFIER, LAG_MS, PROFILES
from ._results import share
from ._sections import IMAGES, stores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from ._results import Results, RunResult

#: Okabe and Ito's colours, with a mark for each.
_STORES = {
    "embedded": ("#000000", "o"),
    "redis": ("#d55e00", "s"),
    "mysql": ("#0072b2", "^"),
    "mariadb": ("#56b4e9", "v"),
    "mongodb": ("#009e73", "D"),
}
_UNPROTECTED, _BARRIER, _VISIBLE = "#d55e00", "#0072b2", "#777777"
_DPI = 130


def draw(folder: Path, results: Results) -> None:
    """Draw what there are results for; white behind, for dark pages as well."""
    for name, figure in (
        ("table1", _table1),
        ("figure6", _figure6),
        ("figure7", _figure7),
        ("strategies", _strategies),
    ):
        runs = results.of(name)
        if runs:
            drawn = figure(runs)
            # No date and no version inside: equal results make equal files.
            drawn.savefig(folder / IMAGES[name], dpi=_DPI, metadata={"Software": None})


def _table1(runs: Sequence[RunResult]) -> Figure:
    named = [notifier for notifier in NOTIFIERS if any(run.notifier == notifier for run in runs)]
    figure = Figure(figsize=(5.2 * len(named) + 1, 4.2), layout="constrained", facecolor="white")
    figure.suptitle("Notifications that overtook their post, without protection", fontsize=12)
    grid: Any = figure.subplots(1, len(named), sharey=True, squeeze=False)
    for axes, notifier in zip(grid[0], named, strict=True):
        _profiles(axes, [run for run in runs if run.notifier == notifier])
        axes.set_title(f"{notifier} notifies", fontsize=10)
    grid[0][0].set_ylabel("% of notifications")
    grid[0][-1].legend(fontsize=8, frameon=False, loc="upper right")
    return figure


def _profiles(axes: Axes, runs: Sequence[RunResult]) -> None:
    named = stores(runs)
    width = 0.8 / len(named)
    for place, store in enumerate(named):
        colour, mark = _STORES[store]
        for number, profile in enumerate(PROFILES):
            found = [r for r in runs if (r.post_storage, r.profile) == (store, profile.name)]
            value = share(each for run in found for each in run.of("none"))
            if value is not None:
                at = number + (place - (len(named) - 1) / 2) * width
                axes.bar(at, 100 * value.value, width * 0.9, color=colour, alpha=0.35)
                spread = [[100 * (value.value - value.low)], [100 * (value.high - value.value)]]
                label = store if number == 0 else None
                axes.errorbar(
                    at,
                    100 * value.value,
                    spread,
                    color=colour,
                    fmt=mark,
                    ms=4,
                    capsize=2,
                    label=label,
                )
    axes.set_xticks(range(len(PROFILES)), [profile.name for profile in PROFILES])
    axes.set_ylim(-3, 104)
    _plain(axes)


def _figure6(runs: Sequence[RunResult]) -> Figure:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for run in runs:
        colour, mark = _STORES[run.post_storage]
        points = [point for each in run.of("none") for point in each.points]
        at = [point.delay_ms for point in points]
        shares = [share_of(point.violations, point.answered) for point in points]
        axes.plot(
            at,
            [100 * each.value for each in shares],
            color=colour,
            marker=mark,
            ms=5,
            linewidth=1.4,
            label=run.post_storage,
        )
        low, high = ([100 * getattr(each, side) for each in shares] for side in ("low", "high"))
        axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.axvline(
        LAG_MS, color=_VISIBLE, linestyle="--", linewidth=1, label="lag of the posts (median)"
    )
    axes.set_xlabel("artificial delay before the notification is published, ms")
    axes.set_ylabel("% of notifications")
    axes.set_ylim(-3, 103)
    axes.set_title(
        f"Notifications that overtook their post ({FIGURE_NOTIFIER} notifies)", fontsize=11
    )
    axes.legend(fontsize=8, frameon=False)
    _plain(axes)
    return figure


def _figure7(runs: Sequence[RunResult]) -> Figure:
    figure = Figure(figsize=(8.4, 4.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    furthest = 0.0
    for number, run in enumerate(runs):
        for strategy, colour, side in (("none", _UNPROTECTED, -0.21), ("barrier", _BARRIER, 0.21)):
            for each in run.of(strategy, "new"):
                quantiles = each.quantiles.get("attempt_ms")
                if quantiles:
                    _violin(axes, number + side, quantiles, colour)
                    furthest = max(furthest, quantiles[-3])
        for each in run.of("barrier", "new"):
            visible = each.medians.get("lag_ms")
            if visible is not None:
                axes.hlines(
                    visible.value,
                    number - 0.42,
                    number + 0.42,
                    color=_VISIBLE,
                    linestyle="--",
                    linewidth=1,
                )
    for colour, label in ((_UNPROTECTED, "without protection"), (_BARRIER, "barrier()")):
        axes.plot([], [], color=colour, linewidth=6, alpha=0.5, label=label)
    axes.plot([], [], color=_VISIBLE, linestyle="--", linewidth=1, label="post visible (median)")
    axes.set_xticks(range(len(runs)), [run.post_storage for run in runs])
    axes.set_ylabel("ms after the write")
    axes.set_ylim(0, 1.1 * max(furthest, 1.0))
    axes.set_title(f"When followers' reads begin ({FIGURE_NOTIFIER} notifies)", fontsize=11)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    _plain(axes)
    return figure


def _violin(axes: Axes, at: float, quantiles: Sequence[float], colour: str) -> None:
    """Draw a distribution from its quantiles, with the quartiles and the median in it.

    The outermost hundredths are left out: one request that the machine held up would stretch it.
    """
    cut = len(quantiles) // 100
    shown = quantiles[cut : len(quantiles) - cut]
    if shown[-1] - shown[0] > 1e-6:
        parts: Any = axes.violinplot([shown], [at], widths=0.38, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, alpha=0.35, edgecolor=colour)
    low, median, high = (quantiles[len(quantiles) * part // 4] for part in (1, 2, 3))
    axes.vlines(at, low, high, color=colour, linewidth=4)
    axes.plot(at, median, "o", color="white", markeredgecolor=colour, ms=5)


def _strategies(runs: Sequence[RunResult]) -> Figure:
    columns = min(len(runs), 3)
    rows = -(-len(runs) // columns)
    size = (3.4 * columns + 0.6, 3.2 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    figure.suptitle("Violations and consistency window of each strategy", fontsize=12)
    grid: Any = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes in grid.flat[len(runs) :]:
        axes.set_axis_off()
    for axes, run in zip(grid.flat, runs, strict=False):
        named = list(dict.fromkeys(each.strategy for each in run.rounds))[::-1]
        for number, strategy in enumerate(named):
            _strategy(axes, number, run, strategy)
        axes.set_yticks(range(len(named)), named)
        axes.set_ylim(-0.6, len(named) - 0.4)
        axes.set_title(run.post_storage, fontsize=10)
        axes.set_xlabel("window, ms (median)")
        axes.xaxis.set_tick_params(labelbottom=True)
        _plain(axes)
    left: Any = grid[0][0]
    left.set_xlim(0, left.get_xlim()[1] * 1.35)  # room for what is written beside
    return figure


def _strategy(axes: Axes, number: int, run: RunResult, strategy: str) -> None:
    rounds = run.of(strategy)
    window = rounds[0].medians.get("window_ms")
    wrong = share(rounds)
    if window is None or wrong is None:
        return
    colour = _BARRIER if wrong.value == 0 else _UNPROTECTED
    axes.barh(
        number, window.value, 0.6, color=colour, alpha=0.35, hatch="" if wrong.value == 0 else "//"
    )
    spread = [[window.value - window.low], [window.high - window.value]]
    axes.errorbar(window.value, number, xerr=spread, color=colour, fmt="o", ms=4, capsize=2)
    said = "no violation" if wrong.value == 0 else f"{100 * wrong.value:.0f} % wrong"
    axes.annotate(
        said, (window.high, number), (5, 0), textcoords="offset points", va="center", fontsize=7
    )


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
