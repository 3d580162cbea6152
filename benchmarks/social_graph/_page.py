"""The page of results and its two pictures, made of what `_bench` has collected alone."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from benchmarks._machine import described
from benchmarks._markdown import table
from benchmarks.judge import LEAST_BLOCKS, differ, over_blocks

from ._bench import RATE, RATES
from ._lines import added
from ._measure import PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks._statistics import Interval

PAGE = "social-graph.md"
PICTURES = {"latency": "social-graph-latency.png", "window": "social-graph-window.png"}
_WORKLOADS = {"deathstarbench": "as DeathStarBench", "paper": "as the paper"}
_COLOURS = {"baseline": ("#d55e00", "s"), "barrier": ("#0072b2", "o")}
_BASELINE, _BARRIER = "baseline", "barrier"
_SHARE, _HOP_BYTES, _OVERSHOOT_MS, _THROUGHPUT = 5.0, 200, 2.0, 0.95

Report = dict[str, Any]
Turns = list[dict[str, Any]]


def write(report: Report, folder: Path) -> None:
    """Write the page and draw its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(page(report), encoding="utf-8")
    draw(report, folder)


def page(report: Report) -> str:
    """The page."""
    parts = [*_head(report), *_figure(report), *_violations(report), *_costs(report)]
    parts += [*_throughput(report), *_overshoot(report), *_hops(report), *_wiring(), *_mix(report)]
    return "\n\n".join(parts) + "\n"


def draw(report: Report, folder: Path) -> None:
    """Draw Figure 8: latency over throughput, and the consistency window."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    for name, measured, label in (
        ("latency", "latencies", "latency of a compose (median), ms"),
        ("window", "windows", "consistency window (median), ms"),
    ):
        figure = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
        grid: Any = figure.subplots(1, len(PAIRS), squeeze=False)
        for axes, pair in zip(grid[0], PAIRS, strict=True):
            for variant, (colour, mark) in _COLOURS.items():
                points = list(_points(report, pair, variant, measured))
                axes.plot(
                    [at for at, _ in points],
                    [value for _, value in points],
                    color=colour,
                    marker=mark,
                    label=variant,
                )
            axes.set_title(f"{pair}: {PAIRS[pair].cities}", fontsize=10)
            axes.set_xlabel("composes answered a second")
            # From nothing, with room above: a quick run has one point a line.
            axes.set_xlim(0, 1.1 * max(axes.get_xlim()[1], 1))
            axes.set_ylim(0, 1.1 * max(axes.get_ylim()[1], 1))
            axes.legend(fontsize=8, frameon=False)
        grid[0][0].set_ylabel(label)
        figure.savefig(folder / PICTURES[name], dpi=130, metadata={"Software": None})


def _points(
    report: Report, pair: str, variant: str, measured: str
) -> Iterator[tuple[float, float]]:
    for rate in sorted((RATE, *RATES)):
        turns = [it for it in _at(report, pair, rate) if it["variant"] == variant and it[measured]]
        if turns:
            yield (
                statistics.fmean(it["achieved"] for it in turns),
                statistics.fmean(it[measured][0] for it in turns),
            )


def _at(report: Report, pair: str, rate: float) -> Turns:
    name = f"variants-{pair}-deathstarbench" if rate == RATE else f"figure8-{pair}-{rate:g}"
    return _turns(report, name)


def _turns(report: Report, name: str) -> Turns:
    found: Turns = report["runs"].get(name, {}).get("turns", [])
    return found


def _result(report: Report) -> str:
    """How many composes were violations, without the library and with its barriers."""
    counts = {_BASELINE: [0, 0], _BARRIER: [0, 0]}
    for name in (f"variants-{pair}-{workload}" for pair in PAIRS for workload in _WORKLOADS):
        for it in _turns(report, name):
            kind = _BASELINE if it["variant"] == _BASELINE else _BARRIER
            if it["variant"] in (_BASELINE, "automatic") or it["variant"].startswith(_BARRIER):
                counts[kind][0] += it["wrong"]
                counts[kind][1] += it["answered"]
    (without, of), (with_them, of_them) = counts.values()
    return (
        f"Without the library **{without:,} of {of:,}** composes were violations; "
        f"with its barriers **{with_them:,} of {of_them:,}** were."
    )


def _head(report: Report) -> Iterator[str]:
    yield "# Results: the social network"
    yield _result(report)
    yield (
        "What [the social network](../guides/social-graph.md) of DeathStarBench shows and costs, "
        "with and without the library: the paper's Figure 8, and what it leaves open. "
        "`make bench-social-graph` makes this page."
    )
    if report["short"]:
        yield "A quick run: few requests and one turn. Its figures are rough, and have no interval."
    if report["missing"]:
        yield f"Missing: {', '.join(report['missing'])}."
    rows = [*described(report["machine"]), ("commit", report["commit"])]
    rows += [(name, version) for name, version in report["versions"].items()]
    yield table(("what", "which"), rows, text_columns=2)
    regions = [
        (name, pair.cities, f"{pair.link_ms:g}", f"{pair.post_ms:g}", f"{pair.spread:g}")
        for name, pair in PAIRS.items()
    ]
    yield (
        "Regions are one machine with delays between them. A message takes the link, and so "
        "does a change of who follows whom. Posts take their own lag, which wanders: log-normal, "
        "the last column is the logarithm's spread. Cities are of Saturn's table 1, which has no "
        "Singapore: Sydney stands for it.\n\n"
        + table(("pair", "cities", "link, ms", "posts, ms", "spread"), regions, text_columns=2)
    )


def _figure(report: Report) -> Iterator[str]:
    yield "## Figure 8"
    yield (
        "Open loop, exponential gaps, latency from when a request was due. The workload is "
        "DeathStarBench's. The window is the time from a post's acknowledgement by its store until "
        "a reader in eu was shown a timeline that names it."
    )
    yield f"![Latency over throughput]({PICTURES['latency']})"
    yield f"![Consistency window over throughput]({PICTURES['window']})"
    rows = []
    for pair in PAIRS:
        for rate in sorted((RATE, *RATES)):
            for variant in (_BASELINE, _BARRIER):
                turns = [it for it in _at(report, pair, rate) if it["variant"] == variant]
                if turns:
                    rows.append(
                        (
                            pair,
                            variant,
                            f"{rate:g}",
                            f"{statistics.fmean(it['achieved'] for it in turns):.1f}",
                            *(_mean(turns, "latencies", index) for index in range(3)),
                            *(_mean(turns, "windows", index) for index in range(2)),
                            f"{max(it['driver_late_ms'] for it in turns):.1f}",
                        )
                    )
    head = ("pair", "variant", "rate", "answered a second", "latency p50", "p90", "p99")
    more = ("window p50", "p90", "driver late, p99")
    yield table((*head, *more), rows, text_columns=2)
    yield "Times in ms, means over turns. A driver that is late by tens of ms lacked a processor."


def _violations(report: Report) -> Iterator[str]:
    yield "## Violations"
    rows = []
    for pair in PAIRS:
        for workload, said in _WORKLOADS.items():
            name = f"variants-{pair}-{workload}"
            for variant, turns in _by_variant(_turns(report, name)).items():
                composes = sum(it["answered"] for it in turns)
                wrong = sum(it["wrong"] for it in turns)
                rows.append(
                    (
                        *(pair, said, variant),
                        f"{composes:,}",
                        f"{wrong:,} ({100 * wrong / max(composes, 1):.1f} %)",
                        *(f"{sum(it[key] for it in turns):,}" for key in _COUNTED),
                        f"{sum(it['composes'] - it['answered'] for it in turns):,}",
                    )
                )
    head = ("pair", "workload", "variant", "composes", "violations", "late posts", "waited")
    yield table((*head, "not shown", "failed"), rows, text_columns=3)
    yield (
        "A violation: a home timeline names a post that cannot be read, or, in the paper's "
        "workload, whose authors nobody follows, the consumer does not find its post. A late post "
        "was not visible when its notification came. The paper: 0.1 % near, 34 % far."
    )


_COUNTED = ("exposed", "waited", "unanswered")


def _costs(report: Report) -> Iterator[str]:
    yield "## Processor time of a compose"
    for workload, said in _WORKLOADS.items():
        turns = _turns(report, f"variants-near-{workload}")
        variants = _by_variant(turns)
        base = variants.get(_BASELINE, [])
        if not base:
            continue
        parts = tuple(sorted({part for it in turns for part in it["cpu_us"]}))
        rows = [(part, *(_cpu(it, base, (part,)) for it in variants.values())) for part in parts]
        rows.append(("**all**", *(_cpu(it, base, parts) for it in variants.values())))
        rows.append(("**over the baseline**", *(_share(it, base) for it in variants.values())))
        yield f"Workload {said}, near pair, µs:\n\n" + table(("service", *variants), rows)
    yield (
        "Services alone, not their stores. Of the baseline the mean; of the others what they are "
        f"above it, with the 95 % interval over turns (from {LEAST_BLOCKS} turns on). RabbitMQ "
        "runs with `+sbwt none` in all variants: it does not wait busily. The bar is "
        f"{_SHARE:g} %; the paper has 2 % of throughput. Reads of timelines by the observers are "
        "in the figures of DeathStarBench's workload, in all variants alike."
    )


def _cpu(turns: Turns, base: Turns, parts: tuple[str, ...]) -> str:
    ones = _sums(turns, parts)
    if turns is base:
        return f"{statistics.fmean(ones.values()):.0f}"
    return _signed(differ(ones, _sums(base, parts)), ones, _sums(base, parts))


def _share(turns: Turns, base: Turns) -> str:
    if turns is base:
        return ""
    ones, others = _all(turns), _all(base)
    ratios = {block: 100 * (ones[block] / others[block] - 1) for block in ones.keys() & others}
    return _signed(over_blocks(ratios.values()), ratios, dict.fromkeys(ratios, 0.0)) + " %"


def _all(turns: Turns) -> dict[int, float]:
    return {it["block"]: sum(it["cpu_us"].values()) for it in turns}


def _sums(turns: Turns, parts: tuple[str, ...]) -> dict[int, float]:
    return {it["block"]: sum(it["cpu_us"].get(part, 0.0) for part in parts) for it in turns}


def _signed(found: Interval | None, ones: dict[int, float], others: dict[int, float]) -> str:
    if found is None:
        value = statistics.fmean(ones[it] - others[it] for it in ones.keys() & others)
        return f"{value:+.1f}"
    return f"{found.value:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def _throughput(report: Report) -> Iterator[str]:
    yield "## Throughput at saturation"
    variants = _by_variant(_turns(report, "saturation"))
    base = {it["block"]: it["achieved"] for it in variants.get(_BASELINE, [])}
    rows = []
    for variant, turns in variants.items():
        own = {it["block"]: it["achieved"] for it in turns}
        ratios = [own[block] / base[block] for block in sorted(own.keys() & base.keys())]
        found = over_blocks(ratios)
        mean = statistics.fmean(ratios) if ratios else float("nan")
        interval = "" if found is None else f" ({found.low:.3f} to {found.high:.3f})"
        answered = f"{statistics.fmean(own.values()):.0f}"
        rows.append((variant, answered, f"{mean:.3f}{interval}", str(len(own))))
    yield table(("variant", "composes a second", "of the baseline's", "turns"), rows)
    yield (
        "More is asked for than can be answered; good answers count. It falls short where the "
        f"whole interval lies below {_THROUGHPUT}. The paper has 0.98."
    )


def _overshoot(report: Report) -> Iterator[str]:
    yield "## How late the barrier is"
    rows = []
    for pair in PAIRS:
        turns = [
            it
            for it in _turns(report, f"variants-{pair}-deathstarbench")
            if it["variant"] == _BARRIER and len(it["overshoots"]) == 2
        ]
        if turns:
            rows.append((pair, *(_mean(turns, "overshoots", index) for index in (1, 0))))
    yield table(("pair", "at least, ms", "at most, ms"), rows)
    yield (
        "Medians of how long after a post had become visible the consumer had read it. An observer "
        "looks every 2 ms: *at least* counts from the first look that found the post, *at most* "
        f"from the last one that did not. The bar is {_OVERSHOOT_MS:g} ms."
    )


def _hops(report: Report) -> Iterator[str]:
    yield "## The lineage at every hop"
    hops: dict[str, list[int]] = (
        report["runs"].get("variants-far-deathstarbench", {}).get("hops", {})
    )
    rows = [
        (f"`{hop.removeprefix('/social_graph.')}`", *map(str, (len(it), it[len(it) // 2], it[-1])))
        for hop, it in hops.items()
        if it
    ]
    yield table(("received by", "times", "bytes, median", "most"), rows)
    yield (
        "Bytes of the `baggage` header in requests that carry one. The bar, as the paper's, is "
        f"{_HOP_BYTES} bytes."
    )


def _wiring() -> Iterator[str]:
    yield "## Lines of wiring"
    lines = added()
    rows = [(f"`{name}`", str(number)) for name, number in lines.items()]
    rows.append(("**all**", str(sum(lines.values()))))
    yield table(("file", "lines"), rows)
    yield (
        "Lines that are neither empty nor comments. `service.cc`, `stores.cc`, `edge.cc` and "
        "`_process.py` are shared by all services of their language; other services have none. "
        "The paper: 250 lines of C++."
    )


def _mix(report: Report) -> Iterator[str]:
    turns = _turns(report, "mix")
    if not turns:
        return
    yield "## The mix"
    rows = [
        (
            variant,
            *(_mean(its, "latencies", index) for index in range(2)),
            *(_mean(its, "reads", index) for index in range(2)),
            f"{sum(it['wrong'] for it in its)} of {sum(it['answered'] for it in its)}",
        )
        for variant, its in _by_variant(turns).items()
    ]
    yield table(("variant", "compose p50", "p90", "read p50", "p90", "violations"), rows)
    yield "60 % read a home timeline, 30 % a user's own, 10 % compose. Times in ms, far pair."


def _by_variant(turns: Turns) -> dict[str, Turns]:
    found: dict[str, Turns] = {}
    for turn in turns:
        found.setdefault(turn["variant"], []).append(turn)
    return dict(sorted(found.items(), key=lambda it: (it[0] != _BASELINE, it[0])))


def _mean(turns: Turns, key: str, index: int) -> str:
    values = [it[key][index] for it in turns if len(it[key]) > index]
    return f"{statistics.fmean(values):.1f}" if values else "-"
