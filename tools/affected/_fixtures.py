"""What the fixtures of a test need: those of the conftest.py files around it, and of plugins.

Of these files only the fixtures count that a test names, with what they use of their file, and what
runs with every test: fixtures that are automatic, and hooks. (An import there that fails does so in
the tests of what is imported, too.)
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from tools.affected._needs import code_needs
from tools.affected._running import functions, running, texts, words
from tools.import_graph import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TESTS = ROOT / "tests"
#: Their fixtures are those of every test.
PLUGINS = (
    ROOT / "testing" / "antipode_testing" / "plugin.py",
    ROOT / "antipode_cli" / "pytest_plugin.py",
)


def providers(test: Path) -> list[Path]:
    """The files whose fixtures *test* may use."""
    folders = [folder for folder in test.parents if folder.is_relative_to(TESTS)]
    found = [folder / "conftest.py" for folder in folders]
    return [path for path in (*found, *PLUGINS) if path.is_file()]


def fixtures_needs(test: Path, mentioned: frozenset[str]) -> frozenset[str]:
    """What those fixtures need that a test asks for, whose code has the words *mentioned*."""
    files = providers(test)
    found: set[str] = set()
    done: set[tuple[Path, str]] = set()
    left = [mentioned, *(frozenset(automatic(path)) for path in files)]
    while left:
        asked = left.pop()
        for path in files:
            for name in _asked_for(path, asked):
                if (path, name) not in done:
                    done.add((path, name))
                    found |= _fixture_needs(path, name)
                    left.append(mentions(slice_of(path, name)))
    return frozenset(found)


@cache
def _fixture_needs(path: Path, name: str) -> frozenset[str]:
    return code_needs(path, slice_of(path, name))


@cache
def mentions(code: ast.Module) -> frozenset[str]:
    """The names of fixtures that *code* may ask for; of names with gaps their beginning.

    By the parameters of tests and fixtures, and by texts where it asks for fixtures by name.
    """
    found = {
        parameter.arg
        for function in functions(code)
        if function.name.startswith("test_") or _is_fixture(function)
        for parameter in (*function.args.args, *function.args.kwonlyargs)
    }
    if words(code) & {"getfixturevalue", "usefixtures"}:
        found.update(texts(code))
    return frozenset(found)


def _asked_for(path: Path, asked: frozenset[str]) -> list[str]:
    beginnings = tuple(text[:-1] for text in asked if text.endswith("\0") and len(text) > 1)
    known = {*provided(path), *automatic(path)}
    return [name for name in known if name in asked or name.startswith(beginnings or ("\0",))]


@cache
def provided(path: Path) -> tuple[str, ...]:
    """The fixtures that *path* defines."""
    return tuple(node.name for node in functions(running(path)) if _is_fixture(node))


@cache
def automatic(path: Path) -> tuple[str, ...]:
    """What of *path* runs with every test: fixtures that nobody names, and hooks."""
    return tuple(
        node.name
        for node in functions(running(path))
        if node.name.startswith("pytest_")
        or any("autouse=True" in ast.unparse(each) for each in node.decorator_list)
    )


def _is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(each) for each in node.decorator_list)


@cache
def slice_of(path: Path, name: str) -> ast.Module:
    """What of *path* the function *name* is made of: itself, and what it uses at the top level."""
    binds = _bindings(path)
    taken: dict[int, ast.stmt] = {}
    left = [name]
    while left:
        statement = binds.get(left.pop())
        if statement is not None and id(statement) not in taken:
            taken[id(statement)] = statement
            left += words(ast.Module([statement], []))
    return ast.Module(list(taken.values()), [])


@cache
def _bindings(path: Path) -> dict[str, ast.stmt]:
    """The statement at the top level of *path* that defines each name; of an import, its part."""
    found: dict[str, ast.stmt] = {}
    for node in running(path).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = _only(node, alias)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in (one for target in targets for one in ast.walk(target)):
                if isinstance(each, ast.Name):
                    found[each.id] = node
    return found


def _only(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    """The part of an import that binds one name."""
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)
