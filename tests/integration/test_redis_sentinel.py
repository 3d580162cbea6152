"""Clients made by Sentinel, over real Sentinels: what they read, wait for and lose."""

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
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    Incomplete,
    IncompleteLineage,
    Lineage,
    Status,
    VisibilityCheckError,
    WriteId,
)
from antipode.testing import RedisSentinelTopology, wait_until
from antipode_shims import redis as shims
from tests.integration._redis_clients import TIMEOUT_S, client, position, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("redis")

ROUNDS = 100
IN_DOUBT = Incomplete("posts", "in_doubt")


class Watched:
    """Clients that Sentinels made: of the primary, and of replicas in turn."""

    def __init__(self, topology: RedisSentinelTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.stack = stack
        self._sentinel = stack.enter_context(
            redis.sentinel.Sentinel(topology.sentinels, socket_timeout=TIMEOUT_S)
        )

    def writer(self, **options: Any) -> Any:
        """An instrumented client of the primary."""
        return self._instrumented(self.plain("master_for"), options)

    def reader(self, **options: Any) -> Any:
        """An instrumented client of the replicas."""
        return self._instrumented(self.plain("slave_for"), {"reads_from": "replica", **options})

    def plain(self, made_by: str) -> Any:
        """A client that does not retry."""
        make = getattr(self._sentinel, made_by)
        retry = Retry(NoBackoff(), 0)
        one = make(self.topology.service, socket_timeout=TIMEOUT_S, retry=retry)
        return self.stack.enter_context(one)

    def _instrumented(self, one: Any, options: dict[str, Any]) -> Any:
        shims.instrument_client(one, datastore="posts", **options)
        self.stack.callback(shims.uninstrument_client, one)
        return one


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


def write(writer: Any, key: str, value: Any) -> WriteId:
    """Write outside of the caller's scope."""
    with antipode.scope() as scope:
        writer.set(key, value)
        return writes_of(scope.lineage)[0]


def read(reader: Any, written: WriteId, key: str, *, timeout: float = TIMEOUT_S) -> Any:
    """Read under a floor."""
    with antipode.scope(Lineage([written])):
        antipode.barrier(timeout=timeout, at="read")
        return reader.get(key)


def outcome(written: WriteId, *, timeout: float = TIMEOUT_S) -> Status:
    """What a barrier on one write comes to, now."""
    result = antipode.barrier(Lineage([written]), timeout=timeout, on_unmet="return")
    return result.outcomes[0].status


def test_stalled_replica_is_never_read_stale(watched: Watched) -> None:
    """Connections go to two replicas in turn, one of them stalled: a read is fresh or says no."""
    writer, reader = watched.writer(), watched.reader()
    writer.set("k", "old")
    watched.topology.wait_replicated()
    watched.topology.pause(replica=1)
    found: list[Any] = []
    for number in range(ROUNDS):
        written = write(writer, "k", number)
        try:
            found.append(int(read(reader, written, "k", timeout=0.05)) == number)
        except BarrierTimeout:
            found.append(None)
        reader.connection_pool.disconnect()  # The next connection goes to the next replica.
    assert False not in found
    assert found.count(True) >= ROUNDS / 4
    assert found.count(None) >= ROUNDS / 4
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


def eventually(writer: Any, key: str, value: Any) -> WriteId:
    """Write, where connections may have died meanwhile."""
    done: list[WriteId] = []

    def attempt() -> bool:
        with suppress(redis.ConnectionError, redis.TimeoutError):
            done.append(write(writer, key, value))
        return bool(done)

    wait_until(attempt, what="a write", timeout_s=TIMEOUT_S)
    return done[0]


def test_now_does_not_choose_among_replicas(watched: Watched) -> None:
    """Nobody knows which of two replicas is read next: alone they cannot be waited for now."""
    written = write(watched.writer(), "k", "v")
    antipode.unregister("posts")
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
    couple.topology.set_lag(0)
    couple.topology.failover(lose_unreplicated=False)
    written = eventually(writer, "k", "new")
    assert outcome(written) is Status.VISIBLE
    with suppress(redis.ConnectionError):
        reader.ping()
    assert read(reader, written, "k") == b"new"


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
        assert read(reader, written, "k") == b"new"
        assert read(reader, kept, "kept") == b"1"
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
    writer = watched.stack.enter_context(shims.shim("posts", watched.plain("master_for")))
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
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with suppress(redis.ConnectionError):  # Sentinels close connections when roles change.
            near.read("k")
        assert near.read("k")[0] == b"v"


async def test_async_table_2(watched: Watched) -> None:
    """The same over asyncio; ``wait_async`` looks at the primary, asked for without asyncio."""
    addresses, service = watched.topology.sentinels, watched.topology.service
    async with AsyncExitStack() as closes:
        sentinel = redis.asyncio.sentinel.Sentinel(addresses, socket_timeout=TIMEOUT_S)
        closes.push_async_callback(sentinel.aclose)
        writer = shims.async_shim(
            "posts", await closes.enter_async_context(sentinel.master_for(service))
        )
        closes.push_async_callback(writer.aclose)
        reader = shims.async_shim(
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


def test_lost_is_raised_under_a_floor(couple: Watched) -> None:
    """A read that depends on what a failover lost says so instead of answering."""
    writer, reader = couple.writer(), couple.reader()
    writer.set("k", "old")
    couple.topology.wait_replicated()
    couple.topology.pause()
    lost = write(writer, "k", "lost")
    couple.topology.failover()
    eventually(writer, "other", 1)
    couple.topology.wait_replicated()
    assert outcome(lost) is Status.LOST
    with suppress(redis.ConnectionError):
        reader.ping()
    with pytest.raises((DependencyLost, VisibilityCheckError)):
        read(reader, lost, "k")
