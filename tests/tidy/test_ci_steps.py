"""Each step of CI is timed and has a reason; a summary says what failed and what took long."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools import ci_summary

ROOT = Path(__file__).resolve().parents[2]
STEP = ROOT / "tools" / "step.sh"
NAMES = re.compile(r"\$\(STEP\) (\S+)")


def step(folder: Path, name: str, script: str, *, keep_going: bool = False) -> tuple[int, str]:
    """The status and what was said by a step that runs *script*."""
    environment = {**os.environ, "ANTIPODE_KEEP_GOING": "1" if keep_going else ""}
    done = subprocess.run(
        [STEP, name, "bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def noted(folder: Path) -> list[dict[str, Any]]:
    return ci_summary.steps(folder / "build")


def test_a_step_notes_what_it_took(tmp_path: Path) -> None:
    """Clock, processor and status of each; output and status are the command's own."""
    assert step(tmp_path, "first", "echo out; echo err >&2") == (0, "out\nerr\n")
    assert step(tmp_path, "second", "for i in {1..50000}; do :; done; exit 3")[0] == 3
    first, second = noted(tmp_path)
    assert (first["step"], first["status"]) == ("first", 0)
    assert (second["step"], second["status"]) == ("second", 3)
    assert second["cpu_s"] > 0
    assert second["wall_s"] > 0


def test_nightly_goes_on_after_a_failure(tmp_path: Path) -> None:
    """The verb goes on, and one file says which step failed, for what it is there, which test."""
    failing = "echo noise; echo 'FAILED tests/a.py::test_b - lost'; exit 1"
    assert step(tmp_path, "valkey", failing, keep_going=True)[0] == 0
    assert step(tmp_path, "newer", "true", keep_going=True)[0] == 0
    file = tmp_path / "failed.md"
    assert ci_summary.main(["failed", str(file)], tmp_path / "build") == 1
    text = file.read_text(encoding="utf-8")
    assert "## valkey: status 1" in text
    assert ci_summary.WHY["valkey"] in text
    assert "FAILED tests/a.py::test_b - lost" in text
    assert "noise" not in text
    assert "newer" not in text


def test_nightly_shows_the_end_of_what_is_no_test(tmp_path: Path) -> None:
    """A step without tests is told by its last lines."""
    step(tmp_path, "cpp-tsan", "seq 100; exit 2", keep_going=True)
    text = ci_summary.failures(tmp_path / "build")
    assert "    100\n" in text
    assert "    10\n" not in text


def test_a_night_without_failures_passes(tmp_path: Path) -> None:
    """The file says so, and the verb ends with 0."""
    step(tmp_path, "newer", "true", keep_going=True)
    file = tmp_path / "failed.md"
    assert ci_summary.main(["failed", str(file)], tmp_path / "build") == 0
    assert "Nothing failed." in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("status", ["", "; exit 2"])
def test_an_interrupt_ends_nightly(tmp_path: Path, status: str) -> None:
    """Ctrl-C is no failure to go on after, whatever the program makes of it."""
    script = f"trap : INT; kill -INT 0 {status}"
    command = [str(STEP), "load", "bash", "-c", script]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "ANTIPODE_KEEP_GOING": "1"},
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert done.returncode in {130, -signal.SIGINT}


def test_the_summary_names_what_is_dear(tmp_path: Path) -> None:
    """What failed first, each step with its reason, fixtures, tests, load and steal."""
    step(tmp_path, "pytest-test", "true")
    step(tmp_path, "make test", "exit 1")
    record = {
        "tier": "test",
        "workers": 2,
        "load": {"first": 0.5, "mean": 2.0, "most": 3.0},
        "steal_share": 0.015,
        "tests": {f"tests/a.py::test_{n}": {"s": float(n)} for n in range(20)},
        "fixtures": {"plugin.py::antipode_mysql": {"s": 12.5, "times": 2}},
    }
    folder = tmp_path / "build" / "tests"
    folder.mkdir()
    (folder / "test.json").write_text(json.dumps(record), encoding="utf-8")
    text = ci_summary.summary(tmp_path / "build")
    assert text.startswith("FAILED first: make test (status 1)")
    assert ci_summary.WHY["pytest-test"] in text
    assert "12.5  plugin.py::antipode_mysql (2 times)" in text
    assert "test_19" in text
    assert "test_9\n" not in text
    assert "load 0.5 at first, 2.0 in the mean, 3.0 at most; steal 1.5%" in text


def test_every_step_has_a_reason() -> None:
    """Each step of the Makefile says why it is there, and no reason is of a step that is gone."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(NAMES.findall(text)) - {"$@"} | {"mypy", "pyright"}
    for variable, values in (("$$tier", ("ci", "nightly")), ("$$preset", ("asan", "tsan"))):
        open_names = {name for name in named if variable in name}
        named -= open_names
        named |= {name.replace(variable, value) for name in open_names for value in values}
    verbs = {f"make {verb}" for verb in ("check", "docs", "demo", "test", "ci")}
    assert set(ci_summary.WHY) == named | verbs


@pytest.mark.parametrize("verb", ["test", "ci", "nightly"])
def test_every_line_of_a_verb_is_a_step(verb: str) -> None:
    """Nothing that takes time in these verbs goes without a line in the summary."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rule = re.search(rf"^{verb}: .*##.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert rule
    lines = rule[1].replace("\\\n", "").splitlines()
    quick = re.compile(r"\t@(echo|rm|tools/fetch_|\$\(PY\) -m tools\.ci_summary|\$\(MAKE\))")
    assert [line for line in lines if "$(STEP)" not in line and not quick.match(line)] == []
