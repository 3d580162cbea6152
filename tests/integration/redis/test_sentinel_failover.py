"""Failovers by real Sentinels: who waits passes only for what is there, and hears of the rest."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel

import antipode
from antipode import (
    ConfigurationError,
    DependencyLost,
    IncompleteLineage,
    Lineage,
    Status,
    VisibilityCheckError,
)
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from antipode_testing import RedisSentinelTopology, wait_until

from ._clients import TIMEOUT_S, client, position, writes_of
from ._sentinels import Watched, eventually, outcome, patiently, read, write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

pytestmark = pytest.mark.store("redis")

IN_DOUBT = Incomplete("posts", "in_doubt")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


@pytest.fixture
def watched(stack: ExitStack) -> Watched:
    """A primary, two replicas and three Sentinels, of this test alone."""
    return Watched(stack.enter_context(RedisSentinelTopology()), stack)


@pytest.fixture
def couple(stack: ExitStack) -> Watched:
    """A primary, its one replica and three Sentinels."""
    return Watched(stack.enter_context(RedisSentinelTopology(replicas=1)), stack)


def test_now_asks_the_present_primary(watched: Watched) -> None:
    """``at="now"`` looks at the primary that Sentinels name, and at the next one after it."""
    writer = watched.writer()
    old = write(writer, "k", "old")
    assert outcome(old) is Status.VISIBLE
    watched.topology.failover(lose_unreplicated=False)
    new = eventually(writer, "k", "new")
    assert new.key != old.key
    assert [outcome(each) for each in (old, new)] == [Status.VISIBLE] * 2
    assert position(watched.topology.primary) >= (new.key, new.version)


def test_primary_that_is_gone_is_unreachable(couple: Watched) -> None:
    """Between two primaries a barrier neither passes nor gives up before its time."""
    written = write(couple.writer(), "k", "v")
    couple.topology.kill_primary()
    assert outcome(written, timeout=0.3).pending
    couple.topology.await_failover()
    assert outcome(written) is Status.VISIBLE


def test_failover_under_load(watched: Watched) -> None:
    """Nothing passes that is not there, and what the promotion lost is told, by the history."""
    topology = watched.topology
    written: dict[str, Lineage] = {}
    stop = threading.Event()

    def keep_writing(name: str) -> None:
        writer = watched.writer(log_history=True)
        number = 0
        while not stop.is_set():
            number += 1
            with antipode.scope() as scope, suppress(redis.ConnectionError, redis.TimeoutError):
                writer.set(f"{name}-{number}", number)
            written[f"{name}-{number}"] = scope.lineage
            stop.wait(0.001)

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(keep_writing, name) for name in ("a", "b")]
        try:
            wait_until(lambda: len(written) > 100, what="writes", timeout_s=TIMEOUT_S)
            topology.pause(replica=0)
            before = len(written)
            wait_until(lambda: len(written) > before + 50, what="more", timeout_s=TIMEOUT_S)
            topology.failover()
            after = len(written)
            wait_until(lambda: len(written) > after + 50, what="the rest", timeout_s=TIMEOUT_S)
        finally:
            stop.set()
        for each in writing:
            each.result(TIMEOUT_S)
    topology.wait_replicated()
    statuses = [judged(watched, key, lineage) for key, lineage in written.items()]
    assert statuses.count(Status.LOST) >= 50
    assert statuses.count(Status.VISIBLE) >= 150
    assert set(statuses) <= {Status.LOST, Status.VISIBLE, None}


def judged(watched: Watched, key: str, lineage: Lineage) -> Status | None:
    """What came of a write, held against the truth; None where its client was in doubt."""
    with client(watched.topology.primary) as truth:
        there = truth.exists(key) == 1
    if not lineage.incomplete and not writes_of(lineage):
        return None  # It could not be sent, or was refused.
    if lineage.incomplete:
        assert lineage.incomplete == {IN_DOUBT}
        with pytest.raises(IncompleteLineage):
            antipode.barrier(lineage, timeout=TIMEOUT_S)
        return None
    status = outcome(writes_of(lineage)[0])
    assert there == (status is Status.VISIBLE), (key, status)
    return status


def test_crash(watched: Watched) -> None:
    """The primary dies; Sentinels choose another by themselves, and barriers go on there."""
    writer, reader = watched.writer(), watched.reader()
    kept = write(writer, "kept", 1)
    watched.topology.wait_replicated()
    watched.topology.kill_primary()
    with antipode.scope() as scope:
        with pytest.raises((redis.ConnectionError, redis.TimeoutError)):
            writer.set("k", "never")
        assert not writes_of(scope.lineage)
    watched.topology.await_failover()
    written = eventually(writer, "k", "new")
    for _ in range(4):
        assert patiently(lambda: read(reader, written, "k")) == b"new"
        assert patiently(lambda: read(reader, kept, "kept")) == b"1"
        reader.connection_pool.disconnect()


def test_demoted_primary_leaves_no_doubt(watched: Watched) -> None:
    """``READONLY``, which Sentinel clients raise as a lost connection, is a clear refusal."""
    writer = watched.writer()
    writer.ping()
    with client(watched.topology.primary) as admin:
        admin.replicaof(*watched.topology.replica)
    with antipode.scope() as scope:
        with pytest.raises(redis.ConnectionError, match="now a slave"):
            writer.set("k", "v")
        writer.connection_pool.reset()
        with pytest.raises(redis.ConnectionError, match="now a slave"):
            writer.pipeline().set("k", "v").execute()
        assert scope.lineage.empty
        shim = watched.stack.enter_context(shims.shim("posts", watched.plain("master_for")))
        with pytest.raises(redis.ConnectionError, match="now a slave"):
            shim.write("k", "v")
        assert scope.lineage.empty
        with pytest.raises(redis.ConnectionError, match="now a slave"):
            writer.pipeline(transaction=False).set("k", "v").set("l", "v").execute()
        assert scope.lineage.incomplete == {IN_DOUBT}  # Nobody read what came of the second.


async def patiently_async(call: Callable[[], Awaitable[Any]]) -> Any:
    """The asyncio twin of ``patiently``."""
    while True:
        with suppress(redis.ConnectionError):
            return await call()
        await asyncio.sleep(0.01)


async def test_failover_over_asyncio(watched: Watched) -> None:
    """An asyncio client follows the promotion; what a demoted primary refuses is not in doubt."""
    addresses, service = watched.topology.sentinels, watched.topology.service
    async with AsyncExitStack() as closes:
        sentinel = redis.asyncio.sentinel.Sentinel(addresses, socket_timeout=TIMEOUT_S)
        closes.push_async_callback(sentinel.aclose)
        writer = await closes.enter_async_context(sentinel.master_for(service))
        reader = await closes.enter_async_context(sentinel.slave_for(service))
        shims.instrument_client(writer, datastore="posts", log_history=True)
        shims.instrument_client(reader, datastore="posts", reads_from="replica")
        for one in (writer, reader):
            closes.callback(shims.uninstrument_client, one)
        with antipode.scope():
            await writer.set("k", "old")
            old = antipode.current()
        watched.topology.failover(lose_unreplicated=False)
        with antipode.scope(old):
            await asyncio.wait_for(patiently_async(writer.ping), TIMEOUT_S)
            with antipode.scope():
                await writer.set("noted", "for the replica that was behind at the promotion")
            await writer.set("l", "new")
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            await asyncio.wait_for(patiently_async(reader.ping), TIMEOUT_S)
            assert await reader.mget("k", "l") == [b"old", b"new"]
        with client(watched.topology.primary) as admin:
            admin.replicaof(*watched.topology.replica)
        with antipode.scope() as scope:
            with pytest.raises(redis.ConnectionError, match="now a slave"):
                await writer.set("k", "refused")
            assert scope.lineage.empty


def test_topology_heals(stack: ExitStack) -> None:
    """Reset undoes lag in place; after a failover, or without a Sentinel, all is built anew."""
    topology = stack.enter_context(RedisSentinelTopology(replicas=1, sentinels=2))
    first = topology.sentinels
    topology.set_lag(1_000)
    topology.suspend_sentinel(1)
    topology.reset()
    assert topology.sentinels == first
    topology.kill_sentinel(0)
    topology.reset()
    assert topology.sentinels != first
    old = topology.primary
    topology.failover(lose_unreplicated=False)
    assert topology.replica == old
    topology.set_lag(20)
    topology.wait_replicated()
    topology.reset()
    topology.close()
    assert topology.closed
    assert topology.sentinels == ()
    with pytest.raises(ConfigurationError, match="at least one Sentinel"):
        RedisSentinelTopology(sentinels=0)


def test_lost_is_raised_under_a_floor(couple: Watched) -> None:
    """A read that depends on what a failover lost says so instead of answering."""
    writer = couple.writer()
    writer.set("k", "old")
    couple.topology.wait_replicated()
    couple.topology.pause()
    lost = write(writer, "k", "lost")
    couple.topology.failover()
    eventually(writer, "other", 1)
    couple.topology.wait_replicated()
    assert outcome(lost) is Status.LOST
    reader = couple.reader()
    assert outcome(lost) is Status.UNKNOWN_STORE, "only a read shows which replica answers"
    patiently(reader.ping)
    with pytest.raises((DependencyLost, VisibilityCheckError)):
        read(reader, lost, "k")
