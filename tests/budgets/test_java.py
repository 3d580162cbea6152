"""What the library adds to calls in Java: bytes that the calling thread allocates, and threads."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.budgets._file import Counted
from tests.budgets._programs import cases, marks, ran, topology_of
from tests.conformance._agents import command

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parent / "programs"
JDBC = (": SELECT", ": UPDATE", ": transaction of 2 UPDATEs")
#: What the program counts, by the word that it is given.
LINES = {
    "core": ("scope: empty", "scope: 3 entries", "scope: text of 3 entries", "decode: 3 entries"),
    "mongodb": ("MongoDB: insert", "MongoDB: find"),
    "mysql": tuple(f"JDBC of MySQL{each}" for each in JDBC),
    "postgresql": tuple(f"JDBC of PostgreSQL{each}" for each in JDBC),
    "rabbitmq": ("RabbitMQ: publish",),
    "redis": ("Jedis: GET", "Lettuce: GET"),
}


@pytest.fixture(scope="module")
def java() -> str:
    """The feature release of Java, whose own classes allocate, too."""
    words = ["java", "-XshowSettings:properties", "-version"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    _, _, release = said.partition("java.specification.version = ")
    return f"java-{release.split()[0]}"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What counts, interpreted: what compilers allocate less depends on when they ran."""
    classes, library = tmp_path_factory.mktemp("budgets"), command("java")[-1]
    sources = sorted(map(str, SOURCES.glob("*.java")))
    compiled = ["javac", "-nowarn", "-proc:none", "-cp", library, "-d", str(classes), *sources]
    subprocess.run(compiled, check=True)
    return ["java", "-Xint", "-cp", f"{classes}:{library}", "BudgetsProgram"]


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, dict[str, Any]]]:
    """All lines of one run, by what it counted."""
    return {}


@pytest.fixture
def counted(
    request: pytest.FixtureRequest,
    program: list[str],
    runs: dict[str, dict[str, dict[str, Any]]],
    about: str,
) -> dict[str, dict[str, Any]]:
    """The lines of a store, counted once."""
    if about not in runs:
        runs[about] = ran([*program, about, _url(about, topology_of(request, about))])
    return runs[about]


@pytest.mark.parametrize(("about", "line"), cases(LINES))
def test_a_call_in_java_is_within_its_budget(
    java: str, counted: dict[str, dict[str, Any]], hold: Callable[..., None], line: str
) -> None:
    """The instrumented call minus the plain one is what the file says, to the last byte."""
    found = counted[line]
    hold(counted=Counted(line, found["counts"], found["drivers"]), name=java)


@pytest.mark.parametrize("about", [pytest.param(each, marks=marks(each)) for each in LINES])
def test_no_line_of_the_program_is_left_out(counted: dict[str, dict[str, Any]], about: str) -> None:
    """What it counts has a budget."""
    assert set(counted) == set(LINES[about])


def _url(about: str, topology: Any) -> str:
    """Where the calls of a store go."""
    if topology is None:
        return ""
    server = "{}:{}".format(*topology.primary)
    if about in ("mysql", "postgresql"):
        return f"jdbc:{about}://{server}/{topology.database}"
    if about == "mongodb":
        return f"mongodb://{server}/?directConnection=true&serverMonitoringMode=poll"
    return str(topology.url(topology.primary))
