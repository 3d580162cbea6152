"""asyncpg connections: positions after commits, reads that wait for minimum positions.

All that a connection, its statements and cursors send goes through its protocol, which an observer
stands before. A commit goes out with its questions in one packet; the answers come as notices, for
a packet of several statements shows no rows. Import only where asyncpg is.
"""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from typing import TYPE_CHECKING, Any

import asyncpg

from antipode.shim import Verdict, drive_async
from antipode_shims.postgresql._endpoint import backend_of
from antipode_shims.postgresql._look import (
    BEFORE,
    NOTICES,
    SAMPLE,
    Refused,
)
from antipode_shims.postgresql._statements import READS

from .holding import AsyncHolding, Call, HeldRead, Late, clients_own
from .tap import Commit, Session, commit_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antipode_shims.postgresql._look import Backend
    from antipode_shims.postgresql._position import Rows

    from .tap import Tap

#: What the client raises of a server's error, and of a call that it did not send.
ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
_REFUSALS = (asyncpg.PostgresError, asyncpg.InterfaceError)
#: What the server may say of the language of the notices, where it was taken away meanwhile.
_UNTOLD = (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedObjectError)
#: An error of the source of rows ends their copy, which the server undoes; one of these may be of
#: the connection.
_UNDOING = Exception
_UNKNOWN = (asyncio.TimeoutError, OSError)
_COMMITS = frozenset(["COMMIT", "COMMIT;"])
_HEARD = "antipode "
#: Fails in a transaction that failed, and takes no snapshot in one that did not.
_STANDS = "SHOW transaction_isolation"
#: How statements begin that let a session forget what is prepared.
_FORGETS = ("DEALLOC", "DISCARD")
#: How many questions stay prepared; those for promises are never the same.
_MOST_ASKED = 8
_TELLING = (
    "DO $antipode$ BEGIN RAISE INFO '{head}%', (SELECT row_to_json(q) FROM ({sql}) AS q);"
    " END $antipode$"
)
_TOLD = _TELLING.format(head=_HEARD, sql=SAMPLE)
#: In one packet: whether the transaction wrote, its commit, the position of that; by what asks it.
_COMMITTING = {
    before: f"{_TELLING.format(head=_HEARD, sql=before)}; COMMIT; {_TOLD}" for before in BEFORE
}


class Observer:
    """Stands before the protocol of one connection.

    Attributes:
        failed: whether the open transaction failed; None after an error, until the server is asked:
            the client raises the same errors for values that it never sent, and keeps what the
            server says of the session to itself.
        apart: whether what is asked about a commit goes in packets of its own.
    """

    def __init__(self, plain: Any, connection: Any) -> None:
        """Of *connection*, whose protocol is *plain*."""
        self.plain = plain
        self.failed: bool | None = False
        self.apart = False
        self.asked: dict[str, Any] = {}
        self._connection = weakref.ref(connection)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    async def query(self, query: str, *args: Any, **options: Any) -> Any:
        """A simple query, perhaps of several statements."""
        connection: Any = self._connection()
        reset = connection.get_reset_query()
        if reset and query.endswith(reset):  # A pool takes the connection back.
            if query == reset:
                return await self.plain.query(query, *args, **options)
            return await self._call("ROLLBACK", lambda: self.plain.query(query, *args, **options))

        async def send() -> Any:
            if query in _COMMITS and self._together(connection):
                return await self._commit(connection, *args, **options)
            return await self.plain.query(query, *args, **options)

        return await self._call(query, send)

    def _together(self, connection: Any) -> bool:
        session = connection._antipode_session()  # noqa: SLF001
        alone = self.apart or connection._antipode_standby()  # noqa: SLF001
        tap = connection._antipode  # noqa: SLF001
        return session is Session.OPEN and not (alone or tap.only_read)

    async def _commit(self, connection: Any, *args: Any, **options: Any) -> str:
        """Commit, and ask, in one packet."""
        tap = connection._antipode  # noqa: SLF001
        heard = _hearing[connection] = []
        try:
            await self.plain.query(_COMMITTING[tap.before_commit], *args, **options)
        except _UNTOLD:
            tap.shim.notices = None
            raise
        finally:
            del _hearing[connection]
        if heard:
            commit = commit_of(heard)
            tap.commit = Commit(commit.wrote, commit.flushed, heard[1] if heard[1:] else None)
        return "COMMIT"

    async def prepare(self, stmt_name: str, query: str, *args: Any, **options: Any) -> Any:
        """A statement is parsed, which takes the snapshot of its transaction."""
        connection: Any = self._connection()
        if connection._antipode.own:  # noqa: SLF001
            return await self.plain.prepare(stmt_name, query, *args, **options)
        await self._ask_how_it_stands(query)
        try:
            await connection._antipode_before_parse(query)  # noqa: SLF001
            return await self.plain.prepare(stmt_name, query, *args, **options)
        except Refused as refused:
            self._erred()
            raise clients_own(refused) from None
        except BaseException:
            self._erred()
            raise

    async def bind_execute(self, state: Any, *args: Any, **options: Any) -> Any:
        """A prepared statement."""
        return await self._call(
            state.query, lambda: self.plain.bind_execute(state, *args, **options)
        )

    async def bind_execute_many(self, state: Any, *args: Any, **options: Any) -> Any:
        """A prepared statement, many times, in one transaction."""
        return await self._call(
            state.query, lambda: self.plain.bind_execute_many(state, *args, **options)
        )

    async def bind(self, state: Any, *args: Any, **options: Any) -> Any:
        """A cursor is declared."""
        return await self._call(
            f"DECLARE c CURSOR FOR {state.query}", lambda: self.plain.bind(state, *args, **options)
        )

    async def execute(self, state: Any, *args: Any, **options: Any) -> Any:
        """A cursor is read."""
        return await self._call("FETCH c", lambda: self.plain.execute(state, *args, **options))

    async def copy_in(self, statement: str, *args: Any, **options: Any) -> Any:
        """Rows are copied in."""
        return await self._call(
            statement, lambda: self.plain.copy_in(statement, *args, **options), fed=True
        )

    async def copy_out(self, statement: str, *args: Any, **options: Any) -> Any:
        """Rows are copied out."""
        return await self._call(statement, lambda: self.plain.copy_out(statement, *args, **options))

    async def _call(
        self, sql: str, send: Callable[[], Awaitable[Any]], *, fed: bool = False
    ) -> Any:
        """Hold *sql* back before, record what it committed after; *fed* by the application."""
        connection: Any = self._connection()
        tap = connection._antipode  # noqa: SLF001
        if tap.own:
            return await send()
        if sql.lstrip()[:7].upper() in _FORGETS:
            self.asked.clear()
        await self._ask_how_it_stands(sql)
        before = tap.pending
        try:
            if (steps := connection._antipode_hold(Call(sql))) is not None:  # noqa: SLF001
                await drive_async(steps, connection)
            session = connection._antipode_session()  # noqa: SLF001
            if not (tap.shim.notices and sql in _COMMITS) and tap.commits_open(session):
                await self._ask_before(sql, connection)
        except Refused as refused:
            self._erred()
            connection._antipode_unsent(before)  # noqa: SLF001
            raise clients_own(refused) from None
        except BaseException:
            connection._antipode_unsent(before)  # noqa: SLF001
            raise
        try:
            found = await send()
        except BaseException as error:
            self._erred()
            undone = isinstance(error, _UNDOING if fed else _REFUSALS)
            undone = undone and not isinstance(error, _UNKNOWN)
            left = connection._antipode_left(error, "", undone=undone)  # noqa: SLF001
            await connection._antipode_settle(left, ERRORS)  # noqa: SLF001
            raise
        self.failed = False
        await connection._antipode_settle(connection._antipode_left(None, _tag(found)), ERRORS)  # noqa: SLF001
        return found

    async def _ask_before(self, sql: str, connection: Any) -> None:
        """Ask before *sql* commits what its packet cannot ask."""
        tap = connection._antipode  # noqa: SLF001
        if sql in _COMMITS:
            if connection._antipode_standby():  # noqa: SLF001
                return
            if tap.shim.notices is None:
                tap.shim.notices = (await connection._antipode_ask(NOTICES))[0]["may"] == "t"  # noqa: SLF001
            self.apart = not tap.shim.notices
            if not self.apart:
                return
        tap.commit = commit_of(await connection._antipode_ask(tap.before_commit))  # noqa: SLF001

    def _erred(self) -> None:
        """A call ended in an error, of the server's or of the client's own."""
        self.failed = False if not self.plain.is_in_transaction() else self.failed or None

    async def _ask_how_it_stands(self, sql: str) -> None:
        """Learn before *sql*, after an error in a transaction, whether that has failed.

        One round trip; none before the ROLLBACK that mostly follows, which is right for both.
        """
        alone = ";" not in sql.rstrip("; \t\r\n")
        if self.failed is not None or (alone and sql.lstrip()[:8].upper() == "ROLLBACK"):
            return
        try:
            await self.plain.query(_STANDS, None)
        except asyncpg.InFailedSQLTransactionError:
            self.failed = True
        else:
            self.failed = False


def _tag(found: Any) -> str:
    """What the server says it did, where the client shows it."""
    if isinstance(found, tuple) and len(found) > 1:
        found = found[1]
    if isinstance(found, bytes):
        return found.decode()
    return found if isinstance(found, str) else ""


_taps: weakref.WeakKeyDictionary[Any, Tap] = weakref.WeakKeyDictionary()
#: What connections whose commit is in flight were told with it.
_hearing: weakref.WeakKeyDictionary[Any, Rows] = weakref.WeakKeyDictionary()


class AsyncpgConnection(AsyncHolding):
    """Mixed into the class of an instrumented ``asyncpg.Connection``, which has no room of its own.

    So it has no attributes either.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _protocol: Any

    @property
    def _antipode(self) -> Tap:
        return _taps[self]

    @_antipode.setter
    def _antipode(self, tap: Tap) -> None:
        _taps[self] = tap
        if not isinstance(self._protocol, Observer):
            self._protocol = Observer(self._protocol, self)

    def _antipode_forget(self) -> None:
        """Be the client's own again."""
        if isinstance(self._protocol, Observer):
            self._protocol = self._protocol.plain
        _taps.pop(self, None)

    def _process_log_message(self, fields: Any, last_query: Any) -> Any:
        """A notice came: the answer to a question, or one for the application."""
        heard = _hearing.get(self)
        if heard is not None and str(fields.get("M", "")).startswith(_HEARD):
            heard.append(_texts(json.loads(fields["M"][len(_HEARD) :])))
            return None
        plain: Any = super()
        return plain._process_log_message(fields, last_query)  # noqa: SLF001

    def _antipode_session(self) -> Session:
        protocol = self._protocol
        if protocol is None or protocol.is_closed():
            return Session.LOST
        if not protocol.is_in_transaction():
            return Session.IDLE
        return Session.FAILED if protocol.failed else Session.OPEN

    def _antipode_backend(self) -> Backend:
        """The connection's process at its server."""
        plain: Any = self
        address = plain._transport.get_extra_info("sockname")  # noqa: SLF001
        return backend_of(plain.get_server_pid(), address)

    def _antipode_standby(self) -> bool:
        """Whether the server says, from PostgreSQL 14 on, that it takes no writes."""
        return bool(getattr(self._protocol.get_settings(), "in_hot_standby", "off") == "on")

    async def _antipode_ask(self, text: str) -> Rows:
        """Send a question of the library's own, and receive its rows.

        Raises:
            Refused: the server answered with an error.
            Late: the time that a floor leaves is up.
            asyncpg.PostgresConnectionError: the connection is lost.
        """
        plain: Any = self
        tap = self._antipode
        left_s = None if tap.until_s is None else max(tap.until_s - time.monotonic(), 0.001)
        selects = text.startswith("SELECT")
        sql = f"SELECT row_to_json(q)::text AS found FROM ({text}) AS q" if selects else text
        tap.own = True
        try:
            rows = await self._antipode_fetch(sql, left_s)
        except asyncio.TimeoutError:
            raise Late("the server does not answer in time") from None
        except asyncpg.PostgresError as error:
            if plain.is_closed():
                raise
            raise Refused(str(error), getattr(error, "sqlstate", None) or "") from error
        finally:
            tap.own = False
        if selects:
            return [_texts(json.loads(row["found"])) for row in rows]
        return [_texts(dict(row)) for row in rows]

    async def _antipode_fetch(self, sql: str, timeout_s: float | None) -> Any:
        """Rows, below what others patch, and beside a statement of the application's.

        That may be prepared already, without a name: what is asked has one. Where the application
        switched the cache of statements off, as for PgBouncer, nothing has a name, and the client
        prepares each statement in the packet that executes it.
        """
        plain: Any = self
        observer = plain._protocol  # noqa: SLF001
        state = observer.asked.get(sql)
        if state is None:
            named = plain._stmt_cache_enabled  # noqa: SLF001
            state = await plain._get_statement(  # noqa: SLF001
                sql, timeout_s, named=named, use_cache=False, ignore_custom_codec=True
            )
            if len(observer.asked) < _MOST_ASKED:
                observer.asked[sql] = state
        rows = await observer.plain.bind_execute(state, (), "", 0, False, timeout_s)  # noqa: FBT003 - the client's own
        if sql not in observer.asked and state.name:
            await observer.plain.close_statement(state, timeout_s)
        return rows

    async def _antipode_before_parse(self, sql: str) -> None:
        """Wait where the snapshot is taken now; whether *sql* may be executed is judged later."""
        tap, session = self._antipode, self._antipode_session()
        held = tap.parses(sql, session)
        verdict = None if held is None else tap.judge(held, READS, session)
        if session is Session.IDLE:
            tap.parsed(held if verdict is Verdict.PASS else None)
        if held is None or verdict is not Verdict.ASK or not tap.unread:
            return
        read = HeldRead(self, held, READS, session, piped=False)
        try:
            await drive_async(read.limited(read.opened()), self)
        finally:
            tap.stale_read.failed()  # It is counted once it is executed.

    def _antipode_left(self, error: BaseException | None, tag: str, *, undone: bool = False) -> Any:
        """What is left to ask now that a call is over; None for nothing.

        Args:
            error: that it ended with.
            tag: what the server says it did.
            undone: whether the server is known to have done nothing of what ended so.
        """
        tap = self._antipode
        session = self._antipode_session()
        tap.ended(error)
        if session is Session.LOST or (error is not None and not undone):
            tap.lost()  # Also of a call that was given up: it may be over there.
            return None
        if not tap.pending:
            return None
        standby = self._antipode_standby()
        return tap.settled(session, failed=error is not None, tag=tag, standby=standby)

    def _antipode_end(self) -> None:
        """Close the connection."""
        plain: Any = self
        plain.terminate()

    async def close(self, **options: Any) -> None:
        """Close; the session is over."""
        plain: Any = super()
        await plain.close(**options)
        self._antipode.closed()

    def terminate(self) -> None:
        """Close at once; the session is over."""
        plain: Any = super()
        plain.terminate()
        self._antipode.closed()


def _texts(row: dict[str, Any]) -> dict[str, str | None]:
    """A row as libpq shows it."""
    return {name: _text(value) for name, value in row.items()}


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "t" if value else "f"
    return None if value is None else str(value)
