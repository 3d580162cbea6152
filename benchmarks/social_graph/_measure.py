"""Variants in turns under a load: what readers were shown, when, and what it cost."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks._statistics import percentile
from benchmarks.judge import Trial, rotated
from benchmarks.load import Request, arrivals, drive
from benchmarks.post_notification._wander import Wander

from ._run import Options, Run, graph_of
from ._servers import forget_timelines, servers
from ._workload import Authors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from benchmarks.load import Answer

    from ._graph import Friendship
    from ._run import Posted
    from ._servers import Servers
    from ._services import Variant
    from ._workload import Workload

_FORM = {"content-type": "application/x-www-form-urlencoded"}
#: Of ten requests of the mix six read a home timeline, three a user's own, and one composes.
_MIX = ("home",) * 6 + ("user",) * 3 + ("compose",)
_WINDOW = 10
_TIMEOUT_S = 120.0
_PATIENT = {"deadline": "60"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two regions: one way between them, in ms.

    Attributes:
        cities: of Saturn's table 1 (half of a round trip); us writes, eu reads.
        link_ms: a message, and a change of who follows whom.
        post_ms: a post, in the middle.
        spread: of posts' lags about that: log-normal, the logarithm's.
    """

    cities: str
    link_ms: float
    post_ms: float
    spread: float


#: Saturn (EuroSys 2017), table 1, has no Singapore, the paper's far region: Sydney stands for it.
#: Messages take the link alone. Posts take as long in the middle, and wander as the paper's
#: replication does: 0.1 % of its readers were shown too much in the near pair, 34 % in the far one.
PAIRS = {
    "near": Pair("Virginia to Ireland", 41, 41, 0.05),
    "far": Pair("Virginia to Sydney", 115, 115, 0.5),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    Attributes:
        pair: one of `PAIRS`.
        workload: what is composed.
        mix: whether a request in ten composes, and the others read.
        rate: requests a second, on average.
        variants: in turns.
        blocks: turns of each.
        seconds: of each turn, after the warm-up.
        warm_up_s: what is left out at the beginning of each.
        saturate: whether the rate is more than can be answered: then nobody watches, and only how
            many were answered counts.
        seed: of requests and their times.
    """

    pair: str = "far"
    workload: Workload = "deathstarbench"
    mix: bool = False
    rate: float = 100.0
    variants: tuple[Variant, ...] = ("baseline", "barrier")
    blocks: int = 5
    seconds: float = 20.0
    warm_up_s: float = 5.0
    saturate: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One variant, once. Times are in ms.

    Attributes:
        variant: which.
        block: the number of the turn.
        requests: that were measured.
        composes: of these.
        answered: composes that were acknowledged.
        achieved: good answers a second.
        driver_late_ms: how late the load driver was itself (p99).
        latencies: of composes, from when they were due: p50, p90, p99.
        reads: the same of reads of timelines, in the mix.
        windows: from a post's acknowledgement by its store until somebody in eu had read of it:
            p50, p90.
        overshoots: of barriers that waited, past the last moment at which an observer did not see
            the post, and past the first at which it did: the medians.
        wrong: readers who were shown a post that was not there.
        waited: of those to whom that would have happened, who waited.
        exposed: posts that were late.
        unanswered: posts that nobody was shown.
        cpu_us: of each service, per compose, in µs.
    """

    variant: Variant
    block: int
    requests: int
    composes: int
    answered: int
    achieved: float
    driver_late_ms: float
    latencies: list[float]
    reads: list[float]
    windows: list[float]
    overshoots: list[float]
    wrong: int = 0
    waited: int = 0
    exposed: int = 0
    unanswered: int = 0
    cpu_us: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Measured:
    """What a plan came to, so far.

    Attributes:
        plan: what was measured.
        turns: in their order.
        trials: of all of them, for the judge.
        hops: bytes of lineages, by where they were received.
    """

    plan: Plan
    turns: list[Turn] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    hops: dict[str, list[int]] = field(default_factory=dict)


def measure(plan: Plan, built: Path, say: Callable[[str], None]) -> Measured:
    """Measure a plan, over stores of its own."""
    pair = PAIRS[plan.pair]
    found = Measured(plan)
    with ExitStack() as stack:
        stores = stack.enter_context(servers(pair.post_ms, pair.link_ms))
        graph = graph_of(stores, Options(seed=plan.seed))
        stack.enter_context(Wander(stores.mongodb.set_lag, pair.post_ms, pair.spread, plan.seed))
        for block in range(plan.blocks):
            for variant in rotated(plan.variants, block):
                turn, trials = _turn(stores, built, plan, variant, block, graph)
                found.turns.append(turn)
                found.trials += trials
                say(f"block {block + 1} of {plan.blocks}, {variant}: {said(turn)}")
        if "barrier" in plan.variants and not plan.saturate:
            found.hops = _hops(stores, built, plan, graph)
    return found


def said(turn: Turn) -> str:
    """A turn in a line, for people."""
    latency = f"p50 {turn.latencies[0]:.0f} ms" if turn.latencies else "no answer"
    return (
        f"{turn.answered} of {turn.composes} composes answered, {latency}; {turn.wrong} wrong, "
        f"{turn.waited} waited; {sum(turn.cpu_us.values()) / 1000:.1f} ms of processors a compose"
    )


def write(found: Measured, path: Path, status: int, verdict: str) -> None:
    """Write a measurement as JSON."""
    report = {
        "plan": asdict(found.plan),
        "status": status,
        "verdict": verdict,
        "hops": found.hops,
        "turns": [asdict(turn) for turn in found.turns],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


class _Load:
    """The requests of a turn, and what became of them."""

    def __init__(self, plan: Plan, running: Run, graph: Sequence[Friendship], block: int) -> None:
        self._plan = plan
        self._running = running
        self._spent: dict[str, float] = {}
        self.warm_up = round(plan.rate * plan.warm_up_s)
        self.requests: list[Request] = []
        self.composed: dict[int, Posted] = {}
        authors = Authors(plan.workload, list(graph), plan.seed + block)
        total = self.warm_up + round(plan.rate * plan.seconds)
        for number in range(total):
            kind = authors.chance.choice(_MIX) if plan.mix else "compose"
            if kind == "compose":
                self.composed[number] = running.expect(authors)
            self.requests.append(self._request(kind, number, authors))

    def _request(self, kind: str, number: int, authors: Authors) -> Request:
        edges = self._running.services.edges
        if kind == "compose":
            # Where more wait than there are threads, a connection that is kept would hold one.
            closing = {"connection": "close"} if self._plan.saturate else {}
            body = urlencode(self.composed[number].compose.fields())
            url = f"http://{edges['compose']}/compose"
            return Request(url, "POST", {**_FORM, **closing}, body, keep_body=True)
        fields = urlencode({"user_id": authors.user(), "start": 0, "stop": _WINDOW})
        if kind == "home":
            return Request(f"http://{edges['eu']}/home-timeline?{fields}")
        return Request(f"http://{edges['compose']}/user-timeline?{fields}")

    def send(self, seed: int) -> tuple[list[Answer], float, float]:
        """Send them; the answers without the warm-up, good ones a second, the driver's delay."""
        due_s = arrivals(self._plan.rate, seed=seed)
        load = drive(
            self.requests,
            due_s,
            warm_up=self.warm_up,
            timeout_s=_TIMEOUT_S,
            on_answer=self._answered,
        )
        return load.answers, load.achieved(), load.late_ms

    def spent_us(self) -> dict[str, float]:
        """Processor time of each service since the warm-up, for each compose."""
        composes = sum(number >= self.warm_up for number in self.composed) or 1
        now = self._running.services.spent_s()
        return {
            name: (spent - self._spent.get(name, 0.0)) * 1e6 / composes
            for name, spent in now.items()
        }

    def _answered(self, answer: Answer) -> None:
        if not self._spent and answer.number >= self.warm_up:
            self._spent = self._running.services.spent_s()
        one = self.composed.get(answer.number)
        if one is not None and answer.status == http.client.OK:
            self._running.acknowledged(one, json.loads(answer.body))


def _turn(  # noqa: PLR0917 - what a turn is made of
    stores: Servers,
    built: Path,
    plan: Plan,
    variant: Variant,
    block: int,
    graph: Sequence[Friendship],
) -> tuple[Turn, list[Trial]]:
    options = Options(
        workload=plan.workload,
        # Where more is asked for than can be answered, calls that give up would answer nobody.
        arguments=_PATIENT if plan.saturate else {},
    )
    forget_timelines(stores)
    with Run(stores, built, variant, options, watched=not plan.saturate) as running:
        load = _Load(plan, running, graph, block)
        answers, achieved, late_ms = load.send(plan.seed + block)
        running.settle()
        cpu_us = load.spent_us()
        composed = {n: one for n, one in load.composed.items() if n >= load.warm_up}
        posts = list(composed.values())
        trials = [] if plan.saturate else [running.trial(one) for one in posts]
        good = [it for it in answers if it.good]
        turn = Turn(
            variant,
            block,
            len(answers),
            len(composed),
            sum(one.post is not None for one in posts),
            achieved,
            late_ms,
            _quantiles((it.latency_s * 1e3 for it in good if it.number in composed), 50, 90, 99),
            _quantiles(
                (it.latency_s * 1e3 for it in good if it.number not in composed), 50, 90, 99
            ),
            _quantiles(_windows_ms(running, posts), 50, 90),
            _overshoots(running, posts, trials),
            sum(it.answered and not it.right for it in trials),
            sum(it.waited for it in trials),
            sum(it.exposed for it in trials),
            sum(not it.answered for it in trials),
            cpu_us,
        )
    return turn, trials


def _windows_ms(running: Run, posts: Iterable[Posted]) -> Iterable[float]:
    for one in posts:
        stored_ns = running.notified.stored_ns.get(one.post or 0)
        shown_ns = running.shown_ns(one)
        if stored_ns is not None and shown_ns is not None:
            yield (shown_ns - stored_ns) / 1e6


def _overshoots(running: Run, posts: Sequence[Posted], trials: Sequence[Trial]) -> list[float]:
    """Of those that waited: how much later the consumer read the post, at most and at least."""
    most, least = [], []
    for one, trial in zip(posts, trials, strict=False):
        visible = running.visibility(one)
        read_ns = running.notified.read_ns.get(one.post or 0)
        if trial.waited and visible is not None and visible.seen_ns and read_ns is not None:
            most.append((read_ns - visible.unseen_ns) / 1e6)
            least.append(max(read_ns - visible.seen_ns, 0) / 1e6)
    return [*_quantiles(most, 50), *_quantiles(least, 50)]


def _hops(
    stores: Servers, built: Path, plan: Plan, graph: Sequence[Friendship]
) -> dict[str, list[int]]:
    """Bytes of the lineage wherever one is received, of a few composes."""
    few = replace(plan, rate=10.0, seconds=3.0, warm_up_s=0.0, mix=False)
    options = Options(
        workload=plan.workload,
        environment={"SOCIAL_GRAPH_HOPS": "yes"},
    )
    with Run(stores, built, "barrier", options) as running:
        _Load(few, running, graph, plan.blocks).send(plan.seed)
        running.settle()
        found: dict[str, list[int]] = {}
        for _, record in running.notified.others:
            if "hop" in record:
                found.setdefault(record["hop"], []).append(int(record["bytes"]))
    return {hop: sorted(sizes) for hop, sizes in sorted(found.items())}


def _quantiles(values: Iterable[float], *percents: float) -> list[float]:
    """Some percentiles, rounded; none of no values."""
    ordered = sorted(values)
    return [round(percentile(ordered, each), 3) for each in percents] if ordered else []


def took_s(plan: Plan) -> float:
    """About how long a plan takes, in seconds."""
    drains_s = plan.seconds * 2 if plan.saturate else 3.0
    turn_s = 8.0 + plan.warm_up_s + plan.seconds + drains_s
    return 25.0 + turn_s * plan.blocks * len(plan.variants) + 15.0
