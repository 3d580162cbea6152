"""A fixed sleep, as long as replication usually takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload


class Sleep(Unprotected):
    """Hopes that replication is done by then; every reader waits, whether or not it is."""

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:  # noqa: ARG002
        """Sleep, then read."""
        time.sleep(self.knobs.sleep_s)
        return fetch()
