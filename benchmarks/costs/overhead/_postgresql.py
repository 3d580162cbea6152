"""The clients of PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from antipode_shims import postgresql

from ._clients import DATASTORE, VALUE, SQLAlchemyClient, versions

if TYPE_CHECKING:
    from antipode.shim import ReadsFrom

    from ._clients import Server

_TABLE = (
    "CREATE TABLE IF NOT EXISTS overhead"
    " (id int PRIMARY KEY, value bytea NOT NULL, version bigint NOT NULL)"
)
_UPSERT = (
    "INSERT INTO overhead VALUES ({}, {}, {}) ON CONFLICT (id)"
    " DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version"
)
_READ = "SELECT value FROM overhead WHERE id = {}"


def _where(server: Server) -> dict[str, Any]:
    return {
        "host": server.address.host,
        "port": server.address.port,
        "user": server.user,
        "password": server.password,
    }


class PsycopgClient:
    """psycopg 3 in autocommit mode: an upsert and ``SELECT`` by the primary key."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import psycopg

        self._connection: Any = psycopg.connect(
            **_where(server), dbname=server.database, autocommit=True
        )
        self._connection.execute(_TABLE)
        if instrumented:
            postgresql.instrument_connection(
                self._connection, datastore=DATASTORE, reads_from=reads_from
            )

    def write(self, number: int) -> None:
        row = number, VALUE, next(versions)
        self._connection.execute(_UPSERT.format("%s", "%s", "%s"), row)

    def read(self, number: int) -> None:
        self._connection.execute(_READ.format("%s"), (number,)).fetchone()

    def close(self) -> None:
        postgresql.uninstrument_connection(self._connection)
        self._connection.close()


class PsycopgTransactions(PsycopgClient):
    """The same with a transaction for each write."""

    def write(self, number: int) -> None:
        with self._connection.transaction():
            super().write(number)


class Psycopg2Client:
    """psycopg2 in its own mode: a transaction for each write, and for each read."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import psycopg2

        ours: Any = None
        if instrumented:
            ours = postgresql.connection_factory(datastore=DATASTORE, reads_from=reads_from)
        self._connection: Any = psycopg2.connect(
            **_where(server), dbname=server.database, connection_factory=ours
        )
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(_TABLE)

    def write(self, number: int) -> None:
        row = number, VALUE, next(versions)
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(_UPSERT.format("%s", "%s", "%s"), row)

    def read(self, number: int) -> None:
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(_READ.format("%s"), (number,))
            cursor.fetchone()

    def close(self) -> None:
        postgresql.uninstrument_connection(self._connection)
        self._connection.close()


class AsyncpgClient:
    """asyncpg: a transaction for each write, a read on its own; each a turn of an idle loop."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import asyncpg

        self._loop = asyncio.new_event_loop()
        where = {**_where(server), "database": server.database}
        self._connection: Any = self._loop.run_until_complete(asyncpg.connect(**where))
        self._loop.run_until_complete(self._connection.execute(_TABLE))
        if instrumented:
            postgresql.instrument_connection(
                self._connection, datastore=DATASTORE, reads_from=reads_from
            )

    def write(self, number: int) -> None:
        self._loop.run_until_complete(self._written(number))

    async def _written(self, number: int) -> None:
        async with self._connection.transaction():
            row = number, VALUE, next(versions)
            await self._connection.execute(_UPSERT.format("$1", "$2", "$3"), *row)

    def read(self, number: int) -> None:
        self._loop.run_until_complete(self._connection.fetchrow(_READ.format("$1"), number))

    def close(self) -> None:
        postgresql.uninstrument_connection(self._connection)
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


class SQLAlchemyPostgreSQLClient(SQLAlchemyClient):
    """SQLAlchemy Core over psycopg 3."""

    driver = "postgresql+psycopg"
    table = _TABLE
    upsert = _UPSERT.format(":id", ":value", ":version")

    @property
    def _shim(self) -> Any:  # noqa: ANN401 - a store's module
        return postgresql
