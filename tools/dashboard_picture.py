"""Draw the dashboard from a real Prometheus: ``python -m tools.dashboard_picture FILE``.

The service of the dashboard's test runs for a minute, and each panel is drawn from the answers to
its queries: what Grafana would show, without Grafana.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.end_to_end._prometheus import Prometheus, panels, prometheus, replaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Where tools/fetch_debian.sh has put it.
STORES = Path(__file__).resolve().parents[1] / ".stores" / "bin"
RUN_S = 60
SHOWN_S = 45
#: Inches of a column and of a row of Grafana's grid of 24 columns.
COLUMN, ROW = 0.62, 0.36
UNITS = {"s": "s", "ops": "/s", "bytes": "bytes", "none": "", "percentunit": ""}
Series = list[tuple[str, list[float], list[float]]]


def series_of(server: Prometheus, panel: dict[str, Any], end_s: float) -> Series:
    """The legend, times and values of each series of a panel."""
    found: Series = []
    for target in panel.get("targets", ()):
        answer = server.ask(
            "query_range",
            query=replaced(target["expr"]),
            start=f"{end_s - SHOWN_S:.3f}",
            end=f"{end_s:.3f}",
            step="0.5",
        )
        for each in answer["result"]:
            legend = re.sub(
                r"{{(\w+)}}",
                lambda match, labels=each["metric"]: labels.get(match[1], ""),  # type: ignore[misc]
                target["legendFormat"],
            )
            times = [at - end_s for at, _ in each["values"]]
            found.append((legend, times, [float(value) for _, value in each["values"]]))
    return found


def draw(axes: Axes, panel: dict[str, Any], series: Series) -> None:
    """One panel: lines, or the last number."""
    defaults = panel["fieldConfig"]["defaults"]
    unit = UNITS[defaults["unit"]]
    axes.set_title(panel["title"], fontsize=9, loc="left", fontweight="bold")
    if panel["type"] == "stat":
        value = series[0][2][-1]
        text = f"{value:.1%}" if defaults["unit"] == "percentunit" else f"{value:.2f} {unit}"
        axes.text(0.5, 0.5, text, fontsize=22, ha="center", va="center", color="#b45309")
        axes.set_axis_off()
        return
    for legend, times, values in series:
        axes.plot(times, values, linewidth=1.2, label=legend)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(unit, fontsize=7)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.25)
    axes.legend(
        fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False
    )


def picture(server: Prometheus) -> Figure:
    """Every panel in its place."""
    end_s = time.time()
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels())
    width, height = 24 * COLUMN, rows * ROW
    figure = Figure(figsize=(width, height), facecolor="white")
    for panel in panels():
        place = panel["gridPos"]
        left, top = place["x"] * COLUMN / width, 1 - place["y"] * ROW / height
        if panel["type"] == "row":
            figure.text(0.01, top - 0.012, panel["title"], fontsize=12, fontweight="bold")
            continue
        wide, high = place["w"] * COLUMN / width, place["h"] * ROW / height
        area = (left + 0.045, top - high * 0.68, wide - 0.065, high * 0.58)
        draw(figure.add_axes(area), panel, series_of(server, panel, end_s))
    return figure


def main() -> None:
    """Run, wait, draw."""
    mpl.rcParams["font.family"] = "DejaVu Sans"
    path = Path(sys.argv[1])
    os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(STORES)))
    with prometheus() as server:
        time.sleep(RUN_S)
        picture(server).savefig(path, dpi=90)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
