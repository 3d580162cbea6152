"""Posts that reach eu once their notifications are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_testing import wait_until
from benchmarks.social_graph._run import Options, Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.judge import Trial
    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._servers import Servers
    from benchmarks.social_graph._services import Variant
    from benchmarks.social_graph._workload import Workload

POSTS = 50
ARRIVE_S = 120.0
#: However busy the machine is, no call fails for that.
PATIENT = {"deadline": "60"}


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    wait_until(holds, what=what, timeout_s=ARRIVE_S, interval_s=0.02)


def held_run(
    stores: Servers, built: Path, variant: Variant, workload: Workload, graph: list[Friendship]
) -> list[Trial]:
    """Posts reach eu once each notification was there, and without a barrier was acted on."""
    options = Options(POSTS, rate=20, workload=workload, arguments=PATIENT)
    with Run(stores, built, variant, options) as running:
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
