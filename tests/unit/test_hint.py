"""Hints: a watcher looks for all held reads, which end their pauses by it and decide themselves."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

import antipode
from antipode import Status, WriteId
from antipode._barrier.floor import RARELY
from antipode.shim import SYSTEM_CLOCK, Floor, Observation, Pacer, Unreachable
from antipode_testing import wait_until
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode._barrier.subscribers import Subscriber
    from antipode._barrier.watcher import Watcher

    Look = Callable[[float], Observation]
    Hold = Callable[[Floor, Look, "FakeWatcher"], None]

POST = WriteId("posts", "log", 7)
REPLY = WriteId("posts", "log", 9)


class FakeWatcher:
    """A fake: whoever subscribes is told what the test says, from a thread of its own."""

    clock = SYSTEM_CLOCK

    def __init__(self, *tell: Callable[[Subscriber], None]) -> None:
        self.tell = tell
        self.subscribers: list[Subscriber] = []
        self.threads: list[threading.Thread] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Remember, and tell."""
        self.subscribers.append(subscriber)
        for each in self.tell:
            thread = threading.Thread(target=each, args=(subscriber,))
            self.threads.append(thread)
            thread.start()

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Forget."""
        for thread in self.threads:
            thread.join()
        self.subscribers.remove(subscriber)


def hold(demand: Floor, look: Look, watcher: FakeWatcher) -> None:
    """The synchronous face."""
    demand.hold(look, watcher=cast("Watcher", watcher))


def hold_async(demand: Floor, look: Look, watcher: FakeWatcher) -> None:
    """The asyncio face."""

    async def look_async(timeout_s: float) -> Observation:
        return look(timeout_s)

    asyncio.run(demand.hold_async(look_async, watcher=cast("Watcher", watcher)))


FACES = pytest.mark.parametrize("face", [hold, hold_async])


def floor(timeout_s: float = 20, *writes: WriteId) -> Floor:
    """A floor under POST, or under *writes*."""
    return floor_of("posts", *(writes or [POST]), timeout_s=timeout_s)


def seen(status: Status, *writes: WriteId) -> Callable[[Subscriber], None]:
    """What a watcher tells of a look."""
    statuses = dict.fromkeys(writes or [POST], status)
    return lambda to: to.take("posts", Observation("server-1", statuses))


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a hint a read pauses for longer than any test."""

    def pause_s(pacer: Pacer, waited_s: float) -> float:
        del pacer, waited_s
        return 60.0

    monkeypatch.setattr(Pacer, "pause_s", pause_s)


class Server:
    """What the read's own connection shows: not yet, for so many looks."""

    def __init__(self, behind: int) -> None:
        self.behind = behind
        self.looks = 0

    def __call__(self, timeout_s: float) -> Observation:
        """Look."""
        assert timeout_s > 0
        self.looks += 1
        late = self.looks <= self.behind
        return Observation("server-1", {POST: Status.NOT_YET if late else Status.VISIBLE})


def unpaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads that pace themselves, as behind a hint, do not pause: pauses for a hint do."""

    def sleep(_: float) -> None:
        """No time passes."""

    async def sleep_async(_: float) -> None:
        """No time passes."""

    monkeypatch.setattr("antipode._barrier.floor.time.sleep", sleep)
    monkeypatch.setattr("asyncio.sleep", sleep_async)


@FACES
@pytest.mark.usefixtures("long_pauses")
def test_a_hint_ends_the_pause(face: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher saw it: the read looks at once, by itself, and is let go; it waits no longer."""
    unpaced(monkeypatch)
    server, watcher = Server(2), FakeWatcher(seen(Status.VISIBLE))
    demand = floor()
    face(demand, server, watcher)
    assert server.looks == 3
    assert demand.left_s > 10
    assert watcher.subscribers == []


@FACES
def test_a_hint_decides_nothing(face: Hold) -> None:
    """A watcher that looks at another server lets no read go that its own does not show."""
    server, watcher = Server(10**9), FakeWatcher(seen(Status.VISIBLE))
    with pytest.raises(antipode.BarrierTimeout):
        face(floor(0.1), server, watcher)
    assert server.looks > 5  # As often as without a hint.
    assert watcher.subscribers == []


@FACES
def test_without_a_hint_a_read_looks_rarely(face: Hold) -> None:
    """A watcher that looks at a server that is behind for ever holds no read back."""
    server, watcher, demand = Server(4), FakeWatcher(seen(Status.NOT_YET)), floor()
    face(demand, server, watcher)
    assert server.looks == 5
    least_s = Pacer.LEAST_S * (1 - Pacer.JITTER)
    assert 20 - demand.left_s > 4 * least_s * RARELY * 0.9  # Clocks tick.
    assert watcher.subscribers == []


@FACES
@pytest.mark.usefixtures("long_pauses")
@pytest.mark.parametrize("status", [Status.LOST, Status.UNKNOWN_LOG, Status.SUPERSEDED])
def test_what_cannot_be_waited_for_is_looked_at(
    face: Hold, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher that sees no use in waiting ends the pause, whatever the read's server says."""
    unpaced(monkeypatch)
    server = Server(1)
    face(floor(), server, FakeWatcher(seen(status)))
    assert server.looks == 2


@FACES
@pytest.mark.usefixtures("long_pauses")
def test_all_of_it_must_be_seen(face: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two writes, the later one ends the pause, in whichever order they are seen."""
    unpaced(monkeypatch)
    wanted: list[set[Any]] = []

    def both(to: Subscriber) -> None:
        wanted.append(set(to.wanted("posts")))
        seen(Status.VISIBLE, POST)(to)
        wanted.append(set(to.wanted("posts")))
        seen(Status.VISIBLE, REPLY)(to)
        wanted.append(set(to.wanted("posts")))

    def look(_: float) -> Observation:
        status = Status.VISIBLE if len(wanted) > 2 else Status.NOT_YET
        return Observation("server-1", {POST: status, REPLY: status})

    face(floor(20, POST, REPLY), look, FakeWatcher(both))
    assert wanted == [{POST, REPLY}, {REPLY}, set()]


@FACES
@pytest.mark.usefixtures("long_pauses")
@pytest.mark.parametrize(
    "tell", [lambda to: to.unreachable("posts", "away"), lambda to: to.failed("posts", "closed")]
)
def test_a_watcher_that_cannot_look_leaves_the_read_to_itself(
    face: Hold, tell: Callable[[Subscriber], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read goes on by its own connection, at its own pace."""
    unpaced(monkeypatch)
    server, demand = Server(4), floor()
    face(demand, server, FakeWatcher(tell))
    assert server.looks == 5
    assert demand.left_s > 10


@FACES
def test_nothing_is_asked_of_a_watcher_without_need(face: Hold) -> None:
    """A read whose first look shows everything opens nothing."""
    watcher = FakeWatcher(seen(Status.VISIBLE))
    face(floor(), Server(0), watcher)
    assert watcher.threads == []  # Whoever subscribes is told by one.


@FACES
def test_a_connection_that_fails_ends_the_wait_at_the_watcher(face: Hold) -> None:
    """Whatever ends the hold, nobody is left waiting."""
    looks: list[None] = []
    watcher = FakeWatcher()

    def fails(_: float) -> Observation:
        looks.append(None)
        if len(looks) > 1:
            raise Unreachable("reset")
        return Observation("server-1", {POST: Status.NOT_YET})

    with pytest.raises(Unreachable):
        face(floor(), fails, watcher)
    assert watcher.subscribers == []


@pytest.mark.usefixtures("long_pauses")
def test_a_cancelled_task_waits_no_longer() -> None:
    """Cancelled in its pause, it leaves neither a timer nor a place at the watcher."""

    async def session() -> None:
        loop, began = asyncio.get_running_loop(), asyncio.Event()

        def tell(_: Subscriber) -> None:
            loop.call_soon_threadsafe(began.set)

        watcher = FakeWatcher(tell)

        async def look(_: float) -> Observation:
            return Observation("server-1", {POST: Status.NOT_YET})

        task = asyncio.create_task(floor().hold_async(look, watcher=cast("Watcher", watcher)))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert watcher.subscribers == []

    asyncio.run(session())


def test_a_hint_for_a_loop_that_is_gone_is_no_error() -> None:
    """A watcher's thread may give it while the loop that waited is being closed."""
    from antipode._barrier.hint import Hint

    watcher = FakeWatcher()
    hint = Hint(cast("Watcher", watcher), {POST})
    loop = asyncio.new_event_loop()
    task = loop.create_task(hint.pause_async(60))
    loop.run_until_complete(asyncio.sleep(0))
    wait_until(lambda: hint._end is not None, what="the pause", timeout_s=5)
    end = hint._end
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    hint._end = end
    hint.failed("posts", "closed")
    assert hint.given
