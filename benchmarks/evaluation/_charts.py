"""The figures, in colours that all eyes tell apart and with marks that print without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from benchmarks.post_notification._options import NOTIFIERS, title_of

from ._plan import FIGURE_NOTIFIER, LAG_MS, PROFILES
from ._results import share
from ._sections import IMAGES, counted, stores

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
    "postgresql": ("#999999", "<"),
    "mongodb": ("#009e73", "D"),
    "dynamodb": ("#e69f00", "P"),
    "seaweedfs": ("#cc79a7", "X"),
}
#: How many notifiers are beside each other.
_ABREAST = 3
_UNPROTECTED, _BARRIER, _VISIBLE = "#d55e00", "#0072b2", "#777777"
_DPI = 130


def draw(folder: Path, results: Results) -> None:
    """Draw what there are results for; white behind, for dark pages as well."""
    for name, figure in (
        ("table1", _table1),
        ("figure6", _figure6),
        ("figure7", _figure7),
        ("strategies", _strategies),
        ("sweep", _sweep),
    ):
        runs = results.of(name)
        if runs:
            drawn = figure(runs)
            # No date and no version inside: equal results make equal files.
            drawn.savefig(folder / IMAGES[name], dpi=_DPI, metadata={"Software": None})


def _table1(runs: Sequence[RunResult]) -> Figure:
    named = [notifier for notifier in NOTIFIERS if any(run.notifier == notifier for run in runs)]
    rows, columns = -(-len(named) // _ABREAST), min(len(named), _ABREAST)
    size = (5.2 * columns + 1, 4.2 * rows)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    figure.suptitle("Notifications that overtook their post, without protection", fontsize=12)
    grid: Any = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(named) :]:
        axes.set_axis_off()
    for axes, notifier in zip(grid.flat, named, strict=False):
        _profiles(axes, [run for run in runs if run.notifier == notifier])
        axes.set_title(f"{title_of(notifier)} notifies", fontsize=10)
    for row in grid:
        row[0].set_ylabel("% of notifications")
    # Not every notifier has every store.
    shown: dict[str, Any] = {}
    for axes in grid.flat:
        handles, names = axes.get_legend_handles_labels()
        shown = dict(zip(names, handles, strict=True)) | shown
    free = grid.flat[len(named) :]
    where, place = (free[0], "upper left") if len(free) else (grid[0][-1], "upper right")
    where.legend(shown.values(), shown.keys(), fontsize=8, frameon=False, loc=place)
    return figure


def _profiles(axes: Axes, runs: Sequence[RunResult]) -> None:
    named = stores(runs)
    width = 0.8 / len(named)
    for place, store in enumerate(named):
        colour, mark = _STORES[store]
        for number, profile in enumerate(PROFILES):
            of_store = [run for run in runs if run.post_storage == store]
            value = share(counted(of_store, profile, "none"))
            if value is not None:
                at = number + (place - (len(named) - 1) / 2) * width
                axes.bar(at, 100 * value, width * 0.9, color=colour, alpha=0.35)
                label = title_of(store) if number == 0 else None
                axes.plot(at, 100 * value, mark, color=colour, ms=4, label=label)
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
        axes.plot(
            at,
            [100 * point.violations / point.answered for point in points],
            color=colour,
            marker=mark,
            ms=5,
            linewidth=1.4,
            label=title_of(run.post_storage),
        )
    _barriers_line(axes, runs)
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


def _barriers_line(axes: Axes, runs: Sequence[RunResult]) -> None:
    """What is wrong with the barrier, over all stores: a line at zero."""
    points = [point for run in runs for each in run.of("barrier") for point in each.points]
    at = sorted({point.delay_ms for point in points})
    if at:
        wrong = [sum(p.violations for p in points if p.delay_ms == delay) for delay in at]
        of = [sum(p.answered for p in points if p.delay_ms == delay) for delay in at]
        line = [100 * each / all_of for each, all_of in zip(wrong, of, strict=True)]
        axes.plot(at, line, color=_BARRIER, linewidth=3, label="with barrier(), all stores")


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
                    visible,
                    number - 0.42,
                    number + 0.42,
                    color=_VISIBLE,
                    linestyle="--",
                    linewidth=1,
                )
    for colour, label in ((_UNPROTECTED, "without protection"), (_BARRIER, "barrier()")):
        axes.plot([], [], color=colour, linewidth=6, alpha=0.5, label=label)
    axes.plot([], [], color=_VISIBLE, linestyle="--", linewidth=1, label="post visible (median)")
    axes.set_xticks(range(len(runs)), [title_of(run.post_storage) for run in runs])
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


#: What is drawn of each strategy: violations beside what getting rid of them costs.
_COSTS = (
    ("window_ms", "window, ms"),
    ("writer_ms", "writer waits, ms"),
    ("reader_ms", "reader waits, ms"),
)


def _strategies(runs: Sequence[RunResult]) -> Figure:
    size = (
        13,
        sum(0.23 * len({each.strategy for each in run.rounds}) + 0.75 for run in runs) + 0.5,
    )
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    figure.suptitle("Each strategy: violations, and what it costs (medians)", fontsize=12)
    heights = [len({each.strategy for each in run.rounds}) for run in runs]
    grid: Any = figure.subplots(
        len(runs), 1 + len(_COSTS), sharex="col", squeeze=False, height_ratios=heights
    )
    for row, run in zip(grid, runs, strict=True):
        named = list(dict.fromkeys(each.strategy for each in run.rounds))[::-1]
        for number, strategy in enumerate(named):
            _strategy(row, number, run, strategy)
        for axes in row:
            axes.set_yticks(range(len(named)), named if axes is row[0] else [])
            axes.set_ylim(-0.6, len(named) - 0.4)
            axes.xaxis.set_tick_params(labelbottom=True)
            _plain(axes)
        row[0].set_ylabel(title_of(run.post_storage), fontsize=10)
        row[0].set_xlim(0, 118)
    for axes, title in zip(grid[0], ("% of reads wrong", *(t for _, t in _COSTS)), strict=True):
        axes.set_title(title, fontsize=10)
    return figure


def _strategy(row: Sequence[Axes], number: int, run: RunResult, strategy: str) -> None:
    """One line of the picture: right strategies in one colour, wrong ones hatched in another."""
    rounds = run.of(strategy)
    wrong = share(rounds)
    if wrong is None:
        return
    colour, hatch = (_UNPROTECTED, "//") if wrong else (_BARRIER, "")
    row[0].barh(number, 100 * wrong, 0.6, color=colour, alpha=0.35, hatch=hatch)
    said = f"{100 * wrong:.0f} %" if wrong else "0"
    row[0].annotate(
        said, (100 * wrong, number), (4, 0), textcoords="offset points", va="center", fontsize=7
    )
    for axes, (name, _) in zip(row[1:], _COSTS, strict=True):
        value = rounds[0].medians.get(name)
        if value is None:
            continue
        axes.barh(number, value, 0.6, color=colour, alpha=0.35, hatch=hatch)
        found = rounds[0].interval(name)
        if found is not None:
            axes.plot([found.low, found.high], [number, number], color=colour, linewidth=2)


#: Of the strategies of the sweep, a colour, a mark and a line each.
_SWEPT = {
    "none": ("#777777", "x", ":"),
    "instrumented": (_BARRIER, "o", "-"),
    "primary": ("#d55e00", "^", "--"),
    "sticky": ("#e69f00", "v", "--"),
    "session": ("#009e73", "D", "--"),
}


def _sweep(runs: Sequence[RunResult]) -> Figure:
    figure = Figure(figsize=(5.6 * len(runs), 4.2), layout="constrained", facecolor="white")
    figure.suptitle("Until readers have the post, as its lag grows (medians)", fontsize=12)
    grid: Any = figure.subplots(1, len(runs), sharey=True, squeeze=False)
    for axes, run in zip(grid[0], runs, strict=True):
        for strategy, (colour, mark, line) in _SWEPT.items():
            found = sorted(run.of(strategy), key=lambda each: each.chosen_lag_ms)
            points = [(e.chosen_lag_ms, e.medians["window_ms"]) for e in found if e.medians]
            label = "none (wrong reads: until visible)" if strategy == "none" else strategy
            if points:
                axes.plot(
                    *zip(*points, strict=True), line, color=colour, marker=mark, ms=5, label=label
                )
        axes.set_title(run.post_storage, fontsize=10)
        axes.set_xlabel("lag of the posts, ms")
        _plain(axes)
    grid[0][0].set_ylabel("window, ms")
    # Not every store has every strategy.
    shown = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
    grid[0][0].legend(handles=list(shown.values()), fontsize=8, frameon=False)
    return figure


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
