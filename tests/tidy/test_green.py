"""A step of CI is left out while its inputs are those of its last green run, and for no other."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tools import green

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: A command that leaves a trace, and ends with the status that follows.
ENDS = (sys.executable, "-c", "import sys; open('ran', 'a').close(); sys.exit(int(sys.argv[1]))")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one step, whose inputs are the folder ``code``."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("1", encoding="utf-8")
    (tmp_path / "page.md").write_text("1", encoding="utf-8")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(green, "INPUTS", {"step": ("code",)})
    monkeypatch.setattr(green, "ROOT", tmp_path)
    monkeypatch.setattr(green, "GREEN", tmp_path / "green.json")
    return tmp_path


def runs(tree: Path, verb: str, status: int = 0) -> bool:
    """Whether the step's command ran."""
    (tree / "ran").unlink(missing_ok=True)
    assert green.main([verb, "step", *ENDS, str(status)]) == (0 if status == 77 else status)
    return (tree / "ran").exists()


def test_a_step_runs_until_it_was_green(tree: Path) -> None:
    """Nothing is left out before a green run is noted; one that is noted is left out."""
    assert runs(tree, "unless")
    assert runs(tree, "unless")
    assert runs(tree, "record")
    assert not runs(tree, "unless")


def test_nightly_always_runs(tree: Path) -> None:
    """What writes the note asks no note."""
    assert runs(tree, "record")
    assert runs(tree, "record")


@pytest.mark.parametrize("status", [1, green.NOTHING_TESTED])
def test_only_a_run_that_tested_is_noted(tree: Path, status: int) -> None:
    """Neither a failure nor a run that could test nothing lets CI leave the step out."""
    assert runs(tree, "record", status)
    assert runs(tree, "unless")


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "code" / "a.py").write_text("2"),
        lambda tree: (tree / "code" / "b.py").write_text("1"),
        lambda tree: (tree / "code" / "a.py").unlink(),
        lambda tree: (tree / "code" / "a.py").rename(tree / "code" / "b.py"),
        lambda tree: (tree / "code" / "a.py").chmod(0o755),
    ],
    ids=["content", "added", "removed", "renamed", "mode"],
)
def test_a_changed_input_runs_the_step(tree: Path, change: Callable[[Path], object]) -> None:
    """Every kind of change of an input counts, committed or not."""
    runs(tree, "record")
    change(tree)
    assert runs(tree, "unless")


def test_what_is_no_input_changes_nothing(tree: Path) -> None:
    """A page, the file of notes and another time of a file are nothing to the step."""
    runs(tree, "record")
    (tree / "page.md").write_text("2", encoding="utf-8")
    (tree / "code" / "a.py").touch()
    assert not runs(tree, "unless")


def test_a_change_while_it_ran_is_not_noted(tree: Path) -> None:
    """The inputs that the run began with are those that were green."""
    script = "open('code/a.py', 'w').write('2')"
    assert green.main(["record", "step", sys.executable, "-c", script]) == 0
    assert runs(tree, "unless")


def test_notes_of_other_steps_stay(tree: Path) -> None:
    """A step writes its own line."""
    green.record({"other": "1"})
    runs(tree, "record")
    assert set(green.recorded()) == {"other", "step"}


@pytest.mark.parametrize("name", sorted(green.INPUTS))
def test_every_pathspec_names_files(name: str) -> None:
    """None is misspelt, none outlives what it named."""
    for spec in green.INPUTS[name]:
        if not spec.startswith(":!"):
            assert green.blobs([spec]), spec
