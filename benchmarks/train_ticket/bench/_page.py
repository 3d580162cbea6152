"""The page docs/results/train-ticket.md, made of what was measured alone."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks._machine import described
from benchmarks._markdown import table
from benchmarks._statistics import upper_bound
from benchmarks.judge import busy
from benchmarks.train_ticket._lines import added
from benchmarks.train_ticket._variants import VARIANTS

from . import _figures as figures
from ._charts import FIGURE_9, THINK
from ._plan import COMPARED, COSTS, LAG_MS, VISIBLE_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks._statistics import Interval

    from ._run import Found

PAGE = "train-ticket.md"
_WRITTEN = "<!-- Written by `make bench-train-ticket`. -->"
_INTRODUCTION = f"""\
The paper's TrainTicket application (sections 7.1 to 7.3, Figure 9). A user cancels an order, and
looks for the refund after a think time. A queue makes the refund meanwhile. The services and the
variants are those of the guide
[Spring Boot with several services](../guides/java/several-services.md). Requests come in an open
loop with exponential gaps, and a latency counts from when its request was due. Variants take turns.
In two regions replicas are {LAG_MS:g} ms late, and users look at them."""


def page(found: Sequence[Found], conditions: dict[str, Any]) -> str:
    """The page.

    Args:
        found: what was measured.
        conditions: how, as `benchmarks._report.Start.conditions` has it.
    """
    parts = {it.cell.part for it in found}
    said = figures.verdict(found).said
    blocks = ["# TrainTicket", _WRITTEN, f"**{said[:1].upper()}{said[1:]}.**"]
    blocks += [*_warnings(conditions), _INTRODUCTION]
    if "proof" in parts:
        blocks += _violations(found)
    if "costs" in parts:
        blocks += [*_processor(found), *_latency(found)]
    if "burst" in parts:
        blocks += _throughput(found)
    blocks += [*_figure_9(found), *_ends(found), *_lines(), *_money(found), *_measured(conditions)]
    return "\n\n".join(blocks) + "\n"


def _warnings(conditions: dict[str, Any]) -> Iterator[str]:
    if conditions["short"]:
        yield "**A quick run:** few requests, to see that everything works."
    machine = conditions["machine"]
    if loaded := busy(machine["in_use"], machine["processors"]):
        yield f"**{loaded}.**"


def _part(found: Sequence[Found], part: str) -> list[Found]:
    return [it for it in found if it.cell.part == part]


def _violations(found: Sequence[Found]) -> Iterator[str]:
    rows = []
    for it in _part(found, "proof"):
        for name in COMPARED:
            lacking = figures.missing(it.blocks, name)
            bound = 100 * upper_bound(lacking.number, lacking.of) if lacking.of else 100.0
            exposed = sum(
                digits[3] == "1" for b in figures.of(it.blocks, name) for digits in b.trials
            )
            rows.append(
                (
                    str(it.cell.regions),
                    f"`{name}`: {VARIANTS[name].said}",
                    f"{lacking.number} of {lacking.of}",
                    f"{lacking.percent:.2f} %",
                    f"{bound:.2f} %",
                    str(exposed),
                )
            )
    yield "## Look-ups without the refund"
    yield (
        "The look-up follows the answer at once. *At most* is the share that so many observations "
        "do not exclude, with 95 % confidence. *Too early* are look-ups that were sent before the "
        "refund was visible where they read; an observer of its own says so. The paper has 0.57 % "
        "without Antipode."
    )
    head = ("regions", "variant", "without the refund", "share", "at most", "too early")
    yield table(head, rows, text_columns=2)
    swept = sorted(_part(found, "think"), key=lambda it: (it.cell.regions, it.cell.think_ms))
    if not swept:
        return
    yield "With think times:"
    yield table(
        ("regions", "think time, ms", *(f"`{name}`" for name in COMPARED)),
        [
            (
                str(it.cell.regions),
                f"{it.cell.think_ms:g}",
                *(_share(figures.missing(it.blocks, name)) for name in COMPARED),
            )
            for it in swept
        ],
    )
    yield f"![Look-ups without the refund, by think time]({THINK})"


def _share(lacking: figures.Missing) -> str:
    return f"{lacking.number} of {lacking.of}"


def _processor(found: Sequence[Found]) -> Iterator[str]:
    (costs,) = _part(found, "costs")
    blocks = costs.blocks
    yield "## Processor time"
    yield (
        f"Of all services for one cancel and its look-up, stores apart, at {costs.cell.rate:g} "
        f"cancels a second in one region. Users think for {VISIBLE_MS:g} ms, so barriers find "
        "everything visible; that before the answer waits. `propagation` is the baseline with "
        "OpenTelemetry's Java agent, which does nothing but propagate its context. Intervals are "
        "of 95 % confidence, over the turns."
    )
    rows = [
        (
            f"`{name}`",
            _interval(figures.figure(blocks, name, figures.cpu_us), 0),
            *(
                "" if name == base else _interval(figures.ratio(blocks, name, base, figures.cpu_us))
                for base in ("baseline", "propagation")
            ),
        )
        for name in COSTS
    ]
    yield table(("variant", "µs a cancel", "of `baseline`", "of `propagation`"), rows)
    yield "The same by service, in µs:"
    services = figures.services(blocks)
    yield table(
        ("service", *(f"`{name}`" for name in COSTS)),
        [
            (
                service,
                *(
                    _interval(figures.figure(blocks, name, figures.cpu_us_of(service)), 0)
                    for name in COSTS
                ),
            )
            for service in services
        ],
    )


def _latency(found: Sequence[Found]) -> Iterator[str]:
    (costs,) = _part(found, "costs")
    yield "## Latency beyond the wait"
    yield (
        "Of the same requests: what the library costs where there is nothing to wait for. The "
        "barrier before the answer has always something to wait for. The paper has 17 %."
    )
    rows = []
    for name in COSTS:
        cancel, look_up = (
            figures.pooled(costs.blocks, name, values)
            for values in (lambda b: b.cancel_ms, lambda b: b.look_up_ms)
        )
        compared = "" if name == "baseline" else _interval(
            figures.ratio(costs.blocks, name, "baseline", figures.both_ms)
        )  # fmt: skip
        rows.append((f"`{name}`", _quantiles(cancel), _quantiles(look_up), compared))
    head = ("variant", "cancel, ms: p50 / p90", "look-up, ms: p50 / p90", "both, of `baseline`")
    yield table(head, rows)


def _throughput(found: Sequence[Found]) -> Iterator[str]:
    (burst,) = _part(found, "burst")
    yield "## Throughput at saturation"
    yield (
        f"{burst.cell.cancels} cancels come at once. The rate is that at which they are answered, "
        "their refunds made, and looked up. The paper has 0.85 of the baseline's."
    )
    rows = []
    for name in COSTS:
        compared = figures.ratio(burst.blocks, name, "baseline", figures.throughput)
        rows.append(
            (
                f"`{name}`",
                _interval(figures.figure(burst.blocks, name, figures.throughput), 1),
                "" if name == "baseline" else _interval(compared),
                "" if name == "baseline" else _within(compared),
            )
        )
    less = f"less than {figures.THROUGHPUT:g}"
    yield table(("variant", "cancels/s", "of `baseline`", less), rows)


def _within(compared: Interval | None) -> str:
    if compared is None:
        return "too few turns"
    return "yes" if compared.high < figures.THROUGHPUT else "no"


def _figure_9(found: Sequence[Found]) -> Iterator[str]:
    rates = _part(found, "rates")
    if not rates:
        return
    yield "## Figure 9: latency by throughput, and the consistency window"
    yield f"![Latency by throughput, and the consistency window at the peak]({FIGURE_9})"
    rows = []
    for it in rates:
        for name in COMPARED:
            blocks = figures.of(it.blocks, name)
            rows.append(
                (
                    f"`{name}`",
                    f"{it.cell.rate:g}",
                    f"{sum(b.throughput for b in blocks) / len(blocks):.0f}",
                    _quantiles(figures.pooled(it.blocks, name, lambda b: b.cancel_ms)),
                    _quantiles(figures.pooled(it.blocks, name, lambda b: b.look_up_ms)),
                    _quantiles(figures.pooled(it.blocks, name, lambda b: b.window_ms)),
                    str(sum(sum(b.errors.values()) for b in blocks)),
                    f"{max(b.driver_late_ms for b in blocks):.1f}",
                )
            )
    yield (
        "Look-ups follow at once, in one region. *Window* is the time from the look-up until the "
        "refund was visible where it reads, 0 where it was before. *Driver late*: how late "
        "requests were sent, at the 99th percentile. The rate achieved counts until the last "
        "refund was made and looked up."
    )
    yield table(
        (
            "variant", "cancels/s sent", "achieved", "cancel, ms", "look-up, ms",
            "window, ms: p50 / p90", "errors", "driver late, ms",
        ),
        rows,
    )  # fmt: skip
    at = figures.peak(rates)
    if at is not None:
        yield f"The baseline keeps up to {at.cell.rate:g} cancels a second: the peak in the figure."


def _ends(found: Sequence[Found]) -> Iterator[str]:
    proofs, costs = _part(found, "proof"), _part(found, "costs")
    if not proofs or not costs:
        return
    yield "## When a wait ends"
    yield (
        "*Answered* is the time from the refund's visibility, as the observer found it, until the "
        "look-up that waited was answered, at the median. A look-up without a wait takes as long "
        "as *look-up* says, which is from the costs above. The rest is how late the wait ended."
    )
    rows = []
    for it in proofs:
        for name in ("look-up", "automatic"):
            late = figures.pooled(it.blocks, name, lambda b: b.late_ms)
            plain = figures.pooled(costs[0].blocks, name, lambda b: b.look_up_ms)
            if late and plain:
                ends = (median(late), median(plain))
                rows.append(
                    (
                        str(it.cell.regions), f"`{name}`", str(len(late)),
                        *(f"{value:.1f}" for value in (*ends, ends[0] - ends[1])),
                    )
                )  # fmt: skip
    head = ("regions", "variant", "waits", "answered, ms", "look-up, ms", "rest, ms")
    yield table(head, rows, text_columns=2)


def _lines() -> Iterator[str]:
    lines = added()
    yield "## Lines that the library adds"
    yield table(
        ("service", "code", "settings"),
        [
            *((name, str(code), str(settings)) for name, (code, settings) in lines.items()),
            (
                "all",
                str(sum(code for code, _ in lines.values())),
                str(sum(settings for _, settings in lines.values())),
            ),
        ],
    )
    yield "The paper has 175 lines of Java."


def _money(found: Sequence[Found]) -> Iterator[str]:
    yield "## The money"
    blocks = [block for it in found for block in it.blocks]
    wrong = [block for block in blocks if not block.money_adds_up]
    yield (
        "What was paid for cancelled orders is what came back and what was kept, once for each "
        f"order, in {len(blocks) - len(wrong)} of {len(blocks)} turns."
    )
    for block in wrong:
        yield f"- `{block.variant}`: {block.money}"
    errors = {text for block in blocks for text in block.errors}
    number = sum(sum(block.errors.values()) for block in blocks)
    if errors:
        yield f"{number} requests ended with an error: {'; '.join(sorted(errors)[:5])}."


def _measured(conditions: dict[str, Any]) -> Iterator[str]:
    yield "## How it was measured"
    rows = [
        ("command", f"`{conditions['command']}`"),
        ("began", f"{conditions['began']}, and took {conditions['took_s']:.0f} s"),
        ("commit", conditions["commit"]),
        *described(conditions["machine"]),
        *conditions["versions"].items(),
    ]
    yield table(("", ""), rows, text_columns=2)


def _interval(found: Interval | None, places: int = 3) -> str:
    if found is None:
        return "too few turns"
    return f"{found.value:,.{places}f} ({found.low:,.{places}f} to {found.high:,.{places}f})"


def _quantiles(ordered: Sequence[float]) -> str:
    found = [figures.quantile(ordered, percent) for percent in (50, 90)]
    return " / ".join("-" if it is None else f"{it:.1f}" for it in found)
