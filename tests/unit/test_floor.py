"""Floors: a read is answered only by a server that shows what the barrier demanded."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode.shim import Floor, Observation, Scope, Unreachable
from antipode_testing.contract.base import in_time
from tests._busy import starved_s
from tests.unit._floors import floor_in, floor_of, set_floor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POST = WriteId("posts", "log", 7)


def floor(timeout_s: float = 5, *writes: WriteId) -> Floor:
    """A floor under POST, or under *writes*."""
    return floor_of("posts", *(writes or [POST]), timeout_s=timeout_s)


def shown(status: Status) -> Observation:
    """A look that shows POST with *status*."""
    return Observation("server-1", {POST: status})


def looks(*statuses: Status) -> Callable[[float], Observation]:
    """Looks that show *statuses* one after another, the last one for ever."""
    left = list(statuses)

    def look(timeout_s: float) -> Observation:
        assert timeout_s > 0
        return shown(left.pop(0) if len(left) > 1 else left[0])

    return look


def hold(demand: Floor, look: Callable[[float], Observation]) -> None:
    """The synchronous face."""
    demand.hold(look)


def hold_async(demand: Floor, look: Callable[[float], Observation]) -> None:
    """The asyncio face."""

    async def look_async(timeout_s: float) -> Observation:
        return look(timeout_s)

    asyncio.run(demand.hold_async(look_async))


FACES = pytest.mark.parametrize("face", [hold, hold_async])


def test_a_server_that_shows_all_is_accepted() -> None:
    """No waiting, no cost beyond the look."""
    demand = floor()
    assert demand.accepts(shown(Status.VISIBLE))
    assert demand.proved("server-1")
    assert demand.left_s == 5


def test_a_server_that_lags_is_not_accepted() -> None:
    """The read is not answered by it; a later look may show more."""
    demand = floor()
    assert not demand.accepts(shown(Status.NOT_YET))
    assert not demand.accepts(Observation("server-2", {}))
    assert not demand.proved("server-1")
    assert not demand.proved("server-2")


def test_a_lost_dependency_raises_at_the_read() -> None:
    """Waiting longer cannot help, so the read fails with the barrier's error."""
    with pytest.raises(antipode.DependencyLost):
        floor().accepts(shown(Status.LOST))


@FACES
def test_a_read_is_held_back_until_the_server_caught_up(
    face: Callable[[Floor, Callable[[float], Observation]], None],
) -> None:
    """hold() returns when a look shows the floor; the time it took is spent."""
    demand = floor()
    face(demand, looks(Status.NOT_YET, Status.NOT_YET, Status.VISIBLE))
    assert 4 < demand.left_s < 5


@FACES
def test_the_timeout_is_spent_only_while_holding(
    face: Callable[[Floor, Callable[[float], Observation]], None],
) -> None:
    """What one read used up, the next one lacks; then the error comes at once."""
    demand = floor(0.1)
    with pytest.raises(antipode.BarrierTimeout):
        face(demand, looks(Status.NOT_YET))
    assert demand.left_s == 0

    def fails() -> None:
        with pytest.raises(antipode.BarrierTimeout):
            face(demand, looks(Status.NOT_YET))

    assert in_time(0.05, fails)


@FACES
def test_a_connection_that_fails_fails_the_read(
    face: Callable[[Floor, Callable[[float], Observation]], None],
) -> None:
    """The client library decides about its own connections; nothing is swallowed."""

    def fail(_: float) -> Observation:
        raise Unreachable("reset")

    with pytest.raises(Unreachable):
        face(floor(), fail)


@FACES
def test_a_look_that_outlives_the_floor_is_a_timeout(
    face: Callable[[Floor, Callable[[float], Observation]], None],
) -> None:
    """No reply until the time was up is no fault of the connection: the barrier timed out."""

    def silent(timeout_s: float) -> Observation:
        wait_until_over = time.monotonic() + timeout_s
        while time.monotonic() < wait_until_over:
            pass
        raise Unreachable("no reply")

    with pytest.raises(antipode.BarrierTimeout) as caught:
        face(floor(0.01), silent)
    assert [outcome.status for outcome in caught.value.unmet] == [Status.UNREACHABLE]


def test_cancelling_a_held_read_ends_it() -> None:
    """An asyncio read that is held back can be cancelled like any other."""

    async def look(_: float) -> Observation:
        return shown(Status.NOT_YET)

    async def main() -> None:
        task = asyncio.create_task(floor().hold_async(look))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_floors_add_up() -> None:
    """A second barrier raises the floor: both demands hold, the later timeout counts."""
    other = WriteId("posts", "log", 9)
    held = Scope(Lineage([POST]))
    set_floor(held, floor(1))
    set_floor(held, floor(3, other))
    demand = floor_in(held, "posts")
    assert demand is not None
    assert demand.writes == {POST, other}
    assert demand.left_s == 3


def test_a_floor_is_within_one_that_demands_all_of_it() -> None:
    """What was shown of some demands says nothing of one more."""
    one, other = floor(), floor(5, WriteId("posts", "log", 9))
    both = Floor("posts", [*one.demands, *other.demands])
    assert one.within(both)
    assert not both.within(one)
    assert not one.within(None)


def test_stop_takes_the_floors_away() -> None:
    """A discarded lineage demands nothing."""
    held = Scope(Lineage([POST]))
    set_floor(held, floor())
    held.stop()
    assert floor_in(held, "posts") is None


@pytest.fixture(autouse=True)
def _no_real_sleep() -> Iterator[None]:
    """Fail a test that takes seconds: floors in these tests settle in milliseconds."""
    start_s = time.monotonic() - starved_s()
    yield
    assert time.monotonic() - starved_s() - start_s < 2
