"""mysqlclient connections: positions asked for after each commit, reads that wait for floors.

mysqlclient reads packets in C and shows neither session state nor the server's flags, but whether
each statement commits on its own, as the packet says that it read last. Before a result's rows that
may be wrong (MariaDB's ``HELP`` says so within a transaction). What is open is known from the
statements, and a commit that wrote costs one round trip more.
Import only where mysqlclient is.
"""

from __future__ import annotations

import os
import re
import select
import socket
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode_shims.mysql._endpoint.settings import errno_of, refused
from antipode_shims.mysql._position.flavor import Refused
from antipode_shims.mysql._position.ok_packet import AUTOCOMMIT, IN_TRANSACTION, Ok
from antipode_shims.mysql._statements import (
    BEGINS,
    COMMITS,
    ENDS,
    MANY,
    OPAQUE,
    OPENS,
    READS,
    WRITES,
    closes,
)

from .read_wait import hold, left_s, limited
from .session import Due
from .tap import READS_OR_WRITES, SAMPLE, SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import Lineage
    from antipode_shims.mysql._position.flavor import Rows

    from .tap import Tap

_CLIENT_ERRORS = 2000
_UNPARSED = 1064
#: Where the server gave up to parse: what is left, cut to 80 characters.
_NEAR = re.compile(r" near '(.+)' at line 1$", re.DOTALL)
_GONE_BEFORE = 2006
#: What an OK packet has of warnings.
_WARNED = b"", b"\0\0\0\0\0\1\0"
_KEPT = ("affected_rows", "insert_id", "info", "warning_count")


class Result(NamedTuple):
    """One that was read ahead.

    Attributes:
        found: what ``next_result`` answers: -1 where there is none.
        rows: what ``store_result`` answers.
        values: what else the client says of it.
        error: what comes in its place.
    """

    found: int
    rows: Any
    values: dict[str, Any]
    error: Exception | None = None


class NativeConnection:
    """Mixed into the class of an instrumented ``MySQLdb.connections.Connection``."""

    _antipode: Tap
    thread_id: Callable[[], int]
    _antipode_kept: dict[str, Any]
    #: The result that the application went on to, where it was read ahead.
    _antipode_taken: Result | None = None
    #: Whether the reply had rows, and its statement may have switched autocommit.
    _antipode_unheard = False
    #: Whether something of the reply is left to read.
    _antipode_left = False
    #: The statement in flight.
    _antipode_sql = b""

    def query(self, query: bytes | bytearray | str) -> Any:
        """Send a statement; floors come before it, positions after it."""
        tap, plain = self._antipode, _plain(self, "query")
        self._antipode_before()
        sql = query.encode("utf-8", "replace") if isinstance(query, str) else bytes(query)
        found, held = tap.starts(sql)
        if held is not None:
            with limited(tap, held):
                hold(self._antipode, held, found, self._antipode_ask)
        if found & READS_OR_WRITES == READS and tap.hides(found):
            found = tap.shim.converse(tap.viewing(sql, found), self._antipode_ask)
        self._antipode_sql = sql
        return self._antipode_run(found, lambda: plain(query))

    def commit(self) -> Any:
        """Commit; the position is asked for after it."""
        self._antipode_before()
        return self._antipode_run(COMMITS | ENDS, _plain(self, "commit"))

    def rollback(self) -> Any:
        """Roll back."""
        self._antipode_before()
        return self._antipode_run(ENDS, _plain(self, "rollback"))

    def autocommit(self, on: Any) -> Any:
        """Switch, which commits where it switches on."""
        self._antipode_before()
        plain = _plain(self, "autocommit")
        return self._antipode_run(COMMITS, lambda: plain(on))

    def close(self) -> Any:
        """Close; the session is over."""
        tap = self._antipode
        tap.settle()
        tap.closed()
        with tap.gate.taken():
            return _plain(self, "close")()

    def change_user(self, *args: Any, **options: Any) -> Any:
        """Begin a session again."""
        tap = self._antipode
        tap.settle()
        with tap.gate.taken():
            try:
                return _plain(self, "change_user")(*args, **options)
            finally:
                tap.connected(status=self._antipode_word(), tracked=False)

    def ping(self, *args: Any) -> Any:
        """Ask whether the server is there."""
        with self._antipode.gate.taken():
            return _plain(self, "ping")(*args)

    def select_db(self, *args: Any) -> Any:
        """Go on to another schema."""
        self._antipode.moved()
        with self._antipode.gate.taken():
            return _plain(self, "select_db")(*args)

    def store_result(self) -> Any:
        """Take rows, and what comes after them; a position that did not come is asked for."""
        if self._antipode_taken is not None:
            result, self._antipode_taken = self._antipode_taken.rows, None
            return result
        result = _plain(self, "store_result")()
        tap = self._antipode
        if tap.state:
            self._antipode_read_ahead()
        elif tap.asks:
            self._antipode_finish()
        self._antipode_over()
        return result

    def next_result(self) -> Any:
        """Go on to the next result; after the last one the position is asked for."""
        tap = self._antipode
        if tap.ahead:
            self._antipode_taken = following = tap.ahead.popleft()
            self._antipode_kept = following.values
            if following.error is not None:
                self._antipode_taken = None
                raise following.error
            return following.found
        found = _plain(self, "next_result")()
        if found and tap.state:
            self._antipode_ended()
        if found:
            self._antipode_over()
        return found

    def discard_result(self) -> None:
        """Pass over the rows of a result."""
        if self._antipode_taken is None:
            _plain(self, "discard_result")()
        self._antipode_taken = None

    def affected_rows(self) -> Any:
        """Rows that the application's own statement changed."""
        return self._antipode_value("affected_rows")

    def insert_id(self) -> Any:
        """The number that the application's own statement gave."""
        return self._antipode_value("insert_id")

    def info(self) -> Any:
        """What the server said of the application's own statement."""
        return self._antipode_value("info")

    def warning_count(self) -> Any:
        """Warnings of the application's own statement."""
        return self._antipode_value("warning_count")

    def _antipode_value(self, name: str) -> Any:
        kept = self.__dict__.get("_antipode_kept") or {}
        return kept[name] if name in kept else _plain(self, name)()

    def _antipode_read_ahead(self) -> None:
        """Read the rest of a reply before the application goes on: its position comes after it."""
        tap = self._antipode
        first = self._antipode_now()
        ahead: deque[Result] = deque()
        more, failed = True, False
        while more:
            try:
                found = _plain(self, "next_result")()
                more = not found
                rows = _plain(self, "store_result")() if more else None
                ahead.append(Result(found, rows, self._antipode_now() if more else first))
            except Exception as error:  # noqa: BLE001, PERF203 - the application meets it there
                ahead.append(Result(0, None, first, error))
                more, failed = False, True
        self._antipode_ended(failed=failed)
        self._antipode_kept = first
        tap.ahead = ahead

    def _antipode_ended(self, *, failed: bool = False) -> None:
        """The last of several results was read: its statement may have ended the transaction."""
        tap = self._antipode
        tap.state = 0
        self._antipode_finish()
        if not failed and closes(self._antipode_sql):
            tap.session.heard(tap.session.status & ~IN_TRANSACTION)
            tap.closed()

    def _antipode_now(self) -> dict[str, Any]:
        return {name: _plain(self, name)() for name in _KEPT}

    def _antipode_before(self) -> None:
        tap = self._antipode
        tap.stale_read.failed()
        self._antipode_kept, self._antipode_sql = {}, b""
        self._antipode_taken = None
        tap.ahead.clear()
        tap.state = 0
        if self._antipode_unheard:
            self._antipode_unheard = False
            tap.session.switched(self._antipode_word())
        if tap.asks:  # Its results were not read to their end.
            tap.due = Due.NOTHING
            tap.shim.unsampled("the results of a statement were not read to their end")
            tap.over()
        if not tap.ready:
            tap.shim.converse(tap.preparing(self.thread_id), self._antipode_ask)

    def _antipode_run(self, found: int, send: Callable[[], Any]) -> Any:
        tap = self._antipode
        tap.gate.give()  # Held still where a reply was not read to its end.
        tap.gate.take()
        self._antipode_kept = {}
        self._antipode_left = False
        try:
            return self._antipode_answered(found, send)
        finally:
            if not self._antipode_left:
                self._antipode_over()

    def _antipode_answered(self, found: int, send: Callable[[], Any]) -> Any:
        tap = self._antipode
        tap.session.starts(found)
        try:
            reply = send()
        except BaseException as error:
            tap.state = 1
            number = errno_of(error)
            if 0 < number < _CLIENT_ERRORS or refused(error):
                if number == _UNPARSED and _starts_wrong(str(error.args[1]), self._antipode_sql):
                    tap.session.unparsed()
                tap.failed(number)
                self._antipode_finish()
                self._antipode_put_off()
                raise
            if number == _GONE_BEFORE:
                tap.session.unsent()
            else:
                tap.lost()
            tap.gate.give()
            tap.settle()
            raise
        self._antipode_replied(found)
        return reply

    def _antipode_put_off(self) -> None:
        """Ask later what an open transaction may have left in tables without transactions."""
        if self._antipode.session.wrote_inside:
            self._antipode.wrote_inside(_asking(self))

    def _antipode_inside(self) -> Lineage:
        """What it left; the connection is asked if nothing of a reply is left to read."""
        tap = self._antipode
        with tap.gate.between(SLICE_S) as free:
            self._antipode_kept = self._antipode_kept or self._antipode_now()
            return tap.inside(self._antipode_put if free else _busy)

    def _antipode_over(self) -> None:
        """Nothing of a reply is left to read: the connection may be asked from other threads."""
        tap = self._antipode
        tap.gate.give()
        if not tap.session.uncommitted:
            tap.settle(ask=False)

    def _antipode_replied(self, found: int) -> None:
        tap = self._antipode
        tap.stale_read.answered()
        plain: Any = super()
        rows = bool(plain.field_count())
        self._antipode_unheard = rows and bool(found & COMMITS)
        status = self._antipode_status(found, rows=rows)
        if rows:
            tap.session.rows_ended(status, changed=False)
        else:
            warned = bool(found & ENDS and plain.warning_count())
            tap.session.replied(Ok(status, _count(plain.affected_rows()), _WARNED[warned]))
        tap.finished()
        self._antipode_put_off()
        if found & MANY or found & OPAQUE == OPAQUE:
            tap.state = 1  # More results may come before the server can be asked.
        elif not rows:
            self._antipode_finish()
        self._antipode_left = rows or bool(tap.state)
        if tap.asks:
            tap.begun()

    def _antipode_word(self) -> int:
        """What the last packet said of autocommit."""
        plain: Any = super()
        return AUTOCOMMIT if plain.get_autocommit() else 0

    def _antipode_status(self, found: int, *, rows: bool) -> int:
        """The server's flags, as far as the statements so far show."""
        before = self._antipode.session.status
        own = before & AUTOCOMMIT if rows else self._antipode_word()
        opened = bool(before & IN_TRANSACTION)
        if (found & ENDS and not found & MANY) or (own and not before & AUTOCOMMIT):
            opened = False  # Switching to autocommit commits.
        opened = opened or bool(found & BEGINS)
        if not own and found & (READS | WRITES | OPENS) and not (found & ENDS and found & COMMITS):
            opened = True
        return own | (IN_TRANSACTION if opened else 0)

    def _antipode_ask(self, sql: str) -> Rows:
        """Ask the server in between.

        Raises:
            Refused: the server answered with an error.
            MySQLdb.Error: the connection is lost.
        """
        with self._antipode.gate.taken():
            return self._antipode_put(sql)

    def _antipode_put(self, sql: str) -> Rows:
        """The same, where nobody else can use the connection meanwhile."""
        tap = self._antipode
        try:
            if tap.until_s is None:
                _plain(self, "query")(sql.encode())
            else:
                self._antipode_query(sql.encode(), left_s(tap))
            result = _plain(self, "store_result")()
            return () if result is None else _rows(result)
        except Exception as error:
            number = errno_of(error)
            if 0 < number < _CLIENT_ERRORS or refused(error):
                raise Refused(str(error), passing=not refused(error), number=number) from error
            raise

    def _antipode_query(self, sql: bytes, timeout_s: float) -> None:
        """Send *sql* and wait for the beginning of its reply, no longer than *timeout_s* seconds.

        Raises:
            MySQLdb.Error: the connection is lost, or was given up.
        """
        _plain(self, "send_query")(sql)
        descriptor = _plain(self, "fileno")()
        if not _readable(descriptor, timeout_s):
            # Not closed, or cursors that are left with an error would raise another one.
            with socket.socket(fileno=os.dup(descriptor)) as link:
                link.shutdown(socket.SHUT_RDWR)
        _plain(self, "read_query_result")()

    def _antipode_finish(self) -> None:
        """What the end of a reply left to do."""
        tap = self._antipode
        if tap.asks:
            due, tap.due = tap.due, Due.NOTHING
            self._antipode_kept = self._antipode_now()
            try:
                tap.sampled(self._antipode_ask(SAMPLE[tap.known().flavor]), due)
            except BaseException as error:
                tap.shim.unsampled(str(error))
                if not isinstance(error, Exception):
                    raise
        tap.raise_pending()


def _starts_wrong(message: str, sql: bytes) -> bool:
    """Whether the server could not parse the very beginning of *sql*, as its *message* says.

    An error further on may be of a text that a statement before it made.
    """
    near = _NEAR.search(message)
    return near is not None and sql.lstrip().startswith(near[1].encode())


def _rows(result: Any) -> Rows:
    rows: Rows = result.fetch_row(maxrows=0, how=1)
    return rows


def _count(affected: int) -> int:
    """Rows changed; the C library says -1, unsigned, where it does not know."""
    return affected if affected < 1 << 62 else 1


def _readable(descriptor: int, timeout_s: float) -> bool:
    """Whether there is something to read within *timeout_s* seconds."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _asking(connection: NativeConnection) -> Callable[[], Lineage]:
    """Asks the connection for as long as the application has it, in the process that opened it."""
    held, tap, process = weakref.ref(connection), connection._antipode, os.getpid()  # noqa: SLF001

    def ask() -> Lineage:
        alive = held()
        if not isinstance(alive, NativeConnection) or process != os.getpid():
            return tap.inside(_busy)
        return alive._antipode_inside()  # noqa: SLF001

    return ask


def _busy(sql: str) -> Rows:
    """The connection cannot be asked.

    Raises:
        Refused: always.
    """
    del sql
    msg = "its transaction is open, and its connection in use, or gone"
    raise Refused(msg)


def _plain(connection: Any, name: str) -> Any:
    return getattr(super(NativeConnection, connection), name)
