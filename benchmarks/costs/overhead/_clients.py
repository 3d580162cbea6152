"""One call that writes and one that reads, plain or instrumented, by client."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing_extensions import Self

    from antipode.shim import ReadsFrom
    from antipode_testing import Address

#: Beside each value: servers leave out a write that changes nothing.
versions = itertools.count()
_TABLE = (
    "CREATE TABLE IF NOT EXISTS overhead"
    " (id INT PRIMARY KEY, value BLOB NOT NULL, version INT NOT NULL)"
)

#: Values are as long as the posts of the other benchmark.
VALUE = b"x" * 1024
DATASTORE = "posts"


@dataclass(frozen=True)
class Server:
    """Where a client connects, and as whom if the store asks."""

    address: Address
    user: str = ""
    password: str = ""
    database: str = ""

    @classmethod
    def of(cls, topology: Any, address: Address) -> Self:  # noqa: ANN401 - of any store
        """The primary of *topology*, by *address*."""
        names = ("user", "password", "database")
        return cls(address, **{name: getattr(topology, name, "") for name in names})


class Client(Protocol):
    """One connection to a store."""

    def write(self, number: int) -> None:
        """Write the value with this number, and have it acknowledged."""
        ...

    def read(self, number: int) -> None:
        """Read the value with this number."""
        ...

    def close(self) -> None:
        """Close the connection, and what the library added to it."""
        ...


class Make(Protocol):
    """A kind of client."""

    def __call__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> Client:
        """Connect one to *server*.

        Args:
            server: where.
            instrumented: whether it has the library around it.
            reads_from: what it is declared to read from.
        """
        ...


class RedisClient:
    """redis-py: ``SET`` and ``GET``."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import redis

        from antipode_shims.redis import instrument_client

        self._client: Any = redis.Redis(*server.address)
        if instrumented:
            instrument_client(self._client, datastore=DATASTORE, reads_from=reads_from)

    def write(self, number: int) -> None:
        self._client.set(f"overhead-{number}", VALUE)

    def read(self, number: int) -> None:
        self._client.get(f"overhead-{number}")

    def close(self) -> None:
        from antipode_shims.redis import uninstrument_client

        uninstrument_client(self._client)
        self._client.close()


class PyMySQLClient:
    """PyMySQL in autocommit mode: ``REPLACE`` and ``SELECT`` by the primary key."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import pymysql

        from antipode_shims.mysql import instrument_connection

        self._connection: Any = pymysql.connect(
            host=server.address.host,
            port=server.address.port,
            user=server.user,
            password=server.password,
            database=server.database,
            autocommit=True,
            client_flag=pymysql.constants.CLIENT.SESSION_TRACK if instrumented else 0,
        )
        self._cursor: Any = self._connection.cursor()
        self._cursor.execute(_TABLE)
        if instrumented:
            instrument_connection(self._connection, datastore=DATASTORE, reads_from=reads_from)
            self._cursor = self._connection.cursor()

    def write(self, number: int) -> None:
        row = number, VALUE, next(versions)
        self._cursor.execute("REPLACE INTO overhead VALUES (%s, %s, %s)", row)

    def read(self, number: int) -> None:
        self._cursor.execute("SELECT value FROM overhead WHERE id = %s", (number,))
        self._cursor.fetchone()

    def close(self) -> None:
        from antipode_shims.mysql import uninstrument_connection

        uninstrument_connection(self._connection)
        self._connection.close()


class SQLAlchemyClient:
    """SQLAlchemy Core: a transaction for each write, a connection held for reads."""

    driver = "mysql+pymysql"
    table = _TABLE
    upsert = "REPLACE INTO overhead VALUES (:id, :value, :version)"

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import sqlalchemy

        url = sqlalchemy.URL.create(
            self.driver,
            username=server.user,
            password=server.password,
            host=server.address.host,
            port=server.address.port,
            database=server.database,
        )
        self._engine = sqlalchemy.create_engine(url)
        if instrumented:
            self._shim.instrument_engine(self._engine, datastore=DATASTORE, reads_from=reads_from)
        with self._engine.begin() as connection:
            connection.execute(sqlalchemy.text(self.table))
        self._write = sqlalchemy.text(self.upsert)
        self._read = sqlalchemy.text("SELECT value FROM overhead WHERE id = :id")

    @property
    def _shim(self) -> Any:  # noqa: ANN401 - a store's module
        from antipode_shims import mysql

        return mysql

    def write(self, number: int) -> None:
        with self._engine.begin() as connection:
            row = {"id": number, "value": VALUE, "version": next(versions)}
            connection.execute(self._write, row)

    def read(self, number: int) -> None:
        with self._engine.connect() as connection:
            connection.execute(self._read, {"id": number}).fetchone()

    def close(self) -> None:
        self._shim.uninstrument_engine(self._engine)
        self._engine.dispose()


class MongoDBClient:
    """PyMongo: ``replace_one`` with upsert and ``find_one`` by ``_id``."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        import pymongo

        from antipode_shims.mongodb import instrument_client

        self._client: Any = pymongo.MongoClient(*server.address, directConnection=True)
        if instrumented:
            instrument_client(self._client, datastore=DATASTORE, reads_from=reads_from)
        self._collection: Any = self._client.benchmarks.overhead

    def write(self, number: int) -> None:
        document = {"value": VALUE, "version": next(versions)}
        self._collection.replace_one({"_id": number}, document, upsert=True)

    def read(self, number: int) -> None:
        self._collection.find_one({"_id": number})

    def close(self) -> None:
        from antipode_shims.mongodb import uninstrument_client

        uninstrument_client(self._client)
        self._client.close()
