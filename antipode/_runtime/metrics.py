"""Counts of what must never pass unseen: unscoped writes, dropped entries, aged dependencies."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from . import observers

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("antipode")

_lock = threading.Lock()
#: By name and datastore: a tuple is made faster than a metric, and is equal to it.
_counts: dict[tuple[str, str], int] = {}
_logged: set[tuple[str, str, object]] = set()
_MOST_LOGGED = 10_000
#: When each was logged last, by name and datastore.
_told_s: dict[tuple[str, str], float] = {}
#: Seconds between two log entries of one kind.
SELDOM_S = 60
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
    if (recorder := observers.history) is not None:
        recorder.counted(name)


def metrics() -> dict[Metric, int]:
    """All counts of this process since it started."""
    with _lock:
        return {Metric(*metric): number for metric, number in _counts.items()}


def log_seldom(
    name: str,
    datastore: str,
    message: str,
    *args: object,
    attributes: Mapping[str, object] | None = None,
) -> None:
    """Warn, once a minute at most for each *datastore*; others are only counted.

    The record has *attributes*, as OpenTelemetry's handler exports them.
    """
    now_s = time.monotonic()
    with _lock:
        told_s = _told_s.get((name, datastore))
        if told_s is not None and now_s - told_s < SELDOM_S:
            return
        if told_s is None and len(_told_s) >= _MOST_COUNTS:
            return
        _told_s[name, datastore] = now_s
    logger.warning(message, *map(_without_frames, args), extra=attributes)


def log_once(name: str, datastore: str, site: object, message: str, *args: object) -> None:
    """Warn, once for each *site*; later ones are only counted."""
    with _lock:
        mark = (name, datastore, site)
        if mark in _logged or len(_logged) >= _MOST_LOGGED:
            return
        _logged.add(mark)
    logger.warning(message, *map(_without_frames, args))


def _without_frames(argument: object) -> object:
    """Handlers may keep a record; an error in it would keep each frame that it went through."""
    return str(argument) if isinstance(argument, BaseException) else argument


def _after_fork() -> None:
    """Another thread of the parent, which polls a server say, may have held it."""
    global _lock  # noqa: PLW0603 - one for each process
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
