"""Table 2 methods whose calls a recorder of histories hears."""

from __future__ import annotations

import functools
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

from antipode._runtime import observers

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from antipode._runtime.observers import Recorder

    class Store(Protocol):
        """What a recorder asks a shim."""

        datastore: str
        keyspace: str


_P = ParamSpec("_P")
_R = TypeVar("_R")


def recorded(
    kind: str, *, expires: tuple[str, ...] = ()
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a recorder hear each call of a ``write``, ``delete`` or ``read`` of one key.

    For methods of shims whose first argument is ``key``, and which store and find lineages with
    :func:`stored_text` and :func:`stored_lineage`. A ``read`` returns the value first.

    Args:
        kind: ``write``, ``delete`` or ``read``.
        expires: the arguments that make the store delete the key later.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        def operation(
            recorder: Recorder, shim: Store, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> AbstractContextManager[Callable[[object], None]]:
            key = args[0] if args else kwargs.get("key")
            vanishes = any(kwargs.get(name) is not None for name in expires)
            return recorder.operation(kind, shim.datastore, shim.keyspace, key, vanishes=vanishes)

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if (recorder := observers.history) is None:
                return function(*args, **kwargs)
            with operation(recorder, cast("Store", args[0]), args[1:], kwargs) as ended:
                found = function(*args, **kwargs)
                ended(found)
                return found

        @functools.wraps(function)
        async def call_async(*args: _P.args, **kwargs: _P.kwargs) -> object:
            awaited: Any = function
            if (recorder := observers.history) is None:
                return await awaited(*args, **kwargs)
            with operation(recorder, cast("Store", args[0]), args[1:], kwargs) as ended:
                found = await awaited(*args, **kwargs)
                ended(found)
                return found

        if iscoroutinefunction(function):
            return cast("Callable[_P, _R]", call_async)
        return call

    return decorate
