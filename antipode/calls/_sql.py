"""Calls in SQL databases, over SQLAlchemy: PostgreSQL, MySQL and MariaDB.

A duplicate waits on the row of the first call, in its database: nobody polls, and a crash leaves
nothing behind. InnoDB gives duplicates of a plain INSERT shared locks, by which two of them
deadlock when the first rolls back; ``ON DUPLICATE KEY UPDATE`` takes an exclusive one (MySQL
manual, "Locks Set by Different SQL Statements in InnoDB").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, event, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from antipode import ConfigurationError

from ._conversation import DONE, RUNNING, TABLE, Found, Key, Verdict
from ._errors import TransactionEnded
from ._replies import Reply
from ._table import CALLS

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import SessionTransaction

    SqlTarget = Engine | sessionmaker[Session] | AsyncEngine | async_sessionmaker[AsyncSession]

_COLUMNS = "caller, name, effect, digest, state"
_BOUND = ":caller, :name, :effect, :digest, :state"
#: One statement: the wait for a duplicate's row is bounded, and the setting is as it was before.
_TAKE_POSTGRESQL = text(f"""\
WITH was AS MATERIALIZED (SELECT current_setting('lock_timeout') AS v),
bounded AS MATERIALIZED (SELECT set_config('lock_timeout', :wait_ms, true) AS v FROM was),
taken AS (INSERT INTO {TABLE} ({_COLUMNS}) SELECT {_BOUND} FROM bounded
ON CONFLICT DO NOTHING RETURNING 1),
counted AS MATERIALIZED (SELECT count(*) AS n FROM taken)
SELECT n, (SELECT set_config('lock_timeout', v, true) FROM was WHERE n >= 0) FROM counted
""")  # noqa: S608 - our own names
#: The id that the statement returns says whether the row was there: the count of rows does not,
#: where the client asks for rows that were found.
_TAKE_MYSQL = f"""\
INSERT INTO {TABLE} ({_COLUMNS}) VALUES ({_BOUND})
ON DUPLICATE KEY UPDATE state = IF(LAST_INSERT_ID(1), state, state)
"""  # noqa: S608 - as above
_BOUNDED_MARIADB = "SET STATEMENT innodb_lock_wait_timeout = {seconds} FOR "
_IS_KEY = (
    (CALLS.c.caller == bindparam("k_caller"))
    & (CALLS.c.name == bindparam("k_name"))
    & (CALLS.c.effect == bindparam("k_effect"))
)
_FIND = select(
    CALLS.c.digest,
    CALLS.c.state,
    CALLS.c.status,
    CALLS.c.body,
    CALLS.c.lineage,
).where(_IS_KEY)
_KEEP = update(CALLS).where(_IS_KEY)
#: SQLSTATEs: serialization failure, deadlock; a lock that was waited for too long; no such table.
_REPEATED = {"40001", "40P01"}
_WAITED = {"55P03"}
_MISSING = {"42P01", "42S02"}
#: Numbers of MySQL's errors: the same.
_REPEATED_NUMBERS = {1213, 1020, 3572}
_WAITED_NUMBERS = {1205}
_MISSING_NUMBERS = {1146}
_DIALECTS = ("postgresql", "mysql", "mariadb")


def _key(key: Key) -> dict[str, str]:
    return {"k_caller": key.caller, "k_name": key.name, "k_effect": key.effect}


def _found(row: Any) -> Found:  # noqa: ANN401 - a row
    if row.state != DONE:
        return Found(row.digest, None)
    return Found(row.digest, Reply(row.status, row.body, row.lineage or ""))


def _kept(reply: Reply) -> dict[str, Any]:
    return {
        "state": DONE,
        "status": reply.status,
        "body": reply.body,
        "lineage": reply.lineage or None,
    }


class _Held:
    """A session while a function has it."""

    __slots__ = ("_root", "savepoint", "session")

    def __init__(self, session: Any) -> None:  # noqa: ANN401 - of threads or of asyncio
        """Its transaction begins."""
        self.session = session
        self._root: SessionTransaction | None = None
        #: What a declined call goes back to.
        self.savepoint: Any = None

    @property
    def _inner(self) -> Session:
        session = self.session
        return session.sync_session if isinstance(session, AsyncSession) else session

    def give(self) -> Any:  # noqa: ANN401 - as above
        """The session, for a function that must not end its transaction."""
        self._root = self._inner.get_transaction()
        event.listen(self._inner, "before_commit", _refuse)
        return self.session

    def returned(self) -> None:
        """The function is over, however it ended."""
        event.remove(self._inner, "before_commit", _refuse)

    def check(self) -> None:
        """The function did not fail.

        Raises:
            TransactionEnded: it rolled back the transaction in which its name was.
        """
        if self._inner.get_transaction() is not self._root:
            msg = (
                "a function of calls.once rolled back its transaction: raise an error instead, "
                "or use session.begin_nested()"
            )
            raise TransactionEnded(msg)


def _refuse(session: Session) -> None:
    """A function commits: that of a savepoint alone is its own."""
    if not session.in_nested_transaction():
        msg = (
            "a function of calls.once commits its transaction: its name and its reply belong to "
            "it, and are committed after the function returns"
        )
        raise TransactionEnded(msg)


class _Sql:
    """What the stores of threads and of asyncio share."""

    def __init__(self, make: Any, dialect: Any) -> None:  # noqa: ANN401 - makes sessions; SQLAlchemy's
        self._make = make
        self._dialect = dialect
        self._is_postgresql = dialect.name == "postgresql"

    def _taking(self, key: Key, wait_s: float) -> tuple[Any, dict[str, Any]]:
        """The statement that takes a name, and waits at most *wait_s* for who has it."""
        values: dict[str, Any] = {
            "caller": key.caller,
            "name": key.name,
            "effect": key.effect,
            "digest": key.digest,
            "state": RUNNING,
        }
        if self._is_postgresql:
            values["wait_ms"] = str(max(int(wait_s * 1000), 1))  # 0 would be no bound.
            return _TAKE_POSTGRESQL, values
        if self._dialect.name == "mariadb" or self._dialect.is_mariadb:
            seconds = max(math.ceil(wait_s), 1)
            return text(_BOUNDED_MARIADB.format(seconds=seconds) + _TAKE_MYSQL), values
        return text(_TAKE_MYSQL), values

    def verdict(self, error: BaseException) -> Verdict:
        """See :class:`Store`."""
        if not isinstance(error, DBAPIError):
            return Verdict.RAISE
        state, number = _codes(error.orig)
        missing = state in _MISSING or number in _MISSING_NUMBERS
        if missing and TABLE in str(error.orig):
            msg = (
                f"there is no table {TABLE}: make it with antipode.calls.create_table(engine), "
                "or with a migration of antipode.calls.table()"
            )
            raise ConfigurationError(msg) from error
        if error.connection_invalidated or state in _REPEATED or number in _REPEATED_NUMBERS:
            return Verdict.REPEAT
        if state in _WAITED or number in _WAITED_NUMBERS:
            return Verdict.WAITED
        return Verdict.RAISE

    def _is_taken(self, result: Any) -> bool:  # noqa: ANN401 - of the statement
        """Whether the statement found somebody's row."""
        if self._is_postgresql:
            return not result.one()[0]
        return bool(result.lastrowid)


class SqlStore(_Sql):
    """Calls of threads."""

    def begin(self) -> _Held:
        """See :class:`Store`."""
        session = self._make()
        session.connection()  # From here on the dialect knows its server.
        return _Held(session)

    def take(self, handle: _Held, key: Key, wait_s: float) -> Found | None:
        """See :class:`Store`."""
        session = handle.session
        result = session.execute(*self._taking(key, wait_s))
        if not self._is_taken(result):
            return None
        return _found(session.execute(_FIND, _key(key)).one())

    def savepoint(self, handle: _Held) -> None:
        """See :class:`Store`."""
        handle.savepoint = handle.session.begin_nested()

    def back(self, handle: _Held) -> None:
        """See :class:`Store`."""
        handle.savepoint.rollback()

    def keep(self, handle: _Held, key: Key, reply: Reply) -> None:
        """See :class:`Store`."""
        handle.session.execute(_KEEP, {**_key(key), **_kept(reply)})

    def commit(self, handle: _Held) -> None:
        """See :class:`Store`."""
        try:
            handle.session.commit()
        finally:
            handle.session.close()

    def rollback(self, handle: _Held) -> None:
        """See :class:`Store`."""
        handle.session.close()


class AsyncSqlStore(_Sql):
    """Calls of asyncio."""

    async def begin(self) -> _Held:
        """See :class:`Store`."""
        session = self._make()
        await session.connection()
        return _Held(session)

    async def take(self, handle: _Held, key: Key, wait_s: float) -> Found | None:
        """See :class:`Store`."""
        session = handle.session
        result = await session.execute(*self._taking(key, wait_s))
        if not self._is_taken(result):
            return None
        return _found((await session.execute(_FIND, _key(key))).one())

    async def savepoint(self, handle: _Held) -> None:
        """See :class:`Store`."""
        handle.savepoint = await handle.session.begin_nested()

    async def back(self, handle: _Held) -> None:
        """See :class:`Store`."""
        await handle.savepoint.rollback()

    async def keep(self, handle: _Held, key: Key, reply: Reply) -> None:
        """See :class:`Store`."""
        await handle.session.execute(_KEEP, {**_key(key), **_kept(reply)})

    async def commit(self, handle: _Held) -> None:
        """See :class:`Store`."""
        try:
            await handle.session.commit()
        finally:
            await handle.session.close()

    async def rollback(self, handle: _Held) -> None:
        """See :class:`Store`."""
        await handle.session.close()


def _codes(error: object) -> tuple[str | None, int | None]:
    """SQLSTATE and number of a driver's error, as far as it has them."""
    state: str | None = None
    for each in (error, getattr(error, "__cause__", None)):
        state = state or getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
    first = error.args[0] if isinstance(error, Exception) and error.args else None
    return state, first if isinstance(first, int) else None


def sql_store(target: SqlTarget) -> SqlStore | AsyncSqlStore:
    """The calls of *target*, an engine or a maker of sessions, of threads or of asyncio.

    Raises:
        ConfigurationError: its database is none of those that are supported.
    """
    if isinstance(target, AsyncEngine | async_sessionmaker):
        make_async = (
            async_sessionmaker(target, expire_on_commit=False)
            if isinstance(target, AsyncEngine)
            else target
        )
        return AsyncSqlStore(make_async, _dialect(make_async))
    make = target if isinstance(target, sessionmaker) else sessionmaker(target)
    return SqlStore(make, _dialect(make))


def _dialect(make: Any) -> Any:  # noqa: ANN401 - a maker of either kind; SQLAlchemy's
    """The dialect of the engine of whose sessions *make* is."""
    bind = make.kw.get("bind")
    name = "" if bind is None else bind.dialect.name
    if bind is None or name not in _DIALECTS:
        msg = (
            f"calls.once has no database {name!r}: an engine, or a sessionmaker with bind=, of "
            f"{', '.join(_DIALECTS)}"
        )
        raise ConfigurationError(msg)
    return bind.dialect
