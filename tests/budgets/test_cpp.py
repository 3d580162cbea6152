"""What the library adds to calls in C++: allocations, system calls, threads, in all threads."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.budgets._clients import STATEMENTS, WHOLE_LAG_MS
from tests.budgets._file import Counted
from tests.budgets._programs import cases, marks, ran, summed, topology_of
from tests.budgets._wire import Wire
from tests.conformance._agents import command

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ("allocations", "system calls", "threads")
#: What cpp/tests/budgets counts, by the word that it is given.
LINES = {
    "core": (
        *("scope: empty", "scope: 3 entries", "scope: text of 3 entries"),
        *("encode: 3 entries", "decode: 3 entries"),
    ),
    "mongodb": ("libmongoc: insert", "libmongoc: update", "libmongoc: find"),
    "mysql": ("libmariadb: SELECT", "libmariadb: REPLACE", "libmariadb: transaction of 2 REPLACEs"),
    "rabbitmq": ("librabbitmq: publish",),
    "redis": (
        *("hiredis: SET", "hiredis: GET", "hiredis: pipeline of 40 SETs"),
        *("barrier: Redis, visible, called", "barrier: Redis, visible, callback"),
    ),
}


@pytest.fixture(scope="module")
def program() -> Path:
    """What counts; it is built with the agent."""
    return Path(command("cpp")[0]).with_name("antipode_budgets")


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, dict[str, Any]]]:
    """All lines of one run, by what it counted."""
    return {}


@pytest.fixture
def counted(
    request: pytest.FixtureRequest,
    program: Path,
    runs: dict[str, dict[str, dict[str, Any]]],
    about: str,
) -> dict[str, dict[str, Any]]:
    """The lines of a store, counted once."""
    if about not in runs:
        topology = topology_of(request, about)
        runs[about] = _run(program, about, topology)
    return runs[about]


@pytest.mark.parametrize(("about", "line"), cases(LINES))
def test_a_call_in_cpp_is_within_its_budget(
    program: Path, counted: dict[str, dict[str, Any]], hold: Callable[..., None], line: str
) -> None:
    """The instrumented call minus the plain one is what the file says, to the last allocation."""
    found = counted[line]
    functions = _by_function(program, found["added"])
    sums = summed(functions, KINDS)
    hold(counted=Counted(line, sums, found["drivers"], functions), name=f"cpp-{found['compiler']}")


@pytest.mark.parametrize("about", [pytest.param(each, marks=marks(each)) for each in LINES])
def test_no_line_of_the_program_is_left_out(counted: dict[str, dict[str, Any]], about: str) -> None:
    """What it counts has a budget."""
    assert set(counted) == set(LINES[about])


def _run(program: Path, about: str, topology: Any) -> dict[str, dict[str, Any]]:
    """Count; servers' replies are held until they are whole, where that changes what is called."""
    if topology is None:
        return ran([str(program), about])
    if about == "redis":
        return ran([str(program), about, "{}:{}".format(*topology.primary)])
    account = (topology.user, topology.password, topology.database) if about == "mysql" else ()
    with Wire(topology.primary, STATEMENTS[about], lag_ms=WHOLE_LAG_MS) as between:
        return ran([str(program), about, "{}:{}".format(*between.address), *account])


def _by_function(program: Path, added: list[tuple[str, int, int]]) -> dict[str, int]:
    """How often each function of the library is the innermost one where something is counted."""
    names = _names(program, sorted({place for _, place, _ in added if place}))
    functions: Counter[str] = Counter()
    for kind, place, count in added:
        functions[f"{names.get(place, 'outside of the library')}, {kind}"] += count
    return {name: count for name, count in functions.items() if count}


def _names(program: Path, places: list[int]) -> dict[int, str]:
    """The functions at offsets in a program, without their parameters."""
    words = ["addr2line", "--functions", "--demangle", "--exe", str(program), *map(hex, places)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    functions = (name.replace("(anonymous namespace)::", "") for name in said[::2])
    return dict(zip(places, (name.partition("(")[0] for name in functions), strict=True))
