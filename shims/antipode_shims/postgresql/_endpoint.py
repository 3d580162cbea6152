"""The library's own connections to the store. No other room opens one."""

from __future__ import annotations

import contextlib
import importlib
import select
import socket
import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Endpoint, Observation, Unreachable

from ._look import Backend, Refused, converse, look, observation, rights
from ._position import HAZARDS, LsnError
from ._promises import explained, records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from antipode import Promise, WriteId

    from ._look import Asking, T
    from ._position import Rows, State

#: How long what a poll showed is remembered, in seconds: a server that is rewound in place keeps
#: neither its connections nor its process, but a promotion keeps both.
FRESH_S = 2.0
#: Classes of errors that a later poll may not meet: of the connection, of resources, of a conflict
#: with replay, of a server that starts or stops.
_PASSING = ("08", "40", "53", "55", "57")
#: Arguments of a client's connections that a connection of the library's own adopts.
_KEPT = frozenset(
    """
    host hostaddr port user password passfile dbname service sslmode sslcert sslkey sslpassword
    sslrootcert sslcrl sslnegotiation channel_binding gssencmode krbsrvname target_session_attrs
    requirepeer require_auth
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_ALIASES = {"database": "dbname", "db": "dbname", "username": "user"}


def passing(code: str) -> bool:
    """Whether an error with this SQLSTATE is worth another try; none: the connection failed."""
    return code[:2] in _PASSING or not code


def psycopg_module() -> Any:
    """The client library that the library's own connections are made with.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        msg = (
            'the postgresql shim needs psycopg 3.2 or later: pip install "antipode-xcy[postgresql]"'
        )
        raise ConfigurationError(msg) from error


@dataclass(frozen=True)
class ServerSettings:
    """How to connect to the server of a client.

    Attributes:
        arguments: of libpq.
        one_server: whether every connection of the client goes to the same server, as far as it
            shows.
    """

    arguments: Mapping[str, Any]
    one_server: bool = True

    @classmethod
    def of(cls, arguments: Mapping[str, Any], *, one_server: bool = True) -> ServerSettings:
        """From a client's own arguments, of which those that say where and who are kept."""
        named = {_ALIASES.get(name, name): value for name, value in arguments.items()}
        kept = {name: str(named[name]) for name in named if name in _KEPT and named[name]}
        several = any("," in str(kept.get(name, "")) for name in ("host", "hostaddr", "port"))
        return cls(kept, one_server and not several)

    @property
    def where(self) -> tuple[object, ...]:
        """The address, to recognise two clients of one server."""
        host = self.arguments.get("hostaddr") or self.arguments.get("host") or "localhost"
        return host, self.arguments.get("port") or "5432", self.arguments.get("dbname", "")

    def connect(self, *, timeout_s: float) -> Line:
        """A connection of the library's own, made within *timeout_s* seconds.

        Raises:
            Unreachable: not now.
            Refused: the server refuses this user.
        """
        return Line(self.arguments, timeout_s=timeout_s)


class Line:
    """One connection of the library's own, over libpq: whatever it asks ends in time."""

    def __init__(self, arguments: Mapping[str, Any], *, timeout_s: float) -> None:
        """Connect; as :meth:`ServerSettings.connect`."""
        psycopg = psycopg_module()
        self._pq = psycopg.pq
        text = psycopg.conninfo.make_conninfo(
            **{**arguments, "application_name": "antipode", "options": ""}
        )
        self.deadline_s = time.monotonic() + timeout_s
        self._connection = self._pq.PGconn.connect_start(text.encode())
        try:
            self._finish_connecting()
            self._connection.nonblocking = 1
        except BaseException:
            self.close()
            raise

    def _finish_connecting(self) -> None:
        polling = self._pq.PollingStatus
        while (state := self._connection.connect_poll()) != polling.OK:
            if state == polling.FAILED:
                said = self._said(self._connection.error_message)
                if "FATAL" in said and not any(word in said for word in _STARTING):
                    raise Refused(said, "28000")
                raise Unreachable(said)
            self._ready(select.POLLIN if state == polling.READING else select.POLLOUT)

    def ask(self, sql: str) -> Rows:
        """The rows of *sql*, before :attr:`deadline_s`.

        Raises:
            Refused: the server answered with an error that stays.
            Unreachable: the connection failed, the error passes, or the time is up.
        """
        results: list[Any] = []
        try:
            self._connection.send_query(sql.encode())
            while self._connection.flush():
                self._ready(select.POLLOUT)
            while True:
                while self._connection.is_busy():
                    self._ready(select.POLLIN)
                    self._connection.consume_input()
                result = self._connection.get_result()
                if result is None:
                    break
                results.append(result)
        except psycopg_module().Error as error:
            raise Unreachable(self._said(str(error).encode())) from error
        return self._rows(results[-1]) if results else []

    def _rows(self, result: Any) -> Rows:
        if result.status == self._pq.ExecStatus.FATAL_ERROR:
            error = refusal(result, self._pq)
            if passing(error.code):
                raise Unreachable(str(error))
            raise error
        return rows_of(result)

    def _ready(self, events: int) -> None:
        """Wait until the socket is ready.

        Raises:
            Unreachable: the time is up; nothing more can be asked here.
        """
        poll = select.poll()
        try:
            poll.register(self._connection.socket, events)
            left_s = max(self.deadline_s - time.monotonic(), 0.0)
            found = poll.poll(left_s * 1000)
        except (OSError, ValueError, psycopg_module().Error) as error:
            raise Unreachable("the connection is closed") from error
        if not found:
            self.close()
            raise Unreachable("the server does not answer in time")

    def _said(self, message: bytes | str) -> str:
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        return " ".join(text.split()) or "the connection failed"

    @property
    def backend(self) -> int:
        """The number of its process, as the handshake had it."""
        return int(self._connection.backend_pid)

    @property
    def quiet(self) -> bool:
        """Whether it lives, and nothing came that was not asked for. Asks the system alone."""
        try:
            poll = select.poll()
            poll.register(self._connection.socket, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError, psycopg_module().Error):
            return False

    def shut(self) -> None:
        """Let a question in another thread fail at once."""
        with contextlib.suppress(OSError, ValueError, psycopg_module().Error):
            sock = socket.socket(fileno=self._connection.socket)
            try:
                sock.shutdown(socket.SHUT_RDWR)
            finally:
                sock.detach()

    def close(self) -> None:
        """Release it. Idempotent."""
        self._connection.finish()


#: What a server that starts, stops or is full says before it lets nobody in.
_STARTING = ("starting up", "shutting down", "recovery", "too many", "remaining connection")


def backend(pid: int, fileno: int) -> Backend:
    """The backend *pid* of a client's connection over the socket *fileno*."""
    sock = socket.socket(fileno=fileno)
    try:
        return backend_of(pid, sock.getsockname())
    except OSError:
        return Backend(pid)
    finally:
        sock.detach()


def backend_of(pid: int, address: Any) -> Backend:
    """The same, of the *address* of that socket: a text, and no host, in the Unix domain."""
    return Backend(pid, *address[:2]) if isinstance(address, tuple) else Backend(pid)


def refusal(result: Any, pq: Any) -> Refused:
    """The error that *result* has."""
    code = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    text = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return Refused(text.decode("utf-8", "replace"), code.decode())


def rows_of(result: Any) -> Rows:
    """The rows of a result of libpq's that has text for values."""
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    return [
        {
            name: None if (value := result.get_value(row, column)) is None else value.decode()
            for column, name in enumerate(names)
        }
        for row in range(result.ntuples)
    ]


class PostgreSQLEndpoint(Endpoint):
    """Polls one server on one connection: no release so far can wait for a position itself.

    Attributes:
        how: how this user may learn of timelines.
    """

    def __init__(
        self,
        datastore: str,
        settings: ServerSettings,
        *,
        timeout_s: float,
        promised_in: str = "",
        require: Callable[[State, int], None] = lambda _, __: None,
    ) -> None:
        """Connect within *timeout_s*, and find out what this user may ask.

        Args:
            datastore: its logical name.
            settings: how to connect.
            timeout_s: for how long to try.
            promised_in: the table of promises.
            require: is called with each state, and the number of the connection's process, and
                raises where another server may answer than clients read.

        Raises:
            Unreachable: not now.
            Refused: the server refuses this user.
        """
        self._datastore = datastore
        self._promised_in = promised_in
        self._require = require
        self._looked_s = inf
        self._server = ""
        self._line = settings.connect(timeout_s=timeout_s)
        try:
            self.how = self._answer(rights(), timeout_s)
        except BaseException:
            self.close()
            raise
        self.hazard = HAZARDS.get(self.how, "")

    @property
    def pinned(self) -> bool:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether what was seen still holds: for seconds, on a connection that lives.

        A promotion keeps it: what the new primary showed before, it still shows.
        """
        return time.monotonic() - self._looked_s <= FRESH_S and self._line.quiet

    def state(self, *, timeout_s: float) -> State:
        """What the server is now.

        Raises:
            Unreachable: the connection failed.
            Refused: the server does not let this user poll.
            ConfigurationError: it need not be the one that clients read.
        """
        state, self.how = self._answer(look(self.how), timeout_s)
        self._require(state, self._line.backend)
        return state

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once: one round trip.

        Raises:
            Unreachable: the connection failed, or the server is starting or stopping.
            Refused: the server does not let this user poll.
        """
        self._looked_s = time.monotonic()
        state = self.state(timeout_s=timeout_s)
        self._server = state.server
        return observation(state, writes)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*: one round trip.

        Raises:
            Unreachable: as :meth:`observe`.
            Refused: as :meth:`observe`.
            ConfigurationError: this user may not read the table.
        """
        self._looked_s = time.monotonic()
        server = self._server or self.state(timeout_s=timeout_s).server
        found = self._answer(records(self._promised_in, promises), timeout_s)
        causes = found.causes(promises)
        return Observation(server, {}, promises=found.statuses, promise_causes=causes)

    def follows(self, *, timeout_s: float) -> bool:
        """Whether the server replays another server's log.

        Raises:
            Unreachable: as :meth:`observe`.
        """
        return self.state(timeout_s=timeout_s).recovering

    def _answer(self, steps: Asking[T], timeout_s: float) -> T:
        self._line.deadline_s = time.monotonic() + timeout_s
        try:
            return converse(steps, self._line.ask)
        except LsnError as error:
            raise Refused(str(error)) from error

    def interrupt(self) -> None:
        """Shut the socket down: a poll in another thread then fails at once."""
        self._line.shut()

    def close(self) -> None:
        """Release the connection. Idempotent."""
        self._line.close()


def abandon(line: Line, datastore: str, table: str, sql: str) -> bool:
    """Record with *sql*, of `recording`, that a promise is abandoned; False if it was fulfilled.

    Raises:
        Unreachable: the server takes no writes now.
        ConfigurationError: the table is missing, or this user may not write to it.
    """
    try:
        rows = line.ask(sql)
    except Refused as error:
        better = explained(datastore, table, error.code, str(error))
        if better is not None:
            raise better from error
        raise Unreachable(str(error)) from error
    return rows[0]["fulfilled"] == "f"
