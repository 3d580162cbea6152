"""aiocache: a cached value keeps what it depends on, and each request that gets it depends on that.

What was added while the decorated function ran is kept in a key beside the value's, which others
do not read; the value is stored as without this library.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode._request.context import scope_in
from antipode._request.shared_work import Caller, SharedWork, gained_by
from antipode._runtime.switch import switchable
from antipode.shim import record_read, stored_lineage, stored_text

from ._method import Method, Methods

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["instrument", "uninstrument"]

#: What the key of a value's lineage ends with.
_BESIDE = "-antipode"
#: What a lineage that cannot be read is marked as missing.
_SUBJECT = "aiocache"


def __dir__() -> list[str]:
    return __all__


class _Call:
    """A call of a decorated function."""

    def __init__(self) -> None:
        #: The text beside the value that was got last.
        self.found: str | bytes | None = None
        #: What to store beside the value; None before the function has run.
        self.made: str | None = None


#: The call whose value the cache is asked for, or given.
_current: ContextVar[_Call | None] = ContextVar("antipode-aiocache", default=None)


@switchable
def instrument() -> None:
    """Keep lineages with what ``cached`` and ``cached_stampede`` cache. Idempotent.

    In memory and in Redis, in functions that are decorated already, too. Not ``multi_cached``,
    and not in memcached, which cannot store a value and its lineage at once.

    Raises:
        ConfigurationError: aiocache is not installed.
    """
    _methods.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; lineages that are kept stay until they expire."""
    _methods.unwrap()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return _methods.active


def _found() -> list[Method]:
    """The methods of aiocache through which what decorated functions cache goes."""
    decorators: Any = import_module("aiocache.decorators")
    memory: Any = import_module("aiocache.backends.memory")
    kinds = (decorators.cached, decorators.cached_stampede)
    found = [Method(kind, "decorator", _decorator) for kind in kinds]
    found.append(Method(decorators.cached, "get_cache_key", _get_cache_key))
    for backend in (memory.SimpleMemoryBackend, *_redis()):
        found += [Method(backend, "_get", _get), Method(backend, "_set", _set)]
    return found


def _redis() -> list[Any]:
    """The backend of Redis, where its client is installed."""
    try:
        module: Any = import_module("aiocache.backends.redis")
    except ImportError:
        return []
    return [module.RedisBackend]


async def _decorator(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call of a decorated function: of its value in the cache, or of the function."""
    function, *others = args
    made = _Call()

    @functools.wraps(function)
    async def work(*args: Any, **kwargs: Any) -> Any:
        shared = SharedWork([caller := Caller(scope_in())])
        token = _current.set(None)  # What it asks a cache for itself is another value.
        gained = Lineage()
        try:
            with shared.run() as held:
                try:
                    return await function(*args, **kwargs)
                finally:
                    gained = gained_by(held)
        finally:
            _current.reset(token)
            caller.take(gained)
            made.made = stored_text(gained)

    work.antipode_of = function  # type: ignore[attr-defined]
    token = _current.set(made)
    try:
        value = await call(work, *others, **kwargs)
    finally:
        _current.reset(token)
    if made.made is None:
        record_read(stored_lineage(_SUBJECT, made.found))
    return value


def _get_cache_key(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The key of a call, from the application's function itself."""
    function, *others = args
    return call(getattr(function, "antipode_of", function), *others, **kwargs)


async def _get(
    call: Callable[..., Any], backend: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A backend's look for one key: for a decorated function, with the lineage beside it."""
    made = _current.get()
    if made is None:
        return await call(*args, **kwargs)
    key, *others = args
    value, made.found = await backend._multi_get(  # noqa: SLF001 - at once, and for no plugin
        [key, f"{key}{_BESIDE}"], *others, **kwargs
    )
    return value


async def _set(
    call: Callable[..., Any], backend: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A backend's storing of one key, likewise."""
    made = _current.get()
    if made is None or made.made is None or kwargs.get("_cas_token") is not None:
        return await call(*args, **kwargs)
    key, value, *others = args
    pairs = [(key, value), (f"{key}{_BESIDE}", made.made)]
    kwargs.pop("_cas_token", None)
    token = _current.set(None)  # In memory several are set one by one.
    try:
        return await backend._multi_set(pairs, *others, **kwargs)  # noqa: SLF001 - as above
    finally:
        _current.reset(token)


_methods = Methods("aiocache", "aiocache", _found)
