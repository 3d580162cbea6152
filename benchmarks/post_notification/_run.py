"""The measurement: rounds of requests over the application, strategy by strategy."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks._processors import spent
from benchmarks.judge import rotated, shares

from ._observations import Observation, Observations
from ._options import STRATEGIES, BenchmarkError
from ._process import Processes
from ._rpc import RpcClient, RpcError
from ._servers import notifier_servers, post_storage_servers
from ._storage import MODULES
from ._strategies import lines_of, strategy_class
from ._tracing import NoTracing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._options import Kind, Options, Strategy
    from ._process import Record, ServiceProcess
    from ._servers import PostServers
    from ._storage import Face, Spec

#: Posts that are written with one call before a round of updates or deletes.
_SEEDED_AT_ONCE = 200
#: Posts whose stored size is asked for.
_SIZED = 50
_POLL_S = 0.02
_SEED_S = 60.0

#: The processes of the application; those in the first row run as if the library did not exist.
_OUTSIDE = ("users", "poller")
_SERVICES = (
    "post-storage-writer",
    "notifier-writer",
    "post-upload",
    "post-storage-reader",
    "follower-notify",
    "notifier-reader",
)


@dataclass(slots=True)
class Round:
    """One kind of request with one strategy, in all blocks.

    Attributes:
        strategy: what was done against overtaking.
        kind: what its requests did.
        lag_ms: by how much replication was to be late, in the middle.
        observations: one for each request, warm-up included.
        sizes: mean bytes for each request: of calls, of the notification, and stored with a post.
        primary: what the primary had to do for each request on average: reads across the link,
            commands by its own count, bytes across the link; None where there is no such count.
        replica: what the replica had to do: commands by its own count but for the poller's,
            milliseconds of processor time; None where there is no such count.
        lines: of code that the strategy adds.
    """

    strategy: Strategy
    kind: Kind
    lag_ms: float
    observations: list[Observation] = field(default_factory=list)
    sizes: dict[str, float] = field(default_factory=dict)
    primary: dict[str, float | None] = field(default_factory=dict)
    replica: dict[str, float | None] = field(default_factory=dict)
    lines: int = 0

    def add(
        self,
        observations: list[Observation],
        sizes: dict[str, float],
        primary: dict[str, float | None],
        replica: dict[str, float | None],
    ) -> None:
        """Add a block; means are of all requests."""
        self.observations += observations
        part = len(observations) / len(self.observations)
        for name, size in sizes.items():
            known = self.sizes.get(name, size)
            self.sizes[name] = known + (size - known) * part
        for known_loads, loads in ((self.primary, primary), (self.replica, replica)):
            for name, load in loads.items():
                before = known_loads.get(name, load)
                told = load is not None and before is not None
                known_loads[name] = before + (load - before) * part if told else None  # type: ignore[operator]


class Progress:
    """What a run tells whoever watches it. This one tells nobody."""

    def say(self, what: str) -> None:
        """Tell what is being done."""

    def begin(self, strategy: Strategy, kind: Kind, requests: int) -> None:
        """Tell that a round of so many requests begins."""

    def advance(self) -> None:
        """Tell that one more request is done."""


def run(options: Options, progress: Progress) -> list[Round]:
    """Run every round, in blocks: each strategy has a turn in each, with services of its own.

    Raises:
        BenchmarkError: a server is missing, or a service died.
    """
    rounds = {
        (strategy, kind, lag_ms): Round(
            strategy, kind, lag_ms, lines=lines_of(strategy, options.post_storage, options.notifier)
        )
        for strategy in options.strategies
        for kind in options.kinds
        for lag_ms in options.lags_ms
    }
    progress.say(f"starting {options.post_storage} as post storage")
    with post_storage_servers(options) as storage:
        progress.say(f"starting {options.notifier} as notifier")
        with notifier_servers(options) as notifier:
            for strategy in options.strategies:
                strategy_class(strategy, options.post_storage).install(storage.administer)
            for block, requests in enumerate(shares(options.requests, options.blocks)):
                for strategy in rotated(options.strategies, block):
                    progress.say(f"starting the services: {strategy}")
                    with _application(
                        options, progress, strategy, storage, notifier
                    ) as application:
                        for lag_ms in options.lags_ms:
                            storage.set_lag(lag_ms)
                            for kind in options.kinds:
                                into = rounds[strategy, kind, lag_ms]
                                application.round(into, block, requests)
    return list(rounds.values())


class Application:
    """The running services of one strategy."""

    def __init__(
        self,
        options: Options,
        progress: Progress,
        strategy: Strategy,
        *,
        servers: PostServers,
        observations: Observations,
        processes: Processes,
        ports: dict[str, int],
    ) -> None:
        """Use the services that listen on *ports*."""
        self._servers = servers
        self._options = options
        self._progress = progress
        self._strategy: Strategy = strategy
        self._observations = observations
        self._processes = processes
        longest_s = (options.requests + options.warmup) / options.rate * 2 + _SEED_S
        self._callers = {
            role: RpcClient(role, port, NoTracing(), timeout_s=longest_s)
            for role, port in ports.items()
        }

    def round(self, into: Round, block: int, requests: int) -> None:
        """Run one block of a round.

        Raises:
            BenchmarkError: a service died, or nothing is replicated.
        """
        options, kind = self._options, into.kind
        count = options.warmup + requests
        place = STRATEGIES.index(self._strategy)  # ids of all are equally long
        # Servers that outlive a run may still have the posts of an earlier one.
        run = "" if options.stack == "own" else f"{time.time_ns():x}-"
        turn = f"{run}{place:x}-{block}-{options.lags_ms.index(into.lag_ms)}-{kind}"
        ids = [f"{turn}-{number}" for number in range(count)]
        if kind != "new":
            self._progress.say(f"writing {count} posts to {kind}")
            self._seed(ids)
        for number, post_id in enumerate(ids):
            warmup = number < options.warmup
            self._observations.expect(
                Observation(post_id, kind, self._strategy, warmup, block, into.lag_ms)
            )
        self._progress.begin(self._strategy, kind, count)
        order = {
            "ids": ids,
            "kind": kind,
            "rate": options.rate,
            "delays_ms": options.notify_delays_ms,
            "bytes": options.post_bytes,
            "seed": options.seed + block,
        }
        arranged = strategy_class(self._strategy, options.post_storage).arranged
        with arranged(self._servers.administer):
            sizes, loads = self._sizes(), (self._primary(), self._replica())
            self._call("users", "run", order)
            self._await_observations(kind, into.lag_ms)
            sizes = {name: (size - sizes[name]) / count for name, size in self._sizes().items()}
            primary = _grown(loads[0], self._primary(), count)
            replica = _grown(loads[1], self._replica(), count)
        stored = self._call("post-storage-writer", "stored", {"ids": ids[-_SIZED:]})["bytes"]
        sizes["stored"] = sum(stored) / len(stored)
        into.add(self._observations.of(kind, into.lag_ms), sizes, primary, replica)

    def _seed(self, ids: list[str]) -> None:
        """Write first versions and wait until the reader's region has them."""
        order = {"bytes": self._options.post_bytes}
        chunks = [ids[at : at + _SEEDED_AT_ONCE] for at in range(0, len(ids), _SEEDED_AT_ONCE)]
        for chunk in chunks:
            self._call("post-storage-writer", "seed", {**order, "ids": chunk})
        deadline_s = time.monotonic() + _SEED_S + max(self._options.lags_ms) / 1000
        for chunk in chunks:
            while self._call("post-storage-reader", "present", {"ids": chunk})["count"] < len(
                chunk
            ):
                if time.monotonic() > deadline_s:
                    raise BenchmarkError("the post storage does not replicate: no posts arrive")
                time.sleep(_POLL_S)

    def _await_observations(self, kind: Kind, lag_ms: float) -> None:
        """Wait until everything is known of every request, or its time is up."""
        options = self._options
        behind_s = (max(lag_ms, options.sleep_ms) + options.notifier_lag_ms) / 1000
        slack_s = options.timeout_s + behind_s
        deadline_s = time.monotonic() + slack_s
        while not all(each.complete for each in self._observations.of(kind, lag_ms)):
            self._processes.check()
            if time.monotonic() > deadline_s:
                return
            time.sleep(_POLL_S)

    def _sizes(self) -> dict[str, float]:
        calls = sum(self._call(role, "counters", {})["rpc_bytes"] for role in self._callers)
        received = self._call("notifier-reader", "received", {})["bytes"]
        return {"calls": calls, "notification": received}

    def _primary(self) -> dict[str, float | None]:
        """What the primary has done so far; None: it does not say."""
        passed = None if self._servers.across is None else self._servers.across.traffic()
        return {
            "reads": self._call("post-storage-reader", "counters", {})["across"],
            "commands": self._call("post-storage-writer", "commands", {})["count"],
            "bytes": None if passed is None else passed.request_bytes + passed.response_bytes,
        }

    def _replica(self) -> dict[str, float | None]:
        """The same of the replica, without what the poller asks it."""
        count = self._call("post-storage-reader", "commands", {})["count"]
        looked = self._call("poller", "commands", {})["count"]
        port = self._servers.replica
        spent_s = None if port is None else spent(port)
        return {
            "commands": None if count is None else count - looked,
            "processor_ms": None if spent_s is None else 1000 * spent_s,
        }

    def _call(self, role: str, method: str, payload: Record) -> dict[str, Any]:
        try:
            return self._callers[role].call(method, payload)
        except RpcError as error:
            self._processes.check()
            raise BenchmarkError(f"the benchmark cannot go on: {error}") from error


def _grown(
    before: dict[str, float | None], after: dict[str, float | None], count: int
) -> dict[str, float | None]:
    """By how much counts grew for each of *count* requests; None where there is no count."""
    grown: dict[str, float | None] = {}
    for name, least in before.items():
        most = after[name]
        grown[name] = None if least is None or most is None else (most - least) / count
    return grown


@contextmanager
def _application(
    options: Options, progress: Progress, strategy: Strategy, storage: PostServers, notifier: Spec
) -> Iterator[Application]:
    """The services of one strategy, started and ended."""
    observations = Observations()

    def take(record: Record) -> None:
        if observations.take(record):
            progress.advance()

    with Processes(take) as processes:
        roles = (*_OUTSIDE, *_SERVICES)
        modules = _modules(options, strategy_class(strategy, options.post_storage).face)
        started = dict(zip(roles, processes.start(*roles, modules=modules), strict=True))
        ports = _configure(options, strategy, storage.spec, notifier, started)
        yield Application(
            options,
            progress,
            strategy,
            servers=storage,
            observations=observations,
            processes=processes,
            ports=ports,
        )


def _modules(options: Options, face: Face) -> dict[str, list[str]]:
    """What takes each service a while to import, all of them side by side."""
    modules: dict[str, list[str]] = {role: [] for role in (*_OUTSIDE, *_SERVICES)}
    for role in ("poller", "post-storage-writer", "post-storage-reader"):
        modules[role].append(f"{__package__}.{MODULES[options.post_storage]}")
    for role in ("notifier-writer", "notifier-reader"):
        modules[role].append(f"{__package__}._notifier_{options.notifier}")
    if face != "plain":
        for role in _SERVICES:
            modules[role].append("antipode")
    return modules


def _configure(
    options: Options,
    strategy: Strategy,
    storage: Spec,
    notifier: Spec,
    started: dict[str, ServiceProcess],
) -> dict[str, int]:
    """Tell each service what to do, callees before callers; the ports of all."""
    config: dict[str, Any] = {
        "storage": storage,
        "notifier": notifier,
        "face": "plain",
        "strategy": strategy,
        "knobs": {
            "timeout_s": options.timeout_s,
            "sleep_s": options.sleep_ms / 1000,
            "stick_s": options.stick_ms / 1000,
        },
        # The poller looks without rest once the shortest lag may be over.
        "lag_s": min(options.lags_ms) / 1000,
        "timeout_s": options.timeout_s,
        # A barrier that times out is an answer; only what comes later is none.
        "rpc_timeout_s": options.timeout_s + 5,
        "ports": {},
    }
    ports = config["ports"]
    ports["poller"] = started["poller"].configure(config)
    poller = RpcClient("poller", ports["poller"], NoTracing(), timeout_s=options.timeout_s)
    config["poller_port"] = poller.call("address", {})["port"]
    face = strategy_class(strategy, options.post_storage).face
    for role in _SERVICES:
        ports[role] = started[role].configure({**config, "face": face})
    ports["users"] = started["users"].configure(config)
    return dict(ports)
