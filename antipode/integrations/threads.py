"""Threads, timers and thread pools: each job runs in the scope that it was started in.

Builds on OpenTelemetry's ``ThreadingInstrumentor`` where that is on, which carries the whole
context, and carries the scope alone where it is not; the order of the two does not matter. A
thread or a pool's job that was started in a scope is an open branch of it until it ends.
"""

from __future__ import annotations

import functools
import threading
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from antipode._request.background import OpenBranch, apart
from antipode._request.context import scope_in
from antipode._runtime.switch import switchable

from ._method import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["instrument", "uninstrument"]


def __dir__() -> list[str]:
    return __all__


#: Packages whose own threads serve the process and not the request that happened to start them.
SERVICES = frozenset(
    {
        "antipode",
        "antipode_shims",
        "anyio",
        "concurrent",
        "logging",
        "multiprocessing",
        "opentelemetry",
        "pymongo",
    }
)
_services = SERVICES


@switchable
def instrument(*, services: Iterable[str] = ()) -> None:
    """Let threads, timers and jobs of thread pools be branches of their request. Idempotent.

    Args:
        services: further packages whose own threads are no part of the request that starts them,
            by the first part of their names; connection pools and reporters are such.
    """
    global _services  # noqa: PLW0603 - one instrumentation for the process
    _services = SERVICES.union([services] if isinstance(services, str) else services)
    for method in _METHODS:
        method.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; branches that run go on to their ends."""
    for method in _METHODS:
        method.unwrap()


def _start(
    call: Callable[..., Any], thread: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``Thread.start``."""
    held = scope_in()
    if held is None or thread.ident is not None:
        return call(*args, **kwargs)
    if _serves(thread):
        with apart():
            return call(*args, **kwargs)
    opened = OpenBranch(held)
    _let_run(thread, opened)
    try:
        return call(*args, **kwargs)
    except BaseException:
        if thread.ident is None:  # It did not start.
            vars(thread).pop("run", None)
            opened.finish()
        raise


def _let_run(thread: Any, opened: OpenBranch) -> None:
    """Make *thread* run as the branch *opened*, whatever its class does in ``run``."""
    run = thread.run

    def as_branch() -> None:
        vars(thread).pop("run", None)
        opened.run(run)

    thread.run = as_branch


def _serves(thread: Any) -> bool:
    """Whether a library runs *thread* for itself."""
    target = getattr(thread, "_target", None)
    while isinstance(target, functools.partial):
        target = target.func
    modules = (type(thread).__module__, getattr(target, "__module__", None) or "")
    return any(module.partition(".")[0] in _services for module in modules)


def _submit(
    call: Callable[..., Any], executor: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``ThreadPoolExecutor.submit``."""
    held = scope_in()
    if held is None or not args:
        return call(*args, **kwargs)
    opened = OpenBranch(held)
    if not _elsewhere(executor):
        args = (opened.run, *args)
    try:
        # The pool may start a thread now, which is no part of the request.
        with apart():
            future: Future[Any] = call(*args, **kwargs)
    except BaseException:
        opened.finish()
        raise
    # A job that runs ends on its own, before anybody sees its result; this is for the others.
    future.add_done_callback(lambda _: opened.finish())
    return future


def _elsewhere(executor: object) -> bool:
    """Whether jobs run in interpreters of their own (Python 3.14): they share no scope."""
    kind = getattr(futures, "InterpreterPoolExecutor", None)
    return kind is not None and isinstance(executor, kind)


_METHODS = (
    Method(threading.Thread, "start", _start),
    Method(ThreadPoolExecutor, "submit", _submit),
)
