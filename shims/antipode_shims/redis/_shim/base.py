"""What every Redis shim of this process has: a datastore, a server, and what it remembers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import (
    ServerName,
    ServerShim,
    Unreachable,
    count,
    following,
    log_once,
    mark_incomplete,
)
from antipode_shims.redis._clients.exchange import asked_first, exchange
from antipode_shims.redis._clients.redis_py import link_errors, redis_module
from antipode_shims.redis._clients.sentinel import SentinelSettings
from antipode_shims.redis._endpoint import RedisEndpoint
from antipode_shims.redis._look import look
from antipode_shims.redis._position import (
    INFO,
    LOG_KEY,
    REPLID,
    InfoError,
    LogHistory,
    ReplicationState,
    parse_info,
    primary_place,
    writes_nothing,
)
from antipode_shims.redis._promises.records import ABANDONED, is_abandoned, record_key, set_record

if TYPE_CHECKING:
    from antipode import Promise
    from antipode.shim import Endpoint, Floor, OnRead, ReadsFrom
    from antipode_shims.redis._clients.redis_py import ServerSettings
    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._look import Look
    from antipode_shims.redis._stored.lineages import StoredLineages


class BaseRedisShim(ServerShim):
    """One Redis server as this process sees it; the base of both APIs.

    Attributes:
        prefix: of companion keys.
        by_sentinels: whether Sentinels say where its server is, of each connection.
        history: where earlier logs are known to have ended.
        stored: the lineages that a native client stores with values; None for none.
        primary: the client at which reads are made that would be stale here; None for none.
    """

    promises = True
    primary: Any = None
    stored: StoredLineages | None = None
    system = "redis"

    def __init__(
        self,
        datastore: str,
        settings: ServerSettings,
        *,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
        prefix: str = "ap:",
        log_history: bool = False,
        one_server: bool | None = None,
    ) -> None:
        """Adopt the options; connects to nothing.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        if not prefix:
            msg = "prefix must not be empty: a companion needs a key of its own"
            raise ConfigurationError(msg)
        one_server = settings.one_server if one_server is None else one_server
        server = settings.where if one_server else None
        super().__init__(datastore, server=server, reads_from=reads_from, on_read=on_read)
        self.abandons = reads_from == "primary"
        self.prefix = prefix
        self.history = LogHistory()
        self._settings = settings
        self.by_sentinels = isinstance(settings, SentinelSettings)
        self._recorder = LogRecorder(datastore) if log_history else None

    @property
    def server_name(self) -> ServerName | None:
        """The address of its client, or where Sentinels said that its server is."""
        return ServerName.of(self.system, self._settings.address)

    def locate(self, held: Floor, connection: Any) -> None:
        """Have *held* say where *connection* leads, of a client that Sentinels made."""
        inner = getattr(connection, "_conn", connection)  # Of one with a cache.
        held.server = ServerName.of(self.system, (inner.host, inner.port))

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the client's server with a connection of its own.

        Raises:
            Unreachable: not now.
        """
        return RedisEndpoint(self._settings, self.history, prefix=self.prefix, timeout_s=timeout_s)

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now, on a connection of its own.

        Empty where there is none: a primary without a replica numbers nothing.

        Raises:
            Unreachable: it does not answer, or is a replica by now.
            InfoError: it does not let this user ask.
            ConfigurationError: the address does not pass ``INFO``.
        """
        try:
            connection = self._settings.connect_to_primary(timeout_s=timeout_s)
            try:
                state = parse_info(asked_first(connection, INFO))
            finally:
                connection.disconnect()
        except link_errors() as error:
            raise Unreachable(str(error)) from error
        if not state.primary:
            raise Unreachable(f"the primary of {self.datastore!r} is a replica now")
        if not state.backlog:
            return frozenset()
        hour = self.clock.hour()
        position = WriteId(self.datastore, state.replid, state.offset, hour, covering=True)
        return frozenset([position, following(self.datastore, state.replid)])

    def log_start(self, key: str) -> WriteId | None:
        """The first offset of a replication id, which is random."""
        return WriteId(self.datastore, key, 1) if REPLID.fullmatch(key) else None

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record at the primary that *promise* is abandoned, unless it has a record.

        Raises:
            Unreachable: it does not answer, or is a replica by now.
            redis.ResponseError: it refuses.
        """
        commands = [
            set_record(promise, self.prefix, ABANDONED),
            ("GET", record_key(promise, self.prefix)),
        ]
        try:
            connection = self._settings.connect_to_primary(timeout_s=timeout_s)
            try:
                replies = exchange(connection, commands)
            finally:
                connection.disconnect()
        except link_errors() as error:
            raise Unreachable(str(error)) from error
        for reply in replies:
            if isinstance(reply, redis_module().exceptions.ReadOnlyError):
                raise Unreachable(f"the primary of {self.datastore!r} is a replica now") from reply
            if isinstance(reply, Exception):
                raise reply
        return is_abandoned(replies[-1])

    def minted(self, reply: Any, before: Any = None) -> WriteId | None:
        """The position of a write, from the ``INFO`` after it; None when there is none.

        What cannot be sampled marks the scope ``incomplete``: the write exists.

        Args:
            reply: to ``INFO`` after the write.
            before: to ``INFO`` in front of what only may have written: nothing was, where both
                are of a replica that takes no writes. None for what is known to write.
        """
        if (place := primary_place(reply)) is not None:
            return WriteId(self.datastore, *place, self.clock.hour())
        try:
            state = parse_info(reply)
        except InfoError as error:
            self.unsampled(str(error))
            return None
        if state.read_only and before is not None and writes_nothing(before):
            return None
        if not state.primary:
            # Demoted between write and sample, or a writable replica: in nobody's log.
            mark_incomplete(self.datastore, "in_doubt")
            return None
        if not state.backlog:
            log_once(
                "redis_no_replica",
                self.datastore,
                state.replid,
                "the primary of %r has no replica: its positions become unknown_log when the "
                "first one attaches",
                self.datastore,
            )
        return WriteId(self.datastore, state.replid, state.offset, self.clock.hour())

    def unsampled(self, cause: str) -> None:
        """Note a write that has no position."""
        count("uncovered_write", self.datastore)
        mark_incomplete(self.datastore, "unsampled")
        log_once(
            "redis_unsampled",
            self.datastore,
            cause[:40],
            "a write to %r has no position: %s",
            self.datastore,
            cause,
        )

    def covering(self, reply: Any) -> Lineage:
        """What a read may have seen, from the ``INFO`` after it."""
        try:
            state = parse_info(reply)
        except InfoError:
            count("unsampled_read", self.datastore)
            return Lineage(incomplete=[(self.datastore, "unsampled")])
        if not state.primary and state.syncing:
            return Lineage(incomplete=[(self.datastore, "unsampled")])
        hour = self.clock.hour()
        write = WriteId(self.datastore, state.replid, state.offset, hour, covering=True)
        return Lineage([write])

    def look_for(self, held: Floor) -> Look:
        """One poll for a floor, as a conversation without I/O."""
        promises = tuple(held.promises)
        return look(held.writes, self.history, promises=promises, prefix=self.prefix)

    def log_commands(self, reply: Any) -> list[Command]:
        """What to send, once for each promotion, so that replicas know where a log ended."""
        if self._recorder is None or isinstance(reply, Exception) or reply is None:
            return []
        try:
            return self._recorder.commands(parse_info(reply))
        except InfoError:
            return []


class LogRecorder:
    """Notes the log that ended when the present primary was promoted. Thread-safe."""

    def __init__(self, datastore: str) -> None:
        """Have noted nothing."""
        self._datastore = datastore
        self._noted: set[str] = set()
        self._lock = threading.Lock()

    def commands(self, state: ReplicationState) -> list[Command]:
        """``HSET antipode:log <ended log> <its last offset>``, the first time it is seen."""
        ended = state.ended_log
        with self._lock:
            if ended is None or state.replid in self._noted:
                return []
            self._noted.add(state.replid)
        count("log_history_noted", self._datastore)
        return [("HSET", LOG_KEY, ended[0], str(ended[1]))]
