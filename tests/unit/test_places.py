"""How many connections of a pool reads that wait may keep, and who has the next place."""

from __future__ import annotations

import asyncio
import threading

from antipode._barrier.places import Places
from antipode_testing import wait_until


def test_half_of_a_pool_waits() -> None:
    """The other half is left to reads and writes that need not wait."""
    places = Places(lambda: 5)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert places.take()


def test_a_pool_of_one_and_one_without_a_limit_have_places_for_all() -> None:
    """Else a read of theirs could never wait, or would wait for nothing."""
    for size in (0, 1):
        places = Places(lambda size=size: size)  # type: ignore[misc]
        assert all(places.take() for _ in range(9))


def test_who_waited_longest_has_the_next_place() -> None:
    """In threads and in tasks."""
    places = Places(lambda: 2)
    assert places.take()
    assert not places.wait(0.01)

    async def waits() -> list[bool]:
        first = asyncio.create_task(places.wait_async(60))
        await asyncio.sleep(0)
        places.give_back()
        second = await places.wait_async(0.01)
        return [await first, second]

    assert asyncio.run(waits()) == [True, False]
    thread = threading.Thread(target=places.wait, args=(60,), daemon=True)
    thread.start()
    wait_until(lambda: bool(places._next), what="the thread to wait", timeout_s=10)
    places.give_back()
    thread.join(10)
    assert not places.take()


def test_who_was_cancelled_keeps_no_place() -> None:
    """Neither before it was given one nor as it was."""
    places = Places(lambda: 2)
    assert places.take()

    async def cancelled(*, given: bool) -> None:
        task = asyncio.create_task(places.wait_async(60))
        await asyncio.sleep(0)
        if given:
            places.give_back()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancelled(given=False))
    assert not places.take()
    asyncio.run(cancelled(given=True))
    assert places.take()
