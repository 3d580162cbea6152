"""A middleware around single applications, whatever their frameworks keep inside.

Python looks ``__call__`` up in the class: it is replaced there once, and does as before for every
other instance. Unlike the attributes in which frameworks keep their own middleware, nothing else
rebuilds it: what is put there stays outermost, installed before or after others.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from antipode._errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The attribute of an application with something around it: the class of the method, and what.
AROUND = "_antipode_around"
#: The attributes of a method of ours: what it replaced, and the applications that it is for.
_ORIGINAL = "_antipode_original"
_APPS = "_antipode_apps"

Method = Any  # Of any protocol, synchronous or not.


def put_around(
    app: Any,  # noqa: ANN401 - an application of any framework
    middleware: Callable[[Any], object],
    method: Callable[[type, Method], Method],
) -> None:
    """Have calls of *app* go to what *middleware* makes of its original call. Idempotent.

    Args:
        app: an instance of a class that is written in Python.
        middleware: makes what is called of what it is to call.
        method: makes a method in place of the second argument, in the class that is the first:
            it calls what :func:`around` finds, and the original where that is None.

    Raises:
        ConfigurationError: *app* is a function, or cannot be changed.
    """
    if getattr(app, AROUND, None) is not None:
        return
    owner = next(each for each in type(app).__mro__ if "__call__" in vars(each))
    original = vars(owner)["__call__"]
    replaced = hasattr(original, _ORIGINAL)
    try:
        if not replaced:
            replacement = functools.wraps(original)(method(owner, original))
            setattr(replacement, _ORIGINAL, original)
            setattr(replacement, _APPS, weakref.WeakSet[Any]())
            type.__setattr__(owner, "__call__", replacement)
        held = vars(owner)["__call__"]
        bound = functools.partial(getattr(held, _ORIGINAL), app)
        setattr(app, AROUND, (owner, middleware(bound)))
        getattr(held, _APPS).add(app)
    except (AttributeError, TypeError) as error:
        msg = f"{app!r} cannot be instrumented: put AntipodeMiddleware around it, and serve that"
        raise ConfigurationError(msg) from error


def around(app: object, owner: type) -> Any:  # noqa: ANN401 - as what was made of it
    """What is around *app* where the class *owner* is called; None without."""
    held = getattr(app, AROUND, None)
    # A class above may have a method of ours as well: within a call it is none of its business.
    return held[1] if held is not None and held[0] is owner else None


def take_away(app: Any) -> None:  # noqa: ANN401 - an application of any framework
    """Undo :func:`put_around`; the class is as it was once nothing needs it. Idempotent."""
    held = getattr(app, AROUND, None)
    if held is None:
        return
    delattr(app, AROUND)
    owner = held[0]
    method = vars(owner)["__call__"]
    if hasattr(method, _ORIGINAL):  # Unless somebody put another around ours.
        apps = getattr(method, _APPS)
        apps.discard(app)
        if not apps:
            owner.__call__ = getattr(method, _ORIGINAL)
