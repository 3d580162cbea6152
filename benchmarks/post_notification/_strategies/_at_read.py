"""The library, with the store's own client: the read itself waits for what the lineage names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import antipode
from benchmarks.post_notification._storage import POST_STORAGE

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload
    from benchmarks.post_notification._storage import Face


class AtRead(Unprotected):
    """Waits where the post is read, on the connection that reads it."""

    face: ClassVar[Face] = "client"

    def read(self, post_id: str, notice: Payload) -> bytes | None:
        """Wait and read in one go."""
        antipode.barrier(timeout=self.knobs.timeout_s, only=POST_STORAGE, at="read")
        return super().read(post_id, notice)
