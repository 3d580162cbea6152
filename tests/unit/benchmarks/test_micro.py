"""The micro benchmark times what it says, against a floor of the same length."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.costs._reports import read
from benchmarks.costs.micro import __main__ as program
from benchmarks.costs.micro._cases import FLOORS, Case, Source, calls, text_length
from benchmarks.costs.micro._measure import cases, measure

if TYPE_CHECKING:
    from pathlib import Path


def test_every_operation_has_every_size_cold_and_warm() -> None:
    """Six operations, four sizes, two kinds of inputs."""
    found = {(case.operation, case.entries, case.inputs) for case in cases()}
    assert len(found) == 6 * 4 * 2
    assert {case.operation for case in cases()} == set(FLOORS)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_calls_run(case: Case) -> None:
    """What is timed works, on both sides."""
    ours, floor = calls(case, Source(1), 2)
    for call in (*ours, *floor):
        call()


def test_cold_inputs_are_never_seen_before() -> None:
    """Each cold lineage is of logs of its own; warm ones share theirs and differ in position."""
    source = Source(1)
    cold = [{write.key for write in source.lineage(5, "cold")} for _ in range(2)]
    assert not cold[0] & cold[1]
    warm = [source.lineage(5, "warm") for _ in range(2)]
    assert {write.key for write in warm[0]} == {write.key for write in warm[1]}
    assert warm[0] != warm[1]


def test_five_entries_fit_in_a_header() -> None:
    """The size that the bound is about is what requests carry."""
    assert 100 < text_length(Case("inject", 5, "cold"), Source(1)) < 250


def test_a_round_gives_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One round measures every case; the JSON has what the table shows, and makes a page."""
    path = tmp_path / "micro.json"
    assert program.main(["--rounds", "1", "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    assert len(result["cases"]) == len(cases())
    assert all(each["ratios"]["median"] > 0 for each in result["cases"])
    assert "quartiles" in capsys.readouterr().out
    report = read(path)
    assert len(report.cases) == len(cases())
    assert report.command == "python -m benchmarks.costs.micro --rounds 1 --seed 1"
    assert report.short


@pytest.mark.slow
def test_check_fails_where_the_bound_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --check a miss at five entries is a non-zero status; without, a line."""
    measured = measure(1, 1, lambda: None)
    monkeypatch.setattr(program, "_measure", lambda *_: measured)
    monkeypatch.setattr(program, "BOUND", 0.0)
    assert program.main(["--check"]) == 1
    assert program.main([]) == 0
    monkeypatch.setattr(program, "BOUND", 1e9)
    assert program.main(["--check"]) == 0
