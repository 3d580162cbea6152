"""What is called once a module is imported: the import itself stays as it is."""

from __future__ import annotations

import importlib
import sys
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from antipode._runtime.imports import forget, when_imported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package `waited_for` that nobody has imported."""
    folder = tmp_path / "waited_for"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "later.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    forget()
    for name in ("waited_for", "waited_for.later"):
        sys.modules.pop(name, None)


def test_it_is_called_when_the_module_is_ready(package: Path) -> None:
    """Once, after the module ran; at once where it is there already."""
    (package / "__init__.py").write_text("ready = 1\n")
    found: list[int] = []
    when_imported("waited_for", lambda: found.append(sys.modules["waited_for"].ready))
    assert not found
    importlib.reload(importlib.import_module("waited_for"))
    assert found == [1]
    when_imported("waited_for", lambda: found.append(2))
    assert found == [1, 2]


def test_a_module_within_a_package_is_waited_for(package: Path) -> None:
    """Its package alone is not it."""
    found: list[str] = []
    when_imported("waited_for.later", lambda: found.append("later"))
    importlib.import_module(package.name)
    assert not found
    importlib.import_module("waited_for.later")
    assert found == ["later"]


def test_the_module_is_what_it_would_have_been(package: Path) -> None:
    """Its loader is Python's own, so that resources, sources and tools find what they find."""
    (package / "text.txt").write_text("here")
    when_imported("waited_for", lambda: None)
    module = importlib.import_module("waited_for")
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert resources.files("waited_for").joinpath("text.txt").read_text() == "here"


def test_an_import_that_fails_is_waited_for_again(package: Path) -> None:
    """Its error is the caller's; the next attempt counts."""
    found: list[str] = []
    (package / "__init__.py").write_text("import no_such_module_anywhere\n")
    when_imported("waited_for", lambda: found.append("ready"))
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        importlib.import_module("waited_for")
    assert not found
    (package / "__init__.py").write_text("\n\n")
    importlib.invalidate_caches()
    importlib.import_module("waited_for")
    assert found == ["ready"]


def test_what_is_forgotten_is_not_called(package: Path) -> None:
    """And imports go as they did."""
    found: list[str] = []
    before = list(sys.meta_path)
    when_imported(package.name, lambda: found.append("ready"))
    forget()
    importlib.import_module("waited_for")
    assert not found
    assert sys.meta_path == before
