"""Counts of what must never pass unseen: unscoped writes, dropped entries, aged dependencies."""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from . import observers

logger = logging.getLogger("antipode")

_lock = threading.Lock()
#: By name and datastore: a tuple is made faster than a metric, and is equal to it.
_counts: dict[tuple[str, str], int] = {}
_logged: set[tuple[str, str, object]] = set()
_MOST_LOGGED = 10_000
#: Names of datastores come from outside as well, in lineages that anybody may forge.
_MOST_COUNTS = 2_000
#: The datastore of what is counted beyond that.
OTHER = "_OTHER"


class Metric(NamedTuple):
    """What is counted.

    Attributes:
        name: a stable name, listed in docs/reference/metrics.md.
        datastore: the datastore it is about; empty when about none.
    """

    name: str
    datastore: str = ""


def count(name: str, datastore: str = "", amount: int = 1) -> None:
    """Add *amount* to a metric. Thread-safe."""
    metric = name, datastore
    with _lock:
        held = _counts.get(metric)
        if held is None and len(_counts) >= _MOST_COUNTS:
            metric = name, OTHER
            held = _counts.get(metric)
        _counts[metric] = amount if held is None else held + amount
    if held is None:
        observers.telemetry.counted(name)
    if (observer := observers.dry_run) is not None:
        observer.counted(name, datastore)


def metrics() -> dict[Metric, int]:
    """All counts of this process since it started."""
    with _lock:
        return {Metric(*metric): number for metric, number in _counts.items()}


def log_once(name: str, datastore: str, site: object, message: str, *args: object) -> None:
    """Warn, once for each *site*; later ones are only counted."""
    with _lock:
        mark = (name, datastore, site)
        if mark in _logged or len(_logged) >= _MOST_LOGGED:
            return
        _logged.add(mark)
    logger.warning(message, *args)
