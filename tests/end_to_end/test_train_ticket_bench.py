"""The benchmark of TrainTicket, as its users run it: small."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from benchmarks.train_ticket.bench import _cli, _measure, _run
from benchmarks.train_ticket.bench._plan import COSTS, Cell, Size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.train_ticket._services import Services
    from benchmarks.train_ticket._stores import Stores
    from benchmarks.train_ticket.bench._measure import Block

pytestmark = [
    *(pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")),
    pytest.mark.skipif(
        shutil.which("go") is None and "CI" not in os.environ, reason="there is no Go"
    ),
]

TINY = Size("quick", 20, 20, (200,), 4, 5, 2, (10,), 1, 10, 4)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The quick size made smaller; signals are as before afterwards."""
    monkeypatch.setattr(_cli, "QUICK", TINY)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("tiny")
def test_the_benchmark_writes_a_page_and_goes_on_with_what_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is interrupted goes on; the page has all parts, and no refund is missing."""
    arguments = ["--quick", "--out", str(tmp_path), "--json", str(tmp_path / "found.json")]
    measured = _measure.measured

    def interrupted(cell: Cell, stores: Stores, services: Services) -> list[Block]:
        if cell.name == "burst":
            raise KeyboardInterrupt
        return measured(cell, stores, services)

    with monkeypatch.context() as patch:
        patch.setattr(_run, "measured", interrupted)
        assert _cli.main(arguments) == _cli.INTERRUPTED
    begun: list[str] = []

    def noted(cell: Cell, stores: Stores, services: Services) -> list[Block]:
        begun.append(cell.name)
        return measured(cell, stores, services)

    monkeypatch.setattr(_run, "measured", noted)
    # Ten look-ups may miss nothing in the baseline of one region: then it is inconclusive.
    assert _cli.main(arguments) in (0, 3)
    assert begun == ["warm", "burst"]
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    blocks = [block for it in found["cells"] for block in it["blocks"]]
    assert all(it["money_adds_up"] for it in blocks)
    assert not any(it["errors"] for it in blocks)
    assert {it["variant"] for it in blocks} == set(COSTS)
    page = (tmp_path / "quick" / "results" / "train-ticket.md").read_text(encoding="utf-8")
    for part in ("Look-ups without", "Processor time", "Throughput", "Figure 9", "The money"):
        assert f"## {part}" in page
