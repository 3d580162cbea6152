"""Reads of the primary, across the link between the regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload


class Primary(Unprotected):
    """Never reads the replica, which then is there in vain."""

    far: ClassVar[bool] = True

    def read(self, post_id: str, notice: Payload) -> bytes | None:  # noqa: ARG002
        """Read at the primary."""
        value: bytes | None = self.client("across").read(post_id)
        return value
