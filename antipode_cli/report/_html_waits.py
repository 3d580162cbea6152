"""How long barriers would have waited, as a chart of horizontal bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._findings import percentile
from ._text import duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._model import Report

#: The bounds of the bars in seconds: 1, 2, 5 of every power of ten.
_BOUNDS = tuple(factor * 10.0**power for power in range(-4, 4) for factor in (1, 2, 5))
_ROW, _LEFT, _BARS, _WIDTH = 24, 132, 190, 360


def waits(report: Report) -> str:
    """The chart, with the numbers in words; empty where no read is unguarded."""
    reads = {
        (one.read.process, one.read.n): (one.read.reads, one.waits[-1:])
        for finding in report.findings
        for one in finding.occurrences
    }
    if not reads:
        return ""
    known = sorted(
        (wait, times) for times, found in reads.values() for wait in found if wait is not None
    )
    number = sum(times for _, times in known)
    unknown = sum(times for times, _ in reads.values()) - number
    said = (
        f"Not known for {plural(unknown, 'read')}: no poll was made, its process ended first, or "
        "the write was not visible within the bound."
        if unknown
        else ""
    )
    if not known:
        return f"<p>{said}</p>\n"
    figures = (
        f"From {plural(number, 'unguarded read')}: median "
        f"{duration(percentile(known, 50))}, p99 {duration(percentile(known, 99))}, longest "
        f"{duration(known[-1][0])}."
    )
    return f"<p>{figures} {said}</p>\n{_chart(_bars(known))}"


def _bars(known: Sequence[tuple[float, int]]) -> list[tuple[str, int]]:
    """Label and count of each bar, empty ones between others too."""
    tops = (*_BOUNDS, float("inf"))
    counts = [0] * len(tops)
    for wait, times in known:
        counts[next(i for i, top in enumerate(tops) if wait < top)] += times
    used = [number for number, count in enumerate(counts) if count]
    return [(_label(number), counts[number]) for number in range(used[0], used[-1] + 1)]


def _label(number: int) -> str:
    if number == 0:
        return f"under {duration(_BOUNDS[0])}"
    low = duration(_BOUNDS[number - 1])
    return f"{low} to {duration(_BOUNDS[number])}" if number < len(_BOUNDS) else f"over {low}"


def _chart(bars: list[tuple[str, int]]) -> str:
    most = max(count for _, count in bars)
    height = _ROW * len(bars)
    words = "; ".join(f"{label}: {plural(count, 'read')}" for label, count in bars)
    rows: list[str] = []
    for number, (label, count) in enumerate(bars):
        top, width = number * _ROW, count / most * _BARS
        rows.append(
            f'<text x="{_LEFT - 8}" y="{top + 16}" text-anchor="end">{label}</text>'
            f'<rect x="{_LEFT}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" rx="2"/>'
            f'<text x="{_LEFT + width + 6:.1f}" y="{top + 16}">{count}</text>\n'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{words}">\n'
        f"{''.join(rows)}</svg>\n"
    )
