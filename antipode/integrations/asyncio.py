"""Tasks of asyncio: each is an open branch of the scope that it was made in, until it is done.

asyncio copies the context into every task, and the scope with it. What this adds is the
count: a task that is awaited before the response leaves nothing, one that was only started
shows in the response as ``open_branches``.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from antipode._request.background import OpenBranch
from antipode._request.context import scope_in
from antipode._request.scope import in_branch
from antipode._runtime.switch import switchable

from ._method import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from antipode.shim import Scope

__all__ = ["instrument", "instrument_loop", "uninstrument", "uninstrument_loop"]


def __dir__() -> list[str]:
    return __all__


LoopT = TypeVar("LoopT", bound="asyncio.AbstractEventLoop")


#: Packages whose own tasks serve a connection, or are the handling of the request itself.
SERVICES = frozenset(
    {"aio_pika", "aiohttp", "aiormq", "antipode", "antipode_shims", "django", "pymongo"}
    | {"starlette"}
)
#: A package whose tasks run a coroutine of somebody else.
_RUNNER = "anyio"
_services = SERVICES
_everywhere = False
_methods: dict[Any, Method] = {}
#: Loops of another make that were found running.
_followed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


class _Factory:
    """A task factory that counts what the loop's own, or asyncio's, makes."""

    def __init__(self, inner: Callable[..., Any] | None) -> None:
        self.inner = inner

    def __call__(self, loop: Any, coro: Any, **kwargs: Any) -> Any:
        make = self.inner
        if make is None:
            return _counted(asyncio.Task, (coro,), {"loop": loop, **kwargs})
        return _counted(make, (loop, coro), kwargs)


@switchable
def instrument(*, services: Iterable[str] = ()) -> None:
    """Count the tasks of all event loops that are asyncio's own or uvloop's. Idempotent.

    Of another make it is the loop that runs now, and those on which the ASGI middleware serves
    requests; others are instrumented one by one: :func:`instrument_loop`.

    Args:
        services: further packages whose own tasks are no part of the request that starts them,
            by the first part of their names.
    """
    global _everywhere, _services  # noqa: PLW0603 - one instrumentation for the process
    _services = SERVICES.union([services] if isinstance(services, str) else services)
    _everywhere = True
    for kind in _kinds_of_loops():
        if kind not in _methods:
            _methods[kind] = Method(kind, "create_task", _create_task)
        _methods[kind].wrap()
    follow_running_loop()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; tasks that run are counted to their ends."""
    global _everywhere  # noqa: PLW0603 - as above
    _everywhere = False
    for method in _methods.values():
        method.unwrap()
    for loop in list(_followed):
        uninstrument_loop(loop)


def follow_running_loop() -> None:
    """Count the tasks of the running loop, too, if :func:`instrument` was called. Idempotent."""
    if not _everywhere:
        return
    with contextlib.suppress(RuntimeError):  # No loop runs.
        loop = asyncio.get_running_loop()
        if not any(type(loop).create_task is kind.create_task for kind in _methods):
            _followed.add(instrument_loop(loop))


@switchable
def instrument_loop(loop: LoopT) -> LoopT:
    """Count the tasks of *loop*, by a task factory around the one that is set. Idempotent.

    A factory that is set later, such as ``asyncio.eager_task_factory``, takes its place.

    Returns:
        The same loop.
    """
    held = loop.get_task_factory()
    if not isinstance(held, _Factory):
        loop.set_task_factory(_Factory(held))
    return loop


def uninstrument_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Undo :func:`instrument_loop`. Idempotent."""
    _followed.discard(loop)
    held = loop.get_task_factory()
    if isinstance(held, _Factory):
        loop.set_task_factory(held.inner)


def _kinds_of_loops() -> list[Any]:
    """The classes whose loops are all counted, loops that are made later too."""
    try:
        import uvloop
    except ImportError:
        return [asyncio.BaseEventLoop]
    return [asyncio.BaseEventLoop, uvloop.Loop]


def _create_task(
    call: Callable[..., Any], loop: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``create_task`` of a loop, whatever factory it has."""
    if isinstance(loop.get_task_factory(), _Factory):
        return call(*args, **kwargs)
    return _counted(call, args, kwargs)


def _counted(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The task that *make* makes, as a branch of its scope."""
    held = _scope_of(kwargs.get("context"))
    if held is None or _serves(args[-1] if args else kwargs.get("coro")):
        return make(*args, **kwargs)
    opened = OpenBranch(held)  # Before: an eager task runs while it is made.
    within = in_branch.set(True)  # The task's context is a copy of this one.
    try:
        task = make(*args, **kwargs)
    except BaseException:
        opened.finish()
        raise
    finally:
        in_branch.reset(within)
    if task.done():
        opened.finish()
    else:
        # Called in the order of their making: before whoever awaits the task goes on.
        task.add_done_callback(lambda _: opened.finish())
    return task


def _scope_of(context: Any) -> Scope | None:
    # A copy costs nothing, and can be entered where the context itself is entered already.
    return scope_in() if context is None else context.copy().run(scope_in)


def _serves(coro: Any) -> bool:
    """Whether a library made *coro* for itself."""
    package, frame = _origin(coro)
    if package == _RUNNER:
        found = frame.f_locals
        # Its releases have it in an argument, or in the object whose method runs it.
        package, _ = _origin(found.get("coro", getattr(found.get("self"), "_coro", None)))
    return package in _services


def _origin(coro: Any) -> tuple[str, Any]:
    """The package whose code *coro* is, and its frame."""
    frame = getattr(coro, "cr_frame", None)
    return ("", None) if frame is None else (_package(frame), frame)


def _package(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
