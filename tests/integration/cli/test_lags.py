"""Topologies that begin with a lag, and return to it."""

from __future__ import annotations

from typing import Any

import pytest

from antipode_testing.lab import STORES, topology_class

REAL = [pytest.param(name, marks=pytest.mark.store(name)) for name in sorted(STORES)]


@pytest.mark.slow
@pytest.mark.parametrize("store", REAL)
def test_a_lag_to_begin_with(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replication lags once the servers run, and again after a reset, without another call."""
    kind: Any = topology_class(store)
    told: list[float] = []
    plain = kind.set_lag

    def set_lag(self: Any, ms: float, **options: Any) -> None:
        told.append(ms)
        plain(self, ms, **options)

    monkeypatch.setattr(kind, "set_lag", set_lag)
    with kind(lag_ms=3.0) as topology:
        begun = list(told)
        topology.pause()
        topology.reset()
        # The embedded store's replicator is made with its lag, and returns to it by the same call.
        assert begun == ([] if store == "embedded" else [3.0])
        assert store == "embedded" or told[-1] == 3.0
