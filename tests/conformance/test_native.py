"""Each language's own tests replay every vector that it is held to, and notice what is wrong.

They are given files in which each kind has a vector for each place of what it expects, altered
there: all of these must fail, but those of what the language lacks. What no test reads, or only
in part, passes, and fails here.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.conformance import _altered
from tests.conformance import _vectors as vectors
from tests.conformance._agents import BUILT, ROOT, InProcess, lacks, not_built, words_of
from tests.conformance._checks import hold
from tests.conformance._checks.calls import KINDS as CALLS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance._vectors import Vector

ALTERED = _altered.every()
#: The test files of Python, which replay whole levels.
PYTHON = ("test_calls", "test_codec", "test_guards", "test_headers", "test_scripts", "test_stores")
JAVA = ROOT / "java"
REPORT = "antipode-agent/target/surefire-reports/TEST-io.antipode.agent.VectorsTest-altered.xml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the altered files are."""
    root = tmp_path_factory.mktemp("altered")
    _altered.write(ALTERED, root)
    return root


class Noted(InProcess):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[list[str]] = []

    def ask(self, op: str, **arguments: object) -> Any:
        self.words.append(words_of(op, **arguments))
        return super().ask(op, **arguments)


def held_to(language: str) -> set[str]:
    """Which of the altered vectors a language other than Python must notice."""
    return {str(each) for each in ALTERED if not _lacks(language, each)}


def _lacks(language: str, vector: Vector) -> bool:
    noted = Noted()
    with suppress(AssertionError, ValueError):
        hold(noted, vector)
    # Reports are made by Python alone.
    return vector.kind == "records" or any(lacks(language, words) for words in noted.words)


def test_every_kind_of_vectors_is_altered() -> None:
    """No file and no kind in it is left out below."""
    there = {(each.level, each.file, each.kind) for each in vectors.every(*vectors.FOLDERS)}
    assert {(each.level, each.file, each.kind) for each in ALTERED} == there


def test_every_level_is_replayed_in_this_process() -> None:
    """The levels of Python's test files are all folders of vectors that there are."""
    for name in PYTHON:
        import_module(f"tests.conformance.{name}")
    assert set(vectors.FOLDERS) == vectors.REPLAYED


@pytest.mark.parametrize("vector", ALTERED, ids=str)
def test_python_notices_what_is_altered(vector: Vector) -> None:
    """A vector that expects anything else in one place fails."""
    with pytest.raises((AssertionError, ValueError)):
        hold(InProcess(), vector)


def test_cpp_notices_what_is_altered(folder: Path, tmp_path: Path) -> None:
    """All altered vectors fail in GoogleTest but those of what C++ lacks, which are read, too."""
    program = BUILT["cpp"].with_name("antipode_test")
    if not program.exists():
        not_built("cpp", "the test program")
    report = tmp_path / "report.json"
    command = [str(program), "--gtest_filter=*/*", f"--gtest_output=json:{report}"]
    environment = {**os.environ, "ANTIPODE_VECTORS": str(folder)}
    subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=False)
    suites = json.loads(report.read_text(encoding="utf-8"))["testsuites"]
    tests = [test for suite in suites for test in suite["testsuite"] if "value_param" in test]
    read = {test["value_param"] for test in tests}
    failed = {test["value_param"] for test in tests if "failures" in test}
    assert failed == held_to("cpp")
    unread = {"finding_ids", "guards", "records", *CALLS}
    assert read == {str(each) for each in ALTERED if each.kind not in unread}


@pytest.mark.slow
def test_java_notices_what_is_altered(folder: Path) -> None:
    """All altered vectors fail in JUnit but those of what Java lacks, which are read, too."""
    if not (JAVA / "antipode-agent/target/test-classes").exists():
        not_built("java", "the tests")
    (JAVA / REPORT).unlink(missing_ok=True)
    command = ["mvn", "--batch-mode", "--offline", "--projects=antipode-agent", "--also-make"]
    command += ["-Dtest=VectorsTest", "-Dsurefire.failIfNoSpecifiedTests=false"]
    command += ["-Dsurefire.reportNameSuffix=altered", "-Dspotless.check.skip=true"]
    ended = subprocess.run(
        [*command, f"-Dconformance.folder={folder}", "test"],
        cwd=JAVA,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (JAVA / REPORT).exists(), ended.stdout
    read, failed = set(), set()
    for case in ET.parse(JAVA / REPORT).iter("testcase"):  # noqa: S314 - our own report
        _, is_vector, name = case.get("name", "").partition("everyVectorHolds() ")
        if is_vector:
            read.add(name)
        if {"failure", "error"}.intersection(each.tag for each in case):
            failed.add(name)
    assert failed == held_to("java")
    assert read == set(map(str, ALTERED))
