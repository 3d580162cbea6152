"""Branches: what works for a request next to the code that handles it, and ends when it ends."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from opentelemetry import baggage
from opentelemetry import context as otel_context

from antipode._lineage.grammar import MEMBER

from .context import KEY, scope_in
from .scope import in_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .scope import Scope

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class OpenBranch:
    """One branch of a scope: open from when it is made until it is finished, once. Thread-safe.

    It does not keep the scope alive when it is over, whoever still holds it.
    """

    __slots__ = ("_handle", "_open", "_scope")

    def __init__(self, held: Scope) -> None:
        """Open a branch of *held*, which is the scope of the current context."""
        self._open = [held]
        self._scope: Scope | None = held
        # Who removed the member goes without it in branches too.
        self._handle = baggage.get_baggage(MEMBER)
        held.began()

    @property
    def scope(self) -> Scope | None:
        """The scope while the branch is open; None afterwards."""
        return self._scope

    def finish(self) -> None:
        """The branch is over. What comes second changes nothing."""
        try:
            held = self._open.pop()  # One step: whoever gets it is the one to finish.
        except IndexError:
            return
        held.finished()
        self._scope = self._handle = None

    def run(self, function: Callable[..., _Result], *args: Any, **kwargs: Any) -> _Result:  # noqa: ANN401 - of the function
        """Call *function* as this branch, which is over when it returns or raises."""
        held = self._scope
        token = None
        if held is not None and scope_in() is not held:
            token = otel_context.attach(_context_of(held, self._handle))
        within = in_branch.set(held is not None)
        del held  # The frames of an exception keep what they name.
        try:
            return function(*args, **kwargs)
        finally:
            in_branch.reset(within)
            if token is not None:
                otel_context.detach(token)
            self.finish()

    def __del__(self) -> None:
        """What nobody holds any more will not run either."""
        self.finish()


def _context_of(held: Scope, handle: object) -> otel_context.Context:
    context = otel_context.set_value(KEY, held)
    return context if handle is None else baggage.set_baggage(MEMBER, handle, context)


def branch(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Make *function* run in the current scope, wherever it is called, as a branch of it.

    For threads and job queues within one process that nothing instruments::

        threading.Thread(target=antipode.branch(refund), args=(order,)).start()

    The branch is open from now until the first call has ended, or until nobody can call it any
    more: what the request sends meanwhile says that it runs (``open_branches``). Without a scope
    *function* is returned as it is.

    Raises:
        TypeError: *function* is a coroutine function: tasks have the scope of the context that
            they were made in.
    """
    if inspect.iscoroutinefunction(function):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{name} is a coroutine function: a task runs in the scope that it was made in, and "
            "antipode.integrations.asyncio.instrument() counts it"
        )
    held = scope_in()
    return function if held is None else _bound(function, OpenBranch(held))


def _bound(function: Callable[_Args, _Result], opened: OpenBranch) -> Callable[_Args, _Result]:
    held, handle = opened.scope, baggage.get_baggage(MEMBER)

    @functools.wraps(function)
    def call(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        token = otel_context.attach(_context_of(cast("Scope", held), handle))
        try:
            return opened.run(function, *args, **kwargs)
        finally:
            otel_context.detach(token)

    return call


@contextmanager
def apart() -> Generator[None]:
    """Outside of the current scope: for starting what is no part of the request."""
    token = otel_context.attach(outside())
    try:
        yield
    finally:
        otel_context.detach(token)


@contextmanager
def unrecorded() -> Generator[None]:
    """Where nothing is recorded or waits: for what a client asks its server on its own account."""
    from .scope import Scope

    nobodys = Scope()
    nobodys.stop()
    token = otel_context.attach(otel_context.set_value(KEY, nobodys))
    try:
        yield
    finally:
        otel_context.detach(token)


def outside() -> otel_context.Context:
    """The current context without its scope."""
    if otel_context.get_value(KEY) is None:
        return otel_context.get_current()
    return baggage.remove_baggage(MEMBER, otel_context.set_value(KEY, None))
