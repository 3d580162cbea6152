"""Methods of classes, wrapped while an instrumentation is on."""

from __future__ import annotations

import functools
import threading
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    #: Called with the method as it is without us, bound, its object and its arguments.
    Around = Callable[[Callable[..., Any], Any, tuple[Any, ...], dict[str, Any]], Any]

_lock = threading.Lock()


class Method:
    """A method, inherited or not, that :meth:`wrap` wraps and :meth:`unwrap` restores.

    Both are idempotent.

    Where another instrumentation has wrapped ours meanwhile, ours stays beneath it and passes
    through.
    """

    def __init__(self, owner: type, name: str, around: Around, *, stays: bool = False) -> None:
        """Nothing changes yet.

        Args:
            owner: the class.
            name: the method's.
            around: what calls go through.
            stays: whether it stays wrapped where its library is instrumented no longer: it ends
                what began before.
        """
        self.owner = owner
        self.stays = stays
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


class Methods:
    """The methods of one library that an integration wraps, looked for when it is first used."""

    def __init__(self, library: str, extra: str, find: Callable[[], Iterable[Method]]) -> None:
        """Nothing is imported yet.

        Args:
            library: its name for people.
            extra: the pip extra.
            find: imports the library, and returns the methods.
        """
        self._library, self._extra, self._find = library, extra, find
        self._methods: list[Method] = []

    @property
    def active(self) -> bool:
        """Whether calls go through what the integration has for them."""
        return any(each.active for each in self._methods if not each.stays)

    def wrap(self) -> None:
        """Wrap all of them. Idempotent.

        Raises:
            ConfigurationError: the library is not installed.
        """
        if not self._methods:
            try:
                self._methods = list(self._find())
            except ImportError as error:
                raise not_installed(self._library, self._extra) from error
        for each in self._methods:
            each.wrap()

    def unwrap(self) -> None:
        """Restore all but those that stay. Idempotent."""
        for each in self._methods:
            if not each.stays:
                each.unwrap()


def not_installed(library: str, extra: str) -> ConfigurationError:
    """The error that says how to install *library*, named for people."""
    return ConfigurationError(f"{library} is not installed: pip install 'antipode-xcy[{extra}]'")
