"""The contract suite of every further store through the conformance agent."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import ContractStore, LagProxy, ShimContract
from tests.agent.client import RemoteAntipode, RemoteShim, StoreError
from tests.contract import (
    test_activemq,
    test_dynamodb,
    test_embedded,
    test_postgresql,
    test_rabbitmq,
    test_s3,
)
from tests.contract._aws import RegionsContractStore
from tests.contract._servers import DATABASE, described
from tests.contract.test_activemq import ActiveMQContractStore
from tests.contract.test_agent import Remote, RemoteRedisContract, remote
from tests.contract.test_dynamodb import DynamoDBContractStore
from tests.contract.test_embedded import EmbeddedContractStore
from tests.contract.test_mongodb import MongoContractStore
from tests.contract.test_mysql import MySQLContract, MySQLContractStore
from tests.contract.test_postgresql import PostgreSQLContractStore
from tests.contract.test_rabbitmq import RabbitMQContractStore
from tests.contract.test_s3 import S3ContractStore
from tests.integration.rabbitmq._bench import once_asked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode import Lineage, WriteId
    from antipode_testing import (
        ActiveMQTopology,
        DynamoDBTopology,
        MariaDBTopology,
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RabbitMQTopology,
        S3Topology,
    )

__all__ = ["remote"]

LONG_MS = 60_000
WHOLE_VALUES = "an agent writes whole values"
DOUBT_S = 0.5


class RemoteSQL(Remote):
    """Values are bytes, in a table of the library's own."""

    aborted: ClassVar[tuple[type[Exception], ...]] = (*ContractStore.aborted, StoreError)

    def __init__(self, remote: RemoteAntipode, topology: Any, stack: ExitStack) -> None:
        self.antipode = remote
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> RemoteShim:
        store = self.topology.store
        server = described(store, self.topology, address)
        return RemoteShim(self.antipode, store, "posts", server, **options)

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        return await self.reader.read_async(key)

    def doubtful_write(self, key: str, value: bytes) -> None:
        with LagProxy(self.topology.primary) as slow:
            doubtful = self._shim(slow.address, timeout_s=DOUBT_S)
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS)
                doubtful.write(key, value)
            finally:
                slow.cut()
                doubtful.close()


class RemoteMySQL(RemoteSQL, MySQLContractStore):
    """Both flavours."""

    def has_unique_log(self, write: WriteId) -> bool:
        """A log of MySQL is named by the server's UUID, one of MariaDB by a number."""
        return self.topology.store == "mysql" and bool(write.key)


class RemotePostgreSQL(RemoteSQL, PostgreSQLContractStore):
    """The servers of the Python suite."""

    def has_unique_log(self, write: WriteId) -> bool:
        """A log is named by the system's identifier."""
        return bool(write.key)


class RemoteMongoDB(Remote, MongoContractStore):
    """Values are strings, each with a number behind it, so that it is new."""

    where: ClassVar[dict[str, str]] = {"database": DATABASE, "collection": "posts"}
    aborted: ClassVar[tuple[type[Exception], ...]] = (*ContractStore.aborted, StoreError)

    def __init__(self, remote: RemoteAntipode, topology: MongoDBTopology, stack: ExitStack) -> None:
        self.antipode, self.topology = remote, topology
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> RemoteShim:
        server = described("mongodb", self.topology, address)
        return RemoteShim(self.antipode, "mongodb", "posts", server, **options)

    def has_unique_log(self, write: WriteId) -> bool:
        """A set's name is the operator's."""
        del write
        return False

    def _new(self, value: bytes) -> Any:
        return b"%s#%d" % (value, next(self._numbers))

    def _value(self, found: tuple[Any, Lineage]) -> tuple[bytes | None, Lineage]:
        value, lineage = found
        return (None if value is None else value.rpartition(b"#")[0]), lineage

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._value(await self.reader.read_async(key))

    def doubtful_write(self, key: str, value: bytes) -> None:
        with LagProxy(self.topology.primary, lag_ms=0) as slow:
            doubtful = self._shim(slow.address, timeout_s=DOUBT_S)
            doubtful.read(key)
            slow.set_lag(LONG_MS)
            try:
                doubtful.write(key, self._new(value))
            finally:
                slow.cut()
                doubtful.close()


class RemoteRabbitMQ(Remote, RabbitMQContractStore):
    """Each region's broker through a shim of the agent, which keeps the last messages."""

    def __init__(
        self, remote: RemoteAntipode, topology: RabbitMQTopology, stack: ExitStack
    ) -> None:
        self.antipode = remote
        super().__init__(topology, stack)

    def _shim(self, url: str, **options: Any) -> RemoteShim:
        server = {"url": url, "exchange": self._exchange, "queue": self._exchange}
        return RemoteShim(self.antipode, "rabbitmq", "news", server, **options)

    def has_unique_log(self, write: WriteId) -> bool:
        """Publishers of any broker are minutes of channels."""
        del write
        return False

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self.reader.read(key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        found: tuple[bytes | None, Lineage] = self.writer.read(key)
        return found

    def refused_write(self, key: str, value: bytes) -> None:
        """Nobody takes it, and it must be taken."""
        server = {"url": self.topology.url(), "exchange": "", "queue": self._exchange}
        with closing(RemoteShim(self.antipode, "rabbitmq", "news", server)) as direct:
            direct.write(key, value)


class RemoteActiveMQ(Remote, ActiveMQContractStore):
    """Each region's broker through a shim of the agent, by OpenWire."""

    def __init__(
        self, remote: RemoteAntipode, topology: ActiveMQTopology, stack: ExitStack
    ) -> None:
        self.antipode, self.topology = remote, topology
        super().__init__(topology, stack)

    def _shim(self, url: str, application: str, **options: Any) -> RemoteShim:
        replica = url == self.topology.url(self.topology.replica)
        address = self.topology.openwire(self.topology.replica if replica else None)
        return self._at(address, application, **options)

    def _at(self, address: Any, application: str, **options: Any) -> RemoteShim:
        server = {
            "url": f"tcp://{address}",
            "topic": options.pop("topic", self._name),
            "queue": f"Consumer.{application}.{self._name}",
        }
        return RemoteShim(self.antipode, "activemq", "news", server, **options)

    def _subscribe(self, shim: Any) -> None:
        shim.read("")

    def has_unique_log(self, write: WriteId) -> bool:
        """Publishers of any broker are minutes of sessions."""
        del write
        return False

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self.reader.read(key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        found: tuple[bytes | None, Lineage] = self.writer.read(key)
        return found

    def refused_write(self, key: str, value: bytes) -> None:
        """To a topic without a name."""
        with closing(self._at(self.topology.openwire(), "refused", topic="")) as direct:
            direct.write(key, value)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The message arrives; its confirm does not."""
        with (
            LagProxy(self.topology.openwire()) as proxy,
            closing(self._at(proxy.address, "doubtful", reads_from="primary")) as doubtful,
        ):
            with self.antipode.scope():
                doubtful.write("opens the connection", b"")
            with once_asked(proxy, proxy.cut):
                doubtful.write(key, value)


class RemoteRegions(Remote, RegionsContractStore):
    """Two regions of an emulator; the reader comes through a proxy, which can be cut."""

    aborted: ClassVar[tuple[type[Exception], ...]] = (*ContractStore.aborted, StoreError)

    def __init__(self, remote: RemoteAntipode, topology: Any, stack: ExitStack) -> None:
        self.antipode = remote
        super().__init__(topology, stack)

    def _shim(self, topology: Any, address: Any, region: str, **options: Any) -> RemoteShim:
        server = {
            "url": topology.url(address),
            "region": region,
            "regions": options.pop("regions", {}),
            self.kept_in: options.pop(self.kept_in, "posts"),
        }
        return RemoteShim(self.antipode, self.service, "posts", server, **options)

    def connections(self) -> int:
        """As the shim's of this process: the agent's are of this machine, too."""
        return RegionsContractStore.connections(self)

    def has_unique_log(self, write: WriteId) -> bool:
        """The name of a table, or of a bucket, is the operator's."""
        del write
        return False

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        return await self.reader.read_async(key)

    def refused_write(self, key: str, value: bytes) -> None:
        """There is no such table or bucket."""
        missing = self._shim(
            self.topology, self.topology.primary, self.home, **{self.kept_in: "missing"}
        )
        with closing(missing):
            missing.write(key, value)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The request leaves; the connection ends before its reply."""
        with (
            LagProxy(self.topology.primary) as proxy,
            closing(self._shim(self.topology, proxy.address, self.home)) as doubtful,
        ):
            doubtful.read(key)
            with once_asked(proxy, proxy.cut):
                doubtful.write(key, value)


class RemoteDynamoDB(RemoteRegions, DynamoDBContractStore):
    """Of DynamoDB."""


class RemoteS3(RemoteRegions, S3ContractStore):
    """Of S3."""


class RemoteEmbedded(Remote, EmbeddedContractStore):
    """Two files, which the agent opens; the replicator is here."""

    aborted: ClassVar[tuple[type[Exception], ...]] = (*ContractStore.aborted, StoreError)

    def __init__(self, remote: RemoteAntipode, topology: EmbeddedTopology, folder: Path) -> None:
        self.antipode = remote
        super().__init__(topology, folder)

    def _shim(self, path: Path, **options: Any) -> RemoteShim:
        return RemoteShim(self.antipode, "embedded", "posts", {"url": str(path)}, **options)

    def has_unique_log(self, write: WriteId) -> bool:
        """A history's id is random."""
        return bool(write.key)

    def corrupt(self, key: str, text: str) -> None:
        self.corrupt_at(self.topology.replica, key, text)


class Contract(ShimContract):
    """What Python's agent keeps; a subclass names another language and what that lacks."""

    language: ClassVar[str] = "python"


class TestEmbedded(Contract):
    """Two files."""

    opt_outs: ClassVar[dict[str, str]] = {
        **test_embedded.TestEmbedded.opt_outs,
        "in_doubt": "SQLite's answer to a commit gets lost by what is in the process alone",
        "leaks": "SQLite keeps descriptors of closed connections for the next ones",
    }

    @pytest.fixture
    def store(self, tmp_path: Path, remote: RemoteAntipode) -> Iterator[RemoteEmbedded]:
        """Two regions, and a shim in each, both in an agent."""
        with EmbeddedTopology() as topology:
            store = RemoteEmbedded(remote, topology, tmp_path)
            yield store
            store.writer.close()
            store.reader.close()


class TestRedis(RemoteRedisContract):
    """Real Redis servers, and all claims."""

    language: ClassVar[str] = "python"


@pytest.mark.store("mysql")
class TestMySQL(Contract):
    """Real MySQL servers."""

    opt_outs: ClassVar[dict[str, str]] = {
        **MySQLContract.opt_outs,
        "partial_updates": WHOLE_VALUES,
    }

    @pytest.fixture
    def store(self, antipode_mysql: MySQLTopology, remote: RemoteAntipode) -> Iterator[RemoteMySQL]:
        """A shim at the primary and one at the replica, both in an agent."""
        yield from running(RemoteMySQL, remote, antipode_mysql)


@pytest.mark.store("mariadb")
class TestMariaDB(Contract):
    """Real MariaDB servers."""

    opt_outs: ClassVar[dict[str, str]] = TestMySQL.opt_outs

    @pytest.fixture
    def store(
        self, antipode_mariadb: MariaDBTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteMySQL]:
        """A shim at the primary and one at the replica, both in an agent."""
        yield from running(RemoteMySQL, remote, antipode_mariadb)


@pytest.mark.store("mysql")
class TestMySQLOfJava(TestMySQL):
    """The claims that Java's shim keeps, on the same servers."""

    language: ClassVar[str] = "java"


@pytest.mark.store("mariadb")
class TestMariaDBOfJava(TestMariaDB):
    """The claims that Java's shim keeps, on the same servers."""

    language: ClassVar[str] = "java"


@pytest.mark.store("mysql")
class TestMySQLOfCpp(TestMySQL):
    """The claims that the shim of C++ keeps, on the same servers."""

    language: ClassVar[str] = "cpp"


@pytest.mark.store("mariadb")
class TestMariaDBOfCpp(TestMariaDB):
    """The claims that the shim of C++ keeps, on the same servers."""

    language: ClassVar[str] = "cpp"


@pytest.mark.store("postgresql")
class TestPostgreSQLOfJava(Contract):
    """The claims that Java's shim keeps, on real servers."""

    language: ClassVar[str] = "java"
    opt_outs: ClassVar[dict[str, str]] = {
        **test_postgresql.TestPostgreSQL.opt_outs,
        "partial_updates": WHOLE_VALUES,
    }

    @pytest.fixture
    def store(
        self, antipode_postgresql: PostgreSQLTopology, remote: RemoteAntipode
    ) -> Iterator[RemotePostgreSQL]:
        """A shim at the primary and one at the standby, both in an agent."""
        yield from running(RemotePostgreSQL, remote, antipode_postgresql)


@pytest.mark.store("mongodb")
class TestMongoDB(Contract):
    """A real replica set."""

    opt_outs: ClassVar[dict[str, str]] = {
        "partial_updates": WHOLE_VALUES,
        "unknown_writes": "an agent has no client of the store that the suite could call",
    }

    @pytest.fixture
    def store(
        self, antipode_mongodb: MongoDBTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteMongoDB]:
        """A shim at the primary and one at the replica, both in an agent."""
        yield from running(RemoteMongoDB, remote, antipode_mongodb)


class TestMongoDBOfJava(TestMongoDB):
    """The claims that Java's shim keeps, on the same servers."""

    language: ClassVar[str] = "java"


class TestMongoDBOfCpp(TestMongoDB):
    """The claims that the shim of C++ keeps, on the same servers."""

    language: ClassVar[str] = "cpp"


@pytest.mark.store("dynamodb")
class TestDynamoDBOfJava(Contract):
    """The claims that Java's shim keeps, over two regions of an emulator."""

    language: ClassVar[str] = "java"
    opt_outs: ClassVar[dict[str, str]] = {
        **test_dynamodb.TestDynamoDB.opt_outs,
        "unknown_writes": "an agent has no client of the store that the suite could call",
    }

    @pytest.fixture
    def store(
        self, antipode_dynamodb: DynamoDBTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteDynamoDB]:
        """A shim in each region, both in an agent."""
        yield from running(RemoteDynamoDB, remote, antipode_dynamodb)


@pytest.mark.store("s3")
class TestS3OfJava(Contract):
    """The claims that Java's shim keeps, over two regions of an emulator."""

    language: ClassVar[str] = "java"
    opt_outs: ClassVar[dict[str, str]] = {
        **test_s3.TestS3.opt_outs,
        "unknown_writes": "an agent has no client of the store that the suite could call",
    }

    @pytest.fixture
    def store(self, antipode_s3: S3Topology, remote: RemoteAntipode) -> Iterator[RemoteS3]:
        """A shim in each region, both in an agent."""
        yield from running(RemoteS3, remote, antipode_s3)


@pytest.mark.store("activemq")
class TestActiveMQOfJava(Contract):
    """Two real brokers in a network; what Python publishes by STOMP is read, too."""

    language: ClassVar[str] = "java"
    opt_outs: ClassVar[dict[str, str]] = test_activemq.TestActiveMQ.opt_outs

    @pytest.fixture
    def store(
        self, antipode_activemq: ActiveMQTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteActiveMQ]:
        """A shim in each region, both in an agent."""
        yield from running(RemoteActiveMQ, remote, antipode_activemq)


@pytest.mark.store("rabbitmq")
class TestRabbitMQ(Contract):
    """Two real, federated brokers."""

    opt_outs: ClassVar[dict[str, str]] = test_rabbitmq.TestRabbitMQ.opt_outs

    @pytest.fixture
    def store(
        self, antipode_rabbitmq: RabbitMQTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteRabbitMQ]:
        """A shim in each region, both in an agent."""
        yield from running(RemoteRabbitMQ, remote, antipode_rabbitmq)


@pytest.mark.store("rabbitmq")
class TestRabbitMQOfJava(TestRabbitMQ):
    """The claims that Java's shim keeps, on the same brokers."""

    language: ClassVar[str] = "java"


@pytest.mark.store("rabbitmq")
class TestRabbitMQOfCpp(TestRabbitMQ):
    """The claims that the shim of C++ keeps, on the same brokers."""

    language: ClassVar[str] = "cpp"


def running(kind: Any, remote: RemoteAntipode, topology: Any) -> Iterator[Any]:
    """A store of *kind*, until the test has ended."""
    with ExitStack() as stack:
        store = kind(remote, topology, stack)
        yield store
        store.writer.close()
        store.reader.close()
