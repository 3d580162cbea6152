"""Threads that gevent replaces once the process has begun: what a lock of before does then.

A lock that was made before stops every greenlet while one of them holds it. gevent says when it
has replaced ``threading``; nothing of it is imported for that.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .imports import when_imported
from .metrics import log_once

if TYPE_CHECKING:
    from collections.abc import Callable

_MESSAGE = (
    "gevent replaced threads after setup(): locks and clients that were made before may stop every "
    "greenlet of this process; call gevent.monkey.patch_all() before anything else is imported"
)
_told: list[Callable[[], None]] = []


def when_patched(callback: Callable[[], None]) -> None:
    """Call *callback* when gevent has replaced ``threading`` from now on, and warn. Idempotent."""
    if callback not in _told:
        _told.append(callback)
        when_imported("gevent.events", _listen)


def _listen() -> None:
    subscribers = sys.modules["gevent.events"].subscribers
    if _patched not in subscribers:
        subscribers.append(_patched)


def _patched(event: Any) -> None:  # noqa: ANN401 - one of gevent's
    named = type(event).__name__ == "GeventDidPatchModuleEvent"
    if named and event.module_name == "threading":
        for callback in _told:
            callback()
        log_once("greenlets", "", None, _MESSAGE)
