"""What one run of the benchmark is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["new", "update", "delete"]
Strategy = Literal[
    "none",
    "barrier",
    "instrumented",
    "at-read",
    "auto",
    "routed",
    "artefact",
    "sleep",
    "retry",
    "primary",
    "synchronous",
    "sticky",
    "session",
    "unguarded",
]
Stack = Literal["own", "compose"]

KINDS: tuple[Kind, ...] = ("new", "update", "delete")
#: What is done so that notifications do not overtake posts. Only with those of `OURS`, and without
#: their barrier with ``unguarded``, does anything of the library run.
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
#: Those with the library, behind which there is no violation.
OURS: tuple[Strategy, ...] = ("barrier", "instrumented", "at-read", "auto", "routed")
#: No protection; what a dry run is for.
OF_DRY_RUNS: tuple[Strategy, ...] = ("unguarded",)
#: Those that change the servers themselves.
OF_OWN_SERVERS: tuple[Strategy, ...] = ("synchronous",)
#: What the evaluation measures; the application has two more: one that the paper has not, and S3 on
#: real servers, SeaweedFS, beside its emulator.
POST_STORAGES = (
    *("embedded", "redis", "mysql", "mariadb", "postgresql", "mongodb"),
    *("dynamodb", "seaweedfs"),
)
#: The evaluation's, and the emulator of what it has on real servers.
ALL_STORAGES = (*POST_STORAGES, "s3")
NOTIFIERS = ("embedded", "rabbitmq", "activemq", "sns", "dynamodb")

#: Those that are emulators of a service, and are called so wherever they are named.
EMULATORS = frozenset({"dynamodb", "s3", "sns"})

#: Servers that the run starts for itself, or those of docker-compose.yml, which run already.
STACKS: tuple[Stack, ...] = ("own", "compose")
#: The stores that docker-compose.yml brings up; the embedded one needs no server.
IN_COMPOSE = ("embedded", "mongodb", "mysql", "postgresql", "rabbitmq", "redis")

#: The version that a write of each kind leaves behind; 0 stands for a post that is not there.
EXPECTED_VERSION: dict[Kind, int] = {"new": 1, "update": 2, "delete": 0}


def title_of(store: str) -> str:
    """*store* as people are told of it: nobody is to take an emulator for the service."""
    if store == "seaweedfs":
        return "s3 (SeaweedFS)"
    return f"{store} (emulator)" if store in EMULATORS else store


@dataclass(frozen=True, slots=True)
class Options:
    """One run.

    Attributes:
        post_storage: where posts are kept.
        notifier: what carries notifications to the other region.
        stack: whose servers are used.
        requests: measured requests of each kind, with each strategy.
        blocks: turns in which they are made, each strategy once a turn.
        warmup: requests of each turn before those, reported apart.
        kinds: what requests do to their post.
        strategies: what is compared.
        rate: requests each second, on average; arrivals do not wait for replies.
        lags_ms: milliseconds by which the replication of the post storage alone is delayed; each
            strategy makes its requests at each of them.
        lag_spread: how much that wanders, as the deviation of its logarithm; 0: not at all.
        notifier_lag_ms: milliseconds by which that of the notifier is delayed.
        notify_delays_ms: each request waits one of these before it publishes its notification,
            all of them equally often; none: no request waits.
        link_ms: milliseconds that reads of the primary and their answers, and what replicas
            acknowledge, take from one region to the other.
        sleep_ms: milliseconds that ``sleep`` sleeps.
        stick_ms: milliseconds after a write during which ``sticky`` reads at the primary.
        timeout_s: seconds that a barrier, and an RPC, may take.
        post_bytes: length of a post.
        seed: of arrival times and texts.
        json_path: where to write every observation; None: nowhere.
        png_path: where to draw the figure.
        details: whether all figures are printed.
        history_dir: where to write the history of each strategy; None: nowhere.
    """

    post_storage: str
    notifier: str
    stack: Stack
    requests: int
    blocks: int
    warmup: int
    kinds: tuple[Kind, ...]
    strategies: tuple[Strategy, ...]
    rate: float
    lags_ms: tuple[float, ...]
    lag_spread: float
    notifier_lag_ms: float
    notify_delays_ms: tuple[float, ...]
    link_ms: float
    sleep_ms: float
    stick_ms: float
    timeout_s: float
    post_bytes: int
    seed: int
    json_path: Path | None
    png_path: Path
    details: bool
    history_dir: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """What the result states about how it was made; without paths of this machine."""
        fields = asdict(self)
        for name in ("json_path", "png_path", "details", "history_dir"):
            del fields[name]
        return fields


class BenchmarkError(Exception):
    """The benchmark cannot go on; the message is one line that says what to do."""
