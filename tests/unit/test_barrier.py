"""The faces of the barrier over a fake store in real threads: outcomes, sharing, cancelling."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode.shim import Endpoint, Observation, Shim, Unreachable
from antipode.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode import BarrierResult

POST = WriteId("posts", "log", 7)
LINEAGE = Lineage([POST])


class FakeServer(Shim):
    """A fake store with one position, in real time."""

    def __init__(
        self, datastore: str = "posts", *, position: int = 0, pinned: bool = False
    ) -> None:
        super().__init__(datastore)
        self.position = position
        self.pinned = pinned
        self.looks_made = 0
        self.opened = 0
        self.open_now = 0
        self.looked = threading.Event()
        self.threads: set[int] = set()
        self.fault: Exception | None = None
        self.hang: threading.Event | None = None

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        self.opened += 1
        self.open_now += 1
        return FakeConnection(self)


class FakeConnection(Endpoint):
    """A connection to a :class:`FakeServer`."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.pinned = server.pinned

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        server = self.server
        server.looks_made += 1
        server.looked.set()
        server.threads.add(threading.get_ident())
        if server.hang is not None:
            server.hang.wait(timeout_s)
            raise Unreachable("no reply")
        if server.fault is not None:
            raise server.fault
        position = server.position
        shown = {w: Status.VISIBLE for w in writes if int(w.version) <= position}
        return Observation("server-1", shown, eta_s=0.25)

    def close(self) -> None:
        self.server.open_now -= 1


@pytest.fixture
def posts() -> FakeServer:
    """A registered store on which nothing is visible yet."""
    server = FakeServer()
    antipode.register(server)
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
    shown_s: list[float] = []

    def show() -> None:
        posts.position = 7
        shown_s.append(time.monotonic())

    timer = threading.Timer(0.1, show)
    timer.start()
    result = face(5)
    ended_s = time.monotonic()
    timer.join()
    assert result
    assert 0 <= ended_s - shown_s[0] < 0.1


@FACES
def test_not_visible_in_time(face: Callable[[float], BarrierResult], posts: FakeServer) -> None:
    """A barrier ends at its deadline, and says what it would have waited for."""
    start_s = time.monotonic()
    result = face(0.1)
    assert 0.1 <= time.monotonic() - start_s < 0.2
    assert not result
    assert [str(outcome) for outcome in result.unmet] == ["posts:log@7 not_yet"]
    assert result.eta_s == 0.25


@FACES
def test_a_server_that_hangs_does_not_hold_the_barrier(
    face: Callable[[float], BarrierResult], posts: FakeServer
) -> None:
    """The deadline holds even while a look gets no reply."""
    posts.hang = threading.Event()
    start_s = time.monotonic()
    result = face(0.1)
    assert time.monotonic() - start_s < 0.2
    assert not result
    posts.hang.set()


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


def test_a_look_that_cannot_succeed_ends_the_barrier_at_once(posts: FakeServer) -> None:
    """A wrong password is not worth waiting for, and the cause is in the message."""
    posts.fault = PermissionError("wrong password")
    start_s = time.monotonic()
    with pytest.raises(antipode.VisibilityCheckError, match="wrong password"):
        antipode.barrier(LINEAGE, timeout=5)
    assert time.monotonic() - start_s < 1


def test_all_stores_are_waited_on_at_once_under_one_deadline() -> None:
    """Two stores that lack something cost one timeout, not two."""
    for name in ("posts", "users"):
        antipode.register(FakeServer(name))
    start_s = time.monotonic()
    result = antipode.barrier(
        Lineage([POST, WriteId("users", "log", 1)]), timeout=0.15, on_unmet="return"
    )
    assert time.monotonic() - start_s < 0.25
    assert len(result.unmet) == 2


def test_one_hanging_store_does_not_delay_another() -> None:
    """Each store has a watcher of its own: the outcome of the healthy one is known."""
    posts, users = FakeServer("posts", position=7), FakeServer("users")
    users.hang = threading.Event()
    antipode.register(posts)
    antipode.register(users)
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
    wait_until(lambda: not watching(), what="the watcher to end", timeout_s=2)


def test_cancelling_a_callback_leaves_nothing(posts: FakeServer) -> None:
    """After ``cancel()`` the callback is not called and its threads end."""
    called: list[BarrierResult] = []
    handle = antipode.barrier_callback(called.append, LINEAGE, timeout=20)
    wait_until(lambda: posts.looks_made > 0, what="a look", timeout_s=2)
    handle.cancel()
    wait_until(lambda: not watching(), what="the threads to end", timeout_s=2)
    assert handle.cancelled
    assert not called


def watching() -> list[str]:
    """The names of all threads of barriers."""
    return [t.name for t in threading.enumerate() if t.name.startswith("antipode-")]


def test_a_timeout_leaves_no_thread_and_closing_no_connection(posts: FakeServer) -> None:
    """A registered shim keeps one idle connection; ``unregister`` closes it."""
    antipode.barrier(LINEAGE, timeout=0.05, on_unmet="return")
    wait_until(lambda: not watching(), what="the watcher to end", timeout_s=2)
    assert posts.open_now == 1
    antipode.unregister("posts")
    assert posts.open_now == 0


def test_closing_a_shim_ends_the_barriers_that_wait_for_it(posts: FakeServer) -> None:
    """Nobody hangs on a shim that is gone."""
    timer = threading.Timer(0.05, posts.close)
    timer.start()
    with pytest.raises(antipode.VisibilityCheckError, match="its shim was closed"):
        antipode.barrier(LINEAGE, timeout=10)
    timer.join()


def test_a_callback_that_raises_is_logged(
    posts: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception of the user's hook does not vanish, and does not end the process."""
    posts.position = 7

    def fail(_: BarrierResult) -> None:
        raise RuntimeError("in the hook")

    antipode.barrier_callback(fail, LINEAGE, timeout=1)
    wait_until(lambda: "in the hook" in caplog.text, what="the log entry", timeout_s=2)


def test_check_looks_once_and_never_raises(posts: FakeServer) -> None:
    """A consumer learns what is missing and when to come back."""
    result = antipode.check(LINEAGE)
    assert not result
    assert (posts.looks_made, result.eta_s) == (1, 0.25)
    posts.position = 7
    assert asyncio.run(antipode.check_async(LINEAGE))
    posts.fault = Unreachable("refused")
    assert antipode.check(LINEAGE).outcomes[0].status is Status.UNREACHABLE


def test_check_without_refresh_asks_nobody() -> None:
    """``refresh=False`` judges by what is known on the connection that is there."""
    posts = FakeServer(position=7, pinned=True)
    antipode.register(posts)
    assert not antipode.check(LINEAGE, refresh=False)
    assert posts.looks_made == 0
    antipode.barrier(LINEAGE, timeout=1)
    assert antipode.check(LINEAGE, refresh=False)
    assert asyncio.run(antipode.check_async(LINEAGE, refresh=False))
    assert posts.looks_made == 1


def test_what_is_known_visible_costs_no_round_trip() -> None:
    """On a connection with a pinned history the second barrier does not look."""
    posts = FakeServer(position=7, pinned=True)
    antipode.register(posts)
    for _ in range(5):
        assert antipode.barrier(Lineage([WriteId("posts", "log", 5)]), timeout=1)
    assert posts.looks_made == 1
    posts.fault = Unreachable("reset")
    antipode.barrier(Lineage([WriteId("posts", "log", 9)]), timeout=0.05, on_unmet="return")
    posts.fault = None
    antipode.barrier(Lineage([WriteId("posts", "log", 5)]), timeout=1)
    assert posts.opened > 1


def test_nothing_is_known_where_connections_outlive_histories(posts: FakeServer) -> None:
    """Without a pinned history every barrier looks again."""
    posts.position = 7
    for _ in range(3):
        antipode.barrier(LINEAGE, timeout=1)
    assert posts.looks_made == 3


def test_two_replicas_under_one_name_are_refused_for_now() -> None:
    """Nobody could say which of them the next read asks."""
    antipode.register(FakeServer())
    antipode.register(FakeServer())
    with pytest.raises(antipode.ConfigurationError, match="at='read'"):
        antipode.barrier(LINEAGE, timeout=1)


def test_the_replica_is_preferred_to_the_primary() -> None:
    """With both registered the barrier waits where the reads go."""
    primary, replica = FakeServer(position=7), FakeServer(position=7)
    primary.reads_from = "primary"
    antipode.register(primary)
    antipode.register(replica)
    antipode.barrier(LINEAGE, timeout=1)
    assert (primary.looks_made, replica.looks_made) == (0, 1)


def test_only_and_exclude_report_what_they_leave_out(posts: FakeServer) -> None:
    """Stores outside ``only`` are reported, never raised, even when nobody knows them."""
    lineage = Lineage([POST, WriteId("analytics", "log", 1)], incomplete=[("mail", "in_doubt")])
    posts.position = 7
    for options in ({"only": "posts"}, {"exclude": ["analytics", "mail"]}):
        result = antipode.barrier(lineage, timeout=1, **options)  # type: ignore[arg-type]
        assert {o.write.datastore: o.status for o in result.outcomes} == {
            "posts": Status.VISIBLE,
            "analytics": Status.EXCLUDED,
        }


def test_an_unknown_store_raises_unless_reported(posts: FakeServer) -> None:
    """A forgotten shim does not pass silently; ``report`` serves a roll-out."""
    posts.position = 7
    lineage = Lineage([POST, WriteId("acl", "log", 1)])
    with pytest.raises(antipode.UnknownDatastore, match="acl:log@1 unknown_store"):
        antipode.barrier(lineage, timeout=1)
    result = antipode.barrier(lineage, timeout=1, on_unknown="report")
    assert result
    assert [o.reported for o in result.outcomes] == [True, False]


def test_an_incomplete_lineage_raises_unless_reported(posts: FakeServer) -> None:
    """What is known to be missing cannot be waited for, so it fails at once."""
    lineage = Lineage([POST], incomplete=[("mail", "in_doubt")])
    with pytest.raises(antipode.IncompleteLineage, match=r"mail \(in_doubt\)"):
        antipode.barrier(lineage, timeout=20)
    posts.position = 7
    assert antipode.barrier(lineage, timeout=1, on_incomplete="report")
    antipode.configure(on_incomplete="report")
    assert antipode.barrier(lineage, timeout=1)


def test_mode_off_asks_nobody(posts: FakeServer) -> None:
    """Switched off, a barrier passes and reports that it did not look."""
    result = antipode.barrier(LINEAGE, timeout=1, mode="off")
    assert result
    assert result.outcomes[0].status is Status.EXCLUDED
    assert posts.looks_made == 0


def test_a_barrier_waits_no_longer_than_configured(posts: FakeServer) -> None:
    """A forged lineage keeps nobody longer than ``max_timeout``."""
    antipode.configure(max_timeout=0.1)
    start_s = time.monotonic()
    assert not antipode.barrier(LINEAGE, timeout=20, on_unmet="return")
    assert time.monotonic() - start_s < 0.2


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_timeouts_that_make_no_sense_are_refused(timeout: float) -> None:
    """A deadline is a positive number of seconds."""
    with pytest.raises(ValueError, match="positive and finite"):
        antipode.barrier(timeout=timeout)


@pytest.mark.parametrize(
    "options",
    [{"at": "later"}, {"on_unmet": "ignore"}, {"on_unknown": "pass"}, {"mode": "dry"}],
)
def test_unknown_options_are_refused(options: dict[str, str]) -> None:
    """A misspelt policy is no policy: the message lists what there is."""
    with pytest.raises(antipode.ConfigurationError, match="must be"):
        antipode.barrier(timeout=1, **options)  # type: ignore[arg-type]


def test_at_read_leaves_a_floor_and_asks_nobody(posts: FakeServer) -> None:
    """Behind a pool only the read knows its replica: the demand waits in the scope."""
    posts.floors = True
    with antipode.scope(LINEAGE) as held:
        result = antipode.barrier(timeout=3, at="read")
        floor = held.floor("posts")
    assert result
    assert result.outcomes[0].status is Status.DEFERRED
    assert floor is not None
    assert floor.writes == {POST}
    assert floor.left_s == 3
    assert posts.looks_made == 0


def test_at_read_without_an_instrumented_client_is_an_unknown_store(posts: FakeServer) -> None:
    """A floor that no read would ever check must not pass."""
    with antipode.scope(LINEAGE), pytest.raises(antipode.UnknownDatastore):
        antipode.barrier(timeout=3, at="read")


def test_at_read_needs_a_scope(posts: FakeServer) -> None:
    """Without a scope the floor would be lost."""
    posts.floors = True
    with pytest.raises(antipode.ConfigurationError, match=r"antipode\.scope"):
        antipode.barrier(LINEAGE, timeout=3, at="read")


def test_a_barrier_now_leaves_what_it_proved_for_the_reads(posts: FakeServer) -> None:
    """The read may come by another connection, which then compares its server's incarnation."""
    posts.floors, posts.position = True, 7
    with antipode.scope(LINEAGE) as held:
        antipode.barrier(timeout=1)
        floor = held.floor("posts")
    assert floor is not None
    assert floor.proved_on == {"server-1"}


def test_a_message_store_without_receipts_is_reported(posts: FakeServer) -> None:
    """A notification that nobody could ever see locally is not waited for."""
    posts.waitable = False
    result = antipode.barrier(LINEAGE, timeout=1)
    assert result
    assert result.outcomes[0].status is Status.NOT_WAITABLE


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
