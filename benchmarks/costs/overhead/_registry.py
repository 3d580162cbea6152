"""The clients that are compared, by name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _postgresql as pg
from ._clients import MongoDBClient, PyMySQLClient, RedisClient, SQLAlchemyClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._clients import Make

#: By name: the store it needs, the client, and how many times the plain client's median a call on
#: loopback may take.
CLIENTS: dict[str, tuple[str, Make, float]] = {
    "redis-py": ("redis", RedisClient, 1.5),
    "PyMySQL, MySQL": ("mysql", PyMySQLClient, 1.15),
    "SQLAlchemy, MySQL": ("mysql", SQLAlchemyClient, 1.15),
    "PyMySQL, MariaDB": ("mariadb", PyMySQLClient, 1.15),
    "psycopg": ("postgresql", pg.PsycopgClient, 1.15),
    "psycopg, transactions": ("postgresql", pg.PsycopgTransactions, 1.15),
    "psycopg2": ("postgresql", pg.Psycopg2Client, 1.15),
    "asyncpg": ("postgresql", pg.AsyncpgClient, 1.15),
    "SQLAlchemy, PostgreSQL": ("postgresql", pg.SQLAlchemyPostgreSQLClient, 1.15),
    "PyMongo": ("mongodb", MongoDBClient, 1.15),
}
#: What is installed of them, and what they are instrumented with.
PACKAGES = (
    *("opentelemetry-api", "redis", "PyMySQL", "psycopg", "psycopg2-binary", "asyncpg"),
    *("SQLAlchemy", "pymongo"),
)
#: The same with half a millisecond of network, whatever the client.
NETWORK_BOUND = 1.10


@contextmanager
def running(store: str) -> Iterator[Any]:
    """A primary and its replica, as every primary that matters has one."""
    from antipode_testing.lab import topology_class

    with topology_class(store)() as topology:
        yield topology
