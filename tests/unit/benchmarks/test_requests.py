"""The benchmark of requests compares equal requests, counts failures, and says what misses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks._statistics import Summary
from benchmarks.costs._reports import read
from benchmarks.costs.requests import __main__ as program
from benchmarks.costs.requests import _measure

if TYPE_CHECKING:
    from pathlib import Path


def measured(ratio: float, failed: int = 0) -> _measure.Measured:
    """A case with this ratio and a bound of 1.05."""
    spread = Summary.of([1.0])
    assert spread is not None
    return _measure.Measured("fastapi", ratio, spread, spread, spread, failed, 1.05)


def test_a_round_compares_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every call of either side is counted and none fails; the JSON has what the table shows."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    pytest.importorskip("opentelemetry.instrumentation.fastapi")
    monkeypatch.setattr(_measure, "WARM_UP", 5)
    path = tmp_path / "requests.json"
    cases = ["fastapi", "fastapi, with a lineage"]
    arguments = ["--cases", *cases, "--rounds", "1", "--calls", "20", "--json", str(path)]
    assert program.main(arguments) == 0
    result = json.loads(path.read_text())
    assert [case["case"] for case in result["cases"]] == cases
    for case in result["cases"]:
        assert case["otel_us"]["count"] == case["antipode_us"]["count"] == 20
        assert case["failed"] == 0
        assert case["rounds"]["count"] == 1
    assert "with a lineage" in capsys.readouterr().out
    report = read(path)
    assert [each.names for each in report.cases] == [(case,) for case in cases]
    assert "--calls 20 --cases fastapi 'fastapi, with a lineage'" in report.command


@pytest.mark.parametrize(
    ("ratio", "failed", "check", "status"),
    [(1.05, 0, True, 0), (1.051, 0, True, 1), (1.051, 0, False, 0), (1.0, 1, False, 1)],
)
def test_what_fails_it(
    ratio: float,
    failed: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    check: bool,
) -> None:
    """A failed call always; a ratio over its bound with --check."""

    def measure(*_: Any) -> list[_measure.Measured]:
        return [measured(ratio, failed)]

    monkeypatch.setattr(program, "measure", measure)
    assert program.main(["--check"] if check else []) == status


def test_a_side_that_ends_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which process ended, with status 2."""
    from benchmarks.costs.requests import _cases

    monkeypatch.setitem(_cases.CASES, "fastapi", "benchmarks.costs.requests.nowhere")
    monkeypatch.setattr(_measure, "side", nothing)
    assert program.main(["--cases", "fastapi", "--rounds", "1"]) == 2
    assert "ended" in capsys.readouterr().err


def nothing(*_: Any, **__: Any) -> Any:
    """In place of the processes of a side."""
    message = "a process ended"
    raise RuntimeError(message)
