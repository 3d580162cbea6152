"""One method of a class, wrapped while an instrumentation is on."""

from __future__ import annotations

import functools
import threading
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Called with the method as it is without us, bound, its object and its arguments.
    Around = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

_lock = threading.Lock()


class Method:
    """A method, inherited or not, that :meth:`wrap` wraps and :meth:`unwrap` restores.

    Both are idempotent.

    Where another instrumentation has wrapped ours meanwhile, ours stays beneath it and passes
    through.
    """

    def __init__(self, owner: type, name: str, around: Around) -> None:
        """Nothing changes yet."""
        self.owner = owner
        self._name = name
        self._around = around
        self._wrapper: Callable[..., Any] | None = None
        self._original: Any = None
        self._inherited = False
        self._active = False

    @property
    def active(self) -> bool:
        """Whether calls go through the function that was given."""
        return self._active

    def wrap(self) -> None:
        """Let calls go through the function that was given."""
        with _lock:
            if not self._installed():
                self._original = getattr_static(self.owner, self._name)
                self._inherited = self._name not in vars(self.owner)
                self._wrapper = self._wrapping(self._original)
                setattr(self.owner, self._name, self._wrapper)
            self._active = True

    def unwrap(self) -> None:
        """Let calls go as if nothing had been."""
        with _lock:
            self._active = False
            if self._wrapper is None or vars(self.owner).get(self._name) is not self._wrapper:
                return
            if self._inherited:
                delattr(self.owner, self._name)
            else:
                setattr(self.owner, self._name, self._original)

    def _installed(self) -> bool:
        """Whether our wrapper is among those of the method."""
        if self._wrapper is None:
            return False
        found = vars(self.owner).get(self._name)
        while found is not None and found is not self._wrapper:
            found = getattr(found, "__wrapped__", None)
        return found is not None

    def _wrapping(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            # Bound as Python binds it: proxies of other instrumentations inspect the object.
            call = original.__get__(instance, type(instance))
            if not self._active:
                return call(*args, **kwargs)
            return self._around(call, instance, args, kwargs)

        return wrapper
