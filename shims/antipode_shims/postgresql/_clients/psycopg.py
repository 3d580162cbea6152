"""psycopg 3 connections, of both APIs: positions after commits, reads that wait for floors.

All that a connection and its cursors do goes through ``Connection.wait``, which drives one
generator each: what these send is read from their arguments, before they begin. A commit goes out
with its questions in one packet. Import only where psycopg is.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psycopg
from psycopg import generators, pq, sql

from antipode.shim import drive, drive_async
from antipode_shims._sql.texts import text_of
from antipode_shims.postgresql._endpoint import backend, refusal, rows_of
from antipode_shims.postgresql._look import BEFORE, SAMPLE, Refused
from antipode_shims.postgresql._statements import COMMITS, READS, WRITES

from .holding import AsyncHolding, Call, Late, SyncHolding, clients_own
from .psycopg_sample import Flight, goes_along
from .tap import Commit, Session, commit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from antipode_shims.postgresql._look import Backend
    from antipode_shims.postgresql._position import Rows

    from .tap import Tap

RowT = TypeVar("RowT")

_SESSIONS = {
    pq.TransactionStatus.IDLE: Session.IDLE,
    pq.TransactionStatus.INTRANS: Session.OPEN,
    pq.TransactionStatus.INERROR: Session.FAILED,
    pq.TransactionStatus.ACTIVE: Session.BUSY,
    pq.TransactionStatus.UNKNOWN: Session.LOST,
}
_ACTIVE = pq.TransactionStatus.ACTIVE
_FATAL = pq.ExecStatus.FATAL_ERROR
_ON = b"on"
#: In one packet: whether the transaction wrote, its commit, the position of that; by what asks it.
_COMMITTING = {before: f"{before}; COMMIT; {SAMPLE}".encode() for before in BEFORE}
#: The arguments with a statement's text, by the generators that send one.
_TEXTS = {
    "_execute_gen": "query",
    "_executemany_gen_pipeline": "query",
    "_executemany_gen_no_pipeline": "query",
    "_stream_send_gen": "query",
    "_declare_gen": "query",
    "_start_copy_gen": "statement",
}
#: What encodes the values of a statement, and the generators that send nothing but a BEGIN before.
_ENCODES = frozenset({"_convert_query", "_query2pg"})
_ONE_STATEMENT = frozenset({"_execute_gen", "_stream_send_gen", "_declare_gen"})
_PIPELINES = psycopg.Pipeline, psycopg.AsyncPipeline
_BLOCKS = (*_PIPELINES, psycopg.Transaction, psycopg.AsyncTransaction)
_FETCHES = frozenset({"_fetch_gen", "_scroll_gen"})
#: What the client itself sends to forget prepared statements, as after a ROLLBACK, begins with
#: these 11 characters. It is no work of the application's, and commits nothing.
_FORGETS = "DEALLOCATE "
#: Generators of a connection that end with a Sync where it is in a pipeline.
_SYNC_LAST = frozenset({"_commit_gen", "_rollback_gen", "_tpc_prepare_gen"})


class Piped(Enum):
    """What a call does to the transaction that a pipeline has between two Syncs."""

    #: It sends none of its commands, or only asks for the replies to those that were sent.
    NOTHING = "nothing"
    SENDS = "sends"
    #: It ends with a Sync, which commits all since the last one, or undoes all.
    ENDS = "ends"


def piped_by(connection: Any, gen: Any) -> Piped:
    """What *gen* does in the pipeline of *connection*."""
    code = getattr(gen, "gi_code", None)
    name = "" if code is None else code.co_name
    owner = gen.gi_frame.f_locals.get("self") if code is not None else None
    if not isinstance(owner, _PIPELINES):
        return Piped.ENDS if name in _SYNC_LAST and owner is connection else Piped.SENDS
    if name == "_enter_gen":  # Another block in one that has sent something sends a Sync.
        sent = owner.command_queue or owner.pgconn.transaction_status == _ACTIVE
        return Piped.ENDS if owner.level and sent else Piped.NOTHING
    return Piped.NOTHING if name in _FETCHES else Piped.ENDS


def call_of(connection: Any, gen: Any) -> Call | None:
    """What *gen* is about to send; None where that is no statement of the application's."""
    code = getattr(gen, "gi_code", None)
    name = "" if code is None else code.co_name
    if name in _TEXTS:
        given = gen.gi_frame.f_locals
        cursor = given.get("self")
        text = _text(connection, given.get(_TEXTS[name]))
        if name == "_declare_gen" and text is not None:
            hold = " WITH HOLD" if cursor.withhold else ""
            text = f"DECLARE c CURSOR{hold} FOR {text}"
        opens = not connection._autocommit  # noqa: SLF001 - its lock is held
        return Call(text, cursor, opens=opens, reads_by=getattr(cursor, "name", ""))
    if name in _FETCHES and not isinstance(gen.gi_frame.f_locals.get("self"), _PIPELINES):
        return Call("FETCH c", reads_by=getattr(gen.gi_frame.f_locals.get("self"), "name", ""))
    if name == "_enter_gen":
        owner = gen.gi_frame.f_locals.get("self")
        if isinstance(owner, _BLOCKS):
            return Call("", opens=True)
    if name == "_tpc_begin_gen":
        return Call("", opens=not connection._autocommit)  # noqa: SLF001 - as above
    return None


def _text(connection: Any, query: Any) -> str | None:
    if isinstance(query, str):
        return query
    try:
        if isinstance(query, bytes):
            return text_of(query)
        if isinstance(query, sql.Composable):
            return query.as_string(connection)
    except Exception:  # noqa: BLE001 - the client raises it when it sends the statement
        return None
    return None


def _is_unsent(error: BaseException) -> bool:
    """Whether *error* came while the values of one statement were encoded, before it was sent."""
    trace, names = error.__traceback__, []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return not (_ENCODES.isdisjoint(names) or _ONE_STATEMENT.isdisjoint(names))


class Shared(Generic[RowT]):
    """What both APIs have; mixed into the class of an instrumented connection.

    Generic as psycopg's own connections are: an object's class is changed only for one of its
    layout.
    """

    _antipode: Tap
    #: How the transaction stands that a pipeline has between two Syncs. Whatever is asked would end
    #: it, and libpq does not show it once its replies were fetched.
    _antipode_between = Session.IDLE
    #: The write on its way whose position is asked for in the same flush.
    _antipode_flight: Flight | None = None
    pgconn: Any
    info: Any
    _pipeline: Any
    _check_connection_ok: Callable[[], None]

    def _exec_command(self, command: Any, *args: Any, **options: Any) -> Any:
        """A command of the client's own, such as BEGIN; COMMIT goes with its questions."""
        tap, more = self._antipode, ""
        if self._antipode_flight is not None:
            yield from self._antipode_flight.land()
        text = command if isinstance(command, str) else None
        if isinstance(command, bytes):
            text = command.decode()
        elif isinstance(command, sql.Composable):
            text = command.as_string(None)
        session = self._antipode_session()
        forgets = self._pipeline is None and (text or "")[:11] == _FORGETS
        if not (tap.own or forgets):
            tap.sends(text or "", session)
            more = self._antipode_with(text or "")
            off = self.pgconn.pipeline_status == pq.PipelineStatus.OFF
            together = text == "COMMIT" and session is Session.OPEN and off
            if together and not (self._antipode_standby() or tap.only_read):
                return (yield from self._antipode_commit())
            if more and off:
                return (yield from self._antipode_together(f"{text}; {more}"))
        plain: Any = super()
        result = yield from plain._exec_command(command, *args, **options)  # noqa: SLF001
        if more:
            yield from plain._exec_command(more)  # noqa: SLF001 - it is queued as well
        return result

    def _deallocate(self, name: bytes | None) -> Any:
        """The client forgets a prepared statement, at the end of another."""
        plain: Any = super()
        if self._antipode_flight is not None:
            yield from self._antipode_flight.land()
        return (yield from plain._deallocate(name))  # noqa: SLF001

    def _antipode_along(self, gen: Any, call: Call) -> Any:
        """What drives *gen*, which sends *call*: the position goes with a write that is alone."""
        if (
            call.opens
            or self._pipeline is not None
            or not self._antipode.commits_alone
            or not goes_along(gen, call)
            or self._antipode_standby()
        ):
            return gen
        self._antipode_flight = flight = Flight(self, gen, call.cursor)
        return flight.drive()

    def _antipode_sample(self) -> Rows | None:
        """The answer that came with a write; None where none did.

        Raises:
            Refused: the server answered with an error.
        """
        flight, self._antipode_flight = self._antipode_flight, None
        if flight is None or flight.sample is None:
            return None
        if flight.sample.status == _FATAL:
            raise refusal(flight.sample, pq)
        return rows_of(flight.sample)

    def _antipode_with(self, command: str) -> str:
        """What goes in one packet with a command of the client's own, after it; mostly nothing."""
        del command
        return ""

    def _antipode_together(self, commands: str) -> Generator[Any, Any, Any]:
        """Send a command and what goes with it; the command's result."""
        self._check_connection_ok()
        self.pgconn.send_query(commands.encode())
        results = yield from generators.execute(self.pgconn)
        if results[-1].status == _FATAL:
            raise psycopg.errors.error_from_result(results[-1], encoding=self.info.encoding)
        return results[0]

    def _antipode_commit(self) -> Generator[Any, Any, Any]:
        tap = self._antipode
        self._check_connection_ok()
        self.pgconn.send_query(_COMMITTING[tap.before_commit])
        results = yield from generators.execute(self.pgconn)
        if len(results) > 1:
            tap.commit = commit_of(rows_of(results[0]))
        if len(results) > 2:  # noqa: PLR2004 - of three statements
            if results[2].status != _FATAL:
                tap.commit = Commit(tap.commit.wrote, tap.commit.flushed, rows_of(results[2])[0])  # type: ignore[union-attr]
            return results[1]
        tap.commit = None
        raise psycopg.errors.error_from_result(results[-1], encoding=self.info.encoding)

    def _antipode_session(self) -> Session:
        """How the session stands, as the packet that ended its last reply says."""
        return _SESSIONS.get(self.pgconn.transaction_status, Session.LOST)

    def _antipode_backend(self) -> Backend:
        """The connection's process at its server."""
        return backend(self.pgconn.backend_pid, self.pgconn.socket)

    def _antipode_standby(self) -> bool:
        """Whether the server says, from PostgreSQL 14 on, that it takes no writes."""
        return bool(self.pgconn.parameter_status(b"in_hot_standby") == _ON)

    def _antipode_busy(self) -> bool:
        """Whether the pipeline has replies of the application's still to come, or its Sync."""
        pipeline = self._pipeline
        return bool(
            pipeline.command_queue
            or pipeline.result_queue
            or self._antipode_between is not Session.IDLE
            or self.pgconn.transaction_status == _ACTIVE
        )

    def _antipode_asking(self, text: str) -> Generator[Any, Any, Rows]:
        """Send a question of the library's own, and receive its rows.

        Raises:
            Refused: the server answered with an error.
            Late: the time that a floor leaves is up.
            psycopg.Error: the connection is lost.
        """
        gen = self._antipode_sending(text.encode("utf-8", "surrogateescape"))
        last = yield from _bounded(gen, self._antipode.until_s)
        if last.status == _FATAL:
            error = psycopg.errors.error_from_result(last, encoding=self.info.encoding)
            raise refusal(last, pq) from error
        return rows_of(last)

    def _antipode_sending(self, text: bytes) -> Generator[Any, Any, Any]:
        pgconn = self.pgconn
        if pgconn.pipeline_status == pq.PipelineStatus.OFF:
            pgconn.send_query(text)
            return (yield from generators.execute(pgconn))[-1]
        pgconn.send_query_params(text, None)
        pgconn.pipeline_sync()
        yield from generators.send(pgconn)
        results = yield from generators.fetch_many(pgconn)
        yield from generators.fetch_many(pgconn)  # That of the Sync.
        return results[-1]

    def _antipode_asks_commit(self, call: Call) -> bool:
        """Whether a statement of the application's own commits what is open."""
        tap = self._antipode
        return (
            call.cursor is not None
            and tap.commits_open(self._antipode_session())
            and self.pgconn.pipeline_status == pq.PipelineStatus.OFF
            and not self._antipode_standby()
        )

    def _antipode_piped(self, piped: Piped, error: BaseException | None) -> bool:
        """A call in a pipeline is over; whether one since the last Sync has failed."""
        failed = error is not None or self._antipode_between is Session.FAILED
        if piped is Piped.ENDS:
            self._antipode_between = Session.IDLE
        elif failed:
            self._antipode_between = Session.FAILED
        elif piped is Piped.SENDS:
            self._antipode_between = Session.OPEN
        return failed

    def _antipode_left(
        self, error: BaseException | None, call: Call | None, piped: Piped | None
    ) -> Any:
        """What is left to ask now that a call is over; None for nothing.

        Args:
            error: that it ended with.
            call: what it sent of the application's.
            piped: what it did in a pipeline; None outside of one.
        """
        tap = self._antipode
        failed = error is not None if piped is None else self._antipode_piped(piped, error)
        session = self._antipode_session()
        busy = session is Session.BUSY
        if self._pipeline is not None:
            busy = self._antipode_busy()
        tap.ended(error, busy=busy)
        if error is not None and piped is None and _is_unsent(error):
            tap.unsent()
        elif session is Session.LOST or not (error is None or isinstance(error, psycopg.Error)):
            tap.lost()  # Also of a call that was given up: it may be over there.
            return None
        if not tap.pending or busy:
            return None
        tag = ""
        if call is not None and call.cursor is not None and error is None and tap.pending != READS:
            tag = call.cursor.statusmessage or ""
        standby = self._antipode_standby()
        return tap.settled(session, failed=failed, tag=tag, standby=standby)

    def _antipode_end(self) -> None:
        """Close the connection."""
        self.pgconn.finish()


def _bounded(gen: Any, until_s: float | None) -> Generator[Any, Any, Any]:
    """Drive *gen*, and give it up at *until_s*: the client's loop comes by while nothing comes.

    Raises:
        Late: at that time.
    """
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and until_s is not None and time.monotonic() > until_s:
                raise Late("the server does not answer in time")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


class SyncConnection(Shared[RowT], SyncHolding):
    """Mixed into the class of an instrumented ``psycopg.Connection``."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Drive *gen*: hold it back before, record what it committed after."""
        plain: Any = super()
        tap = self._antipode
        if tap.own:
            return plain.wait(gen, *args, **options)
        self._antipode_flight = None  # Its answer is of that call alone.
        call = call_of(self, gen)
        if call is not None:
            before = tap.pending
            try:
                if (steps := self._antipode_hold(call)) is not None:
                    drive(steps, self)
                if tap.pending & COMMITS and self._antipode_asks_commit(call):
                    tap.commit = commit_of(self._antipode_ask(tap.before_commit))
            except Refused as refused:
                self._antipode_unsent(before)
                raise clients_own(refused) from None
            except BaseException:
                self._antipode_unsent(before)
                raise
            if tap.pending & WRITES:
                gen = self._antipode_along(gen, call)
        piped = None if self._pipeline is None else piped_by(self, gen)
        try:
            found = plain.wait(gen, *args, **options)
        except BaseException as error:
            self._antipode_settle(self._antipode_left(error, call, piped), psycopg.Error)
            raise
        if (left := self._antipode_left(None, call, piped)) is not None:
            self._antipode_settle(left, psycopg.Error)
        return found

    def _antipode_ask(self, text: str) -> Rows:
        plain: Any = super()
        tap = self._antipode
        if text is SAMPLE and (there := self._antipode_sample()) is not None:
            return there
        tap.own = True
        try:
            rows: Rows = plain.wait(self._antipode_asking(text))
        finally:
            tap.own = False
        return rows

    def close(self) -> None:
        """Close; the session is over."""
        plain: Any = super()
        plain.close()
        self._antipode.closed()


class AsyncConnection(Shared[RowT], AsyncHolding):
    """Mixed into the class of an instrumented ``psycopg.AsyncConnection``."""

    async def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """The asyncio twin of :meth:`SyncConnection.wait`."""
        plain: Any = super()
        tap = self._antipode
        if tap.own:
            return await plain.wait(gen, *args, **options)
        self._antipode_flight = None  # Its answer is of that call alone.
        call = call_of(self, gen)
        if call is not None:
            before = tap.pending
            try:
                if (steps := self._antipode_hold(call)) is not None:
                    await drive_async(steps, self)
                if tap.pending & COMMITS and self._antipode_asks_commit(call):
                    tap.commit = commit_of(await self._antipode_ask(tap.before_commit))
            except Refused as refused:
                self._antipode_unsent(before)
                raise clients_own(refused) from None
            except BaseException:
                self._antipode_unsent(before)
                raise
            if tap.pending & WRITES:
                gen = self._antipode_along(gen, call)
        piped = None if self._pipeline is None else piped_by(self, gen)
        try:
            found = await plain.wait(gen, *args, **options)
        except BaseException as error:
            await self._antipode_settle(self._antipode_left(error, call, piped), psycopg.Error)
            raise
        if (left := self._antipode_left(None, call, piped)) is not None:
            await self._antipode_settle(left, psycopg.Error)
        return found

    async def _antipode_ask(self, text: str) -> Rows:
        plain: Any = super()
        tap = self._antipode
        if text is SAMPLE and (there := self._antipode_sample()) is not None:
            return there
        tap.own = True
        try:
            rows: Rows = await plain.wait(self._antipode_asking(text))
        finally:
            tap.own = False
        return rows

    async def close(self) -> None:
        """Close; the session is over."""
        plain: Any = super()
        await plain.close()
        self._antipode.closed()
