"""Instrumented asyncio clients: as the synchronous ones, and cancelled in flight."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import IncompleteLineage
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from tests.integration._in_flight import sent

from ._clients import (
    TIMEOUT_S,
    async_client,
    exchanges,
    position,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from antipode_testing import Address, LagProxy, RedisTopology

pytestmark = pytest.mark.store("redis")

IN_DOUBT = Incomplete("posts", "in_doubt")


@asynccontextmanager
async def using(
    address: Address, *, plain: bool = False, reads_from: Any = "primary", **options: Any
) -> AsyncIterator[Any]:
    """A client for a block, instrumented unless *plain*."""
    one = async_client(address, **options)
    if not plain:
        shims.instrument_client(one, datastore="posts", reads_from=reads_from)
    try:
        yield one
    finally:
        shims.uninstrument_client(one)
        await one.aclose()


async def session(one: Any) -> list[Any]:
    """A little of everything; what it returned and raised."""
    found: list[Any] = []

    async def attempt(work: Callable[[], Any]) -> None:
        try:
            found.append(await work())
        except redis.RedisError as error:
            found.append((type(error), str(error)))

    await attempt(lambda: one.set("k", "v"))
    await attempt(lambda: one.set("k", "w", get=True))
    await attempt(lambda: one.get("k"))
    await attempt(lambda: one.hset("h", mapping={"a": 1, "b": 2}))
    await attempt(lambda: one.hgetall("h"))
    await attempt(lambda: one.incr("h"))
    await attempt(lambda: one.zadd("z", {"a": 1.5}))
    await attempt(lambda: one.zrange("z", 0, -1, withscores=True))
    await attempt(lambda: one.eval("return redis.call('INCR', KEYS[1])", 1, "n"))
    await attempt(lambda: one.pipeline().set("p", 1).incr("h").execute())
    await attempt(lambda: one.pipeline().set("p", 1).get("p").execute())
    await attempt(lambda: one.pipeline(transaction=False).get("p").incr("h").execute())
    await attempt(lambda: one.transaction(lambda pipe: pipe.multi() or pipe.incr("n"), "n"))
    await attempt(one.flushall)
    return found


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("single", [False, True])
async def test_results_are_redis_pys(proxy: LagProxy, *, protocol: int, single: bool) -> None:
    """Return values and exceptions are those of the plain client."""
    options = {"protocol": protocol, "single_connection_client": single}
    async with using(proxy.address, plain=True, **options) as plain:
        expected = await session(plain)
    async with using(proxy.address, **options) as one:
        with antipode.scope() as scope:
            assert await session(one) == expected
            assert writes_of(scope.lineage)
            assert not scope.lineage.incomplete
            antipode.barrier(timeout=5, at="read")
            assert await session(one) == expected


async def test_writes_cost_no_round_trip(proxy: LagProxy, antipode_redis: RedisTopology) -> None:
    """A write, a transaction and a pipeline take one round trip each and mint, after the first."""
    async with using(proxy.address) as one:
        await one.ping()
        with exchanges(proxy) as made:
            await one.set("first", 1)
        assert made == [2]  # A connection is asked once for INFO alone.
        with antipode.scope() as scope:
            with exchanges(proxy) as made:
                await one.set("k", "v")
                async with one.pipeline() as pipe:
                    await pipe.set("k", 1).get("k").execute()
                await one.pipeline(transaction=False).set("k", 1).execute()
            assert made == [3]
            write = writes_of(scope.lineage)[0]
            assert (write.key, write.version) == position(antipode_redis.primary)


async def test_read_under_a_floor(proxy: LagProxy, antipode_redis: RedisTopology) -> None:
    """A read at a lagging replica is held back without blocking the loop, then is not stale."""
    antipode_redis.pause()
    async with (
        using(proxy.address) as writer,
        using(antipode_redis.replica, reads_from="replica") as reader,
    ):
        with antipode.scope():
            await writer.set("k", "new")
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            reading = asyncio.ensure_future(reader.get("k"))
            for _ in range(3):
                await asyncio.sleep(0)
            assert not reading.done()
            antipode_redis.resume()
            assert await reading == b"new"
            with exchanges(antipode_redis.link()):
                assert await reader.pipeline().get("k").execute() == [b"new"]


async def test_floor_times_out(proxy: LagProxy, antipode_redis: RedisTopology) -> None:
    """At the deadline the read raises the barrier's error, and the connection is of use."""
    antipode_redis.pause()
    async with (
        using(proxy.address) as writer,
        using(antipode_redis.replica, reads_from="replica") as reader,
    ):
        with antipode.scope():
            await writer.set("k", "new")
            antipode.barrier(timeout=0.1, at="read")
            with pytest.raises(antipode.BarrierTimeout):
                await reader.get("k")
            with pytest.raises(antipode.BarrierTimeout):
                await reader.pipeline(transaction=False).get("k").execute()
        assert await reader.ping()


@pytest.mark.parametrize("batch", [False, True])
async def test_cancelled_write_is_in_doubt(proxy: LagProxy, *, batch: bool) -> None:
    """A write cancelled in flight is in doubt, and its connection is not used again."""
    async with using(proxy.address) as one:
        await one.set("k", "warm")
        before = proxy.traffic()
        proxy.set_lag(60_000)
        with antipode.scope() as scope:
            work = one.pipeline().set("k", "v").execute() if batch else one.set("k", "v")
            writing = asyncio.ensure_future(work)
            await sent(proxy, before)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            proxy.set_lag(0)
            assert scope.lineage.incomplete == {IN_DOUBT}
            with pytest.raises(IncompleteLineage):
                await antipode.barrier_async(timeout=1)
        assert await one.get("k") in {b"warm", b"v"}
        assert (proxy.traffic() - before).connections == 1


async def test_cancelled_read_leaves_no_doubt(proxy: LagProxy) -> None:
    """A cancelled read wrote nothing."""
    async with using(proxy.address) as one:
        await one.ping()
        before = proxy.traffic()
        proxy.set_lag(60_000)
        with antipode.scope() as scope:
            reading = asyncio.ensure_future(one.get("k"))
            await sent(proxy, before)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert scope.lineage.empty
        proxy.set_lag(0)


async def test_cancelled_shim_write_is_in_doubt(proxy: LagProxy) -> None:
    """The same for Table 2's write."""
    made = shims.shim_async("posts", async_client(proxy.address))
    with antipode.scope() as scope:
        await made.write("k", "warm")
        before = proxy.traffic()
        proxy.set_lag(60_000)
        writing = asyncio.ensure_future(made.write("k", "v"))
        await sent(proxy, before)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        proxy.set_lag(0)
        assert scope.lineage.incomplete == {IN_DOUBT}
    await made.aclose()
    await made._client.aclose()


async def test_requests_do_not_mix(proxy: LagProxy) -> None:
    """Tasks of one loop over one pool get their own writes alone."""
    async with using(proxy.address) as one:

        async def request(number: int) -> tuple[int, int]:
            with antipode.scope() as scope:
                await one.set(f"k{number}", number)
                return len(writes_of(scope.lineage)), int(await one.get(f"k{number}"))

        found = await asyncio.gather(*map(request, range(20)))
        assert found == [(1, number) for number in range(20)]


async def test_what_may_write_enters(proxy: LagProxy) -> None:
    """A script is taken for a write, alone and in pipelines; without it nothing was done."""
    by_script = "return redis.call('SET', KEYS[1], 1)"
    async with using(proxy.address) as one:
        for call in (
            lambda: one.eval(by_script, 1, "k"),
            lambda: one.pipeline(transaction=False).eval(by_script, 1, "k").execute(),
            lambda: one.pipeline().eval(by_script, 1, "k").execute(),
            lambda: one.register_script(by_script)(keys=["k"]),
            lambda: one.ft().pipeline().incr("n").execute(),
        ):
            with antipode.scope() as scope:
                await call()
                assert len(writes_of(scope.lineage)) == 1
                assert not scope.lineage.incomplete
        with antipode.scope() as scope:
            with pytest.raises(redis.exceptions.NoScriptError):
                await one.evalsha("f" * 40, 0)
            assert scope.lineage.empty


async def test_watch(proxy: LagProxy) -> None:
    """An aborted transaction mints nothing; what is written under ``WATCH`` at once does."""
    async with using(proxy.address) as one, using(proxy.address, plain=True) as other:
        with antipode.scope() as scope:
            async with one.pipeline() as pipe:
                await pipe.watch("k")
                await other.set("k", "meanwhile")
                pipe.multi()
                pipe.set("k", "mine")
                with pytest.raises(redis.WatchError):
                    await pipe.execute()
            assert scope.lineage.empty
            async with one.pipeline() as pipe:
                await pipe.watch("k")
                await pipe.set("other", 1)
                assert len(writes_of(scope.lineage)) == 1


async def test_multi_by_hand(proxy: LagProxy) -> None:
    """``MULTI`` and ``EXEC`` sent by hand get no extra reply, and the ``EXEC`` mints."""
    async with using(proxy.address, single_connection_client=True) as one:
        with antipode.scope() as scope:
            await one.execute_command("MULTI")
            await one.execute_command("SET", "k", 1)
            assert scope.lineage.empty
            assert await one.execute_command("EXEC") == [b"OK"]
            assert len(writes_of(scope.lineage)) == 1
