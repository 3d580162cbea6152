"""What every MySQL shim of this process has: a datastore, a server, and what it remembers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import (
    ServerName,
    ServerShim,
    Unreachable,
    count,
    following,
    log_once,
    mark_incomplete,
    shims_of,
)
from antipode_shims._sql.own_logs import own_logs
from antipode_shims._sql.promises import TABLE
from antipode_shims.mysql._clients.views import Listing
from antipode_shims.mysql._endpoint.caveat import caveat
from antipode_shims.mysql._endpoint.endpoint import MySQLEndpoint
from antipode_shims.mysql._endpoint.settings import ServerSettings, abandon, execute
from antipode_shims.mysql._endpoint.upstream import Upstream
from antipode_shims.mysql._functions import names_of
from antipode_shims.mysql._look import observe
from antipode_shims.mysql._position.flavor import (
    COVER,
    Ask,
    converse,
    converse_async,
    covering,
    detect,
    minted,
)
from antipode_shims.mysql._position.gtid import GtidError, MySQLLog, Runs
from antipode_shims.mysql._position.states import STATE, parse_state, primaries
from antipode_shims.mysql._promises.records import check_name, place, sweeping

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from antipode import Promise
    from antipode.shim import Endpoint, Observation, OnRead, ReadsFrom
    from antipode_shims.mysql._position.flavor import Asking, Facts, Flavor, Rows

T = TypeVar("T")

#: Seconds that a step of a sweep may take.
_SWEEP_S = 0.5

logger = logging.getLogger("antipode")


class BaseMySQLShim(ServerShim):
    """One MySQL or MariaDB server as this process sees it; the base of every API.

    Clients find out about the server behind a connection with ``converse(self.detect(), execute)``
    once for each connection, and hand the result to what needs it.

    Attributes:
        system: ``mariadb`` as soon as a server says that it is one.
        settings: how to connect to the server.
        problems: what the server that was reached last lacks, so that nobody can wait there.
        proxied: why connections are not known to lead to one server each; empty as long as all
            of them are, or where the application states it.
        promise_table: where the records of promises are, perhaps without a schema.
        readonly_functions: the functions of the application's that write nothing.
        own_logs: names of the logs to which its clients were seen to write at their server.
        runs: where runs of numbers begin there.
    """

    system = "mysql"

    def __init__(
        self,
        datastore: str,
        settings: ServerSettings,
        *,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
        one_server: bool | None = None,
        promise_table: str = TABLE,
        readonly_functions: Collection[str] = (),
    ) -> None:
        """Adopt the options; connects to nothing.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        self._stated = one_server is True
        one_server = settings.one_server if one_server is None else one_server
        server = settings.where if one_server else None
        self.promise_table = check_name(promise_table)  # Before the server is claimed.
        self.readonly_functions = names_of(readonly_functions)
        super().__init__(datastore, server=server, reads_from=reads_from, on_read=on_read)
        self.settings = settings
        self.problems: tuple[str, ...] = ()
        self.proxied = ""
        self.runs = Runs()
        self._views: dict[str, Listing] = {}
        self.own_logs = own_logs(datastore, settings.where)
        self._upstream = Upstream()

    @property
    def server_name(self) -> ServerName | None:
        """The address of its client."""
        return ServerName.of(self.system, self.settings.address)

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the client's server with a connection of the library's own.

        Raises:
            Unreachable: not now.
            ConfigurationError: the server has no positions, or several may answer; says what to
                change.
        """
        endpoint = MySQLEndpoint(
            self.datastore, self.settings, timeout_s=timeout_s, promised_in=self.promised_in
        )
        self.reached(endpoint.facts, endpoint.accepted)
        try:
            self.require(endpoint.facts)
        except ConfigurationError:
            endpoint.close()
            raise
        return endpoint

    def reached(self, facts: Facts, accepted: int) -> None:
        """Note what a connection leads to.

        One that shows a proxy shows it for all of them: by chance the numbers of another one may
        be equal.

        Args:
            facts: about the server that answered.
            accepted: the number of the connection in its handshake.
        """
        self.system = facts.flavor.system
        if not self._stated and (why := facts.proxied(accepted)):
            self.proxied = why

    def views_of(self, server: str) -> Listing:
        """What its clients know of the views of *server*."""
        return self._views.setdefault(server, Listing())

    def require(self, facts: Facts) -> None:
        """Refuse a server where nobody can wait for reads.

        Raises:
            ConfigurationError: it has no positions, or another one may be read.
        """
        facts.require(self.datastore)
        if self.proxied:
            raise ConfigurationError(f"reads of {self.datastore!r} cannot wait: {self.proxied}")

    @property
    def promised_in(self) -> str:
        """The table of promises with its schema; empty where no client names a database.

        A client that names none asks where others of its datastore do.
        """
        if own := self.own_promises:
            return own
        others = (one for one in shims_of(self.datastore) if isinstance(one, BaseMySQLShim))
        return next(filter(None, (one.own_promises for one in others)), "")

    @property
    def own_promises(self) -> str:
        """The table as this client names it; empty where it names no database."""
        return place(self.promise_table, self.settings.database)

    @property
    def promises(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the table of promises can be found."""
        return bool(self.promised_in)

    @property
    def abandons(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it reaches the primary, and the table there can be found."""
        return self.reads_from == "primary" and self.promises

    def log_start(self, key: str) -> WriteId | None:
        """The first transaction of a run of MySQL's, whose UUIDs are unique.

        Two MariaDB servers that have nothing to do with each other may number their domains alike.
        """
        log = MySQLLog.of(key)
        return None if log is None else WriteId(self.datastore, log.key, log.first)

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record that *promise* is abandoned, on a connection of its own.

        Waits for a transaction that is about to fulfil it, or takes the promise back.

        Returns:
            Whether it is abandoned; False where it was fulfilled before.

        Raises:
            Unreachable: the primary does not answer in time, or takes no writes now.
            ConfigurationError: the table is missing, or this user may not write to it.
        """
        connection = self.settings.connect(timeout_s=timeout_s)
        try:
            return abandon(connection, self.datastore, self.promised_in, promise)
        finally:
            connection.close()

    def sweep_promises(self) -> None:
        """Delete a batch of records of promises whose time is over; what fails is left."""
        try:
            connection = self.settings.connect(timeout_s=_SWEEP_S)
            try:
                converse(sweeping(self.promised_in), lambda ask: execute(connection, ask.sql))
            finally:
                connection.close()
        except Exception as error:  # noqa: BLE001 - the promise is kept all the same
            logger.debug("old promises of %r are not swept: %s", self.datastore, error)

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now, on a connection of its own.

        Raises:
            Unreachable: it does not answer, or takes no writes by now.
            ConfigurationError: the server has no positions.
        """
        connection = self.settings.connect(timeout_s=timeout_s)
        try:

            def answer(ask: Ask) -> Rows:
                return execute(connection, ask.sql)

            facts = converse(self.detect(), answer)
            facts.require(self.datastore, writes=True)
            rows = execute(connection, COVER[facts.flavor])
            # Asked after the position: what still takes writes was the primary then.
            state = parse_state(facts, execute(connection, STATE[facts.flavor]))
            names = frozenset([facts.uuid]) if facts.uuid else converse(primaries(facts), answer)
        finally:
            connection.close()
        if not state.writable or not names:
            msg = f"the primary of {self.datastore!r} takes no writes now"
            raise Unreachable(msg)
        hour = self.clock.hour()
        found = covering(facts.flavor, rows, datastore=self.datastore, hour=hour)
        demanded = (following(self.datastore, name) for name in names)
        return frozenset([*found, *demanded]) if found else frozenset()

    def detect(self) -> Asking[Facts]:
        """Find out about the server behind a connection; what it has executed is remembered."""
        facts = yield from detect()
        caveat(self.datastore, self.settings.where, facts.filters)
        self.runs.learn(facts.executed, group_block=facts.group_block)
        return facts

    def minted(self, flavor: Flavor, gtids: str) -> tuple[WriteId, ...]:
        """The writes that a session tracked, not yet recorded; nothing, and marked, if torn.

        Args:
            flavor: of the server that answered.
            gtids: what the OK packet said: MySQL's OWN_GTID, MariaDB's ``last_gtid``.
        """
        try:
            hour = self.clock.hour()
            return minted(flavor, gtids, self.runs, datastore=self.datastore, hour=hour)
        except GtidError as error:
            self.unsampled(str(error))
            return ()

    def unsampled(self, cause: str) -> None:
        """Note that a write was committed and has no position."""
        mark_incomplete(self.datastore, "unsampled")
        log_once(
            "mysql_unsampled",
            self.datastore,
            cause[:40],
            "a write to %r has no position: %s",
            self.datastore,
            cause,
        )

    def covering(self, flavor: Flavor, rows: Rows) -> Lineage:
        """What a read may have seen, from the answer to ``COVER[flavor]`` asked after it."""
        if self.problems or self.proxied:  # Another server may have answered than was read.
            return self.read_at(None)
        return self.position(flavor, rows)

    def position(self, flavor: Flavor, rows: Rows) -> Lineage:
        """All that a server has, from its answer to ``COVER[flavor]``."""
        try:
            hour = self.clock.hour()
            return Lineage(covering(flavor, rows, datastore=self.datastore, hour=hour))
        except (GtidError, KeyError):
            return self.read_at(None)

    def read_at(self, lineage: Lineage | None) -> Lineage:
        """What a read may have seen, *lineage*, or where nobody knows, a lineage that says so."""
        if lineage is not None:
            return lineage
        count("unsampled_read", self.datastore)
        return Lineage(incomplete=[(self.datastore, "unsampled")])

    def observe(
        self, facts: Facts, writes: Collection[WriteId], *, wait_s: float = 0.0
    ) -> Asking[Observation]:
        """Poll on the connection that reads, blocking there for up to *wait_s* seconds."""
        return observe(facts, writes, wait_s=wait_s)

    def converse(self, steps: Asking[T], query: Callable[[str], Rows]) -> T:
        """Hold a conversation over *query*, which raises ``Refused`` for a server's error."""

        def answer(ask: Ask) -> Rows:
            if ask.server is None:
                return query(ask.sql)
            return self._upstream.ask(self.settings, ask.server, ask.sql)

        return converse(steps, answer)

    async def converse_async(self, steps: Asking[T], query: Callable[[str], Awaitable[Rows]]) -> T:
        """The asyncio twin of :meth:`converse`."""
        import asyncio

        async def answer(ask: Ask) -> Rows:
            if ask.server is None:
                return await query(ask.sql)
            asking = self._upstream.ask
            return await asyncio.to_thread(asking, self.settings, ask.server, ask.sql)

        return await converse_async(steps, answer)
