"""What is run: each run is one call of a benchmark's own command line, which anybody can repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.post_notification._options import (
    EMULATORS,
    NOTIFIERS,
    OF_DRY_RUNS,
    POST_STORAGES,
    STRATEGIES,
)
from benchmarks.post_notification._strategies import stores_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.post_notification._options import Strategy

SECTIONS = ("table1", "figure6", "figure7", "table3", "strategies", "sweep", "nothing")
#: Those that show times; what the others count holds on a loaded machine, too.
TIMED_SECTIONS = ("figure7", "strategies", "sweep", "nothing")
#: What takes too long to come with the others: run where it is named.
LONG_SECTIONS = ("wandering",)
APPLICATION = "benchmarks.post_notification"
FOOTPRINT = "benchmarks.evaluation.footprint"

#: Requests a second: so few that two processors are far from busy with every pair and strategy.
RATE = 80
#: The same where violations are counted and no time is claimed.
COUNT_RATE = 120
#: The most where something is an emulator, a program in Python, or copies one object after another.
SLOW_RATE = 40
SLOW = EMULATORS | {"seaweedfs"}
#: Seconds until the servers of a store run, until the services of one strategy do, and that a turn
#: takes beside its requests; of a server alone to see how much room posts take there.
_SERVERS_S = {
    "redis": 2,
    "mysql": 7,
    "mariadb": 5,
    "postgresql": 5,
    "mongodb": 5,
    "rabbitmq": 9,
    "activemq": 10,
    "dynamodb": 4,
    "seaweedfs": 8,
    "sns": 4,
}
_SERVICES_S, _TURN_S = 1.0, 0.2
_FOOTPRINT_S = {
    "redis": 4,
    "mysql": 17,
    "mariadb": 10,
    "postgresql": 12,
    "mongodb": 22,
    "dynamodb": 20,
    "seaweedfs": 30,
}
#: The most posts of which one is asked what it keeps that does not count pages.
_UNCOUNTED_POSTS = 500
#: Milliseconds by which posts, or notifications, are late where they are.
LAG_MS = 100
#: One way between the regions, where strategies are compared: nothing that crosses is faster.
LINK_MS = 40
#: How the delays of ten notifications compare with the lag of posts: nine are shorter, or one is.
#: None is in both, so that one run can have both.
_MOSTLY_SHORTER = (0, 5, 10, 20, 30, 40, 50, 60, 70, 150)
_MOSTLY_LONGER = (25, 160, 170, 180, 190, 200, 210, 220, 240, 260)
#: The notifier of figures 6 and 7: the broker, where the paper has SNS.
FIGURE_NOTIFIER = "rabbitmq"
#: Post storages beside the paper's own, and the notifiers that they are tried with.
BESIDE = ("embedded", "mariadb")
NOTIFIERS_BESIDE = ("embedded", "rabbitmq")
#: The notifiers of the paper's table 1.
PAPER_NOTIFIERS = ("rabbitmq", "activemq", "sns", "dynamodb")
#: In table 1 each post is as late as the next.
_STEADY = ("--lag-spread", "0")
#: In figure 6, and where strategies are compared, the lag wanders, as it does in the paper: nobody
#: can know how long to sleep.
LAG_SPREAD = 0.5
DELAYS_MS = (0, 25, 50, 75, 100, 125, 150, 200, 250, 300)
#: What is asked what it costs where there is nothing to wait for, of the same stores as the sweep.
IDLE_STRATEGIES: tuple[Strategy, ...] = ("none", "barrier", "instrumented", "at-read", "auto")
#: The sweep: how late posts are, in the middle; one way between regions that are as near as the
#: least of it; and what is compared, where a store has it.
SWEEP_LAGS_MS = (25, 50, 100, 200, 400)
SWEEP_LINK_MS = 20
SWEEP_STORES = ("redis", "mysql")
SWEEP_STRATEGIES: tuple[Strategy, ...] = ("none", "instrumented", "primary", "sticky", "session")
#: What does the same whatever the store, and is compared over those of the sweep, and over those
#: that have no strategy of their own.
OF_NO_STORE: tuple[Strategy, ...] = ("artefact", "sleep", "retry")
OF_NO_STORE_OVER = (*SWEEP_STORES, "dynamodb", "seaweedfs")


@dataclass(frozen=True, slots=True)
class Profile:
    """How late posts and notifications are: a row of table 1.

    Attributes:
        name: for files and tables.
        says: what is late, and how often.
        paper: the settings of the paper's table 1 that it stands for.
        delays_ms: what its notifications wait in the run that has all such profiles; empty where
            it has a run of its own.
    """

    name: str
    says: str
    paper: str
    delays_ms: tuple[int, ...] = ()


def _delays(delays_ms: Sequence[int]) -> str:
    return ",".join(str(each) for each in delays_ms)


PROFILES = (
    Profile(
        "posts-far",
        f"every post {LAG_MS} ms late, notifications at once",
        "S3 with SNS or AMQ (100 %)",
    ),
    Profile(
        "posts-late",
        f"posts {LAG_MS} ms late, nine of ten notifications faster than that",
        "MySQL, DynamoDB or Redis with SNS (88 % to 95 %)",
        _MOSTLY_SHORTER,
    ),
    Profile(
        "notices-late",
        f"posts {LAG_MS} ms late, nine of ten notifications slower than that",
        "MySQL, DynamoDB or Redis with AMQ, S3 with DynamoDB (7 % to 13 %)",
        _MOSTLY_LONGER,
    ),
    Profile(
        "notices-far",
        f"posts at once, every notification {LAG_MS} ms late",
        "MySQL, DynamoDB or Redis with DynamoDB (0 %)",
    ),
)
#: The run of those that differ in delays.
DELAYED = "delayed"
#: The runs of table 1: how late posts are, and what else they are told.
_LAGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "posts-far": (LAG_MS, ()),
    DELAYED: (LAG_MS, ("--notify-delay-ms", _delays(_MOSTLY_SHORTER + _MOSTLY_LONGER))),
    "notices-far": (0, ("--notifier-lag-ms", str(LAG_MS))),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        name: ``full`` or ``quick``.
        blocks: turns in which strategies that are compared make their requests, with services of
            their own.
        kinds_requests: of each kind, without and with the barrier, for the profile ``posts-far``.
        profile_requests: of new posts, for the other profiles.
        delay_requests: of new posts, for each delay of figure 6.
        strategy_requests: of new posts and of updates, for each strategy.
        sweep_requests: of updates, for each strategy and each lag of the sweep.
        wandering_requests: of all kinds, of each pair, with the barrier; a tenth as many without.
        posts: that are written to see how much room they take.
        post_storages: that are measured unless others are named.
    """

    name: str
    blocks: int
    kinds_requests: int
    profile_requests: int
    delay_requests: int
    strategy_requests: int
    sweep_requests: int
    wandering_requests: int
    posts: int
    post_storages: tuple[str, ...]


FULL = Size("full", 5, 240, 150, 60, 60, 60, 3000, 5000, POST_STORAGES)
QUICK = Size("quick", 2, 60, 40, 12, 40, 20, 60, 500, ("embedded", "redis"))


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a program, whose result is one JSON file.

    Attributes:
        name: of the file.
        sections: what needs it.
        module: the program.
        arguments: for it, without ``--json``.
        post_storage: where posts are kept.
        notifier: what carries notifications; empty where nothing is notified.
        profile: the name of the lags, or `DELAYED`; empty where they are none of table 1's.
        requests: how many it sends, warm-up included.
        expected_s: about how long it takes, servers and services included.
        late: whether posts are late; where they are not, nothing can be shown, and it says so.
    """

    name: str
    sections: frozenset[str]
    module: str
    arguments: tuple[str, ...]
    post_storage: str
    notifier: str = ""
    profile: str = ""
    requests: int = 0
    expected_s: float = 0.0
    late: bool = True

    @property
    def command(self) -> tuple[str, ...]:
        """What to type, without the place of the result."""
        return ("python", "-m", self.module, *self.arguments)


def plan(
    size: Size,
    sections: Sequence[str] = SECTIONS,
    post_storages: Sequence[str] = POST_STORAGES,
    notifiers: Sequence[str] = NOTIFIERS,
) -> list[Run]:
    """The runs that these sections need, in the order in which they are made."""
    every = [
        *_table1(size, post_storages, notifiers),
        *(_figure6(size, store) for store in post_storages if FIGURE_NOTIFIER in notifiers),
        *(_strategies(size, store) for store in post_storages if FIGURE_NOTIFIER in notifiers),
        *(
            made(size, store)
            for made in (_sweep, _nothing)
            for store in post_storages
            if store in SWEEP_STORES and FIGURE_NOTIFIER in notifiers
        ),
        *(_footprint(size, store) for store in post_storages),
        *_wandering(size, post_storages, notifiers),
    ]
    return [run for run in every if run.sections.intersection(sections)]


def paired(post_storage: str, notifier: str) -> bool:
    """Whether table 1 has a pair: PostgreSQL and the paper's with each of its notifiers.

    What stands beside them, a post storage or a notifier, is tried where that takes little time.
    """
    if post_storage in BESIDE:
        return notifier in NOTIFIERS_BESIDE
    return notifier in PAPER_NOTIFIERS or post_storage not in SLOW


def _application(
    name: str,
    sections: frozenset[str],
    pair: tuple[str, str],
    *,
    requests: int,
    blocks: int = 1,
    kinds: str = "new",
    strategies: Sequence[str] = ("none", "barrier"),
    rate: int = RATE,
    lags_ms: Sequence[int] = (LAG_MS,),
    options: tuple[str, ...],
    profile: str = "",
) -> Run:
    post_storage, notifier = pair
    if SLOW.intersection(pair):
        rate = min(rate, SLOW_RATE)
    warmup = min(max(requests // blocks // 20, 5), 100)
    options = ("--lag-ms", _delays(lags_ms), *options)
    arguments = ["--post-storage", post_storage, "--notifier", notifier]
    arguments += ["--requests", str(requests), "--blocks", str(blocks)]
    arguments += ["--warmup", str(warmup), "--kinds", kinds]
    arguments += ["--rate", str(rate), "--strategies", ",".join(strategies), *options]
    rounds = len(strategies) * len(kinds.split(",")) * len(lags_ms)
    sent = rounds * (requests + blocks * warmup)
    turn_s = _TURN_S + sum(lags_ms) / len(lags_ms) / 1000
    servers_s = sum(_SERVERS_S.get(store, 1) for store in pair)
    starts_s = len(strategies) * blocks * _SERVICES_S
    return Run(
        f"{name}-{post_storage}-{notifier}",
        sections,
        APPLICATION,
        tuple(arguments),
        post_storage,
        notifier,
        profile,
        sent,
        servers_s + starts_s + rounds * blocks * turn_s + sent / rate,
        any(lags_ms),
    )


def _table1(size: Size, post_storages: Sequence[str], notifiers: Sequence[str]) -> Iterator[Run]:
    for notifier in notifiers:
        for post_storage in post_storages:
            if not paired(post_storage, notifier):
                continue
            for name, (lag_ms, options) in _LAGS.items():
                first = name == "posts-far"
                timed = first and notifier == FIGURE_NOTIFIER
                profiles = 2 if name == DELAYED else 1
                sections = {"table1"} | ({"table3"} if first else set())
                if timed:
                    sections.add("figure7")
                yield _application(
                    f"table1-{name}",
                    frozenset(sections),
                    (post_storage, notifier),
                    requests=size.kinds_requests if first else profiles * size.profile_requests,
                    blocks=size.blocks if timed else 1,
                    kinds="new,update,delete" if first else "new",
                    rate=RATE if timed else COUNT_RATE,
                    lags_ms=(lag_ms,),
                    options=(*options, *_STEADY),
                    profile=name,
                )


def _wandering(size: Size, post_storages: Sequence[str], notifiers: Sequence[str]) -> Iterator[Run]:
    kinds = "new,update,delete"
    each = size.wandering_requests // len(kinds.split(","))
    for notifier in (name for name in notifiers if name in PAPER_NOTIFIERS):
        for post_storage in (name for name in post_storages if name not in BESIDE):
            for strategy, requests in (("barrier", each), ("none", each // 10)):
                yield _application(
                    f"wandering-{strategy}",
                    frozenset({"wandering"}),
                    (post_storage, notifier),
                    requests=requests,
                    kinds=kinds,
                    strategies=(strategy,),
                    rate=COUNT_RATE,
                    options=("--lag-spread", str(LAG_SPREAD)),
                )


def _figure6(size: Size, post_storage: str) -> Run:
    return _application(
        "figure6",
        frozenset({"figure6"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.delay_requests * len(DELAYS_MS),
        rate=COUNT_RATE,
        options=("--lag-spread", str(LAG_SPREAD), "--notify-delay-ms", _delays(DELAYS_MS)),
    )


def _strategies(size: Size, post_storage: str) -> Run:
    links = ("--notifier-lag-ms", str(LINK_MS), "--link-ms", str(LINK_MS))
    return _application(
        "strategies",
        frozenset({"strategies"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.strategy_requests,
        blocks=size.blocks,
        kinds="new,update",
        strategies=[
            each
            for each in STRATEGIES
            if each not in OF_DRY_RUNS
            and stores_of(each, [post_storage])
            and (each not in OF_NO_STORE or post_storage in OF_NO_STORE_OVER)
        ],
        options=(*links, "--lag-spread", str(LAG_SPREAD)),
    )


def _sweep(size: Size, post_storage: str) -> Run:
    link = str(SWEEP_LINK_MS)
    return _application(
        "sweep",
        frozenset({"sweep"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.sweep_requests,
        blocks=size.blocks,
        kinds="update",
        strategies=[each for each in SWEEP_STRATEGIES if stores_of(each, [post_storage])],
        lags_ms=SWEEP_LAGS_MS,
        options=(
            *("--notifier-lag-ms", link, "--link-ms", link),
            *("--lag-spread", str(LAG_SPREAD)),
        ),
    )


def _nothing(size: Size, post_storage: str) -> Run:
    return _application(
        "nothing",
        frozenset({"nothing"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.sweep_requests,
        blocks=size.blocks,
        strategies=IDLE_STRATEGIES,
        lags_ms=(0,),
        options=("--notifier-lag-ms", str(LAG_MS), *_STEADY),
    )


def _footprint(size: Size, post_storage: str) -> Run:
    posts = min(size.posts, _UNCOUNTED_POSTS) if post_storage in SLOW else size.posts
    arguments = ("--post-storage", post_storage, "--posts", str(posts))
    sections = frozenset({"table3"})
    took_s = _FOOTPRINT_S.get(post_storage, 2) * size.posts / FULL.posts
    return Run(
        f"footprint-{post_storage}",
        sections,
        FOOTPRINT,
        arguments,
        post_storage,
        expected_s=took_s,
    )
