"""A causal session with MariaDB, carried by hand: GTIDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from benchmarks.post_notification._storage_mysql import get, put

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload

LAST = text("SELECT @@last_gtid")
WAIT = text("SELECT MASTER_GTID_WAIT(:gtid, :timeout_s)")


class Session(Unprotected):
    """The notification carries the GTID of the write; the reader waits for it."""

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write, and ask the same connection which GTID that was."""
        with self.client("writer").engine.connect() as connection:
            put(connection, post_id, value)
            return {"gtid": connection.execute(LAST).scalar()}

    def read(self, post_id: str, notice: Payload) -> bytes | None:
        """Wait until the replica has executed it, then read."""
        wanted = {"gtid": notice["gtid"], "timeout_s": self.knobs.timeout_s}
        with self.client("reader").engine.connect() as connection:
            if connection.execute(WAIT, wanted).scalar():
                raise TimeoutError("the replica does not have the write")
            return get(connection, post_id)
