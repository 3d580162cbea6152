"""Instrumented channels beside OpenTelemetry's own instrumentations of pika and aio-pika.

What consumers do beside them is in ``test_consumers_otel.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aio_pika
import pytest
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.pika import PikaInstrumentor

import antipode
from antipode_shims import rabbitmq
from tests.integration._tracing import ORDERS, PROVIDER, Tracing

from ._bench import CAUSES, NEWS, TIMEOUT_S

if TYPE_CHECKING:
    from ._bench import Bench

pytestmark = pytest.mark.store("rabbitmq")


@pytest.mark.parametrize("order", ORDERS)
def test_pika(bench: Bench, order: str) -> None:
    """A confirmed publication enters, its message has the causes once, spans are made."""
    with Tracing(PikaInstrumentor(), order) as tracing:
        channel = bench.channel()
        bench.declare(channel)
        assert rabbitmq.instrument_channel(channel, datastore=NEWS) is channel
        tracing.ours_is_on(
            lambda: PikaInstrumentor.instrument_channel(channel, tracer_provider=PROVIDER)
        )
        with antipode.scope(CAUSES) as scope:
            channel.basic_publish(bench.name, "k", b"one")
            (news,) = scope.lineage.only(NEWS)
        with rabbitmq.message(bench.get(channel)) as handled:
            assert handled.lineage == CAUSES.append(news)
        if order == "before":
            # Its switch-off does not reach channels that are open, so that `off` makes some, too.
            assert tracing.spans
        rabbitmq.uninstrument_channel(channel)
        with antipode.scope(CAUSES) as scope:
            channel.basic_publish(bench.name, "k", b"two")
            assert not scope.lineage.only(NEWS)


@pytest.mark.parametrize("order", ORDERS)
async def test_aio_pika(bench: Bench, order: str) -> None:
    """The same with aio-pika."""
    bench.declare(bench.channel())
    with Tracing(AioPikaInstrumentor(), order) as tracing:
        connection = await aio_pika.connect(bench.topology.url(), timeout=TIMEOUT_S)
        async with connection:
            channel = await connection.channel()
            assert rabbitmq.instrument_channel(channel, datastore=NEWS) is channel
            tracing.ours_is_on()
            exchange = await channel.get_exchange(bench.name)
            with antipode.scope(CAUSES) as scope:
                await exchange.publish(aio_pika.Message(b"one"), "k")
                (news,) = scope.lineage.only(NEWS)
            queue = await channel.get_queue(bench.name)
            message = await queue.get(timeout=TIMEOUT_S)
            await message.ack()
            with rabbitmq.message(message) as handled:
                assert handled.lineage == CAUSES.append(news)
            assert bool(tracing.spans) is tracing.on
