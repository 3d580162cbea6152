"""The MySQL shim keeps the contract, on a real primary and replica of MySQL and of MariaDB."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool, QueuePool

from antipode_shims import mysql as shims
from antipode_testing import ContractStore, LagProxy, MariaDBTopology, MySQLTopology, ShimContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from antipode import Lineage, Promise, WriteId

Topology = MySQLTopology | MariaDBTopology

LONG_MS = 60_000
HEAD_BYTES = 10
GRANTS = {"mysql": "REPLICATION CLIENT", "mariadb": "BINLOG MONITOR, REPLICA MONITOR"}


class MySQLContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut."""

    topology: Topology

    def __init__(self, topology: Topology, stack: ExitStack) -> None:
        self._stack = stack
        self.topology = topology
        prepare(topology)
        self.proxy = stack.enter_context(LagProxy(topology.replicas[-1]))
        super().__init__(
            topology,
            self._shim(topology.primary),
            self._shim(self.proxy.address, reads_from="replica"),
        )

    def _shim(self, address: Any, **options: Any) -> Any:
        engine = create_engine(
            self.topology.url(address),
            poolclass=QueuePool,
            pool_size=8,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 2, "read_timeout": 15},
        )
        self._stack.callback(engine.dispose)
        return shims.shim("posts", engine, **options)

    async def read_async(self, key: str) -> Any:
        """Read by the asyncio shim, which looks where the synchronous one does."""
        url = self.topology.url(self.proxy.address, driver="mysql+aiomysql")
        reader = shims.shim_async("posts", url, reads_from="replica")
        try:
            return await reader.read(key)
        finally:
            await reader.aclose()

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary) as slow:
            url = self.topology.url(slow.address)
            engine = create_engine(
                url, isolation_level="AUTOCOMMIT", connect_args={"read_timeout": 1.0}
            )
            doubtful = shims.shim("posts", engine)
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS)
                doubtful.write(key, value)
            finally:
                doubtful.close()
                slow.cut()
                engine.dispose()

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """The transaction of a plain client, which fulfils and then fails."""
        with self.engine().begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO antipode_kv (k, v) VALUES (%s, %s)", (key, value)
            )
            shims.fulfil(connection, promise)
            raise RuntimeError("the branch fails")

    def engine(self) -> Any:
        """A plain engine at the primary."""
        engine = create_engine(self.topology.url(), poolclass=NullPool)
        self._stack.callback(engine.dispose)
        return engine

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        """Append to the value."""
        appended: Lineage = self.writer.append(key, field.encode() + b"=" + value, lineage)
        return appended

    def corrupt(self, key: str, text: str) -> None:
        """Overwrite the lineage, digest aside."""
        self.topology.execute(
            f"UPDATE app.antipode_kv SET _ap = CONCAT(LEFT(_ap, {HEAD_BYTES}), %s) WHERE k = %s",  # noqa: S608
            text,
            key,
        )
        self.topology.wait_replicated()

    def unknown(self, write: WriteId) -> WriteId:
        """A log of the same flavour that is nobody's."""
        key = "4711.4711" if isinstance(self.topology, MariaDBTopology) else str(uuid4())
        return replace(write, key=key)

    def unreachable(self) -> AbstractContextManager[None]:
        """Refuse connections to the replica."""
        return self.proxy.unreachable()

    @contextmanager
    def regressed(self) -> Iterator[None]:
        """The replica is back without data and without its primary."""
        self.topology.cut()
        node = self.topology._replica(0)
        self.topology._rebuild_node(node)
        node.prepare("app", [grant(self.topology)])
        try:
            yield
        finally:
            self.topology.heal()
            self.topology.wait_replicated()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)


def grant(topology: Topology) -> str:
    return f"GRANT {GRANTS[topology.store]} ON *.* TO app@'%'"


def prepare(topology: Topology) -> None:
    """Make the tables, and let services ask for the state of replication."""
    for statement in (
        grant(topology),
        *(made.replace("TABLE `", "TABLE IF NOT EXISTS app.`") for made in shims.ddl()),
        *shims.promises_ddl("app.antipode_promises"),
    ):
        topology.execute(statement)
    topology.wait_replicated()


class MySQLContract(ShimContract):
    """Of either flavour."""

    opt_outs: ClassVar[dict[str, str]] = {
        "unknown_writes": "the server tells of each commit, whatever statement made it",
    }


@pytest.mark.store("mysql")
class TestMySQL(MySQLContract):
    """Real MySQL servers."""

    @pytest.fixture
    def store(self, antipode_mysql: MySQLTopology) -> Iterator[MySQLContractStore]:
        """A shim at the primary and one at the replica."""
        yield from running(antipode_mysql)


@pytest.mark.store("mariadb")
class TestMariaDB(MySQLContract):
    """Real MariaDB servers."""

    @pytest.fixture
    def store(self, antipode_mariadb: MariaDBTopology) -> Iterator[MySQLContractStore]:
        """A shim at the primary and one at the replica."""
        yield from running(antipode_mariadb)


def running(topology: Topology) -> Iterator[MySQLContractStore]:
    with ExitStack() as stack:
        store = MySQLContractStore(topology, stack)
        yield store
        store.writer.close()
        store.reader.close()
