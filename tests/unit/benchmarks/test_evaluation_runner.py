"""The evaluation's runner keeps what is finished, says what fails, and leaves nothing at Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from antipode_testing import wait_until
from benchmarks._machine import ROOT
from benchmarks.evaluation import _runner
from benchmarks.evaluation._plan import Run
from benchmarks.evaluation._runner import RunFailedError, Runner, run_all

if TYPE_CHECKING:
    from pathlib import Path

# What a benchmark does, for the runner: it is asked for a status, counts how often it ran, and
# writes its result; with --wait it goes on until it is told to end, and says that it was.
PROGRAM = """
import pathlib, signal, sys
status, counter, *rest = sys.argv[1:]
counter = pathlib.Path(counter)
counter.write_text(counter.read_text() + "x" if counter.exists() else "x")
if "--wait" in rest:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        counter.with_suffix(".waits").touch()
        signal.pause()
    except KeyboardInterrupt:
        counter.with_suffix(".ended").touch()
        sys.exit(130)
if status != "2":
    pathlib.Path(rest[rest.index("--json") + 1]).write_text("{}")
print("the last thing it said")
sys.exit(int(status))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that the runner can call; the file in which it counts its calls."""
    (tmp_path / "runner_test_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "counter"


def run_of(counter: Path, status: int = 0, *more: str, name: str = "some") -> Run:
    """A run of that module."""
    arguments = (str(status), str(counter), *more)
    sections = frozenset({"table1"})
    return Run(name, sections, "runner_test_program", arguments, "embedded", requests=100)


def test_what_is_finished_is_not_run_again(program: Path, tmp_path: Path) -> None:
    """A second call, also of another runner, takes the result; --fresh does not."""
    run = run_of(program)
    assert Runner(tmp_path / "out").measure(run)
    assert not Runner(tmp_path / "out").measure(run)
    assert program.read_text() == "x"
    assert Runner(tmp_path / "out", fresh=True).measure(run)
    assert program.read_text() == "xx"


def test_a_result_of_other_options_code_or_machine_is_not_taken(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure is never of something else than it says."""
    runner = Runner(tmp_path / "out")
    runner.measure(run_of(program))
    assert runner.measure(run_of(program, 0, "--another"))
    assert runner.measure(run_of(program))
    monkeypatch.setattr(_runner, "code", lambda: "changed")
    assert runner.measure(run_of(program))
    monkeypatch.setattr(_runner, "machine", lambda: {"processors": 1000})
    assert runner.measure(run_of(program))
    assert not runner.measure(run_of(program))


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"command": 5}'])
def test_a_damaged_record_is_no_record(damage: str, program: Path, tmp_path: Path) -> None:
    """The run is made again, whatever the file beside its result has become."""
    runner = Runner(tmp_path / "out")
    run = run_of(program)
    runner.measure(run)
    (tmp_path / "out" / "some.run.json").write_text(damage)
    assert runner.record(run) is None
    assert runner.measure(run)


def test_violations_are_a_result_and_a_missing_server_is_none(
    program: Path, tmp_path: Path
) -> None:
    """Status 1 is kept with the result; status 2 is a failure that says the program's last line."""
    runner = Runner(tmp_path / "out")
    assert runner.measure(run_of(program, 1))
    record = runner.record(run_of(program, 1))
    assert record is not None
    assert record.status == 1
    with pytest.raises(RunFailedError, match="status 2: the last thing it said"):
        runner.measure(run_of(program, 2))
    assert runner.record(run_of(program, 2)) is None


def test_a_failure_does_not_end_the_others(program: Path, tmp_path: Path) -> None:
    """What comes after it is run, and the failure is told in the end."""
    runner = Runner(tmp_path / "out")
    runs = [run_of(program, 2, name="first"), run_of(program, 0, name="second")]
    (failure,) = run_all(runner, runs)
    assert failure.startswith("first:")
    assert runner.record(runs[1]) is not None


def test_an_interrupt_ends_the_run_in_order_and_keeps_nothing_of_it(
    program: Path, tmp_path: Path
) -> None:
    """Ctrl-C reaches the program once, which ends what it started; no record is left."""
    script = textwrap.dedent(f"""
        import pathlib
        from benchmarks.evaluation._plan import Run
        from benchmarks.evaluation._runner import Runner
        arguments = ("0", {str(program)!r}, "--wait")
        run = Run("some", frozenset(), "runner_test_program", arguments, "embedded")
        Runner(pathlib.Path({str(tmp_path / "out")!r})).measure(run)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_until(program.with_suffix(".waits").exists, what="the program to wait", timeout_s=30)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[0].decode()
    assert "KeyboardInterrupt" in said
    assert program.with_suffix(".ended").exists()
    assert not list((tmp_path / "out").glob("*.json"))


def test_the_record_says_what_was_typed_where_and_when(program: Path, tmp_path: Path) -> None:
    """Enough to do it again: the command without places, the code, the machine, the time."""
    runner = Runner(tmp_path / "out")
    run = run_of(program)
    runner.measure(run)
    record = json.loads((tmp_path / "out" / "some.run.json").read_text())
    assert record["command"][:3] == ["python", "-m", "runner_test_program"]
    assert set(record["machine"]) == {"processors", "model", "memory_gib", "system", "python"}
    assert len(record["code"]) == 16
    assert record["began"].endswith("+00:00")


def test_runs_of_the_application_are_recorded(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run of the paper's application writes histories of its own, and checks them."""
    says = 'counter.with_suffix(".told").write_text(repr(rest))\n'
    program_text = PROGRAM.replace('if status != "2":', f'{says}if status != "2":')
    (tmp_path / "runner_test_program.py").write_text(program_text)
    runner = Runner(tmp_path / "out")
    runner.measure(run_of(program, name="other"))
    assert "--history" not in program.with_suffix(".told").read_text()
    monkeypatch.setattr(_runner, "APPLICATION", "runner_test_program")
    runner.measure(run_of(program, name="recorded"))
    told = program.with_suffix(".told").read_text()
    assert f"'--history', '{tmp_path / 'out' / 'history' / 'recorded'}'" in told
