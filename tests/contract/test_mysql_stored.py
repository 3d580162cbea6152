"""A native MySQL client that keeps lineages beside rows keeps the contract of a shim.

Writes, reads, updates and deletes are SQL through SQLAlchemy's engines, of MySQL and of MariaDB;
shims are what the engines registered.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from sqlalchemy import text
from sqlalchemy.pool import NullPool

import antipode
from antipode_shims import mysql as shims
from antipode_shims.mysql._clients import sqlalchemy as _sqlalchemy
from antipode_shims.mysql._clients import tap as _tap
from antipode_shims.mysql._stored import lineages as _lineages
from antipode_testing import LagProxy, MariaDBTopology, MySQLTopology

from ._noted import noted_later, noted_read, noted_write
from ._rows import BESIDE, SELECT, RowsStore
from .test_mysql import LONG_MS, MySQLContract, MySQLContractStore, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPLACE = text("REPLACE INTO native (id, body) VALUES (:key, :body)")
UPSERT = text(
    "INSERT INTO native (id, body) VALUES (:key, :body)"
    " ON DUPLICATE KEY UPDATE body = CONCAT(body, VALUES(body))"
)


class NativeStore(RowsStore, MySQLContractStore):
    """Instrumented engines at the primary and, through a proxy, at the replica."""

    shims = shims
    instrumented = _sqlalchemy.instrumented
    drivers = ("mysql+pymysql", "mysql+aiomysql")
    put = REPLACE
    append = UPSERT
    connect_args: ClassVar = {"connect_timeout": 2, "read_timeout": 15}

    def __init__(self, topology: Topology, stack: ExitStack, *, side_table: bool = False) -> None:
        self._engines: dict[Any, Any] = {}
        make_table(topology, side_table=side_table)
        super().__init__(topology, stack)

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary) as slow:
            engine = self._engine(
                slow.address, isolation_level="AUTOCOMMIT", connect_args={"read_timeout": 1.0}
            )
            shims.instrument_engine(engine, **BESIDE)
            try:
                with engine.connect() as connection:
                    with antipode.scope():  # The session's variables hold this lineage from now on.
                        connection.execute(REPLACE, {"key": f"{key}-before", "body": value})
                    slow.set_lag(LONG_MS)
                    connection.execute(REPLACE, {"key": key, "body": value})
            finally:
                shims.uninstrument_engine(engine)
                slow.cut()
                engine.dispose()

    def corrupt(self, key: str, text: str) -> None:
        """As if the writer's library had said so."""
        engine = self._engine(self.topology.primary, poolclass=NullPool)
        with engine.begin() as connection:
            values = {"key": key, "body": connection.execute(SELECT, {"key": key}).one().body}
            connection.exec_driver_sql("SET @antipode_lineage = %s, @antipode_until = 0", (text,))
            connection.execute(REPLACE, values)
        self.topology.wait_replicated()


def make_table(topology: Topology, *, side_table: bool) -> None:
    """Make the table ``native``, and let it keep lineages."""
    if topology.store == "mysql":
        topology.execute("SET GLOBAL log_bin_trust_function_creators = ON")
    for statement in (
        "DROP TABLE IF EXISTS app.native",
        "DROP TABLE IF EXISTS app.native_ap",
        "DROP TABLE IF EXISTS app.antipode_tombstone",
        "CREATE TABLE app.native (id VARCHAR(99) PRIMARY KEY, body LONGBLOB)",
        *shims.migration("app.native", side_table=side_table),
    ):
        topology.execute(statement)
    topology.wait_replicated()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., NativeStore]]:
    """Make the store, whose clients tell what a call read or wrote."""
    monkeypatch.setattr(_lineages, "record_read", noted_read)
    monkeypatch.setattr(_lineages, "defer_read", noted_later)
    monkeypatch.setattr(_tap, "record_write", noted_write)
    with ExitStack() as stack:
        yield lambda topology, **options: NativeStore(topology, stack, **options)


@pytest.mark.store("mysql")
class TestNativeMySQL(MySQLContract):
    """Real MySQL servers."""

    @pytest.fixture
    def store(
        self, antipode_mysql: MySQLTopology, running: Callable[..., NativeStore]
    ) -> NativeStore:
        """An engine at the primary and one at the replica."""
        return running(antipode_mysql)


@pytest.mark.store("mariadb")
class TestNativeMariaDB(MySQLContract):
    """Real MariaDB servers."""

    @pytest.fixture
    def store(
        self, antipode_mariadb: MariaDBTopology, running: Callable[..., NativeStore]
    ) -> NativeStore:
        """An engine at the primary and one at the replica."""
        return running(antipode_mariadb)


@pytest.mark.store("mysql")
class TestNativeMySQLSideTable(MySQLContract):
    """As older servers have it."""

    @pytest.fixture
    def store(
        self, antipode_mysql: MySQLTopology, running: Callable[..., NativeStore]
    ) -> NativeStore:
        """An engine at the primary and one at the replica."""
        return running(antipode_mysql, side_table=True)
