"""What an evaluation found, as docs/results/results.json has it: pages are made of this alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from benchmarks.judge import INCONCLUSIVE, differ, over_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks._statistics import Interval

FORMAT = 2
FILE = "results.json"


@dataclass(frozen=True, slots=True)
class Point:
    """The requests of a round that waited equally long before they notified.

    Attributes:
        delay_ms: how long.
        violations: of them.
        answered: how many were answered at all.
    """

    delay_ms: float
    violations: int
    answered: int


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One kind of request with one strategy.

    Attributes:
        strategy: what was done against overtaking.
        kind: what the requests did.
        requests: how many were measured.
        outcomes: how many ended in which way.
        warmup: how those ended that came before.
        early: barriers that returned although a later look did not show the write.
        medians: of times, by their names in the result of the benchmark.
        p99s: of the same times.
        chosen_lag_ms: by how much replication was to be late, in the middle.
        by_block: the medians of each turn; None where a turn has no such time. What is said of how
            sure a figure is comes from these.
        exposed: requests whose read would have been wrong, had it been made at once.
        waited: of those, the ones that were answered right.
        unwatched: requests of which the observer cannot tell.
        quantiles: of some of them, at equal steps from the least to the greatest.
        points: the requests by their delay, where they had several.
        bytes: means for each request.
        primary: what the primary had to do for each request, where that is counted.
        replica: the same of the replica.
        lines: of code that the strategy adds, where that is counted.
    """

    strategy: str
    kind: str
    requests: int
    outcomes: dict[str, int]
    warmup: dict[str, int]
    early: int
    medians: dict[str, float]
    p99s: dict[str, float]
    chosen_lag_ms: float = 0.0
    by_block: dict[str, list[float | None]] = field(default_factory=dict)
    exposed: int = 0
    waited: int = 0
    unwatched: int = 0
    quantiles: dict[str, list[float]] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    bytes: dict[str, float] = field(default_factory=dict)
    primary: dict[str, float | None] = field(default_factory=dict)
    replica: dict[str, float | None] = field(default_factory=dict)
    lines: int | None = None

    @property
    def violations(self) -> int:
        """How many reads were not consistent."""
        return self.outcomes["violation"]

    @property
    def answered(self) -> int:
        """How many requests ended with a read."""
        return self.violations + self.outcomes["consistent"]

    @property
    def lost(self) -> int:
        """How many gave no answer: timed out, failed or missing."""
        return self.requests - self.answered

    def interval(self, name: str) -> Interval | None:
        """The mean of a time's medians in each turn, with its interval; None for too few turns."""
        return over_blocks(self._turns(name).values())

    def above(self, other: RoundResult, name: str) -> Interval | None:
        """By how much a time is above that of *other*, turn by turn; None for too few turns."""
        return differ(self._turns(name), other._turns(name))

    def _turns(self, name: str) -> dict[int, float]:
        turns = enumerate(self.by_block.get(name, ()))
        return {number: value for number, value in turns if value is not None}


@dataclass(frozen=True, slots=True)
class FootprintResult:
    """What a post takes in a store, on average.

    Attributes:
        variant: as in the module footprint.
        payload_bytes: key, value and what lies beside.
        store_bytes: by which the store grew.
    """

    variant: str
    payload_bytes: float
    store_bytes: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run of the plan.

    Attributes:
        name: in the plan.
        sections: what it is for.
        post_storage: where posts were kept.
        notifier: what carried notifications; empty where nothing was notified.
        profile: the name of the lags, or of those that it has by delay; empty where they are none
            of table 1's.
        command: what was typed.
        began: when, in UTC.
        took_s: seconds, servers and services included.
        status: of the program.
        verdict: what it said in the end.
        load: of the machine, before and after, over one minute.
        busy: what is to be said of a machine that was not quiet when the run began.
        rounds: in their order.
        counts: what the store's own figure counts, for a footprint.
        footprints: by variant.
        emulators: of the post storage and the notifier, what is an emulator of a service.
    """

    name: str
    sections: list[str]
    post_storage: str
    notifier: str
    profile: str
    command: str
    began: str
    took_s: float
    status: int
    verdict: str = ""
    load: list[float] = field(default_factory=list)
    busy: str = ""
    rounds: list[RoundResult] = field(default_factory=list)
    counts: str = ""
    footprints: list[FootprintResult] = field(default_factory=list)
    emulators: list[str] = field(default_factory=list)

    @property
    def unclear(self) -> bool:
        """Whether it was to show that the barrier was needed, and too little came early for that.

        A run of the barrier alone is not: the round without it is in another run.
        """
        alone = bool(self.of("barrier")) and not self.of("none")
        return self.status == INCONCLUSIVE and not alone

    def of(
        self, strategy: str, kind: str | None = None, lag_ms: float | None = None
    ) -> list[RoundResult]:
        """The rounds of a strategy, of one kind or of all, at one lag or at all."""
        return [
            each
            for each in self.rounds
            if each.strategy == strategy
            and kind in (None, each.kind)
            and lag_ms in (None, each.chosen_lag_ms)
        ]


@dataclass(frozen=True, slots=True)
class Results:
    """Everything.

    Attributes:
        size: ``full`` or ``quick``.
        command: what was typed to make all of it.
        code: a digest of what ran.
        commit: of the project, with a plus where files differed.
        machine: where.
        versions: of client libraries and servers.
        missing: planned runs without a result.
        runs: in the order of the plan.
    """

    size: str
    command: str
    code: str
    commit: str
    machine: dict[str, Any]
    versions: dict[str, str]
    missing: list[str]
    runs: list[RunResult]

    def of(self, section: str) -> list[RunResult]:
        """The runs of a section."""
        return [run for run in self.runs if section in run.sections]

    def write(self, path: Path) -> None:
        """Write a line for each run, so that two results can be compared."""
        head = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "runs"}
        head = {"evaluation": "post-notification", "format": FORMAT, **head}
        begun = json.dumps(head, indent=1)[:-2]
        lines = ",\n".join("  " + json.dumps(asdict(run)) for run in self.runs)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{begun},\n "runs": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def read(path: Path) -> Results:
    """What `Results.write` wrote.

    Raises:
        OSError: there is no such file.
        ValueError: it is of another format.
    """
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.pop("format") != FORMAT:
        msg = f"{path} is of another format: make it anew"
        raise ValueError(msg)
    del found["evaluation"]
    return Results(**{**found, "runs": [_run(each) for each in found["runs"]]})


def _run(found: dict[str, Any]) -> RunResult:
    rounds = [_round(each) for each in found["rounds"]]
    footprints = [FootprintResult(**each) for each in found["footprints"]]
    return RunResult(**{**found, "rounds": rounds, "footprints": footprints})


def _round(found: dict[str, Any]) -> RoundResult:
    points = [Point(**each) for each in found["points"]]
    return RoundResult(**{**found, "points": points})


def share(rounds: Iterable[RoundResult | Point]) -> float | None:
    """The share of violations among the answered requests of some rounds, or of parts of them.

    Without protection the chosen lags dictate it, so it comes without an interval.
    """
    counted: Sequence[RoundResult | Point] = list(rounds)
    answered = sum(each.answered for each in counted)
    return sum(each.violations for each in counted) / answered if answered else None
