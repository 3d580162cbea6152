"""Claims about what is stored with a value: round trips, replacement, deletes, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antipode import IncompleteLineage, Lineage, WriteId
from antipode.shim import Incomplete
from antipode.telemetry import Metric

from .base import ELSEWHERE, ELSEWHERE_TOO, category, minted, written

if TYPE_CHECKING:
    from .store import ContractStore

#: No lineage, each in a way of its own.
DAMAGED = ("", "no lineage!", "1~", "1~u", "1~kelse", "1" + "~kposts.log.1" * 6000)
MANY = 400
#: After fewer of the same reads clients let the server prepare them, and send them otherwise.
READS = 10


def _stored(store: ContractStore, key: str, lineage: Lineage, value: bytes = b"1") -> Lineage:
    """Write with *lineage*, and read it back at the replica."""
    with store.antipode.scope():
        store.write(key, value, lineage)
        store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
        shown, found = store.read(key)
    assert shown == value
    return found


class StoredContract:
    """Lineages come back as they were stored, or say that they are damaged."""

    @category("stored_lineage")
    def test_round_trip(self, store: ContractStore, key: str) -> None:
        """A read yields the stored lineage, and covers the write that it shows."""
        with store.antipode.scope():
            write = minted(store, Lineage(), store.write(key, b"1", Lineage([ELSEWHERE])))
            store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
            value, found = store.read(key)
        assert value == b"1"
        assert ELSEWHERE in found
        assert store.covers(found, write)

    @category("stored_lineage")
    def test_read_merges_into_scope(self, store: ContractStore, key: str) -> None:
        """What a read shows becomes a dependency of the request that reads."""
        _stored(store, key, Lineage([ELSEWHERE]))
        with store.antipode.scope() as scope:
            _, found = store.read(key)
            assert scope.lineage.merge(found) == scope.lineage
            assert ELSEWHERE in scope.lineage

    @category("stored_lineage")
    def test_reading_often(self, store: ContractStore, key: str) -> None:
        """What one read yields the same read yields each time that it is made again."""
        _stored(store, key, Lineage([ELSEWHERE]))
        for _ in range(READS):
            with store.antipode.scope() as scope:
                store.read(key)
                assert ELSEWHERE in scope.lineage

    @category("stored_lineage")
    def test_current_lineage_is_stored(self, store: ContractStore, key: str) -> None:
        """Without a lineage given, the current one is stored."""
        with store.antipode.scope(Lineage([ELSEWHERE])):
            store.write(key, b"1")
            store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
        with store.antipode.scope():
            assert ELSEWHERE in store.read(key)[1]

    @category("stored_lineage")
    def test_full_replace_replaces(self, store: ContractStore, key: str) -> None:
        """A write that replaces the value replaces its lineage."""
        assert ELSEWHERE in _stored(store, key, Lineage([ELSEWHERE]))
        found = _stored(store, key, Lineage([ELSEWHERE_TOO]), b"2")
        assert ELSEWHERE_TOO in found
        assert ELSEWHERE not in found
        assert not _stored(store, key, Lineage(), b"3").only("elsewhere", "elsewhere-too")

    @category("stored_lineage")
    def test_incomplete_survives_storage(self, store: ContractStore, key: str) -> None:
        """Marks of what is missing are stored and come back."""
        mark = Incomplete("somewhere", "in_doubt")
        assert mark in _stored(store, key, Lineage(incomplete=[mark])).incomplete

    @category("stored_lineage")
    def test_oversize_is_marked(self, store: ContractStore, key: str) -> None:
        """A lineage over the bound is stored shorter, and says so: nothing is lost silently."""
        given = Lineage(WriteId("elsewhere", f"key-{n}", n + 1, 490_000) for n in range(MANY))
        found = _stored(store, key, given)
        kept = [write for write in found if write.datastore == "elsewhere"]
        assert set(kept) <= set(given)
        assert len(kept) == MANY or Incomplete("elsewhere", "size") in found.incomplete

    @category("stored_lineage")
    def test_absent_key(self, store: ContractStore, key: str) -> None:
        """A key that was never written reads as absent, without anybody's dependencies."""
        with store.antipode.scope():
            value, found = store.read(key)
        assert value is None
        assert {write.datastore for write in found} <= {store.datastore}

    @category("partial_updates")
    def test_partial_update_merges(self, store: ContractStore, key: str) -> None:
        """A write of one part keeps the causes of the other parts."""
        with store.antipode.scope():
            store.partial_update(key, "a", b"1", Lineage([ELSEWHERE]))
            store.partial_update(key, "b", b"2", Lineage([ELSEWHERE_TOO]))
            store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
        with store.antipode.scope():
            found = store.read(key)[1]
        assert ELSEWHERE in found
        assert ELSEWHERE_TOO in found

    @category("deletes")
    def test_barrier_waits_for_deletes(self, store: ContractStore, key: str) -> None:
        """A delete is a dependency like any write: after the barrier the value is gone."""
        _stored(store, key, Lineage())
        store.topology.set_lag(30)
        with store.antipode.scope() as scope:
            store.delete(key)
            assert minted(store, Lineage(), scope.lineage)
            store.antipode.barrier(timeout=store.timeout_s)
            assert store.read(key)[0] is None

    @category("deletes")
    def test_tombstone_keeps_lineage(self, store: ContractStore, key: str) -> None:
        """Reading that something is gone depends on whatever its delete depended on."""
        _stored(store, key, Lineage([ELSEWHERE_TOO]))
        with store.antipode.scope():
            store.delete(key, Lineage([ELSEWHERE]))
            store.antipode.barrier(timeout=store.timeout_s, only=store.datastore)
        for _ in range(READS):
            with store.antipode.scope():
                value, found = store.read(key)
            assert value is None
            assert ELSEWHERE in found

    @category("deletes")
    def test_write_after_delete(self, store: ContractStore, key: str) -> None:
        """A value written after a delete replaces the tombstone."""
        with store.antipode.scope():
            store.delete(key, Lineage([ELSEWHERE]))
        found = _stored(store, key, Lineage([ELSEWHERE_TOO]))
        assert ELSEWHERE_TOO in found
        assert ELSEWHERE not in found

    @category("codec_abuse")
    @pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
    def test_damaged_lineage_is_incomplete(self, store: ContractStore, key: str, text: str) -> None:
        """A stored text that is no lineage never becomes an empty one; the value still reads."""
        _stored(store, key, Lineage([ELSEWHERE]))
        metric = Metric("unreadable", store.datastore)
        before = store.antipode.telemetry.metrics().get(metric, 0)
        store.corrupt(key, text)
        with store.antipode.scope():
            value, found = store.read(key)
            assert value == b"1"
            assert Incomplete(store.datastore, "unreadable") in found.incomplete
            with pytest.raises(IncompleteLineage):
                store.antipode.barrier(timeout=store.timeout_s)
        assert store.antipode.telemetry.metrics()[metric] == before + 1

    @category("codec_abuse")
    def test_later_version_is_kept(self, store: ContractStore, key: str) -> None:
        """A lineage of a later version of the format is passed on, not dropped."""
        _stored(store, key, Lineage([ELSEWHERE]))
        store.corrupt(key, "2something~from.later")
        with store.antipode.scope():
            found = store.read(key)[1]
        assert found.unknown

    @category("in_doubt")
    def test_doubtful_write_is_incomplete(self, store: ContractStore, key: str) -> None:
        """A write of unknown outcome marks the lineage, and the barrier refuses to vouch."""
        with store.antipode.scope() as scope:
            with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own
                store.doubtful_write(key, b"1")
            assert Incomplete(store.datastore, "in_doubt") in scope.lineage.incomplete
            with pytest.raises(IncompleteLineage):
                store.antipode.barrier(timeout=store.timeout_s)
            assert store.antipode.barrier(timeout=store.timeout_s, on_incomplete="report").ok

    @category("in_doubt")
    def test_store_works_after_doubt(self, store: ContractStore, key: str) -> None:
        """The shim goes on working after a write in doubt."""
        with store.antipode.scope(), pytest.raises(Exception):  # noqa: B017, PT011 - as above
            store.doubtful_write(key, b"1")
        write = written(store, key, b"2")
        store.antipode.barrier(Lineage([write]), timeout=store.timeout_s)
        with store.antipode.scope():
            assert store.read(key)[0] == b"2"
