"""What the observations of a run come to, and the form in which it is written down."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks._machine import in_use
from benchmarks._statistics import Interval, Summary, percentile, upper_bound
from benchmarks.judge import Verdict, judge, over_blocks

from ._options import EMULATORS, OURS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ._observations import Observation
    from ._options import Kind, Options, Strategy
    from ._run import Round

FORMAT = 6
OUTCOMES = ("consistent", "violation", "timed_out", "failed", "missing")
#: Times whose medians are compared.
_COMPARED = ("window_ms", "writer_ms", "reader_ms", "wait_ms", "overshoot_ms")

DEFINITIONS = {
    "clock": "CLOCK_MONOTONIC of one machine, in nanoseconds",
    "violation": "the read in the reader's region finds no post (new), an older version (update) "
    "or still the post (delete)",
    "window_ms": "from the beginning of the write until follower-notify has a consistent answer: "
    "done_ns - begun_ns; after a violation not before the replica showed the write: "
    "max(done_ns, seen_ns) - begun_ns",
    "attempt_ms": "from the beginning of the write until the read began, the last of several, "
    "consistent or not: read_ns - begun_ns",
    "writer_ms": "how long the user waited for the reply: replied_ns - sent_ns",
    "reader_ms": "from the arrival of the notification in the reader's region until the answer of "
    "the last read: done_ns - received_ns",
    "violation_share": "of the requests with an answer; without protection the chosen lags dictate "
    "it",
    "exposed": "requests whose reader came so soon that a look that began later did not show the "
    "write: their reads would have been wrong",
    "waited": "of those, the ones that were answered consistently once the write was visible",
    "unwatched": "requests whose write the poller did not see become visible",
    "medians": "the mean of the blocks' medians, with Student's 95 % interval over the blocks; "
    "null with fewer than five",
    "wait_ms": "how long barriers that had to wait did: passed_ns - barrier_ns",
    "reads": "reads that follower-notify made of a post, on average",
    "primary": "for each request, on average: reads of posts that the reader's region sent to the "
    "primary, commands that the primary processed by its own count (whoever sent them), bytes of "
    "those reads on the link, both ways; null where nothing counts them",
    "replica": "for each request, on average: commands that the replica processed by its own "
    "count, without those of the poller, and milliseconds of processor time of its process, the "
    "poller's looks included; null where nothing counts them",
    "lines": "lines of code that the strategy adds, without blank lines, comments, docstrings and "
    "imports: of its class and, for the barrier, of the tracing and the shims' ends",
    "overshoot_ms": "from true visibility until the barrier returned, for barriers that had to "
    "wait: passed_ns - unseen_ns",
    "granularity_ms": "how exactly the poller knows when the write became visible, by which "
    "overshoot_ms may be too high: seen_ns - unseen_ns",
    "lag_ms": "from the acknowledgement until the replica showed the write: "
    "seen_ns - acknowledged_ns; negative where the acknowledgement waited for the replica",
}


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """One round in figures; all but the warm-up counts are of the measured requests alone.

    Attributes:
        strategy: what was done against overtaking.
        kind: what the requests did.
        chosen_lag_ms: by how much replication was to be late, in the middle.
        requests: how many were measured.
        outcomes: how many ended in which way.
        warmup: how the requests of the warm-up ended, which count nowhere else.
        blocks: turns in which the requests were made.
        early: reads that the library let pass although a later look did not show the write.
        exposed: requests whose read would have been wrong, had it been made at once.
        waited: of those, the ones that were answered right.
        unwatched: requests whose write the poller did not see become visible.
        violation_share: of the answered requests, or nothing where none was.
        medians: of the blocks' medians of some times: what is claimed of them.
        reads: reads for each request that read.
        lines: of code that the strategy adds.
        primary: what it had to do for each request.
        replica: the same of the replica.
        window_ms: see `DEFINITIONS`, as all that follow.
        attempt_ms: of all that read.
        overshoot_ms: of the barriers that waited.
        granularity_ms: of the poller.
        lag_ms: of the post storage.
        late_ms: how much later than due the requests were sent.
        bytes: means for each request.
    """

    strategy: Strategy
    kind: Kind
    chosen_lag_ms: float
    requests: int
    outcomes: dict[str, int]
    warmup: dict[str, int]
    blocks: int
    early: int
    exposed: int
    waited: int
    unwatched: int
    violation_share: float | None
    reads: float | None
    lines: int
    window_ms: Summary | None
    attempt_ms: Summary | None
    writer_ms: Summary | None
    reader_ms: Summary | None
    wait_ms: Summary | None
    overshoot_ms: Summary | None
    granularity_ms: Summary | None
    lag_ms: Summary | None
    late_ms: Summary | None
    medians: dict[str, Interval | None] = field(default_factory=dict)
    bytes: dict[str, float] = field(default_factory=dict)
    primary: dict[str, float | None] = field(default_factory=dict)
    replica: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, done: Round) -> RoundSummary:
        """The figures of a round."""
        measured = [each for each in done.observations if not each.warmup]
        counts = Counter(each.outcome for each in measured)
        reads = [each.reads for each in measured if each.reads is not None]
        warmup = Counter(each.outcome for each in done.observations if each.warmup)

        def spread(name: str) -> Summary | None:
            found = (getattr(each, name) for each in measured)
            return Summary.of(value for value in found if value is not None)

        trials = [each.trial for each in measured]
        answered = counts["violation"] + counts["consistent"]
        return cls(
            strategy=done.strategy,
            kind=done.kind,
            chosen_lag_ms=done.lag_ms,
            requests=len(measured),
            outcomes={name: counts[name] for name in OUTCOMES},
            warmup={name: warmup[name] for name in OUTCOMES},
            blocks=len({each.block for each in measured}),
            early=sum(each.early for each in measured),
            exposed=sum(each.exposed for each in measured),
            waited=sum(trial.waited for trial in trials),
            unwatched=sum(not trial.told for trial in trials),
            violation_share=counts["violation"] / answered if answered else None,
            reads=statistics.fmean(reads) if reads else None,
            lines=done.lines,
            window_ms=spread("window_ms"),
            attempt_ms=spread("attempt_ms"),
            writer_ms=spread("writer_ms"),
            reader_ms=spread("reader_ms"),
            wait_ms=spread("wait_ms"),
            overshoot_ms=spread("overshoot_ms"),
            granularity_ms=spread("granularity_ms"),
            lag_ms=spread("lag_ms"),
            late_ms=spread("late_ms"),
            medians={name: _over_blocks(measured, name) for name in _COMPARED},
            bytes=done.sizes,
            primary=done.primary,
            replica=done.replica,
        )

    @property
    def violations(self) -> int:
        """How many reads were not consistent."""
        return self.outcomes["violation"]

    @property
    def lost(self) -> int:
        """How many requests gave no answer: timed out, failed or missing."""
        return self.requests - self.violations - self.outcomes["consistent"]

    @property
    def not_excluded(self) -> float:
        """The largest share of violations that this round does not exclude (95 %)."""
        answered = self.requests - self.lost
        return upper_bound(self.violations, answered) if answered else 1.0


def _over_blocks(measured: Iterable[Observation], name: str) -> Interval | None:
    """The median of a time in each block, and how they lie."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for each in measured:
        value = getattr(each, name)
        if value is not None:
            found[each.block].append(value)
    return over_blocks(percentile(sorted(values), 50) for values in found.values())


def verdict(rounds: Iterable[Round]) -> Verdict:
    """What the judge makes of a run."""
    trials = (each.trial for done in rounds for each in done.observations if not each.warmup)
    return judge(trials, guarded=OURS, unguarded="none", guard="the barrier")


def machine() -> dict[str, Any]:
    """What the figures depend on beside the options."""
    return {
        "processors": os.cpu_count(),
        "in_use": in_use(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def write_json(
    path: Path,
    options: Options,
    rounds: list[Round],
    before: dict[str, Any],
    *,
    status: int,
    said: str,
) -> None:
    """Write everything down, every observation included. See result.schema.json."""
    result = {
        "benchmark": "post-notification",
        "format": FORMAT,
        "options": options.as_json(),
        "emulators": sorted({options.post_storage, options.notifier} & EMULATORS),
        "machine": {**before, "load_after": os.getloadavg()},
        "definitions": DEFINITIONS,
        "verdict": {"status": status, "text": said},
        "rounds": [
            {
                "summary": asdict(RoundSummary.of(done)),
                "observations": [each.as_json() for each in done.observations],
            }
            for done in rounds
        ],
    }
    path.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")
