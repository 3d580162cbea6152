"""The embedded store keeps the whole contract; it is the suite's own reference."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import ContractStore, ShimContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Promise


class DyingConnection:
    """Commits, and then fails as if nobody had answered."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = self._connection.execute(statement, *parameters)
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


class FullConnection(DyingConnection):
    """Cannot commit; closing it rolls back."""

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return self._connection.execute(statement, *parameters)


class EmbeddedContractStore(ContractStore):
    """The reader comes by a symbolic link, which can be taken away."""

    def __init__(self, topology: EmbeddedTopology, folder: Path) -> None:
        self._link = folder / "region-b"
        self._link.symlink_to(topology.replica.parent)
        super().__init__(
            topology,
            writer=self._shim(topology.primary),
            reader=self._shim(self._link / topology.replica.name, reads_from="replica"),
        )

    def _shim(self, path: Path, **options: Any) -> Any:
        return embedded.shim("posts", path, **options)

    def doubtful_write(self, key: str, value: bytes) -> None:
        file = self.writer.store._writer
        with file.connection() as connection:
            file._connection = DyingConnection(connection)
        self.writer.write(key, value)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        file = self.writer.store._writer
        with file.connection() as connection:
            file._connection = FullConnection(connection)
        self.writer.write(key, value, fulfils=promise)

    def corrupt(self, key: str, text: str) -> None:
        self.corrupt_at(self.reader.store.path, key, text)

    def corrupt_at(self, path: Path, key: str, text: str) -> None:
        """Overwrite the lineage in one file."""
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE log SET lineage = ? WHERE key = ?", (text, key))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        target = self._link.readlink()
        self._link.unlink()
        try:
            yield
        finally:
            self._link.symlink_to(target)

    @contextmanager
    def regressed(self) -> Iterator[None]:
        self.topology.pause()
        self.topology.reseed()
        try:
            yield
        finally:
            self.topology.resume()

    def reconnect(self) -> None:
        self.writer.close()
        self.writer = self._shim(self.topology.primary)

    def connections(self) -> int:
        """Each connection has its file's log open for itself.

        Not every descriptor is one: SQLite keeps those of closed connections while the process
        holds locks on the file, and uses them for the next.
        """
        links = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                links.append(descriptor.readlink())
        return sum(link.name.endswith(".db-wal") for link in links)


class TestEmbedded(ShimContract):
    """The embedded store."""

    opt_outs: ClassVar[dict[str, str]] = {
        "partial_updates": "a value has no parts: every write replaces it whole",
        "unknown_writes": "nothing writes but the shim",
    }

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[EmbeddedContractStore]:
        """Two regions, and a shim in each."""
        with EmbeddedTopology() as topology:
            store = EmbeddedContractStore(topology, tmp_path)
            yield store
            store.writer.close()
            store.reader.close()
