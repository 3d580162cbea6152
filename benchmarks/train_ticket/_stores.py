"""The real stores below the services, and what is in them before a run."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymongo
import pymysql

from antipode import AntipodeError
from antipode_testing import MongoDBTopology, MySQLTopology, RabbitMQTopology, RedisTopology

from ._variants import TrainTicketError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antipode_testing import Topology

PASSWORD = "train"  # noqa: S105 - of users that live for a run
PAID, CANCELLED = 1, 4
_ORDERS = ("orders", "orders_other")
_ORDER = "id VARCHAR(64) PRIMARY KEY, user_id VARCHAR(64), status INT, cents BIGINT"
_COLUMNS = {
    "users": "id VARCHAR(64) PRIMARY KEY, name VARCHAR(64), email VARCHAR(64), password CHAR(64)",
    **dict.fromkeys(_ORDERS, _ORDER),
    "payments": "order_id VARCHAR(64) PRIMARY KEY, user_id VARCHAR(64), cents BIGINT",
}


@dataclass(frozen=True, slots=True)
class Order:
    """An order that is paid.

    Attributes:
        id: of the order.
        user: who ordered; also the name and the beginning of the address of the user.
        cents: what was paid.
    """

    id: str
    user: str
    cents: int

    @property
    def refund(self) -> int:
        """How many cents come back after a cancellation."""
        return self.cents * 4 // 5


@dataclass(frozen=True, slots=True)
class Stores:
    """Where everything is kept.

    Attributes:
        mysql: orders, payments and users; orders are read at the replica.
        mongodb: refunds; the user looks at the secondary.
        rabbitmq: the queues; its first broker alone is used.
        redis: sessions, and what users were told.
        two_regions: whether replicas are read at all; if not, everything is at the primaries.
    """

    mysql: MySQLTopology
    mongodb: MongoDBTopology
    rabbitmq: RabbitMQTopology
    redis: RedisTopology
    two_regions: bool

    def mongodb_url(self, *, reads: bool) -> str:
        """Where refunds are written, or read."""
        away = reads and self.two_regions
        return self.mongodb.url(self.mongodb.replica if away else self.mongodb.primary)

    def set_lag(self, lag_ms: float) -> None:
        """Delay what both databases replicate."""
        self.mysql.set_lag(lag_ms)
        self.mongodb.set_lag(lag_ms)

    def seed(self, orders: Sequence[Order]) -> None:
        """Keep orders that are paid, and who ordered; return once replicas have them."""
        with closing(self._sql()) as connection:
            fill(connection, orders)
        self.mysql.wait_replicated()

    def create_collections(self, database: str) -> None:
        """Make the collections of refunds; return once replicas have them."""
        create_collections(self.mongodb_url(reads=False), database)
        self.mongodb.wait_replicated()

    def cancelled(self, orders: Sequence[Order]) -> set[str]:
        """Which of *orders* are cancelled."""
        with closing(self._sql()) as connection, connection.cursor() as cursor:
            found: set[str] = set()
            for table in _ORDERS:
                cursor.execute(f"SELECT id FROM {table} WHERE status = %s", (CANCELLED,))  # noqa: S608
                found.update(row[0] for row in cursor.fetchall())
        return found & {it.id for it in orders}

    def _sql(self) -> pymysql.Connection[pymysql.cursors.Cursor]:
        place = self.mysql.primary
        return pymysql.connect(
            host=place.host,
            port=place.port,
            user=self.mysql.user,
            password=self.mysql.password,
            database=self.mysql.database,
        )


def fill(connection: pymysql.Connection[pymysql.cursors.Cursor], orders: Sequence[Order]) -> None:
    """Keep orders that are paid, and who ordered; those that are there stay as they are."""
    users = sorted({it.user for it in orders})
    with connection.cursor() as cursor:
        for table, columns in _COLUMNS.items():
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        cursor.executemany(
            "INSERT IGNORE INTO users VALUES (%s, %s, %s, %s)",
            [(it, it, email(it), _digest(PASSWORD)) for it in users],
        )
        for number, table in enumerate(_ORDERS):
            cursor.executemany(
                f"INSERT IGNORE INTO {table} VALUES (%s, %s, %s, %s)",  # noqa: S608 - of two names
                [(it.id, it.user, PAID, it.cents) for it in orders[number::2]],
            )
        cursor.executemany(
            "INSERT IGNORE INTO payments VALUES (%s, %s, %s)",
            [(it.id, it.user, it.cents) for it in orders],
        )
        connection.commit()


def create_collections(url: str, database: str) -> None:
    """Make the collections of refunds, which a transaction does not wait for then."""
    with pymongo.MongoClient[dict[str, object]](url) as client:
        there = client[database].list_collection_names()
        for name in ("money", "antipode_promises"):
            if name not in there:
                client[database].create_collection(name)


def email(user: str) -> str:
    """Where a user is told of refunds."""
    return f"{user}@example.org"


def _digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


@contextmanager
def started(*, two_regions: bool) -> Iterator[Stores]:
    """Stores for the block, side by side.

    Raises:
        TrainTicketError: a server is missing or does not start.
    """
    mysql, mongodb, redis = MySQLTopology(), MongoDBTopology(), RedisTopology()
    rabbitmq = RabbitMQTopology(federated=False)
    all_of_them: tuple[Topology, ...] = (rabbitmq, mysql, mongodb, redis)
    with ExitStack() as stack:
        for topology in all_of_them:
            stack.callback(topology.close)
        try:
            with ThreadPoolExecutor(len(all_of_them)) as pool:
                for done in [pool.submit(topology.start) for topology in all_of_them]:
                    done.result()
        except AntipodeError as error:
            raise TrainTicketError(str(error)) from error
        yield Stores(mysql, mongodb, rabbitmq, redis, two_regions)
