"""The part of a Python file that runs: no annotations, docstrings or imports for types."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from tools.import_graph import ROOT, nodes, package_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Running(ast.NodeTransformer):
    """Takes out what is never executed."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Without the imports for types."""
        self.generic_visit(node)
        return (node.orelse or [ast.Pass()]) if _for_types(node) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Without docstrings."""
        self.generic_visit(node)
        return ast.Pass() if isinstance(node.value, ast.Constant) else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Without annotations."""
        return ast.arg(arg=node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without the type of what it returns."""
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """As of a function."""
        node.returns = None
        return self.generic_visit(node)


def _for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


@cache
def running(path: Path) -> ast.Module:
    """The code of *path* that runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    found: ast.Module = _Running().visit(tree)
    return found


@cache
def lazy_names(package: Path) -> dict[str, str]:
    """Of a package that loads names once they are used: each name, and what it is in full.

    Such a package has a `__getattr__`, and says for type checkers where its names come from.
    """
    tree = tree_of(package) if package.name == "__init__.py" else ast.Module([], [])
    if not any(isinstance(n, ast.FunctionDef) and n.name == "__getattr__" for n in tree.body):
        return {}
    within = package_of(package)
    return {
        alias.asname or alias.name: ".".join((*within, *(each.module or "").split("."), alias.name))
        for node in tree.body
        if _for_types(node)
        for each in ast.walk(node)
        if isinstance(each, ast.ImportFrom) and each.level
        for alias in each.names
    }


@cache
def texts(tree: ast.AST) -> frozenset[str]:
    """Every text in *tree*; of one with gaps, what stands before the first, with a NUL for it."""
    open_ones = list(nodes(tree, ast.JoinedStr))
    inner = {id(part) for node in open_ones for part in node.values}
    found = {_beginning(node) for node in open_ones}
    for node in nodes(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in inner:
            found.add(node.value)
    return frozenset(found)


def _beginning(node: ast.JoinedStr) -> str:
    first = node.values[0] if node.values else None
    whole = isinstance(first, ast.Constant) and len(node.values) == 1
    text = str(first.value) if isinstance(first, ast.Constant) else ""
    return text if whole else f"{text}\0"


@cache
def words(tree: ast.AST) -> frozenset[str]:
    """Every name that *tree* uses: of variables, attributes and imports."""
    found = {node.id for node in nodes(tree, ast.Name)}
    found |= {node.attr for node in nodes(tree, ast.Attribute)}
    found |= {part for node in nodes(tree, ast.alias) for part in node.name.split(".")}
    return frozenset(found)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    yield from nodes(tree, ast.FunctionDef)
    yield from nodes(tree, ast.AsyncFunctionDef)


def named(path: Path) -> str:
    """A file of the project as git names it."""
    return path.relative_to(ROOT).as_posix()
