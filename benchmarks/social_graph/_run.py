"""A run: posts are composed in us, read in eu, and what readers were shown is judged."""

from __future__ import annotations

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode_testing import TopologyTimeout, wait_until
from benchmarks.judge import Trial, Verdict, judge

from ._graph import edges
from ._observers import Edge, Readers, Secondary
from ._services import Variant, seed, services
from ._workload import Authors, Compose, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ._graph import Friendship
    from ._servers import Servers

_AUTHORS = 64
_SETTLED_S = 30.0
GUARD = "the barrier in write-home-timeline"


@dataclass(frozen=True, slots=True)
class Options:
    """What is run.

    Attributes:
        composes: how many posts a variant composes.
        rate: how many a second, on average.
        workload: what is posted.
        link_ms: how long a call from region to region takes, one way.
        seed: of the graph and the requests.
        environment: more of it, for the services.
    """

    composes: int = 300
    rate: float = 20.0
    workload: Workload = "deathstarbench"
    link_ms: float = 0.0
    seed: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Posted:
    """One compose and what became of it.

    Attributes:
        compose: the request.
        reader: whose home timeline is read; None where nobody's names the post.
        post: the id, once it was acknowledged.
        took_s: from the moment at which the request was due to its answer.
    """

    compose: Compose
    reader: int | None
    post: int | None = None
    took_s: float | None = None


class Notified:
    """What the consumer of notifications in eu observed of each post."""

    def __init__(self) -> None:
        """Nothing so far."""
        self._lock = threading.Lock()
        self.first_ns: dict[int, int] = {}
        self.found: dict[int, bool] = {}

    def take(self, record: dict[str, Any]) -> None:
        """Note one line of it; of several messages of one post the first counts."""
        post = int(record["post"])
        with self._lock:
            self.first_ns.setdefault(post, int(record["at_ns"]))
            if record["post_was"] != "received":
                self.found.setdefault(post, record["post_was"] == "found")


class Run:
    """One variant over stores that run already: posts are composed, and observed.

    Attributes:
        posted: what was composed.
        notified: what the consumer in eu observed.
    """

    def __init__(self, servers: Servers, built: Path, variant: Variant, options: Options) -> None:
        """Prepare it; a context manager, whose block the services run in."""
        self._servers, self._built = servers, built
        self._variant, self._options = variant, options
        self._stack = ExitStack()
        self.posted: list[Posted] = []
        self.notified = Notified()

    def __enter__(self) -> Self:
        """Start the services."""
        with ExitStack() as stack:
            self.services = stack.enter_context(
                services(
                    self._servers,
                    self._built,
                    self._variant,
                    self.notified.take,
                    link_ms=self._options.link_ms,
                    environment=self._options.environment,
                )
            )
            self._edge = Edge(self.services.edges["compose"])
            stack.callback(self._edge.close)
            self._secondary = stack.enter_context(Secondary(self._servers))
            self._readers = stack.enter_context(Readers(self._servers, self.services.edges["eu"]))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End them."""
        self._stack.close()

    def compose(self, graph: Sequence[Friendship]) -> None:
        """Compose all posts, at a rate, whatever becomes of earlier ones; wait for the answers."""
        options = self._options
        authors = Authors(options.workload, list(graph), options.seed)
        with ThreadPoolExecutor(_AUTHORS) as pool:
            due_s = time.monotonic()
            for _ in range(options.composes):
                due_s += authors.gap_s(options.rate)
                compose = authors.next()
                one = Posted(compose, authors.reader(compose))
                if one.reader is not None:
                    self._readers.watch(one.reader)
                self.posted.append(one)
                time.sleep(max(due_s - time.monotonic(), 0.0))
                pool.submit(self._compose, one, due_s)

    def named(self, one: Posted) -> bool:
        """Whether somebody was shown that there is this post."""
        if one.reader is None:
            return one.post in self.notified.found
        return one.post in self._readers.shown[one.reader]

    def exposed(self, one: Posted) -> bool:
        """Whether the secondary was seen not to have the post after its notification was there."""
        if one.post is None:
            return False
        return (
            self.notified.first_ns.get(one.post, 2**63) < self._secondary.found[one.post].unseen_ns
        )

    def settle(self) -> None:
        """Return once everything acknowledged has come through.

        Raises:
            BenchmarkError: a service ended.
        """

        def settled() -> bool:
            return all(
                one.post is None
                or (
                    one.post in self.notified.found
                    and self._secondary.found[one.post].seen_ns is not None
                    and self.named(one)
                )
                for one in self.posted
            )

        # What does not come through is no failure of the run: the judge is told of it.
        with suppress(TopologyTimeout):
            wait_until(
                settled, what="the posts to come through", timeout_s=_SETTLED_S, interval_s=0.05
            )
        self.services.check()

    def trials(self) -> list[Trial]:
        """What became of each compose."""
        return [self._trial(one) for one in self.posted]

    def _compose(self, one: Posted, due_s: float) -> None:
        try:
            status, answer = self._edge.post("/compose", one.compose.fields())
        except (OSError, http.client.HTTPException):
            return
        one.took_s = time.monotonic() - due_s
        if status == http.client.OK:
            post = int(answer["post_id"])
            self._secondary.seek(post)
            if one.reader is not None:
                self._readers.expect(one.reader, post)
            one.post = post

    def _trial(self, one: Posted) -> Trial:
        """In eu, the first answer of a home timeline that named the post.

        Where nobody follows the author, it is what the consumer of the notification found.
        """
        about = self._variant, self._options.workload
        if one.post is None:
            return Trial(
                *about, answered=False, right=False, told=False, exposed=False, early=False
            )
        visible = self._secondary.found[one.post]
        told = visible.seen_ns is not None
        exposed = self.exposed(one)
        if one.reader is None:
            found = self.notified.found.get(one.post)
            answered, right = found is not None, bool(found)
            return Trial(*about, answered, right, told, exposed, early=False)
        shown = self._readers.shown[one.reader].get(one.post)
        right = shown is not None and shown.readable
        early = right and shown is not None and shown.ended_ns < visible.unseen_ns
        return Trial(*about, shown is not None, right, told, exposed, early)


def run(
    servers: Servers, built: Path, variant: Variant, options: Options, graph: Sequence[Friendship]
) -> list[Trial]:
    """Run one variant; a trial for each compose."""
    with Run(servers, built, variant, options) as running:
        running.compose(graph)
        running.settle()
        return running.trials()


def judged(trials: Iterable[Trial]) -> Verdict:
    """The verdict over the trials of all variants."""
    return judge(trials, guarded=("barrier",), unguarded="baseline", guard=GUARD)


def graph_of(servers: Servers, options: Options) -> list[Friendship]:
    """The graph of a run, once the stores have it."""
    graph = edges(options.seed)
    seed(servers, graph)
    return graph
