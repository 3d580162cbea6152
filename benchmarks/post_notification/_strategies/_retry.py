"""Retry with back-off, for as long as there is something to notice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload

FIRST_S = 0.01
ATTEMPTS = 8


class Retry(Unprotected):
    """Reads again while no post is found; an older version, or one deleted, looks like any post."""

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:
        """Read up to eight times, with pauses that double from 10 ms to 640."""
        version = fetch()
        for attempt in range(ATTEMPTS - 1):
            if version or notice["kind"] == "delete":
                break
            time.sleep(FIRST_S * 2**attempt)
            version = fetch()
        return version
