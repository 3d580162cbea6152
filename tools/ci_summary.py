"""What a run of CI took, and what failed.

python -m tools.ci_summary                a table of the steps, the dearest fixtures and tests
python -m tools.ci_summary failed FILE    what failed, into FILE; status 1 where something did

Both read what `tools/step.sh` noted of each step, and the records of `tools/run_tests.sh`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
#: Why each step is there: what it finds that no other does.
WHY: Mapping[str, str] = {
    "make check": "faults that need no run",
    "make docs": "a page that cannot be built, a link that leads nowhere",
    "make demo": "what a newcomer types first, with Python alone",
    "make test": "what contributors run before they push",
    "make ci": "what takes too long for that",
    "ruff": "style, and faults that a linter sees",
    "mypy": "types, as most users check them",
    "pyright": "types, as editors check them",
    "tidy": "rooms, names and pages that fit the code",
    "docs": "every page and reference is built, strictly",
    "demo": "notifications overtake posts, and barrier() prevents it",
    "cpp": "the C++ library, its tests and its agent",
    "java": "the Java library, its tests and its agent",
    "pytest-test": "quick claims, over real servers",
    "pytest-ci": "slower claims: more stores, clients and languages",
    "java-ci": "Javadoc, tests with servers, what a release takes",
    "cpp-shared": "the C++ library as a shared one",
    "cpp-tidy": "faults of C++ that compilers do not see",
    "fuzz-texts": "texts from outside that break the C++ decoder",
    "fuzz-shims": "the same, of what C++ reads from stores",
    "programs": "random programs of each client, over real servers",
    "random-sessions": "the same, of many more sessions of each",
    "random-sessions-full": "the same without the short ways",
    "programs-java": "random programs of Java's clients, over real servers",
    "random-brokers": "the same, of stomp.py over two brokers of ActiveMQ",
    "random-cpp": "the same, of C++'s clients, with forks, signals and exceptions",
    "random-cpp-asan": "memory, in these programs",
    "random-cpp-tsan": "races in these programs",
    "random-failovers": "what barriers answer after fail-overs under writes",
    "random-mutants": "which small changes of the code no unit test notices; none is a fault",
    "wheel": "what is installed, on the oldest and the newest Python",
    "load": "barriers while servers are cut, delayed and promoted",
    "containers": "stores in containers, as users of testcontainers have them",
    "pytest-nightly": "stories, faults, fail-overs, old and new releases",
    "cpp-tsan": "races in C++",
    "cpp-asan": "memory of C++",
    "sanitized-contract-ci": "memory of the C++ agent, over real stores",
    "sanitized-contract-nightly": "the same, over the other stores",
    "sanitized-clients-asan": "memory of C++ clients",
    "sanitized-clients-tsan": "races of C++ clients",
    "sanitized-drivers-asan": "memory, with drivers that have threads of their own",
    "sanitized-drivers-tsan": "races of the same",
    "root-cpp": "a build of C++ by root leaves nothing behind",
    "cpp-release": "C++ as it is shipped",
    "cpp-release-clang": "the same, by the other compiler",
    "fuzz-java": "texts that Java decodes, threads at its scopes",
    "differential-java": "requests that Python and Java answer differently",
    "differential-cpp": "the same, of C++",
    "chromium": "the browser that measures the pages",
    "valkey": "Valkey in the place of Redis",
    "old-libpq": "psycopg over a libpq that has no pipelines",
    "driver-suites": "the drivers' own tests, instrumented",
    "newer": "clients that have a newer release",
}
DEAREST = 10
#: Of the log of a step that failed.
LAST_LINES = 25
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) .+", re.MULTILINE)


def steps(made: Path) -> list[dict[str, Any]]:
    """What `tools/step.sh` noted, in the order in which the steps ended."""
    file = made / "ci" / "steps.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def summary(made: Path) -> str:
    """The tables of a run whose records lie in *made*."""
    noted = steps(made)
    tiers = [
        json.loads(file.read_text("utf-8")) for file in sorted((made / "tests").glob("*.json"))
    ]
    parts = [_failed_first(noted), _steps_table(noted), *(_of_tier(tier) for tier in tiers)]
    parts.append(_dearest("fixtures", _times(tiers, "fixtures")))
    parts.append(_dearest("tests", _times(tiers, "tests")))
    return "\n".join(part for part in parts if part)


def _failed_first(noted: Sequence[dict[str, Any]]) -> str:
    failed = next((step for step in noted if step["status"]), None)
    return f"FAILED first: {failed['step']} (status {failed['status']})" if failed else ""


def _steps_table(noted: Sequence[dict[str, Any]]) -> str:
    verbs = [step for step in noted if step["step"].startswith("make ")]
    rows = [f"{'clock s':>8} {'processor s':>12}  step"]
    for step in noted:
        indent = "" if step in verbs else "  "
        name = f"{indent}{step['step']}{' (failed)' if step['status'] else ''}"
        why = WHY.get(step["step"], "")
        rows.append(f"{step['wall_s']:8.0f} {step['cpu_s']:12.0f}  {name:22} {why}")
    counted = verbs or noted
    wall_s, cpu_s = (sum(step[of] for step in counted) for of in ("wall_s", "cpu_s"))
    return "\n".join([*rows, f"{wall_s:8.0f} {cpu_s:12.0f}  in all"])


def _of_tier(tier: Mapping[str, Any]) -> str:
    load = tier["load"]
    return (
        f"tier {tier['tier']}: {len(tier['tests'])} tests by {tier['workers']} processes;"
        f" load {load['first']:.1f} at first, {load['mean']:.1f} in the mean, {load['most']:.1f}"
        f" at most; steal {tier['steal_share']:.1%}"
    )


def _times(tiers: Sequence[Mapping[str, Any]], kind: str) -> dict[str, tuple[float, int]]:
    """Seconds of each fixture or test, and how often it ran."""
    return {
        name: (cost["s"], cost.get("times", 1))
        for tier in tiers
        for name, cost in tier[kind].items()
    }


def _dearest(kind: str, costs: Mapping[str, tuple[float, int]]) -> str:
    first = sorted(costs.items(), key=lambda item: -item[1][0])[:DEAREST]
    rows = [
        f"{seconds:8.1f}  {name}{f' ({times} times)' if times > 1 else ''}"
        for name, (seconds, times) in first
    ]
    return "\n".join([f"the {len(rows)} dearest {kind}, in seconds", *rows]) if rows else ""


def failures(made: Path) -> str:
    """What failed, to be read in a minute; empty where nothing did."""
    failed = [step for step in steps(made) if step["status"]]
    return "\n".join(_failure(step, made / "ci" / f"{step['step']}.log") for step in failed)


def _failure(step: Mapping[str, Any], log: Path) -> str:
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = list(_telling(said))
    head = f"## {step['step']}: status {step['status']} after {step['wall_s']:.0f} s"
    why = f"It is there for: {WHY.get(step['step'], 'no reason that is known')}. All of it: {log}"
    return "\n".join([head, "", why, "", *(f"    {line}" for line in lines), ""])


def _telling(said: str) -> Iterator[str]:
    """The tests that failed; where no test did, the last lines."""
    tests = FAILED_TEST.findall(said)
    yield from tests or said.splitlines()[-LAST_LINES:]


def main(arguments: Sequence[str], made: Path = ROOT / "build") -> int:
    """Do what the command line says."""
    if list(arguments[:1]) != ["failed"]:
        print(summary(made))
        return 0
    found, file = failures(made), Path(arguments[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    text = found or "Nothing failed.\n"
    file.write_text(f"# What failed\n\n{text}", encoding="utf-8")
    print(f"{text}\nthis is {file}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
