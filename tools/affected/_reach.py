"""Which tests a file is needed by, directly or by others, and by which way."""

from __future__ import annotations

import gc
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from tools.affected._fixtures import fixtures_needs, mentions
from tools.affected._needs import needs_of, project
from tools.affected._running import running
from tools.import_graph import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Whose code may ask for fixtures.
ASKING = ("tests/", "testing/antipode_testing/contract/")


#: Who lists the files of a folder of these needs none of them: they read files as texts.
APART = ("tests/tidy/", "tools/affected/")


@cache
def tests() -> frozenset[str]:
    """The files of tests."""
    names = (name for name in project() if name.startswith("tests/") and name.endswith(".py"))
    return frozenset(name for name in names if name.rpartition("/")[2].startswith("test_"))


@cache
def needs(name: str) -> frozenset[str]:
    """What a file of the project needs: of a test, what its fixtures need, too."""
    if not name.endswith(".py"):
        return frozenset()
    found = needs_of(ROOT / name)
    if name in tests():
        found |= fixtures_needs(ROOT / name, _asked_by(name))
    apart = () if name.startswith(APART) else APART
    return frozenset(
        each for each in found if not each.endswith("/conftest.py") and not each.startswith(apart)
    )


def _asked_by(test: str) -> frozenset[str]:
    """The words by which a test, and the helpers that it uses, may ask for fixtures."""
    seen, left = {test}, [test]
    while left:
        new = {name for name in needs_of(ROOT / left.pop()) if _asks(name)} - seen
        seen |= new
        left += new
    return frozenset().union(*(mentions(running(ROOT / name)) for name in seen))


def _asks(name: str) -> bool:
    return name.startswith(ASKING) and name.endswith(".py") and not name.endswith("/conftest.py")


@cache
def users() -> dict[str, set[str]]:
    """Of each file that a test needs: the files that need it directly."""
    with _no_collections():
        return _users()


@contextmanager
def _no_collections() -> Iterator[None]:
    """All code that is read is kept: half of the time would go into looking for what is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _users() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    seen, left = set(tests()), sorted(tests())
    while left:
        name = left.pop()
        for needed in needs(name):
            found[needed].add(name)
            if needed not in seen:
                seen.add(needed)
                left.append(needed)
    return found


def reached_by(file: str) -> dict[str, list[str]]:
    """The tests that need *file*, each with the files between the two, the test's own first."""
    next_of = {file: ""}
    left = [file]
    while left:
        name = left.pop(0)
        for user in sorted(users().get(name, ())):
            if user not in next_of:
                next_of[user] = name
                left.append(user)
    return {test: _way(test, next_of) for test in sorted(tests() & set(next_of))}


def _way(test: str, next_of: dict[str, str]) -> list[str]:
    found: list[str] = []
    name = next_of[test]
    while name:
        found.append(name)
        name = next_of[name]
    return found[:-1]
