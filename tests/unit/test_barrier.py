"""The faces of the barrier over a fake store in real threads: ending, sharing, cancelling."""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status, UnknownDatastore, WriteId
from antipode._barrier.barrier import Barrier, run_here
from antipode._barrier.decisions import CONNECT_S, MOST_POLL_S
from antipode.shim import Unreachable
from antipode_testing import wait_until
from antipode_testing.contract.base import in_time, seconds
from tests.unit._fake_server import LINEAGE, POST, FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import BarrierResult
    from antipode._runtime.clock import Stepper


@pytest.fixture
def posts() -> FakeServer:
    """A registered store on which nothing is visible yet."""
    server = FakeServer()
    antipode.shim.register(server)
    return server


def by_thread(timeout: float) -> BarrierResult:
    """The synchronous face."""
    return antipode.barrier(LINEAGE, timeout=timeout, on_unmet="return")


def by_asyncio(timeout: float) -> BarrierResult:
    """The asyncio face."""
    return asyncio.run(antipode.barrier_async(LINEAGE, timeout=timeout, on_unmet="return"))


def by_callback(timeout: float) -> BarrierResult:
    """The callback face."""
    results: list[BarrierResult] = []
    antipode.barrier_callback(results.append, LINEAGE, timeout=timeout)
    wait_until(lambda: bool(results), what="the callback", timeout_s=timeout + 5)
    return results[0]


FACES = pytest.mark.parametrize("face", [by_thread, by_asyncio, by_callback])


@FACES
def test_visible_at_once(face: Callable[[float], BarrierResult], posts: FakeServer) -> None:
    """A barrier with nothing to wait for ends after one look."""
    posts.position = 7
    result = face(5)
    assert result
    assert [outcome.status for outcome in result.outcomes] == [Status.VISIBLE]
    assert result.outcomes[0].server == "server-1"
    assert posts.looks_made == 1


@FACES
def test_visible_later(face: Callable[[float], BarrierResult], posts: FakeServer) -> None:
    """A barrier ends when the dependency becomes visible, not before and not much after."""

    def late_s() -> float:
        shown_s: list[float] = []

        def show() -> None:
            shown_s.append(time.monotonic())
            posts.position = 7

        posts.position = 0
        timer = threading.Timer(0.1, show)
        timer.start()
        result = face(5)
        ended_s = time.monotonic()
        timer.join()
        assert result
        assert ended_s >= shown_s[0]
        return ended_s - shown_s[0]

    assert any(late_s() < 0.1 for _ in range(10))


@FACES
def test_not_visible_in_time(face: Callable[[float], BarrierResult], posts: FakeServer) -> None:
    """A barrier ends at its deadline, and says what it would have waited for."""

    def fails_in_time() -> bool:
        results: list[BarrierResult] = []
        took_s = seconds(lambda: results.append(face(0.1)))
        assert took_s >= 0.1
        assert not results[0]
        assert [str(outcome) for outcome in results[0].unmet] == ["posts:log@7 not_yet"]
        return took_s < 0.2 and results[0].eta_s == 0.25

    assert any(fails_in_time() for _ in range(10))


@FACES
def test_a_server_that_hangs_does_not_hold_the_barrier(
    face: Callable[[float], BarrierResult], posts: FakeServer
) -> None:
    """The deadline holds even while a look gets no reply."""
    posts.hang = threading.Event()

    def fails() -> None:
        assert not face(0.1)

    assert in_time(0.2, fails)
    posts.hang.set()


class Frozen(threading.Event):
    """A server that does not reply, and a clock that counts nothing but the time of its looks."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        """Let a look take all the time that it has."""
        self.now_s += timeout or 0.0
        return False

    def monotonic(self) -> float:
        return self.now_s

    def hour(self) -> int:
        return 0

    def unix_s(self) -> float:
        return 0.0

    def spawn(self, stepper: Stepper) -> None:
        """Nobody else looks."""


class Finished(threading.Event):
    """Notes how long a barrier waits, and does not let it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return False


@pytest.fixture
def frozen(posts: FakeServer) -> Frozen:
    """The store's server, frozen after the library has connected to it."""
    posts.clock = posts.hang = frozen = Frozen()
    posts.watcher._endpoint = posts.open_endpoint(timeout_s=1)
    return frozen


@pytest.mark.parametrize(("timeout", "left_s"), [(0.5, 0.0), (1.0, 0.0), (2.5, 1.5)])
def test_what_a_look_took_is_not_waited_for_again(
    frozen: Frozen, timeout: float, left_s: float
) -> None:
    """A barrier's thread that looks itself at a frozen server ends by the deadline all the same."""
    finished = Finished()
    run_here(Barrier(LINEAGE, timeout=timeout, clock=frozen), finished)
    assert finished.waits == [left_s]


def test_the_error_carries_the_result(posts: FakeServer) -> None:
    """By default an unmet dependency raises, as a TimeoutError, with all outcomes."""
    with pytest.raises(antipode.BarrierTimeout, match="posts:log@7 not_yet") as caught:
        antipode.barrier(LINEAGE, timeout=0.05)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.code == "barrier_timeout"
    assert caught.value.unmet == caught.value.result.outcomes


def test_the_lineage_may_be_current_or_text(posts: FakeServer) -> None:
    """Without a lineage the barrier takes the scope's; a text is decoded."""
    posts.position = 7
    assert antipode.barrier(antipode.serialize(LINEAGE), timeout=1).outcomes
    with antipode.scope(LINEAGE):
        assert antipode.barrier(timeout=1).outcomes
    with pytest.raises(antipode.LineageDecodeError):
        antipode.barrier("no lineage", timeout=1)


def test_an_unreachable_server_is_tried_again_until_the_deadline(posts: FakeServer) -> None:
    """A connection that fails is opened anew; the outcome tells unreachable from not yet."""
    posts.fault = Unreachable("connection refused")
    with pytest.raises(antipode.BarrierTimeout, match=r"unreachable \(connection refused\)"):
        antipode.barrier(LINEAGE, timeout=0.1)
    assert posts.opened > 1
    posts.fault, posts.position = None, 7
    assert antipode.barrier(LINEAGE, timeout=1)


def test_an_unreachable_server_is_told_from_a_late_one_in_the_shortest_wait(
    posts: FakeServer,
) -> None:
    """A wait that is too short for a look of its own says what the last one met."""
    posts.fault = Unreachable("connection refused")
    assert not antipode.barrier(LINEAGE, timeout=0.1, on_unmet="return")
    result = antipode.barrier(LINEAGE, timeout=0.001, on_unmet="return")
    assert [outcome.status for outcome in result.outcomes] == [Status.UNREACHABLE]


@FACES
def test_connecting_takes_no_more_than_the_barrier_has(
    face: Callable[[float], BarrierResult], posts: FakeServer
) -> None:
    """A barrier ends at its deadline while a connection is made, and the next one uses that."""
    posts.position, posts.connecting = 7, threading.Event()

    def ends() -> None:
        start_s = time.monotonic()
        assert not face(0.1)
        assert time.monotonic() - start_s >= 0.1

    assert in_time(0.9, ends)
    posts.connecting.set()
    assert face(5)
    assert posts.opened == 1


def test_connecting_does_not_use_up_the_look(posts: FakeServer) -> None:
    """A server far away is connected to within seconds, and looked at within one."""
    posts.position = 7
    assert antipode.barrier(LINEAGE, timeout=1)
    assert posts.connect_s == pytest.approx(CONNECT_S)
    assert posts.poll_s == pytest.approx(MOST_POLL_S, abs=0.1)


def test_closing_does_not_wait_for_a_connection(
    posts: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is being made as the shim is closed is released once it is there."""
    monkeypatch.setattr("antipode._barrier.watcher.MOST_POLL_S", 0.05)
    posts.connecting = threading.Event()
    waits = antipode.barrier_callback(lambda _: None, LINEAGE, timeout=10)
    wait_until(lambda: posts.opened == 1, what="the watcher to connect", timeout_s=10)
    waits.cancel()
    antipode.shim.unregister("posts")
    assert watching()
    posts.connecting.set()
    wait_until(lambda: not watching(), what="the watcher to end", timeout_s=10)
    assert (posts.opened, posts.open_now) == (1, 0)


def test_a_look_that_cannot_succeed_ends_the_barrier_at_once(posts: FakeServer) -> None:
    """A wrong password is not worth waiting for, and the cause is in the message."""
    posts.fault = PermissionError("wrong password")

    def ends() -> None:
        with pytest.raises(antipode.VisibilityCheckError, match="wrong password"):
            antipode.barrier(LINEAGE, timeout=5)

    assert in_time(1, ends)


def test_all_stores_are_waited_on_at_once_under_one_deadline() -> None:
    """Two stores that lack something cost one timeout, not two."""
    for name in ("posts", "users"):
        antipode.shim.register(FakeServer(name))
    lineage = Lineage([POST, WriteId("users", "log", 1)])

    def fails() -> None:
        assert len(antipode.barrier(lineage, timeout=0.15, on_unmet="return").unmet) == 2

    assert in_time(0.25, fails)


def test_one_hanging_store_does_not_delay_another() -> None:
    """Each store has a watcher of its own: the outcome of the healthy one is known."""
    posts, users = FakeServer("posts", position=7), FakeServer("users")
    users.hang = threading.Event()
    antipode.shim.register(posts)
    antipode.shim.register(users)
    lineage = Lineage([POST, WriteId("users", "log", 1)])
    result = antipode.barrier(lineage, timeout=0.1, on_unmet="return")
    assert {o.write.datastore: o.status for o in result.outcomes} == {
        "posts": Status.VISIBLE,
        "users": Status.NOT_YET,
    }
    users.hang.set()


def test_equal_waits_share_their_looks(posts: FakeServer) -> None:
    """Many barriers at one server cost the looks, the connection and the thread of one."""

    async def many(number: int) -> None:
        waits = (antipode.barrier_async(LINEAGE, timeout=5) for _ in range(number))
        await asyncio.wait_for(asyncio.gather(*waits, show()), 10)

    async def show() -> None:
        await asyncio.sleep(0.1)
        posts.position = 7

    asyncio.run(many(200))
    assert posts.opened == 1
    assert len(posts.threads) == 1
    assert posts.looks_made < 300


def test_cancelling_a_task_leaves_nothing(posts: FakeServer) -> None:
    """A cancelled barrier ends its thread; the task ends as cancelled."""

    async def main() -> None:
        task = asyncio.create_task(antipode.barrier_async(LINEAGE, timeout=20))
        await asyncio.to_thread(posts.looked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    wait_until(lambda: not watching(), what="the watcher to end", timeout_s=10)


def test_cancelling_a_callback_leaves_nothing(posts: FakeServer) -> None:
    """After ``cancel()`` the callback is not called and its threads end."""
    called: list[BarrierResult] = []
    handle = antipode.barrier_callback(called.append, LINEAGE, timeout=20)
    wait_until(lambda: posts.looks_made > 0, what="a look", timeout_s=10)
    handle.cancel()
    wait_until(lambda: not watching(), what="the threads to end", timeout_s=10)
    assert handle.cancelled
    assert not called


def watching() -> list[str]:
    """The names of all threads of barriers."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith(("antipode-watch", "antipode-barrier"))]


def test_a_timeout_leaves_no_thread_and_closing_no_connection(posts: FakeServer) -> None:
    """A registered shim keeps one idle connection; ``unregister`` closes it."""
    antipode.barrier(LINEAGE, timeout=0.05, on_unmet="return")
    wait_until(lambda: not watching(), what="the watcher to end", timeout_s=10)
    assert posts.open_now == 1
    antipode.shim.unregister("posts")
    assert posts.open_now == 0


def test_closing_a_shim_ends_the_barriers_that_wait_for_it(posts: FakeServer) -> None:
    """Nobody hangs on a shim that is gone."""
    closing = posts.after_a_look(posts.close)
    with pytest.raises(antipode.VisibilityCheckError, match="its shim was closed"):
        antipode.barrier(LINEAGE, timeout=10)
    closing.join()


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The system starts none of the library's threads, until this is undone."""
    plain = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("antipode-"):
            raise RuntimeError("can't start new thread")
        plain(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        yield patch


@pytest.mark.parametrize("face", [by_thread, by_asyncio])
def test_a_thread_that_does_not_start_ends_the_barrier_and_no_later_one(
    face: Callable[[float], BarrierResult], posts: FakeServer, no_threads: pytest.MonkeyPatch
) -> None:
    """Nobody could look: it says so at once, and the next barrier tries again."""
    posts.position = 7

    def ends() -> None:
        (outcome,) = face(5).outcomes
        assert outcome.status is Status.UNDECIDABLE
        assert "can't start new thread" in outcome.cause

    assert in_time(1, ends)
    no_threads.undo()
    assert face(5)


@pytest.mark.usefixtures("no_threads")
def test_a_callback_without_a_thread_is_refused() -> None:
    """Nobody could ever call back: the caller learns it at once."""
    with pytest.raises(antipode.VisibilityCheckError, match="can't start new thread") as raised:
        antipode.barrier_callback(print, LINEAGE, timeout=5)
    assert raised.value.result.outcomes


def test_a_thread_that_died_is_replaced(posts: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ended it, the next barrier does not rely on it."""
    posts.position = 7
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(posts.watcher, "_look", _die)
        assert not antipode.barrier(LINEAGE, timeout=0.1, on_unmet="return")
    wait_until(lambda: not watching(), what="its end", timeout_s=10)
    assert antipode.barrier(LINEAGE, timeout=5)


def _die(*_: object) -> None:
    raise SystemExit


def test_a_callback_that_raises_is_logged(
    posts: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception of the user's hook does not vanish, and does not end the process."""
    posts.position = 7

    def fail(_: BarrierResult) -> None:
        raise RuntimeError("in the hook")

    antipode.barrier_callback(fail, LINEAGE, timeout=1)
    wait_until(lambda: "in the hook" in caplog.text, what="the log entry", timeout_s=10)


def test_a_child_process_starts_over(posts: FakeServer) -> None:
    """After a fork the child opens a connection of its own and waits as usual."""
    posts.position = 7
    antipode.barrier(LINEAGE, timeout=1)
    child = os.fork() if hasattr(os, "fork") else pytest.skip("this platform cannot fork")
    if child == 0:
        status = 1
        try:
            met = antipode.barrier(LINEAGE, timeout=1)
            status = 0 if met and posts.opened == 2 else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_many_barriers_from_many_threads_each_get_their_own_answer(posts: FakeServer) -> None:
    """Positions that become visible one after another release exactly the barriers they should."""
    order: list[int] = []
    lock = threading.Lock()

    def wait(version: int) -> None:
        antipode.barrier(Lineage([WriteId("posts", "log", version)]), timeout=10)
        with lock:
            assert posts.position >= version
            order.append(version)

    threads = [threading.Thread(target=wait, args=(version,)) for version in range(1, 21)]
    for thread in threads:
        thread.start()
    for version in range(1, 21):
        posts.position = version
        wait_until(lambda v=version: len(order) >= v, what="the barrier", timeout_s=5)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert sorted(order) == list(range(1, 21))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2~kposts.5.log", "it holds a lineage of format version 2, and this release reads"),
        (
            "1~z1.2~a~z0.3~xnew",
            "versions? 2 and a lineage of format version 3 and items of kind 'x'",
        ),
    ],
)
def test_a_newer_lineage_is_named_in_words(text: str, words: str) -> None:
    """An old barrier that meets a newer text says which version that is, and what to upgrade."""
    with pytest.raises(antipode.IncompleteLineage, match=words) as caught:
        antipode.barrier(text, timeout=1)
    assert "upgrade antipode in this service" in str(caught.value)
    assert caught.value.result.incomplete == {antipode.shim.Incomplete("", "unknown_item")}
    again = copy.deepcopy(caught.value)  # As process pools copy it.
    assert list(map(str, again.result.incomplete)) == list(map(str, caught.value.result.incomplete))


class OfAPool(FakeServer):
    """A client of replicas of which only a read shows which one answers."""

    def __init__(self, datastore: str = "posts") -> None:
        super().__init__(datastore)
        self.can_poll, self.floors, self.reads_from = False, True, "replica"


def test_a_primary_proves_nothing_of_a_replica_that_nobody_polls() -> None:
    """Where no floor can be left, at="now" and check() say so instead of asking the primary."""
    written = Lineage([WriteId("posts", "log", 7)])
    primary, pool = FakeServer(position=9), OfAPool()
    antipode.shim.register(primary)
    assert antipode.check(written).ok
    antipode.shim.register(pool)
    with pytest.raises(UnknownDatastore, match="at='read'"):
        antipode.barrier(written, timeout=1)
    assert not antipode.check(written).ok
    with antipode.scope(written):
        assert antipode.barrier(timeout=1).ok
    near = FakeServer(position=7)
    near.reads_from = "replica"
    antipode.shim.register(near)
    assert antipode.check(written).ok
    antipode.shim.unregister("posts")
