"""Compose in us, home timelines in eu: the services in C++ and Python over real stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pika.exceptions
import pytest

from antipode_cli.report import load, report
from benchmarks.judge import SHOWN
from benchmarks.social_graph import services
from benchmarks.social_graph._run import Options, Run, judged
from benchmarks.social_graph._servers import queue_of

from ._held import PATIENT, POSTS, held_run, until

if TYPE_CHECKING:
    from antipode_cli.report import Report
    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._servers import Servers
    from benchmarks.social_graph._services import Variant

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # The first of them builds the services.
    pytest.mark.store("mongodb"),
    pytest.mark.store("rabbitmq"),
    pytest.mark.store("redis"),
]

SERVICES = Path(services.__file__).parent
#: A barrier that gives up at once.
IMPATIENT = {"patience": "0.2", "prefetch": "1", "workers": "1"}


def test_no_consumer_misses_its_post(stores: Servers, built: Path, graph: list[Friendship]) -> None:
    """The paper's workload: without the library each does; with its barrier none, of as many."""
    baseline = held_run(stores, built, "baseline", "paper", graph)
    assert [trial.answered and not trial.right for trial in baseline] == [True] * POSTS
    held = held_run(stores, built, "barrier", "paper", graph)
    assert [trial.waited for trial in held] == [True] * POSTS
    assert judged([*baseline, *held]).status == SHOWN


def messages(stores: Servers, queue: str) -> int:
    """How many messages are ready in a queue of eu; 0 where there is none."""
    with pika.BlockingConnection(pika.URLParameters(stores.broker("eu"))) as connection:
        try:
            found: int = (
                connection.channel().queue_declare(queue, passive=True).method.message_count
            )
        except pika.exceptions.ChannelClosedByBroker:
            return 0
    return found


def test_a_message_that_cannot_be_handled_waits_elsewhere(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """After a barrier that timed out it comes again later; one that nobody can read is kept."""
    queue = queue_of("eu")
    options = Options(3, rate=50, arguments={**PATIENT, **IMPATIENT})
    with Run(stores, built, "barrier", options) as running:
        with pika.BlockingConnection(pika.URLParameters(stores.broker("eu"))) as connection:
            connection.channel().basic_publish("", queue, b"no notification")
        until(lambda: messages(stores, f"{queue}.dead") == 1, "the dead letter")
        stores.mongodb.pause()
        running.compose(graph)
        # The only worker takes one message at a time, and none blocks it.
        until(lambda: all(map(running.exposed, running.posted)), "the notifications")
        until(lambda: messages(stores, f"{queue}.later.400") > 0, "the third attempt")
        assert not any(map(running.named, running.posted))
        stores.mongodb.resume()
        running.settle()
        assert [trial.waited for trial in running.trials()] == [True] * 3
    assert messages(stores, f"{queue}.dead") == 1


def test_lineages_are_small_at_every_hop(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """At most 200 bytes, as the paper's, in each call and in the message."""
    measured = {"SOCIAL_GRAPH_HOPS": "yes"}
    options = Options(10, rate=50, arguments=PATIENT, environment=measured)
    with Run(stores, built, "barrier", options) as running:
        running.compose(graph)
        running.settle()
        hops = [
            (each["hop"], each["bytes"]) for _, each in running.notified.others if "hop" in each
        ]
    assert {"/social_graph.PostStorage/StorePost", "the message"} <= {hop for hop, _ in hops}
    assert max(size for _, size in hops) <= 200


def dry_run(
    stores: Servers, built: Path, variant: Variant, graph: list[Friendship], folder: Path
) -> Report:
    """What a dry run of the services finds; nothing is late there."""
    environment = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": str(folder)}
    options = Options(10, rate=50, environment=environment, arguments=PATIENT)
    with Run(stores, built, variant, options) as running:
        running.compose(graph)
        until(lambda: all(map(running.named, running.posted)), "the timelines")
    return report(load([folder]))


def test_the_dry_run_names_the_line_without_a_barrier(
    stores: Servers, built: Path, graph: list[Friendship], tmp_path: Path
) -> None:
    """The read of the post in write-home-timeline, and nothing where the barrier stands.

    No line of the set-up is forgotten, and it says of none that it is.
    """
    without = dry_run(stores, built, "instrumented", graph, tmp_path / "without")
    found = without.findings
    assert {each.datastore for each in found} == {"posts"}
    (read,) = {(each.read.file, each.read.line) for each in found}
    assert read[0].endswith("/services/write_home_timeline.cc")
    lines = (SERVICES / "write_home_timeline.cc").read_text(encoding="utf-8").splitlines()
    assert "mongoc_collection_count_documents" in lines[read[1] - 1]
    with_barrier = dry_run(stores, built, "barrier", graph, tmp_path / "with")
    assert with_barrier.records
    assert not with_barrier.findings
    assert (without.lints, with_barrier.lints) == ((), ())
