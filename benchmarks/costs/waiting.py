"""``python -m benchmarks.costs waiting``: what waiting costs.

Polls and lateness of each pace that was compared, simulated; and many that wait at once, measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks._markdown import table

from ._many import Many, cost_of
from ._paces import (
    PACES,
    Found,
    bimodal,
    constant,
    log_normal,
    normal,
    one_after_the_other,
    overlapping,
    simulated,
    uniform,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ._paces import Lag

#: Waits of one row, and those at its beginning of which nothing is learned yet.
COUNT, UNLEARNED = 600, 30
PER_S, SECONDS = 20, 30
#: How many wait at once.
CROWDS = (10, 1_000, 10_000)
LEARNED_MS = (5, 20, 50, 100, 150, 200, 250, 300)


def lags() -> dict[str, Lag]:
    """Lags of waits that do not overlap."""
    learned: dict[str, Lag] = {}
    for lag_ms in LEARNED_MS:
        learned[f"constant {lag_ms} ms"] = constant(lag_ms)
        learned[f"normal {lag_ms} ms, 90 % within 16 ms"] = normal(lag_ms)
        learned[f"log-normal {lag_ms} ms, 90 % within 16 ms"] = log_normal(lag_ms)
    return learned | {
        "log-normal 20 ms, sigma 1": log_normal(20, 1),
        "log-normal 100 ms, sigma 0.5": log_normal(100, 0.5),
        "log-normal 300 ms, sigma 0.5": log_normal(300, 0.5),
        "5 or 100 ms": bimodal(5, 100),
        "50 ms to 2 s": uniform(50, 2000),
    }


def loads() -> dict[str, Lag]:
    """Lags of 20 barriers a second."""
    return {
        "50 ms": constant(50),
        "500 ms": constant(500),
        "2 s": constant(2000),
        "500 ms, 90 % within 16 ms": normal(500),
        "log-normal 300 ms, sigma 0.5": log_normal(300, 0.5),
        "50 ms or 2 s": bimodal(50, 2000),
        "50 ms to 2 s": uniform(50, 2000),
    }


def steps(from_ms: float, to_ms: float) -> list[tuple[int, int]]:
    """Twenty waits of the one lag, and six of the other."""
    waits = [from_ms] * 20 + [to_ms] * 6
    return [(10_000_000 * nth, round(lag_ms * 1000)) for nth, lag_ms in enumerate(waits, 1)]


def measured() -> dict[str, dict[str, dict[str, Found]]]:
    """What each pace comes to, by table and row."""
    return {
        name: {
            "apart": {
                row: simulated(pace(), one_after_the_other(lag, COUNT), unlearned=UNLEARNED)
                for row, lag in lags().items()
            },
            "load": {
                row: simulated(pace(), overlapping(lag, PER_S, SECONDS))
                for row, lag in loads().items()
            },
            "unlearned": {
                f"{lag_ms} ms": simulated(pace(), [(1, lag_ms * 1000)])
                for lag_ms in (5, 20, 100, 500)
            },
            "steps": {
                "from 500 to 5 ms": simulated(pace(), steps(500, 5), unlearned=20),
                "from 5 to 500 ms": simulated(pace(), steps(5, 500), unlearned=20),
            },
        }
        for name, pace in PACES.items()
    }


def run(path: Path | None) -> None:
    """Print the tables, and write the figures to *path*."""
    found = measured()
    many = [cost_of(waiting) for waiting in CROWDS]
    print(rendered(found))
    print(crowded(many))
    if path is not None:
        figures: dict[str, object] = {
            pace: {
                kind: {row: asdict(each) for row, each in rows.items()}
                for kind, rows in kinds.items()
            }
            for pace, kinds in found.items()
        }
        figures["many"] = [asdict(each) for each in many]
        path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


_TITLES = {
    "apart": "Waits one after the other, once learned: polls a wait; median and 99th percentile "
    "of lateness, ms",
    "load": f"{PER_S} barriers a second: polls a second; median and most lateness, ms",
    "unlearned": "Nothing learned yet: polls; lateness, ms",
    "steps": "The six waits after a step: polls a wait; median and most lateness, ms",
}


def rendered(found: dict[str, dict[str, dict[str, Found]]]) -> str:
    """The tables in Markdown."""
    paces: Sequence[str] = list(found)
    parts = []
    for kind, title in _TITLES.items():
        rows = [
            (row, *(_cell(kind, found[pace][kind][row]) for pace in paces))
            for row in found[paces[0]][kind]
        ]
        parts.append(f"{title}\n\n{table((kind, *paces), rows)}\n")
    return "\n".join(parts)


def crowded(many: Sequence[Many]) -> str:
    """The table of many that wait at one log."""
    title = "Many wait at one log, each for a position of its own; a poll of which one is met"
    head = ("waiting", "Python calls", "poll, us", "join, us", "KiB each", "threads")
    rows = [
        (
            f"{each.waiting:,}",
            str(each.calls),
            f"{each.poll_us:.0f}",
            f"{each.join_us:.0f}",
            f"{each.bytes_each / 1024:.1f}",
            str(each.threads),
        )
        for each in many
    ]
    return f"{title}\n\n{table(head, rows)}\n"


def _cell(kind: str, found: Found) -> str:
    count = found.polls_s if kind == "load" else found.polls
    other_ms = found.late_99_ms if kind == "apart" else found.most_late_ms
    if kind == "unlearned":
        return f"{count:.0f}; {found.late_ms:.1f}"
    return f"{count:.1f}; {found.late_ms:.1f}, {other_ms:.1f}"
