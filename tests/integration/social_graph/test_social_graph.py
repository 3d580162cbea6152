"""Compose in us, home timelines in eu: the services in C++ and Python over real stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode_cli.report import load, report
from antipode_testing import wait_until
from benchmarks.judge import SHOWN
from benchmarks.social_graph import services
from benchmarks.social_graph._run import Options, Run, judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_cli.report import Report
    from benchmarks.judge import Trial
    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._servers import Servers
    from benchmarks.social_graph._services import Variant
    from benchmarks.social_graph._workload import Workload

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # The first of them builds the services.
    pytest.mark.store("mongodb"),
    pytest.mark.store("rabbitmq"),
    pytest.mark.store("redis"),
]

SERVICES = Path(services.__file__).parent
POSTS = 50
ARRIVE_S = 60.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    wait_until(holds, what=what, timeout_s=ARRIVE_S, interval_s=0.02)


def held_run(
    stores: Servers, built: Path, variant: Variant, workload: Workload, graph: list[Friendship]
) -> list[Trial]:
    """Posts reach eu once each notification was there, and without a barrier was acted on."""
    with Run(stores, built, variant, Options(POSTS, rate=20, workload=workload)) as running:
        stores.mongodb.pause()
        running.compose(graph)
        assert all(one.post is not None for one in running.posted)
        until(lambda: all(map(running.exposed, running.posted)), "the notifications")
        if variant == "baseline":
            until(lambda: all(map(running.named, running.posted)), "the timelines")
        else:
            assert not any(map(running.named, running.posted))
        stores.mongodb.resume()
        running.settle()
        return running.trials()


@pytest.mark.parametrize("workload", ["deathstarbench", "paper"])
def test_no_reader_is_shown_a_post_that_is_not_there(
    stores: Servers, built: Path, graph: list[Friendship], workload: Workload
) -> None:
    """Without the library each reader is; with the barrier none, of as many that would be."""
    baseline = held_run(stores, built, "baseline", workload, graph)
    assert [trial.answered and not trial.right for trial in baseline] == [True] * POSTS
    barrier = held_run(stores, built, "barrier", workload, graph)
    assert [trial.waited for trial in barrier] == [True] * POSTS
    assert judged([*baseline, *barrier]).status == SHOWN


def dry_run(
    stores: Servers, built: Path, variant: Variant, graph: list[Friendship], folder: Path
) -> Report:
    """What a dry run of the services finds; nothing is late there."""
    environment = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": str(folder)}
    with Run(stores, built, variant, Options(10, rate=50, environment=environment)) as running:
        running.compose(graph)
        until(lambda: all(map(running.named, running.posted)), "the timelines")
    return report(load([folder]))


def test_the_dry_run_names_the_line_without_a_barrier(
    stores: Servers, built: Path, graph: list[Friendship], tmp_path: Path
) -> None:
    """The read of the post in write-home-timeline, and nothing where the barrier stands."""
    found = dry_run(stores, built, "instrumented", graph, tmp_path / "without").findings
    assert {each.datastore for each in found} == {"posts"}
    (read,) = {(each.read.file, each.read.line) for each in found}
    assert read[0].endswith("/services/write_home_timeline.cc")
    lines = (SERVICES / "write_home_timeline.cc").read_text(encoding="utf-8").splitlines()
    assert "mongoc_collection_count_documents" in lines[read[1] - 1]
    with_barrier = dry_run(stores, built, "barrier", graph, tmp_path / "with")
    assert with_barrier.records
    assert not with_barrier.findings
