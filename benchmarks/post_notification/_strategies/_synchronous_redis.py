"""Synchronous replication with Redis: ``WAIT`` behind each write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload


class Synchronous(Unprotected):
    """The writer waits until the replica has acknowledged its write."""

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write and wait, over one connection: ``WAIT`` is about the writes of its own."""
        with self.client("writer").client.pipeline(transaction=False) as pipeline:
            if value is None:
                pipeline.delete(post_id)
            else:
                pipeline.set(post_id, value)
            pipeline.wait(1, int(self.knobs.timeout_s * 1000))
            if pipeline.execute()[-1] < 1:
                raise TimeoutError("no replica acknowledged the write")
        return {}
