"""A native PostgreSQL client that keeps lineages beside rows keeps the contract of a shim.

Writes, reads, updates and deletes are SQL through SQLAlchemy's engines over psycopg; shims are what
the engines registered.
"""

from __future__ import annotations

import io
import threading
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
import pytest
from sqlalchemy import text

import antipode
from antipode_shims import postgresql as shims
from antipode_shims.postgresql._clients import sqlalchemy as _sqlalchemy
from antipode_shims.postgresql._shim import base as _base
from antipode_shims.postgresql._stored import lineages as _lineages
from antipode_testing import LagProxy, PostgreSQLTopology, ShimContract
from antipode_testing._wait import wait_until

from ._noted import noted_later, noted_read, noted_write
from ._rows import BESIDE, DELETE, RowsStore
from .test_postgresql import LONG_MS, PostgreSQLContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from antipode import Promise

INSERT = text("INSERT INTO native (id, body) VALUES (:key, :body)")
PUT = text(
    "INSERT INTO native (id, body) VALUES (:key, :body)"
    " ON CONFLICT (id) DO UPDATE SET body = excluded.body"
)
UPSERT = text(
    "INSERT INTO native (id, body) VALUES (:key, :body)"
    " ON CONFLICT (id) DO UPDATE SET body = native.body || excluded.body"
)


class NativeStore(RowsStore, PostgreSQLContractStore):
    """Instrumented engines at the primary and, through a proxy, at the standby."""

    shims = shims
    instrumented = _sqlalchemy.instrumented
    drivers = ("postgresql+psycopg", "postgresql+psycopg_async")
    put = PUT
    append = UPSERT
    connect_args: ClassVar = {"connect_timeout": 2}

    def __init__(self, topology: PostgreSQLTopology, stack: ExitStack) -> None:
        self._engines: dict[Any, Any] = {}
        make_table(topology)
        super().__init__(topology, stack)

    def replace(self, connection: Connection, values: dict[str, Any]) -> None:
        """Not by an update, which would merge the row's lineage."""
        connection.execute(DELETE, {"key": values["key"]})
        connection.execute(INSERT, values)

    def reading(self, engine: Any) -> Any:
        """In one snapshot, in which a row that is shown was not deleted meanwhile."""
        return engine.execution_options(isolation_level="REPEATABLE READ")

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The write arrives; the reply does not."""
        with LagProxy(self.topology.primary) as slow:
            engine = self._engine(slow.address, isolation_level="AUTOCOMMIT")
            shims.instrument_engine(engine, **BESIDE)
            cutting = threading.Thread(target=self._lose_reply, args=(slow, key))
            try:
                with engine.connect() as connection:
                    with antipode.scope():  # The session has this lineage's setting from now on.
                        connection.execute(PUT, {"key": f"{key}-before", "body": value})
                    slow.set_lag(LONG_MS, request_lag_ms=0)
                    cutting.start()
                    connection.execute(PUT, {"key": key, "body": value})
            finally:
                cutting.join()
                shims.uninstrument_engine(engine)
                engine.dispose()

    def _lose_reply(self, link: LagProxy, key: str) -> None:
        there = "SELECT 1 FROM native WHERE id = %s"
        try:
            wait_until(
                lambda: bool(self.topology.execute(there, key)),
                what="a write to arrive",
                timeout_s=self.timeout_s,
            )
        finally:
            link.cut()

    def corrupt(self, key: str, text: str) -> None:
        """As if the writer's library had said so."""
        self.topology.execute(
            "UPDATE native_ap SET l = %s WHERE k = convert_to(%s, 'UTF8')", text, key
        )
        self.topology.wait_replicated()

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """The transaction of a plain client, which fulfils and then fails."""
        with self.engine().begin() as connection:
            connection.execute(PUT, {"key": key, "body": value})
            shims.fulfil(connection, promise)
            raise RuntimeError("the branch fails")


def make_table(topology: PostgreSQLTopology) -> None:
    """Make the table ``native``, and let it keep lineages."""
    from antipode_shims.postgresql.__main__ import main

    for statement in (
        "DROP TABLE IF EXISTS native, native_ap CASCADE",
        "DROP FUNCTION IF EXISTS native_ap()",
        "CREATE TABLE native (id text PRIMARY KEY, body bytea)",
        f"ALTER TABLE native OWNER TO {topology.user}",
        "DROP TABLE IF EXISTS antipode_tombstone",
        "DROP FUNCTION IF EXISTS antipode_merge",
    ):
        topology.execute(statement)
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["migration", "--url", topology.url(), "native"]) == 0
    # By the service's own user: the shim of Table 2 has the same table of tombstones.
    topology.execute(f"GRANT CREATE ON SCHEMA public TO {topology.user}")
    with psycopg.connect(topology.url()) as connection:
        connection.execute(printed.getvalue().encode())
    topology.wait_replicated()


@pytest.mark.store("postgresql")
class TestNativePostgreSQL(ShimContract):
    """Real PostgreSQL servers."""

    opt_outs: ClassVar[dict[str, str]] = {
        "unknown_writes": "each transaction is asked for its id, whatever statement wrote in it",
        "reseed": "a standby without data copies its primary before it lets anybody in",
    }
    made: ClassVar[type[NativeStore]] = NativeStore

    @pytest.fixture
    def store(
        self, antipode_postgresql: PostgreSQLTopology, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[NativeStore]:
        """An engine at the primary and one at the standby, whose clients tell what they did."""
        monkeypatch.setattr(_lineages, "record_read", noted_read)
        monkeypatch.setattr(_lineages, "defer_read", noted_later)
        monkeypatch.setattr(_base, "record_write", noted_write)
        with ExitStack() as stack:
            yield self.made(antipode_postgresql, stack)


class PreparedStore(NativeStore):
    """Every statement is prepared by the client, as it does of itself from the sixth time on."""

    connect_args: ClassVar = {**NativeStore.connect_args, "prepare_threshold": 0}


@pytest.mark.nightly
class TestPreparedPostgreSQL(TestNativePostgreSQL):
    """The same servers and claims: what is asked of a read must not hang on how it was sent."""

    made = PreparedStore
