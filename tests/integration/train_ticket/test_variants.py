"""TrainTicket: the baseline, and each barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.train_ticket._money import count
from benchmarks.train_ticket._variants import COMPARED
from tests.integration.train_ticket._application import LAG_MS, application, cancelled, seeded

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.train_ticket._stores import Stores

pytestmark = [
    pytest.mark.timeout(1200),
    *(pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")),
]

USERS = 50


def test_baseline_lacks_refunds_and_no_barrier_does(stores: Stores, tmp_path: Path) -> None:
    """Without the library some users find no refund; with any of three barriers all do."""
    lacking = {}
    with application(stores, tmp_path, *COMPARED) as edges:
        orders = {name: seeded(stores, name, USERS) for name in COMPARED}
        stores.set_lag(LAG_MS)
        for name in COMPARED:
            seen = cancelled(stores, edges[name], orders[name])
            assert [it.error for it in seen if it.error] == []
            lacking[name] = sum(not it.refunded for it in seen)
            money = count(stores, edges[name].database, orders[name])
            assert money.adds_up, money.said()
    assert lacking.pop("baseline") > 0
    assert lacking == {"answer": 0, "look-up": 0, "automatic": 0}
