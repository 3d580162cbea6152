"""Which tests run when, and together, is decided by what they and their fixtures cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests._busy import slowness
from tests._costs import TestCost, plain
from tests._durations import (
    LASTED_LONG_S,
    Slow,
    function_of,
    merged,
    recorded,
    slow_fixtures,
    slow_functions,
)
from tests._groups import chunks, store_of
from tests._tiers import TOO_SLOW_FIXTURE_S, TOO_SLOW_S, tier_of, too_dear

ROOT = Path(__file__).resolve().parents[2]


def usual() -> float:
    """How slow the machine is for which the limits are meant."""
    return 1.0


@pytest.fixture
def dear() -> int:
    """A fixture that a list of slow ones can name."""
    return 1


def test_a_fixture_decides_the_tier(dear: int, request: pytest.FixtureRequest) -> None:
    """A test is of the dearest tier of the fixtures that it asks for, and of its own."""
    del dear
    fixture = "tests/unit/test_tiers.py::dear"
    item = request.node
    slow = Slow(11.0, 11.0)
    assert tier_of(item) == "test"
    assert tier_of(item, {fixture: slow}) == "ci"
    assert tier_of(item, {f"{fixture}er": slow}) == "test"


def test_what_is_too_dear_for_ci(request: pytest.FixtureRequest) -> None:
    """It is for nightly runs by how long one case lasts, unless it is marked to stay."""
    item = request.node
    function = function_of(item.nodeid)
    assert tier_of(item, {function: Slow(99.0, LASTED_LONG_S)}) == "ci"
    assert tier_of(item, {function: Slow(99.0, LASTED_LONG_S + 0.1)}) == "nightly"
    item.add_marker("ci")
    assert tier_of(item, {function: Slow(99.0, LASTED_LONG_S + 0.1)}) == "ci"


def test_processes_know_the_groups(request: pytest.FixtureRequest) -> None:
    """Where tests are grouped, pytest-xdist has it in their ids: else each process starts all."""
    if request.config.getoption("loadgroup", default=False):
        assert plain(request.node.nodeid) != request.node.nodeid


def test_set_up_counts() -> None:
    """A quick test is over the limit by its call and its own fixtures together."""
    assert too_dear(TestCost(setup_s=TOO_SLOW_S - 0.1)) is None
    assert "3.1 s (2.9 s of these" in str(too_dear(TestCost(setup_s=2.9, call_s=0.2), usual))


def test_a_slow_machine_makes_no_test_slow() -> None:
    """Twice the limit is not too long where everything takes twice as long."""
    dear = TestCost(call_s=TOO_SLOW_S * 1.9, wide=[("a::fixture", TOO_SLOW_FIXTURE_S * 1.9)])
    assert too_dear(dear, lambda: 2.0) is None
    assert "1.8 times as slow" in str(too_dear(dear, lambda: 1.8))
    assert slowness() >= 1.0


def test_wide_fixtures_have_a_limit() -> None:
    """A fixture of a wider scope does not count with a test, but has a limit of its own."""
    below, above = TOO_SLOW_FIXTURE_S - 1, TOO_SLOW_FIXTURE_S + 1
    assert too_dear(TestCost(wide=[("a::fixture", below)])) is None
    assert "a::fixture took" in str(too_dear(TestCost(wide=[("a::fixture", above)]), usual))


def test_a_function_is_slow_by_its_parametrisations() -> None:
    """It is when the usual one takes over a second, all together over eight, or one lasts long."""
    calls = {
        "a": [(1.1, 1.1), (1.2, 1.2)],
        "b": [(0.9, 0.9)] * 9,
        "c": [(0.9, LASTED_LONG_S)],
        "d": [(0.9, LASTED_LONG_S + 0.1)],
    }
    assert slow_functions(calls).keys() == {"a", "b", "d"}


def test_a_fixture_is_slow_by_one_set_up() -> None:
    """Each process sets it up: their sum says nothing."""
    assert slow_fixtures({"a": [11.0, 11.0], "b": [6.0, 6.0]}) == {"a": Slow(11.0, 11.0)}


def test_runs_are_merged() -> None:
    """What ran is replaced, what did not run keeps its line, what is gone is dropped."""
    two, three, five = Slow(2.0, 2.0), Slow(3.0, 3.0), Slow(5.0, 5.0)
    old = {"ran": two, "quick now": two, "of another run": three, "gone": five}
    found = merged(old, {"ran": five}, ["ran", "quick now"], old.keys() - {"gone"})
    assert found == {"of another run": three, "ran": five}


def test_the_list_is_read() -> None:
    """Comments are no lines of it."""
    assert recorded("# seconds, name\n    3.0   1.5 a.py::f\n") == {"a.py::f": Slow(3.0, 1.5)}


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [("a.py::f@group", "a.py::f"), ("a.py::f[a@b]@a/b.py", "a.py::f[a@b]"), ("a::f[@]", "a::f[@]")],
)
def test_groups_are_no_part_of_a_name(nodeid: str, name: str) -> None:
    """A test is called alike whether it runs in a group or not."""
    assert plain(nodeid) == name


def test_the_dearest_store_is_the_group() -> None:
    """Others that a test needs, too, are started where it runs."""
    assert store_of([], ["antipode_redis", "antipode_mysql", "tmp_path"]) == "mysql"
    assert store_of(["mongodb"], ["antipode_redis"]) == "mongodb"
    assert store_of([], ["antipode_embedded"]) is None


def test_a_large_store_has_several_groups() -> None:
    """None takes longer than its share, but for a unit that does so alone."""
    units = {"a": 3.0, "b": 3.0, "c": 9.0, "d": 1.0}
    assert list(chunks(units, 6.0)) == [["a", "b"], ["c"], ["d"]]


@pytest.mark.slow
def test_costs_come_from_all_processes(tmp_path: Path) -> None:
    """Under pytest-xdist, too, the main process writes what tests and fixtures took."""
    file = tmp_path / "costs.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n1", "--dist=loadgroup", f"--costs={file}"]
    test = "tests/unit/test_tiers.py::test_the_list_is_read"
    subprocess.run([*command, test], cwd=ROOT, check=True, capture_output=True)
    costs = json.loads(file.read_text(encoding="utf-8"))
    assert list(costs["tests"]) == [test]
    assert costs["fixtures"]["tests/conftest.py::_collected"]["times"] == 1
    assert costs["workers"] == 1
    assert costs["cpu_s"] > 0
