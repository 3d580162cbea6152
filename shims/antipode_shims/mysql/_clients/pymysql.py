"""PyMySQL connections that record positions and wait for floors.

Every command goes through ``_execute_command`` and every packet through ``_read_packet``; both stay
PyMySQL's own, and what the library asks in between uses them too. Import only where PyMySQL is.
"""

from __future__ import annotations

import math
import socket
import sys
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

from pymysql.constants import COMMAND
from pymysql.protocol import MysqlPacket

from antipode_shims.mysql._endpoint.settings import errno_of, is_clients, refused
from antipode_shims.mysql._position.flavor import Refused
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK
from antipode_shims.mysql._statements import READS

from .read_wait import hold, left_s, limited
from .session import Due
from .tap import EOF, READS_OR_WRITES, ROWS, SAMPLE, SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor
    from antipode_shims.mysql._position.flavor import Rows

    from .tap import Tap


_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_ESTABLISHED = b"\x01"
_TCP = int(socket.IPPROTO_TCP)
QUERY = int(COMMAND.COM_QUERY)
RESETTING = frozenset({COMMAND.COM_CHANGE_USER, 0x1F})  # 31: COM_RESET_CONNECTION.


def is_tracked(connection: Any) -> bool:
    """Whether a connection that went through its handshake agreed on session state."""
    return bool(connection.client_flag & connection.server_capabilities & SESSION_TRACK)


def peer_of(sock: Any) -> Callable[..., bytes] | None:
    """What shows whether the server's end of a connection is closed, as far as is heard here.

    Linux shows it without a system call that lets other threads run first; elsewhere, and for Unix
    sockets, nothing is known.
    """
    if sock is None or _TCP_INFO is None or sock.family == socket.AF_UNIX:
        return None
    peer: Callable[..., bytes] = sock.getsockopt
    return peer


def next_packet(ahead: deque[Any], packet_type: Any, encoding: str) -> Any:
    """The next of the packets that were read ahead.

    Raises:
        Exception: what the server, or the connection's end, came with in its place.
    """
    packet = ahead.popleft()
    if isinstance(packet, Exception):
        raise packet
    if packet_type is MysqlPacket:
        return packet
    return packet_type(packet._data, encoding)  # noqa: SLF001


def rows_of(result: Any) -> Rows:
    """What a question of the library's own was answered with; none for an OK packet."""
    if not result.rows:
        return []
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.rows]


def refusal(error: Exception, *, closed: bool) -> Exception:
    """A server's error as conversations take it; a lost connection stays the client's error."""
    if closed or not is_clients(error):
        return error
    return Refused(str(error), passing=not refused(error), number=errno_of(error))


class SyncConnection:
    """Mixed into the class of an instrumented ``pymysql.Connection``."""

    _antipode: Tap
    thread_id: Callable[[], int]
    _antipode_send: Callable[[int, bytes | str], None]
    _antipode_read: Callable[..., Any]
    _sock: Any
    _result: Any
    _affected_rows: Any
    _local_infile: bool
    _read_timeout: float | None
    encoding: str
    client_flag: int
    server_capabilities: int
    server_status: int

    def connect(self, sock: Any = None) -> None:
        """Connect with ``CLIENT_SESSION_TRACK``; the session starts again."""
        tap = self._antipode
        plain: Any = super()
        self.client_flag |= SESSION_TRACK
        tap.own, tap.state = True, 0
        try:
            plain.connect(sock)
        finally:
            tap.own = False
        tap.connected(status=self.server_status, tracked=is_tracked(self))

    def _force_close(self) -> None:
        """Close; the session is over."""
        plain: Any = super()
        plain._force_close()  # noqa: SLF001 - also by close()
        self._antipode.closed()

    def _execute_command(self, command: int, sql: bytes | str) -> None:
        tap = self._antipode
        if tap.own:
            self._antipode_send(command, sql)
            return
        if tap.state or tap.ahead:
            self._antipode_drain()
        if command != QUERY:
            self._antipode_other(command, sql)
            return
        if not tap.ready:
            self._antipode_prepare()
        found, held = tap.starts(sql)
        if held is not None:
            with limited(tap, held):
                self._antipode_hold(held, found)
        if tap.views is not None and found & READS_OR_WRITES == READS and tap.hides(found):
            found = tap.shim.converse(tap.viewing(sql, found), self._antipode_ask)
        session = tap.session
        if found == READS:  # The server need not wait: what becomes of it leaves nothing in doubt.
            self._antipode_send(command, sql)
            session.starts(found)
            tap.sent()
            return
        session.starts(found)
        tap.ended = (
            tap.peer is not None
            and session.doubtful
            and self._sock is not None
            and tap.peer(_TCP, _TCP_INFO, 1) != _ESTABLISHED
        )
        try:
            self._antipode_send(command, sql)
        except Exception:
            # Not even the kernel has all of it: no server executes half a command.
            session.unsent()
            raise
        except BaseException:
            tap.lost()
            raise
        tap.sent()

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        tap = self._antipode
        if tap.ahead and not tap.own:
            return next_packet(tap.ahead, packet_type, self.encoding)
        try:
            packet = self._antipode_read(packet_type)
        except BaseException as error:
            self._antipode_unread(error)
            raise
        if packet_type is not MysqlPacket:
            return packet
        data = packet._data  # noqa: SLF001
        if not tap.state:
            tap.asked(data)
        elif tap.state != ROWS or data[0] == EOF:
            shown = tap.packet(data)
            if shown is not None:
                packet._data = shown  # noqa: SLF001
            if not tap.state:
                if tap.pending:
                    self._antipode_finish()
            elif tap.more and not self._local_infile:
                self._antipode_read_ahead()
        return packet

    def _antipode_other(self, command: int, sql: bytes | str) -> None:
        """Send a command that is no statement."""
        tap = self._antipode
        tap.other(moves=command != COMMAND.COM_PING)
        self._antipode_send(command, sql)
        if command in RESETTING:
            tap.reset()
        tap.sent()

    def _antipode_read_ahead(self) -> None:
        """Read the rest of a reply before the application goes on: its position is in there.

        Where it takes rows one by one it shall not have to hold all of the rest: until that is
        read, what it wrote is in doubt.
        """
        tap = self._antipode
        tap.more = False
        if self._result is not None:
            return
        tap.reading_ahead = True
        ahead: deque[Any] = deque()
        while tap.state:
            try:
                ahead.append(SyncConnection._read_packet(self))
            except Exception as error:  # noqa: BLE001, PERF203 - the application meets it there
                ahead.append(error)
        tap.ahead = ahead

    def _antipode_unread(self, error: BaseException) -> None:
        """The server answered with an error, or nothing came."""
        tap = self._antipode
        if not tap.state:
            return
        if self._sock is not None and is_clients(error):
            tap.failed(errno_of(error))
            self._antipode_finish()
        else:
            tap.lost()

    def _antipode_ask(self, sql: str | bytes) -> Rows:
        """Ask the server in between; what the application sees of the connection stays.

        Raises:
            Refused: the server answered with an error.
            pymysql.Error: the connection is lost.
        """
        tap = self._antipode
        plain: Any = super()
        kept = self._result, self._affected_rows, self.server_status
        timeout_s = self._read_timeout
        self._result = None  # What is left of it, an unbuffered result's end, has been read.
        tap.own = True
        if tap.until_s is not None:
            self._read_timeout = min(left_s(tap), timeout_s or math.inf)
        try:
            plain.query(sql)
            tap.answered()
            return rows_of(self._result)
        except Exception as error:
            raise refusal(error, closed=self._sock is None) from error
        finally:
            tap.own = False
            self._result, self._affected_rows, self.server_status = kept
            self._read_timeout = timeout_s

    def _antipode_drain(self) -> None:
        """Read what is left of the last reply, as PyMySQL does before it sends a command."""
        plain: Any = super()
        result = self._result
        if result is not None and result.unbuffered_active:
            warnings.warn("Previous unbuffered result was left incomplete", stacklevel=4)
            result._finish_unbuffered_query()  # noqa: SLF001
        while self._result is not None and self._result.has_next:
            plain.next_result()
        self._antipode.state = 0
        self._antipode.ahead.clear()

    def _antipode_prepare(self) -> None:
        """Find out about the server and turn tracking on, once for each session."""
        tap = self._antipode
        tap.shim.converse(tap.preparing(self.thread_id), self._antipode_ask)
        tap.peer = peer_of(self._sock)

    def _antipode_hold(self, held: Floor, found: int) -> None:
        """Hold a statement that reads; the client itself gives up after its read timeout."""
        longest_s = min(SLICE_S, (self._read_timeout or 2 * SLICE_S) / 2)
        hold(self._antipode, held, found, self._antipode_ask, longest_s=longest_s)

    def _antipode_finish(self) -> None:
        """What the end of a reply left to do."""
        tap = self._antipode
        if tap.asks:
            try:
                if hints := tap.hints:
                    self._antipode_ask(hints)
                if not hints or tap.hinted():
                    rows = self._antipode_ask(SAMPLE[tap.known().flavor])
                    tap.sampled(rows, tap.due)
            except BaseException as error:
                tap.shim.unsampled(str(error) or type(error).__name__)
                if not isinstance(error, Exception):
                    raise
            finally:
                tap.due = Due.NOTHING
        tap.raise_pending()
