"""Table 2 over a SQLAlchemy engine: values with their stored lineage."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import register
from antipode_shims._sql.promises import TABLE
from antipode_shims._sql.table2 import AsyncTable2, SyncTable2
from antipode_shims.postgresql._clients.fulfil import fulfil, fulfil_async
from antipode_shims.postgresql._clients.sqlalchemy import engine_of, instrumented, settings_of
from antipode_shims.postgresql._look import converse, converse_async
from antipode_shims.postgresql._table2 import Layout, PostgreSQLTable2

if TYPE_CHECKING:
    from antipode import Lineage, Promise
    from antipode.shim import OnRead, ReadsFrom
    from antipode_shims._sql.table2 import Key, Statement
    from antipode_shims.postgresql._endpoint import ServerSettings

ShimT = TypeVar("ShimT", bound=PostgreSQLTable2)


class PostgreSQLShim(PostgreSQLTable2, SyncTable2):
    """Table 2 of one server, synchronous. Made by :func:`shim`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of with the shim."""
        super().__init__(datastore, settings, **options)
        self.engine, self.owned = engine, owned

    def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """The value of *key* over *connection*, and what it depends on."""
        value, lineage = self.run(connection, self.read_steps(key))
        raw = connection.connection.driver_connection
        try:
            state = converse(self.look(), raw._antipode_ask)  # noqa: SLF001
        except Exception:  # noqa: BLE001 - the value is there
            state = None
        return value, lineage.merge(self.covering(state, raw._antipode_backend().pid))  # noqa: SLF001

    def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """Fulfil *promise* in the transaction of *connection*."""
        fulfil(connection, promise)

    def send(self, connection: Any, statement: Statement) -> Any:
        """The result of *statement*."""
        return connection.execute(_text(statement), statement.parameters)

    def detach(self) -> None:
        """Leave the engine as it was. Idempotent."""
        instrumented.detach(self)


class PostgreSQLAsyncShim(PostgreSQLTable2, AsyncTable2):
    """Table 2 of one server over asyncio. Made by :func:`shim_async`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of by :meth:`aclose`."""
        super().__init__(datastore, settings, **options)
        self.engine, self.owned = engine, owned

    async def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """As :meth:`PostgreSQLShim.read_by`."""
        value, lineage = await self.run(connection, self.read_steps(key))
        raw: Any = (await connection.get_raw_connection()).driver_connection
        try:
            state = await converse_async(self.look(), raw._antipode_ask)  # noqa: SLF001
        except Exception:  # noqa: BLE001 - the value is there
            state = None
        return value, lineage.merge(self.covering(state, raw._antipode_backend().pid))  # noqa: SLF001

    async def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """As :meth:`PostgreSQLShim.fulfil_by`."""
        await fulfil_async(connection, promise)

    async def send(self, connection: Any, statement: Statement) -> Any:
        """As :meth:`PostgreSQLShim.send`."""
        return await connection.execute(_text(statement), statement.parameters)

    def detach(self) -> None:
        """Leave the engine as it was. Idempotent."""
        instrumented.detach(self)


def _text(statement: Statement) -> Any:
    """The statement in SQLAlchemy's placeholders, which each driver's dialect spells."""
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    return sqlalchemy.text(statement.sql)


def shim(
    datastore: str,
    engine: Any,
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    table: str = "antipode_kv",
    tombstones: str = "antipode_tombstone",
    promise_table: str = TABLE,
) -> PostgreSQLShim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one PostgreSQL server.

    Values lie in tables of the library's own, which are yours to make: ``ddl()`` of the result has
    the statements. Keys and values are bytes; text is stored as UTF-8.

    Args:
        datastore: the name that every service spells alike.
        engine: a ``sqlalchemy.Engine``, or the URL of a server.
        reads_from: whether that server is a primary or a standby.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        one_server: as :func:`instrument_connection`.
        table: where the values lie, perhaps ``schema.table``.
        tombstones: the table for the lineages of deletions.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.

    Raises:
        ConfigurationError: an asyncio engine, another database's, a bad option, or SQLAlchemy or
            the driver is missing.
    """
    used, owned = engine_of(engine, asyncio=False)
    made = PostgreSQLShim(
        datastore,
        used,
        settings_of(used),
        owned=owned,
        layout=Layout(table, tombstones),
        reads_from=reads_from,
        on_read=on_read,
        one_server=one_server,
        promise_table=promise_table,
    )
    return _attached(used, made)


def shim_async(
    datastore: str,
    engine: Any,
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    table: str = "antipode_kv",
    tombstones: str = "antipode_tombstone",
    promise_table: str = TABLE,
) -> PostgreSQLAsyncShim:
    """The asyncio twin of :func:`shim`, over an ``AsyncEngine``.

    ``write``, ``append``, ``read`` and ``delete`` are coroutines. Close it with ``await aclose()``.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    used, owned = engine_of(engine, asyncio=True)
    made = PostgreSQLAsyncShim(
        datastore,
        used,
        settings_of(used),
        owned=owned,
        layout=Layout(table, tombstones),
        reads_from=reads_from,
        on_read=on_read,
        one_server=one_server,
        promise_table=promise_table,
    )
    return _attached(used, made)


def _attached(engine: Any, made: ShimT) -> ShimT:
    try:
        instrumented.attach(engine, made)
    except ConfigurationError:
        made.close()
        raise
    register(made)
    return made
