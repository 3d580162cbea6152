"""The library as most will use it: the store's own client, instrumented, and one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import antipode
from benchmarks.post_notification._storage import POST_STORAGE

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload
    from benchmarks.post_notification._storage import Face


class Instrumented(Unprotected):
    """Waits where `Barrier` does; nothing is stored beside a post."""

    face: ClassVar[Face] = "client"
    waits: ClassVar[bool] = True

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:  # noqa: ARG002
        """Wait, then read."""
        antipode.barrier(timeout=self.knobs.timeout_s, only=POST_STORAGE)
        return fetch()
