"""TrainTicket: the dry run names the missing barrier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode_cli.report import load, report
from benchmarks.train_ticket._money import count
from tests.integration.train_ticket._application import application, cancelled, place, seeded

if TYPE_CHECKING:
    from benchmarks.train_ticket._stores import Stores

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    *(pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")),
]

USERS = 5


def test_dry_run_names_the_line_of_the_missing_barrier(stores: Stores, tmp_path: Path) -> None:
    """Without a barrier the report names the promise and the read, by their lines in Java.

    No other line of the set-up is forgotten, and it says of none that it is.
    """
    records = tmp_path / "dry-run"
    records.mkdir()
    with application(stores, tmp_path, "unguarded", dry_run_dir=records) as edges:
        orders = seeded(stores, "unguarded", USERS)
        cancelled(stores, edges["unguarded"], orders)
        count(stores, edges["unguarded"].database, orders)
    said = report(load([records]))
    found = {
        tuple((Path(it.file).name, it.line) for it in (each.write, each.read, each.advice.before))
        for each in said.findings
    }
    promise = place("RefundRequests.java", "Antipode.promise(")
    read = place("MoneyReader.java", "return database.find(")
    assert (promise, read, read) in found
    assert not said.lints
