"""What the library adds to calls in Java: bytes that the calling thread allocates, and threads."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.budgets._file import Counted
from tests.budgets._programs import ran
from tests.conformance._agents import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import RedisTopology

pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]

PROGRAM = Path(__file__).parent / "programs" / "BudgetsProgram.java"
#: What the program counts.
LINES = (
    *("scope: empty", "scope: 3 entries", "scope: text of 3 entries", "decode: 3 entries"),
    "Jedis: GET",
)


@pytest.fixture(scope="module")
def java() -> str:
    """The feature release of Java, whose own classes allocate, too."""
    words = ["java", "-XshowSettings:properties", "-version"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    _, _, release = said.partition("java.specification.version = ")
    return f"java-{release.split()[0]}"


@pytest.fixture(scope="module")
def counted(antipode_redis: RedisTopology) -> dict[str, dict[str, Any]]:
    """All lines of one run, interpreted: what compilers allocate less depends on when they ran."""
    return ran(["java", "-Xint", "-cp", command("java")[-1], str(PROGRAM), antipode_redis.url()])


@pytest.mark.parametrize("line", LINES)
def test_a_call_in_java_is_within_its_budget(
    java: str, counted: dict[str, dict[str, Any]], hold: Callable[..., None], line: str
) -> None:
    """The instrumented call minus the plain one is what the file says, to the last byte."""
    found = counted[line]
    hold(counted=Counted(line, found["counts"], found["drivers"]), name=java)


def test_no_line_of_the_program_is_left_out(counted: dict[str, dict[str, Any]]) -> None:
    """What it counts has a budget."""
    assert set(counted) == set(LINES)
