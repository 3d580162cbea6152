"""Clients made by Sentinel, over real Sentinels: what they read and wait for."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    IncompleteLineage,
    Lineage,
    Status,
    VisibilityCheckError,
)
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from antipode_testing import RedisSentinelTopology
from antipode_testing.contract.base import in_time

from ._clients import TIMEOUT_S, writes_of
from ._sentinels import Watched, eventually, outcome, patiently, read, write

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("redis")

ROUNDS = 100


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


def test_stalled_replica_is_never_read_stale(watched: Watched) -> None:
    """Connections go to two replicas in turn, one of them stalled: a read is fresh or says no."""
    writer, reader = watched.writer(), watched.reader()
    writer.set("k", "old")
    watched.topology.wait_replicated()
    watched.topology.pause(replica=1)
    found: list[Any] = []
    stalled = set()
    for number in range(ROUNDS):
        written = write(writer, "k", number)
        try:
            found.append(int(read(reader, written, "k", timeout=0.1)) == number)
        except BarrierTimeout as error:
            found.append(None)
            stalled.add(error.server)
        reader.connection_pool.disconnect()  # The next connection goes to the next replica.
    assert False not in found
    assert found.count(True) >= ROUNDS / 4
    assert found.count(None) >= ROUNDS / 4
    assert stalled == {("redis", *watched.topology.replicas[1])}
    watched.topology.resume(replica=1)
    assert read(reader, write(writer, "k", "last"), "k") == b"last"


async def test_stalled_replica_is_never_read_stale_by_tasks(watched: Watched) -> None:
    """The same for tasks, each on a connection of its own, and with a lag instead: all fresh."""
    addresses, service = watched.topology.sentinels, watched.topology.service
    async with AsyncExitStack() as closes:
        sentinel = redis.asyncio.sentinel.Sentinel(addresses, socket_timeout=TIMEOUT_S)
        closes.push_async_callback(sentinel.aclose)
        writer = await closes.enter_async_context(sentinel.master_for(service))
        reader = await closes.enter_async_context(sentinel.slave_for(service))
        shims.instrument_client(writer, datastore="posts")
        shims.instrument_client(reader, datastore="posts", reads_from="replica")
        for one in (writer, reader):
            closes.callback(shims.uninstrument_client, one)

        async def fresh(timeout: float) -> bool | None:
            value = asyncio.current_task().get_name()  # type: ignore[union-attr]
            with antipode.scope():
                await writer.set(f"k-{value}", value)
                await antipode.barrier_async(timeout=timeout, at="read")
                try:
                    return bool(await reader.get(f"k-{value}") == value.encode())
                except BarrierTimeout:
                    return None

        watched.topology.pause(replica=1)
        found = [
            each
            for _ in range(ROUNDS // 10)
            for each in await asyncio.gather(*(fresh(0.2) for _ in range(10)))
        ]
        assert False not in found
        assert {True, None} <= set(found)
        watched.topology.resume(replica=1)
        watched.topology.set_lag(40, replica=1)
        assert await asyncio.gather(*(fresh(TIMEOUT_S) for _ in range(20))) == [True] * 20


def test_now_does_not_choose_among_replicas(watched: Watched) -> None:
    """Nobody knows which of two replicas is read next: alone they cannot be waited for now."""
    written = write(watched.writer(), "k", "v")
    antipode.shim.unregister("posts")
    reader = watched.reader()
    assert outcome(written) is Status.UNKNOWN_STORE
    assert read(reader, written, "k") == b"v"
    shims.uninstrument_client(reader)
    watched.reader(one_server=True)
    with pytest.raises(VisibilityCheckError, match="2 replicas"):
        antipode.barrier(Lineage([written]), timeout=TIMEOUT_S)


def test_now_beside_replicas_leaves_a_floor(watched: Watched) -> None:
    """With a client of the primary ``now`` passes there; reads of replicas are held by a floor."""
    writer, reader = watched.writer(), watched.reader()
    writer.set("k", "old")
    watched.topology.wait_replicated()
    watched.topology.set_lag(60)
    for number in range(6):
        with antipode.scope():
            writer.set("k", number)
            antipode.barrier(timeout=TIMEOUT_S)
            assert int(reader.get("k")) == number
        reader.connection_pool.disconnect()


def test_now_waits_at_the_only_replica(couple: Watched) -> None:
    """Said to be one server, a client of one replica is waited for there, through a failover."""
    writer, reader = couple.writer(), couple.reader(one_server=True)
    plain = couple.plain("slave_for")
    couple.topology.set_lag(80)
    for number in range(3):
        assert outcome(write(writer, "k", number)) is Status.VISIBLE
        assert int(plain.get("k")) == number
    shim = next(each for each in antipode.shim.shims_of("posts") if each.reads_from == "replica")
    assert shim.server_name == ("redis", *couple.topology.replicas[0])
    couple.topology.set_lag(0)
    couple.topology.failover(lose_unreplicated=False)
    written = eventually(writer, "k", "new")
    assert outcome(written) is Status.VISIBLE
    assert patiently(lambda: read(reader, written, "k")) == b"new"


def test_fence_needs_most_sentinels(watched: Watched) -> None:
    """One Sentinel alone may be cut off with an old primary: its word makes up for nothing."""
    writer = watched.writer()
    writer.set("k", "v")
    lost = Lineage(incomplete=[Incomplete("posts", "unsampled")])
    watched.topology.kill_sentinel(0)
    assert antipode.barrier(lost, timeout=TIMEOUT_S).ok
    watched.topology.kill_sentinel(1)
    with pytest.raises(IncompleteLineage):
        antipode.barrier(lost, timeout=1)
    assert outcome(write(writer, "k", "w")) is Status.VISIBLE


def test_table_2(watched: Watched) -> None:
    """The shim over clients that Sentinels made: lineages beside values, floors, a failover."""
    writer = watched.stack.enter_context(
        shims.shim("posts", watched.plain("master_for"), log_history=True)
    )
    near = watched.stack.enter_context(
        shims.shim("posts", watched.plain("slave_for"), reads_from="replica")
    )
    watched.topology.set_lag(50)
    with antipode.scope():
        written = writer.write("k", "v")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        value, lineage = near.read("k")
    assert value == b"v"
    assert set(writes_of(written)) >= set(writes_of(lineage))
    watched.topology.set_lag(0)
    watched.topology.failover(lose_unreplicated=False)
    with antipode.scope(written):
        patiently(lambda: writer.read("k"))
        writer.write("other", 1)  # The first write after a promotion notes where the log ended.
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert patiently(lambda: near.read("k"))[0] == b"v"


async def test_async_table_2(watched: Watched) -> None:
    """The same over asyncio; ``wait_async`` looks at the primary, asked for without asyncio."""
    addresses, service = watched.topology.sentinels, watched.topology.service
    async with AsyncExitStack() as closes:
        sentinel = redis.asyncio.sentinel.Sentinel(addresses, socket_timeout=TIMEOUT_S)
        closes.push_async_callback(sentinel.aclose)
        writer = shims.shim_async(
            "posts", await closes.enter_async_context(sentinel.master_for(service))
        )
        closes.push_async_callback(writer.aclose)
        reader = shims.shim_async(
            "posts",
            await closes.enter_async_context(sentinel.slave_for(service)),
            reads_from="replica",
        )
        closes.push_async_callback(reader.aclose)
        watched.topology.set_lag(50)
        with antipode.scope():
            await writer.write("k", "v")
            assert (await writer.wait_async(timeout=TIMEOUT_S)).ok
            assert (await reader.read("k"))[0] == b"v"


def test_replicas_are_said_to_be_replicas(watched: Watched) -> None:
    """A client of replicas that is declared one of the primary is a mistake, told at once."""
    with pytest.raises(ConfigurationError, match="slave_for"):
        shims.instrument_client(watched.plain("slave_for"), datastore="posts")


def test_sentinels_that_do_not_answer(watched: Watched) -> None:
    """Without Sentinels a new look has nowhere to go: the barrier ends in time."""
    written = write(watched.writer(), "k", "v")
    for number in range(3):
        watched.topology.kill_sentinel(number)
    assert outcome(written, timeout=0.3) is Status.UNREACHABLE


def test_frozen_sentinels(watched: Watched) -> None:
    """One Sentinel that does not answer takes a share of the time; with none it ends in time."""
    written = write(watched.writer(), "k", "v")
    watched.topology.suspend_sentinel(0)
    assert outcome(written) is Status.VISIBLE
    antipode.shim.unregister("posts")
    watched.writer()
    watched.topology.suspend_sentinel(1)
    watched.topology.suspend_sentinel(2)

    def fails() -> None:
        assert outcome(written, timeout=0.3).pending

    assert in_time(0.5, fails)
