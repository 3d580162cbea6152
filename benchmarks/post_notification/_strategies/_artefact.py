"""The paper's published barrier: ask the replica, again and again, for a row with the post's id."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload


class Artefact(Unprotected):
    """Polls without a pause; what is there in an older version, or is to go, is there."""

    waits: ClassVar[bool] = True

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:
        """Poll until the replica has the id, then read."""
        ends_s = time.monotonic() + self.knobs.timeout_s
        while notice["kind"] != "delete" and not self.client("reader").read(notice["id"]):
            if time.monotonic() > ends_s:
                raise TimeoutError("the replica does not have the post")
        return fetch()
