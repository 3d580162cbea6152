"""OpenTelemetry's own instrumentation of a client, switched on and off round ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

# One for all tests: PyMongo's instrumentation keeps the first provider that it was given.
EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider(shutdown_on_exit=False)
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))

#: When OpenTelemetry's is switched on: before ours, after ours, or before and then off again.
ORDERS = ("before", "after", "off")


class Tracing:
    """One instrumentation of OpenTelemetry, in one of :data:`ORDERS` round ours."""

    def __init__(self, instrumentor: Any, order: str) -> None:
        self.instrumentor = instrumentor
        self.order = order

    def switch_on(self, **options: Any) -> None:
        """Switch it on, for one engine, say, by *options*."""
        # It refuses releases of clients that it was not tried on, and our users have these, too.
        self.instrumentor.instrument(tracer_provider=PROVIDER, skip_dep_check=True, **options)

    def __enter__(self) -> Self:
        """Switch it on where it comes first."""
        if self.order != "after":
            self.switch_on()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Switch it off."""
        if self.instrumentor.is_instrumented_by_opentelemetry:
            self.instrumentor.uninstrument()

    def ours_is_on(self, switch_on: Callable[[], object] | None = None) -> None:
        """Ours was switched on: do what the order says comes next.

        Args:
            switch_on: switches OpenTelemetry's on for what is open already, instead of for all.
        """
        if self.order == "off":
            self.instrumentor.uninstrument()
        if self.order == "after":
            (switch_on or self.switch_on)()
        EXPORTER.clear()

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans since ours was switched on."""
        return EXPORTER.get_finished_spans()

    @property
    def on(self) -> bool:
        """Whether it makes spans."""
        return self.order != "off"
