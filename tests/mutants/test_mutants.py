"""Decisions that unit tests and vectors defend: each patch here breaks a claim, and a test says so.

A patch begins with its `Claim:` and the `Tests:` that are to fail, and goes on with the change, as
`git diff -U1` writes it. One whose code is gone is replaced by another of the same claim.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATCHES = sorted(HERE.glob("*.patch"))
#: What the tests import and read.
COPIED = (
    *("antipode", "antipode_cli", "shims", "testing", "tests"),
    *("pyproject.toml", "README.md", "docs"),
)
FAILED = 1


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and their tests, to change."""
    return copied(tmp_path_factory.mktemp("mutants") / "checkout")


def copied(copy: Path) -> Path:
    """A new folder *copy* with the sources and their tests."""
    copy.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    return copy


def field(patch: Path, name: str) -> str:
    """What the head of *patch* says."""
    found = re.search(rf"^{name}: (.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{patch.name} has no {name!r}"
    return found[1]


def apply(checkout: Path, patch: Path, *options: str) -> None:
    """Apply *patch* to *checkout*."""
    command = ["git", "apply", "--unsafe-paths", f"--directory={checkout}", *options, str(patch)]
    subprocess.run(command, cwd=checkout, check=True)


def run(checkout: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run *tests* of *checkout* until one fails."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # The agent, a process of its own, imports what was changed, too.
    roots = [checkout, checkout / "shims", checkout / "testing"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    return subprocess.run(
        command, cwd=checkout, env=environment, check=False, capture_output=True, text=True
    )


def test_nothing_fails_without_a_mutant(checkout: Path) -> None:
    """The copy passes the tests of all patches, so that what fails is the mutant's doing."""
    tests = sorted({test for patch in PATCHES for test in field(patch, "Tests").split()})
    found = run(checkout, tests)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_mutant_is_killed(checkout: Path, patch: Path) -> None:
    """A change that breaks a claim fails a unit test or a vector."""
    apply(checkout, patch)
    try:
        found = run(checkout, field(patch, "Tests").split())
    finally:
        apply(checkout, patch, "--reverse")
    assert found.returncode == FAILED, f"{field(patch, 'Claim')}\n{found.stdout}"
