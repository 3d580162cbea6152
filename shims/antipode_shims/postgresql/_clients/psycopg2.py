"""psycopg2 connections: positions after commits, reads that wait for minimum positions.

Its connections are objects of C, whose class is chosen when they are made: ``connection_factory=``.
A commit goes out with its questions in one packet; a transaction without writes is chained to it,
which the client then ends as if it were the one that it began. Import only where psycopg2 is.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2 import extensions, sql

from antipode import ConfigurationError
from antipode.shim import drive
from antipode_shims._sql.texts import text_of
from antipode_shims.postgresql._endpoint import backend
from antipode_shims.postgresql._look import BEFORE, SAMPLE, Refused
from antipode_shims.postgresql._statements import COMMITS, COMMITS_INSIDE, READS

from .holding import Call, Late, SyncHolding, clients_own
from .psycopg2_lobject import opened
from .tap import Commit, Session, commit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_shims.postgresql._look import Backend
    from antipode_shims.postgresql._position import Rows

    from .tap import Tap

_SESSIONS = {
    extensions.TRANSACTION_STATUS_IDLE: Session.IDLE,
    extensions.TRANSACTION_STATUS_INTRANS: Session.OPEN,
    extensions.TRANSACTION_STATUS_INERROR: Session.FAILED,
    extensions.TRANSACTION_STATUS_ACTIVE: Session.BUSY,
    extensions.TRANSACTION_STATUS_UNKNOWN: Session.LOST,
}
#: What the client raises of arguments, before it sends anything.
_UNSENT = (psycopg2.Error, TypeError, ValueError, LookupError, AttributeError)
_BEFORE = "antipode.before"
#: In one packet: whether the transaction wrote, its commit, the position of that; by what asks it.
#: Of several statements the client shows the last one's rows alone.
_COMMITTING = {
    before: (
        f"SELECT set_config('{_BEFORE}', concat_ws(' ', coalesce(q.xid::text, '-'), q.synchronous),"
        f" false) FROM ({before}) AS q; COMMIT AND CHAIN;"
        f" SELECT q.*, current_setting('{_BEFORE}') AS before FROM ({SAMPLE}) AS q"
    )
    for before in BEFORE
}


class NativeConnection(SyncHolding):
    """Mixed into the class of connections that can be instrumented; plain without a tap."""

    if TYPE_CHECKING:
        async_: int
        autocommit: bool
        closed: int
        notices: Any
        status: int

    _antipode: Tap | None = None
    #: Whether it is in its own `with` block, where it opens transactions under autocommit, too.
    _antipode_entered = False
    #: Whether the transaction that is open was begun for a question there, and has nothing in it.
    _antipode_empty = False
    #: Whether a transaction of two phases has begun, which is not committed in the usual way.
    _antipode_two_phases = False

    def __init__(self, *args: Any, **options: Any) -> None:
        """Connect."""
        super().__init__(*args, **options)
        self._antipode_lock = threading.RLock()

    def _antipode_forget(self) -> None:
        """Be the client's own again."""
        self._antipode = None

    def __enter__(self) -> Any:
        """Begin a block that ends with a commit or a rollback."""
        plain: Any = super()
        plain.__enter__()
        self._antipode_entered = True
        return self

    def __exit__(self, *error: object) -> Any:
        """End it."""
        plain: Any = super()
        self._antipode_entered = False  # As the client has it, before it commits.
        return plain.__exit__(*error)

    def commit(self) -> None:
        """Commit, and ask, in one packet."""
        plain: Any = super()
        if self.status == extensions.STATUS_READY:
            plain.commit()  # It sends nothing, though a BEGIN of the application's may be open.
            return
        together = (
            self._antipode is not None
            and not self._antipode.own
            and not self._antipode_two_phases
            and self._antipode_session() is Session.OPEN
            and not self._antipode_standby()
            and not self._antipode.only_read
        )
        self._antipode_call(
            "COMMIT", self._antipode_commit if together else plain.commit, commits=True
        )

    def _antipode_commit(self) -> None:
        plain: Any = super()
        tap: Any = self._antipode
        try:
            row = self._antipode_rows(_COMMITTING[tap.before_commit])[0]
        except BaseException:
            # The server has; the client shall know, and nobody hear that there is no transaction.
            heard, self.notices = self.notices, []
            with contextlib.suppress(psycopg2.Error):
                plain.rollback()
            self.notices = heard
            raise
        xid, synchronous = (row["before"] or "- on").split(" ")
        before = commit_of([{"xid": None if xid == "-" else xid, "synchronous": synchronous}])
        tap.commit = Commit(before.wrote, before.flushed, row)
        with contextlib.suppress(psycopg2.Error):  # The next call says that the connection is lost.
            plain.commit()

    def rollback(self) -> None:
        """Roll back."""
        plain: Any = super()
        if self.status == extensions.STATUS_READY:
            plain.rollback()  # As above.
            return
        self._antipode_call("ROLLBACK", plain.rollback)

    def reset(self) -> None:
        """Roll back, and forget the session's settings."""
        plain: Any = super()
        self._antipode_call("ROLLBACK", plain.reset)
        self._antipode_two_phases = False

    def set_isolation_level(self, level: Any) -> None:
        """Roll back, and change the isolation of transactions."""
        plain: Any = super()
        self._antipode_call("ROLLBACK", lambda: plain.set_isolation_level(level))

    def tpc_begin(self, xid: Any) -> None:
        """Begin a transaction of two phases."""
        plain: Any = super()
        self._antipode_call("BEGIN", lambda: plain.tpc_begin(xid))
        self._antipode_two_phases = True

    def tpc_prepare(self) -> None:
        """Prepare the transaction, for anybody to commit."""
        plain: Any = super()
        self._antipode_call("PREPARE TRANSACTION ''", plain.tpc_prepare)

    def tpc_commit(self, *xid: Any) -> None:
        """Commit what is prepared, or what is open."""
        plain: Any = super()
        text = "COMMIT" if self._antipode_session() is Session.OPEN else "COMMIT PREPARED ''"
        self._antipode_call(text, lambda: plain.tpc_commit(*xid))
        self._antipode_two_phases = False

    def tpc_rollback(self, *xid: Any) -> None:
        """Roll back what is prepared, or what is open."""
        plain: Any = super()
        self._antipode_call("ROLLBACK", lambda: plain.tpc_rollback(*xid))
        self._antipode_two_phases = False

    def close(self) -> None:
        """Close; the session is over."""
        plain: Any = super()
        plain.close()
        if self._antipode is not None:
            self._antipode.closed()

    def _antipode_call(
        self,
        text: str | None,
        send: Callable[[], Any],
        *,
        cursor: Any = None,
        reads_by: str = "",
        commits: bool = False,
    ) -> Any:
        """Hold a call back before, record what it committed after; threads may share it."""
        if self._antipode is None:
            return send()
        with self._antipode_lock:
            opens = bool(cursor is not None or reads_by) and self._antipode_opens()
            call = Call(text, cursor, opens=opens, reads_by=reads_by)
            return self._antipode_observed(call, send, commits=commits)

    def _antipode_observed(self, call: Call, send: Callable[[], Any], *, commits: bool) -> Any:
        tap = self._antipode
        if tap is None or tap.own:
            return send()
        before = tap.pending
        try:
            if (steps := self._antipode_hold(call)) is not None:
                drive(steps, self)
            if not commits and tap.pending & COMMITS and tap.commits_open(self._antipode_session()):
                tap.commit = commit_of(self._antipode_ask(tap.before_commit))
        except Refused as refused:
            self._antipode_unsent(before)
            raise clients_own(refused) from None
        except BaseException:
            self._antipode_unsent(before)
            raise
        self._antipode_empty = False
        try:
            found = send()
        except BaseException as error:
            self._antipode_settle(self._antipode_left(error, call.cursor), psycopg2.Error)
            raise
        self._antipode_settle(self._antipode_left(None, call.cursor), psycopg2.Error)
        return found

    def _antipode_repeated(self) -> None:
        """One of many executions failed: outside of transactions, those before have committed."""
        tap = self._antipode
        if tap is not None and self._antipode_session() is Session.IDLE:
            tap.pending |= COMMITS_INSIDE

    def _antipode_left(self, error: BaseException | None, cursor: Any) -> Any:
        """What is left to ask now that a call is over; None for nothing."""
        tap: Any = self._antipode
        session = self._antipode_session()
        tap.ended(error)
        if session is Session.LOST or (error is not None and not isinstance(error, _UNSENT)):
            tap.lost()  # Also of a call that was given up: it may be over there.
            return None
        if not tap.pending:
            return None
        tag = ""
        if cursor is not None and error is None and tap.pending != READS:
            tag = cursor.statusmessage or ""
        standby = self._antipode_standby()
        return tap.settled(session, failed=error is not None, tag=tag, standby=standby)

    def _antipode_session(self) -> Session:
        if self.closed:
            return Session.LOST
        if self._antipode_empty:
            return Session.IDLE
        plain: Any = self
        return _SESSIONS.get(plain.get_transaction_status(), Session.LOST)

    def _antipode_opens(self) -> bool:
        """Whether a statement opens a transaction where none is."""
        return self._antipode_entered or not self.autocommit

    def _antipode_backend(self) -> Backend:
        """The connection's process at its server."""
        plain: Any = self
        return backend(plain.get_backend_pid(), plain.fileno())

    def _antipode_standby(self) -> bool:
        """Whether the server says, from PostgreSQL 14 on, that it takes no writes."""
        plain: Any = self
        return bool(plain.get_parameter_status("in_hot_standby") == "on")

    def _antipode_end(self) -> None:
        """Close the connection."""
        self.close()

    def _antipode_ask(self, text: str) -> Rows:
        """Send a question of the library's own, and receive its rows.

        Raises:
            Refused: the server answered with an error.
            Late: the time that a floor leaves is up.
            psycopg2.Error: the connection is lost.
        """
        tap: Any = self._antipode
        # Outside of a transaction it opens none: that is this client's word alone. In its block the
        # client begins one, whatever is set: it is left as if nothing had been asked in it.
        none = self.status == extensions.STATUS_READY
        empties = self._antipode_empty or (none and self._antipode_entered)
        opens = none and not empties and not self.autocommit
        tap.own = True
        try:
            if opens:
                self.autocommit = True
            return self._antipode_in_time(text, tap.until_s)
        finally:
            try:
                if opens and not self.closed:
                    self.autocommit = False
                if empties and not self.closed:
                    self._antipode_empty = True
                    self._antipode_in_time("ROLLBACK AND CHAIN", tap.until_s)
            finally:
                tap.own = False

    def _antipode_in_time(self, text: str, until_s: float | None) -> Rows:
        late = threading.Event()
        timer = None
        if until_s is not None:
            left_s = max(until_s - time.monotonic(), 0.0)
            timer = threading.Timer(left_s, self._antipode_shut, [late])
            timer.daemon = True
            timer.start()
        try:
            return self._antipode_rows(text)
        except psycopg2.Error as error:
            if late.is_set():
                raise Late("the server does not answer in time") from error
            if self.closed or not error.pgcode:
                raise
            raise Refused(str(error).strip(), error.pgcode) from error
        finally:
            if timer is not None:
                timer.cancel()

    def _antipode_shut(self, late: threading.Event) -> None:
        """Let a question in another thread fail at once."""
        plain: Any = self
        late.set()
        with (
            contextlib.suppress(OSError, psycopg2.Error),
            socket.socket(fileno=os.dup(plain.fileno())) as sock,
        ):
            sock.shutdown(socket.SHUT_RDWR)

    def _antipode_rows(self, text: str) -> Rows:
        plain: Any = self
        with extensions.cursor(plain) as cursor:
            cursor.execute(text)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall() if names else []
            return [dict(zip(names, map(_text, row), strict=True)) for row in rows]


class NativeCursor:
    """Mixed into the class of a cursor."""

    if TYPE_CHECKING:
        connection: Any
        name: Any
        withhold: Any

    def execute(self, query: Any, vars: Any = None) -> Any:  # noqa: A002 - the client's name
        """Execute one or more statements."""
        plain: Any = super()
        return self._antipode_call(self._antipode_text(query), lambda: plain.execute(query, vars))

    def executemany(self, query: Any, vars_list: Any) -> Any:
        """Execute a statement once for each of many rows."""
        plain: Any = super()

        def send() -> Any:
            try:
                return plain.executemany(query, vars_list)
            except BaseException:
                self.connection._antipode_repeated()  # noqa: SLF001 - its lock is held
                raise

        return self._antipode_call(self._antipode_text(query), send)

    def callproc(self, procname: Any, *parameters: Any) -> Any:
        """Call a function."""
        plain: Any = super()
        text = f"SELECT * FROM {procname}()"
        return self._antipode_call(text, lambda: plain.callproc(procname, *parameters))

    def copy_from(self, file: Any, table: Any, *args: Any, **options: Any) -> Any:
        """Copy rows in."""
        plain: Any = super()
        return self._antipode_call(
            "COPY t FROM STDIN", lambda: plain.copy_from(file, table, *args, **options)
        )

    def copy_to(self, file: Any, table: Any, *args: Any, **options: Any) -> Any:
        """Copy rows out."""
        plain: Any = super()
        return self._antipode_call(
            "COPY t TO STDOUT", lambda: plain.copy_to(file, table, *args, **options)
        )

    def copy_expert(self, sql: Any, file: Any, *args: Any, **options: Any) -> Any:
        """Copy rows by a statement of the application's."""
        plain: Any = super()
        text = self._antipode_text(sql)
        return self._antipode_call(text, lambda: plain.copy_expert(sql, file, *args, **options))

    def _antipode_call(self, text: str | None, send: Callable[[], Any]) -> Any:
        return self.connection._antipode_call(  # noqa: SLF001
            text, send, cursor=self, reads_by=self.name or ""
        )

    def _antipode_text(self, query: Any) -> str | None:
        plain: Any = self
        try:
            if isinstance(query, bytes):
                return text_of(query)
            text = query.as_string(plain) if isinstance(query, sql.Composable) else query
        except Exception:  # noqa: BLE001 - the client raises it when it sends the statement
            return None
        return text if isinstance(text, str) else None


class NamedCursor(NativeCursor):
    """Of one that the server has; each batch of rows is asked for."""

    def _antipode_text(self, query: Any) -> str | None:
        text = super()._antipode_text(query)
        held = " WITH HOLD" if self.withhold else ""
        return None if text is None else f"DECLARE c CURSOR{held} FOR {text}"

    def fetchone(self) -> Any:
        """Fetch a row."""
        plain: Any = super()
        return self._antipode_call("FETCH c", plain.fetchone)

    def fetchmany(self, *size: Any, **options: Any) -> Any:
        """Fetch some rows."""
        plain: Any = super()
        return self._antipode_call("FETCH c", lambda: plain.fetchmany(*size, **options))

    def fetchall(self) -> Any:
        """Fetch all rows that are left."""
        plain: Any = super()
        return self._antipode_call("FETCH c", plain.fetchall)

    def scroll(self, *value: Any, **options: Any) -> Any:
        """Go to another row."""
        plain: Any = super()
        return self._antipode_call("FETCH c", lambda: plain.scroll(*value, **options))

    def __next__(self) -> Any:
        plain: Any = super()
        return self._antipode_call("FETCH c", plain.__next__)

    def close(self) -> None:
        """Close it, at the server too."""
        plain: Any = super()
        plain.close()
        if self.connection._antipode is not None:  # noqa: SLF001
            self.connection._antipode.cursors.close(self.name)  # noqa: SLF001


class Observed(extensions.connection):  # type: ignore[misc] # psycopg2 has no annotations
    """Below the class of the application's connections, which may choose that of cursors."""

    def cursor(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, name: Any = None, cursor_factory: Any = None, *more: Any, **options: Any
    ) -> Any:
        """A cursor of the class that is asked for, whose calls are observed."""
        factory = cursor_factory or self.cursor_factory or extensions.cursor
        mixin = NativeCursor if name is None else NamedCursor
        return super().cursor(name, _cursors(factory, mixin), *more, **options)

    def lobject(
        self,
        oid: int = 0,
        mode: str | None = None,
        new_oid: int = 0,
        new_file: Any = None,
        lobject_factory: Any = None,
    ) -> Any:
        """A large object, whose calls are observed."""
        plain: Any = super()
        options = (oid, mode, new_oid, new_file)
        return opened(self, options, lambda made: plain.lobject(*options, made), lobject_factory)


@lru_cache(maxsize=64)
def connections(base: type) -> type:
    """A class of connections that can be instrumented, of *base*."""
    if issubclass(base, NativeConnection):
        return base
    bases = () if base is extensions.connection else (base,)
    names = {"__module__": base.__module__}
    return type(base.__name__, (NativeConnection, *bases, Observed), names)


@lru_cache(maxsize=64)
def _cursors(base: Any, mixin: type) -> Any:
    """A class of cursors whose calls are observed, of *base*.

    Raises:
        ConfigurationError: it is no class.
    """
    if not isinstance(base, type):
        msg = "cursor_factory has to be a class on an instrumented connection"
        raise ConfigurationError(msg)
    return type(base.__name__, (mixin, base), {"__module__": base.__module__})


def plain_connections() -> type:
    """The client's own class of connections."""
    found: type = extensions.connection
    return found


def _text(value: Any) -> str | None:
    """A value as libpq shows it."""
    if isinstance(value, bool):
        return "t" if value else "f"
    return None if value is None else str(value)
