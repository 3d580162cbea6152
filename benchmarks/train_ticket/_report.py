"""What a run found, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from benchmarks._statistics import percentile
from benchmarks.judge import FAILED, SHOWN, Verdict, judge

from ._lines import added
from ._run import as_json
from ._variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ._run import Options, Outcome


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """What the run shows: of what users saw, and of the money."""
    trials = [it for outcome in outcomes for it in outcome.trials()]
    guarded = [it.variant for it in outcomes if it.variant in ("answer", "look-up", "automatic")]
    judged = judge(trials, guarded=guarded, unguarded="baseline", guard="a barrier")
    wrong = [it.variant for it in outcomes if it.money is None or not it.money.adds_up]
    if wrong:
        return Verdict(FAILED, f"FAILED: the money of {', '.join(wrong)} does not add up")
    if judged.status == SHOWN:
        return Verdict(SHOWN, f"{judged.said}; the money adds up")
    return judged


def show(console: Console, options: Options, outcomes: Sequence[Outcome]) -> None:
    """Print the figures of a run."""
    table = Table(title=_title(options), title_justify="left")
    for name in ("variant", "cancels", "no refund", "errors", "cancel p50/p90", "look-up p50/p90"):
        table.add_column(name, justify="left" if name == "variant" else "right")
    table.add_column("window p50/p90", justify="right")
    table.add_column("late p50/p90", justify="right")
    for outcome in outcomes:
        answered = [it for it in outcome.seen if it.answered]
        lacking = sum(not it.refunded for it in answered)
        table.add_row(
            f"{outcome.variant}: {VARIANTS[outcome.variant].said}",
            str(len(outcome.seen)),
            f"{lacking} of {len(answered)}",
            str(sum(bool(it.error) for it in outcome.seen)),
            _quantiles([it.cancel_s * 1000 for it in answered]),
            _quantiles([it.look_up_s * 1000 for it in answered]),
            _quantiles(outcome.windows_ms()),
            _quantiles(outcome.late_ms()),
        )
    console.print(table)
    console.print("times in ms; window: from the look-up to the refund's visibility where it reads")
    console.print("late: of look-ups that waited, from that visibility to their answer")
    lines = (f"{name} {code}+{settings}" for name, (code, settings) in added().items())
    console.print(f"lines that the library adds, code+settings: {', '.join(lines)}")
    for outcome in outcomes:
        if outcome.money is not None:
            console.print(f"{outcome.variant}: {outcome.money.said()}", highlight=False)
        for error in sorted({it.error for it in outcome.seen if it.error})[:3]:
            console.print(f"{outcome.variant}: {error}", highlight=False)


def write(options: Options, outcomes: Sequence[Outcome], conditions: dict[str, Any]) -> None:
    """Write every observation, if the options say where to."""
    if options.json_path is None:
        return
    judged = verdict(outcomes)
    report = {
        **conditions,
        "status": judged.status,
        "said": judged.said,
        "variants": [as_json(it) for it in outcomes],
    }
    options.json_path.parent.mkdir(parents=True, exist_ok=True)
    options.json_path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _title(options: Options) -> str:
    regions = "one region" if options.regions == 1 else f"two regions, {options.lag_ms:g} ms late"
    return (
        f"TrainTicket, {regions}: {options.rate:g} cancels/s, looking {options.think_ms:g} ms later"
    )


def _quantiles(values: Sequence[float]) -> str:
    if not values:
        return "-"
    ordered = sorted(values)
    return f"{percentile(ordered, 50):.0f} / {percentile(ordered, 90):.0f}"
