"""Which tests run when: `make test`, then `make ci`, then `make nightly`.

Each test is of one tier, the cheapest in which it can fail for its reason:

- ``nightly``: end-to-end stories, the checker against 100,000 histories, what is about faults,
  fail-overs and topologies of single stores (the contract suite has a fail-over of each in
  ``ci``), that suite through the agent and two languages on one store, for all stores but Redis,
  the oldest and the newest releases, and all variants of an application;
- ``ci``: every other test that takes more than a second: those of ``tests/durations.txt``, and
  those with the mark ``slow``;
- ``test``: the rest, and one end-to-end story.

``pytest --tier=NAME`` runs the tests of that tier and says what it leaves to the others. Without it
everything runs. ``pytest --record-durations`` writes the list of slow tests anew.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Literal

import pytest

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
]

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = Path(__file__).with_name("durations.txt")
TIERS = ("test", "ci", "nightly")
#: The end-to-end story that `make test` tells: the paper's Figure 3, over every store.
STORY = "tests/end_to_end/test_xcy_figure3.py"
NIGHTLY = re.compile(
    r"^tests/(end_to_end/|load/|mutants/|checker/test_many|contract/test_(agent|live_pairs)_stores"
    r"|contract/test_(activemq|postgresql|seaweedfs)|integration/activemq/"
    r"|integration/.*test_\w*(faults|failover|topology|oldest|newest|variants)\w*\.py)"
)
#: Whose servers take long to start, or to build, wherever a test of them is.
NIGHTLY_STORES = {"activemq", "elasticmq", "seaweedfs"}
SLOW_S = 1.0
#: All parametrisations of a function together.
SLOW_TOGETHER_S = 8.0
#: A test without the mark that takes this long fails in CI.
TOO_SLOW_S = 3.0
HEADER = """\
# Tests that take more than a second: seconds (all parametrisations together), file::function.
# Written by `pytest --record-durations`; `tests/_tiers.py` says what it is for.
"""


def function_of(nodeid: str) -> str:
    """The file and the function of a test, without its parameters."""
    return nodeid.partition("[")[0]


def slow_functions() -> frozenset[str]:
    """The functions that were slow when durations were last recorded."""
    lines = DURATIONS.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split()[1] for line in lines if line and not line.startswith("#"))


def tier_of(item: pytest.Item, slow: frozenset[str]) -> str:
    """The tier of a test."""
    file = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    stores = {name for mark in item.iter_markers("store") for name in mark.args}
    if file != STORY and (NIGHTLY.match(file) or stores & NIGHTLY_STORES):
        return "nightly"
    if item.get_closest_marker("slow") or function_of(item.nodeid) in slow:
        return "ci"
    return "test"


class Durations:
    """Notes how long calls of tests took, where one process sees all of them."""

    def __init__(self) -> None:
        self._calls: dict[str, list[float]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._calls[function_of(report.nodeid)].append(report.duration)

    def pytest_sessionfinish(self) -> None:
        slow = {
            function: sum(calls)
            for function, calls in self._calls.items()
            if median(calls) > SLOW_S or sum(calls) > SLOW_TOGETHER_S
        }
        lines = (f"{seconds:7.1f} {function}\n" for function, seconds in sorted(slow.items()))
        DURATIONS.write_text(HEADER + "".join(lines), encoding="utf-8")


class Left:
    """Counts what a run leaves to other tiers, over all processes of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.counts: Counter[str] = Counter()

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["left_to_tiers"] = dict(self.counts)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Every process collects every test.
        self.counts |= Counter(getattr(node, "workeroutput", {}).get("left_to_tiers", {}))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers of tests")
    group.addoption("--tier", choices=TIERS, help="run the tests of one tier (tests/_tiers.py)")
    group.addoption(
        "--record-durations",
        action="store_true",
        help="write tests/durations.txt, the list of slow tests, from this run of all tests",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT] = Left(config)
    config.pluginmanager.register(config.stash[LEFT], "antipode-tiers-left")
    if config.getoption("record_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "antipode-durations")


LEFT = pytest.StashKey[Left]()
#: For how long a busy machine held a test up, in seconds.
STARVED_S = pytest.StashKey[float]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = slow_functions()
    wanted = config.getoption("tier")
    kept, left = [], []
    for item in items:
        tier = tier_of(item, slow)
        if tier == "ci" and not item.get_closest_marker("slow"):
            item.add_marker("slow")
        item.user_properties.append(("tier", tier))
        (kept if wanted in (None, tier) else left).append(item)
        if wanted not in (None, tier):
            config.stash[LEFT].counts[tier] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def starved_s() -> float:
    """For how long this thread has waited for a processor so far; 0 where the system is silent."""
    with suppress(OSError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0


def crowded_s(resource: Literal["cpu", "io"]) -> float:
    """For how long tasks of the machine have waited so far; 0 as above.

    For a test that waits for a program or a server: what these waited is told of no process. Any
    task counts that waits for a processor. A disk counts while nothing goes on but for it: another
    test's writes hold nobody up.
    """
    with suppress(OSError, ValueError):
        some, full = Path("/proc/pressure", resource).read_text(encoding="ascii").splitlines()
        line = some if resource == "cpu" else full
        return int(line.rpartition("total=")[2]) / 1e6
    return 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    before_s = starved_s(), crowded_s("cpu"), crowded_s("io")
    try:
        return (yield)
    finally:
        now_s = starved_s(), crowded_s("cpu"), crowded_s("io")
        item.stash[STARVED_S] = max(
            now - before for now, before in zip(now_s, before_s, strict=True)
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report: pytest.TestReport = yield
    quick = dict(item.user_properties).get("tier") == "test"
    held = os.environ.get("CI") == "true" and quick and call.when == "call" and report.passed
    # A busy machine makes no test slow: what it waited for a processor or a disk is not its own.
    held_up_s = item.stash.get(STARVED_S, 0.0)
    took_s = call.duration - held_up_s
    if held and took_s > TOO_SLOW_S:
        report.outcome = "failed"
        report.longrepr = (
            f"It took {took_s:.1f} s beside {held_up_s:.1f} s of a busy machine, "
            "and `make test` is for tests of about a second. "
            "Make it faster, or mark it with @pytest.mark.slow: then it runs in CI alone."
        )
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    wanted, counts = config.getoption("tier"), config.stash[LEFT].counts
    if wanted is None:
        return
    others = ", ".join(f"{counts[tier]} to `make {tier}`" for tier in TIERS if counts[tier])
    terminalreporter.write_line(f"tier {wanted}; left: {others or 'nothing'}")
