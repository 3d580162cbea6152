"""Synchronous replication with MongoDB: a write concern that both regions must fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import WriteConcern

from benchmarks.post_notification._storage_mongodb import put

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload


class Synchronous(Unprotected):
    """The writer waits until both members have its write."""

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write with ``w: 2``, which is the majority of two."""
        both = WriteConcern(w=2, wtimeout=int(self.knobs.timeout_s * 1000))
        put(self.client("writer").posts.with_options(write_concern=both), post_id, value)
        return {}
