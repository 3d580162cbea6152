"""The page docs/results/costs.md: a section for each benchmark, made of its report alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks._markdown import table
from benchmarks.costs.requests._cases import LEAST, case

from ._reports import AS_IS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ._reports import Case, Report


@dataclass(frozen=True, slots=True)
class Section:
    """What a section says beside figures.

    Attributes:
        title: its heading.
        says: what is measured, and how its ratio is reckoned.
        names: headings of the columns that say what a case is.
        plain: what the calls without the library are called.
        ours: what those with it are called.
        spread: of the ratios of rounds.
    """

    title: str
    says: str
    names: tuple[str, ...]
    plain: str
    ours: str
    spread: str


SECTIONS = {
    "micro": Section(
        title="Operations",
        says=(
            "Each operation of the library compared with a bare call of OpenTelemetry with a text "
            "of the same length: `set_baggage`, `attach` and `detach` for append and merge, "
            "baggage's `inject` and `extract` for the others. *Warm* inputs are of logs that the "
            "process knows, *cold* ones of logs that it never saw. The ratio is the median of the "
            "rounds' ratios, with their quartiles. "
            "[More](../guides/post-notification.md#the-cost-of-a-call-micro)."
        ),
        names=("operation", "inputs", "lineage"),
        plain="OpenTelemetry µs",
        ours="operation µs",
        spread="quartiles",
    ),
    "overhead": Section(
        title="Calls of clients",
        says=(
            "The same call by a plain client and by an instrumented one, of a store that has a "
            "replica, on loopback and with half a millisecond of network. The ratio is that of "
            "the medians of all calls, with the least and the greatest of one round. *Automatic "
            "barriers*: the instrumented read with them over the same without, in a request that "
            "depends on nothing, or *after a write elsewhere* on nothing of this store. *Dry run*: "
            "the instrumented read in a dry run over the same outside of one. An *unguarded* one, "
            "the first behind a write, is a finding, and so is *another* right behind such a one; "
            "a *guarded* one is the first behind a barrier, which waits for nothing in a dry run; "
            "behind one that is enforced all the same, a read has to look as well. These are "
            "written down. *Publish* and *receive*: a message whose request depends on something. "
            "[More](../guides/post-notification.md#the-cost-of-a-clients-call-overhead)."
        ),
        names=("client", "link", "call"),
        plain="plain µs",
        ours="instrumented µs",
        spread="rounds",
    ),
    "requests": Section(
        title="Empty requests",
        says=(
            "A request that does nothing, on loopback, with Antipode's integration and "
            "OpenTelemetry's instrumentation, and with the latter alone. *With a lineage*: the "
            "request brings one. The ratio is the median of the rounds' ratios, with the least "
            "and the greatest of them; each round has processes of its own. "
            "[More](../reference/integrations.md#cost)."
        ),
        names=("case",),
        plain="OpenTelemetry µs",
        ours="Antipode µs",
        spread="rounds",
    ),
    "throughput": Section(
        title="Throughput at saturation",
        says=(
            "Rounds of a write to the primary and a read at its replica by 32 threads of one "
            "process that never rest, in a scope each, in turns. Rounds a second and the servers' "
            "processor time for a round, in microseconds, have those with plain clients in "
            "brackets; the others are the processor time of the client's process for a round. "
            "`at-read` and `auto` hold the read back until the replica shows the write, so their "
            "rounds wait for it; the bound is for `instrumented`. A write to Redis brings `INFO "
            "replication` with it, whose answer the client reads and parses as its own. The "
            "ratio is that of the means of all turns, with the least and the greatest of one turn. "
            "[More](../guides/post-notification.md#throughput)."
        ),
        names=("store", "way", "rounds/s (plain)", "servers µs (plain)"),
        plain="plain µs",
        ours="ours µs",
        spread="turns",
    ),
}
_GOES = (
    "Where the processor time of a round goes, of one thread: each call by itself, the median in "
    "microseconds, with that of plain clients in brackets, where there is no barrier; and by "
    "package, under a profiler, which makes short functions look longer than they are:"
)
_WRITTEN = "<!-- Written by `python -m benchmarks.costs render` from the files in costs/. -->"
_INTRODUCTION = (
    "Calls with the library compared with the same calls without it, interleaved. Times are "
    "medians in microseconds; ratios say more, for both sides ran on the same machine at the same "
    "time. A bound is the greatest ratio that we ask for, which in a dry run, with automatic "
    "barriers, and for requests is 5 % or 30 µs, whichever is more; whether it is kept is decided "
    "before rounding."
)
_LOAD = (
    "The load is the machine's over one minute, and that afterwards counts the benchmark itself."
)
_AS_IS = (
    "*As is* is the ratio of another run, of fewer rounds and of some clients, with `--as-is`, "
    "which leaves the processors to the system: on a virtual machine of two it puts a server onto "
    "its client's, where the two take turns, or wakes a halted one up, which takes longer than "
    "many a call. A bound is judged where they are held."
)


def page(reports: Mapping[str, Report]) -> str:
    """The page, of the reports that there are."""
    blocks = ["# What it costs", _WRITTEN, *_result(reports), _INTRODUCTION]
    for benchmark, section in SECTIONS.items():
        blocks.append(f"## {section.title}")
        if benchmark in reports:
            blocks += _measured(section, reports[benchmark], reports.get(benchmark + AS_IS))
        else:
            blocks += _unmeasured(section, benchmark)
    if reports:
        blocks.append(_LOAD)
    return "\n\n".join(blocks) + "\n"


def _result(reports: Mapping[str, Report]) -> Iterator[str]:
    """How many cases are within their bound, of all that were measured."""
    cases = [each for name in SECTIONS if name in reports for each in reports[name].cases]
    bound = [each for each in cases if each.bound is not None]
    if bound:
        within = sum(not each.over for each in bound)
        yield (
            f"**{within} of {len(bound)} cases are within their bound.** "
            "Each section names the others."
        )


def _unmeasured(section: Section, benchmark: str) -> Iterator[str]:
    yield (
        "**Not measured yet.** `make bench` measures all of this page, "
        f"`python -m benchmarks.costs.{benchmark}` this section."
    )
    yield section.says


def _measured(section: Section, report: Report, as_is: Report | None) -> Iterator[str]:
    if report.short:
        yield (
            "**A short run:** fewer rounds or calls than by default, to see that everything "
            "works. Its figures mean little."
        )
    yield from (f"**{each.busy}.**" for each in filter(None, (report, as_is)) if each.busy)
    yield _verdict(report)
    yield section.says
    failures = any(each.failed is not None for each in report.cases)
    head = [*section.names, section.plain, section.ours, "ratio", section.spread]
    rows = [_row(each) for each in report.cases]
    if as_is is not None:
        yield _AS_IS
        head.append("as is")
        left = {each.names: f"{each.ratio:.3f}" for each in as_is.cases}
        for row, each in zip(rows, report.cases, strict=True):
            row.append(left.get(each.names, ""))
    if failures:
        head.append("failed")
        for row, each in zip(rows, report.cases, strict=True):
            row.append(f"{each.failed or 0:,}")
    for row, each in zip(rows, report.cases, strict=True):
        row.extend(_judged(each))
    yield table((*head, "bound", "kept"), rows, text_columns=len(section.names))
    goes = [f"- {each.goes}" for each in report.cases if each.goes]
    if goes:
        yield _GOES
        yield "\n".join(goes)
    if any(each.names == (LEAST,) for each in report.cases):
        yield f"`{LEAST}` has no bound, and runs nothing of ours: {_explained(LEAST)}"
    yield table(("", ""), _facts(report), text_columns=2)
    if as_is is not None:
        yield "As is:"
        yield table(("", ""), _facts(as_is), text_columns=2)


def _verdict(report: Report) -> str:
    """Which cases are over their bound, and whether calls failed."""
    bound = [each for each in report.cases if each.bound is not None]
    over = [each for each in bound if each.over]
    cases = f"{len(bound)} case{'s' * (len(bound) != 1)} with a bound"
    if not bound:
        said = "No case has a bound."
    elif over:
        named = "; ".join(_named(each) for each in over)
        said = f"**{len(over)} of {cases} {'is' if len(over) == 1 else 'are'} over it:** {named}."
    else:
        said = f"None of {cases} is over it."
    counted = [each.failed for each in report.cases if each.failed is not None]
    if counted:
        failed = sum(counted)
        said += (
            f" **Calls that failed: {failed:,}**, in none of the times."
            if failed
            else (" No call failed.")
        )
    return said


def _named(each: Case) -> str:
    return f"{', '.join(each.names)} ({each.ratio:.3f}, at most {each.bound:g})"


def _row(each: Case) -> list[str]:
    return [
        *each.names,
        _microseconds(each.plain_us),
        _microseconds(each.ours_us),
        f"{each.ratio:.3f}",
        f"{each.low:.3f} to {each.high:.3f}",
    ]


def _judged(each: Case) -> tuple[str, str]:
    """A bound, and whether it is kept."""
    if each.bound is None:
        return "", ""
    return f"{each.bound:g}", "**no**" if each.over else "yes"


def _microseconds(value: float) -> str:
    """Three digits that count, and never less than whole microseconds."""
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def _explained(name: str) -> str:
    """What the module of a case of the requests says first, within a sentence."""
    said = (case(name).__doc__ or "").partition("\n")[0]
    return said[:1].lower() + said[1:]


def _facts(report: Report) -> list[tuple[str, str]]:
    before, after = report.load
    held = [("processors", report.processors)] if report.processors else []
    return [
        ("command", f"`{report.command}`"),
        ("began, UTC", report.began.replace("+00:00", "").replace("T", " ")),
        ("took", f"{report.took_s:,.0f} s"),
        *report.machine,
        *held,
        *([("rounds", report.rounds)] if report.rounds else []),
        ("load before and after", f"{before:.1f} to {after:.1f}"),
        ("commit", report.commit or "unknown"),
        *report.versions.items(),
    ]
