"""Reads that wait keep no connection of their pool, and hold up nobody on a shared one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

import antipode
from antipode_shims import redis as shims
from antipode_testing import wait_until
from tests.integration._balancers import haproxy

from ._clients import TIMEOUT_S, async_client, client
from .test_held_reads import written

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from antipode import Lineage
    from antipode_testing import Address, RedisTopology

    Read = Callable[[Any], Any]
    ReadAsync = Callable[[Any], Coroutine[Any, Any, Any]]

pytestmark = pytest.mark.store("redis")

#: Connections of the pool, and reads that wait for one write.
POOL = 5
READS = 100


def get(one: Any) -> Any:
    """A single command."""
    return one.get("k")


def pipelined(one: Any) -> Any:
    """A pipeline of reads alone."""
    with one.pipeline(transaction=False) as pipeline:
        return pipeline.get("k").exists("k").execute()[0]


def in_transaction(one: Any) -> Any:
    """The same as a transaction."""
    with one.pipeline() as pipeline:
        return pipeline.get("k").exists("k").execute()[0]


def scripted(one: Any) -> Any:
    """What may write, so that it cannot be sent a second time."""
    return one.eval("return redis.call('GET', KEYS[1])", 1, "k")


def watched(one: Any) -> Any:
    """A read between ``WATCH`` and ``MULTI``, which belongs to one connection."""
    with one.pipeline() as pipeline:
        pipeline.watch("k")
        return pipeline.get("k")


async def get_async(one: Any) -> Any:
    """As :func:`get`."""
    return await one.get("k")


async def pipelined_async(one: Any) -> Any:
    """As :func:`pipelined`."""
    async with one.pipeline(transaction=False) as pipeline:
        return (await pipeline.get("k").exists("k").execute())[0]


async def in_transaction_async(one: Any) -> Any:
    """As :func:`in_transaction`."""
    async with one.pipeline() as pipeline:
        return (await pipeline.get("k").exists("k").execute())[0]


def pooled(address: Address, *, max_connections: int = POOL) -> Any:
    """A client of a small pool, whose callers wait for a connection."""
    pool = redis.BlockingConnectionPool(
        host=address.host, port=address.port, max_connections=max_connections, timeout=TIMEOUT_S
    )
    return redis.Redis.from_pool(pool)


def pooled_async(address: Address) -> Any:
    """As :func:`pooled`."""
    pool = redis.asyncio.BlockingConnectionPool(
        host=address.host, port=address.port, max_connections=POOL, timeout=TIMEOUT_S
    )
    return redis.asyncio.Redis.from_pool(pool)


def single(address: Address) -> Any:
    """A client of one connection for all."""
    return client(address, single_connection_client=True, max_connections=2 * READS)


def single_async(address: Address) -> Any:
    """As :func:`single`."""
    return async_client(address, single_connection_client=True, max_connections=2 * READS)


def await_waiting(one: Any, reads: int = READS) -> None:
    """Return once that many reads of *one* wait, without a connection of its pool."""
    watcher = one._antipode.shim.watcher
    wait_until(
        lambda: len(watcher._subscribers) == reads, what=f"{reads} reads", timeout_s=TIMEOUT_S
    )


@pytest.fixture
def lagging(antipode_redis: RedisTopology) -> Iterator[tuple[RedisTopology, Lineage]]:
    """A replica that does not have the write of a lineage until it is resumed."""
    written(antipode_redis, "old")
    antipode_redis.wait_replicated()
    antipode_redis.pause()
    yield antipode_redis, written(antipode_redis, "new")
    antipode_redis.resume()


@pytest.mark.parametrize(
    ("make", "read"),
    [(make, read) for make in (pooled, single) for read in (get, pipelined, in_transaction)]
    + [(pooled, scripted)],
)
def test_reads_that_wait_hold_nobody_up(
    lagging: tuple[RedisTopology, Lineage], make: Callable[[Address], Any], read: Read
) -> None:
    """Beside 100 reads that wait, on 5 connections or one, a read without dependencies passes."""
    topology, lineage = lagging
    with make(topology.replica) as one, ThreadPoolExecutor(READS) as threads:
        shims.instrument_client(one, datastore="posts", reads_from="replica")

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return read(one)

        waiting = [threads.submit(wait) for _ in range(READS)]
        await_waiting(one)
        with antipode.scope():
            assert read(one) == b"old"
        topology.resume()
        assert [each.result(TIMEOUT_S) for each in waiting] == [b"new"] * READS
        shims.uninstrument_client(one)


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (make, read)
        for make in (pooled_async, single_async)
        for read in (get_async, pipelined_async, in_transaction_async)
    ],
)
def test_tasks_that_wait_hold_nobody_up(
    lagging: tuple[RedisTopology, Lineage], make: Callable[[Address], Any], read: ReadAsync
) -> None:
    """The same for tasks of one event loop."""
    topology, lineage = lagging

    async def wait(one: Any) -> Any:
        with antipode.scope(lineage):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            return await read(one)

    async def session() -> None:
        async with make(topology.replica) as one:
            shims.instrument_client(one, datastore="posts", reads_from="replica")
            waiting = [asyncio.create_task(wait(one)) for _ in range(READS)]
            await asyncio.to_thread(await_waiting, one)
            with antipode.scope():
                assert await read(one) == b"old"
            await asyncio.to_thread(topology.resume)
            assert await asyncio.gather(*waiting) == [b"new"] * READS
            shims.uninstrument_client(one)

    asyncio.run(session())


def test_reads_that_keep_their_connection_take_half_of_the_pool(
    lagging: tuple[RedisTopology, Lineage],
) -> None:
    """Of those beyond none waits, and a read without dependencies finds a connection."""
    topology, lineage = lagging
    with pooled(topology.replica) as one, ThreadPoolExecutor(POOL) as threads:
        shims.instrument_client(one, datastore="posts", reads_from="replica")

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return watched(one)

        waiting = [threads.submit(wait) for _ in range(POOL // 2)]
        await_waiting(one, POOL // 2)
        with pytest.raises(antipode.BarrierTimeout) as late:
            wait()
        assert "half of the pool" in str(late.value.__cause__)
        with antipode.scope():
            assert get(one) == b"old"
        topology.resume()
        assert [each.result(TIMEOUT_S) for each in waiting] == [b"new"] * (POOL // 2)
        assert wait() == b"new"
        shims.uninstrument_client(one)


def test_table2_reads_that_wait_hold_nobody_up(lagging: tuple[RedisTopology, Lineage]) -> None:
    """Nor do those of Table 2's interface keep a connection, in threads or in tasks."""
    topology, lineage = lagging
    with pooled(topology.replica) as one, ThreadPoolExecutor(READS) as threads:
        shim = shims.shim("posts", one, reads_from="replica")

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return shim.read("k")[0]

        waiting = [threads.submit(wait) for _ in range(READS)]
        wait_until(
            lambda: len(shim.watcher._subscribers) == READS, what="reads", timeout_s=TIMEOUT_S
        )
        with antipode.scope():
            assert shim.read("k")[0] == b"old"
        topology.resume()
        assert [each.result(TIMEOUT_S) for each in waiting] == [b"new"] * READS
        shim.close()


def test_the_write_that_all_wait_for_gets_a_connection(antipode_redis: RedisTopology) -> None:
    """Where every caller of a pool waits for a promise, the branch fulfils it through that pool."""
    with antipode.scope() as scope:
        promise = antipode.promise("posts", expires_in_s=60)
        lineage = scope.lineage
    with pooled(antipode_redis.primary) as one, ThreadPoolExecutor(READS) as threads:
        shims.instrument_client(one, datastore="posts", lineage="beside", keys=["refund*"])

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return one.get("refund")

        one.delete("refund")
        waiting = [threads.submit(wait) for _ in range(READS)]
        await_waiting(one)
        with antipode.scope(), one.pipeline() as pipeline:
            pipeline.set("refund", b"80")
            shims.fulfil(pipeline, promise.token)
            pipeline.execute()
        assert [each.result(TIMEOUT_S) for each in waiting] == [b"80"] * READS
        shims.uninstrument_client(one)


def test_a_read_that_is_cancelled_while_it_waits(lagging: tuple[RedisTopology, Lineage]) -> None:
    """It waits at nothing any more, has no connection, and doubts no write."""
    topology, lineage = lagging

    async def session() -> None:
        async with pooled_async(topology.replica) as one:
            shims.instrument_client(one, datastore="posts", reads_from="replica")
            with antipode.scope(lineage) as scope:
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                reading = asyncio.create_task(one.get("k"))
                await asyncio.to_thread(await_waiting, one, 1)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                assert not scope.lineage.incomplete
            await_waiting(one, 0)
            assert not one.connection_pool._in_use_connections
            shims.uninstrument_client(one)

    asyncio.run(session())


class CancellingConnection(redis.asyncio.Connection):
    """Cancels a task just as a packet was sent: ``asyncio.wait_for`` before 3.12 loses that."""

    task: asyncio.Task[Any] | None = None

    async def _send_packed_command(self, command: Any) -> None:
        await super()._send_packed_command(command)
        if (task := CancellingConnection.task) is not None:
            CancellingConnection.task = None
            asyncio.get_running_loop().call_soon(task.cancel)


@pytest.mark.parametrize("read", [get_async, pipelined_async, in_transaction_async])
def test_a_read_whose_cancellation_the_client_swallows(
    lagging: tuple[RedisTopology, Lineage], read: Callable[[Any], Any]
) -> None:
    """It ends at once, whatever it was about, and its connection is not left half read."""
    topology, lineage = lagging
    address = topology.replica
    pool = redis.asyncio.BlockingConnectionPool(
        host=address.host,
        port=address.port,
        max_connections=1,
        timeout=TIMEOUT_S,
        socket_timeout=TIMEOUT_S,
        connection_class=CancellingConnection,
    )

    async def session() -> None:
        async with redis.asyncio.Redis.from_pool(pool) as one:
            shims.instrument_client(one, datastore="posts", reads_from="replica")
            with antipode.scope(lineage):
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                reading = asyncio.create_task(read(one))
                CancellingConnection.task = reading
                done, _ = await asyncio.wait({reading}, timeout=TIMEOUT_S / 2)
                assert done
                assert reading.cancelled()
            with antipode.scope():
                assert [await read(one) for _ in range(3)] == [b"old"] * 3
            shims.uninstrument_client(one)

    asyncio.run(session())


def test_a_read_that_waits_raises_at_its_deadline(lagging: tuple[RedisTopology, Lineage]) -> None:
    """The time of a read goes on while it has no connection; a watched pipeline keeps its own."""
    topology, lineage = lagging
    with pooled(topology.replica) as one:
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        for read in (get, pipelined, in_transaction, scripted, watched):
            with antipode.scope(lineage):
                antipode.barrier(timeout=0.1, at="read")
                with pytest.raises(antipode.BarrierTimeout):
                    read(one)
        shims.uninstrument_client(one)


def test_a_connection_that_shows_less_than_the_librarys_own_is_given_back(
    lagging: tuple[RedisTopology, Lineage],
) -> None:
    """Where the address leads to several servers, the read waits for its own, and keeps no pool."""
    topology, lineage = lagging
    with (
        client(topology.primary) as plain,
        haproxy(topology.replica, topology.primary) as balancer,
        pooled(balancer, max_connections=1) as one,
        ThreadPoolExecutor(1) as threads,
    ):
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        with antipode.scope():
            assert get(one) == b"old"  # By the first connection, which goes to the first server.
        connections = len(plain.client_list())

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return get(one)

        waiting = threads.submit(wait)
        wait_until(
            lambda: len(plain.client_list()) > connections,
            what="the library's own connection, to the other server, which shows the write",
            timeout_s=TIMEOUT_S,
        )
        with antipode.scope():
            assert get(one) == b"old"
        assert not waiting.done()
        topology.resume()
        assert waiting.result(TIMEOUT_S) == b"new"
        shims.uninstrument_client(one)
