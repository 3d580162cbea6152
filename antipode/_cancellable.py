"""The handle on a barrier that runs in the background."""

from __future__ import annotations

import threading


class Cancellable:
    """A barrier that runs in the background."""

    def __init__(self, finished: threading.Event) -> None:
        """Cancel by setting *finished*."""
        self._finished = finished
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop waiting; the callback is not called any more. Idempotent, thread-safe."""
        self._cancelled.set()
        self._finished.set()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled.is_set()
