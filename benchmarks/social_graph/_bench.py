"""Everything that the page of results needs: runs of `measure`, what is finished not run again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks._machine import ROOT, code, commit, machine, versions
from benchmarks.evaluation._plan import Run as Call
from benchmarks.evaluation._runner import Runner, run_all
from benchmarks.judge import FAILED, INCONCLUSIVE, SHOWN

from ._measure import PAIRS, Plan, took_s
from ._services import fitting

if TYPE_CHECKING:
    from pathlib import Path

    from ._services import Variant
    from ._workload import Workload

MODULE = "benchmarks.social_graph"
UNFINISHED = 2
#: What a run executes; what makes the page of it is not in it.
_CODE = (
    *("antipode", "shims/antipode_shims", "cpp/include", "cpp/src", "cpp/CMakeLists.txt"),
    *(f"java/antipode-{name}/src/main" for name in ("core", "grpc", "spring-boot-starter")),
    *("benchmarks/social_graph", "benchmarks/load", "benchmarks/_maven.py"),
    *("benchmarks/_statistics.py", "testing/antipode_testing/servers"),
)
_PAGES = tuple(f"benchmarks/social_graph/{name}.py" for name in ("_bench", "_page", "_lines"))
_COMPARED: tuple[Variant, ...] = ("baseline", "barrier")
_GUARDED: tuple[Variant, ...] = ("barrier", "barrier-at-read", "automatic")
#: What is compared in a pair. Costs are of the near one, where the least time is spent waiting.
_ALL: dict[str, tuple[Variant, ...]] = {
    "near": ("baseline", "opentelemetry", *_GUARDED),
    "far": ("baseline", *_GUARDED),
}
_FEW: dict[tuple[str, Workload], tuple[Variant, ...]] = {
    ("near", "deathstarbench"): ("baseline", "opentelemetry", "barrier"),
    ("far", "deathstarbench"): _ALL["far"],
}
_WORKLOADS: tuple[Workload, ...] = ("deathstarbench", "paper")
#: The rate at which all variants are compared; of Figure 8 the others have two.
RATE = 40.0
RATES = (20.0, 60.0, 80.0)
_TOO_MUCH = 800.0


@dataclass(frozen=True, slots=True)
class Named:
    """A plan with the name of its result."""

    name: str
    plan: Plan

    @property
    def late(self) -> bool:
        """Whether posts are so late that without a barrier some reader is shown too much."""
        return self.plan.pair == "far" and not self.plan.saturate

    def call(self, preset: str) -> Call:
        """The call of `measure`."""
        plan = self.plan
        arguments = ["measure", "--preset", preset, "--pair", plan.pair]
        arguments += ["--workload", plan.workload, "--rate", f"{plan.rate:g}"]
        arguments += ["--variants", ",".join(plan.variants), "--blocks", str(plan.blocks)]
        arguments += ["--seconds", f"{plan.seconds:g}", "--warm-up", f"{plan.warm_up_s:g}"]
        arguments += ["--mix"] if plan.mix else []
        arguments += ["--saturate"] if plan.saturate else []
        expected_s = took_s(plan)
        return Call(self.name, frozenset(), MODULE, tuple(arguments), "", expected_s=expected_s)


def plans(*, quick: bool) -> list[Named]:
    """What is run: the most telling first."""
    found = []
    for pair in reversed(PAIRS):
        for workload in _WORKLOADS:
            plan = Plan(pair, workload, rate=RATE, variants=fitting(_ALL[pair], workload))
            if quick:
                few = _FEW.get((pair, workload), _COMPARED)
                plan = replace(plan, variants=few, blocks=1, seconds=10.0, warm_up_s=2.0)
            found.append(Named(f"variants-{pair}-{workload}", plan))
    mix = Plan("far", mix=True, rate=RATE, blocks=3)
    full = Plan("near", rate=_TOO_MUCH, seconds=8.0, warm_up_s=2.0, saturate=True)
    if quick:
        mix = replace(mix, blocks=1, seconds=10.0, warm_up_s=2.0)
        full = replace(full, blocks=1, seconds=5.0)
        return [*found, Named("mix", mix), Named("saturation", full)]
    figure = [
        Named(f"figure8-{pair}-{rate:g}", Plan(pair, rate=rate, blocks=3))
        for pair in reversed(PAIRS)
        for rate in RATES
    ]
    return [*found, *figure, Named("mix", mix), Named("saturation", full)]


def bench(folder: Path, *, quick: bool, fresh: bool, preset: str) -> dict[str, Any]:
    """Run what is not finished; what was found, and what is missing."""
    runner = Runner(folder, fresh=fresh, of=lambda: code(_CODE, _PAGES))
    named = plans(quick=quick)
    failures = run_all(runner, [it.call(preset) for it in named])
    found = {
        it.name: {
            **json.loads(runner.result(it.call(preset)).read_text(encoding="utf-8")),
            "late": it.late,
        }
        for it in named
        if runner.record(it.call(preset)) is not None
    }
    return {
        "benchmark": "social-graph",
        "short": quick,
        "commit": commit(),
        "machine": machine(),
        "versions": versions(("opentelemetry-api", "pymongo"), ("redis", "mongodb", "rabbitmq")),
        "missing": [it.name for it in named if it.name not in found],
        "failures": failures,
        "runs": found,
    }


def status_of(report: dict[str, Any]) -> int:
    """The exit status: that of the judge over all runs in which something had to be shown."""
    runs = report["runs"].values()
    if any(run["status"] == FAILED for run in runs):
        return FAILED
    if report["missing"]:
        return UNFINISHED
    unclear = any(run["late"] and run["status"] == INCONCLUSIVE for run in runs)
    return INCONCLUSIVE if unclear else SHOWN


RESULTS = ROOT / "docs" / "results"
