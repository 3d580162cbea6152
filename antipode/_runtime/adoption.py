"""An instrumented object gets a subclass of its own class.

So it stays what it was to the application, and no cycle keeps what it holds longer than before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

_ATTRIBUTE = "_antipode"

InstanceT = TypeVar("InstanceT")

#: The attribute of an application object that has something of ours around its requests.
AROUND = "_antipode_around"


def adopt(
    instance: InstanceT, mixin: type, hooks: object, *, direct: tuple[tuple[str, str], ...] = ()
) -> InstanceT:
    """Instrument *instance*: it stays the same object, of a subclass of its class.

    Args:
        instance: of a class of a client library.
        mixin: what the subclass has before that class.
        hooks: what *mixin* finds as its attribute ``_antipode``.
        direct: names, which begin with ``_antipode``, under which the subclass has methods of the
            plain class, where that has them: who calls one often is spared ``super()``.

    Returns:
        *instance*.
    """
    if not isinstance(instance, mixin):
        plain: type = type(instance)
        instance.__class__ = _mixed(mixin, plain, direct)
    setattr(instance, _ATTRIBUTE, hooks)
    return instance


def disown(instance: object, mixin: type) -> None:
    """Undo :func:`adopt`: nothing is left of it."""
    instance.__class__ = next(each for each in type(instance).__bases__ if each is not mixin)
    # mysqlclient's connections let no attribute be deleted otherwise.
    held = getattr(instance, "__dict__", {})
    for name in [name for name in held if name.startswith(_ATTRIBUTE)]:
        del held[name]


@lru_cache(maxsize=256)
def _mixed(mixin: type, plain: type, direct: tuple[tuple[str, str], ...]) -> type:
    names: dict[str, object] = {"__module__": plain.__module__}
    if not plain.__dictoffset__:  # Only a class without room of its own can take its place.
        names["__slots__"] = ()
    for name, own in direct:
        if (method := getattr(plain, own, None)) is not None:
            names[name] = method
    return type(plain.__name__, (mixin, plain), names)
