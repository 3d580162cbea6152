"""One method of a class, wrapped while an instrumentation is on."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Called with the method as it is without us, bound, its object and its arguments.
    Around = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

_lock = threading.Lock()


class Method:
    """A method that :meth:`wrap` wraps and :meth:`unwrap` restores; both are idempotent.

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
        self._active = False

    def wrap(self) -> None:
        """Let calls go through the function that was given."""
        with _lock:
            if not self._installed():
                self._original = self.owner.__dict__[self._name]
                self._wrapper = self._wrapping(self._original)
                setattr(self.owner, self._name, self._wrapper)
            self._active = True

    def unwrap(self) -> None:
        """Let calls go as if nothing had been."""
        with _lock:
            self._active = False
            if self.owner.__dict__[self._name] is self._wrapper and self._wrapper is not None:
                setattr(self.owner, self._name, self._original)

    def _installed(self) -> bool:
        """Whether our wrapper is among those of the method."""
        if self._wrapper is None:
            return False
        found = self.owner.__dict__[self._name]
        while found is not None and found is not self._wrapper:
            found = getattr(found, "__wrapped__", None)
        return found is not None

    def _wrapping(self, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            # Bound as Python binds it: proxies of other instrumentations look at the object.
            call = original.__get__(instance, type(instance))
            if not self._active:
                return call(*args, **kwargs)
            return self._around(call, instance, args, kwargs)

        return wrapper
