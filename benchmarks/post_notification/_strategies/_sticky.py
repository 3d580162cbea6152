"""Sticking to the primary for a time after a write."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload


class Sticky(Unprotected):
    """Reads a post at the primary while it is young; the regions' clocks have to agree on that."""

    far: ClassVar[bool] = True

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write; the notification says when."""
        return {**super().write(post_id, value), "written_s": time.time()}

    def read(self, post_id: str, notice: Payload) -> bytes | None:
        """Read at the primary, or at the replica if the write was long ago."""
        if time.time() > notice["written_s"] + self.knobs.stick_s:
            return super().read(post_id, notice)
        value: bytes | None = self.client("across").read(post_id)
        return value
