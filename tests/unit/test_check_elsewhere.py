"""``check()`` where replicas are read that nobody can poll: no primary is asked in their place."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status
from antipode.shim import floor, register
from tests.unit._fake_server import LINEAGE, POST, FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import BarrierResult

CHECKS = pytest.mark.parametrize(
    "check", [antipode.check, lambda: asyncio.run(antipode.check_async())], ids=["sync", "async"]
)


@pytest.fixture
def primary() -> FakeServer:
    """A primary that has everything, beside a pool of several replicas."""
    made = FakeServer("posts", position=9)
    made.fences = True
    register(made)
    pool = FakeServer("posts")
    pool.reads_from, pool.floors, pool.can_poll = "replica", True, False
    register(pool)
    return made


@CHECKS
def test_it_is_left_to_the_reads(check: Callable[[], BarrierResult], primary: FakeServer) -> None:
    """The primary shows all that was written: its answer would say nothing. The read waits."""
    pool = antipode.shim.shims_of("posts")[1]
    with antipode.scope(LINEAGE):
        result = check()
        assert result.ok
        assert [(each.write, each.status) for each in result.outcomes] == [(POST, Status.DEFERRED)]
        assert primary.opened == 0
        held = floor(pool)  # type: ignore[arg-type]
        assert held is not None
        assert held.writes == {POST}


@CHECKS
def test_so_is_what_is_missing(check: Callable[[], BarrierResult], primary: FakeServer) -> None:
    """The primary is asked for its position of now, and the read waits for that."""
    with antipode.scope(Lineage(incomplete=[("posts", "size")])):
        result = check()
        assert result.ok
        assert [each.status for each in result.outcomes] == [Status.DEFERRED]
        assert primary.fenced == 1
        assert primary.opened == 0


def test_a_replica_that_can_be_polled_is_asked(primary: FakeServer) -> None:
    """One in the region stands for them, as it does for barriers."""
    replica = FakeServer("posts", position=0)
    replica.reads_from = "replica"
    register(replica)
    with antipode.scope(LINEAGE):
        assert not antipode.check().ok
        replica.position = 7
        assert antipode.check().ok
    assert (replica.opened, primary.opened) == (1, 0)


def test_a_barrier_asks_the_primary_and_leaves_the_rest_to_reads(primary: FakeServer) -> None:
    """It says that the write was not lost; who reads waits for the replica."""
    with antipode.scope(LINEAGE):
        result = antipode.barrier(timeout=5)
        assert [each.status for each in result.outcomes] == [Status.VISIBLE]
        assert primary.opened == 1
