"""What the benchmarks wrote, in one shape for all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks._machine import described
from benchmarks._report import FORMAT
from benchmarks.judge import busy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


#: Behind the benchmark in the name of a report whose processors were left to the system.
AS_IS = "-as-is"
#: Packages that are named of those that the time goes to.
_PARTS = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a benchmark.

    Attributes:
        names: what it is, a text for each column of its section.
        plain_us: the median without the library.
        ours_us: the median with it.
        ratio: of the two, as the benchmark reckons it.
        low: of the spread of that ratio over rounds.
        high: of the same.
        bound: what the ratio may be; None where anything may.
        failed: calls that went wrong; None where a failure ends the benchmark.
        goes: where the time with the library goes; empty where nothing says.
    """

    names: tuple[str, ...]
    plain_us: float
    ours_us: float
    ratio: float
    low: float
    high: float
    bound: float | None
    failed: int | None = None
    goes: str = ""

    @property
    def over(self) -> bool:
        """Whether it is over its bound."""
        return self.bound is not None and self.ratio > self.bound


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark found.

    Attributes:
        benchmark: which.
        command: what repeats it.
        short: whether there were fewer rounds or calls than without options.
        as_is: whether processors were left to the system though the benchmark can hold them.
        processors: what was done about them; empty where it does not matter.
        rounds: how many, and of what; empty where the command says it.
        began: when, in UTC.
        took_s: seconds, servers included.
        commit: of the project, with a plus where files differed.
        machine: where, as rows of a table.
        busy: what is to be said first of a machine that was not quiet; empty where it was.
        load: of the machine, before and after, over one minute.
        versions: of what was measured, by name.
        cases: in their order.
    """

    benchmark: str
    command: str
    short: bool
    as_is: bool
    processors: str
    rounds: str
    began: str
    took_s: float
    commit: str
    machine: list[tuple[str, str]]
    busy: str
    load: tuple[float, float]
    versions: dict[str, str]
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """Of its file: a benchmark has two where its processors can be held or left."""
        return self.benchmark + AS_IS * self.as_is


def _micro(case: dict[str, Any], report: dict[str, Any]) -> Case:
    entries, bound = case["case"]["entries"], report["bound"]
    ratios = case["ratios"]
    return Case(
        names=(
            case["case"]["operation"],
            case["case"]["inputs"],
            f"{entries} {'entry' if entries == 1 else 'entries'} of {case['text_bytes']:,} bytes",
        ),
        plain_us=case["floor_us"]["median"],
        ours_us=case["ours_us"]["median"],
        ratio=ratios["median"],
        low=ratios["lower_quartile"],
        high=ratios["upper_quartile"],
        bound=bound["ratio"] if entries == bound["entries"] else None,
    )


def _overhead(case: dict[str, Any], _report: dict[str, Any]) -> Case:
    return Case(
        names=(case["client"], case["link"], case["call"]),
        plain_us=case["plain_us"]["median"],
        ours_us=case["instrumented_us"]["median"],
        ratio=case["ratio"],
        low=case["rounds"]["least"],
        high=case["rounds"]["greatest"],
        bound=case["bound"],
    )


def _requests(case: dict[str, Any], _report: dict[str, Any]) -> Case:
    return Case(
        names=(case["case"],),
        plain_us=case["otel_us"]["median"],
        ours_us=case["antipode_us"]["median"],
        ratio=case["ratio"],
        low=case["rounds"]["least"],
        high=case["rounds"]["greatest"],
        bound=case["bound"],
        failed=case["failed"],
    )


def _throughput(case: dict[str, Any], _report: dict[str, Any]) -> Case:
    plain, ours = case["per_s"]
    servers = case["servers_us"]
    shares = [f"{name} {100 * share:.0f} %" for name, share in case["shares"].items()]
    calls = [f"{name} {own:.0f} µs ({bare:.0f})" for name, (bare, own) in case["parts"].items()]
    return Case(
        names=(
            case["store"],
            case["way"],
            f"{ours:,.0f} ({plain:,.0f})",
            f"{servers[1]:,.0f} ({servers[0]:,.0f})" if servers else "not said",
        ),
        plain_us=case["plain_us"]["median"],
        ours_us=case["ours_us"]["median"],
        ratio=case["ratio"],
        low=case["rounds"]["least"],
        high=case["rounds"]["greatest"],
        bound=case["bound"],
        goes=f"{case['store']}, `{case['way']}`: {', '.join(calls + shares[:_PARTS])}",
    )


_CASES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Case]] = {
    "micro": _micro,
    "overhead": _overhead,
    "requests": _requests,
    "throughput": _throughput,
}
#: The benchmarks, in the order of the page.
BENCHMARKS = tuple(_CASES)
#: The files that it is made of.
NAMES = (
    *BENCHMARKS,
    *(f"{benchmark}{AS_IS}" for benchmark in ("overhead", "requests", "throughput")),
)


def read(path: Path) -> Report:
    """What one of the benchmarks wrote.

    Raises:
        ValueError: there is no such file, or it is something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path}: {error.strerror}; a benchmark writes it with --json"
        raise ValueError(msg) from error
    except ValueError as error:
        msg = f"{path} is not JSON: {error}"
        raise ValueError(msg) from error
    benchmark = found.get("benchmark") if isinstance(found, dict) else None
    if benchmark not in BENCHMARKS:
        msg = f"{path} is of none of the benchmarks {', '.join(BENCHMARKS)}"
        raise ValueError(msg)
    if found.get("format") != FORMAT:
        msg = f"{path} is of another format: run benchmarks.costs.{benchmark} again"
        raise ValueError(msg)
    try:
        return _report(found)
    except (IndexError, KeyError, TypeError) as error:
        msg = f"{path} is damaged ({error!r}): run benchmarks.costs.{benchmark} again"
        raise ValueError(msg) from error


def _rounds(found: dict[str, Any]) -> str:
    if "rounds" not in found:
        return ""
    calls = f", each of {found['calls']:,} calls of either kind" if "calls" in found else ""
    return f"{found['rounds']}{calls}"


def _report(found: dict[str, Any]) -> Report:
    benchmark, machine = found["benchmark"], found["machine"]
    return Report(
        benchmark=benchmark,
        command=found["command"],
        short=found["short"],
        as_is=found.get("as_is", False),
        processors=found.get("processors", ""),
        rounds=_rounds(found),
        began=found["began"],
        took_s=found["took_s"],
        commit=found["commit"],
        machine=described(machine),
        busy=busy(found["machine"]["in_use"], found["machine"]["processors"]),
        load=(machine["load"][0], machine["load_after"][0]),
        versions=found["versions"],
        cases=tuple(_CASES[benchmark](case, found) for case in found["cases"]),
    )
