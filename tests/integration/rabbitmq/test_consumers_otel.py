"""Consumers beside OpenTelemetry's own instrumentations of pika and aio-pika, over a real broker.

They make a span of each message, and pika's drops its baggage. The consumers see to the baggage
and the lineage themselves, whichever of the two was there first.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import aio_pika
import pika
import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.pika import PikaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import antipode
from antipode import Lineage
from antipode_shims import rabbitmq

from ._bench import NEWS, TIMEOUT_S, counted
from ._workers import SOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._workers import Posts, Workers

pytestmark = pytest.mark.store("rabbitmq")

#: When OpenTelemetry instruments: before the channel is made, or the channel after ours did;
#: or without `instrument_channel`.
ORDERS = ("before", "after", "alone")


class Spans:
    """A tracer provider, and what it recorded."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def of(self, kind: SpanKind) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.kind is kind]


class Handled:
    """What the handler found around it."""

    def __init__(self, spans: Spans) -> None:
        self.published = spans.of(SpanKind.PRODUCER)
        self.seen: list[tuple[Lineage, object, int, str]] = []

    def note(self, headers: dict[str, Any]) -> None:
        found = trace.get_current_span().get_span_context()
        self.seen.append(
            (
                antipode.current(),
                baggage.get_baggage("tenant"),
                found.trace_id,
                headers["traceparent"],
            )
        )

    def check(self, spans: Spans, later: Posts) -> None:
        """The lineage, baggage and trace are the publisher's, over the deferrals."""
        ((lineage, tenant, trace_id, traceparent),) = self.seen
        assert later.last in lineage
        assert {write.datastore for write in lineage} <= {"posts", NEWS}
        assert tenant == "acme"
        # pika's makes a span of a publication in its outer and one in its inner channel.
        published = spans.of(SpanKind.PRODUCER)
        assert published == self.published  # And none of what was deferred.
        assert {span.context.trace_id for span in published} == {trace_id}
        assert traceparent.split("-")[2] in {f"{s.context.span_id:016x}" for s in published}
        consumed = spans.of(SpanKind.CONSUMER)
        assert len(consumed) >= 3
        assert {span.context.trace_id for span in consumed} == {trace_id}


@pytest.fixture
def spans() -> Iterator[Spans]:
    """OpenTelemetry with our propagation; instrumentors are undone at the end."""
    antipode.instrument()
    found = Spans()
    yield found
    for instrumentor in (PikaInstrumentor(), AioPikaInstrumentor()):
        if instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.uninstrument()
    antipode.propagation.uninstrument()
    found.provider.shutdown()


@contextlib.contextmanager
def request(later: Posts) -> Iterator[None]:
    """A request of the publisher: baggage of its own, and a dependency that is not there yet."""
    token = otel_context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        with antipode.scope(Lineage([later.next])):
            yield
    finally:
        otel_context.detach(token)


@pytest.mark.parametrize(
    "policy", [{}, {"on_unmet": "wait", "timeout": 0.1}], ids=["defer", "wait"]
)
@pytest.mark.parametrize("order", ORDERS)
def test_pika(
    workers: Workers, later: Posts, spans: Spans, order: str, policy: dict[str, Any]
) -> None:
    """Pika's instrumentation before ours, after it and without: the handler has everything."""
    if order != "after":
        PikaInstrumentor().instrument(tracer_provider=spans.provider)
    channel = workers.connection().channel()
    if order != "alone":
        rabbitmq.instrument_channel(channel, datastore=NEWS)
    if order == "after":
        PikaInstrumentor.instrument_channel(channel, tracer_provider=spans.provider)
    channel.confirm_delivery()
    with request(later):
        channel.basic_publish(
            workers.name, "the.key", b"", pika.BasicProperties(delivery_mode=2, headers={})
        )
    handled = Handled(spans)

    def handle(_channel: Any, _method: Any, properties: Any, _body: bytes) -> None:
        handled.note(properties.headers)

    before = counted("message_deferred")
    with rabbitmq.consume(
        channel, workers.queue, handle, datastore=NEWS, delay_s=SOON, **policy
    ) as worker:
        while counted("message_deferred") < before + 2:
            worker.run(timeout=0.02)
        later.write()
        while not handled.seen:
            worker.run(timeout=0.02)
    handled.check(spans, later)
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert baggage.get_baggage("tenant") is None


@pytest.mark.parametrize("order", ORDERS)
async def test_aio_pika(workers: Workers, later: Posts, spans: Spans, order: str) -> None:
    """aio-pika's instrumentation before ours, after it and without."""
    if order != "after":
        AioPikaInstrumentor().instrument(tracer_provider=spans.provider)
    connection = await aio_pika.connect_robust(workers.topology.url(), timeout=TIMEOUT_S)
    async with connection:
        channel = await connection.channel()
        if order != "alone":
            rabbitmq.instrument_channel(channel, datastore=NEWS)
        if order == "after":
            AioPikaInstrumentor().instrument(tracer_provider=spans.provider)
        exchange = await channel.get_exchange(workers.name)
        with request(later):
            await exchange.publish(aio_pika.Message(b"", delivery_mode=2), "the.key")
        handled = Handled(spans)
        done = asyncio.Event()

        async def handle(message: Any) -> None:
            handled.note(message.headers)
            done.set()

        before = counted("message_deferred")
        async with rabbitmq.consume_async(
            channel, workers.queue, handle, datastore=NEWS, delay_s=SOON
        ):
            while counted("message_deferred") < before + 2:  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.005)
            later.write()
            await asyncio.wait_for(done.wait(), TIMEOUT_S)
    handled.check(spans, later)
