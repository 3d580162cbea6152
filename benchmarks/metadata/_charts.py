"""The pictures, in colours that all eyes tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from ._assumptions import CALLS_TAIL, STORES_MEDIAN, STORES_TAIL, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_OURS, _PUBLISHED = "#0072b2", "#d55e00"


def requests_picture(case: dict[str, Any]) -> Figure:
    """Calls and unique services by percentile, as the paper's figure 1."""
    figure = Figure(figsize=(9, 3.8), layout="constrained", facecolor="white")
    calls, stores = figure.subplots(1, 2, sharey=True)
    # The paper cuts the tails off at these percentiles.
    _curve(calls, case["calls"]["percentiles"], 95)
    _curve(stores, case["stores"]["percentiles"], 99)
    _mark(calls, CALLS_TAIL[0], 1 - CALLS_TAIL[1], (6, -12))
    _mark(stores, STORES_MEDIAN, 0.5, (6, -12))
    _mark(stores, STORES_TAIL[0], 1 - STORES_TAIL[1], (6, -12))
    calls.set_xlabel("calls of stateful services (to the 95th percentile)")
    stores.set_xlabel("unique stateful services (to the 99th percentile)")
    calls.set_ylabel("share of requests")
    calls.plot([], [], color=_OURS, label="drawn")
    calls.plot([], [], "o", color=_PUBLISHED, label="published")
    calls.legend(fontsize=8, frameon=False, loc="lower right")
    figure.suptitle("Requests, as in figure 1 of the paper", fontsize=11)
    return figure


def _curve(axes: Axes, percentiles: Sequence[int], last: int) -> None:
    axes.step(
        percentiles[: last + 1],
        [share / 100 for share in range(last + 1)],
        color=_OURS,
        where="post",
    )
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    _plain(axes)


def _mark(axes: Axes, value: float, share: float, offset: tuple[int, int]) -> None:
    axes.plot(value, share, "o", color=_PUBLISHED, ms=6)
    axes.annotate(
        f"{value:g}: {100 * share:.0f} %",
        (value, share),
        offset,
        textcoords="offset points",
        fontsize=8,
    )


def sweep_picture(points: Sequence[dict[str, Any]]) -> Figure:
    """The mean and the 99th percentile with a call, a line for each point."""
    ordered = sorted(points, key=lambda case: case["call_bytes"]["mean"])
    figure = Figure(figsize=(8, 0.26 * len(ordered) + 1.2), layout="constrained", facecolor="white")
    mean, p99 = figure.subplots(1, 2, sharey=True)
    for number, case in enumerate(ordered):
        default = not case["changed"]
        for axes, value in ((mean, case["call_bytes"]["mean"]), (p99, case["call_bytes"]["p99"])):
            axes.barh(number, value, 0.65, color="#777777" if default else _OURS, alpha=0.6)
            axes.annotate(
                f"{value:,.0f}",
                (value, number),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
    mean.set_yticks(range(len(ordered)), [label(case["changed"]) for case in ordered])
    for axes, title in ((mean, "mean, bytes"), (p99, "99th percentile, bytes")):
        axes.set_title(title, fontsize=10)
        axes.margins(x=0.15)
        _plain(axes)
    figure.suptitle("The lineage with a call, when one assumption changes", fontsize=11)
    return figure


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
