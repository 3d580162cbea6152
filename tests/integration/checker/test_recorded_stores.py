"""What the shims of real stores record, and what the checker says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.checker import check, load
from tests.contract import test_mongodb as mongodb
from tests.contract import test_mysql as mysql
from tests.contract import test_redis as redis
from tests.contract.test_redis import LONG_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Recorded:
    """Claims about each store, which `store` is."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """Where this process records."""
        antipode.configure(history_dir=tmp_path / "history")
        yield tmp_path / "history"
        antipode.configure(history_dir=None)

    #: Whether a read that finds nothing finds out which deletion it saw.
    deletions = True

    def test_values_and_deletions_have_versions(self, store: Any, folder: Path) -> None:
        """What a read returns is known, also where it finds what was deleted."""
        with antipode.scope():
            store.write("recorded", b"1")
            store.write("recorded", b"2")
            antipode.barrier(timeout=store.timeout_s)
            assert store.read("recorded")[0] == b"2"
            store.delete("recorded")
            antipode.barrier(timeout=store.timeout_s)
            assert store.read("recorded")[0] is None
            assert store.read("never-written")[0] is None
        history = load([folder])
        if not self.deletions:
            kinds = ["write", "write", "read", "write", "read"]
            assert [one.kind for one in history.operations] == kinds
            assert history.left_out == 1
            return
        versions = [one.version for one in history.operations]
        assert versions == [versions[0], versions[1], versions[1], versions[3], versions[3], None]
        assert len(set(versions)) == 4
        assert history.left_out == 0
        assert str(check(history)) == "ok"

    @pytest.mark.parametrize(("guarded", "said"), [(False, "violation"), (True, "ok")])
    def test_a_barrier_makes_the_difference(
        self, store: Any, folder: Path, *, guarded: bool, said: str
    ) -> None:
        """A read before replication is a violation, and none after a barrier."""
        if not guarded:
            store.topology.pause()
        with antipode.scope():
            store.write("overtaken", b"1")
            if guarded:
                antipode.barrier(timeout=store.timeout_s)
            store.read("overtaken")
        assert str(check(load([folder]))) == said

    def test_what_others_write_is_unknown(self, store: Any, folder: Path) -> None:
        """A value that nobody recorded is no violation, and no proof."""
        antipode.configure(history_dir=None)
        with antipode.scope():
            store.write("before", b"1")
            antipode.barrier(timeout=store.timeout_s)
            antipode.configure(history_dir=folder)
            store.read("before")
        assert str(check(load([folder]))) == "unknown"


@pytest.mark.store("redis")
class TestRedis(Recorded):
    """Companion keys."""

    store = redis.TestRedis.store

    def test_a_plain_deletion_is_unknown(self, store: Any, folder: Path) -> None:
        """A client without the shim deletes: its companion says that somebody did."""
        with antipode.scope():
            store.write("deleted", b"1")
            store._client(store.topology.primary).delete("deleted")
            store.read_primary("deleted")
        assert str(check(load([folder]))) == "unknown"

    def test_what_expires_is_unknown(self, store: Any, folder: Path) -> None:
        """A key that expires may be gone."""
        with antipode.scope():
            store.writer.write("expires", b"1", px=LONG_MS)
            store._client(store.topology.primary).delete("expires", "ap:expires")
            store.read_primary("expires")
        assert str(check(load([folder]))) == "unknown"


@pytest.mark.store("mysql")
class TestMySQL(Recorded):
    """An invisible column, and tombstones."""

    store = mysql.TestMySQL.store


@pytest.mark.store("mongodb")
class TestMongoDB(Recorded):
    """A field of the document; a tombstone is of all deletions of a key."""

    deletions = False

    store = mongodb.TestMongoDB.store
