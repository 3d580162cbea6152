"""Fences: waiting for the primary's position in place of what a size limit dropped."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierResult, Lineage, Status, WriteId
from antipode.shim import Incomplete, Unreachable
from antipode_testing import wait_until
from antipode_testing.contract.base import in_time
from tests.unit._fake_server import POST, FakeServer
from tests.unit._floors import floor_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORTENED = Lineage([POST], incomplete=[("posts", "size")])
FENCE = WriteId("posts", "log", 9, covering=True)


@pytest.fixture
def posts() -> FakeServer:
    """A store whose primary can be asked for its position, which is 9."""
    server = FakeServer(position=9)
    server.fences = True
    antipode.shim.register(server)
    return server


def by_thread(lineage: Lineage, timeout_s: float = 10) -> BarrierResult:
    """The synchronous face."""
    return antipode.barrier(lineage, timeout=timeout_s)


def by_asyncio(lineage: Lineage, timeout_s: float = 10) -> BarrierResult:
    """The asyncio face."""
    return asyncio.run(antipode.barrier_async(lineage, timeout=timeout_s))


FACES = pytest.mark.parametrize("face", [by_thread, by_asyncio])


@FACES
def test_dropped_entries_are_discharged(
    face: Callable[..., BarrierResult], posts: FakeServer
) -> None:
    """A shortened lineage passes once the replica has all that the primary had at the barrier."""
    result = face(SHORTENED)
    assert result
    assert not result.incomplete
    assert {o.write: o.status for o in result.outcomes} == {
        POST: Status.VISIBLE,
        FENCE: Status.VISIBLE,
    }


@FACES
def test_a_replica_behind_the_fence_is_waited_for(
    face: Callable[..., BarrierResult], posts: FakeServer
) -> None:
    """What was dropped may be the newest write of all, so the named entry is not enough."""
    posts.position = 8
    with pytest.raises(antipode.BarrierTimeout, match="posts:log@~9 not_yet"):
        face(SHORTENED, 0.1)


@FACES
def test_a_primary_that_does_not_answer_discharges_nothing(
    face: Callable[..., BarrierResult], posts: FakeServer
) -> None:
    """Without the fence the lineage is as incomplete as before, and the barrier says so."""
    posts.fault = Unreachable("refused")
    with pytest.raises(antipode.IncompleteLineage, match=r"posts \(size\)"):
        face(SHORTENED)


@FACES
def test_a_primary_without_a_position_discharges_nothing(
    face: Callable[..., BarrierResult], posts: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A primary that came back empty must not stand in for what was written before."""

    def no_position(*, timeout_s: float) -> frozenset[WriteId]:
        return frozenset()

    monkeypatch.setattr(posts, "fence", no_position)
    with pytest.raises(antipode.IncompleteLineage):
        face(SHORTENED)


def test_writes_in_doubt_are_not_discharged(posts: FakeServer) -> None:
    """A write whose outcome is unknown may still commit after the fence."""
    lineage = Lineage(incomplete=[("posts", "in_doubt"), ("posts", "size")])
    with pytest.raises(antipode.IncompleteLineage, match=r"posts \(in_doubt\)"):
        antipode.barrier(lineage, timeout=1)


def test_a_store_without_a_reachable_primary_discharges_nothing() -> None:
    """Fences need a shim that reads from the primary of a store with a log."""
    antipode.shim.register(FakeServer(position=9))
    with pytest.raises(antipode.IncompleteLineage):
        antipode.barrier(SHORTENED, timeout=1)


def test_a_complete_lineage_asks_no_primary(posts: FakeServer) -> None:
    """The round trip to the primary is paid only where something was dropped."""
    antipode.barrier(Lineage([POST]), timeout=1)
    assert posts.fenced == 0


def test_at_read_a_fence_needs_a_scope_too(posts: FakeServer) -> None:
    """Where no read could ever meet the floor, nothing is discharged in its name."""
    posts.floors = True
    with pytest.raises(antipode.ConfigurationError, match="scope"):
        antipode.barrier(Lineage(incomplete=[("posts", "size")]), timeout=1, at="read")


def test_at_read_the_fence_goes_into_the_floor(posts: FakeServer) -> None:
    """The connection that reads must show the primary's position too."""
    posts.floors = True
    with antipode.scope(SHORTENED) as held:
        result = antipode.barrier(timeout=1, at="read")
        floor = floor_in(held, "posts")
    assert result
    assert floor is not None
    assert floor.writes == {POST, FENCE}
    assert Incomplete("posts", "size") in held.lineage.incomplete


@pytest.fixture
def stuck(posts: FakeServer) -> Iterator[FakeServer]:
    """Its primary's client does not come back in time: a name that does not resolve, say."""
    posts.stuck = threading.Event()
    yield posts
    posts.stuck.set()


@FACES
def test_a_fence_that_hangs_keeps_the_deadline(
    face: Callable[..., BarrierResult], stuck: FakeServer
) -> None:
    """The barrier leaves it alone."""

    def ends() -> None:
        with pytest.raises(antipode.IncompleteLineage):
            face(SHORTENED, 0.3)

    assert in_time(0.8, ends)
    assert stuck.fenced == 1


@FACES
def test_what_is_not_missing_is_looked_at_meanwhile(
    face: Callable[..., BarrierResult], stuck: FakeServer
) -> None:
    """A lineage whose gaps are reported passes by what it names: half of the time is for looks."""
    antipode.configure(on_incomplete="report")

    def passes(timeout_s: float) -> bool:
        try:
            return face(SHORTENED, timeout_s).ok
        except antipode.BarrierTimeout:  # A busy machine: half of so little was too short to start.
            return False

    assert any(passes(timeout_s) for timeout_s in (0.4, 1, 4, 10))
    assert stuck.fenced == 1


def test_fences_of_several_primaries_are_asked_for_at_once(stuck: FakeServer) -> None:
    """Two that hang take the time of one."""
    users = FakeServer("users", position=9)
    users.fences, users.stuck = True, stuck.stuck
    antipode.shim.register(users)
    marks = [("posts", "size"), ("users", "size")]

    def ends() -> None:
        with pytest.raises(antipode.IncompleteLineage):
            antipode.barrier(Lineage(incomplete=marks), timeout=0.4)
        assert (stuck.fenced, users.fenced) == (1, 1)

    assert in_time(0.9, ends)


def test_a_primary_is_asked_by_one_thread(stuck: FakeServer) -> None:
    """Who comes while it is being asked shares the next answer, which begins after that."""
    assert stuck.stuck is not None
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(by_thread, SHORTENED)
        assert stuck.fencing.wait(5)
        others = [pool.submit(by_thread, SHORTENED) for _ in range(8)]
        fencer = stuck.fencer
        wait_until(lambda: len(fencer._wanted) == 8, what="the others", timeout_s=5)
        assert [each.name for each in threading.enumerate()].count(fencer.name) == 1
        stuck.stuck.set()
        assert all(each.result(5) for each in [first, *others])
    assert stuck.fenced == 2


def test_a_cancelled_task_waits_for_no_fence(stuck: FakeServer) -> None:
    """Cancelling ends the barrier at once, and its question is not asked any more."""

    async def cancelled() -> None:
        waiting = [
            asyncio.ensure_future(antipode.barrier_async(SHORTENED, timeout=9)) for _ in "ab"
        ]
        await asyncio.to_thread(stuck.fencing.wait, 5)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    before_s = time.monotonic()
    asyncio.run(cancelled())
    assert time.monotonic() - before_s < 3
    assert stuck.stuck is not None
    stuck.stuck.set()

    def ended() -> bool:
        return stuck.fencer.name not in [each.name for each in threading.enumerate()]

    wait_until(ended, what="the thread to end", timeout_s=5)
    assert stuck.fenced == 1


def test_a_child_process_asks_anew(stuck: FakeServer) -> None:
    """After a fork the parent's thread is not waited for."""
    with pytest.raises(antipode.IncompleteLineage):
        antipode.barrier(SHORTENED, timeout=0.1)
    child = os.fork() if hasattr(os, "fork") else pytest.skip("this platform cannot fork")
    if child == 0:
        status = 1
        try:
            stuck.stuck = None
            status = 0 if antipode.barrier(SHORTENED, timeout=5) else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fence_without_a_thread_discharges_nothing(
    posts: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could ask; the next barrier asks again."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError(f"no {thread.name}")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(antipode.IncompleteLineage):
            antipode.barrier(SHORTENED, timeout=5)
    assert antipode.barrier(SHORTENED, timeout=5)
    assert posts.fenced == 1
