"""The asyncio twin of ``pymysql``, for aiomysql: the same decisions, awaited."""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any

from pymysql.constants import COMMAND
from pymysql.protocol import MysqlPacket

from antipode.shim import Observation, Unreachable
from antipode_shims.mysql._endpoint.settings import errno_of, is_clients
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK
from antipode_shims.mysql._statements import READS

from .pymysql import RESETTING, is_tracked, next_packet, refusal, rows_of
from .read_wait import UNSEEN, held_look, left_s, limited, old_snapshot, untriggered
from .session import Due, Verdict
from .tap import EOF, READS_OR_WRITES, ROWS, SAMPLE, SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor
    from antipode_shims.mysql._position.flavor import Rows

    from .tap import Tap


class AsyncConnection:
    """Mixed into the class of an instrumented ``aiomysql.Connection``."""

    _antipode: Tap
    thread_id: Callable[[], int]
    _antipode_read: Callable[..., Any]
    _reader: Any
    _writer: Any
    _result: Any
    _affected_rows: Any
    _local_infile: bool
    _encoding: str
    client_flag: int
    server_capabilities: int
    server_status: int

    async def _connect(self) -> None:
        """Connect with ``CLIENT_SESSION_TRACK``; the session starts again."""
        tap = self._antipode
        plain: Any = super()
        self.client_flag |= SESSION_TRACK
        tap.own, tap.state = True, 0
        try:
            await plain._connect()  # noqa: SLF001
        finally:
            tap.own = False
        tap.connected(status=self.server_status, tracked=is_tracked(self))

    def close(self) -> None:
        """Close; the session is over."""
        plain: Any = super()
        plain.close()
        self._antipode.closed()

    async def _execute_command(self, command: int, sql: bytes | str) -> None:
        tap = self._antipode
        plain: Any = super()
        if tap.own:
            await plain._execute_command(command, sql)  # noqa: SLF001
            return
        if tap.state or tap.ahead:
            await self._antipode_drain()
        if command != COMMAND.COM_QUERY:
            tap.other(moves=command != COMMAND.COM_PING)
            await plain._execute_command(command, sql)  # noqa: SLF001
            if command in RESETTING:
                tap.reset()
            tap.sent()
            return
        if not tap.ready:
            await self._antipode_prepare()
        found, held = tap.starts(sql)
        if held is not None:
            with limited(tap, held):
                await self._antipode_hold(held, found)
        if tap.views is not None and found & READS_OR_WRITES == READS and tap.hides(found):
            found = await tap.shim.converse_async(tap.viewing(sql, found), self._antipode_ask)
        tap.session.starts(found)
        tap.ended = self._reader is not None and self._reader.at_eof()
        try:
            await plain._execute_command(command, sql)  # noqa: SLF001
        except Exception:
            # Not even the kernel has all of it: no server executes half a command.
            tap.session.unsent()
            raise
        except BaseException:
            tap.lost()
            raise
        tap.sent()

    async def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        tap = self._antipode
        if tap.ahead and not tap.own:
            return next_packet(tap.ahead, packet_type, self._encoding)
        try:
            packet = await self._antipode_read(packet_type)
        except BaseException as error:
            await self._antipode_unread(error)
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
                    await self._antipode_finish()
            elif tap.more and not self._local_infile:
                await self._antipode_read_ahead()
        return packet

    async def _antipode_read_ahead(self) -> None:
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
                ahead.append(await AsyncConnection._read_packet(self))
            except Exception as error:  # noqa: BLE001, PERF203 - the application meets it there
                ahead.append(error)
        tap.ahead = ahead

    async def _antipode_unread(self, error: BaseException) -> None:
        """The server answered with an error, or nothing came."""
        tap = self._antipode
        if not tap.state:
            return
        if self._writer is not None and is_clients(error):
            tap.failed(errno_of(error))
            await self._antipode_finish()
        else:
            tap.lost()

    async def _antipode_ask(self, sql: str | bytes) -> Rows:
        """Ask the server in between; what the application sees of the connection stays.

        Raises:
            Refused: the server answered with an error.
            pymysql.Error: the connection is lost.
        """
        tap = self._antipode
        plain: Any = super()
        kept = self._result, self._affected_rows, self.server_status
        self._result = None  # What is left of it, an unbuffered result's end, has been read.
        tap.own = True
        timer = None if tap.until_s is None else self._antipode_timer()
        try:
            await plain.query(sql)
            tap.answered()
            return rows_of(self._result)
        except Exception as error:
            raise refusal(error, closed=self._writer is None) from error
        finally:
            if timer is not None:
                timer.cancel()
            tap.own = False
            self._result, self._affected_rows, self.server_status = kept

    def _antipode_timer(self) -> asyncio.TimerHandle:
        """Give the connection up when the floor's time is over, unless cancelled before."""
        transport = self._writer.transport
        return asyncio.get_running_loop().call_later(left_s(self._antipode), transport.abort)

    async def _antipode_drain(self) -> None:
        """Read what is left of the last reply, as PyMySQL does before it sends a command."""
        plain: Any = super()
        result = self._result
        if result is not None and result.unbuffered_active:
            warnings.warn("Previous unbuffered result was left incomplete", stacklevel=4)
            await result._finish_unbuffered_query()  # noqa: SLF001
        while self._result is not None and self._result.has_next:
            await plain.next_result()
        self._antipode.state = 0
        self._antipode.ahead.clear()

    async def _antipode_prepare(self) -> None:
        """Find out about the server and turn tracking on, once for each session."""
        tap = self._antipode
        await tap.shim.converse_async(tap.preparing(self.thread_id), self._antipode_ask)

    async def _antipode_hold(self, held: Floor, found: int) -> None:
        """Hold a statement that reads until its floor is met on this connection.

        Raises:
            StaleSnapshot: the open transaction reads from an older snapshot.
            UnmetError: the floor is not met in time, or never.
        """
        tap = self._antipode
        verdict = tap.session.judge(held, found)
        if verdict is Verdict.PASS:
            held.passed()
            return
        facts, renews = tap.known(), False
        if verdict is not Verdict.HOLD:
            steps = old_snapshot(tap, held, verdict)
            renews = await tap.shim.converse_async(steps, self._antipode_ask)
        seen: list[Observation] = []

        async def look(timeout_s: float) -> Observation:
            wait_s = tap.block_s(held, min(timeout_s, SLICE_S), first=not seen)
            steps = held_look(tap, held, renews=renews, wait_s=wait_s)
            try:
                observation = await tap.shim.converse_async(steps, self._antipode_ask)
            except Unreachable:  # An upstream's: this connection raises the client's errors.
                observation = Observation(facts.server, {})
            seen[:] = [observation]
            return observation

        await held.hold_async(look, places=tap.places)
        if verdict in UNSEEN and not renews:
            clears = untriggered(tap, held, verdict)
            await tap.shim.converse_async(clears, self._antipode_ask)
        if not held.served:
            tap.shown(held, seen, renews=verdict is not Verdict.HOLD)

    async def _antipode_finish(self) -> None:
        """What the end of a reply left to do."""
        tap = self._antipode
        if tap.asks:
            try:
                if hints := tap.hints:
                    await self._antipode_ask(hints)
                if not hints or tap.hinted():
                    rows = await self._antipode_ask(SAMPLE[tap.known().flavor])
                    tap.sampled(rows, tap.due)
            except BaseException as error:
                tap.shim.unsampled(str(error) or type(error).__name__)
                if not isinstance(error, Exception):
                    raise
            finally:
                tap.due = Due.NOTHING
        tap.raise_pending()
