"""Runs Java's benchmarks, which `tools/bench_java.sh` has built, and shows them as a table.

Each round runs every benchmark once, in a process of its own, of which the fastest of five
iterations counts: what else the machine does meanwhile makes the others slower. Ratios are of one
round. What is shown is the median, and the least and the most of all rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "java" / "antipode-benchmarks" / "target"
RESULTS = ROOT / "build" / "bench-java"
STORES = ROOT / ".stores" / "bin"
#: Five seconds for each, after eight in which it is compiled: less does not do on a busy machine.
TIMES = ("-f", "1", "-wi", "8", "-w", "1", "-i", "5", "-r", "1", "-prof", "gc")
BYTES = "gc.alloc.rate.norm"


class Bound(NamedTuple):
    """How much an operation may cost: so many times the other one, or so many ns more."""

    times: float
    more_ns: float


OPERATIONS, READS = Bound(3.0, 5_000), Bound(1.05, 30_000)
#: Each benchmark, what it is compared with, and its bound.
COMPARED = {
    "append": ("plainSet", OPERATIONS),
    "current": ("plainGet", OPERATIONS),
    "merge": ("plainSet", OPERATIONS),
    "encode": ("plainInject", OPERATIONS),
    "decode": ("plainExtract", OPERATIONS),
    "inject": ("plainInject", OPERATIONS),
    "extract": ("plainExtract", OPERATIONS),
    "lettuceGet": ("plainLettuceGet", READS),
    "jdbcSelect": ("plainJdbcSelect", READS),
}


class Cost(NamedTuple):
    """Of one call."""

    ns: float
    bytes: float


def main() -> int:
    """Run as many rounds as the first argument says."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    RESULTS.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        properties = [*_redis(stack), *_mysql(stack)]
        found = [_round(nth, properties) for nth in range(rounds)]
    print("\n".join(_table(found)))
    return 0


def _lab(stack: ExitStack, store: str) -> dict[str, Any]:
    """The primary of *store*, which runs until *stack* ends; empty where it cannot be started."""
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", "antipode", "lab", store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PATH": f"{STORES}:{os.environ['PATH']}"},
            text=True,
        )
    )
    line = process.stdout.readline() if process.stdout else ""
    found: dict[str, Any] = json.loads(line) if line else {}
    return {**found, **found.get("primary", {})}


def _redis(stack: ExitStack) -> list[str]:
    found = _lab(stack, "redis")
    return [f"-Dredis.url={found['url']}"] if found else []


def _mysql(stack: ExitStack) -> list[str]:
    found = _lab(stack, "mysql")
    if not found:
        return []
    address = f"jdbc:mysql://{found['host']}:{found['port']}/{found['database']}"
    login = [f"-Dmysql.user={found['user']}", f"-Dmysql.password={found['password']}"]
    return [f"-Dmysql.url={address}", *login]


def _round(nth: int, properties: list[str]) -> dict[str, Cost]:
    """What each benchmark cost; those whose server is missing are left out."""
    told, results = " ".join(properties), RESULTS / f"{nth}.json"
    classpath = f"{MODULE / 'classes'}:{(MODULE / 'classpath').read_text(encoding='utf-8')}"
    left_out = [
        option
        for name, needs in (("Lettuce", "redis.url"), ("Jdbc", "mysql.url"))
        if needs not in told
        for option in ("-e", f"(?i){name}")
    ]
    command = ["java", *properties, "-cp", classpath, "org.openjdk.jmh.Main", *TIMES, *left_out]
    command += ["-rf", "json", "-rff", str(results)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return {
        one["benchmark"].rpartition(".")[2]: Cost(
            min(one["primaryMetric"]["rawData"][0]), one["secondaryMetrics"][BYTES]["score"]
        )
        for one in json.loads(results.read_text(encoding="utf-8"))
    }


def _table(rounds: list[dict[str, Cost]]) -> list[str]:
    heads = ["operation", "ns", "bytes", "compared with", "ns", "bytes", "ratio", "of rounds"]
    heads += ["more ns", "within bound"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, (other, bound) in COMPARED.items():
        if name in rounds[0] and other in rounds[0]:
            lines.append(_line(name, other, bound, rounds))
    return lines


def _line(name: str, other: str, bound: Bound, rounds: list[dict[str, Cost]]) -> str:
    ratios = [found[name].ns / found[other].ns for found in rounds]
    more = median(found[name].ns - found[other].ns for found in rounds)
    cells = [name, *_cost(name, rounds), other, *_cost(other, rounds)]
    cells += [f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", f"{more:,.0f}"]
    cells.append("yes" if median(ratios) <= bound.times or more <= bound.more_ns else "no")
    return f"| {' | '.join(cells)} |"


def _cost(name: str, rounds: list[dict[str, Cost]]) -> tuple[str, str]:
    costs = [found[name] for found in rounds]
    return f"{median(c.ns for c in costs):,.0f}", f"{median(c.bytes for c in costs):,.0f}"


if __name__ == "__main__":
    sys.exit(main())
