"""Clients of MySQL, beside those whose times the benchmarks measure."""

from __future__ import annotations

import warnings
from typing import Any

from antipode_shims.mysql import instrument_connection, uninstrument_connection
from benchmarks.costs.overhead._clients import (
    _TABLE,
    DATASTORE,
    VALUE,
    PyMySQLClient,
    Server,
    versions,
)
from tests.budgets._loop import OnLoop

SESSION_TRACK = 1 << 23
REPLACE = "REPLACE INTO overhead VALUES (%s, %s, %s)"
#: aiomysql takes no bytes with this release of PyMySQL.
TEXT = VALUE.decode()
SELECT = "SELECT value FROM overhead WHERE id = %s"


class PyMySQL(PyMySQLClient):
    """PyMySQL: the benchmarks' write and read in autocommit mode, and both in transactions."""

    def write_in_transaction(self, number: int) -> None:
        self._connection.begin()
        self.write(number)
        self._connection.commit()

    def read_in_transaction(self, number: int) -> None:
        self._connection.begin()
        self.read(number)
        self._connection.commit()


class MySQLClient(PyMySQL):
    """mysqlclient: the same calls."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        import MySQLdb

        self._connection: Any = MySQLdb.connect(
            host=server.address.host,
            port=server.address.port,
            user=server.user,
            password=server.password,
            database=server.database,
            autocommit=True,
        )
        self._cursor: Any = self._connection.cursor()
        self._cursor.execute(_TABLE)
        if instrumented:
            instrument_connection(self._connection, datastore=DATASTORE)
            self._cursor = self._connection.cursor()


class AioMySQL(OnLoop):
    """aiomysql: the same calls."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        super().__init__()
        self.run(self._connect(server, instrumented=instrumented))

    async def _connect(self, server: Server, *, instrumented: bool) -> None:
        import aiomysql

        self._connection: Any = await aiomysql.connect(
            host=server.address.host,
            port=server.address.port,
            user=server.user,
            password=server.password,
            db=server.database,
            autocommit=True,
            client_flag=SESSION_TRACK if instrumented else 0,
        )
        self._cursor: Any = await self._connection.cursor()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The table may be there.
            await self._cursor.execute(_TABLE)
        if instrumented:
            instrument_connection(self._connection, datastore=DATASTORE)
            self._cursor = await self._connection.cursor()

    def write(self, number: int) -> None:
        self.run(self._cursor.execute(REPLACE, (number, TEXT, next(versions))))

    def read(self, number: int) -> None:
        self.run(self._read(number))

    def write_in_transaction(self, number: int) -> None:
        async def call() -> None:
            await self._connection.begin()
            await self._cursor.execute(REPLACE, (number, TEXT, next(versions)))
            await self._connection.commit()

        self.run(call())

    def read_in_transaction(self, number: int) -> None:
        async def call() -> None:
            await self._connection.begin()
            await self._read(number)
            await self._connection.commit()

        self.run(call())

    def close(self) -> None:
        uninstrument_connection(self._connection)
        self.run(self._connection.ensure_closed())
        self.end()

    async def _read(self, number: int) -> None:
        await self._cursor.execute(SELECT, (number,))
        await self._cursor.fetchone()
