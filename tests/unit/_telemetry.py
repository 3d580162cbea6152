"""OpenTelemetry's SDK in memory, for tests of what the library exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from antipode._runtime import metrics as _metrics
from antipode._runtime import observers
from antipode._telemetry import telemetry as _telemetry

if TYPE_CHECKING:
    import pytest
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.sampling import Sampler

Point = tuple[dict[str, Any], Any]


class Telemetry:
    """An SDK that only the library uses, with what it got."""

    def __init__(self, *, sampler: Sampler | None = None) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        # Old SDKs leave out of a collection what did not change since the last one.
        self._metrics: dict[str, Any] = {}
        self._series: dict[str, dict[frozenset[Any], Any]] = {}
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracers = TracerProvider(sampler, shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the library use this SDK, with counts that begin anew."""
        tracer, meter = self.tracers.get_tracer("antipode"), self.meters.get_meter("antipode")
        monkeypatch.setattr(_metrics, "_counts", type(_metrics._counts)())
        monkeypatch.setattr(_telemetry, "_made", _telemetry.Instruments(tracer, meter))
        monkeypatch.setattr(_telemetry, "_recorded", True)
        monkeypatch.setattr(_telemetry, "_names", set())
        monkeypatch.setattr(observers, "timing", True)
        monkeypatch.setattr(observers, "timed", None)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that ended, in that order."""
        return list(self._exporter.get_finished_spans())

    def metrics(self) -> dict[str, Any]:
        """What a reader got so far, by name."""
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self._metrics[metric.name] = metric
                    series = self._series.setdefault(metric.name, {})
                    for point in metric.data.data_points:
                        series[frozenset(point.attributes.items())] = point
        return self._metrics

    def points(self, name: str) -> list[Point]:
        """The attributes and the last point of each series of a metric."""
        self.metrics()
        return [(dict(series), point) for series, point in self._series.get(name, {}).items()]

    def value(self, name: str, **attributes: str) -> float:
        """The sum of a counter, or the number of a histogram's values, over matching series."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return sum(
            point.count if hasattr(point, "count") else point.value
            for found, point in self.points(name)
            if wanted.items() <= found.items()
        )

    def close(self) -> None:
        self.meters.shutdown()
        self.tracers.shutdown()
