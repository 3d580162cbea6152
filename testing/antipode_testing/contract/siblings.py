"""Claims about a server that follows a replica which has been promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import Lineage, UnmetError

from .base import ContractBase, category, replicated, statuses, written

if TYPE_CHECKING:
    from .store import ContractStore

WRITES = 10
LAG_MS = 50


class SiblingContract(ContractBase):
    """What a shim owes readers at a sibling of the promoted replica.

    Subclass it as `ShimContract`, with a fixture ``store`` over a topology of two replicas whose
    reader is at the second. The first is promoted, and `ContractStore.follow` lets the second
    follow it.
    """

    @category("failover")
    def test_sibling_waits_for_the_new_primary(self, store: ContractStore, key: str) -> None:
        """What the new primary writes is waited for at a sibling, and shown."""
        replicated(store, key, b"old")
        store.topology.failover(lose_unreplicated=False)
        store.follow()
        store.reconnect()
        store.topology.set_lag(LAG_MS)
        for number in range(WRITES):
            value = str(number).encode()
            write = written(store, key, value)
            with store.antipode.scope(Lineage([write])):
                assert store.antipode.barrier(timeout=store.timeout_s, at="read").ok
                assert store.read(key)[0] == value

    @category("failover")
    def test_sibling_never_shows_a_lost_write(self, store: ContractStore, key: str) -> None:
        """A write that the fail-over lost ends the barrier at a sibling, which never shows it."""
        replicated(store, key, b"old")
        topology: Any = store.topology
        topology.wait_replicated()  # By both: either may be behind.
        store.topology.cut()
        lost = written(store, key, b"lost")
        store.topology.failover(lose_unreplicated=True)
        store.topology.heal()
        store.follow()
        store.reconnect()
        after = written(store, f"{key}-after")
        assert store.antipode.barrier(Lineage([after]), timeout=store.timeout_s).ok
        with pytest.raises(UnmetError) as caught:
            store.antipode.barrier(Lineage([lost]), timeout=store.timeout_s)
        assert statuses(caught.value.result) <= store.lost_at_a_sibling
        with store.antipode.scope():
            assert store.read(key)[0] == b"old"
