"""The library: the lineage travels by itself, and one call waits for what it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import antipode
from benchmarks.post_notification._storage import POST_STORAGE

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload
    from benchmarks.post_notification._storage import Face


class Barrier(Unprotected):
    """Waits until the reader's region has what the notification depends on (steps 6 to 8)."""

    face: ClassVar[Face] = "shim"
    waits: ClassVar[bool] = True

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:  # noqa: ARG002
        """Wait, then read."""
        antipode.barrier(timeout=self.knobs.timeout_s, only=POST_STORAGE)
        return fetch()
