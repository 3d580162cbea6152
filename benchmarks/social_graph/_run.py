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
from ._observers import Edge, Readers, Secondary, Visibility
from ._services import GUARDED, Variant, seed, services
from ._workload import Authors, Compose, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ._graph import Friendship
    from ._servers import Servers

_AUTHORS = 64
_WARM_S = 60.0
_SETTLED_S = 60.0
GUARD = "a barrier"


@dataclass(frozen=True, slots=True)
class Options:
    """What is run.

    Attributes:
        composes: how many posts a variant composes.
        rate: how many a second, on average.
        workload: what is posted.
        seed: of the graph and the requests.
        environment: more of it, for the services.
        arguments: more of them, for the services.
    """

    composes: int = 300
    rate: float = 20.0
    workload: Workload = "deathstarbench"
    seed: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Posted:
    """One compose and what became of it.

    Attributes:
        compose: the request.
        reader: whose home timeline is read; None where nobody's names the post.
        post: the id, once it was acknowledged.
    """

    compose: Compose
    reader: int | None
    post: int | None = None


class Notified:
    """What services observed of each post: where it was stored, and the consumer in eu.

    Attributes:
        stored_ns: when the post was acknowledged by its store.
        first_ns: when the consumer got its notification.
        found: whether the post was there when the consumer read it.
        read_ns: when that was.
        added: posts that it has put into timelines.
        others: what else services said, with their names.
    """

    def __init__(self) -> None:
        """Nothing so far."""
        self._lock = threading.Lock()
        self.stored_ns: dict[int, int] = {}
        self.first_ns: dict[int, int] = {}
        self.found: dict[int, bool] = {}
        self.read_ns: dict[int, int] = {}
        self.added: set[int] = set()
        self.others: list[tuple[str, dict[str, Any]]] = []

    def take(self, service: str, record: dict[str, Any]) -> None:
        """Note one line of a service; of several messages of one post the first counts."""
        with self._lock:
            if "post" not in record:
                self.others.append((service, record))
                return
            post, at_ns, was = int(record["post"]), int(record["at_ns"]), record["post_was"]
            if was == "stored":
                self.stored_ns.setdefault(post, at_ns)
            elif service == "eu write-home-timeline":
                self.first_ns.setdefault(post, at_ns)
                if was in ("found", "missing"):
                    self.read_ns.setdefault(post, at_ns)
                    self.found.setdefault(post, was == "found")
                elif was == "added":
                    self.added.add(post)


class Run:
    """One variant over stores that run already: posts are composed, and observed.

    Attributes:
        posted: what was composed.
        notified: what the consumer in eu observed.
    """

    def __init__(
        self,
        servers: Servers,
        built: Path,
        variant: Variant,
        options: Options,
        *,
        watched: bool = True,
    ) -> None:
        """Prepare it; a context manager, whose block the services run in.

        Args:
            servers: the stores.
            built: the folder of the programs.
            variant: which services.
            options: what is run.
            watched: whether somebody reads timelines, and looks for posts.
        """
        self._watched = watched
        self._servers, self._built = servers, built
        self._variant: Variant = variant
        self._options = options
        self._stack = ExitStack()
        self.posted: list[Posted] = []
        self.notified = Notified()
        self._readers = Readers()

    def __enter__(self) -> Self:
        """Start the services."""
        with ExitStack() as stack:
            self.services = stack.enter_context(
                services(
                    self._servers,
                    self._built,
                    self._variant,
                    self._take,
                    environment=self._options.environment,
                    arguments=self._options.arguments,
                )
            )
            self._edge = Edge(self.services.edges["compose"])
            stack.callback(self._edge.close)
            self._secondary = stack.enter_context(Secondary(self._servers))
            self._readers.read_at(self.services.edges["eu"])
            stack.enter_context(self._readers)
            self._warm_up()
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

    def compose(self, graph: Sequence[Friendship], over: threading.Event | None = None) -> None:
        """Compose all posts, at a rate, whatever becomes of earlier ones; wait for the answers.

        Args:
            graph: of friends.
            over: ends it before all are composed.
        """
        options = self._options
        authors = Authors(options.workload, list(graph), options.seed)
        with ThreadPoolExecutor(_AUTHORS) as pool:
            due_s = time.monotonic()
            for _ in range(options.composes):
                if over is not None and over.is_set():
                    break
                due_s += authors.gap_s(options.rate)
                one = self.expect(authors)
                time.sleep(max(due_s - time.monotonic(), 0.0))
                pool.submit(self.send, one)

    def expect(self, authors: Authors) -> Posted:
        """The next post that is to be composed."""
        compose = authors.next()
        one = Posted(compose, authors.reader(compose))
        self.posted.append(one)
        return one

    def acknowledged(self, one: Posted, answer: dict[str, Any]) -> None:
        """Look for a post where it is read: it was composed."""
        post = int(answer["post_id"])
        if self._watched:
            self._secondary.seek(post)
            if one.reader is not None:
                self._readers.expect(one.reader, post)
        one.post = post

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
            return all(one.post is None or self._through(one) for one in self.posted)

        # What does not come through is no failure of the run: the judge is told of it.
        with suppress(TopologyTimeout):
            wait_until(
                settled, what="the posts to come through", timeout_s=_SETTLED_S, interval_s=0.05
            )
        self.services.check()

    def _take(self, service: str, record: dict[str, Any]) -> None:
        self.notified.take(service, record)
        added = service == "eu write-home-timeline" and record.get("post_was") == "added"
        if added and self._watched:
            self._readers.there(int(record["post"]))

    def _through(self, one: Posted) -> bool:
        if one.post not in self.notified.added or not self._watched:
            return one.post in self.notified.added
        return self._secondary.found[one.post].seen_ns is not None and self.named(one)

    def trials(self) -> list[Trial]:
        """What became of each compose."""
        return [self.trial(one) for one in self.posted]

    def shown_ns(self, one: Posted) -> int | None:
        """When somebody in eu had read that there is this post; None for nobody."""
        if one.post is None:
            return None
        if one.reader is None:
            return self.notified.read_ns.get(one.post)
        shown = self._readers.shown[one.reader].get(one.post)
        return None if shown is None else shown.ended_ns

    def visibility(self, one: Posted) -> Visibility | None:
        """When the observer saw the post at the secondary."""
        return None if one.post is None else self._secondary.found[one.post]

    def _warm_up(self) -> None:
        """Compose until a post is acknowledged: the first call of a JVM takes a second."""
        fields = Compose(0, "warm-up", 1, ()).fields()

        def answered() -> bool:
            with suppress(OSError, http.client.HTTPException):
                return self._edge.post("/compose", fields)[0] == http.client.OK
            return False

        wait_until(answered, what="the first post", timeout_s=_WARM_S, interval_s=0.1)

    def send(self, one: Posted) -> None:
        """Compose a post, and wait for the answer."""
        try:
            status, answer = self._edge.post("/compose", one.compose.fields())
        except (OSError, http.client.HTTPException):
            return
        if status == http.client.OK:
            self.acknowledged(one, answer)

    def trial(self, one: Posted) -> Trial:
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
    return judge(trials, guarded=GUARDED, unguarded="baseline", guard=GUARD)


def graph_of(servers: Servers, options: Options) -> list[Friendship]:
    """The graph of a run, once the stores have it."""
    graph = edges(options.seed)
    seed(servers.redis["us"].address, graph)
    return graph
