"""DeathStarBench's workload, with each barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.judge import SHOWN
from benchmarks.social_graph._run import judged
from benchmarks.social_graph._services import GUARDED

from ._held import POSTS, held_run

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._servers import Servers

pytestmark = [
    pytest.mark.timeout(900),  # The first of them builds the services.
    pytest.mark.store("mongodb"),
    pytest.mark.store("rabbitmq"),
    pytest.mark.store("redis"),
]


def test_no_reader_is_shown_a_post_that_is_not_there(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """Without the library each reader is; with any barrier none, of as many that would be."""
    baseline = held_run(stores, built, "baseline", "deathstarbench", graph)
    assert [trial.answered and not trial.right for trial in baseline] == [True] * POSTS
    trials = [*baseline]
    for variant in GUARDED:
        held = held_run(stores, built, variant, "deathstarbench", graph)
        assert [trial.waited for trial in held] == [True] * POSTS, variant
        trials += held
    assert judged(trials).status == SHOWN
