"""Celery: a task has a scope of its own, from its message's headers until it ends.

What a task publishes (chains, groups, callbacks, retries) carries its lineage, in the header
``baggage`` of the message. Works with OpenTelemetry's instrumentation of Celery, whichever comes
first, and without it. Result backends are not needed; of chords, which need one, see the guide.
"""

from __future__ import annotations

from ._defer import when_visible
from ._instrument import instrument, uninstrument

__all__ = ["instrument", "uninstrument", "when_visible"]


def __dir__() -> list[str]:
    return __all__
