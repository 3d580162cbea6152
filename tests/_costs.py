"""What tests and their fixtures cost: measured where they run, gathered in the main process.

``pytest --costs=FILE`` writes it as JSON, for programs to read:

- ``tier``: the tier that ran, or null; ``workers``: how many processes ran it;
- ``wall_s``, and ``cpu_s``: processor time of these processes and of the programs they waited for;
- ``load``: the machine's average over a minute, ``first``, ``mean`` and ``most`` of the run;
- ``steal_s``: processor time that the hypervisor gave to others, all processors together, and
  ``steal_share``: the same of all time that the processors had;
- ``tests``: by node id: ``setup_s`` (of the fixtures of the function alone), ``call_s``, their sum
  ``s``, and ``held_up_s``: for how long a busy machine held it up, which the others leave out;
- ``fixtures`` of a wider scope, by ``file::name``: ``times`` they were set up, and ``s``: the
  seconds of all these together, without the fixtures that they asked for.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests._busy import Stopwatch, cpu_s, load, stolen_s

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Costs", "Measure", "TestCost", "cost_of", "fixture_name", "plain"]

ROOT = Path(__file__).resolve().parents[1]
GROUP = re.compile(r"@[^\]]*$")
#: How often the load is sampled.
SAMPLE_S = 5.0


def plain(nodeid: str) -> str:
    """A node id without the group that pytest-xdist appends."""
    return GROUP.sub("", nodeid)


def fixture_name(fixture: pytest.FixtureDef[Any]) -> str:
    """The file and the name of a fixture."""
    function = inspect.unwrap(fixture.func)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{_shown(code.co_filename if code else '?')}::{fixture.argname}"


@cache  # Every test of a run has some, of a few files.
def _shown(file_name: str) -> str:
    file = Path(file_name)
    ours = file.is_relative_to(ROOT) and "site-packages" not in file.parts
    return file.relative_to(ROOT).as_posix() if ours else file.name


@dataclass
class TestCost:
    """What a test cost."""

    __test__ = False

    setup_s: float = 0.0
    call_s: float = 0.0
    held_up_s: float = 0.0
    #: Fixtures of a wider scope that were set up for it, and their seconds.
    wide: list[tuple[str, float]] = field(default_factory=list)

    @property
    def own_s(self) -> float:
        """Its call, and the set-up that is its own."""
        return self.setup_s + self.call_s


COST = pytest.StashKey[TestCost]()


def cost_of(item: pytest.Item) -> TestCost:
    """What a test has cost so far."""
    return item.stash.setdefault(COST, TestCost())


class Measure:
    """Measures set-up and calls, in the process in which they run."""

    def __init__(self) -> None:
        #: Seconds of the fixtures that each fixture being set up has asked for meanwhile.
        self._asked_s: list[float] = []
        self._wide: list[tuple[str, float]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        """Take the fixtures of a wider scope apart."""
        watch = Stopwatch()
        self._asked_s.append(0.0)
        try:
            return (yield)
        finally:
            whole_s = watch.read()[0]
            own_s = max(0.0, whole_s - self._asked_s.pop())
            if self._asked_s:
                self._asked_s[-1] += whole_s
            if fixturedef.scope != "function":
                self._wide.append((fixture_name(fixturedef), own_s))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        """What is not of wider fixtures is the test's own."""
        watch = Stopwatch()
        try:
            return (yield)
        finally:
            cost = item.stash[COST] = TestCost()
            cost.wide, self._wide = self._wide, []
            whole_s, cost.held_up_s = watch.read()
            cost.setup_s = max(0.0, whole_s - sum(seconds for _, seconds in cost.wide))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """The test's function."""
        watch = Stopwatch()
        try:
            return (yield)
        finally:
            cost = cost_of(item)
            cost.call_s, held_up_s = watch.read()
            cost.held_up_s += held_up_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """A report carries the costs to the main process."""
        report: pytest.TestReport = yield
        if report.when == "call":
            report.__dict__["cost"] = asdict(cost_of(item))
        return report


class Costs:
    """Gathers what all processes measured."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began_s = time.monotonic()
        self._stolen_s = stolen_s()
        self._sampled_s = self._began_s
        self._loads = [load()]
        self._workers = 0
        self.tests: dict[str, dict[str, Any]] = {}
        #: Those that passed and that no rule puts into a dear tier.
        self.judged: set[str] = set()
        self.wide: dict[str, list[float]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a process reports; the main one names tests as users do."""
        if not hasattr(self._config, "workerinput"):
            report.nodeid = plain(report.nodeid)
        now_s = time.monotonic()
        if now_s - self._sampled_s > SAMPLE_S:
            self._sampled_s = now_s
            self._loads.append(load())
        cost = getattr(report, "cost", None)
        if cost is None:
            return
        nodeid = plain(report.nodeid)
        self.tests[nodeid] = cost
        if report.passed and dict(report.user_properties).get("by_list"):
            self.judged.add(nodeid)
        for name, seconds in cost["wide"]:
            self.wide[name].append(seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self) -> None:
        """One more worker."""
        self._workers += 1

    def pytest_terminal_summary(self) -> None:
        """Write it down: the workers are gone."""
        file = self._config.getoption("costs")
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self.record(), indent=1) + "\n", encoding="utf-8")

    def record(self) -> dict[str, Any]:
        """What the file holds."""
        wall_s = time.monotonic() - self._began_s
        steal_s = stolen_s() - self._stolen_s
        return {
            "tier": self._config.getoption("tier"),
            "workers": self._workers or 1,
            "wall_s": round(wall_s, 1),
            "cpu_s": round(cpu_s(), 1),  # The main process has waited for the workers.
            "load": {
                "first": self._loads[0],
                "mean": round(sum(self._loads) / len(self._loads), 2),
                "most": max(self._loads),
            },
            "steal_s": round(steal_s, 1),
            "steal_share": round(steal_s / (wall_s * (os.cpu_count() or 1)), 4),
            "tests": {nodeid: seconds_of(cost) for nodeid, cost in self.tests.items()},
            "fixtures": {name: together(seconds) for name, seconds in self.wide.items()},
        }


def seconds_of(cost: dict[str, Any]) -> dict[str, float]:
    """A test's figures."""
    own = {name: round(cost[name], 3) for name in ("setup_s", "call_s", "held_up_s")}
    return {"s": round(cost["setup_s"] + cost["call_s"], 3), **own}


def together(seconds: Iterable[float]) -> dict[str, float]:
    """A fixture's figures."""
    each = list(seconds)
    return {"s": round(sum(each), 3), "times": len(each)}
