"""``fulfil``: keep a promise in the transaction of its data, whatever the client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Promise
from antipode_shims._sql.promises import (
    NO_TRANSACTION,
    WRONG_API,
    abandoned,
    check_datastore,
    client_error,
    driver_connection,
    sqlalchemy_connection,
    sweeper,
    table_of,
)
from antipode_shims.mysql._clients.detect import client_of
from antipode_shims.mysql._endpoint.settings import errno_of
from antipode_shims.mysql._shim.base import BaseMySQLShim

from .records import REFUSED, check_name, explained, recording

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_NO_SAVEPOINT = 1305
_CURSORS = {
    "SyncConnection": "pymysql.cursors",
    "AsyncConnection": "aiomysql.cursors",
    "NativeConnection": "MySQLdb.cursors",
}
_VENDOR = "mysql"


#: Yields a statement, is sent how many rows it changed.
Steps = Generator[str, int, None]


def fulfil(handle: Any, promise: Promise | str, *, table: str | None = None) -> None:
    """Record in the open transaction of *handle* that *promise* is fulfilled: one statement.

    With the transaction's commit the record becomes visible together with its data, here and at
    each replica; a rollback takes it along. A second fulfilment, of a message that was delivered
    again, changes nothing.

    Args:
        handle: a SQLAlchemy ``Connection`` or ``Session``, a connection or cursor of PyMySQL or
            mysqlclient, or Django's ``connection``, instrumented or not.
        promise: the promise, or its ``token``.
        table: of the records; default that of the clients that this process registered for the
            promise's datastore, else ``antipode_promises`` in the connection's database.

    Raises:
        PromiseAbandoned: nobody waits for it any more: let the transaction roll back.
        ConfigurationError: no transaction is open and each statement commits on its own, the
            table is missing, the connection is another datastore's, or *handle* is none.
        LineageDecodeError: *promise* is a text and no token.
    """
    given = Promise.parse(promise) if isinstance(promise, str) else promise
    _record(handle, given, table)
    if (shim := sweeper(given, BaseMySQLShim)) is not None:
        shim.sweep_promises()


def _record(handle: Any, promise: Promise, table: str | None) -> None:
    if (connection := _of_sqlalchemy(handle)) is not None:
        raw: Any = connection.connection.driver_connection
        steps = _steps(raw, promise, table)
        _run(steps, lambda sql: int(connection.exec_driver_sql(sql).rowcount))
        return
    raw = driver_connection(handle, _VENDOR)
    if client_of(raw).name == "AsyncConnection":
        raise ConfigurationError(WRONG_API)
    _run(_steps(raw, promise, table), lambda sql: _by_driver(raw, sql))


async def fulfil_async(handle: Any, promise: Promise | str, *, table: str | None = None) -> None:
    """The asyncio twin of :func:`fulfil`.

    Args:
        handle: a SQLAlchemy ``AsyncConnection`` or ``AsyncSession``, or a connection or cursor of
            aiomysql.
        promise: as :func:`fulfil`.
        table: as :func:`fulfil`.

    Raises:
        PromiseAbandoned: as :func:`fulfil`.
        ConfigurationError: as :func:`fulfil`.
        LineageDecodeError: as :func:`fulfil`.
    """
    given = Promise.parse(promise) if isinstance(promise, str) else promise
    if (run_sync := getattr(handle, "run_sync", None)) is not None:
        await run_sync(_record, given, table)
    else:
        raw = driver_connection(handle, _VENDOR)
        if client_of(raw).name != "AsyncConnection":
            raise ConfigurationError(WRONG_API)
        await _run_async(_steps(raw, given, table), lambda sql: _by_aiomysql(raw, sql))
    if (shim := sweeper(given, BaseMySQLShim)) is not None:
        await asyncio.to_thread(shim.sweep_promises)


def _of_sqlalchemy(handle: Any) -> Any:
    return sqlalchemy_connection(handle, "MySQL or MariaDB", ("mysql", "mariadb"))


def _steps(raw: Any, promise: Promise, table: str | None) -> Steps:
    """What is said on the driver's connection *raw*."""
    where = _table(raw, promise, table)
    if not _gathers(raw):
        yield from _check_transaction()
    try:
        changed = yield recording(where, promise, fulfilled=True)
    except Exception as error:
        cause = client_error(error)
        better = explained(promise.datastore, where, errno_of(cause), str(cause))
        if better is None:
            raise
        raise better from error
    if changed == REFUSED:
        raise abandoned(promise)


def _gathers(raw: Any) -> bool:
    """Whether the server commits nothing of this session on its own, for sure."""
    asked = getattr(raw, "get_autocommit", None)
    return asked is not None and not asked()


def _check_transaction() -> Steps:
    """Make sure that a transaction is open where each statement else commits on its own.

    The clients' own flags cannot show it: an error, which may have ended it, carries none.

    Raises:
        ConfigurationError: none is.
    """
    yield "SAVEPOINT antipode_promise"
    try:
        yield "RELEASE SAVEPOINT antipode_promise"
    except Exception as error:
        if errno_of(client_error(error)) != _NO_SAVEPOINT:
            raise
        raise ConfigurationError(NO_TRANSACTION) from error


def _table(raw: Any, promise: Promise, table: str | None) -> str:
    """Where its record belongs.

    Raises:
        ConfigurationError: the connection is of another datastore, or its clients disagree.
    """
    check_datastore(raw, promise)
    if table is not None:
        return check_name(table)
    return table_of(promise, BaseMySQLShim, lambda shim: shim.own_promises)


def _by_driver(raw: Any, sql: str) -> int:
    cursor = raw.cursor(_plain_cursor(raw))
    try:
        cursor.execute(sql)
        return int(cursor.rowcount)
    finally:
        cursor.close()


async def _by_aiomysql(raw: Any, sql: str) -> int:
    async with raw.cursor(_plain_cursor(raw)) as cursor:
        await cursor.execute(sql)
        return int(cursor.rowcount)


def _plain_cursor(raw: Any) -> Any:
    """The client's class of cursors that buffer tuples, whatever the application prefers."""
    return sys.modules[_CURSORS[client_of(raw).name]].Cursor


def _run(steps: Steps, send: Callable[[str], int]) -> None:
    """Send what *steps* yield."""
    talk = _Talk(steps)
    while talk.sql is not None:
        try:
            changed = send(talk.sql)
        except Exception as error:  # noqa: BLE001, PERF203 - the steps raise what they do not know
            talk.failed(error)
        else:
            talk.answered(changed)


async def _run_async(steps: Steps, send: Callable[[str], Awaitable[int]]) -> None:
    talk = _Talk(steps)
    while talk.sql is not None:
        try:
            changed = await send(talk.sql)
        except Exception as error:  # noqa: BLE001, PERF203 - as above
            talk.failed(error)
        else:
            talk.answered(changed)


class _Talk:
    """What is sent now; None at the end."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.sql: str | None = None
        self._go(lambda: next(steps))

    def answered(self, changed: int) -> None:
        self._go(lambda: self._steps.send(changed))

    def failed(self, error: Exception) -> None:
        self._go(lambda: self._steps.throw(error))

    def _go(self, step: Callable[[], str]) -> None:
        try:
            self.sql = step()
        except StopIteration:
            self.sql = None
