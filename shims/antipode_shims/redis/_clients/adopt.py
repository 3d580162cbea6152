"""An instrumented object gets a subclass of its own class.

So it stays what it was to the application, and no cycle keeps a pipeline's connection longer than
before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=64)
def _mixed(mixin: Any, plain: Any) -> type:
    return type(plain.__name__, (mixin, plain), {"__module__": plain.__module__})


def adopt(instance: Any, mixin: type, hooks: Any) -> Any:
    """Instrument *instance*: it stays the same object, of a subclass of its class."""
    if not isinstance(instance, mixin):
        plain: Any = type(instance)
        instance.__class__ = _mixed(mixin, plain)
    instance._antipode = hooks  # noqa: SLF001
    return instance


def disown(instance: Any, mixin: type) -> None:
    """Undo :func:`adopt`."""
    instance.__class__ = next(base for base in type(instance).__mro__[1:] if base is not mixin)
    del instance._antipode  # noqa: SLF001
