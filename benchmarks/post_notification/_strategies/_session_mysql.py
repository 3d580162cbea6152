"""A causal session with MySQL, carried by hand: GTIDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from benchmarks.post_notification._storage_mysql import get, put

from ._none import Unprotected

if TYPE_CHECKING:
    from benchmarks.post_notification._rpc import Payload

EXECUTED = text("SELECT @@GLOBAL.gtid_executed")
WAIT = text("SELECT WAIT_FOR_EXECUTED_GTID_SET(:gtids, :timeout_s)")


class Session(Unprotected):
    """The notification says what the primary had executed; the reader waits for that.

    PyMySQL does not tell the GTID of a write, so the writer asks for all that are executed.
    """

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """Write, and ask what was executed."""
        with self.client("writer").engine.connect() as connection:
            put(connection, post_id, value)
            return {"gtids": connection.execute(EXECUTED).scalar()}

    def read(self, post_id: str, notice: Payload) -> bytes | None:
        """Wait until the replica has executed it, then read."""
        wanted = {"gtids": notice["gtids"], "timeout_s": self.knobs.timeout_s}
        with self.client("reader").engine.connect() as connection:
            if connection.execute(WAIT, wanted).scalar():
                raise TimeoutError("the replica does not have the write")
            return get(connection, post_id)
