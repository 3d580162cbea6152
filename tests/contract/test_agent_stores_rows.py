"""What a pool in Java stores with rows of the application's own, as the contract suite has it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode import Lineage
from antipode.shim import encode
from antipode_testing import LagProxy
from antipode_testing.contract.base import ContractBase
from antipode_testing.contract.stored import StoredContract
from tests.agent.client import RemoteShim
from tests.contract._servers import described
from tests.contract.test_agent import remote
from tests.contract.test_agent_stores import LONG_MS, RemotePostgreSQL, running
from tests.contract.test_postgresql_stored import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.agent.client import RemoteAntipode

__all__ = ["remote"]

INSERT = "INSERT INTO native (id, body) VALUES ('{key}', '\\x{value}')"
UPSERT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET body = native.body || excluded.body"
DELETE = "DELETE FROM native WHERE id = '{key}'"
SELECT = "SELECT encode(body, 'hex'), id FROM native WHERE id = '{key}'"
ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


class Rows(RemoteShim):
    """The calls of Table 2 by SQL, through a connection of a pool."""

    def run(self, call: str, statement: str = "") -> Any:
        """One call of JDBC."""
        return self._ask("jdbc", call=call, sql=statement, parameters=[])

    def execute(self, lineage: Lineage | None, *statements: str) -> Lineage:
        """Write in a transaction what depends on *lineage*, or on what the scope holds."""
        if lineage is None:
            self._commit(*statements)
            return self._remote.current()
        with self._remote.scope(lineage) as scope:
            self._commit(*statements)
        new = Lineage(each for each in scope.lineage if each not in lineage)
        self._remote.ask("merge_into", text=encode(new))
        return scope.lineage

    def _commit(self, *statements: str) -> None:
        self.run("begin")
        for each in statements:
            self.run("update", each)
        self.run("commit")
        self.run("close")

    def write(
        self, key: str, value: bytes, lineage: Lineage | None = None, **options: Any
    ) -> Lineage:
        """A row that depends on nothing of what was there."""
        assert not options, "rows fulfil nothing here"
        insert = INSERT.format(key=key, value=value.hex())
        return self.execute(lineage, DELETE.format(key=key), insert)

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """The row of a key."""
        return self.execute(lineage, DELETE.format(key=key))

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """In one snapshot, in which a row that is shown was not deleted meanwhile."""
        with self._remote.scope() as scope:
            self.run("begin")
            self.run("execute", ONE_SNAPSHOT)
            rows = self.run("query", SELECT.format(key=key))
            self.run("commit")
            self.run("close")
        self._remote.ask("merge_into", text=encode(scope.lineage))
        return (bytes.fromhex(rows[0]) if rows else None), scope.lineage


class RemoteRows(RemotePostgreSQL):
    """Pools at the primary and, through a proxy, at the standby."""

    writer: Rows

    def __init__(
        self, remote: RemoteAntipode, topology: PostgreSQLTopology, stack: ExitStack
    ) -> None:
        make_table(topology)
        super().__init__(remote, topology, stack)

    def _shim(self, address: Any, **options: Any) -> Rows:
        server = described("postgresql", self.topology, address)
        given = {"client": True, "tables": ["native"], **options}
        return Rows(self.antipode, "postgresql", "posts", server, **given)

    def partial_update(self, key: str, field: str, value: bytes, lineage: Lineage) -> Lineage:
        """Appended to the row."""
        appended = (field.encode() + b"=" + value).hex()
        return self.writer.execute(lineage, UPSERT.format(key=key, value=appended))

    def doubtful_write(self, key: str, value: bytes) -> None:
        """The commit arrives; the reply does not."""
        insert = INSERT.format(key=key, value=value.hex())
        with (
            LagProxy(self.topology.primary) as slow,
            closing(self._shim(slow.address, url_options="?socketTimeout=1")) as doubtful,
        ):
            doubtful.run("begin")
            doubtful.run("update", insert)
            slow.set_lag(LONG_MS, request_lag_ms=0)
            try:
                doubtful.run("commit")
            finally:
                slow.cut()

    def corrupt(self, key: str, text: str) -> None:
        """As if the writer's library had said so."""
        self.topology.execute(
            "UPDATE native_ap SET l = %s WHERE k = convert_to(%s, 'UTF8')", text, key
        )
        self.topology.wait_replicated()


@pytest.mark.store("postgresql")
class TestRowsOfJava(StoredContract, ContractBase):
    """The claims about what is stored with a value, on real servers."""

    language: ClassVar[str] = "java"

    @pytest.fixture
    def store(
        self, antipode_postgresql: PostgreSQLTopology, remote: RemoteAntipode
    ) -> Iterator[RemoteRows]:
        """A pool at the primary and one at the standby, both in an agent."""
        yield from running(RemoteRows, remote, antipode_postgresql)
