"""The same for C++: each patch of `cpp/` breaks a claim, and a unit test or a vector says so.

`Tests:` is a filter of GoogleTest. The copy is built once; each mutant compiles what it changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from .test_mutants import HERE, ROOT, apply, field

if TYPE_CHECKING:
    from pathlib import Path

PATCHES = sorted((HERE / "cpp").glob("*.patch"))
TESTS_S = 120
#: All of the copy is compiled first, which takes minutes where nothing is in the cache.
BUILD_S = 1800
pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja") and shutil.which("ccache")),
    reason="needs what `make cpp` installs",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and vectors, whose tests are built."""
    copy = tmp_path_factory.mktemp("cpp_mutants") / "checkout"
    ignored = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(ROOT / "cpp", copy / "cpp", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "conformance", copy / "tests" / "conformance", ignore=ignored)
    subprocess.run(["cmake", "--preset", "dev"], cwd=copy / "cpp", check=True, capture_output=True)
    return copy


def build(checkout: Path) -> None:
    """Compile what changed, and link the tests."""
    command = ["cmake", "--build", "--preset", "dev", "--target", "antipode_test"]
    # Of the copy, whose path is another one each time, ccache knows what it compiled before.
    ccache = {"CCACHE_BASEDIR": str(checkout), "CCACHE_NOHASHDIR": "1"}
    built = subprocess.run(
        command,
        cwd=checkout / "cpp",
        env={**os.environ, **ccache},
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout


def run(checkout: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run the tests that a filter names; one that hangs does not pass, either."""
    program = checkout / "cpp" / "build" / "dev" / "antipode_test"
    command = [program, "--gtest_brief=1", f"--gtest_filter={tests}"]
    limit = ["timeout", str(TESTS_S)]
    return subprocess.run([*limit, *command], check=False, capture_output=True, text=True)


@pytest.mark.timeout(BUILD_S)
def test_nothing_fails_without_a_mutant(checkout: Path) -> None:
    """The copy passes the tests of all patches, so that what fails is the mutant's doing."""
    build(checkout)
    found = run(checkout, ":".join(sorted({field(patch, "Tests") for patch in PATCHES})))
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_mutant_is_killed(checkout: Path, patch: Path) -> None:
    """A change that breaks a claim fails a unit test or a vector."""
    apply(checkout, patch)
    try:
        build(checkout)
        found = run(checkout, field(patch, "Tests"))
    finally:
        apply(checkout, patch, "--reverse")
    assert found.returncode != 0, field(patch, "Claim")
