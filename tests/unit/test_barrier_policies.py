"""What a barrier asks, whom, and what it does about the answer: options, policies, floors."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, Status, WriteId
from antipode._barrier import watcher
from antipode.shim import Unreachable
from antipode_testing.contract.base import in_time
from tests.unit._fake_server import LINEAGE, POST, FakeServer
from tests.unit._floors import floor_in

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def posts() -> FakeServer:
    """A registered store on which nothing is visible yet."""
    server = FakeServer()
    antipode.shim.register(server)
    return server


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
    antipode.shim.register(posts)
    assert not antipode.check(LINEAGE, refresh=False)
    assert posts.looks_made == 0
    antipode.barrier(LINEAGE, timeout=1)
    assert antipode.check(LINEAGE, refresh=False)
    assert asyncio.run(antipode.check_async(LINEAGE, refresh=False))
    assert posts.looks_made == 1


def test_what_is_known_visible_costs_no_round_trip() -> None:
    """On a connection with a pinned history the second barrier does not look."""
    posts = FakeServer(position=7, pinned=True)
    antipode.shim.register(posts)
    for _ in range(5):
        assert antipode.barrier(Lineage([WriteId("posts", "log", 5)]), timeout=1)
    assert posts.looks_made == 1
    posts.fault = Unreachable("reset")
    antipode.barrier(Lineage([WriteId("posts", "log", 9)]), timeout=0.05, on_unmet="return")
    posts.fault = None
    antipode.barrier(Lineage([WriteId("posts", "log", 5)]), timeout=1)
    assert posts.opened > 1


ACL = WriteId("acl", "log", 1)


def test_an_unknown_store_is_reported(posts: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    """Another team's new datastore crashes nobody: counted, logged once, and in the result."""
    posts.position = 7
    metric = antipode.telemetry.Metric("unknown_store", "acl")
    before = antipode.telemetry.metrics().get(metric, 0)
    for _ in range(2):
        result = antipode.barrier(Lineage([POST, ACL]), timeout=1)
        assert result
        assert [(o.status, o.reported) for o in result.outcomes] == [
            (Status.UNKNOWN_STORE, True),
            (Status.VISIBLE, False),
        ]
    assert antipode.check(Lineage([ACL]))
    assert antipode.telemetry.metrics()[metric] == before + 3
    assert len([r for r in caplog.records if "'acl'" in r.getMessage()]) == 1


def test_an_unknown_store_raises_where_it_was_named(posts: FakeServer) -> None:
    """Who names a datastore reads it; what was configured or given outright holds."""
    posts.position = 7
    lineage = Lineage([POST, ACL])
    with pytest.raises(antipode.UnknownDatastore, match="acl:log@1 unknown_store"):
        antipode.barrier(lineage, timeout=1, only=["posts", "acl"])
    with pytest.raises(antipode.UnknownDatastore):
        antipode.barrier(lineage, timeout=1, on_unknown="raise")
    antipode.configure(on_unknown="raise")
    with pytest.raises(antipode.UnknownDatastore):
        antipode.barrier(lineage, timeout=1)
    assert antipode.barrier(lineage, timeout=1, only=["posts", "acl"], on_unknown="report")


class Unique(FakeServer):
    """A fake store whose logs have names that no other store's can have."""

    def log_start(self, key: str) -> WriteId | None:
        return WriteId(self.datastore, key, 1)


MISSPELT = Lineage([WriteId("postz", "log", 9)])
TWO_NAMES = "postz:log@9 unknown_store .*'posts'.*two names"


def test_one_store_under_two_names_is_refused() -> None:
    """A misspelling is no other team's store: the registered one has its log, at any position."""
    antipode.shim.register(Unique(position=7))
    for _ in range(2):
        with pytest.raises(antipode.ConfigurationError, match=TWO_NAMES):
            antipode.barrier(MISSPELT, timeout=5)
        with pytest.raises(antipode.ConfigurationError, match=TWO_NAMES):
            asyncio.run(antipode.barrier_async(MISSPELT, timeout=5))
    for result in (antipode.check(MISSPELT), asyncio.run(antipode.check_async(MISSPELT))):
        assert "'posts'" in result.unmet[0].cause
    called: list[antipode.BarrierResult] = []
    done = threading.Event()

    def finished(result: antipode.BarrierResult) -> None:
        called.append(result)
        done.set()

    antipode.barrier_callback(finished, MISSPELT, timeout=5)
    assert done.wait(5)
    assert not called[0]


def test_a_store_is_asked_once_about_a_log_that_it_does_not_know() -> None:
    """A datastore that is really another one costs a look now and then, not one a barrier."""
    posts = Unique(position=0)
    posts.unknown_logs = frozenset(f"log-{n}" for n in range(3))
    antipode.shim.register(posts)
    for version in range(20):
        writes = [WriteId("other", log, version) for log in posts.unknown_logs]
        assert antipode.barrier(Lineage(writes), timeout=5)
    assert posts.looks_made == 1


def test_few_unknown_logs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of logs come from outside: however many there are, memory is bounded."""
    monkeypatch.setattr(watcher, "MOST_UNKNOWN", 3)
    posts = Unique(position=0)
    posts.unknown_logs = frozenset(f"log-{n}" for n in range(10))
    antipode.shim.register(posts)
    for log in sorted(posts.unknown_logs):
        assert antipode.barrier(Lineage([WriteId("other", log, 1)]), timeout=5)
    lacks = [log for log in posts.unknown_logs if posts.watcher.lacks(WriteId("posts", log, 1))]
    assert lacks == ["log-9"]


def test_an_incomplete_lineage_raises_unless_reported(posts: FakeServer) -> None:
    """What is known to be missing cannot be waited for, so it fails at once."""
    lineage = Lineage([POST], incomplete=[("mail", "in_doubt")])
    with pytest.raises(antipode.IncompleteLineage, match=r"mail \(in_doubt\)"):
        antipode.barrier(lineage, timeout=20)
    posts.position = 7
    assert antipode.barrier(lineage, timeout=1, on_incomplete="report")
    antipode.configure(on_incomplete="report")
    assert antipode.barrier(lineage, timeout=1)


def test_a_barrier_waits_no_longer_than_configured(posts: FakeServer) -> None:
    """A forged lineage keeps nobody longer than ``max_timeout``."""
    antipode.configure(max_timeout=0.1)

    def fails() -> None:
        assert not antipode.barrier(LINEAGE, timeout=20, on_unmet="return")

    assert in_time(0.2, fails)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_timeouts_that_make_no_sense_are_refused(timeout: float) -> None:
    """A deadline is a positive number of seconds."""
    with pytest.raises(ValueError, match="positive and finite"):
        antipode.barrier(timeout=timeout)


@pytest.mark.parametrize("timeout", [None, "5", True, object()])
def test_timeouts_that_are_no_numbers_are_refused(timeout: Any) -> None:
    """In words, before anything is compared."""
    with pytest.raises(TypeError, match=r"timeout must be a number of seconds, such as 5, not "):
        antipode.barrier(timeout=timeout)
    with pytest.raises(TypeError, match="timeout must be a number of seconds"):
        asyncio.run(antipode.barrier_async(timeout=timeout))
    with pytest.raises(TypeError, match="timeout must be a number of seconds"):
        antipode.barrier_callback(print, timeout=timeout)


def test_no_timeout_is_no_endless_one() -> None:
    """Whoever passes None is told what there is in its place."""
    with pytest.raises(TypeError, match=r"check\(\)"):
        antipode.barrier(timeout=None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "options",
    [{"at": "later"}, {"on_unmet": "ignore"}, {"on_unknown": "pass"}, {"mode": "dry"}],
)
def test_unknown_options_are_refused(options: dict[str, str]) -> None:
    """A misspelt policy is no policy: the message lists what there is."""
    with pytest.raises(antipode.ConfigurationError, match="must be"):
        antipode.barrier(timeout=1, **options)  # type: ignore[arg-type]


FACES = {
    "barrier": lambda: antipode.barrier(timeout=1),
    "barrier_async": lambda: asyncio.run(antipode.barrier_async(timeout=1)),
    "barrier_callback": lambda: antipode.barrier_callback(print, timeout=1),
    "check": lambda: antipode.check(),  # noqa: PLW0108 - a caller with a line
    "check_async": lambda: asyncio.run(antipode.check_async()),
    "wait": lambda: FakeServer().wait(timeout=1),
}


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_without_a_scope_and_a_lineage_it_is_refused(face: Callable[[], object]) -> None:
    """A thread that lost its request's context would be told at once that all is visible."""
    metric = antipode.telemetry.Metric("unscoped_barrier")
    before = antipode.telemetry.metrics().get(metric, 0)
    with (
        antipode.scope(LINEAGE),
        ThreadPoolExecutor(1) as pool,
        pytest.raises(
            antipode.ConfigurationError, match=r"test_barrier_policies.py:\d+ outside a scope"
        ),
    ):
        pool.submit(face).result()
    assert antipode.telemetry.metrics()[metric] == before + 1


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_without_a_scope_and_a_lineage_it_is_reported(face: Callable[[], object]) -> None:
    """``on_unscoped="report"`` has to be asked for: then it waits for nothing, and is counted."""
    antipode.configure(on_unscoped="report")
    metric = antipode.telemetry.Metric("unscoped_barrier")
    before = antipode.telemetry.metrics().get(metric, 0)
    face()
    assert antipode.telemetry.metrics()[metric] == before + 1


def test_a_lineage_needs_no_scope(posts: FakeServer) -> None:
    """Who says what to wait for is waited for anywhere."""
    posts.position = 7
    assert antipode.barrier(LINEAGE, timeout=1)
    assert antipode.barrier(Lineage(), timeout=1)
    assert antipode.check(antipode.serialize(LINEAGE))


def test_a_lineage_that_was_discarded_is_not_missing(posts: FakeServer) -> None:
    """After ``stop()`` a request has a scope, and nothing in it to wait for."""
    with antipode.scope(LINEAGE):
        antipode.stop()
        assert antipode.barrier(timeout=1).outcomes == ()
        assert antipode.check()
    assert posts.looks_made == 0


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
        floor = floor_in(held, "posts")
    assert floor is not None
    assert floor.proved("server-1")
    assert not floor.proved("server-2")


async def test_a_barrier_that_blocks_the_loop_is_told(
    posts: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the line; what has nothing to look at blocks nothing, nor does the async API."""
    metric = antipode.telemetry.Metric("blocked_loop")
    before = antipode.telemetry.metrics().get(metric, 0)
    posts.position = 7
    posts.floors = True
    with antipode.scope(LINEAGE):
        await antipode.barrier_async(timeout=5)
        antipode.barrier(timeout=5, at="read")
        antipode.barrier(timeout=5, mode="off")
        antipode.barrier(Lineage(), timeout=5)
        await asyncio.to_thread(antipode.barrier, timeout=5)
        assert antipode.telemetry.metrics().get(metric, 0) == before
        for _ in range(2):
            antipode.barrier(timeout=5)
        antipode.check()
    assert antipode.telemetry.metrics()[metric] == before + 3
    told = [r.getMessage() for r in caplog.records if "blocks the event loop" in r.getMessage()]
    assert len(told) == 2
    assert all("test_barrier_policies.py" in each for each in told)


def test_a_barrier_in_a_thread_blocks_no_loop(posts: FakeServer) -> None:
    """Where no loop runs there is nothing to tell."""
    metric = antipode.telemetry.Metric("blocked_loop")
    before = antipode.telemetry.metrics().get(metric, 0)
    posts.position = 7
    assert antipode.barrier(LINEAGE, timeout=5)
    assert antipode.telemetry.metrics().get(metric, 0) == before
