"""The application's own rows, written by SQL through SQLAlchemy's engines, as a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool, QueuePool

import antipode
from antipode import Lineage
from antipode_testing import ContractStore, LagProxy

from ._noted import noting

if TYPE_CHECKING:
    from contextlib import ExitStack

    from sqlalchemy import Connection

    from antipode import Promise

BESIDE: dict[str, Any] = {"datastore": "posts", "lineage": "beside", "tables": ["native"]}
DELETE = text("DELETE FROM native WHERE id = :key")
SELECT = text("SELECT id, body FROM native WHERE id = :key")


class RowsStore(ContractStore):
    """Instrumented engines at the primary and, through a proxy, at the replica.

    Attributes:
        shims: the module of the store.
        instrumented: the engines that it has instrumented.
        drivers: of SQLAlchemy: of engines, and of asyncio's.
        put: writes a whole row, whether there is one or not.
        append: writes a row, or appends to what is there.
        connect_args: for each connection of the shims' engines.
    """

    shims: ClassVar[Any]
    instrumented: ClassVar[Any]
    drivers: ClassVar[tuple[str, str]]
    put: ClassVar[Any]
    append: ClassVar[Any]
    connect_args: ClassVar[dict[str, Any]]

    topology: Any
    proxy: LagProxy
    _stack: ExitStack
    _engines: dict[Any, Any]

    def replace(self, connection: Connection, values: dict[str, Any]) -> None:
        """Write a row that depends on nothing of what was there."""
        connection.execute(self.put, values)

    def reading(self, engine: Any) -> Any:
        """*engine*, as reads take it."""
        return engine

    def _shim(self, address: Any, **options: Any) -> Any:
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 8, "pool_pre_ping": True}
        engine = self._engine(address, **pool, connect_args=self.connect_args)
        self.shims.instrument_engine(engine, **BESIDE, **options)
        self._stack.callback(self.shims.uninstrument_engine, engine)
        shim = self.instrumented.shim_of(engine)
        self._engines[shim] = engine
        return shim

    def _engine(self, address: Any, **options: Any) -> Any:
        url = self.topology.url(address, driver=self.drivers[0])
        engine = create_engine(url, **options)
        self._stack.callback(engine.dispose)
        return engine

    def _within(self, lineage: Lineage | None, write: Any, **values: Any) -> Lineage:
        """Run with what a write shall depend on; what is written joins the current scope."""

        def call() -> None:
            with self._engines[self.writer].begin() as connection:
                write(connection, values)

        if lineage is None:
            base = antipode.current()
            with noting() as box:
                call()
            return base.merge(*box)
        with antipode.scope(lineage) as scope:
            call()
            written = scope.lineage
        for each in written:
            if each not in lineage:
                antipode.append(each)
        return written

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, self.replace, key=key, body=value)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        appended = field.encode() + b"=" + value
        return self._within(lineage, _executing(self.append), key=key, body=appended)

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, _executing(DELETE), key=key)

    def fulfil(self, key: str, value: bytes, promise: Promise) -> None:
        with self._engines[self.writer].begin() as connection:
            connection.execute(self.put, {"key": key, "body": value})
            self.shims.fulfil(connection, promise)

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.reader, key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.writer, key)

    def _found(self, shim: Any, key: str) -> tuple[bytes | None, Lineage]:
        with noting() as box, self.reading(self._engines[shim]).connect() as connection:
            row = connection.execute(SELECT, {"key": key}).one_or_none()
        return row and bytes(row.body), Lineage().merge(*box)

    async def read_async(self, key: str) -> Any:
        url = self.topology.url(self.proxy.address, driver=self.drivers[1])
        engine = create_async_engine(url, poolclass=NullPool)
        self.shims.instrument_engine(engine, reads_from="replica", **BESIDE)
        try:
            async with engine.connect() as connection:
                row = (await connection.execute(SELECT, {"key": key})).one_or_none()
        finally:
            self.shims.uninstrument_engine(engine)
            await engine.dispose()
        return row and bytes(row.body), antipode.current()

    def refused_write(self, key: str, value: bytes) -> None:
        """A replica takes no writes."""
        with self._engines[self.reader].begin() as connection:
            connection.execute(self.put, {"key": key, "body": value})


def _executing(statement: Any) -> Any:
    return lambda connection, values: connection.execute(statement, values)
