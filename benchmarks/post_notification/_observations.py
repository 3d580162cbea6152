"""One observation for each request, put together from what the services say."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.judge import Trial

from ._options import OURS

if TYPE_CHECKING:
    from ._options import Kind, Strategy
    from ._process import Record


@dataclass(slots=True)
class Observation:
    """What became of one request. Times are nanoseconds of CLOCK_MONOTONIC, of one machine.

    Attributes:
        id: of the post.
        kind: what the request did.
        strategy: what was done against overtaking.
        warmup: whether it came before the measured ones.
        block: the turn in which it was made.
        chosen_lag_ms: by how much replication was to be late, in the middle.
        outcome: ``consistent``, ``violation``, ``timed_out`` (the barrier), ``failed`` (any other
            error on the way) or ``missing`` (the notification was not seen in time).
        delay_ms: what it waited before it notified, if it was to wait.
        due_ns: when it was to be sent.
        sent_ns: when it was sent.
        replied_ns: when the user had the reply.
        begun_ns: when the writer's region began to write.
        acknowledged_ns: when the writer's store had acknowledged the write.
        received_ns: when the notification had arrived in the reader's region.
        barrier_ns: when the barrier was called.
        passed_ns: when it returned.
        reads: how many reads were made of it.
        read_ns: when the last of them began.
        done_ns: when its answer was there.
        version: the version that was read, 0 for no post.
        unseen_ns: when the last look at the replica began that did not show the write.
        seen_ns: when the first look ended that did.
        error: what went wrong.
    """

    id: str
    kind: Kind
    strategy: Strategy
    warmup: bool
    block: int = 0
    chosen_lag_ms: float = 0.0
    outcome: str = "missing"
    delay_ms: float | None = None
    due_ns: int | None = None
    sent_ns: int | None = None
    replied_ns: int | None = None
    begun_ns: int | None = None
    acknowledged_ns: int | None = None
    received_ns: int | None = None
    barrier_ns: int | None = None
    passed_ns: int | None = None
    reads: int | None = None
    read_ns: int | None = None
    done_ns: int | None = None
    version: int | None = None
    unseen_ns: int | None = None
    seen_ns: int | None = None
    error: str | None = None

    @property
    def overshoot_ms(self) -> float | None:
        """From true visibility to the return of the barrier, never flattered.

        The write became visible after the last look that did not show it began. A barrier that
        had nothing to wait for, because the write was visible when it was called, has none.
        """
        if self.passed_ns is None or self.unseen_ns is None or not self.exposed:
            return None
        return (self.passed_ns - self.unseen_ns) / 1e6

    @property
    def exposed(self) -> bool:
        """Whether the reader came so soon that a look that began later did not show the write."""
        came_ns = self.received_ns if self.barrier_ns is None else self.barrier_ns
        return None not in (came_ns, self.unseen_ns) and came_ns < self.unseen_ns  # type: ignore[operator]

    @property
    def early(self) -> bool:
        """Whether the library let a read pass, and a look that began later did not show the write.

        Where the barrier is part of the read, it let pass what it answered. A router may have read
        at the primary, which shows what the look, at the replica, does not.
        """
        passed_ns = self.done_ns if self.passed_ns is None else self.passed_ns
        judged = self.strategy in OURS and self.strategy != "routed"
        if not judged or passed_ns is None or self.unseen_ns is None:
            return False
        return passed_ns < self.unseen_ns

    @property
    def trial(self) -> Trial:
        """What the judge has to know of it."""
        return Trial(
            self.strategy,
            f"{self.kind}, {self.chosen_lag_ms:g} ms late",
            answered=self.outcome in ("consistent", "violation"),
            right=self.outcome == "consistent",
            told=self.seen_ns is not None,
            exposed=self.exposed,
            early=self.early,
        )

    @property
    def wait_ms(self) -> float | None:
        """How long the barrier waited, for one that had to."""
        if self.passed_ns is None or self.barrier_ns is None or not self.exposed:
            return None
        return (self.passed_ns - self.barrier_ns) / 1e6

    @property
    def idle_ms(self) -> float | None:
        """How long a barrier took that was called when the write was visible already."""
        if self.passed_ns is None or self.barrier_ns is None or self.seen_ns is None:
            return None
        if self.barrier_ns < self.seen_ns:
            return None
        return (self.passed_ns - self.barrier_ns) / 1e6

    @property
    def arrive_ms(self) -> float | None:
        """From the arrival of the notification until its reader begins: a call with headers."""
        begins_ns = self.read_ns if self.barrier_ns is None else self.barrier_ns
        if self.received_ns is None or begins_ns is None:
            return None
        return (begins_ns - self.received_ns) / 1e6

    @property
    def fetch_ms(self) -> float | None:
        """How long the last read took: a call, with its headers, and the store's client."""
        if self.read_ns is None or self.done_ns is None:
            return None
        return (self.done_ns - self.read_ns) / 1e6

    @property
    def window_ms(self) -> float | None:
        """The consistency window: from the beginning of the write until its reader has it.

        A reader whose read was wrong could not have it before the replica showed it. The window
        begins with the write and not with its acknowledgement, for which some strategies wait.
        """
        if self.begun_ns is None or self.done_ns is None:
            return None
        if self.outcome == "consistent":
            return (self.done_ns - self.begun_ns) / 1e6
        if self.seen_ns is None:
            return None
        return (max(self.done_ns, self.seen_ns) - self.begun_ns) / 1e6

    @property
    def attempt_ms(self) -> float | None:
        """From the beginning of the write until the read, consistent or not (figure 7)."""
        if self.begun_ns is None or self.read_ns is None:
            return None
        return (self.read_ns - self.begun_ns) / 1e6

    @property
    def writer_ms(self) -> float | None:
        """How long the user waited for the reply."""
        if self.sent_ns is None or self.replied_ns is None or self.acknowledged_ns is None:
            return None
        return (self.replied_ns - self.sent_ns) / 1e6

    @property
    def reader_ms(self) -> float | None:
        """From the arrival of the notification until the answer of the last read."""
        if self.received_ns is None or self.done_ns is None:
            return None
        return (self.done_ns - self.received_ns) / 1e6

    @property
    def granularity_ms(self) -> float | None:
        """How exactly the poller knows when the write became visible."""
        if self.unseen_ns is None or self.seen_ns is None:
            return None
        return (self.seen_ns - self.unseen_ns) / 1e6

    @property
    def lag_ms(self) -> float | None:
        """From the acknowledgement until the replica showed the write."""
        if self.acknowledged_ns is None or self.seen_ns is None:
            return None
        return (self.seen_ns - self.acknowledged_ns) / 1e6

    @property
    def late_ms(self) -> float | None:
        """How much later than due the request was sent."""
        if self.sent_ns is None or self.due_ns is None:
            return None
        return (self.sent_ns - self.due_ns) / 1e6

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be learnt of it."""
        if self.error is not None:
            return True
        return self.outcome != "missing" and self.seen_ns is not None

    def as_json(self) -> dict[str, Any]:
        """All fields, without those that are unknown."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Observations:
    """Gathers what the services say. Thread-safe."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._by_id: dict[str, Observation] = {}
        self.strays = 0

    def expect(self, observation: Observation) -> None:
        """Make room for a request that will be sent."""
        with self._lock:
            self._by_id[observation.id] = observation

    def take(self, record: Record) -> bool:
        """Take a record of a service; whether it was the reading of a request, its last event."""
        with self._lock:
            found = self._by_id.get(record.pop("id"))
            if found is None:
                self.strays += 1
                return False
            event = record.pop("event")
            error = record.pop("error", None)
            if error is not None:
                found.error = error
                record.setdefault("outcome", "failed")
                if found.outcome != "missing":  # a violation stays one, whatever fails after it
                    del record["outcome"]
            for name, value in record.items():
                setattr(found, name, value)
            return bool(event == "read")

    def of(self, kind: Kind, lag_ms: float) -> list[Observation]:
        """The observations of one round, in the order of their requests."""
        wanted = kind, lag_ms
        with self._lock:
            found = self._by_id.values()
            return [each for each in found if (each.kind, each.chosen_lag_ms) == wanted]

    def all(self) -> list[Observation]:
        """All of them."""
        with self._lock:
            return list(self._by_id.values())
