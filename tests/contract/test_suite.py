"""The contract suite itself: its opt-outs are in writing, and a broken shim does not pass it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode.testing import ShimContract

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

SPEC = Path(__file__).resolve().parents[2] / "docs" / "spec" / "shim-contract.md"

TESTS: dict[str, Any] = {
    name: test for name, test in inspect.getmembers(ShimContract) if name.startswith("test_")
}

LOW = """
put = embedded.EmbeddedStore.put

def low(self, *args, **more):
    token = put(self, *args, **more)
    return token._replace(position=token.position - 1)

embedded.EmbeddedStore.put = low
"""
BARE = """
whole = embedded.EmbeddedShim._lineage_of
bare = lambda self, entry: whole(self, entry._replace(lineage=None))
embedded.EmbeddedShim._lineage_of = bare
"""
#: How a shim may be broken: the code that does it, and a claim that is broken then.
BROKEN = {
    "early": ("State.judge = lambda self, token: Status.VISIBLE", "never_passes_while_paused"),
    "mints too low": (LOW, "read_after_barrier_is_never_stale"),
    "forgets what was stored": (BARE, "round_trip"),
    "never sure": ("State.judge = lambda self, token: Status.NOT_YET", "young_unknown_log"),
    "ignores floors": ("_shim.floor = lambda datastore: None", "floor_times_out"),
}

MODULE = """
import pytest
from antipode import Status
from antipode.testing import ContractStore, EmbeddedTopology, ShimContract
from antipode_shims import embedded
from antipode_shims.embedded import State, _shim

{broken}

class TestBroken(ShimContract):
    opt_outs = {opt_outs!r}

    @pytest.fixture
    def store(self):
        with EmbeddedTopology() as topology:
            writer = embedded.shim("posts", topology.primary, reads_from="primary")
            reader = embedded.shim("posts", topology.replica)
            store = ContractStore(topology, writer, reader)
            store.timeout_s = 1.0
            yield store
            writer.close()
            reader.close()
"""


@pytest.mark.parametrize("name", TESTS)
def test_every_claim_is_written_and_filed(name: str) -> None:
    """Each test states its claim and belongs to a category."""
    assert (TESTS[name].__doc__ or "").strip().endswith(".")
    assert set(TESTS[name].categories) <= set(ShimContract.categories)


def test_every_category_has_a_test() -> None:
    """No category is empty: opting out of it would mean nothing."""
    filed = {name for test in TESTS.values() for name in test.categories}
    assert filed == set(ShimContract.categories)


def claims() -> str:
    """The claims of the suite as the specification lists them."""
    lines = ["| category | claim | test |", "|---|---|---|"]
    filed = [(", ".join(test.categories), name, test) for name, test in TESTS.items()]
    for categories, name, test in sorted(filed, key=lambda each: each[:2]):
        sentence = " ".join(test.__doc__.split("\n\n")[0].replace("``", "`").split())
        lines.append(f"| {categories} | {sentence} | `{name}` |")
    return "\n".join(lines)


def test_specification_lists_every_claim() -> None:
    """The specification's table is the suite's; rewrite it with ``claims()`` when they differ."""
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


@pytest.fixture
def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., pytest.RunResult]:
    """Run the suite over a shim, in a process of its own."""
    monkeypatch.setenv("PYTHONPATH", ":".join(_import_paths()))

    def run(broken: str, claim: str, opt_outs: dict[str, str] | None = None) -> pytest.RunResult:
        pytester.makepyfile(MODULE.format(broken=broken, opt_outs=opt_outs or {}))
        return pytester.runpytest_subprocess("-q", "-rs", "-k", claim, "-p", "no:cacheprovider")

    return run


def _import_paths() -> list[str]:
    """Where this process found the two packages."""
    import antipode
    import antipode_shims

    return [str(package.__path__[0]).rpartition("/")[0] for package in (antipode, antipode_shims)]


@pytest.mark.parametrize("how", BROKEN)
def test_broken_shim_is_caught(run: Callable[..., pytest.RunResult], how: str) -> None:
    """A shim that breaks its promise fails the suite."""
    broken, claim = BROKEN[how]
    result = run(broken, claim)
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes.get("passed", 0)) == (1, 0)


def test_whole_shim_passes_the_same_claims(run: Callable[..., pytest.RunResult]) -> None:
    """The same claims hold for the shim as it is, so that the failures mean something."""
    claims = {claim for _, claim in BROKEN.values()}
    outcomes = run("", " or ".join(claims)).parseoutcomes()
    assert outcomes["passed"] == len(claims)
    assert "failed" not in outcomes


def test_opt_out_shows_its_reason(run: Callable[..., pytest.RunResult]) -> None:
    """What was opted out of is skipped, and the report says why."""
    result = run("", "partial_update_merges", {"partial_updates": "values are whole"})
    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines(["*opted out of partial_updates: values are whole*"])


def test_missing_hook_names_the_way_out(run: Callable[..., pytest.RunResult]) -> None:
    """Where the suite needs to be told more, the failure says what to supply."""
    result = run("", "partial_update_merges")
    result.stdout.fnmatch_lines(["*supply ContractStore.partial_update, or opt out of*"])
