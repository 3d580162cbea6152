"""The clients that are compared, by name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _postgresql as pg
from ._aws import DynamoDBClient, S3Client
from ._brokers import PikaClient, SNSClient, StompClient
from ._clients import MongoDBClient, PyMySQLClient, RedisClient, SQLAlchemyClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._brokers import MakeBroker
    from ._clients import Make

#: By name: the store it needs, the client, and how many times the plain client's median a call on
#: loopback may take; None: as `bound_of` says, with the network, too.
CLIENTS: dict[str, tuple[str, Make, float | None]] = {
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
    "boto3, DynamoDB (emulator)": ("dynamodb", DynamoDBClient, None),
    "boto3, S3 (emulator)": ("s3", S3Client, None),
}
#: By name: the store it needs, and the client, which may take what `bound_of` says.
BROKERS: dict[str, tuple[str, MakeBroker]] = {
    "pika": ("rabbitmq", PikaClient),
    "stomp.py": ("activemq", StompClient),
    "boto3, SNS and SQS (emulator)": ("sns", SNSClient),
}
#: What is installed of them, and what they are instrumented with.
PACKAGES = (
    *("opentelemetry-api", "redis", "PyMySQL", "psycopg", "psycopg2-binary", "asyncpg"),
    *("SQLAlchemy", "pymongo", "boto3", "ministack", "pika", "stomp.py"),
)
#: The same with half a millisecond of network, whatever the client.
NETWORK_BOUND = 1.10


def store_of(name: str) -> str:
    """The store that a client needs."""
    return CLIENTS[name][0] if name in CLIENTS else BROKERS[name][0]


@contextmanager
def running(store: str) -> Iterator[Any]:
    """A primary and its replica, as every primary that matters has one."""
    from antipode_testing.lab import topology_class

    with topology_class(store)() as topology:
        yield topology
