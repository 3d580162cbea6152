"""What the library counts, and as what OpenTelemetry exports it."""

from __future__ import annotations

from ._runtime.metrics import Metric, metrics
from ._telemetry.counters import COUNTERS, Counter, counter_of

__all__ = [
    "COUNTERS",
    "Counter",
    "Metric",
    "counter_of",
    "metrics",
]


def __dir__() -> list[str]:
    return __all__
