"""Which of the project's Python files import which: late imports and those for types alone, too."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
#: Where packages lie that are imported by their own names.
ROOTS = (ROOT / "shims", ROOT / "testing", ROOT)


Node = TypeVar("Node", bound=ast.AST)


@cache
def file_of(module: str) -> Path | None:
    """The file of *module*; None where that is no module of this project."""
    for root in ROOTS:
        path = root.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def package_of(path: Path) -> tuple[str, ...]:
    """The package that *path* lies in."""
    root = next(root for root in ROOTS if path.is_relative_to(root))
    return path.relative_to(root).parent.parts


@cache
def _by_kind(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """The nodes in *tree* by their types: most of the time goes into walking."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree):
        found[type(node)].append(node)
    return found


def nodes(tree: ast.AST, *kinds: type[Node]) -> Iterator[Node]:
    """Every node in *tree* of one of *kinds*."""
    return (node for kind in kinds for node in _by_kind(tree).get(kind, ()))  # type: ignore[misc]


def modules_in(tree: ast.AST, package: tuple[str, ...]) -> list[str]:
    """What the code in *tree*, of *package*, imports anywhere: full names, the longest meant."""
    found = [alias.name for node in nodes(tree, ast.Import) for alias in node.names]
    for node in nodes(tree, ast.ImportFrom):
        start = package[: len(package) - node.level + 1] if node.level else ()
        base = ".".join((*start, *filter(None, [node.module])))
        found += [f"{base}.{alias.name}" for alias in node.names]
    return found


def files_of(modules: list[str]) -> frozenset[Path]:
    """The files of *modules*, or of what has them as a name."""
    files = (file_of(name) or file_of(name.rpartition(".")[0]) for name in modules)
    return frozenset(file for file in files if file)


@cache
def tree_of(path: Path) -> ast.Module:
    """The code of *path*."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports_of(path: Path, folder: Path = ROOT) -> frozenset[Path]:
    """The files below *folder* that *path* imports."""
    found = files_of(modules_in(tree_of(path), package_of(path)))
    return frozenset(file for file in found if file.is_relative_to(folder)) - {path}


def imports(folder: Path, inside: Path) -> list[tuple[Path, Path]]:
    """Who imports whom: of the files below *folder*, of those below *inside*."""
    files = sorted(folder.rglob("*.py"))
    return [(path, file) for path in files for file in imports_of(path, inside)]


def reached(start: Path, folder: Path = ROOT) -> set[Path]:
    """The files below *folder* that *start* imports, and what those import."""
    seen: set[Path] = set()
    left = [start]
    while left:
        new = imports_of(left.pop(), folder) - seen
        seen |= new
        left += new
    return seen
