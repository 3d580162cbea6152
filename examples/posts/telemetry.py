"""What every service sets up once, when it starts: OpenTelemetry, then Antipode."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider

import antipode
import antipode.integrations.celery
import antipode.integrations.httpx


def set_up() -> None:
    """Instrument this process.

    ``OTEL_SERVICE_NAME`` is its name. The propagators are OpenTelemetry's default, W3C trace
    context and baggage; an exporter is added to the provider where there is a collector.
    """
    trace.set_tracer_provider(TracerProvider())
    AioPikaInstrumentor().instrument()
    CeleryInstrumentor().instrument()
    HTTPXClientInstrumentor().instrument()

    antipode.instrument()  # wraps the propagators that are set
    antipode.integrations.celery.instrument()
    antipode.integrations.httpx.instrument()
