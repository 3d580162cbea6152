"""Table 2 over a SQLAlchemy engine: values with their stored lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import register
from antipode_shims._sql.promises import TABLE
from antipode_shims._sql.table2 import AsyncTable2, SyncTable2
from antipode_shims.mysql._clients.sqlalchemy import engine_of, instrumented, settings_of
from antipode_shims.mysql._position.flavor import Flavor
from antipode_shims.mysql._promises.fulfil import fulfil, fulfil_async
from antipode_shims.mysql._table2 import Layout, MySQLTable2, spelled

if TYPE_CHECKING:
    from antipode import Lineage, Promise
    from antipode.shim import OnRead, ReadsFrom
    from antipode_shims._sql.table2 import Key, Statement
    from antipode_shims.mysql._endpoint.settings import ServerSettings


ShimT = TypeVar("ShimT", bound=MySQLTable2)


class MySQLShim(MySQLTable2, SyncTable2):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Table 2 of one server, synchronous. Made by :func:`shim`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of with the shim."""
        super().__init__(datastore, settings, **options)
        self.engine, self.owned = engine, owned

    def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """The value of *key* over *connection*, and what it depends on."""
        found: tuple[Any, Lineage] = self.run(connection, self.read_steps(key, _flavor(connection)))
        return found

    def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """Fulfil *promise* in the transaction of *connection*."""
        fulfil(connection, promise)

    def detach(self) -> None:
        """Leave the engine as it was. Idempotent."""
        instrumented.detach(self)


class MySQLAsyncShim(MySQLTable2, AsyncTable2):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Table 2 of one server over asyncio. Made by :func:`shim_async`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of by :meth:`aclose`."""
        super().__init__(datastore, settings, **options)
        self.engine, self.owned = engine, owned

    async def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """As :meth:`MySQLShim.read_by`."""
        steps = self.read_steps(key, _flavor(connection))
        found: tuple[Any, Lineage] = await self.run(connection, steps)
        return found

    async def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """As :meth:`MySQLShim.fulfil_by`."""
        await fulfil_async(connection, promise)

    async def send(self, connection: Any, statement: Statement) -> Any:
        """As :meth:`MySQLShim.send`."""
        return await super().send(connection, spelled(statement))

    def detach(self) -> None:
        """Leave the engine as it was. Idempotent."""
        instrumented.detach(self)


def _flavor(connection: Any) -> Flavor:
    return Flavor.MARIADB if connection.dialect.is_mariadb else Flavor.MYSQL


def shim(
    datastore: str,
    engine: Any,
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    table: str = "antipode_kv",
    key: str = "k",
    value: str = "v",
    column: str = "_ap",
    tombstones: str = "antipode_tombstone",
    promise_table: str = TABLE,
) -> MySQLShim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one MySQL or MariaDB server.

    The tables are yours to make: ``ddl()`` of the result has the statements.

    Args:
        datastore: the name that every service spells alike.
        engine: a ``sqlalchemy.Engine`` over PyMySQL or mysqlclient, or the URL of a server.
        reads_from: whether that server is a primary or a replica.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        one_server: True states that all statements of a connection reach one server. Otherwise
            that is checked, and reads that wait are refused where it is not known. With False, for
            a balancer, ``at="now"`` does not poll its address.
        table: where the values lie, perhaps ``schema.table``.
        key: the column of their keys, primary or unique.
        value: their column.
        column: the invisible one for lineages.
        tombstones: the table for the lineages of deletions.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.

    Raises:
        ConfigurationError: an asyncio engine, another database's, a bad option, or SQLAlchemy or
            PyMySQL is missing.
    """
    used, owned = engine_of(engine, asyncio=False)
    made = MySQLShim(
        datastore,
        used,
        settings_of(used),
        owned=owned,
        layout=Layout(table, key, value, column, tombstones),
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
    key: str = "k",
    value: str = "v",
    column: str = "_ap",
    tombstones: str = "antipode_tombstone",
    promise_table: str = TABLE,
) -> MySQLAsyncShim:
    """The asyncio twin of :func:`shim`, over an ``AsyncEngine`` of aiomysql.

    ``write``, ``append``, ``read`` and ``delete`` are coroutines. Close it with ``await aclose()``.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    used, owned = engine_of(engine, asyncio=True)
    made = MySQLAsyncShim(
        datastore,
        used,
        settings_of(used),
        owned=owned,
        layout=Layout(table, key, value, column, tombstones),
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
