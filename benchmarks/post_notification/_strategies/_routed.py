"""The library, with a router of reads: the replica while it shows enough, else the primary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import antipode
from benchmarks.post_notification._storage import POST_STORAGE

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._rpc import Payload
    from benchmarks.post_notification._storage import Face, Place

    from ._none import Knobs

#: Seconds for which the reads of a request wait at the replica before they go to the primary.
_PATIENCE_S = 0.02


class Routed(Unprotected):
    """Reads at the replica; across the link, where that does not show the post in a moment."""

    face: ClassVar[Face] = "client"
    far: ClassVar[bool] = True

    def __init__(self, client: Callable[[Place], Any], knobs: Knobs) -> None:
        """Configure this process: how long the replica has."""
        antipode.configure(auto_timeout=_PATIENCE_S)
        super().__init__(client, knobs)

    def read(self, post_id: str, notice: Payload) -> bytes | None:  # noqa: ARG002
        """Read where the router says."""
        near = antipode.reads_from(POST_STORAGE) == "replica"
        value: bytes | None = self.client("reader" if near else "across").read(post_id)
        return value
