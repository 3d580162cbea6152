"""Which tests run when: `make test`, then `make ci`, then `make nightly`.

Each test is of one tier, the cheapest in which it can fail for its reason:

- ``nightly``: end-to-end stories, the checker against 100,000 histories, what is about faults,
  fail-overs and topologies of single stores (the contract suite has a fail-over of each in
  ``ci``), that suite through the agent and two languages on one store, for all stores but Redis
  (of Python's agent a sample stays), its claims about faults for lineages beside values, which
  ``ci`` holds for the same servers without them, the oldest and the newest releases, all variants
  of an application, what has the mark ``nightly``: the cases of products that others stand for
  (``tests/_pairwise.py``), and vectors through agents but one of each kind and file; and what
  lasts more than six seconds beside others by ``tests/durations.txt``, unless it is a claim of
  the contract suite or has the mark ``ci``;
- ``ci``: every other test that takes more than a second with its own fixtures, or needs a fixture
  of a wider scope that takes more than ten: those of ``tests/durations.txt``, and those with the
  mark ``slow``; and the contract suite over all stores but one of each mechanism;
- ``test``: the rest, and one end-to-end story.

``pytest --tier=NAME`` runs the tests of that tier and says what it leaves to the others. Without it
everything runs. ``pytest --record-durations`` merges what ran into the list of what is slow, and
``--costs=FILE`` writes what everything cost (`tests/_costs.py` has the shape).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from tests._busy import slowness
from tests._costs import ROOT, Costs, Measure, TestCost, cost_of, fixture_name
from tests._durations import DURATIONS, LASTED_LONG_S, Durations, function_of, recorded
from tests._groups import group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests._durations import Slow

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
]

TIERS = ("test", "ci", "nightly")
#: The end-to-end story that `make test` tells: the paper's Figure 3, over every store.
STORY = "tests/end_to_end/test_xcy_figure3.py"
NIGHTLY = re.compile(
    r"^tests/(end_to_end/|load/|mutants/|checker/test_many|contract/test_(agent|live_pairs)_stores"
    r"|integration/activemq/"
    r"|integration/.*test_\w*(faults|failover|topology|oldest|newest|variants)\w*\.py)"
)
#: Whose servers take long to start, or to build, wherever a test of them is.
NIGHTLY_STORES = {"activemq", "elasticmq", "seaweedfs"}
#: One store a mechanism: `make test` holds the contract over these, and `make ci` over all others.
MECHANISMS = {"embedded", "redis", "mysql", "postgresql"}
#: The claims of the contract suite that are the same for lineages beside values.
BESIDE = re.compile(r"^tests/contract/test_\w+_stored\.py")
FAULTS = "antipode_testing.contract.faults"
#: A test without the mark that takes this long with its own fixtures fails in CI; on a slower
#: machine (`slowness`) as many times longer, and so below.
TOO_SLOW_S = 3.0
#: A fixture of a wider scope that takes this long in the tier `test` fails in CI. The dearest that
#: belongs there starts one store's servers, such as two brokers of RabbitMQ with their federation.
TOO_SLOW_FIXTURE_S = 12.0


def tier_of(item: pytest.Item, slow: Mapping[str, Slow] = MappingProxyType({})) -> str:
    """The tier of a test: the dearest of its own and its fixtures', by what is known to be slow."""
    file = _file(item.path)
    stores = {name for mark in item.iter_markers("store") for name in mark.args}
    contract = file.startswith("tests/contract/")
    # No store that is installed has its contract in nightly runs alone.
    dear = stores & (NIGHTLY_STORES - {"activemq"} if contract else NIGHTLY_STORES)
    if (file != STORY and (NIGHTLY.match(file) or dear)) or item.get_closest_marker("nightly"):
        return "nightly"
    if BESIDE.match(file) and _module(item) == FAULTS:
        return "nightly"
    function = function_of(item.nodeid)
    kept = contract or item.get_closest_marker("ci")
    if not kept and function in slow and slow[function].lasted_s > LASTED_LONG_S:
        return "nightly"
    if item.get_closest_marker("slow") or (contract and stores - MECHANISMS):
        return "ci"
    return "ci" if function in slow or (slow and fixtures_of(item) & slow.keys()) else "test"


def _module(item: pytest.Item) -> str:
    """Where a test's function is written, which may be a base of its class."""
    return getattr(getattr(item, "function", None), "__module__", "")


@cache
def _file(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""


def fixtures_of(item: pytest.Item) -> set[str]:
    """The names of the fixtures that a test asks for in its signature, and those in theirs."""
    found = getattr(item, "_fixtureinfo", None)
    return {fixture_name(each[-1]) for each in found.name2fixturedefs.values()} if found else set()


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
        help="merge what this run measures into tests/durations.txt, the list of what is slow",
    )
    group.addoption("--costs", type=Path, metavar="FILE", help="write what the run cost, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT] = Left(config)
    costs = Costs(config)
    plugins = {"left": config.stash[LEFT], "measure": Measure(), "costs": costs}
    if config.getoption("record_durations"):
        plugins["durations"] = Durations(config, costs)
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, f"antipode-tiers-{name}")


LEFT = pytest.StashKey[Left]()


@pytest.hookimpl(tryfirst=True)  # Before pytest-xdist reads the groups.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = recorded(DURATIONS.read_text(encoding="utf-8"))
    wanted = config.getoption("tier")
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        by_rule, tier = tier_of(item), tier_of(item, slow)
        item.user_properties += [("tier", tier), ("by_list", by_rule != "nightly")]
        if tier == "ci" and not item.get_closest_marker("slow"):
            item.add_marker("slow")
        (kept if wanted in (None, tier) else left).append(item)
        if wanted not in (None, tier):
            config.stash[LEFT].counts[tier] += 1
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.getoption("loadgroup", default=False):
        group(items, worker["workercount"], slow)


def too_dear(cost: TestCost, slower: Callable[[], float] = slowness) -> str | None:
    """Why a test is not one for the tier `test`; a busy or a slow machine makes no test slow."""
    dearest_s = max((seconds for _, seconds in cost.wide), default=0.0)
    if cost.own_s <= TOO_SLOW_S and dearest_s <= TOO_SLOW_FIXTURE_S:
        return None
    times = slower()
    if cost.own_s > TOO_SLOW_S * times:
        return (
            f"It took {cost.own_s:.1f} s ({cost.setup_s:.1f} s of these its own fixtures) beside "
            f"{cost.held_up_s:.1f} s of a busy machine that is {times:.1f} times as slow as usual, "
            "and `make test` is for tests of about a second. "
            "Make it faster, or mark it with @pytest.mark.slow: then it runs in CI alone."
        )
    for name, seconds in cost.wide:
        if seconds > TOO_SLOW_FIXTURE_S * times:
            return (
                f"The fixture {name} took {seconds:.1f} s, which is too much for `make test`. "
                "Make it faster, or write it into tests/durations.txt: then its tests run in CI "
                "alone (those that ask for it within a function need the mark slow)."
            )
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report: pytest.TestReport = yield
    quick = dict(item.user_properties).get("tier") == "test"
    if os.environ.get("CI") == "true" and quick and call.when == "call" and report.passed:
        why = too_dear(cost_of(item))
        if why:
            report.outcome, report.longrepr = "failed", why
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    wanted, counts = config.getoption("tier"), config.stash[LEFT].counts
    if wanted is None:
        return
    others = ", ".join(f"{counts[tier]} to `make {tier}`" for tier in TIERS if counts[tier])
    terminalreporter.write_line(f"tier {wanted}; left: {others or 'nothing'}")
