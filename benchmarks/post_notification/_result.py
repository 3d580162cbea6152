"""What the observations of a run come to, and the form in which it is written down."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks._statistics import Summary, share_of, upper_bound

from ._options import OURS

if TYPE_CHECKING:
    from pathlib import Path

    from ._options import Kind, Options, Strategy
    from ._run import Round

FORMAT = 2
OUTCOMES = ("consistent", "violation", "timed_out", "failed", "missing")
#: The share of requests without an answer from which on a run says too little.
TOLERATED_LOSS = 0.01

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
    "violation_share": "of the requests with an answer, with Wilson's 95 % interval",
    "reads": "reads that follower-notify made of a post, on average",
    "primary": "for each request, on average: reads of posts that the reader's region sent to the "
    "primary, commands that the primary processed by its own count (whoever sent them), bytes of "
    "those reads on the link, both ways; null where nothing counts them",
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
        requests: how many were measured.
        outcomes: how many ended in which way.
        warmup: how the requests of the warm-up ended, which count nowhere else.
        early: barriers that returned although a later look did not show the write.
        waited: barriers that had something to wait for.
        unwatched: requests whose write the poller did not see become visible.
        violation_share: ``share``, ``low`` and ``high``, or nothing where no request was answered.
        reads: reads for each request that read.
        lines: of code that the strategy adds.
        primary: what it had to do for each request.
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
    requests: int
    outcomes: dict[str, int]
    warmup: dict[str, int]
    early: int
    waited: int
    unwatched: int
    violation_share: dict[str, float] | None
    reads: float | None
    lines: int
    window_ms: Summary | None
    attempt_ms: Summary | None
    writer_ms: Summary | None
    reader_ms: Summary | None
    overshoot_ms: Summary | None
    granularity_ms: Summary | None
    lag_ms: Summary | None
    late_ms: Summary | None
    bytes: dict[str, float] = field(default_factory=dict)
    primary: dict[str, float | None] = field(default_factory=dict)

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

        return cls(
            strategy=done.strategy,
            kind=done.kind,
            requests=len(measured),
            outcomes={name: counts[name] for name in OUTCOMES},
            warmup={name: warmup[name] for name in OUTCOMES},
            early=sum(each.early for each in measured),
            waited=sum(each.waited for each in measured),
            unwatched=sum(each.seen_ns is None for each in measured),
            violation_share=_share(counts["violation"], counts["consistent"]),
            reads=statistics.fmean(reads) if reads else None,
            lines=done.lines,
            window_ms=spread("window_ms"),
            attempt_ms=spread("attempt_ms"),
            writer_ms=spread("writer_ms"),
            reader_ms=spread("reader_ms"),
            overshoot_ms=spread("overshoot_ms"),
            granularity_ms=spread("granularity_ms"),
            lag_ms=spread("lag_ms"),
            late_ms=spread("late_ms"),
            bytes=done.sizes,
            primary=done.primary,
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


def _share(violations: int, consistent: int) -> dict[str, float] | None:
    answered = violations + consistent
    if not answered:
        return None
    share = share_of(violations, answered)
    return {"share": share.value, "low": share.low, "high": share.high}


def verdict(summaries: list[RoundSummary]) -> tuple[int, str]:
    """The exit status, and the line that explains it.

    0: the barrier prevented every violation; 1: it did not; 3: too many requests without answer
    to tell.
    """
    guarded = [each for each in summaries if each.strategy in OURS]
    wrong = sum(each.violations + each.early for each in guarded)
    if wrong:
        return 1, f"FAILED: {wrong} violations or early returns with the barrier"
    poor = [each for each in summaries if each.lost > TOLERATED_LOSS * each.requests]
    if poor:
        listed = ", ".join(f"{e.lost} of {e.requests} ({e.kind}, {e.strategy})" for e in poor)
        return 3, f"INCONCLUSIVE: no answer to {listed}: lower --rate or raise --timeout"
    if not guarded:
        return 0, "done; the barrier was not among the strategies"
    reads = sum(each.requests for each in guarded)
    lost = sum(each.lost for each in guarded)
    return 0, f"no violation with the barrier in {reads} requests" + (
        f" ({lost} without answer)" if lost else ""
    )


def machine() -> dict[str, Any]:
    """What the figures depend on beside the options."""
    return {
        "processors": os.cpu_count(),
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
