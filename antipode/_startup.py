"""Who observes this process: imported before anything is."""

from __future__ import annotations

from ._runtime import observers
from ._telemetry import telemetry

observers.telemetry = telemetry
