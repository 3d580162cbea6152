"""A scope around single applications, or all of a class, whatever their frameworks keep inside.

Python looks ``__call__`` up in the class: it is replaced there once, and does as before for every
other instance. Unlike the attributes in which frameworks keep their own middleware, nothing else
rebuilds it: what is put there stays outermost, installed before or after others.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode._runtime.adoption import AROUND

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._session import SessionCookie

#: The attributes of a method of ours: what it replaced, and the applications that it is for.
_ORIGINAL = "_antipode_original"
_APPS = "_antipode_apps"

Method = Any  # Of any protocol, synchronous or not.


class Around:
    """What is known of an application with something of ours around it.

    Attributes:
        owner: the class whose method does it. A class above may have a method of ours as well:
            within a call it is none of its business.
        began: whether it has had a request.
        session: the cookie of its users; None without.
    """

    __slots__ = ("began", "owner", "session")

    def __init__(self, owner: type | None, session: SessionCookie | None = None) -> None:
        """Before its first request."""
        self.owner = owner
        self.began = False
        self.session = session


def put_around(
    app: Any,  # noqa: ANN401 - an application of any framework
    method: Callable[[type, Method], Method],
    session: SessionCookie | None = None,
) -> None:
    """Have calls of *app* go to what *method* makes of its own. Idempotent.

    Args:
        app: an instance of a class that is written in Python.
        method: makes a method in place of the second argument, in the class that is the first.
            It does more than that for applications whose :data:`AROUND` has that class as owner.
        session: the cookie of its users.

    Raises:
        ConfigurationError: *app* is a function, or cannot be changed.
    """
    if _own(app) is not None:
        return
    kind = type(app)
    try:
        _put(app, kind, method, session)
    except (AttributeError, TypeError) as error:
        msg = f"{app!r} cannot be instrumented: put AntipodeMiddleware around it, and serve that"
        raise ConfigurationError(msg) from error


def put_around_all(kind: type, method: Callable[[type, Method], Method]) -> None:
    """As :func:`put_around`, for every instance of *kind*, made already or not. Idempotent.

    One that has something of its own around it keeps that.

    Args:
        kind: a class that is written in Python.
        method: as above.
    """
    if _own(kind) is None:
        _put(kind, kind, method, None)


def _own(around: object) -> Around | None:
    """What is around one application, or around all of a class; not what is inherited."""
    held: Around | None = getattr(around, "__dict__", {}).get(AROUND)
    return held


def _put(
    around: object,
    kind: type,
    method: Callable[[type, Method], Method],
    session: SessionCookie | None,
) -> None:
    owner = next(each for each in kind.__mro__ if "__call__" in vars(each))
    original = vars(owner)["__call__"]
    if not hasattr(original, _ORIGINAL):
        replacement = functools.wraps(original)(method(owner, original))
        setattr(replacement, _ORIGINAL, original)
        setattr(replacement, _APPS, weakref.WeakSet[Any]())
        type.__setattr__(owner, "__call__", replacement)
    setattr(around, AROUND, Around(owner, session))
    getattr(vars(owner)["__call__"], _APPS).add(around)


def take_away(around: object) -> None:
    """Undo :func:`put_around` or :func:`put_around_all`. Idempotent.

    The class has its own method again once no application needs ours.
    """
    held = _own(around)
    if held is None or held.owner is None:
        return
    delattr(around, AROUND)
    method: Any = vars(held.owner)["__call__"]
    if hasattr(method, _ORIGINAL):  # Unless somebody put another around ours.
        apps = getattr(method, _APPS)
        apps.discard(around)
        if not apps:
            type.__setattr__(held.owner, "__call__", getattr(method, _ORIGINAL))
