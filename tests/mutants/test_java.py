"""The same for Java: each patch of `java/` breaks a claim, and a unit test or a vector says so.

`Tests:` names classes of JUnit. What `mvn test-compile` built serves all mutants:
of each the changed file alone is compiled, and stands in front of the rest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from .test_mutants import HERE, ROOT, apply, field

if TYPE_CHECKING:
    from pathlib import Path

PATCHES = sorted((HERE / "java").glob("*.patch"))
JAVA = ROOT / "java"
#: Where a compiler puts what a module has, and what the tests of a module need of others.
CLASSES, TESTS, NEEDED = "target/classes", "target/test-classes", "target/classpath"
#: Below the limit of a test, so that one that hangs is killed.
TESTS_S = 90
#: All is compiled first, which takes minutes where nothing is built.
BUILD_S = 1800
pytestmark = pytest.mark.skipif(
    not (shutil.which("mvn") and shutil.which("javac")), reason="needs what `make java` installs"
)


def classes(patches: list[Path]) -> list[str]:
    """The classes of JUnit that *patches* name."""
    return sorted({each for patch in patches for each in field(patch, "Tests").split()})


@pytest.fixture(scope="module")
def path() -> list[str]:
    """Where the classes of all modules are once they are built, and then what these need."""
    command = ["mvn", "--batch-mode", "-q", "-DskipTests", "-Dspotless.check.skip=true"]
    needed = ["-Dmdep.includeScope=test", f"-Dmdep.outputFile={NEEDED}"]
    goals = ["test-compile", "dependency:build-classpath"]
    modules = ["-pl", "!antipode-bom"]
    subprocess.run([*command, *modules, *goals, *needed], cwd=JAVA, check=True)
    own = sorted(map(str, JAVA.glob(f"*/{CLASSES}")))
    # The agent has what starts tests, in the version that its own need.
    files = sorted(JAVA.glob(f"*/{NEEDED}"), key=lambda file: "antipode-agent" not in file.parts)
    others = [each for file in files for each in file.read_text(encoding="utf-8").split(os.pathsep)]
    return [*own, *dict.fromkeys(each for each in others if each.endswith(".jar"))]


def run(
    path: list[str], tests: list[str], mutant: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run *tests*, with *mutant* in place of what it replaces; what hangs does not pass, either."""
    where = [str(mutant)] if mutant else []
    for test in tests:
        name = f"{TESTS}/{test.replace('.', '/')}.class"
        (module,) = (each for each in JAVA.iterdir() if (each / name).exists())
        where.append(str(module / TESTS))
    command = [
        *("timeout", str(TESTS_S), "java", "-XX:TieredStopAtLevel=1"),
        f"-Dantipode.conformance={ROOT / 'tests' / 'conformance'}",
        *("-cp", os.pathsep.join([*dict.fromkeys(where), *path])),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "--fail-if-no-tests"),
        *(
            "--config=jqwik.database=target/jqwik-database",
            "--disable-banner",
            "--details=none",
            "--exclude-tag=lab",
            "--exclude-tag=slow",
        ),
        *(f"--select-class={test}" for test in tests),
    ]
    # As Maven has it: some put what they keep in `target`.
    folder = JAVA / "antipode-agent"
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def compiled(path: list[str], patch: Path, folder: Path) -> Path:
    """Where the classes of the files are that *patch* changes."""
    copies = [folder / "source" / each for each in changed(patch)]
    for copy in copies:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / copy.relative_to(folder / "source"), copy)
    apply(folder / "source", patch)
    made = folder / "classes"
    command = ["javac", "-proc:none", "-nowarn", "-parameters", "--release", "17", "-d", str(made)]
    found = subprocess.run(
        [*command, "-cp", os.pathsep.join(path), *map(str, copies)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return made


def changed(patch: Path) -> list[str]:
    """The files that *patch* changes."""
    return re.findall(r"^\+\+\+ b/(.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.timeout(BUILD_S)
def test_nothing_fails_without_a_mutant(path: list[str]) -> None:
    """The tests of all patches pass, so that what fails is the mutant's doing."""
    found = run(path, classes(PATCHES))
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_mutant_is_killed(path: list[str], patch: Path, tmp_path: Path) -> None:
    """A change that breaks a claim fails a unit test or a vector."""
    found = run(path, classes([patch]), compiled(path, patch, tmp_path))
    assert found.returncode != 0, field(patch, "Claim")
