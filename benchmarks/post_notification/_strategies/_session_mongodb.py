"""A causal session with MongoDB, carried by hand: its operation time and its cluster time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bson import Timestamp, json_util

from benchmarks.post_notification._storage_mongodb import get, put

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload


class Session(Unprotected):
    """The reader's session goes on where the writer's was: ``afterClusterTime``."""

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write in a session, whose times the notification carries."""
        client = self.client("writer")
        with client.client.start_session(causal_consistency=True) as session:
            put(client.posts, post_id, value, session=session)
            operation = session.operation_time
            return {
                "operation_time": [operation.time, operation.inc],
                "cluster_time": json_util.dumps(session.cluster_time),
            }

    def read(self, post_id: str, notice: Payload) -> bytes | None:
        """Read in a session that has heard of those times."""
        client = self.client("reader")
        with client.client.start_session(causal_consistency=True) as session:
            session.advance_cluster_time(json_util.loads(notice["cluster_time"]))
            session.advance_operation_time(Timestamp(*notice["operation_time"]))
            limit_ms = int(self.knobs.timeout_s * 1000)
            return get(client.posts, post_id, session=session, max_time_ms=limit_ms)
