"""The core is built in rooms: imports go one way, those for types alone and late ones counted."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tools.import_graph import imports, imports_of, modules_in, reached, tree_of

ROOT = Path(__file__).parents[2]
CORE = ROOT / "antipode"
PROGRAM = ROOT / "antipode_cli"
WORKSHOP = ROOT / "testing" / "antipode_testing"
PUBLIC = "public modules"
#: From the ground up: a room imports those before it.
ROOMS = (
    "_lineage",
    "_runtime",
    "_request",
    "_propagation",
    "_barrier",
    "_telemetry",
    "_dry_run",
    "_history",
    "_startup",
    "_setup",
    PUBLIC,
    "integrations",
    "calls",
    "_checker",
    "checker",
)


def room_of(path: Path) -> str:
    """The room of a file of the core."""
    name = path.relative_to(CORE).parts[0].removesuffix(".py")
    if name.startswith("_") and name != "__init__":
        assert name in ROOMS, f"{name} is no room: what may import it?"
    return name if name in ROOMS else PUBLIC


def told(path: Path, file: Path) -> str:
    """An import, for a person."""
    return f"{path.relative_to(ROOT)} imports {file.relative_to(ROOT)}"


def test_imports_follow_the_order() -> None:
    """A room imports those before it, and nothing that is built on it."""
    against = [
        told(path, file)
        for path, file in imports(CORE, CORE)
        if ROOMS.index(room_of(path)) < ROOMS.index(room_of(file))
    ]
    assert not against


@pytest.mark.parametrize(
    "folder",
    [CORE, PROGRAM, WORKSHOP, ROOT / "shims", ROOT / "benchmarks", ROOT / "tests" / "agent"],
    ids=lambda folder: folder.name,
)
def test_no_circles(folder: Path) -> None:
    """No files import each other, directly or by others: late and for types alone included."""
    circular = [
        told(path, file)
        for path in sorted(folder.rglob("*.py"))
        for file in imports_of(path, folder)
        if path in reached(file, folder)
    ]
    assert not circular


@pytest.mark.parametrize("folder", [ROOT / "shims", PROGRAM], ids=lambda folder: folder.name)
def test_what_is_built_on_the_core_imports_public_modules(folder: Path) -> None:
    """A shim or a program of anybody's can do what ours do."""
    private = [
        told(path, file)
        for path, file in imports(folder, CORE)
        if any(
            part.startswith("_") and part != "__init__.py" for part in file.relative_to(CORE).parts
        )
    ]
    assert not private


@pytest.mark.parametrize("outer", [PROGRAM, WORKSHOP], ids=lambda folder: folder.name)
def test_nobody_needs_the_outer_rings(outer: Path) -> None:
    """Neither core nor shims import the program or the workshop; ``python -m antipode`` does."""
    needed = [
        told(path, file)
        for folder in (CORE, ROOT / "shims")
        for path in sorted(folder.rglob("*.py"))
        if path != CORE / "__main__.py"
        for file in imports_of(path, outer)
    ]
    assert not needed


def test_integrations_know_no_barrier_and_no_observer() -> None:
    """They carry lineages: nothing in them waits, counts or judges by itself."""
    barred = [
        told(path, file)
        for path, file in imports(CORE / "integrations", CORE)
        if room_of(file) in {"_barrier", "_telemetry", "_dry_run"}
    ]
    assert not barred


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import antipode._barrier.floor", "antipode._barrier.floor"),
        ("def late():\n    from .floor import Floor", "antipode._barrier.floor.Floor"),
        ("if TYPE_CHECKING:\n    from . import floor", "antipode._barrier.floor"),
        ("from .._request import scope", "antipode._request.scope"),
        ("from antipode._request.scope import Scope", "antipode._request.scope.Scope"),
    ],
)
def test_imports_of_every_form_count(source: str, module: str) -> None:
    """Late ones, those for types alone, of siblings, of parents: all are imports."""
    assert modules_in(ast.parse(source), ("antipode", "_barrier")) == [module]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "judge").glob("*.py")), ids=lambda path: path.name
)
def test_the_judge_of_benchmarks_knows_none_of_them(path: Path) -> None:
    """Every benchmark of consistency asks it: it imports its own files and plain arithmetic."""
    allowed = ("benchmarks.judge", "benchmarks._statistics")
    for module in modules_in(tree_of(path), ("benchmarks", "judge")):
        known = module.partition(".")[0] in sys.stdlib_module_names
        assert known or module.startswith(allowed), f"{path.name} imports {module}"
