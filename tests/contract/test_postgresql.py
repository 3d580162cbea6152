"""The PostgreSQL shim keeps the contract, on a real primary and standby."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool, QueuePool

from antipode_shims import postgresql as shims
from antipode_testing import ContractStore, LagProxy, PostgreSQLTopology, ShimContract
from antipode_testing._wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from antipode import Lineage, Promise, WriteId

LONG_MS = 60_000
TABLES = ("antipode_kv", "antipode_tombstone", "antipode_promises")


class PostgreSQLContractStore(ContractStore):
    """The reader comes through a proxy, which can be cut."""

    topology: PostgreSQLTopology

    def __init__(self, topology: PostgreSQLTopology, stack: ExitStack) -> None:
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
            self.topology.url(address, driver="postgresql+psycopg"),
            poolclass=QueuePool,
            pool_size=8,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 2},
        )
        self._stack.callback(engine.dispose)
        return shims.shim("posts", engine, **options)

    async def read_async(self, key: str) -> Any:
        """Read by the asyncio shim, which polls where the synchronous one does."""
        url = self.topology.url(self.proxy.address, driver="postgresql+psycopg_async")
        reader = shims.shim_async("posts", url, reads_from="replica")
        try:
            return await reader.read(key)
        finally:
            await reader.aclose()

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary) as slow:
            url = self.topology.url(slow.address, driver="postgresql+psycopg")
            engine = create_engine(url, isolation_level="AUTOCOMMIT")
            doubtful = shims.shim("posts", engine)
            cutting = threading.Thread(target=self._cut, args=(slow, key))
            try:
                doubtful.read(key)
                slow.set_lag(LONG_MS, request_lag_ms=0)
                cutting.start()
                doubtful.write(key, value)
            finally:
                cutting.join()
                doubtful.close()
                engine.dispose()

    def _cut(self, link: LagProxy, key: str) -> None:
        """Lose the reply, once the write is there."""
        there = "SELECT 1 FROM antipode_kv WHERE k = %s"
        try:
            wait_until(
                lambda: bool(self.topology.execute(there, key.encode())),
                what="a write to arrive",
                timeout_s=self.timeout_s,
            )
        finally:
            link.cut()

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """The transaction of a plain client, which fulfils and then fails."""
        with self.engine().begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO antipode_kv (k, v) VALUES (%s, %s)", (key.encode(), value)
            )
            shims.fulfil(connection, promise)
            raise RuntimeError("the branch fails")

    def engine(self) -> Any:
        """A plain engine at the primary."""
        url = self.topology.url(driver="postgresql+psycopg")
        engine = create_engine(url, poolclass=NullPool)
        self._stack.callback(engine.dispose)
        return engine

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        """Append to the value."""
        appended: Lineage = self.writer.append(key, field.encode() + b"=" + value, lineage)
        return appended

    def corrupt(self, key: str, text: str) -> None:
        """Overwrite the lineage, digest aside."""
        self.topology.execute("UPDATE antipode_kv SET l = %s WHERE k = %s", text, key.encode())
        self.topology.wait_replicated()

    def unknown(self, write: WriteId) -> WriteId:
        """A log of a system that is nobody's."""
        return replace(write, key="4711/1-0")

    def unreachable(self) -> AbstractContextManager[None]:
        """Refuse connections to the standby."""
        return self.proxy.unreachable()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)


def prepare(topology: PostgreSQLTopology) -> None:
    """Make the tables."""
    for statement in (*shims.ddl(), *shims.promises_ddl()):
        topology.execute(statement)
    for table in TABLES:
        topology.execute(f"ALTER TABLE {table} OWNER TO {topology.user}")
    topology.wait_replicated()


@pytest.mark.store("postgresql")
class TestPostgreSQL(ShimContract):
    """Real PostgreSQL servers."""

    opt_outs: ClassVar[dict[str, str]] = {
        "unknown_writes": "each transaction is asked for its id, whatever statement wrote in it",
        "reseed": "a standby without data copies its primary before it lets anybody in",
    }

    @pytest.fixture
    def store(self, antipode_postgresql: PostgreSQLTopology) -> Iterator[PostgreSQLContractStore]:
        """A shim at the primary and one at the standby."""
        with ExitStack() as stack:
            store = PostgreSQLContractStore(antipode_postgresql, stack)
            yield store
            store.writer.close()
            store.reader.close()
