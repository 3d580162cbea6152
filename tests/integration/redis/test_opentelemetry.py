"""Instrumented redis-py clients beside OpenTelemetry's own instrumentation of redis-py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.instrumentation.redis import RedisInstrumentor

import antipode
from antipode_shims import redis
from tests.integration._tracing import ORDERS, Tracing

from ._clients import TIMEOUT_S, async_client, client, writes_of

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

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
