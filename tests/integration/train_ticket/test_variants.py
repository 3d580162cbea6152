"""TrainTicket: the baseline, each barrier, and the dry run that names the missing one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode_cli.report import load, report
from benchmarks.train_ticket._build import SERVICES
from benchmarks.train_ticket._money import count
from benchmarks.train_ticket._variants import COMPARED
from tests.integration.train_ticket._application import LAG_MS, application, cancelled, seeded

if TYPE_CHECKING:
    from benchmarks.train_ticket._stores import Stores

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    *(pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")),
]

USERS = 50
USERS_OF_DRY_RUN = 5


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


def _place(file: str, code: str) -> tuple[str, int]:
    """Where a line of the services with the library is: its file and number."""
    (path,) = SERVICES.glob(f"*/src/antipode/java/trainticket/*/{file}")
    lines = path.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if code in line]
    return file, number


def test_dry_run_names_the_line_of_the_missing_barrier(stores: Stores, tmp_path: Path) -> None:
    """Without a barrier the report names the promise and the read, by their lines in Java."""
    records = tmp_path / "dry-run"
    records.mkdir()
    with application(stores, tmp_path, "unguarded", dry_run_dir=records) as edges:
        orders = seeded(stores, "unguarded", USERS_OF_DRY_RUN)
        cancelled(stores, edges["unguarded"], orders)
        count(stores, edges["unguarded"].database, orders)
    found = {
        tuple((Path(it.file).name, it.line) for it in (each.write, each.read, each.advice.before))
        for each in report(load([records])).findings
    }
    promise = _place("RefundRequests.java", "Antipode.promise(")
    read = _place("MoneyReader.java", "return database.find(")
    assert (promise, read, read) in found
