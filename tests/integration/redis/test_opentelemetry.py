"""Instrumented redis-py clients beside OpenTelemetry's own instrumentation of redis-py."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.instrumentation.redis import RedisInstrumentor

import antipode
from antipode_shims import redis
from tests.integration._tracing import ORDERS, Tracing

from ._clients import TIMEOUT_S, async_client, client, writes_of
from .test_pools import (
    await_waiting,
    get,
    get_async,
    in_transaction,
    lagging,
    pipelined,
    pipelined_async,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import Lineage
    from antipode_testing import RedisTopology

__all__ = ["lagging"]

pytestmark = pytest.mark.store("redis")


@pytest.mark.parametrize("order", ORDERS)
def test_clients(antipode_redis: RedisTopology, order: str) -> None:
    """A write enters, a read is held, spans are made; undone, nothing enters."""
    with Tracing(RedisInstrumentor(), order) as tracing:
        primary, replica = client(antipode_redis.primary), client(antipode_redis.replica)
        for one, reads_from in ((primary, "primary"), (replica, "replica")):
            found = redis.instrument_client(one, datastore="posts", reads_from=reads_from)  # type: ignore[arg-type]
            assert found is one
        tracing.ours_is_on()
        with antipode.scope() as scope:
            primary.set("traced", order)
            primary.pipeline().incr("traced:n").get("traced:n").execute()
            assert len(writes_of(scope.lineage)) == 1
            assert not scope.lineage.incomplete
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert replica.get("traced") == order.encode()
        assert len(tracing.spans) == (3 if tracing.on else 0)
        for one in (primary, replica):
            redis.uninstrument_client(one)
        with antipode.scope() as scope:
            primary.delete("traced", "traced:n")
            assert not scope.lineage
        for one in (primary, replica):
            one.close()


@pytest.mark.parametrize("order", ORDERS)
async def test_asyncio_clients(antipode_redis: RedisTopology, order: str) -> None:
    """The same with redis.asyncio."""
    with Tracing(RedisInstrumentor(), order) as tracing:
        primary, replica = (
            async_client(place) for place in (antipode_redis.primary, antipode_redis.replica)
        )
        for one, reads_from in ((primary, "primary"), (replica, "replica")):
            found = redis.instrument_client(one, datastore="posts", reads_from=reads_from)  # type: ignore[arg-type]
            assert found is one
        tracing.ours_is_on()
        with antipode.scope() as scope:
            await primary.set("traced", order)
            assert len(writes_of(scope.lineage)) == 1
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            assert await replica.get("traced") == order.encode()
        assert len(tracing.spans) == (2 if tracing.on else 0)
        for one in (primary, replica):
            redis.uninstrument_client(one)
        with antipode.scope() as scope:
            await primary.delete("traced")
            assert not scope.lineage
        for one in (primary, replica):
            await one.aclose()


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_read_that_waits_is_one_span(lagging: tuple[RedisTopology, Lineage], order: str) -> None:
    """However often it is made again, it is one call to other instrumentations, of its length."""
    topology, lineage = lagging
    with Tracing(RedisInstrumentor(), order) as tracing, client(topology.replica) as one:
        redis.instrument_client(one, datastore="posts", reads_from="replica")
        tracing.ours_is_on()

        def wait(read: Callable[[Any], Any]) -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return read(one)

        reads = (get, pipelined, in_transaction)
        with ThreadPoolExecutor(len(reads)) as threads:
            waiting = [threads.submit(wait, each) for each in reads]
            await_waiting(one, len(reads))
            assert not tracing.spans
            topology.resume()
            assert [each.result(TIMEOUT_S) for each in waiting] == [b"new"] * len(reads)
        assert len(tracing.spans) == len(reads)


async def test_a_read_of_a_task_that_waits_is_one_span(
    lagging: tuple[RedisTopology, Lineage],
) -> None:
    """The same with redis.asyncio."""
    topology, lineage = lagging
    one = async_client(topology.replica)
    with Tracing(RedisInstrumentor(), "before") as tracing:
        redis.instrument_client(one, datastore="posts", reads_from="replica")
        tracing.ours_is_on()

        async def wait(read: Callable[[Any], Any]) -> Any:
            with antipode.scope(lineage):
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                return await read(one)

        waiting = [asyncio.create_task(wait(each)) for each in (get_async, pipelined_async)]
        await asyncio.to_thread(await_waiting, one, len(waiting))
        assert not tracing.spans
        topology.resume()
        assert await asyncio.gather(*waiting) == [b"new"] * len(waiting)
        assert len(tracing.spans) == len(waiting)
    await one.aclose()
