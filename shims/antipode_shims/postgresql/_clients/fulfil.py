"""``fulfil``: keep a promise in the transaction of its data, whatever the client."""

from __future__ import annotations

import asyncio
import sys
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
from antipode_shims.postgresql._promises import check_name, explained, recording
from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

if TYPE_CHECKING:
    from collections.abc import Sequence

_VENDOR = "postgresql"


def fulfil(handle: Any, promise: Promise | str, *, table: str | None = None) -> None:
    """Record in the open transaction of *handle* that *promise* is fulfilled: one statement.

    With the transaction's commit the record becomes visible together with its data, here and at
    each standby; a rollback takes it along. A second fulfilment, of a message that was delivered
    again, changes nothing.

    Args:
        handle: a SQLAlchemy ``Connection`` or ``Session``, a connection or cursor of psycopg or
            psycopg2, or Django's ``connection``, instrumented or not.
        promise: the promise, or its ``token``.
        table: of the records; default that of the clients that this process registered for the
            promise's datastore, else ``antipode_promises``.

    Raises:
        PromiseAbandoned: nobody waits for it any more: let the transaction roll back.
        ConfigurationError: no transaction is open and each statement commits on its own, the
            table is missing, the connection is another datastore's, or *handle* is none.
        LineageDecodeError: *promise* is a text and no token.
    """
    given = Promise.parse(promise) if isinstance(promise, str) else promise
    _record(handle, given, table)
    if (shim := sweeper(given, BasePostgreSQLShim)) is not None:
        shim.sweep_promises()


def _record(handle: Any, promise: Promise, table: str | None) -> None:
    connection = sqlalchemy_connection(handle, "PostgreSQL", (_VENDOR,))
    raw: Any
    if connection is None:
        raw = driver_connection(handle, _VENDOR)
    else:
        raw = connection.connection.driver_connection
    if connection is None and _is_asynchronous(raw):
        raise ConfigurationError(WRONG_API)
    client = raw if connection is None else connection.connection.dbapi_connection
    sql, where = _prepared(raw, promise, table, alone=getattr(client, "autocommit", True))
    try:
        if connection is not None:
            row = connection.exec_driver_sql(sql).fetchone()
        else:
            with raw.cursor(**_plain_cursor(raw)) as cursor:
                cursor.execute(sql)
                row = cursor.fetchone()
    except Exception as error:
        _explain(error, promise, where)
        raise
    _check(row, promise)


async def fulfil_async(handle: Any, promise: Promise | str, *, table: str | None = None) -> None:
    """The asyncio twin of :func:`fulfil`.

    Args:
        handle: a SQLAlchemy ``AsyncConnection`` or ``AsyncSession``, a connection or cursor of
            psycopg's asyncio API, or a connection of asyncpg.
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
        await _record_async(driver_connection(handle, _VENDOR), given, table)
    if (shim := sweeper(given, BasePostgreSQLShim)) is not None:
        await asyncio.to_thread(shim.sweep_promises)


async def _record_async(raw: Any, promise: Promise, table: str | None) -> None:
    if not _is_asynchronous(raw):
        raise ConfigurationError(WRONG_API)
    sql, where = _prepared(raw, promise, table, alone=getattr(raw, "autocommit", True))
    try:
        if (fetch := getattr(raw, "fetchrow", None)) is not None:  # asyncpg's.
            row = await fetch(sql)
        else:
            async with raw.cursor(**_plain_cursor(raw)) as cursor:
                await cursor.execute(sql)
                row = await cursor.fetchone()
    except Exception as error:
        _explain(error, promise, where)
        raise
    _check(row, promise)


def _prepared(raw: Any, promise: Promise, table: str | None, *, alone: bool) -> tuple[str, str]:
    """What to send on the driver's connection *raw*, and the table that it is for.

    Raises:
        ConfigurationError: no transaction is open there, and none would be opened: each statement
            commits *alone*.
    """
    if _is_idle(raw) and alone:
        raise ConfigurationError(NO_TRANSACTION)
    where = _table(raw, promise, table)
    return recording(where, promise, fulfilled=True), where


def _is_idle(raw: Any) -> bool:
    """Whether no transaction is open.

    Raises:
        ConfigurationError: *raw* is no connection of a client that is supported.
    """
    if _is_of("asyncpg", raw, "Connection"):
        return not raw.is_in_transaction()
    if _is_of("psycopg", raw, "Connection", "AsyncConnection") or _is_of(
        "psycopg2.extensions", raw, "connection"
    ):
        return int(raw.info.transaction_status) == 0
    msg = f"{type(raw).__qualname__} is no connection of psycopg 3, asyncpg or psycopg2"
    raise ConfigurationError(msg)


def _check(row: Sequence[Any] | None, promise: Promise) -> None:
    """Refuse what was abandoned before.

    Raises:
        PromiseAbandoned: it was.
    """
    if row is not None and not row[0]:
        raise abandoned(promise)


def _explain(error: Exception, promise: Promise, table: str) -> None:
    """Say more of an error that the table explains.

    Raises:
        ConfigurationError: it does.
    """
    cause = client_error(error)
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
    better = explained(promise.datastore, table, code, str(cause))
    if better is not None:
        raise better from error


def _table(raw: Any, promise: Promise, table: str | None) -> str:
    """Where its record belongs.

    Raises:
        ConfigurationError: the connection is of another datastore, or its clients disagree.
    """
    check_datastore(raw, promise)
    if table is not None:
        return check_name(table)
    return table_of(promise, BasePostgreSQLShim, lambda shim: shim.promise_table)


def _is_asynchronous(raw: Any) -> bool:
    return _is_of("psycopg", raw, "AsyncConnection") or _is_of("asyncpg", raw, "Connection")


def _is_of(module: str, raw: Any, *names: str) -> bool:
    client = sys.modules.get(module)
    return client is not None and isinstance(raw, tuple(getattr(client, name) for name in names))


def _plain_cursor(raw: Any) -> dict[str, Any]:
    """What asks for rows that are tuples, whatever the application prefers."""
    if _is_of("psycopg2.extensions", raw, "connection"):
        return {"cursor_factory": sys.modules["psycopg2.extensions"].cursor}
    return {"row_factory": sys.modules["psycopg"].rows.tuple_row}
