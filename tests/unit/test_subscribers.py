"""Who waits at a watcher, in order: against the plain scan, which asks for all and tells all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pytest

from antipode import Promise, Status, WriteId
from antipode._barrier.decisions import Policies, Wait
from antipode._barrier.subscribers import FEW, MOST_PLACES, Subscribers
from antipode.shim import Observation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from antipode._barrier.subscribers import Waiting
    from antipode._lineage.write_id import Dependency

POSTS = "posts"
HOUR = 500_000
#: Polls that follow each other at once: enough for all places in turn, and no endless row.
MOST_POLLS = 30


class Someone:
    """A barrier that waits at one watcher."""

    def __init__(self, wanted: Iterable[Dependency], now_s: float, *, reports: bool) -> None:
        policies = Policies(
            "return", "report" if reports else "raise", "raise", horizon_h=168, hour=HOUR
        )
        self.deadline_s = now_s + 30
        self.wait = Wait({POSTS: wanted}, policies=policies, now_s=now_s, unix_s=0, timeout_s=30)

    def wanted(self, datastore: str) -> Collection[Dependency]:
        return () if self.wait.finished else self.wait.pending.get(datastore, ())

    def take(self, datastore: str, observation: Observation, left_s: float | None = None) -> None:
        if left_s is not None:
            self.wait.wait_on(left_s)
        self.wait.record(datastore, observation, 1.0)

    def unreachable(self, datastore: str, cause: str) -> None:
        self.wait.unreachable(datastore, cause, 1.0)

    def failed(self, datastore: str, cause: str) -> None:
        self.wait.failed(datastore, cause, 1.0)

    @property
    def outcomes(self) -> dict[Dependency, tuple[Status, str]]:
        return {each.write: (each.status, each.server) for each in self.wait.result(1.0).outcomes}


class Scan(Protocol):
    """What both ways of waiting can do."""

    def join(self, someone: Someone) -> None: ...
    def leave(self, someone: Someone) -> None: ...
    def poll(self, server: Server) -> None: ...


@dataclass
class Log:
    """What a server has of one log or key."""

    position: int = 0
    end: int = 10**9
    is_known: bool = True

    def status(self, version: int) -> Status:
        if not self.is_known:
            return Status.UNKNOWN_LOG
        if version > self.end:
            return Status.LOST
        return Status.VISIBLE if version <= self.position else Status.NOT_YET


@dataclass
class Server:
    """What can be polled: logs in order, and things that have none."""

    incarnation: int = 1
    away: bool = False
    logs: dict[str, Log] = field(default_factory=dict)
    things: dict[Dependency, Status] = field(default_factory=dict)

    def observe(self, wanted: Collection[Dependency]) -> Observation:
        writes = [each for each in wanted if isinstance(each, WriteId)]
        promises = [each for each in wanted if isinstance(each, Promise)]
        return Observation(
            f"server-{self.incarnation}",
            {each: self.status(each) for each in writes},
            promises={each: self.things.get(each, Status.NOT_YET) for each in promises},
        )

    def status(self, write: WriteId) -> Status:
        if isinstance(write.version, str):
            return self.things.get(write, Status.NOT_YET)
        return self.logs.setdefault(write.key, Log()).status(write.version)


class Plain:
    """The plain scan."""

    def __init__(self) -> None:
        self.waiting: list[Someone] = []

    def join(self, someone: Someone) -> None:
        self.waiting.append(someone)

    def leave(self, someone: Someone) -> None:
        if someone in self.waiting:
            self.waiting.remove(someone)

    def poll(self, server: Server) -> None:
        wanted = {found for each in self.waiting for found in each.wanted(POSTS)}
        for each in self.waiting if wanted else ():
            if server.away:
                each.unreachable(POSTS, "away")
            else:
                each.take(POSTS, server.observe(wanted))
        self.waiting = [each for each in self.waiting if each.wanted(POSTS)]


class Ordered:
    """The library's own."""

    def __init__(self) -> None:
        self.subscribers = Subscribers()
        self.polls = 0
        self.asked: list[int] = []  # Logs and keys of each poll.
        self.sizes: list[int] = []  # And all that it was for.

    def join(self, someone: Someone) -> None:
        self.subscribers.join(someone, someone.wanted(POSTS), 0)

    def leave(self, someone: Someone) -> None:
        self.subscribers.leave(someone)

    def poll(self, server: Server) -> None:
        """All polls that follow each other at once."""
        again, polls = bool(self.subscribers), 0
        while again:
            self.polls, polls = self.polls + 1, polls + 1
            assert polls < MOST_POLLS
            wanted = self.subscribers.asks()
            self.sizes.append(len(wanted))
            self.asked.append(len({getattr(each, "key", each) for each in wanted}))
            told: Collection[Waiting]
            if server.away:
                told = self.subscribers.failed()
                for each in told:
                    each.subscriber.unreachable(POSTS, "away")
            else:
                shown = self.subscribers.shown(server.observe(wanted), 1.0)
                told = shown.whom
                for each, left_s in shown.whom.items():
                    each.subscriber.take(POSTS, shown.observation, left_s)
            self.subscribers.settle(told, POSTS)
            again = self.subscribers.unasked and bool(self.subscribers)


def log(name: str, version: int, *, covering: bool = False) -> WriteId:
    return WriteId(POSTS, name, version, HOUR, covering=covering)


class Program:
    """One random program, done by both."""

    def __init__(self, seed: int, places: int) -> None:
        self.random = random.Random(seed)
        self.server = Server()
        self.names = [f"log-{nth}" for nth in range(places)]
        self.ordered = Ordered()
        self.scans: tuple[Scan, Scan] = (Plain(), self.ordered)
        self.waiting: list[tuple[Someone, Someone]] = []
        self.reached = 0

    def one(self) -> Dependency:
        kind = self.random.random()
        if kind < 0.8:
            version = self.reached + self.random.randrange(1, 100)
            return log(self.random.choice(self.names), version, covering=kind < 0.2)
        if kind < 0.9:
            return Promise(POSTS, f"{self.random.randrange(40):032x}", 10**9)
        return WriteId(POSTS, "object", f"v{self.random.randrange(40)}", HOUR)

    def join(self) -> None:
        wanted = [self.one() for _ in range(self.random.choice([1, 1, 1, 1, 2, 3]))]
        reports = self.random.random() < 0.2
        both = Someone(wanted, 0.0, reports=reports), Someone(wanted, 0.0, reports=reports)
        self.waiting.append(both)
        for scan, someone in zip(self.scans, both, strict=True):
            scan.join(someone)

    def leave(self) -> None:
        """A deadline, or a cancelled wait."""
        if self.waiting:
            both = self.waiting.pop(self.random.randrange(len(self.waiting)))
            for scan, someone in zip(self.scans, both, strict=True):
                scan.leave(someone)
            self.compare(both)

    def change(self) -> None:
        """Logs go on, end, are unknown for a while or go back; things come to be."""
        names = self.random.sample(
            self.names, self.random.randrange(1, min(len(self.names), 6) + 1)
        )
        for each in (self.server.logs.setdefault(name, Log()) for name in names):
            kind = self.random.random()
            if kind < 0.8:
                each.position = min(each.position + self.random.choice([1, 1, 5, 40]), each.end)
            elif kind < 0.85:
                each.end = max(each.position, self.reached) + self.random.randrange(30)
            elif kind < 0.9:
                each.is_known = True
            else:  # What was shown may be gone.
                self.server.incarnation += 1
                each.position //= self.random.choice([1, 2])
                each.end = self.random.choice([each.position, 10**9])
                each.is_known = self.random.random() < 0.7
        self.reached = max(each.position for each in self.server.logs.values())
        promise = Promise(POSTS, f"{self.random.randrange(40):032x}", 10**9)
        status = self.random.choice([Status.VISIBLE, Status.NOT_YET, Status.ABANDONED])
        thing = WriteId(POSTS, "object", f"v{self.random.randrange(40)}", HOUR)
        if self.server.things.get(promise) is not Status.VISIBLE:  # The first record stays.
            self.server.things[promise] = status
        self.server.things[thing] = Status.VISIBLE
        self.server.away = self.random.random() < 0.05

    def poll(self) -> None:
        for scan in self.scans:
            scan.poll(self.server)
        for both in self.waiting:
            plain, ordered = both
            assert bool(plain.wanted(POSTS)) == bool(ordered.wanted(POSTS)), (
                plain.outcomes,
                ordered.outcomes,
            )
            if not plain.wanted(POSTS):
                self.compare(both)
        self.waiting = [both for both in self.waiting if both[0].wanted(POSTS)]

    def compare(self, both: tuple[Someone, Someone]) -> None:
        plain, ordered = both
        assert ordered.outcomes == plain.outcomes

    def run(self, steps: int, joins: int) -> None:
        acts = [self.join] * joins + [self.leave] + [self.change] * 2 + [self.poll] * 3
        for _ in range(steps):
            self.random.choice(acts)()
        while self.waiting:
            self.leave()
        assert not self.ordered.subscribers.joined
        assert not self.ordered.subscribers.promised


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("places", "joins", "steps"),
    [(1, 6, 400), (1, 20, 800), (3, 6, 400), (2 * MOST_PLACES, 6, 200)],
)
def test_nobody_is_missed(seed: int, places: int, joins: int, steps: int) -> None:
    """Whatever joins, leaves, comes and goes: waits end when they end by the plain scan."""
    program = Program(seed, places)
    program.run(steps, joins)
    assert max(program.ordered.asked, default=0) <= MOST_PLACES


def test_a_poll_asks_for_the_first_and_the_last() -> None:
    """All of a log that is shown is met at once, and what then waits is not asked for whole."""
    waiting, server = Ordered(), Server()
    everyone = [Someone([log("log", version)], 0.0, reports=False) for version in range(1, 201)]
    for each in everyone:
        waiting.join(each)
    waiting.poll(server)  # All of these are new.
    assert waiting.sizes == [200]
    first_and_last = FEW + 1
    for position, sizes in (
        (FEW, [first_and_last, 4 * FEW]),  # More than the first may be met.
        (FEW, [first_and_last]),
        (100, [first_and_last, 4 * FEW, 16 * FEW]),
        (100, [first_and_last]),
        (200, [first_and_last]),
    ):
        server.logs["log"].position = position
        before = len(waiting.sizes)
        waiting.poll(server)
        assert waiting.sizes[before:] == sizes
        met = [not each.wanted(POSTS) for each in everyone]
        assert met == [True] * position + [False] * (200 - position)
