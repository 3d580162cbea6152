"""One post on its way through all services, as a picture of spans."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

from matplotlib.figure import Figure

from ._run import Run
from ._workload import Authors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ._graph import Friendship
    from ._run import Options, Posted
    from ._servers import Servers
    from ._services import Variant

#: Posts before the one that is drawn: the first calls of a JVM are slow.
_BEFORE = 20
_VARIANT: Variant = "barrier"
#: Services that are not in C++, by the service of the .proto.
_LANGUAGES = {"Users": "Java", "MediaFiles": "Python"}
#: Okabe and Ito's colours.
_COLOURS = {"C++": "#0072b2", "Java": "#d55e00", "Python": "#009e73", "wait": "#999999"}
_BAR = 0.62
_ROW_INCHES = 0.27


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time.

    Attributes:
        name: who does what.
        kind: the language of who serves it, or ``wait``.
        began_ms: since the request came.
        ended_ms: the same.
    """

    name: str
    kind: str
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one post, in the order in which they began."""

    spans: tuple[Span, ...]

    @property
    def took_ms(self) -> float:
        """From the request until a follower has read the post."""
        return max(it.ended_ms for it in self.spans)

    @classmethod
    def of_one_post(
        cls, servers: Servers, built: Path, options: Options, graph: Sequence[Friendship]
    ) -> Trace:
        """Compose posts one after another, and take the last one.

        Args:
            servers: the stores.
            built: the folder of the programs.
            options: of the services, which say how long calls take.
            graph: of friends.

        Raises:
            BenchmarkError: a service does not start, or ended.
        """
        authors = Authors(options.workload, list(graph), options.seed)
        with Run(servers, built, _VARIANT, options) as running:
            for _ in range(_BEFORE + 1):
                running.notified.others.clear()
                one = running.expect(authors)
                began_ns = time.monotonic_ns()
                running.send(one)
                ended_ns = time.monotonic_ns()
                running.settle()
            return cls(tuple(_spans(running, one, began_ns, ended_ns)))


def _spans(running: Run, one: Posted, began_ns: int, ended_ns: int) -> list[Span]:
    """What was observed of a post."""
    post = one.post
    shown_ns = running.shown_ns(one)
    assert post is not None and shown_ns is not None  # noqa: PT018, S101 - it has come through

    def span(name: str, kind: str, from_ns: int, to_ns: int) -> Span:
        return Span(name, kind, (from_ns - began_ns) / 1e6, (to_ns - began_ns) / 1e6)

    told = running.notified
    found = [
        span("POST /compose", "C++", began_ns, ended_ns),
        span("RabbitMQ, us to eu", "wait", told.stored_ns[post], told.first_ns[post]),
        span("eu write-home-timeline: barrier", "wait", told.first_ns[post], told.read_ns[post]),
        span("eu: fan-out, and a follower reads", "C++", told.read_ns[post], shown_ns),
    ]
    for caller, record in told.others:
        if "call" in record:
            service, method = record["call"].removeprefix("/social_graph.").split("/")
            kind = _LANGUAGES.get(service, "C++")
            name = f"{caller} calls {service}.{method}"
            found.append(span(name, kind, record["began_ns"], record["ended_ns"]))
    return sorted(found, key=lambda it: it.began_ms)


def draw(trace: Trace, path: Path) -> None:
    """Draw a row for each span."""
    rows = list(reversed(trace.spans))
    figure = Figure(
        figsize=(9.2, 0.9 + _ROW_INCHES * len(rows)), layout="constrained", facecolor="white"
    )
    axes = figure.subplots()
    for row, span in enumerate(rows):
        width = span.ended_ms - span.began_ms
        axes.barh(row, width, _BAR, left=span.began_ms, color=_COLOURS[span.kind])
        axes.annotate(
            f"{width:.1f}",
            (span.ended_ms, row),
            (3, 0),
            textcoords="offset points",
            va="center",
            size=7,
        )
    axes.set_yticks(range(len(rows)), [it.name for it in rows], size=8)
    axes.set_xlabel("milliseconds since the request")
    axes.margins(y=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    for kind, colour in _COLOURS.items():
        axes.barh(0, 0, color=colour, label=kind)
    axes.legend(loc="lower left", fontsize=8, frameon=False)
    with mpl.rc_context({"svg.hashsalt": "social-graph", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})
