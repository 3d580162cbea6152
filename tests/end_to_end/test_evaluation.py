"""The evaluation, as its users run it: small, over the embedded pair."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from benchmarks._machine import code, machine
from benchmarks.evaluation import _cli, _plan
from benchmarks.evaluation._plan import Size
from benchmarks.evaluation._results import FILE, read, share
from benchmarks.evaluation._runner import Record, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.evaluation._plan import Run

ENDS = ("posts-far", "notices-far")
TINY = Size("quick", 1, 20, 20, 2, 20, 5, 30, 100, ("embedded",))
NARROW = ("--quick", "--notifiers", "embedded", "--only", "table1,table3")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The quick size made smaller; signals are as before afterwards."""
    monkeypatch.setattr(_cli, "QUICK", TINY)
    monkeypatch.setattr(_plan, "_LAGS", {name: _plan._LAGS[name] for name in ENDS})
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("tiny")
def test_the_evaluation_measures_renders_and_takes_up_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run after another, pages in the end; a second call runs nothing and finds the same."""
    assert _cli.main([*NARROW, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "quick" / "results"
    found = read(folder / FILE)
    assert [run.profile for run in found.runs] == [*ENDS, ""]
    assert not found.missing
    unprotected = {run.profile: share(run.of("none")) for run in found.runs}
    shares = [unprotected[profile] for profile in ENDS]
    assert [each is not None and each > 0.5 for each in shares] == [True, False]
    barriers = [each for run in found.runs for each in run.of("barrier")]
    assert barriers
    assert not any(each.violations or each.early for each in barriers)
    variants = {each.variant: each.payload_bytes for each in found.runs[-1].footprints}
    assert variants["none"] < variants["dependent"] <= variants["none"] + 100
    assert "quick run" in (folder / "index.md").read_text()
    assert (folder / "table1.png").is_file()
    capsys.readouterr()
    assert _cli.main([*NARROW, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("finished before") == len(found.runs)
    assert read(folder / FILE).runs == found.runs


@pytest.mark.usefixtures("tiny")
def test_an_interrupt_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 130, nothing rendered, and how to go on."""

    def interrupt(*_: object) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError

    monkeypatch.setattr("benchmarks.evaluation._runner.Runner.measure", interrupt)
    assert _cli.main([*NARROW, "--out", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not list(tmp_path.rglob(FILE))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 1), (3, 3)])
def test_the_worst_run_decides(
    status: int, ends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A violation fails; what could not be shown is inconclusive, but where nothing was late."""

    def finished(self: Runner, run: Run) -> bool:
        ended = status if run.late else 3
        result = {
            "verdict": {"text": "said"},
            "machine": {"in_use": 0, "load": [0, 0, 0], "load_after": [0, 0, 0], "processors": 2},
            "rounds": [],
            "footprints": [],
            "counts": "",
        }
        self.result(run).write_text(json.dumps(result))
        record = Record(run.command, code(), machine(), "2026-01-02T03:04:05+00:00", 1.0, ended)
        self.result(run).with_name(f"{run.name}.run.json").write_text(json.dumps(asdict(record)))
        return True

    monkeypatch.setattr(Runner, "measure", finished)
    monkeypatch.setattr(_cli, "render", lambda _: None)
    assert _cli.main([*NARROW, "--only", "table1", "--out", str(tmp_path)]) == ends


def test_the_plan_can_be_read_before_it_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line is a command that can be typed, and the last one says how long all take."""
    assert _cli.main(["list", "--only", "figure6", "--post-storages", "redis"]) == 0
    command, total = capsys.readouterr().out.splitlines()
    assert "python -m benchmarks.post_notification --post-storage redis" in command
    assert total.startswith("1 runs")


def test_results_that_are_not_there_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rendering without results is one line and status 2."""
    assert _cli.main(["render", "--results", str(tmp_path)]) == 2
    assert json.dumps(FILE)[1:-1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "table2"], "'table2'"),
        (["--post-storages", "oracle"], "'oracle'"),
        (["--notifiers", "kafka"], "'kafka'"),
        (["dance"], "'dance'"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started, and what is wrong is named."""
    with pytest.raises(SystemExit) as ended:
        _cli.main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
