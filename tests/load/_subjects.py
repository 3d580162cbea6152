"""The stores under load."""

from __future__ import annotations

import tempfile
import threading
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pymongo
import redis
import sqlalchemy

from antipode_shims.embedded import EmbeddedStore
from tests.contract.test_embedded import EmbeddedContractStore
from tests.contract.test_mongodb import MongoContractStore
from tests.contract.test_mysql import MySQLContractStore
from tests.contract.test_rabbitmq import RabbitMQContractStore
from tests.contract.test_redis import RedisContractStore

from ._subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_shims.embedded import EmbeddedTopology
    from antipode_testing import (
        ContractStore,
        MariaDBTopology,
        MongoDBTopology,
        MySQLTopology,
        RabbitMQTopology,
        RedisTopology,
    )


@contextmanager
def _closing(store: ContractStore) -> Iterator[ContractStore]:
    try:
        yield store
    finally:
        store.writer.close()
        store.reader.close()


class EmbeddedSubject(Subject):
    """SQLite files."""

    def __init__(self, topology: EmbeddedTopology) -> None:
        self._topology = topology

    @contextmanager
    def open(self) -> Iterator[ContractStore]:
        with tempfile.TemporaryDirectory(prefix="antipode-load-") as folder:
            store = EmbeddedContractStore(self._topology, Path(folder))
            self._path = self._topology.replica
            with closing(EmbeddedStore(self._path)) as self._plain, _closing(store):
                yield store

    def shown(self, key: str) -> int:
        entry = self._plain.get(key)
        return 0 if entry is None or entry.value is None else int(entry.value)


class RedisSubject(Subject):
    """A primary and a replica."""

    def __init__(self, topology: RedisTopology) -> None:
        self._topology = topology

    @contextmanager
    def open(self) -> Iterator[ContractStore]:
        with ExitStack() as stack:
            store = RedisContractStore(self._topology, stack)
            self._plain: Any = redis.Redis(*self._topology.replica)
            stack.callback(self._plain.close)
            with _closing(store):
                yield store

    def shown(self, key: str) -> int:
        return int(self._plain.get(key) or 0)

    def server_waits(self) -> int:
        """Connections to which changes are pushed."""
        return sum("t" in each["flags"] for each in self._plain.client_list())


class RabbitMQSubject(Subject):
    """Two federated brokers; a queue of the reader's region keeps what was routed there."""

    promotes = False
    faults = ("held", "cut", "none")
    # The federation connects again after a second, and then sends what it kept.
    back_s = 2.0

    def __init__(self, topology: RabbitMQTopology) -> None:
        self._topology = topology
        self._local = threading.local()
        self._connections: list[pika.BlockingConnection] = []

    @contextmanager
    def open(self) -> Iterator[ContractStore]:
        self._local = threading.local()
        with ExitStack() as stack:
            store = RabbitMQContractStore(self._topology, stack)
            self._queue = store._exchange
            stack.callback(self._disconnect)
            with _closing(store):
                yield store

    def shown(self, key: str) -> int:
        """How many messages were routed: they are numbered by the order of their publication."""
        if (channel := getattr(self._local, "channel", None)) is None:
            url = pika.URLParameters(self._topology.url(self._topology.replica))
            self._connections.append(pika.BlockingConnection(url))
            channel = self._local.channel = self._connections[-1].channel()
        declared = channel.queue_declare(self._queue, passive=True)
        return int(declared.method.message_count)

    def _disconnect(self) -> None:
        while self._connections:
            self._connections.pop().close()


class MySQLSubject(Subject):
    """A primary and a replica of MySQL or MariaDB."""

    _SHOWN = sqlalchemy.text("SELECT v FROM antipode_kv WHERE k = :k")
    _WAITS = sqlalchemy.text(
        "SELECT COUNT(*) FROM information_schema.processlist"
        " WHERE info LIKE '%GTID%WAIT%' OR info LIKE '%WAIT%GTID%'"
    )

    def __init__(self, topology: MySQLTopology | MariaDBTopology) -> None:
        self._topology = topology

    @contextmanager
    def open(self) -> Iterator[ContractStore]:
        with ExitStack() as stack:
            store = MySQLContractStore(self._topology, stack)
            url = self._topology.url(self._topology.replica)
            self._plain = sqlalchemy.create_engine(url, pool_size=40, isolation_level="AUTOCOMMIT")
            stack.callback(self._plain.dispose)
            with _closing(store):
                yield store

    def shown(self, key: str) -> int:
        with self._plain.connect() as connection:
            return int(connection.execute(self._SHOWN, {"k": key}).scalar() or 0)

    def server_waits(self) -> int:
        """Statements that wait for a position, this one not counted."""
        with self._plain.connect() as connection:
            return int(connection.execute(self._WAITS).scalar() or 0) - 1


class MongoDBSubject(Subject):
    """A replica set's primary and a secondary."""

    def __init__(self, topology: MongoDBTopology) -> None:
        self._topology = topology

    @contextmanager
    def open(self) -> Iterator[ContractStore]:
        with ExitStack() as stack:
            store = MongoContractStore(self._topology, stack)
            host, port = self._topology.replica
            self._plain: Any = pymongo.MongoClient(host, port, directConnection=True)
            stack.callback(self._plain.close)
            with _closing(store):
                yield store

    def shown(self, key: str) -> int:
        where = MongoContractStore.where
        found = self._plain[where["database"]][where["collection"]].find_one({"_id": key})
        return 0 if found is None else int(found["value"]["value"])

    def server_waits(self) -> int:
        """Operations that wait for a cluster time."""
        waiting = {"command.readConcern.afterClusterTime": {"$exists": True}}
        return len(list(self._plain.admin.aggregate([{"$currentOp": {}}, {"$match": waiting}])))
