"""What every PostgreSQL shim of this process has: a datastore, a server, and what it remembers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import (
    ServerName,
    ServerShim,
    Unreachable,
    count,
    defer_read,
    following,
    log_once,
    logger,
    mark_incomplete,
    record_write,
    scope_in,
    unscoped,
)
from antipode_shims._sql.functions import declared
from antipode_shims._sql.own_logs import own_logs
from antipode_shims._sql.promises import TABLE
from antipode_shims.postgresql._catalogue import FRESH_S, Catalogue
from antipode_shims.postgresql._elsewhere import ELSEWHERE, Elsewhere, elsewhere_of
from antipode_shims.postgresql._endpoint import PostgreSQLEndpoint, ServerSettings, abandon
from antipode_shims.postgresql._look import SAMPLE, WRITER_DELAY, Refused, converse, look
from antipode_shims.postgresql._position import (
    Log,
    LsnError,
    flushed_end,
    parse_lsn,
    unreadable,
)
from antipode_shims.postgresql._promises import check_name, recording, sweeping
from antipode_shims.postgresql._statements import Meanings

from .covered import Unflushed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from antipode import Promise
    from antipode.shim import Endpoint, OnRead, ReadsFrom
    from antipode_shims.postgresql._endpoint import Line
    from antipode_shims.postgresql._look import Asking, T
    from antipode_shims.postgresql._position import State

#: Seconds that a step of a sweep may take.
_SWEEP_S = 0.5
_MOST_SERVERS = 64
#: By as many of its `wal_writer_delay` a server flushes what was committed without waiting for it.
_FLUSHES = 3
#: Seconds between two questions whether it has.
_PAUSE_S = 0.01


class BasePostgreSQLShim(ServerShim):
    """One PostgreSQL server as this process sees it; the base of every API.

    Attributes:
        settings: how to connect to the server.
        promise_table: where the records of promises are.
        readonly_functions: the functions of the application's that write nothing.
        meanings: what statements may do, where these write nothing.
        catalogue: by what a statement that only reads may write.
        own_logs: keys of the logs to which its clients were seen to write.
        pooled: why the server that is read need not be the one that is asked; empty as long as
            each connection leads to one, or the application states it.
        promises: whether its endpoints ask for promises.
        notices: whether the server may be asked by notices; None where that is not known.
        sees_locks: whether the server says what a transaction holds locks on; None where that is
            not known.
    """

    promises = True
    system = "postgresql"

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
        self._stated = one_server is True or reads_from == "primary"
        one_server = settings.one_server if one_server is None else one_server
        self.promise_table = check_name(promise_table)  # Before the server is claimed.
        self.readonly_functions = declared(readonly_functions)
        self.meanings = Meanings(self.readonly_functions)
        self.catalogue = Catalogue(self.readonly_functions)
        super().__init__(
            datastore,
            server=settings.where if one_server else None,
            reads_from=reads_from,
            on_read=on_read,
        )
        self.settings = settings
        self.abandons = reads_from == "primary"
        self.own_logs = own_logs(datastore, settings.where)
        self.pooled = ""
        self.notices: bool | None = None
        self.sees_locks: bool | None = None
        self._logs: dict[str, Log] = {}
        self._flush_seen: dict[str, int] = {}
        self._rights: str | None = None
        self._elsewhere: Elsewhere | None = None
        self._elsewhere_s, self._elsewhere_changes = 0.0, 0

    @property
    def server_name(self) -> ServerName | None:
        """The address of its client."""
        return ServerName.of(self.system, self.settings.where)

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Connect to the client's server with a connection of the library's own.

        Raises:
            Unreachable: not now.
        """
        return PostgreSQLEndpoint(
            self.datastore,
            self.settings,
            timeout_s=timeout_s,
            promised_in=self.promise_table,
            require=self.require,
        )

    def reached(self, state: State, backend: int) -> None:
        """Note which server a connection led to.

        A pooler that speaks the protocol accepts connections itself, and numbers them itself. One
        that is seen is there for all connections of the client.

        Args:
            state: of the server that answered.
            backend: the number of the connection's process, as its handshake had it.
        """
        if not self._stated and state.backend != backend:
            self.pooled = (
                f"a pooler accepted this connection (as process {backend}; process {state.backend} "
                "answers), so that the server that is read need not be the one that is asked: "
                "where its address leads to one server, state that by one_server=True"
            )

    def require(self, state: State, backend: int) -> None:
        """Refuse a connection on which nobody can wait for reads; as :meth:`reached` takes it.

        Raises:
            ConfigurationError: another server may be read.
        """
        self.reached(state, backend)
        if self.pooled:
            raise ConfigurationError(f"reads of {self.datastore!r} cannot wait: {self.pooled}")

    def log_start(self, key: str) -> WriteId | None:
        """The first position of a timeline: system identifiers are unique."""
        log = Log.of(key)
        return None if log is None else WriteId(self.datastore, log.key, log.fork)

    def fence(self, *, timeout_s: float) -> frozenset[WriteId]:
        """The primary's position of now, on a connection of its own: all commits are before it.

        One that did not wait for its flush may have been seen, and be behind what is flushed: the
        server flushes it within three of its ``wal_writer_delay``, and that is waited for.

        Raises:
            Unreachable: it does not answer, takes no writes by now, or flushes too late.
        """
        line = self.settings.connect(timeout_s=timeout_s)
        try:
            state = converse(self.look(), line.ask)
            if state.recovering:
                raise Unreachable(f"the primary of {self.datastore!r} takes no writes now")
            if state.log is None:
                raise Unreachable(unreadable(state))
            position = self._flushed_all(line)
        finally:
            line.close()
        demanded = following(self.datastore, state.log.key)
        return frozenset([self.write_of(state.log, position, exact=False), demanded])

    def _flushed_all(self, line: Line) -> int:
        """A flush position that is after every commit of before.

        Raises:
            Unreachable: the connection failed, or there is none within its deadline.
        """
        row = line.ask(SAMPLE)[0]
        until = flushed_end(parse_lsn(row["inserted"]))
        if (flushed := parse_lsn(row["flushed"])) >= until:
            return flushed
        delay_s = int(line.ask(WRITER_DELAY)[0]["ms"] or 0) / 1000
        end_s = time.monotonic() + _FLUSHES * delay_s
        while flushed < until and time.monotonic() < end_s:  # Else it is of open transactions.
            if time.monotonic() + _PAUSE_S > line.deadline_s:
                raise Unreachable(f"the primary of {self.datastore!r} has not flushed its log yet")
            time.sleep(_PAUSE_S)
            flushed = parse_lsn(line.ask(SAMPLE)[0]["flushed"])
        return flushed

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Record that *promise* is abandoned, on a connection of its own.

        Returns:
            Whether it is abandoned; False where it was fulfilled before.

        Raises:
            Unreachable: the primary does not answer in time, or takes no writes now.
            ConfigurationError: the table is missing, or this user may not write to it.
        """
        line = self.settings.connect(timeout_s=timeout_s)
        try:
            line.deadline_s += timeout_s
            sql = recording(self.promise_table, promise, fulfilled=False)
            return abandon(line, self.datastore, self.promise_table, sql)
        finally:
            line.close()

    def sweep_promises(self) -> None:
        """Delete a batch of records of promises whose time is over; what fails is left."""
        try:
            line = self.settings.connect(timeout_s=_SWEEP_S)
            try:
                line.ask(sweeping(self.promise_table))
            finally:
                line.close()
        except Exception as error:  # noqa: BLE001 - the promise is kept all the same
            logger.debug("old promises of %r are not swept: %s", self.datastore, error)

    def flush_seen(self, started: str) -> int:
        """The largest flush position that the process was seen to have that *started* then."""
        return self._flush_seen.get(started, 0)

    def flushed(self, started: str, until: int, *, timeout_s: float, pause_s: float | None) -> int:
        """The flush position of the process that *started* then, once it has passed *until*.

        Args:
            started: when the process started.
            until: a position of its log.
            timeout_s: after which it is returned as it is then.
            pause_s: between two questions; None for one question alone.

        Raises:
            Unreachable: it does not answer, or another one does.
            Refused: it refuses this user.
            LsnError: it is no primary.
        """
        end_s = time.monotonic() + timeout_s
        line = self.settings.connect(timeout_s=timeout_s)
        try:
            while True:
                row = line.ask(SAMPLE)[0]
                if row["started"] != started:
                    raise Unreachable("another server answers, or it was restarted")
                flushed = self._saw_flush(row)
                if flushed >= until or pause_s is None or time.monotonic() + pause_s > end_s:
                    return flushed
                time.sleep(pause_s)
        finally:
            line.close()

    def _saw_flush(self, row: Mapping[str, str | None]) -> int:
        """The flush position in the answer to `SAMPLE`, which is remembered."""
        started, flushed = row["started"] or "", parse_lsn(row["flushed"])
        seen = self._flush_seen
        if started not in seen and len(seen) >= _MOST_SERVERS:
            seen.clear()
        seen[started] = max(flushed, seen.get(started, 0))
        return flushed

    def outside(self, steps: Asking[T], *, timeout_s: float) -> T:
        """Hold a conversation on a connection that is made for it.

        Raises:
            Unreachable: it cannot be made, or the time is up.
            Refused: the server refuses this user.
        """
        line = self.settings.connect(timeout_s=timeout_s)
        try:
            return converse(steps, line.ask)
        finally:
            line.close()

    def look(self) -> Asking[State]:
        """Poll the server of a connection once.

        Raises:
            Refused: it does not let this user poll.
            LsnError: its answer shows no position.
        """
        try:
            state, self._rights = yield from look(self._rights)
        except Refused:
            self._rights = None
            raise
        return state

    @property
    def writes_away(self) -> bool | None:
        """Whether functions may write by dblink; None where it is not known."""
        return None if self._elsewhere is None else self._elsewhere.by_functions

    def ask_elsewhere(self, *, anew: bool = False) -> Asking[Elsewhere]:
        """What is written elsewhere, without an id; remembered for a minute unless *anew*.

        Raises:
            Refused: this user may not see it.
        """
        asked_s, changes = time.monotonic(), self.catalogue.changes
        known = self._elsewhere
        is_old = asked_s - self._elsewhere_s > FRESH_S or changes != self._elsewhere_changes
        if known is None or is_old or anew:
            known = self._elsewhere = elsewhere_of((yield ELSEWHERE))
            self._elsewhere_s, self._elsewhere_changes = asked_s, changes
        return known

    def sampled(self, row: Mapping[str, str | None], *, exact: bool, flushed: bool) -> Asking[None]:
        """Record a write, from the answer to `SAMPLE` on its connection after its commit.

        Args:
            row: the answer.
            exact: whether there was a write; else a position that covers it if there was.
            flushed: whether its commit waited until it was flushed.

        Raises:
            Refused: the server does not let this user poll.
            LsnError: it has no position.
        """
        found = yield from self.found(row, exact=exact, flushed=flushed)
        if isinstance(found, Unflushed):
            self.defer(found)
        else:
            record_write(found)

    def found(
        self, row: Mapping[str, str | None], *, exact: bool, flushed: bool
    ) -> Asking[Unflushed | WriteId]:
        """What :meth:`sampled` records, which takes the same."""
        started = row["started"] or ""
        if row["flushed"] is None:
            raise LsnError("a server that takes no writes answered after its commit")
        log = self._logs.get(started)
        if log is None:
            log = yield from self._learn(started)
        self.own_logs.add(log.key)
        position = self._saw_flush(row)
        until = flushed_end(parse_lsn(row["inserted"]))
        if flushed or position >= until:
            return self.write_of(log, position, exact=exact)
        return Unflushed(self, log, until, started, exact=exact)

    def _learn(self, started: str) -> Asking[Log]:
        """The log of the process that *started* then, asked once for all of its connections."""
        state = yield from self.look()
        if state.started != started or state.recovering:
            raise LsnError("another server answered than the one that committed it")
        if state.log is None:
            raise LsnError(unreadable(state))
        if len(self._logs) >= _MOST_SERVERS:
            self._logs.clear()
        self._logs[started] = state.log
        return state.log

    def covering(self, state: State | None, backend: int) -> Lineage:
        """What a read may have seen, from what its server showed after it; None for nothing.

        Args:
            state: of the server.
            backend: as :meth:`reached` takes it.
        """
        if state is not None:
            self.reached(state, backend)
        if self.pooled or state is None or (covers := state.covers) is None:
            count("unsampled_read", self.datastore)
            return Lineage(incomplete=[(self.datastore, "unsampled")])
        return Lineage([self.write_of(*covers, exact=False)])

    def defer(self, sample: Callable[[], Lineage]) -> None:
        """Let the current scope ask *sample* when its lineage is used."""
        if scope_in() is None:
            unscoped("write", self.datastore)
        defer_read(sample)

    def write_of(self, log: Log, position: int, *, exact: bool) -> WriteId:
        """The entry of *position* in *log*."""
        hour = self.clock.hour()
        return WriteId(self.datastore, log.key, position, written_hour=hour, covering=not exact)

    def unsampled(self, cause: str) -> None:
        """Note that a write was committed and has no position."""
        mark_incomplete(self.datastore, "unsampled")
        self.say_unsampled(cause)

    def say_unsampled(self, cause: str) -> None:
        """Log why a write has no position."""
        log_once(
            "postgresql_unsampled",
            self.datastore,
            cause[:40],
            "a write to %r has no position: %s",
            self.datastore,
            cause,
        )

    def in_doubt(self, why: str) -> None:
        """Note that a write may have been committed, and that nobody will ever know where."""
        mark_incomplete(self.datastore, "in_doubt")
        log_once(
            "postgresql_in_doubt",
            self.datastore,
            why,
            "a write to %r cannot be waited for, and its lineage is incomplete (in_doubt): %s",
            self.datastore,
            why,
        )
