"""All clients of stores whose calls have budgets, and what counts one."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import antipode
from antipode import Lineage, WriteId
from benchmarks.costs.overhead._aws import DynamoDBClient, S3Client
from benchmarks.costs.overhead._brokers import PikaClient, SNSClient, StompClient
from benchmarks.costs.overhead._clients import MongoDBClient, Server, SQLAlchemyClient
from benchmarks.costs.overhead._postgresql import Psycopg2Client, SQLAlchemyPostgreSQLClient
from tests.budgets import _wire as wire
from tests.budgets._mongodb import AsyncPyMongo
from tests.budgets._mysql import AioMySQL, MySQLClient, PyMySQL
from tests.budgets._postgresql import Asyncpg, AsyncPsycopg, Psycopg
from tests.budgets._profile import difference, steady_calls
from tests.budgets._rabbitmq import AioPika
from tests.budgets._redis import AsyncRedisPy, RedisPy

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.budgets._file import Counted
    from tests.budgets._profile import Calls

#: What a request depends on that publishes, and so what consumers receive.
ELSEWHERE = Lineage([WriteId("elsewhere", "log", 7)])
#: For how long the replies to some clients are held. Who finds a reply before it waits for it calls
#: less than who waits, so all of these wait.
WHOLE_LAG_MS = 3
#: Of messages: as many as one count receives at most.
PUBLISHED = 250
#: By store: what its protocol calls a statement.
STATEMENTS = {
    "redis": wire.redis_commands,
    "mysql": wire.mysql_commands,
    "mariadb": wire.mysql_commands,
    "postgresql": wire.postgresql_statements,
    "mongodb": wire.mongodb_commands,
    "rabbitmq": wire.amqp_methods,
    "activemq": wire.stomp_frames,
    "dynamodb": wire.http_requests,
    "s3": wire.http_requests,
    "sns": wire.http_requests,
}


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a store.

    Attributes:
        name: as lines have it.
        store: whose servers it needs.
        make: connects it, instrumented or not.
        packages: whose releases decide what its calls call.
        calls: the methods, with blanks for underscores, that have budgets.
        whole: whether its calls depend on how replies arrive: they are held until they are whole.
    """

    name: str
    store: str
    make: Callable[..., Any]
    packages: tuple[str, ...]
    calls: tuple[str, ...]
    whole: bool = False


BOTH = "write", "read"
ALL = *BOTH, "write in transaction", "read in transaction"
MESSAGES = "publish", "receive"
AWS = "boto3", "botocore", "ministack"
CLIENTS = (
    Client("redis-py", "redis", RedisPy, ("redis",), (*BOTH, "write and send", "pipeline")),
    Client("redis-py, asyncio", "redis", AsyncRedisPy, ("redis",), (*BOTH, "pipeline"), whole=True),
    Client("PyMySQL", "mysql", PyMySQL, ("PyMySQL",), ALL),
    Client("PyMySQL, MariaDB", "mariadb", PyMySQL, ("PyMySQL",), ALL),
    Client("mysqlclient", "mysql", MySQLClient, ("mysqlclient",), ALL),
    Client("aiomysql", "mysql", AioMySQL, ("aiomysql", "PyMySQL"), ALL, whole=True),
    Client("SQLAlchemy, PyMySQL", "mysql", SQLAlchemyClient, ("SQLAlchemy", "PyMySQL"), BOTH),
    Client("psycopg", "postgresql", Psycopg, ("psycopg",), ALL),
    Client("psycopg, asyncio", "postgresql", AsyncPsycopg, ("psycopg",), ALL, whole=True),
    Client("psycopg2", "postgresql", Psycopg2Client, ("psycopg2-binary",), BOTH),
    Client("asyncpg", "postgresql", Asyncpg, ("asyncpg",), ALL, whole=True),
    Client(
        "SQLAlchemy, psycopg",
        "postgresql",
        SQLAlchemyPostgreSQLClient,
        ("SQLAlchemy", "psycopg"),
        BOTH,
    ),
    Client("PyMongo", "mongodb", MongoDBClient, ("pymongo",), BOTH),
    Client("PyMongo, asyncio", "mongodb", AsyncPyMongo, ("pymongo",), BOTH, whole=True),
    Client("pika", "rabbitmq", PikaClient, ("pika",), MESSAGES),
    Client("aio-pika", "rabbitmq", AioPika, ("aio-pika", "aiormq"), MESSAGES, whole=True),
    Client("stomp.py", "activemq", StompClient, ("stomp.py",), MESSAGES, whole=True),
    Client("boto3, DynamoDB", "dynamodb", DynamoDBClient, AWS, BOTH, whole=True),
    Client("boto3, S3", "s3", S3Client, AWS, BOTH, whole=True),
    Client("boto3, SNS and SQS", "sns", SNSClient, AWS, MESSAGES, whole=True),
)


def count(client: Client, call: str, topology: Any) -> Counted:
    """What the library adds to one call of a client of the primary of *topology*."""
    protocol, lag_ms = STATEMENTS[client.store], WHOLE_LAG_MS if client.whole else 0
    with wire.Wire(topology.primary, protocol, lag_ms=lag_ms) as between:
        server = Server.of(topology, between.address)
        plain_calls, plain_wire = _sums(client, call, server, between, instrumented=False)
        our_calls, our_wire = _sums(client, call, server, between, instrumented=True)
    our_wire.subtract(plain_wire)
    line = f"{client.name}: {call}"
    return difference(line, our_calls, plain_calls, client.packages, our_wire)


def _sums(
    client: Client, call: str, server: Server, between: wire.Wire, *, instrumented: bool
) -> tuple[Calls, Counter[str]]:
    """What one call calls, and what it sends, each in a request of its own."""
    scope = partial(antipode.scope, ELSEWHERE if "publish" in client.calls else None)
    with scope():
        made = client.make(server, instrumented=instrumented)
    with closing(made):
        with scope():
            _prepare(made, call)
        called = partial(getattr(made, call.replace(" ", "_")), 1)
        return steady_calls(called, scope), between.added_by(called, scope)


def _prepare(made: Any, call: str) -> None:
    """There is something to read or to receive."""
    if call == "receive":
        for _ in range(PUBLISHED):
            made.publish(1)
    elif hasattr(made, "write"):
        made.write(1)
