"""The list of slow tests and fixtures, `tests/durations.txt`: read, and written anew by runs."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests._costs import ROOT, Costs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Durations", "function_of", "merged", "recorded", "slow_fixtures", "slow_functions"]

DURATIONS = Path(__file__).with_name("durations.txt")
SLOW_S = 1.0
#: All parametrisations of a function together.
SLOW_TOGETHER_S = 8.0
#: One that lasts this long beside others is too dear for every change.
LASTED_LONG_S = 6.0
#: A fixture of a wider scope, which serves many tests.
SLOW_FIXTURE_S = 10.0
HEADER = """\
# What takes more than a second: the seconds of a test's function and of its own fixtures (all
# parametrisations together), how long the usual one lasted beside others, and file::function; and
# what takes more than ten: those of a fixture of a wider scope, twice, and file::fixture.
# Written by `pytest --record-durations`; `tests/_durations.py` says what it is for.
"""


def function_of(nodeid: str) -> str:
    """The file and the function of a test, without its parameters."""
    return nodeid.partition("[")[0]


class Slow(NamedTuple):
    """What a function takes."""

    #: The seconds of all its parametrisations together, without those of a busy machine.
    together_s: float
    #: How long the usual one lasted in a run of its tier, where others held it up.
    lasted_s: float


def recorded(text: str) -> dict[str, Slow]:
    """What was slow when durations were last recorded."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: Slow(float(together), float(lasted)) for together, lasted, name in lines}


def slow_functions(calls: Mapping[str, Iterable[tuple[float, float]]]) -> dict[str, Slow]:
    """Those that take long by the seconds of each call, and by how long each lasted."""
    found = {}
    for name, each in calls.items():
        own_s, lasted_s = zip(*each, strict=True)
        slow = Slow(sum(own_s), median(lasted_s))
        if (
            median(own_s) > SLOW_S
            or slow.together_s > SLOW_TOGETHER_S
            or slow.lasted_s > LASTED_LONG_S
        ):
            found[name] = slow
    return found


def slow_fixtures(setups: Mapping[str, Iterable[float]]) -> dict[str, Slow]:
    """Those that take long; a session has one in each of its processes."""
    usual = {name: median(seconds) for name, seconds in setups.items()}
    return {name: Slow(each, each) for name, each in usual.items() if each > SLOW_FIXTURE_S}


def merged(
    old: Mapping[str, Slow], slow: Mapping[str, Slow], ran: Iterable[str], there: Iterable[str]
) -> dict[str, Slow]:
    """The list after a run: what did not run keeps its line while it is *there*."""
    kept = set(old).intersection(there).difference(ran)
    return dict(sorted({**{name: old[name] for name in kept}, **slow}.items()))


def still_there(name: str, collected: Mapping[str, set[str]]) -> bool:
    """Whether a line's function is one of those collected in its file, or its fixture is there."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if not path.is_file():
        return False
    if file not in collected or name in collected[file]:
        return True
    # A fixture, or a function that is gone.
    text = path.read_text(encoding="utf-8")
    return bool(re.search(rf"fixture\b[^\n]*(\n[^\n]+)*?\n *(async )?def {function}\(", text))


class Durations:
    """Writes the list, where one process sees what all of them measured."""

    def __init__(self, config: pytest.Config, costs: Costs) -> None:
        self._config = config
        self._costs = costs
        self._collected: dict[str, set[str]] = defaultdict(set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note what there is, before a tier is chosen of it."""
        for item in items:
            self._note(function_of(item.nodeid))

    def _note(self, function: str) -> None:
        self._collected[function.partition("::")[0]].add(function)

    def pytest_sessionfinish(self) -> None:
        """In a worker: say what there is."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["collected"] = sorted(set().union(*self._collected.values()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has said what there is."""
        for function in getattr(node, "workeroutput", {}).get("collected", ()):
            self._note(function)

    def pytest_terminal_summary(self) -> None:
        """Merge what ran into the list; what a rule makes nightly needs no line."""
        if hasattr(self._config, "workeroutput"):
            return
        calls: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for nodeid, cost in self._costs.tests.items():
            if nodeid in self._costs.judged:
                own_s = cost["setup_s"] + cost["call_s"]
                calls[function_of(nodeid)].append((own_s, own_s + cost["held_up_s"]))
        old = recorded(DURATIONS.read_text(encoding="utf-8"))
        slow = slow_functions(calls) | slow_fixtures(self._costs.wide)
        there = {name for name in old if still_there(name, self._collected)}
        lines = merged(old, slow, {*calls, *self._costs.wide}, there)
        text = "".join(
            f"{slow.together_s:7.1f} {slow.lasted_s:5.1f} {name}\n" for name, slow in lines.items()
        )
        DURATIONS.write_text(HEADER + text, encoding="utf-8")
