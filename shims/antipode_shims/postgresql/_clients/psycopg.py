"""psycopg 3 connections, of both APIs: positions after commits, reads that wait for floors.

All that a connection and its cursors do goes through ``Connection.wait``, which drives one
generator each: what these send is read from their arguments, before they begin. A commit goes out
with its questions in one packet. Import only where psycopg is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psycopg
from psycopg import generators, pq, sql

from antipode_shims.postgresql._endpoint import backend, refusal, rows_of
from antipode_shims.postgresql._look import BEFORE_COMMIT, SAMPLE

from .holding import AsyncHolding, Call, Late, SyncHolding
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
_FATAL = pq.ExecStatus.FATAL_ERROR
_ON = b"on"
#: In one packet: whether the transaction wrote, its commit, the position of that.
_COMMITTING = f"{BEFORE_COMMIT}; COMMIT; {SAMPLE}".encode()
#: The arguments with a statement's text, by the generators that send one.
_TEXTS = {
    "_execute_gen": "query",
    "_executemany_gen_pipeline": "query",
    "_executemany_gen_no_pipeline": "query",
    "_stream_send_gen": "query",
    "_declare_gen": "query",
    "_start_copy_gen": "statement",
}
_PIPELINES = psycopg.Pipeline, psycopg.AsyncPipeline
_BLOCKS = (*_PIPELINES, psycopg.Transaction, psycopg.AsyncTransaction)
_FETCHES = frozenset({"_fetch_gen", "_scroll_gen"})


def call_of(connection: Any, gen: Any) -> Call | None:
    """What *gen* is about to send; None where that is no statement of the application's."""
    code = getattr(gen, "gi_code", None)
    name = "" if code is None else code.co_name
    if name in _TEXTS:
        given = gen.gi_frame.f_locals
        cursor = given.get("self")
        text = _text(connection, given.get(_TEXTS[name]))
        if name == "_declare_gen" and text is not None:
            text = f"DECLARE c CURSOR FOR {text}"
        return Call(text, cursor, opens=not connection._autocommit)  # noqa: SLF001 - its lock is held
    if name in _FETCHES and not isinstance(gen.gi_frame.f_locals.get("self"), _PIPELINES):
        return Call("FETCH c")
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
            return query.decode()
        if isinstance(query, sql.Composable):
            return query.as_string(connection)
    except Exception:  # noqa: BLE001 - the client raises it when it sends the statement
        return None
    return None


class Shared(Generic[RowT]):
    """What both APIs have; mixed into the class of an instrumented connection.

    Generic as psycopg's own connections are: an object's class is changed only for one of its
    layout.
    """

    _antipode: Tap
    pgconn: Any
    info: Any
    _pipeline: Any
    _check_connection_ok: Callable[[], None]
    _antipode_ended: Callable[[BaseException | None], None]

    def _exec_command(self, command: Any, *args: Any, **options: Any) -> Any:
        """A command of the client's own, such as BEGIN; COMMIT goes with its questions."""
        tap, more = self._antipode, ""
        text = command if isinstance(command, str) else None
        if isinstance(command, bytes):
            text = command.decode()
        elif isinstance(command, sql.Composable):
            text = command.as_string(None)
        session = self._antipode_session()
        if not tap.own:
            tap.sends(text or "", session)
            more = self._antipode_with(text or "")
            off = self.pgconn.pipeline_status == pq.PipelineStatus.OFF
            together = text == "COMMIT" and session is Session.OPEN and off
            if together and not self._antipode_standby():
                return (yield from self._antipode_commit())
            if more and off:
                return (yield from self._antipode_together(f"{text}; {more}"))
        plain: Any = super()
        result = yield from plain._exec_command(command, *args, **options)  # noqa: SLF001
        if more:
            yield from plain._exec_command(more)  # noqa: SLF001 - it is queued as well
        return result

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
        self.pgconn.send_query(_COMMITTING)
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
        """Whether replies of the application's are still to come."""
        pipeline = self._pipeline
        queued = pipeline is not None and (pipeline.command_queue or pipeline.result_queue)
        return bool(queued or self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE)

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

    def _antipode_asks_commit(self, call: Call | None) -> bool:
        """Whether a statement of the application's own commits what is open."""
        tap = self._antipode
        return (
            call is not None
            and call.cursor is not None
            and tap.commits_open(self._antipode_session())
            and self.pgconn.pipeline_status == pq.PipelineStatus.OFF
            and not self._antipode_standby()
        )

    def _antipode_left(self, error: BaseException | None, call: Call | None) -> Any:
        """What is left to ask now that a call is over; None for nothing."""
        tap = self._antipode
        session = self._antipode_session()
        self._antipode_ended(error)
        if session is Session.LOST or (error is not None and not isinstance(error, psycopg.Error)):
            tap.lost()  # Also of a call that was given up: it may be over there.
            return None
        if not tap.pending or self._antipode_busy():
            return None
        tag = ""
        if call is not None and call.cursor is not None and error is None:
            tag = call.cursor.statusmessage or ""
        standby = self._antipode_standby()
        return tap.settled(session, failed=error is not None, tag=tag, standby=standby)

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
        call = call_of(self, gen)
        if call is not None:
            before = tap.pending
            try:
                self._antipode_hold(call)
            except BaseException:
                self._antipode_unsent(before)
                raise
            if self._antipode_asks_commit(call):
                tap.commit = commit_of(self._antipode_ask(BEFORE_COMMIT))
        try:
            found = plain.wait(gen, *args, **options)
        except BaseException as error:
            self._antipode_settle(self._antipode_left(error, call), psycopg.Error)
            raise
        self._antipode_settle(self._antipode_left(None, call), psycopg.Error)
        return found

    def _antipode_ask(self, text: str) -> Rows:
        plain: Any = super()
        tap = self._antipode
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
        call = call_of(self, gen)
        if call is not None:
            before = tap.pending
            try:
                await self._antipode_hold(call)
            except BaseException:
                self._antipode_unsent(before)
                raise
            if self._antipode_asks_commit(call):
                tap.commit = commit_of(await self._antipode_ask(BEFORE_COMMIT))
        try:
            found = await plain.wait(gen, *args, **options)
        except BaseException as error:
            await self._antipode_settle(self._antipode_left(error, call), psycopg.Error)
            raise
        await self._antipode_settle(self._antipode_left(None, call), psycopg.Error)
        return found

    async def _antipode_ask(self, text: str) -> Rows:
        plain: Any = super()
        tap = self._antipode
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
