"""What every service sets up once, as it starts."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider

import antipode


def set_up() -> None:
    """Instrument this process.

    ``OTEL_SERVICE_NAME`` is its name, and ``ANTIPODE_DATASTORES`` says
    which datastore is at which address. The propagators are
    OpenTelemetry's default, W3C trace context and baggage; an exporter
    is added to the provider where there is a collector.
    """
    trace.set_tracer_provider(TracerProvider())
    AioPikaInstrumentor().instrument()
    CeleryInstrumentor().instrument()
    HTTPXClientInstrumentor().instrument()

    antipode.setup()  # wraps the propagators that are set
