"""The page docs/results/metadata.md and its pictures, made of the report alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks._machine import described
from benchmarks._markdown import table
from benchmarks._report import FORMAT

from ._assumptions import CALLS_AT_MOST, label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Case = dict[str, Any]

#: The page is made of this report alone.
REPORT, PAGE = "metadata.json", "metadata.md"
REQUESTS_PICTURE, SWEEP_PICTURE = "metadata-requests.png", "metadata-sweep.png"
#: What was asked of the default and of the worst case.
MEAN_BOUND, ENTRY_BOUND = 100, 32

_WRITTEN = "<!-- Written by `python -m benchmarks.metadata render` from metadata.json. -->"
_INTRODUCTION = (
    "The paper says of Alibaba's trace that a lineage takes 200 bytes in the mean and less than 1 "
    "KB for 99 % of the requests, if every operation on a stateful service is a dependency "
    "(section 7.4). The trace is not part of this project, and the paper publishes no sizes of "
    "single requests. So this benchmark draws request trees from the numbers that are published, "
    "and sends the library's own lineages through them: a service reads the text that it is "
    "called with, appends its writes, calls others, merges what their answers bring back, and "
    "each text is bound to 1,024 bytes as in production."
)
_GENERATOR = (
    "The curves are the requests that were drawn; the marks are the published numbers. Nothing is "
    "published for the median of calls: 8 gives calls the spread of unique services. A request has "
    "the same rank in both distributions."
)
_HOP = (
    "*With a call* is the text that a service is called with. Large requests have many calls, so "
    "they weigh more in this mean. *In an answer* is what a callee adds. *Largest text* is the "
    "largest of each request. *Whole* is all that a request depends on in the end, in one text "
    "without a bound: what the paper's figures are about. A text of 1 byte is an empty lineage; "
    "`antipode=` and the comma before it are not counted."
)
_ASSUMED = {
    "writes": "share of the calls of stateful services that are dependencies",
    "tail": "distribution of calls and of unique services through the published percentiles",
    "keyed": "share of the stores with an entry for each key (DynamoDB, S3), not for a log",
    "services_a_log": "stateful services that share one log",
    "mysql": "share of the logs that a UUID names",
    "redis": "share of the logs that 40 hexadecimal digits name; MongoDB has the rest",
    "name_chars": "length of a datastore's name",
    "depth": "mean depth of the tree of stateless services, geometric from 2",
    "calls_a_service": "calls of stateful services by a stateless one, in the mean",
    "parallel": "share of the stateless services that call others concurrently, and join them",
    "answers": "answers bring back what was added",
}


def render(results: Path) -> None:
    """Make the page and its pictures again.

    Raises:
        ValueError: the report is missing, or of something else.
        OSError: they cannot be written.
    """
    from ._charts import requests_picture, sweep_picture

    report = read(results / REPORT)
    (results / PAGE).write_text(page(report), encoding="utf-8")
    default = _named(report, "default")
    requests_picture(default).savefig(
        results / REQUESTS_PICTURE, dpi=130, metadata={"Software": None}
    )
    points = swept(report)
    if points:
        sweep_picture(points).savefig(results / SWEEP_PICTURE, dpi=130, metadata={"Software": None})
    print(f"metadata: {results / PAGE}")


def read(path: Path) -> dict[str, Any]:
    """What the benchmark wrote.

    Raises:
        ValueError: there is no such file, or it is something else.
    """
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path}: {error.strerror}; `python -m benchmarks.metadata run --json` writes it"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"{path} is not JSON: {error}"
        raise ValueError(msg) from error
    if (
        not isinstance(report, dict)
        or report.get("benchmark") != "metadata"
        or report.get("format") != FORMAT
    ):
        msg = f"{path} is no report of benchmarks.metadata of format {FORMAT}: run it again"
        raise ValueError(msg)
    return report


def _named(report: dict[str, Any], name: str) -> Case:
    """The case of this name.

    Raises:
        ValueError: there is none.
    """
    cases: list[Case] = report["cases"]
    for case in cases:
        if case["case"] == name:
            return case
    msg = f"the report has no case {name!r}: run benchmarks.metadata without assumptions"
    raise ValueError(msg)


def swept(report: dict[str, Any]) -> list[Case]:
    """The points of the sweep; the first is the default."""
    return [case for case in report["cases"] if case["case"] == "sweep"]


def page(report: dict[str, Any]) -> str:
    """The page.

    Raises:
        ValueError: a case is missing.
    """
    default, worst = _named(report, "default"), _named(report, "worst case")
    blocks = ["# Lineages at the scale of a large company", _WRITTEN, _result(default)]
    if report["short"]:
        blocks.append(
            "**A short run:** few requests, to see that everything works. Its figures mean little."
        )
    blocks += [_INTRODUCTION, *_sizes(default, worst), *_requests(default), *_sweep(swept(report))]
    blocks += [*_parts(worst), *_measured(report, default)]
    return "\n\n".join(blocks) + "\n"


def _result(default: Case) -> str:
    sent = default["call_bytes"]
    return (
        f"A lineage that goes with a call has **{sent['mean']:.0f} bytes in the mean**, "
        f"{sent['p50']:,} at the median and {sent['p99']:,} at the 99th percentile."
    )


def _sizes(default: Case, worst: Case) -> Iterator[str]:
    yield "## Bytes"
    yield _HOP
    head = ["case", "text", "mean", "median", "90 %", "99 %", "maximum"]
    yield table(
        head,
        [*_rows("writes are dependencies", default), *_rows("all calls are", worst)],
        text_columns=2,
    )
    mean, entry = default["call_bytes"]["mean"], worst["entry_bytes"]
    yield (
        f"- **Writes alone** (share {default['assumed']['writes']:g}, lognormal tail): "
        f"{mean:.0f} bytes with a call in the mean, {_verdict(mean, MEAN_BOUND)} of {MEAN_BOUND}; "
        f"{default['largest_bytes']['mean']:.0f} in the largest text of a request. "
        f"{_shortened(default)}\n"
        "- **Every call of a stateful service, a log each** (the paper's worst case): "
        f"{entry:.1f} bytes an entry, {_verdict(entry, ENTRY_BOUND)} of {ENTRY_BOUND}. The whole "
        f"lineage has {worst['whole_bytes']['mean']:.0f} bytes in the mean and "
        f"{worst['whole_bytes']['p99']:,} at the 99th percentile; the paper says 200 and less "
        f"than 1,024. {_shortened(worst)}"
    )
    yield (
        "Format 1 reaches neither bound. [ADR 0130]"
        "(../adr/0130-short-names-would-make-entries-small.md) says which entry would, measured, "
        "and what that costs in three languages."
    )


def _verdict(value: float, bound: float) -> str:
    return "within the bound" if value <= bound else "**over the bound**"


def _shortened(case: Case) -> str:
    share = 100 * case["shortened_requests"] / case["requests"]
    return (
        f"{share:.2f} % of the requests had a text that was shortened ({case['shortened']:,} of "
        f"{case['texts']:,} texts, {case['dropped']:,} entries); each says so by its mark `size`. "
        f"The largest text of a request has {case['largest_bytes']['p99']:,} bytes at the 99th "
        f"percentile{'; 99 % of the requests lose nothing' if share < 1 else ''}."
    )


def _rows(name: str, case: Case) -> Iterator[Sequence[str]]:
    for text, what in (
        ("call_bytes", "with a call"),
        ("answer_bytes", "in an answer"),
        ("largest_bytes", "largest text"),
        ("whole_bytes", "whole"),
        ("entries", "entries of the whole"),
    ):
        found = case[text]
        figures = [
            f"{found['mean']:.1f}",
            *(f"{found[name]:,}" for name in ("p50", "p90", "p99", "most")),
        ]
        yield (name, what, *figures)


def _requests(case: Case) -> Iterator[str]:
    yield "## The requests"
    yield f"![Calls and unique stateful services of a request]({REQUESTS_PICTURE})"
    yield _GENERATOR
    yield table(
        ["published", "where", "drawn"],
        [
            [
                "more than half call 5 or more unique stateful services",
                "2.1",
                f"{100 * case['from_5_stores']:.1f} %",
            ],
            ["10 % call more than 20", "2.1", f"{100 * case['over_20_stores']:.1f} %"],
            [
                "more than 20 % make 20 or more calls of them",
                "2.1",
                f"{100 * case['from_20_calls']:.1f} %",
            ],
            [
                "more than five stateful services a request, in the mean",
                "4.1",
                f"{case['stores']['mean']:.1f}",
            ],
            ["a mean depth of more than four", "4.1", f"{case['depth']['mean']:.2f}"],
            [
                "more than 10 % of stateless services call five others or more",
                "4.1",
                f"{100 * case['fanning']:.1f} %",
            ],
        ],
        text_columns=2,
    )
    yield "Everything else is assumed:"
    yield table(
        ["assumption", "meaning", "default"],
        [[f"`{name}`", meaning, f"{case['assumed'][name]}"] for name, meaning in _ASSUMED.items()],
        text_columns=2,
    )


def _sweep(points: list[Case]) -> Iterator[str]:
    if not points:
        return
    yield "## Which assumption matters"
    default = points[0]["call_bytes"]["mean"]
    ordered = sorted(points[1:], key=lambda case: case["call_bytes"]["mean"] / default)
    least, most = ordered[0], ordered[-1]
    yield (
        f"Each point changes one assumption, with {points[0]['requests']:,} requests. The result "
        f"moves most with `{label(most['changed'])}` "
        f"({most['call_bytes']['mean'] / default:.1f} times the default's mean with a call) and "
        f"`{label(least['changed'])}` "
        f"({least['call_bytes']['mean'] / default:.1f} times)."
    )
    yield f"![Bytes with a call, by assumption]({SWEEP_PICTURE})"
    head = ["changed", "with a call: mean", "99 %", "in an answer: mean", "largest: mean", "99 %"]
    head += ["bytes an entry", "requests shortened"]
    yield table(head, [_point(case) for case in points])


def _point(case: Case) -> list[str]:
    return [
        f"`{label(case['changed'])}`" if case["changed"] else "default",
        f"{case['call_bytes']['mean']:.0f}",
        f"{case['call_bytes']['p99']:,}",
        f"{case['answer_bytes']['mean']:.0f}",
        f"{case['largest_bytes']['mean']:.0f}",
        f"{case['largest_bytes']['p99']:,}",
        f"{case['entry_bytes']:.1f}",
        f"{100 * case['shortened_requests'] / case['requests']:.2f} %",
    ]


def _parts(case: Case) -> Iterator[str]:
    yield "## Where the bytes of an entry go"
    meanings = {
        "name": "the datastore's name",
        "log": "the log's name",
        "position": "the position in it",
        "framing": "its kind, two dots and the `~` before it",
    }
    parts = case["entry_parts"]
    rows = [[meaning, f"{parts[part]:.1f}"] for part, meaning in meanings.items()]
    yield table(["part", "bytes in the mean"], [*rows, ["an entry", f"{case['entry_bytes']:.1f}"]])


def _measured(report: dict[str, Any], default: Case) -> Iterator[str]:
    yield "## How it was measured"
    facts = [
        ("command", f"`{report['command']}`"),
        ("date, UTC", report["began"][:10]),
        ("duration", f"{report['took_s'] / 60:.0f} minutes"),
        (
            "processor time",
            f"{default['processor_us_a_text']:.0f} µs a text of the default, in Python",
        ),
        *described(report["machine"]),
        ("commit", report["commit"] or "unknown"),
    ]
    yield table(("", ""), facts, text_columns=2)
    yield (
        "Bytes are counted, so that nothing else on the machine changes them. The processor time "
        "is that of the processes themselves, not the time that passed; what shared the processors "
        "and their caches with them makes it longer all the same."
    )
    capped = sum(case["capped"] for case in report["cases"])
    if capped:
        yield (
            f"{capped} requests of all cases were drawn with more than {CALLS_AT_MOST:,} calls of "
            "stateful services, and simulated with that many."
        )
