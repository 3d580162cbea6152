"""What is run: each run is one call of a benchmark's own command line, which anybody can repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.post_notification._options import NOTIFIERS, OF_DRY_RUNS, POST_STORAGES, STRATEGIES
from benchmarks.post_notification._strategies import stores_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECTIONS = ("table1", "figure6", "figure7", "table3", "strategies")
APPLICATION = "benchmarks.post_notification"
FOOTPRINT = "benchmarks.evaluation.footprint"

#: Requests a second: so few that two processors are far from busy with every pair and strategy.
RATE = 60
#: Seconds until servers and the services of one strategy run.
_SERVERS_S, _SERVICES_S = 12, 5
#: In as many turns each of the strategies that are compared makes its requests, with services of
#: its own.
_BLOCKS = 5

#: Milliseconds by which posts, or notifications, are late where they are.
LAG_MS = 100
#: One way between the regions, where strategies are compared: nothing that crosses is faster.
LINK_MS = 40
#: How the delays of ten notifications compare with the lag of posts: nine are shorter, or one is.
_MOSTLY_SHORTER = (0, 5, 10, 20, 30, 40, 50, 60, 70, 150)
_MOSTLY_LONGER = (20, 150, 160, 170, 180, 190, 200, 220, 240, 260)
#: The notifier of figures 6 and 7: the broker, where the paper has SNS.
FIGURE_NOTIFIER = "rabbitmq"
#: Everywhere else but in figure 6 each post is as late as the next.
_STEADY = ("--lag-spread", "0")
#: Figure 6, where the lag wanders, as it does in the paper.
DELAYS_MS = (0, 25, 50, 75, 100, 125, 150, 200, 250, 300)
LAG_SPREAD = 0.5


@dataclass(frozen=True, slots=True)
class Profile:
    """How late posts and notifications are: a row of table 1.

    Attributes:
        name: for files and tables.
        says: what is late, and how often.
        paper: the settings of the paper's table 1 that it stands for.
        options: of the benchmark.
    """

    name: str
    says: str
    paper: str
    options: tuple[str, ...]


def _delays(delays_ms: Sequence[int]) -> str:
    return ",".join(str(each) for each in delays_ms)


PROFILES = (
    Profile(
        "posts-far",
        f"every post {LAG_MS} ms late, notifications at once",
        "S3 with SNS or AMQ (100 %)",
        ("--lag-ms", str(LAG_MS)),
    ),
    Profile(
        "posts-late",
        f"posts {LAG_MS} ms late, nine of ten notifications faster than that",
        "MySQL, DynamoDB or Redis with SNS (88 % to 95 %)",
        ("--lag-ms", str(LAG_MS), "--notify-delay-ms", _delays(_MOSTLY_SHORTER)),
    ),
    Profile(
        "notices-late",
        f"posts {LAG_MS} ms late, nine of ten notifications slower than that",
        "MySQL, DynamoDB or Redis with AMQ, S3 with DynamoDB (7 % to 13 %)",
        ("--lag-ms", str(LAG_MS), "--notify-delay-ms", _delays(_MOSTLY_LONGER)),
    ),
    Profile(
        "notices-far",
        f"posts at once, every notification {LAG_MS} ms late",
        "MySQL, DynamoDB or Redis with DynamoDB (0 %)",
        ("--lag-ms", "0", "--notifier-lag-ms", str(LAG_MS)),
    ),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        name: ``full`` or ``quick``.
        kinds_requests: of each kind, without and with the barrier, for the profile ``posts-far``.
        profile_requests: of new posts, for the other profiles.
        delay_requests: of new posts, for each delay of figure 6.
        strategy_requests: of new posts and of updates, for each strategy.
        posts: that are written to see how much room they take.
        post_storages: that are measured unless others are named.
    """

    name: str
    kinds_requests: int
    profile_requests: int
    delay_requests: int
    strategy_requests: int
    posts: int
    post_storages: tuple[str, ...]


FULL = Size("full", 1000, 600, 300, 500, 5000, POST_STORAGES)
QUICK = Size("quick", 60, 40, 12, 40, 500, ("embedded", "redis"))


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
        profile: the name of the lags; empty where they are none of table 1's.
        requests: how many it sends, warm-up included, to foretell how long it takes.
        starts: how often the services of a strategy start, for the same end.
    """

    name: str
    sections: frozenset[str]
    module: str
    arguments: tuple[str, ...]
    post_storage: str
    notifier: str = ""
    profile: str = ""
    requests: int = 0
    starts: int = 0

    @property
    def expected_s(self) -> float:
        """About how long it takes, servers and services included."""
        return _SERVERS_S + self.starts * _SERVICES_S + self.requests / RATE

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
        *(_footprint(size, store) for store in post_storages),
    ]
    return [run for run in every if run.sections.intersection(sections)]


def _application(
    name: str,
    sections: frozenset[str],
    pair: tuple[str, str],
    *,
    requests: int,
    blocks: int = 1,
    kinds: str = "new",
    strategies: Sequence[str] = ("none", "barrier"),
    options: tuple[str, ...],
    profile: str = "",
) -> Run:
    post_storage, notifier = pair
    warmup = min(max(requests // blocks // 20, 10), 100)
    arguments = ["--post-storage", post_storage, "--notifier", notifier]
    arguments += ["--requests", str(requests), "--blocks", str(blocks)]
    arguments += ["--warmup", str(warmup), "--kinds", kinds]
    arguments += ["--rate", str(RATE), "--strategies", ",".join(strategies), *options]
    rounds = len(strategies) * len(kinds.split(","))
    return Run(
        f"{name}-{post_storage}-{notifier}",
        sections,
        APPLICATION,
        tuple(arguments),
        post_storage,
        notifier,
        profile,
        rounds * (requests + blocks * warmup),
        len(strategies) * blocks,
    )


def _table1(size: Size, post_storages: Sequence[str], notifiers: Sequence[str]) -> Iterator[Run]:
    for notifier in notifiers:
        for post_storage in post_storages:
            for profile in PROFILES:
                first = profile is PROFILES[0]
                sections = {"table1"} | ({"table3"} if first else set())
                if first and notifier == FIGURE_NOTIFIER:
                    sections.add("figure7")
                yield _application(
                    f"table1-{profile.name}",
                    frozenset(sections),
                    (post_storage, notifier),
                    requests=size.kinds_requests if first else size.profile_requests,
                    kinds="new,update,delete" if first else "new",
                    options=(*profile.options, *_STEADY),
                    profile=profile.name,
                )


def _figure6(size: Size, post_storage: str) -> Run:
    lag = ("--lag-ms", str(LAG_MS), "--lag-spread", str(LAG_SPREAD))
    return _application(
        "figure6",
        frozenset({"figure6"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.delay_requests * len(DELAYS_MS),
        strategies=("none",),
        options=(*lag, "--notify-delay-ms", _delays(DELAYS_MS)),
    )


def _strategies(size: Size, post_storage: str) -> Run:
    lags = ("--lag-ms", str(LAG_MS), "--notifier-lag-ms", str(LINK_MS))
    return _application(
        "strategies",
        frozenset({"strategies"}),
        (post_storage, FIGURE_NOTIFIER),
        requests=size.strategy_requests,
        blocks=_BLOCKS,
        kinds="new,update",
        strategies=[
            each
            for each in STRATEGIES
            if each not in OF_DRY_RUNS and stores_of(each, [post_storage])
        ],
        options=(*lags, "--link-ms", str(LINK_MS), *_STEADY),
    )


def _footprint(size: Size, post_storage: str) -> Run:
    arguments = ("--post-storage", post_storage, "--posts", str(size.posts))
    sections = frozenset({"table3"})
    return Run(f"footprint-{post_storage}", sections, FOOTPRINT, arguments, post_storage)
