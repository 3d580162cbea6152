"""Clients of PostgreSQL, beside those whose times the benchmarks measure."""

from __future__ import annotations

from typing import Any

from antipode_shims.postgresql import instrument_connection, uninstrument_connection
from benchmarks.costs.overhead._clients import DATASTORE, VALUE, Server, versions
from benchmarks.costs.overhead._postgresql import (
    _READ,
    _TABLE,
    _UPSERT,
    AsyncpgClient,
    PsycopgClient,
    _where,
)
from tests.budgets._loop import OnLoop


class Psycopg(PsycopgClient):
    """psycopg 3: the benchmarks' write and read in autocommit mode, and both in transactions."""

    def write_in_transaction(self, number: int) -> None:
        with self._connection.transaction():
            self.write(number)

    def read_in_transaction(self, number: int) -> None:
        with self._connection.transaction():
            self.read(number)


class AsyncPsycopg(OnLoop):
    """psycopg 3 of asyncio: the same calls."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        import psycopg

        super().__init__()
        where = {**_where(server), "dbname": server.database}
        connect = psycopg.AsyncConnection.connect(**where, autocommit=True)
        self._connection: Any = self.run(connect)
        self.run(self._connection.execute(_TABLE))
        if instrumented:
            instrument_connection(self._connection, datastore=DATASTORE)

    def write(self, number: int) -> None:
        self.run(self._write(number))

    def read(self, number: int) -> None:
        self.run(self._read(number))

    def write_in_transaction(self, number: int) -> None:
        async def call() -> None:
            async with self._connection.transaction():
                await self._write(number)

        self.run(call())

    def read_in_transaction(self, number: int) -> None:
        async def call() -> None:
            async with self._connection.transaction():
                await self._read(number)

        self.run(call())

    def close(self) -> None:
        uninstrument_connection(self._connection)
        self.run(self._connection.close())
        self.end()

    async def _write(self, number: int) -> None:
        row = number, VALUE, next(versions)
        await self._connection.execute(_UPSERT.format("%s", "%s", "%s"), row)

    async def _read(self, number: int) -> None:
        cursor = await self._connection.execute(_READ.format("%s"), (number,))
        await cursor.fetchone()


class Asyncpg(AsyncpgClient):
    """asyncpg: the same calls."""

    def write(self, number: int) -> None:
        row = number, VALUE, next(versions)
        write = self._connection.execute(_UPSERT.format("$1", "$2", "$3"), *row)
        self._loop.run_until_complete(write)

    def write_in_transaction(self, number: int) -> None:
        super().write(number)

    def read_in_transaction(self, number: int) -> None:
        async def call() -> None:
            async with self._connection.transaction():
                await self._connection.fetchrow(_READ.format("$1"), number)

        self._loop.run_until_complete(call())
