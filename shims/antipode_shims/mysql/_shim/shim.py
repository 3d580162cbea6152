"""Table 2 over a SQLAlchemy engine: values with their stored lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError, Lineage
from antipode.shim import recorded, register
from antipode_shims.mysql._clients.sqlalchemy import (
    attach_engine,
    detach_engine,
    engine_of,
    settings_of,
)
from antipode_shims.mysql._position.flavor import Flavor
from antipode_shims.mysql._promises.fulfil import fulfil, fulfil_async
from antipode_shims.mysql._promises.records import TABLE
from antipode_shims.mysql._table2 import Layout, MySQLTable2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode import Promise
    from antipode.shim import OnRead, ReadsFrom
    from antipode_shims.mysql._endpoint.settings import ServerSettings
    from antipode_shims.mysql._table2 import Key, Statement, Steps, Value


ShimT = TypeVar("ShimT", bound=MySQLTable2)


class MySQLShim(MySQLTable2):
    """Table 2 of one server, synchronous. Made by :func:`shim`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of with the shim."""
        super().__init__(datastore, settings, **options)
        self._engine = engine
        self._owned = owned

    @recorded("write")
    def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Set *key* to *value*, with its lineage, in one statement.

        Args:
            key: of the row.
            value: as the column takes it; not None.
            lineage: what the value depends on; default the current lineage.
            fulfils: a promise, or its ``token``, that is fulfilled in the same transaction; one
                round trip more.

        Returns:
            The lineage with this write in it; it enters the current scope as well.

        Raises:
            sqlalchemy.exc.DBAPIError: as SQLAlchemy does; without a reply to the commit the scope
                becomes ``incomplete``.
            ConfigurationError: the table or its invisible column is missing; says how to make it.
                With *fulfils* also as :func:`fulfil`.
            PromiseAbandoned: nobody waits for the promise any more; nothing is written.
            TypeError: the value is None.
        """
        base = self.base(lineage)
        return self._commit(self.write_steps(key, value, base), base, fulfils)

    def append(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Append to the value of *key*; its lineage is merged with what lies there already.

        Two round trips more than :meth:`write`.

        Raises:
            sqlalchemy.exc.DBAPIError: as :meth:`write`.
            ConfigurationError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._commit(self.append_steps(key, value, base), base, fulfils)

    @recorded("delete")
    def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """Delete *key*; a tombstone keeps the lineage for who finds nothing.

        Raises:
            sqlalchemy.exc.DBAPIError: as :meth:`write`.
            ConfigurationError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._commit(self.delete_steps(key, base), base, fulfils)

    def _commit(self, steps: Steps, base: Lineage, fulfils: Promise | str | None = None) -> Lineage:
        """Run *steps* in a transaction; its position enters the scope once it is committed."""
        with self.minting() as own, self.explaining(), self._engine.begin() as connection:
            if fulfils is not None:  # First: an autonomous connection is refused by it.
                fulfil(connection, fulfils)
            _run(connection, steps)
        return self.written(base, own.lineage)

    @recorded("read")
    def read(self, key: Key) -> tuple[Any, Lineage]:
        """The value of *key*, None when there is none, and what it depends on.

        Under a floor, the read is held back on its connection until the floor is met.

        Returns:
            The value as the driver decodes it, and its stored lineage with a covering
            position; merged into the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            sqlalchemy.exc.DBAPIError: as SQLAlchemy does.
            ConfigurationError: as :meth:`write`.
        """
        with self.explaining(), self._engine.connect() as connection:
            found: tuple[Any, Lineage] = _run(connection, self.read_steps(key, _flavor(connection)))
        return self.seen(found)

    def close(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        detach_engine(self)
        super().close()
        if self._owned:
            self._engine.dispose()


class MySQLAsyncShim(MySQLTable2):
    """Table 2 of one server over asyncio. Made by :func:`shim_async`."""

    def __init__(
        self, datastore: str, engine: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *engine*; an *owned* engine is disposed of by :meth:`aclose`."""
        super().__init__(datastore, settings, **options)
        self._engine = engine
        self._owned = owned

    @recorded("write")
    async def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As :meth:`MySQLShim.write`; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        return await self._commit(self.write_steps(key, value, base), base, fulfils)

    async def append(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As :meth:`MySQLShim.append`."""
        base = self.base(lineage)
        return await self._commit(self.append_steps(key, value, base), base, fulfils)

    @recorded("delete")
    async def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """As :meth:`MySQLShim.delete`."""
        base = self.base(lineage)
        return await self._commit(self.delete_steps(key, base), base, fulfils)

    async def _commit(
        self, steps: Steps, base: Lineage, fulfils: Promise | str | None = None
    ) -> Lineage:
        with self.minting() as own, self.explaining():
            async with self._engine.begin() as connection:
                if fulfils is not None:
                    await fulfil_async(connection, fulfils)
                await _run_async(connection, steps)
        return self.written(base, own.lineage)

    @recorded("read")
    async def read(self, key: Key) -> tuple[Any, Lineage]:
        """As :meth:`MySQLShim.read`."""
        with self.explaining():
            async with self._engine.connect() as connection:
                steps = self.read_steps(key, _flavor(connection))
                found: tuple[Any, Lineage] = await _run_async(connection, steps)
        return self.seen(found)

    async def aclose(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        self.close()
        if self._owned:
            await self._engine.dispose()

    def close(self) -> None:
        """Unregister; the pool of an engine of its own is left to :meth:`aclose`."""
        detach_engine(self)
        super().close()


def _run(connection: Any, steps: Steps) -> Any:
    """Send what *steps* yield over *connection*; what they return."""
    try:
        statement = next(steps)
        while True:
            result = connection.exec_driver_sql(statement.sql, statement.parameters)
            statement = steps.send(_rows(result))
    except StopIteration as end:
        return end.value


async def _run_async(connection: Any, steps: Steps) -> Any:
    try:
        statement: Statement = next(steps)
        while True:
            statement = statement.spelled()
            result = await connection.exec_driver_sql(statement.sql, statement.parameters)
            statement = steps.send(_rows(result))
    except StopIteration as end:
        return end.value


def _rows(result: Any) -> Sequence[Mapping[str, Any]]:
    return list(result.mappings()) if result.returns_rows else []


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
        attach_engine(engine, made)
    except ConfigurationError:
        made.close()
        raise
    register(made)
    return made
