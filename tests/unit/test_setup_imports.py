"""What is called once a module is imported: the import itself stays as it is."""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from importlib import resources
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

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


def test_a_module_that_another_thread_is_importing(package: Path) -> None:
    """It stands in ``sys.modules`` before it is ready: who waits for it waits until it is."""
    (package / "__init__.py").write_text(
        "import builtins\nbuiltins.waited_for.begun.set()\n"
        "builtins.waited_for.go.wait(60)\nready = 1\n"
    )
    gates = SimpleNamespace(begun=threading.Event(), go=threading.Event())
    builtins.waited_for = gates  # type: ignore[attr-defined]
    found: list[Any] = []

    def wait() -> None:
        when_imported("waited_for", lambda: found.append(vars(sys.modules["waited_for"])["ready"]))

    threads = [threading.Thread(target=importlib.import_module, args=(package.name,))]
    threads.append(threading.Thread(target=wait))
    try:
        threads[0].start()
        assert gates.begun.wait(60)
        threads[1].start()
        gates.go.set()
        for thread in threads:
            thread.join(60)
    finally:
        del builtins.waited_for  # type: ignore[attr-defined]
    assert found == [1]


def test_a_module_that_waits_for_itself(package: Path) -> None:
    """It is called once the next import finds it ready, and not before."""
    (package / "__init__.py").write_text(
        "from antipode._runtime.imports import when_imported\n"
        "found = []\n"
        "when_imported('waited_for', lambda: found.append(ready))\n"
        "ready = 1\n"
    )
    module = importlib.import_module(package.name)
    importlib.import_module("waited_for.later")
    assert module.found == [1]


def test_who_goes_through_the_finders_meanwhile_misses_none(package: Path) -> None:
    """Another thread's import may be in the midst of the list: it is not changed under it."""
    when_imported(package.name, lambda: None)
    held = sys.meta_path
    before = list(held)
    forget()
    assert held == before
    assert sys.meta_path == before[1:]
