"""What every MongoDB shim of this process has: a datastore, a server, and what it remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage, WriteId
from antipode.shim import (
    ServerName,
    ServerShim,
    Unreachable,
    count,
    log_once,
    mark_incomplete,
    shims_of,
)
from antipode_shims.mongodb._clients.pymongo import farewell, link_errors
from antipode_shims.mongodb._endpoint.endpoint import MongoEndpoint, talk
from antipode_shims.mongodb._endpoint.wait import SLICE_S, Patience, held_find
from antipode_shims.mongodb._look import hello, look, shown_in, target_in
from antipode_shims.mongodb._position.history import LogHistory
from antipode_shims.mongodb._position.reply import (
    local_position,
    read_position,
    state_of_reply,
    write_position,
)
from antipode_shims.mongodb._position.timestamps import log_of, timestamp_of
from antipode_shims.mongodb._promises.records import abandoning

if TYPE_CHECKING:
    from collections.abc import Collection

    from bson import Timestamp

    from antipode import Promise
    from antipode.shim import Endpoint, OnRead, ReadsFrom
    from antipode_shims.mongodb._clients.pymongo import ServerSettings
    from antipode_shims.mongodb._look import Look
    from antipode_shims.mongodb._position.reply import Reply

#: Read concerns that show what a majority has, and nothing else.
_MAJORITY = ("majority", "linearizable", "snapshot")


class BaseMongoShim(ServerShim):
    """One replica set, read at one server or through a client that chooses; base of both APIs.

    Attributes:
        history: what is known of earlier terms.
        majority: whether reads have read concern ``majority`` or stronger.
        set_name: of the replica set; empty until a reply had it.
        promise_database: where this client says that promises are recorded; else empty.
    """

    system = "mongodb"

    def __init__(
        self,
        datastore: str,
        settings: ServerSettings,
        *,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
        read_concern: str | None = None,
        wait_in: tuple[str, str] = ("test", "antipode"),
        one_server: bool | None = None,
        promise_database: str = "",
    ) -> None:
        """Adopt the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            settings: how to connect to the client's server.
            reads_from: ``primary`` or ``replica``.
            on_read: ``merge`` or ``ignore``.
            read_concern: the level with which this process reads.
            wait_in: database and collection that the user may read: where a barrier waits on
                the server. It need not exist.
            one_server: whether every read goes to one server, where ``at="now"`` can poll;
                None: so for the primary, and for a client with ``directConnection=True``.
            promise_database: where promises are recorded; empty where that is not known.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        if one_server is None:
            one_server = settings.direct or reads_from == "primary"
        server = settings.where if one_server else None
        super().__init__(datastore, server=server, reads_from=reads_from, on_read=on_read)
        self.history = LogHistory()
        self.majority = read_concern in _MAJORITY
        self.set_name = ""
        self._settings = settings
        self._reads: ReadsFrom = reads_from
        self._wait_in = wait_in
        self.promise_database = promise_database
        self._patience = Patience()

    @property
    def server_name(self) -> ServerName | None:
        """The address of its client."""
        return ServerName.of(self.system, self._settings.where)

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the server where this process reads, with a client of its own.

        Raises:
            Unreachable: not now.
            ConfigurationError: it is a mongos, or no member of a replica set.
        """
        client = self._settings.connect(self._reads, timeout_s=timeout_s)
        return MongoEndpoint(
            client,
            self.history,
            reads_from=self._reads,
            majority=self.majority,
            wait_in=self._wait_in,
            promised_in=self.promised_in,
        )

    @property
    def promised_in(self) -> str:
        """The database of promises, by this client or another one of its datastore; or empty."""
        if self.promise_database:
            return self.promise_database
        others = (one for one in shims_of(self.datastore) if isinstance(one, BaseMongoShim))
        return next(filter(None, (one.promise_database for one in others)), "")

    @property
    def promises(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it is known where promises are recorded."""
        return bool(self.promised_in)

    @property
    def abandons(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it reaches the primary, and knows where promises are recorded."""
        return self.reads_from == "primary" and self.promises

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record at the primary that *promise* is abandoned.

        Waits for a transaction that is about to fulfil it.

        Returns:
            Whether it is abandoned; False where it was fulfilled before.

        Raises:
            Unreachable: the primary does not answer in time.
            ConfigurationError: this user may not write there.
        """
        with farewell(self._settings.connect("primary", timeout_s=timeout_s)) as client:
            try:
                steps = abandoning(self.promised_in, promise)
                return talk(client, steps, timeout_s=timeout_s)
            except link_errors() as error:
                raise Unreachable(str(error)) from error

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now.

        Raises:
            Unreachable: it does not answer, or is not primary now.
        """
        with farewell(self._settings.connect("primary", timeout_s=timeout_s)) as client:
            try:
                state = talk(client, hello(), timeout_s=timeout_s)
            except link_errors() as error:
                raise Unreachable(str(error)) from error
        if not state.primary:
            msg = f"the server of {self.datastore!r} is not primary now"
            raise Unreachable(msg)
        self.set_name = self.set_name or state.set_name
        return frozenset([self._write_id(local_position(state), covering=True)])

    def minted(self, reply: Reply, *, majority: bool = False) -> WriteId | None:
        """The position of the write that *reply* acknowledges; None when it does not show one.

        What cannot be known marks the scope ``incomplete``: the write exists.

        Args:
            reply: of the write.
            majority: whether its write concern was ``majority``, and was met.
        """
        position = write_position(reply, self.set_name, majority=majority)
        if position is None or not self.set_name:
            count("uncovered_write", self.datastore)
            mark_incomplete(self.datastore, "unsampled")
            log_once(
                "mongodb_unsampled",
                self.datastore,
                "",
                "the reply to a write to %r has no position",
                self.datastore,
            )
            return None
        return self._write_id(position)

    def covering(self, reply: Reply, *, majority: bool | None = None) -> Lineage:
        """What a read may have seen, from its reply, where the command asked with ``ASK``.

        Args:
            reply: of the read.
            majority: whether its read concern was at least ``majority``; None: as the shim's.
        """
        concern = self.majority if majority is None else majority
        position = read_position(reply, self.set_name, majority=concern)
        if position is None or not self.set_name:
            count("unsampled_read", self.datastore)
            return Lineage(incomplete=[(self.datastore, "unsampled")])
        return Lineage([self._write_id(position, covering=True)])

    def _write_id(self, position: tuple[str, int], *, covering: bool = False) -> WriteId:
        return WriteId(self.datastore, *position, self.clock.hour(), covering=covering)

    def after(self, writes: Collection[WriteId]) -> Timestamp | None:
        """The ``afterClusterTime`` that a read under a floor of *writes* needs, if any."""
        versions = [
            write.version
            for write in writes
            if isinstance(write.version, int) and log_of(write.key, self.set_name) is not None
        ]
        return timestamp_of(max(versions)) if versions else None

    def shown(
        self, reply: Reply, writes: Collection[WriteId], *, majority: bool | None = None
    ) -> Look:
        """What the server that sent *reply* shows of *writes*, as a conversation with it.

        Sound for the read that *reply* answers where its command asked with ``ASK`` and had the
        ``afterClusterTime`` of :meth:`after`: the server's log at the read had these timestamps,
        and is a beginning of the log that *reply* names.
        """
        concern = self.majority if majority is None else majority
        state = state_of_reply(reply, self.set_name)
        if state is None:
            return look(writes, self.history, majority=concern)
        return shown_in(state, writes, self.history, majority=concern)

    def observe(self, writes: Collection[WriteId], *, majority: bool, wait_s: float) -> Look:
        """A poll of the server, as a conversation with it.

        Where something is missing the server waits for it, for *wait_s* seconds at most, and is
        polled again.
        """
        state = yield from hello()
        shown = yield from shown_in(state, writes, self.history, majority=majority)
        target = target_in(shown, state, majority=majority)
        limit_ms = int(min(wait_s, SLICE_S) * 1000)
        if target is None or limit_ms < 1 or not self._patience.has(target):
            return shown
        database, collection = self._wait_in
        reply = yield database, {**held_find(collection, target), "maxTimeMS": limit_ms}
        if isinstance(reply, Exception):
            self._patience.ended(target, reply)
            return shown
        return (yield from look(writes, self.history, majority=majority))
