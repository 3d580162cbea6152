"""What is called once a module is imported.

A finder before all others, as long as anything is waited for: it lets the others find, and has the
loader that they found say when the module is ready. Import statements stay as they are. A module
that another thread imports meanwhile is waited for, as an import statement would.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: Called once the module of that name is imported.
_waiting: dict[str, list[Callable[[], None]]] = {}
#: Of these, what was being imported by the very thread that asked: the next import finds it ready.
_late: set[str] = set()
#: Never held while anything is called or imported: finders run under the lock of all imports.
_lock = threading.Lock()


def when_imported(module: str, callback: Callable[[], None]) -> None:
    """Call *callback* now, if *module* is imported, or once it is.

    Args:
        module: its full name.
        callback: raises nothing: the import goes on.
    """
    with _lock:
        _waiting.setdefault(module, []).append(callback)
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
    if module in sys.modules and not _is_ready(module):
        # Its import began before: nothing says when it ends. This thread's own goes on at once.
        with contextlib.suppress(Exception):  # Whoever imports it has the error.
            importlib.import_module(module)
    if _is_ready(module):
        _imported(module)
    elif module in sys.modules:
        _late.add(module)


def _is_ready(module: str) -> bool:
    """Whether *module* is imported, and nobody is still running it."""
    found = sys.modules.get(module)
    spec = getattr(found, "__spec__", None)
    return found is not None and not getattr(spec, "_initializing", False)


def forget(callbacks: Collection[Callable[[], None]] | None = None) -> None:
    """Call *callbacks* no more, whatever they waited for; None: any."""
    with _lock:
        for module, waiting in list(_waiting.items()):
            left = [each for each in waiting if callbacks is not None and each not in callbacks]
            if left:
                _waiting[module] = left
            else:
                del _waiting[module]
                _late.discard(module)
        if not _waiting:
            # A new list: another thread, which goes through this one, would miss a finder.
            sys.meta_path = [each for each in sys.meta_path if each is not _finder]


def _imported(module: str) -> None:
    with _lock:
        callbacks = _waiting.pop(module, ())
        _late.discard(module)
    for callback in callbacks:
        callback()


class _Finder(MetaPathFinder):
    """Finds what the finders after it find."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that is waited for, whose loader says when it is ready."""
        if fullname not in _waiting and not _late:
            return None
        others = (each for each in sys.meta_path if each is not self)
        specs = (each.find_spec(fullname, path, target) for each in others)
        spec = next((each for each in specs if each is not None), None)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads as another loader does, whose place it gives back."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        """What else is asked of it: sources, resources, whether it is a package."""
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that the other makes; None: Python makes one."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Let the other one run it, and say that it is ready."""
        spec = module.__spec__
        module.__loader__ = self._loader
        if spec is not None:
            spec.loader = self._loader
        self._loader.exec_module(module)
        _imported(module.__name__ if spec is None else spec.name)
        for late in [each for each in list(_late) if _is_ready(each)]:
            _imported(late)


_finder = _Finder()
