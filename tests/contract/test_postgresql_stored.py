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
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool, QueuePool

import antipode
from antipode import Lineage
from antipode_shims import postgresql as shims
from antipode_shims.postgresql._clients import sqlalchemy as _sqlalchemy
from antipode_shims.postgresql._shim import base as _base
from antipode_shims.postgresql._stored import lineages as _lineages
from antipode_testing import LagProxy, PostgreSQLTopology, ShimContract
from antipode_testing._wait import wait_until

from ._noted import noted_later, noted_read, noted_write, noting
from .test_postgresql import LONG_MS, PostgreSQLContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Promise

BESIDE: dict[str, Any] = {"datastore": "posts", "lineage": "beside", "tables": ["native"]}

INSERT = text("INSERT INTO native (id, body) VALUES (:key, :body)")
PUT = text(
    "INSERT INTO native (id, body) VALUES (:key, :body)"
    " ON CONFLICT (id) DO UPDATE SET body = excluded.body"
)
UPSERT = text(
    "INSERT INTO native (id, body) VALUES (:key, :body)"
    " ON CONFLICT (id) DO UPDATE SET body = native.body || excluded.body"
)
DELETE = text("DELETE FROM native WHERE id = :key")
SELECT = text("SELECT id, body FROM native WHERE id = :key")


class NativeStore(PostgreSQLContractStore):
    """Instrumented engines at the primary and, through a proxy, at the standby."""

    def __init__(self, topology: PostgreSQLTopology, stack: ExitStack) -> None:
        self._engines: dict[Any, Any] = {}
        make_table(topology)
        super().__init__(topology, stack)

    def _shim(self, address: Any, **options: Any) -> Any:
        engine = self._engine(
            address,
            poolclass=QueuePool,
            pool_size=8,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 2},
        )
        shims.instrument_engine(engine, **BESIDE, **options)
        self._stack.callback(shims.uninstrument_engine, engine)
        shim = _sqlalchemy.instrumented.shim_of(engine)
        self._engines[shim] = engine
        return shim

    def _engine(self, address: Any, **options: Any) -> Any:
        url = self.topology.url(address, driver="postgresql+psycopg")
        engine = create_engine(url, **options)
        self._stack.callback(engine.dispose)
        return engine

    def _within(self, lineage: Lineage | None, statement: Any, **values: Any) -> Lineage:
        """Run with what a write shall depend on; what is written joins the current scope."""

        def call() -> None:
            with self._engines[self.writer].begin() as connection:
                if statement is INSERT:
                    connection.execute(DELETE, {"key": values["key"]})
                connection.execute(statement, values)

        if lineage is None:
            base = antipode.current()
            with noting() as box:
                call()
            return base.merge(*box)
        with antipode.scope(lineage) as scope:
            call()
            written = scope.lineage
        for write in written:
            if write not in lineage:
                antipode.append(write)
        return written

    def write(self, key: str, value: bytes, lineage: Lineage | None = None) -> Lineage:
        """Replace the row: an update would merge its lineage."""
        return self._within(lineage, INSERT, key=key, body=value)

    def fulfil(self, key: str, value: bytes, promise: Promise) -> None:
        with self._engines[self.writer].begin() as connection:
            connection.execute(PUT, {"key": key, "body": value})
            shims.fulfil(connection, promise)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        return self._within(lineage, UPSERT, key=key, body=field.encode() + b"=" + value)

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        return self._within(lineage, DELETE, key=key)

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.reader, key)

    def read_primary(self, key: str) -> tuple[bytes | None, Lineage]:
        return self._found(self.writer, key)

    def _found(self, shim: Any, key: str) -> tuple[bytes | None, Lineage]:
        """In one snapshot, in which a row that is shown was not deleted meanwhile."""
        snapshot = self._engines[shim].execution_options(isolation_level="REPEATABLE READ")
        with noting() as box, snapshot.connect() as connection:
            row = connection.execute(SELECT, {"key": key}).one_or_none()
        return row and bytes(row.body), Lineage().merge(*box)

    async def read_async(self, key: str) -> Any:
        engine = create_async_engine(
            self.topology.url(self.proxy.address, driver="postgresql+psycopg_async"),
            poolclass=NullPool,
        )
        shims.instrument_engine(engine, reads_from="replica", **BESIDE)
        try:
            async with engine.connect() as connection:
                row = (await connection.execute(SELECT, {"key": key})).one_or_none()
        finally:
            shims.uninstrument_engine(engine)
            await engine.dispose()
        return row and bytes(row.body), antipode.current()

    def refused_write(self, key: str, value: bytes) -> None:
        """A standby takes no writes."""
        with self._engines[self.reader].begin() as connection:
            connection.execute(PUT, {"key": key, "body": value})

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

    @pytest.fixture
    def store(
        self, antipode_postgresql: PostgreSQLTopology, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[NativeStore]:
        """An engine at the primary and one at the standby, whose clients tell what they did."""
        monkeypatch.setattr(_lineages, "record_read", noted_read)
        monkeypatch.setattr(_lineages, "defer_read", noted_later)
        monkeypatch.setattr(_base, "record_write", noted_write)
        with ExitStack() as stack:
            yield NativeStore(antipode_postgresql, stack)
