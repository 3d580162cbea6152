"""The contract suite itself: its opt-outs are in writing, and a broken shim does not pass it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from antipode_testing import ShimContract, SiblingContract

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec" / "shim-contract.md"

TESTS: dict[str, Any] = {
    name: test
    for suite in (ShimContract, SiblingContract)
    for name, test in inspect.getmembers(suite)
    if name.startswith("test_")
}

#: A test module: each class breaks the shim in one way, which one claim must then tell.
MODULE = """
import pytest
from antipode import Status
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import ContractStore, ShimContract
from antipode_shims import embedded
from antipode_shims.embedded import State, _shim


class Impatient(ContractStore):
    timeout_s = 1.0


class Base(ShimContract):
    @pytest.fixture
    def store(self, monkeypatch):
        self.break_it(monkeypatch)
        with EmbeddedTopology() as topology:
            writer = embedded.shim("posts", topology.primary, reads_from="primary")
            reader = embedded.shim("posts", topology.replica, reads_from="replica")
            yield Impatient(topology, writer, reader)
            writer.close()
            reader.close()

    def break_it(self, monkeypatch):
        pass


class TestWhole(Base):
    pass


class TestOptedOut(Base):
    opt_outs = {"partial_updates": "values are whole"}


class TestEarly(Base):
    def break_it(self, monkeypatch):
        monkeypatch.setattr(State, "judge", lambda self, token: Status.VISIBLE)


class TestKeepsPromisesEarly(Base):
    def break_it(self, monkeypatch):
        sure = lambda connection, promises: dict.fromkeys(promises, Status.VISIBLE)
        monkeypatch.setattr(_shim, "judged", sure)


class TestNeverSure(Base):
    def break_it(self, monkeypatch):
        monkeypatch.setattr(State, "judge", lambda self, token: Status.NOT_YET)


class TestMintsTooLow(Base):
    def break_it(self, monkeypatch):
        put = embedded.EmbeddedStore.put

        def low(self, *args, **more):
            token = put(self, *args, **more)
            return token._replace(position=token.position - 1)

        monkeypatch.setattr(embedded.EmbeddedStore, "put", low)


class TestForgets(Base):
    def break_it(self, monkeypatch):
        whole = embedded.EmbeddedShim._lineage_of
        bare = lambda self, entry: whole(self, entry._replace(lineage=None))
        monkeypatch.setattr(embedded.EmbeddedShim, "_lineage_of", bare)


class TestIgnoresFloors(Base):
    def break_it(self, monkeypatch):
        monkeypatch.setattr(_shim, "floor", lambda datastore: None)
"""
#: The broken classes, and a claim that each breaks.
BROKEN = {
    "TestEarly": "test_never_passes_while_paused",
    "TestKeepsPromisesEarly": "test_unfulfilled_promise_times_out",
    "TestNeverSure": "test_young_unknown_log",
    "TestMintsTooLow": "test_read_after_barrier_is_never_stale",
    "TestForgets": "test_round_trip",
    "TestIgnoresFloors": "test_floor_times_out",
}
PARTIAL = "test_partial_update_merges"


def claims() -> str:
    """The claims of the suites as the specification lists them."""
    lines = ["| category | claim | name |", "|---|---|---|"]
    filed = [(", ".join(test.categories), name, test) for name, test in TESTS.items()]
    for categories, name, test in sorted(filed, key=lambda each: each[:2]):
        sentence = " ".join(test.__doc__.split("\n\n")[0].replace("``", "`").split())
        lines.append(f"| {categories} | {sentence} | `{name.removeprefix('test_')}` |")
    return "\n".join(lines)


def test_specification_lists_every_claim() -> None:
    """The specification's table is the suites'; rewrite it with ``claims()`` when they differ."""
    text = SPEC.read_text(encoding="utf-8")
    listed = text.partition("<!-- claims -->")[2].partition("<!-- end of claims -->")[0]
    assert listed.strip() == claims()


@pytest.mark.parametrize("opt_outs", [{"minted": "a reason"}, {"minting": " "}, {"minting": ""}])
def test_opt_out_without_sense_is_refused(opt_outs: dict[str, str]) -> None:
    """An unknown category or an empty reason is an error where the class is defined."""
    with pytest.raises(pytest.UsageError, match="opts out"):
        type("TestMine", (ShimContract,), {"opt_outs": opt_outs})


def test_opt_out_is_inherited() -> None:
    """A subclass of a suite for one store keeps its opt-outs."""

    class Mine(ShimContract):
        opt_outs: ClassVar[dict[str, str]] = {"deletes": "an append-only log"}

    class Mine2(Mine):
        pass

    assert Mine2.opt_outs == {"deletes": "an append-only log"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest reports of the module, for one claim of each class, in a process of its own."""
    path = tmp_path_factory.mktemp("suite") / "test_module.py"
    path.write_text(MODULE, encoding="utf-8")
    chosen = [*BROKEN.items(), *(("TestWhole", claim) for claim in BROKEN.values())]
    chosen += [("TestWhole", PARTIAL), ("TestOptedOut", PARTIAL)]
    nodes = [f"{path}::{name}::{claim}" for name, claim in chosen]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", *nodes],
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    ).stdout


def outcome(report: str, name: str, claim: str) -> str:
    """How one test ended."""
    found = re.search(rf"::{name}::{claim} (\w+)", report)
    assert found is not None, report
    return found[1]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_shim_is_caught(report: str, name: str) -> None:
    """A shim that breaks its promise fails the suite, and the shim as it is does not."""
    assert outcome(report, name, BROKEN[name]) == "FAILED"
    assert outcome(report, "TestWhole", BROKEN[name]) == "PASSED"


def test_opt_out_shows_its_reason(report: str) -> None:
    """What was opted out of is skipped, and the report says why."""
    assert outcome(report, "TestOptedOut", PARTIAL) == "SKIPPED"
    assert "opted out of partial_updates: values are whole" in report


def test_missing_hook_names_the_way_out(report: str) -> None:
    """Where the suite needs to be told more, the failure says what to supply."""
    assert outcome(report, "TestWhole", PARTIAL) == "FAILED"
    assert "supply ContractStore.partial_update, or opt out of 'partial_updates'" in report
