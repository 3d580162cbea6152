"""A shim of one's own, for Redis hashes: the public API alone, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis

from antipode import Lineage, Status, WriteId, current
from antipode.shim import (
    SYSTEM_CLOCK,
    Endpoint,
    Observation,
    ReadsFrom,
    Shim,
    Unreachable,
    mark_incomplete,
    record_read,
    record_write,
    stored_lineage,
    stored_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection


class HashShim(Shim):
    """Values in hashes, each stored with its lineage."""

    def __init__(
        self, datastore: str, url: str, reads_from: ReadsFrom = "primary"
    ) -> None:
        super().__init__(datastore, reads_from=reads_from)
        self._url = url
        self._client: Any = redis.Redis.from_url(url)

    def write(
        self, key: str, value: bytes, lineage: Lineage | None = None
    ) -> Lineage:
        """Write *value* with its lineage; that lineage with the new write."""
        stored = current() if lineage is None else lineage
        fields = {"value": value, "lineage": stored_text(stored)}
        try:
            # In one packet, outside of a transaction: what the server says
            # next is its position.
            with self._client.pipeline(transaction=False) as pipeline:
                _, info = (
                    pipeline.hset(key, mapping=fields)
                    .info("replication")
                    .execute()
                )
            write = self._position(info)
        except (redis.ConnectionError, redis.TimeoutError):
            # It may have been written.
            mark_incomplete(self.datastore, "in_doubt")
            raise
        record_write(write)
        return stored.append(write)

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """The value and its lineage, which is merged into the scope.

        With it goes a position that has the write.
        """
        with self._client.pipeline(transaction=False) as pipeline:
            (value, text), info = (
                pipeline.hmget(key, "value", "lineage")
                .info("replication")
                .execute()
            )
        if value is None:
            return None, Lineage()
        lineage = stored_lineage(self.datastore, text).append(
            self._position(info, covering=True)
        )
        record_read(lineage)
        return value, lineage

    def _position(
        self, info: dict[str, Any], *, covering: bool = False
    ) -> WriteId:
        """How far the server is.

        It is a write's own position, or one that covers all before it.
        """
        log, hour = info["master_replid"], SYSTEM_CLOCK.hour()
        return WriteId(
            self.datastore, log, shown(info), hour, covering=covering
        )

    def open_endpoint(self, *, timeout_s: float) -> HashEndpoint:
        """A connection of the barrier's own."""
        return HashEndpoint(self._url, timeout_s)

    def close(self) -> None:
        """Unregister it, too."""
        super().close()
        self._client.close()


class HashEndpoint(Endpoint):
    """One server, as a barrier looks at it."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._client: Any = redis.Redis.from_url(url, socket_timeout=timeout_s)

    def observe(
        self, writes: Collection[WriteId], *, timeout_s: float
    ) -> Observation:
        """Which of *writes* the server shows."""
        del timeout_s  # The socket's own timeout, given as it was opened.
        try:
            info = self._client.info("replication")
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Unreachable(str(error)) from error

        def judge(write: WriteId) -> Status:
            if not isinstance(write.version, int):
                return Status.UNDECIDABLE  # No Redis server issued it.
            if write.key == info["master_replid"]:
                there = write.version <= shown(info)
                return Status.VISIBLE if there else Status.NOT_YET
            # The history that this server left.
            if write.key == info["master_replid2"]:
                # Other clients may have written before the position was
                # taken: beyond the end a write may be there or not.
                kept = write.version < info["second_repl_offset"]
                return Status.VISIBLE if kept else Status.UNDECIDABLE
            return Status.UNKNOWN_LOG

        return Observation(
            info["master_replid"], {write: judge(write) for write in writes}
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def shown(info: dict[str, Any]) -> int:
    """How far a server has come; nothing while it loads the primary's data."""
    if info.get("master_sync_in_progress"):
        return -1
    return int(info.get("slave_repl_offset", info["master_repl_offset"]))
