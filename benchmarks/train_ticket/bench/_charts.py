"""The figures: violations by think time, and Figure 9 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from . import _figures as figures
from ._plan import COMPARED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from ._measure import Block
    from ._run import Found

THINK, FIGURE_9 = "train-ticket-think.png", "train-ticket-figure9.png"
#: Okabe and Ito's colours, with a mark for each.
_LOOKS = {
    "baseline": ("#d55e00", "x"),
    "answer": ("#e69f00", "^"),
    "look-up": ("#0072b2", "o"),
    "automatic": ("#009e73", "D"),
}
_DPI = 130


def draw(folder: Path, found: Sequence[Found]) -> None:
    """Draw what there are results for."""
    rates = [it for it in found if it.cell.part == "rates"]
    for name, drawn in ((THINK, _think(found)), (FIGURE_9, _figure_9(rates))):
        # No date and no version inside: equal results make equal files.
        drawn.savefig(folder / name, dpi=_DPI, metadata={"Software": None})


def _think(found: Sequence[Found]) -> Figure:
    figure = Figure(figsize=(9.2, 3.8), layout="constrained", facecolor="white")
    grid: Any = figure.subplots(1, 2, sharey=True)
    for axes, regions in zip(grid, (1, 2), strict=True):
        cells = [it for it in found if it.cell.regions == regions]
        shown = [it for it in cells if it.cell.part in ("proof", "think")]
        shown.sort(key=lambda it: it.cell.think_ms)
        for name in COMPARED:
            colour, mark = _LOOKS[name]
            axes.plot(
                [it.cell.think_ms for it in shown],
                [figures.missing(it.blocks, name).percent for it in shown],
                color=colour,
                marker=mark,
                ms=5,
                label=name,
            )
        axes.set_title("one region" if regions == 1 else "two regions", fontsize=10)
        axes.set_xlabel("think time before the look-up, ms")
        _plain(axes)
    grid[0].set_ylabel("% of look-ups without the refund")
    grid[1].legend(fontsize=8, frameon=False)
    return figure


def _figure_9(rates: Sequence[Found]) -> Figure:
    figure = Figure(figsize=(9.2, 3.8), layout="constrained", facecolor="white")
    grid: Any = figure.subplots(1, 2)
    for name in COMPARED if rates else ():
        colour, mark = _LOOKS[name]
        points = []
        for it in rates:
            latency = figures.quantile(figures.pooled(it.blocks, name, _both), 90)
            achieved = [block.throughput for block in figures.of(it.blocks, name)]
            if latency is not None and achieved:
                points.append((sum(achieved) / len(achieved), latency))
        if points:
            grid[0].plot(*zip(*points, strict=True), color=colour, marker=mark, ms=5, label=name)
    grid[0].set_xlabel("cancels/s")
    grid[0].set_ylabel("cancel, and look-up: sum of latencies, p90, ms")
    if rates:
        grid[0].set_yscale("log")
        grid[0].legend(fontsize=8, frameon=False)
    _windows(grid[1], figures.peak(rates))
    for axes in grid:
        _plain(axes)
    return figure


def _both(block: Block) -> list[float]:
    pairs = zip(block.cancel_ms, block.look_up_ms, strict=False)
    return [one + other for one, other in pairs]


def _windows(axes: Axes, at: Found | None) -> None:
    """Draw the distribution of the consistency window of each variant, at the peak."""
    if at is None:
        axes.set_title("no rate was kept up", fontsize=10)
        return
    for place, name in enumerate(COMPARED):
        windows = figures.pooled(at.blocks, name, lambda block: block.window_ms)
        if windows:
            axes.boxplot([windows], positions=[place], widths=0.5, showfliers=False)
    axes.set_xticks(range(len(COMPARED)), COMPARED)
    axes.set_ylabel("from the look-up to the refund's visibility, ms")
    axes.set_title(f"consistency window at {at.cell.rate:g} cancels/s", fontsize=10)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
