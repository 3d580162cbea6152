"""Retry with back-off until the version is there that the notification names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.post_notification._storage import version_of

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload

FIRST_S = 0.005
LONGEST_S = 0.04


class Retry(Unprotected):
    """Posts need versions for it that only grow, and every reader of every store this loop."""

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write; the notification names the version, 0 for a post that is to be gone."""
        return {**super().write(post_id, value), "version": version_of(value)}

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:
        """Read with pauses that double from 5 ms to 40, for as long as anything may wait."""
        ends_s, pause_s, wanted = (
            time.monotonic() + self.knobs.timeout_s,
            FIRST_S,
            notice["version"],
        )
        while (found := fetch()) < wanted or (found and not wanted):
            if time.monotonic() > ends_s:
                raise TimeoutError("the replica does not have this version")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)
        return found
