"""The library's own connections to the server where a process reads: one polls, one blocks."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from antipode.shim import Endpoint, Observation, Unreachable, Wake, log_once
from antipode_shims.mysql._look import FRESH_S, Shown, look, wait_sql
from antipode_shims.mysql._position.flavor import (
    Ask,
    Flavor,
    Refused,
    converse,
    detect,
    filters_in,
    is_server,
    text,
)
from antipode_shims.mysql._position.states import State, covers, is_on, sources_sql
from antipode_shims.mysql._promises.records import COMMITTED, records

from .caveat import caveat
from .settings import errno_of, execute, link_errors, pymysql_module, refused, socket_of
from .upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode import Promise, WriteId
    from antipode_shims.mysql._position.flavor import Facts, Rows

    from .settings import ServerSettings

#: Seconds that ending a wait on the server may take.
_KILL_S = 0.5
#: Seconds after which it is reported again.
_KILL_AGAIN_S = 0.05
#: Seconds that making the connection for waits may take, and for which it is not tried again.
_WAITER_S, _ALONE_S = 0.5, 1.0
#: What nobody can know of a MariaDB server.
HAZARD = (
    "whether a server was rebuilt, or its binary log reset, under the server_id that it had cannot"
    " be told: positions of its former life would count as reached"
)
#: Whether the server takes no writes: replicas do not, and any user may ask.
_READ_ONLY = "SELECT @@GLOBAL.read_only AS read_only"
#: Seconds to the next poll meanwhile.
_PACE_S = 0.01


class MySQLEndpoint(Endpoint):
    """Polls on one connection; a second one blocks on the server while something is missing.

    The server ends the wait when the smallest missing position is there
    (``WAIT_FOR_EXECUTED_GTID_SET``, ``MASTER_GTID_WAIT``), or after a second: what waiting
    cannot push, such as a fail-over, is polled then.

    Attributes:
        facts: about the server that answers.
        accepted: the connection's number in its handshake.
    """

    def __init__(
        self, datastore: str, settings: ServerSettings, *, timeout_s: float, promised_in: str = ""
    ) -> None:
        """Connect within *timeout_s*, and find out what the server is.

        Args:
            datastore: its logical name.
            settings: how to connect.
            timeout_s: the longest that may take, in seconds.
            promised_in: the table of promises, with its schema.

        Raises:
            Unreachable: not now.
            ConfigurationError: it has no positions; says what to change.
            pymysql.Error: it refuses this user.
        """
        self._datastore = datastore
        self._settings = settings
        self._promised_in = promised_in
        self._committed = False
        self._upstream = Upstream()
        self._deadline_s = time.monotonic() + timeout_s
        self._looker = settings.connect(timeout_s=timeout_s)
        self._waiter: Waiter | None = None
        self._state: State | None = None
        self._shown: Shown | None = None
        self._epoch = 0
        self._looked_s = self._promised_s = 0.0
        self._alone_until_s = 0.0
        try:
            self.facts = converse(detect(), self._answer)
            self.accepted: int = self._looker.thread_id()
            self.facts.require(datastore)
            self.hazard = HAZARD if self.facts.flavor is Flavor.MARIADB else ""
            self._caveat = caveat(datastore, settings.where, self._filters())
        except BaseException:
            self.close()
            raise

    def _filters(self) -> tuple[str, ...]:
        """What replication leaves out here; MySQL says so to whoever may ask for its state."""
        try:
            rows = self._answer(Ask(sources_sql(self.facts)))
        except Refused:
            return self.facts.filters
        return tuple(dict.fromkeys(one for row in rows for one in filters_in(row)))

    @property
    def pinned(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether what was seen still holds: the connection to that process lives, for seconds.

        Asks the operating system, not the server: no round trip.
        """
        if time.monotonic() - min(self._looked_s or inf, self._promised_s or inf) > FRESH_S:
            return False
        sock = socket_of(self._looker)
        try:
            return sock is not None and not _readable(0.0, sock)
        except (ValueError, OSError):
            return False  # Whoever polls has closed it at this very moment.

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once: one round trip, and one more where something is missing.

        Raises:
            Unreachable: the connection failed, or the server is starting or stopping.
            Refused: the server does not let this user poll.
        """
        self._looked_s = time.monotonic()
        self._deadline_s = self._looked_s + timeout_s
        shown = converse(look(self.facts, writes, server=self._server), self._answer)
        shown = replace(shown, observation=replace(shown.observation, caveat=self._caveat))
        if self._state is not None and not covers(shown.state, self._state):
            # Positions were reset under the connection: what was known does not count any more.
            self._epoch += 1
            renamed = replace(shown.observation, server=self._server)
            shown = Shown(shown.state, renamed, shown.targets)
        self._state, self._shown = shown.state, shown
        # The connection to block on is made by who pauses: a poll has no time for it.
        self.blocks = wait_sql(shown, 1.0) is not None and time.monotonic() > self._alone_until_s
        return shown.observation

    def follows(self, *, timeout_s: float) -> bool:
        """Whether the server has a source; of a user who may not ask: whether it takes no writes.

        Raises:
            Unreachable: as :meth:`observe`.
            Refused: as :meth:`observe`.
        """
        self._deadline_s = time.monotonic() + timeout_s
        try:
            return bool(self._answer(Ask(sources_sql(self.facts))))
        except Refused as error:
            if error.passing:
                raise
            return is_on(self._answer(Ask(_READ_ONLY))[0]["read_only"])

    @property
    def _server(self) -> str:
        return self.facts.server if not self._epoch else f"{self.facts.server}#{self._epoch}"

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*: one round trip; two at the first time.

        Raises:
            Unreachable: as :meth:`observe`.
            Refused: as :meth:`observe`.
            ConfigurationError: this user may not read the table.
        """
        self._promised_s = time.monotonic()
        self._deadline_s = self._promised_s + timeout_s
        self._shown, self.blocks = None, False  # The server cannot wait for a record.
        if not self._committed:
            self._answer(Ask(COMMITTED))
            self._committed = True
        steps = records(self._promised_in, promises, self.facts.flavor)
        found = converse(steps, self._answer)
        causes = found.causes(promises)
        return Observation(self._server, {}, promises=found.statuses, promise_causes=causes)

    def _answer(self, ask: Ask) -> Rows:
        left_s = self._deadline_s - time.monotonic()
        if ask.server is None:
            _set_timeout(self._looker, left_s)
            return execute(self._looker, ask.sql)
        return self._upstream.ask(self._settings, ask.server, ask.sql, left_s=left_s)

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Block on the server until *wake*, time, or the smallest missing position is there."""
        shown, sql = self._shown, None
        if shown is not None:
            sql = wait_sql(shown, timeout_s)
        if sql is None:
            wake.wait(timeout_s)
        elif (waiter := self._to_wait()) is None:
            wake.wait(min(timeout_s, _PACE_S))
        else:
            waiter.wait(sql, timeout_s, wake, self._kill)

    def _to_wait(self) -> Waiter | None:
        """The connection to block on, made when it is needed first; None where there is none."""
        if self._waiter is None and time.monotonic() > self._alone_until_s:
            try:
                self._waiter = Waiter(self._settings, self.facts, timeout_s=_WAITER_S)
            except Elsewhere:
                self._alone_until_s = time.monotonic() + _ALONE_S
                log_once(
                    "mysql_several_servers",
                    self._datastore,
                    self._settings.where,
                    "several servers answer at the address of %r: what is visible at one may not "
                    "be at the next, and none can be waited on. Register it with one_server=False "
                    "and use barrier(at='read')",
                    self._datastore,
                )
            except (Unreachable, Refused, pymysql_module().Error):
                # Too many connections, perhaps: polls are paced by time then.
                self._alone_until_s = time.monotonic() + _ALONE_S
        return self._waiter

    def _kill(self, session: int) -> None:
        """End a statement that blocks in *session*, by the other connection.

        The number is another client's on every server but one, so the statement names that one.
        """
        _set_timeout(self._looker, _KILL_S)
        with contextlib.suppress(Refused):  # It has ended already.
            execute(self._looker, f"KILL QUERY IF({is_server(self.facts)}, {session}, 0)")

    def rest(self) -> None:
        """End the wait on the server: nobody needs it any more."""
        self._shown = None
        if self._waiter is not None:
            self._waiter.stop(self._kill)

    def interrupt(self) -> None:
        """Shut the socket down: a poll in another thread then fails at once."""
        if (sock := socket_of(self._looker)) is not None:
            with contextlib.suppress(OSError):  # It is closed already.
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release both connections, and end what still waits on the server. Idempotent."""
        waiter, self._waiter = self._waiter, None
        try:
            if waiter is not None:
                with contextlib.suppress(Unreachable):  # The slice ends on its own.
                    waiter.stop(self._kill)
        finally:
            if waiter is not None:
                waiter.close()
            with contextlib.suppress(*link_errors()):
                self._looker.close()


class Elsewhere(Exception):  # noqa: N818 - an answer, like Unreachable
    """Another server answers on the connection that should block."""


class Waiter:
    """The connection that blocks. One statement at a time; it may outlast the call."""

    def __init__(self, settings: ServerSettings, facts: Facts, *, timeout_s: float) -> None:
        """Connect within *timeout_s* to the server of *facts*.

        Raises:
            Elsewhere: another server answers.
            Unreachable: not now.
            pymysql.Error: the server refuses this user another connection.
        """
        self._connection = settings.connect(timeout_s=timeout_s)
        self._asked = ""
        try:
            self._session = _session_of(self._connection, facts)
        except BaseException:
            self.close()
            raise

    def wait(self, sql: str, timeout_s: float, wake: Wake, kill: Any) -> None:
        """Block until the server answers *sql*, *wake*, or *timeout_s* seconds have passed.

        Raises:
            Unreachable: the connection failed.
        """
        sock = socket_of(self._connection)
        if sock is None:
            msg = "the connection that waits is closed"
            raise Unreachable(msg)
        if self._asked and _target(self._asked) != _target(sql):
            self.stop(kill)
        if not self._asked:
            self._send(sql)
        if sock in _readable(timeout_s, sock, wake):
            self._receive()

    def stop(self, kill: Any) -> None:
        """End what blocks on the server.

        Raises:
            Unreachable: a connection failed.
        """
        if not self._asked:
            return
        deadline_s, sock = time.monotonic() + _KILL_S, socket_of(self._connection)
        kill(self._session)
        # A statement that has not begun yet is ended by nothing.
        while sock is not None and not _readable(_KILL_AGAIN_S, sock):
            if time.monotonic() > deadline_s:
                break
            kill(self._session)
        self._receive()

    def _send(self, sql: str) -> None:
        try:
            self._connection._execute_command(3, sql)  # noqa: SLF001 - COM_QUERY; PyMySQL has no public way to send without reading
        except (*link_errors(), pymysql_module().Error) as error:
            raise Unreachable(str(error)) from error
        self._asked = sql

    def _receive(self) -> None:
        """Read the answer; that the statement was ended is one."""
        self._asked = ""
        _set_timeout(self._connection, _KILL_S)
        try:
            self._connection._read_query_result()  # noqa: SLF001 - as above
        except (*link_errors(), pymysql_module().Error) as error:
            if not refused(error) and errno_of(error) not in _ENDED:
                raise Unreachable(str(error)) from error

    def close(self) -> None:
        """Release the connection. Idempotent."""
        with contextlib.suppress(*link_errors(), pymysql_module().Error):
            self._connection.close()


def _session_of(connection: Any, facts: Facts) -> int:
    """The number by which the server of *facts* knows *connection*.

    Raises:
        Elsewhere: another server answers.
        Refused: the server refuses to say.
        Unreachable: the connection failed.
    """
    sql = f"SELECT {is_server(facts)} AS same, CONNECTION_ID() AS session"
    (row,) = execute(connection, sql)
    if text(row["same"]) != "1":
        raise Elsewhere
    return int(row["session"])


#: Errors of a statement that was ended: MySQL's and MariaDB's.
_ENDED = frozenset({1317, 1969, 3024})


def _target(sql: str) -> str:
    """The position that *sql* waits for, without the time that it may take."""
    return sql.partition("'")[2].partition("'")[0]


def _set_timeout(connection: Any, timeout_s: float) -> None:
    """For the statements that follow; PyMySQL reads these at each."""
    connection._read_timeout = connection._write_timeout = max(timeout_s, 0.001)  # noqa: SLF001


def _readable(timeout_s: float, *sources: Any) -> list[Any]:
    """Those of *sources* that have something to read, within *timeout_s* seconds."""
    poll = select.poll()
    by_number = {source.fileno(): source for source in sources}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(timeout_s * 1000)]
