"""Reads of asyncio's tasks that are made for one request, and whose result another one gets.

A data loader or a single flight that nobody decorated reads in the scope of the request that
started its task: for the others that wait for it, it waits for nothing that they depend on.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import Future, Task
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, ref

from antipode._request.context import scope_in
from antipode._runtime.call_site import caller, own_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from antipode._request.scope import Scope
    from antipode._runtime.observers import Request

    from .source_lines import Line


class Read(NamedTuple):
    """A read of a task.

    Attributes:
        datastore: what was read.
        line: where.
        request: for whom.
    """

    datastore: str
    line: Line
    request: ref[Any]

    def is_of(self, request: Request) -> bool:
        """Whether it was made for *request*."""
        return self.request() is request


class SharedReads:
    """The tasks that read, and who gets what came of them."""

    def __init__(
        self,
        same: Callable[[Request, Request], bool],
        tell: Callable[[Request, Read, Line | None, Line | None], None],
    ) -> None:
        """Nothing is known yet.

        Args:
            same: whether two scopes are of one request.
            tell: of a request, of its task's read, of the line where the task was started, and of
                that where another request waits for it; None for what is not known.
        """
        self._same, self._tell = same, tell
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        #: By task: which task started it, and where, if that is known.
        self._started: WeakKeyDictionary[Task[Any], tuple[ref[Task[Any]], Line | None]]
        self._started = WeakKeyDictionary()
        #: By task: its reads and those of tasks that it started for the same request, each once.
        self._reads: WeakKeyDictionary[Task[Any], dict[Line, Read]] = WeakKeyDictionary()
        #: By task: where its own request waits for it.
        self._awaited: WeakKeyDictionary[Task[Any], Line] = WeakKeyDictionary()
        #: By scope: in whose block it was opened.
        self._around: WeakKeyDictionary[Scope, ref[Scope]] = WeakKeyDictionary()

    def opened(self, request: Any) -> None:
        """A scope was opened."""
        self.follow_running_loop()
        if (around := request.around) is not None and (outer := scope_in(around)) is not None:
            self._around[request] = ref(outer)

    def follow_running_loop(self) -> None:
        """See which tasks the running loop makes, and whom they wake. Idempotent."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if loop not in self._loops:
            self._loops.add(loop)
            with contextlib.suppress(AttributeError):  # A loop that takes no attributes.
                self._follow(loop)

    def close(self) -> None:
        """See nothing any more."""
        for loop in self._loops:
            for name in ("call_soon", "create_task"):
                vars(loop).pop(name, None)
        self._loops.clear()

    def read(self, request: Request, datastore: str) -> None:
        """The current task, if any, is about to read from a replica."""
        self.follow_running_loop()
        task = _current_task()
        if task is None:
            return
        site = caller()
        found = Read(datastore, (site.f_code, site.f_lineno), ref(request))
        while task is not None:
            self._reads.setdefault(task, {})[found.line] = found
            start = self._started.get(task)
            task = None if start is None else start[0]()

    def _follow(self, loop: Any) -> None:
        kind = type(loop)

        def call_soon(callback: Any, *args: Any, context: Context | None = None) -> Any:
            if context is not None and args and isinstance(args[0], Future):
                self._wakes(args[0], callback, context)
            return kind.call_soon(loop, callback, *args, context=context)

        def create_task(*args: Any, **kwargs: Any) -> Any:
            made, task = kind.create_task(loop, *args, **kwargs), _current_task()
            if task is not None:
                self._started[made] = ref(task), _line_in(task)
            return made

        loop.call_soon, loop.create_task = call_soon, create_task

    def _wakes(self, future: Future[Any], callback: Any, context: Context) -> None:
        """The current task resolved *future*, for which somebody waits in *context*."""
        task = _current_task()
        reads = None if task is None else self._reads.get(task)
        if task is None or not reads or not _hands_over(future):
            return
        held: Scope | None = scope_in()
        waiter: Scope | None = context.copy().run(scope_in)
        if held is None or waiter is None:
            return
        line = _line_of(_who_waits(callback))
        if self._is_within(held, waiter) or self._same(held, waiter):
            if line is not None:
                self._awaited.setdefault(task, line)
            return
        for each in reads.values():
            if each.is_of(held):  # In work that is decorated it has a scope of its own.
                self._tell(held, each, self._start_of(task), line)

    def _is_within(self, held: Scope, other: Scope) -> bool:
        """Whether *held* is *other*, or was opened in its block."""
        found: Scope | None = held
        while found is not None and found is not other:
            outer = self._around.get(found)
            found = None if outer is None else outer()
        return found is not None

    def _start_of(self, task: Task[Any]) -> Line | None:
        _, line = self._started.get(task, (None, None))
        return line or self._awaited.get(task)


def _current_task() -> Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # A thread without a loop.
        return None


def _hands_over(future: Future[Any]) -> bool:
    """Whether *future* has a value: those of locks, events and pools only wake somebody."""
    # To ask for the exception by its method would say that somebody handled it.
    if future.cancelled() or getattr(future, "_exception", None) is not None:
        return False
    return future.result() is not None and not isinstance(future.result(), bool)


def _line_in(task: Task[Any]) -> Line | None:
    """Where the application's code is in *task*, which runs."""
    frame = own_frame(sys._getframe(1), getattr(task.get_coro(), "cr_frame", None))  # noqa: SLF001
    return None if frame is None else (frame.f_code, frame.f_lineno)


def _who_waits(callback: Any) -> Task[Any] | None:
    """The task that *callback* wakes, also through ``gather()`` and ``shield()``."""
    left, met = [callback], set[int]()
    while left:
        each = left.pop()
        if isinstance(owner := getattr(each, "__self__", None), Task):
            return owner
        for cell in getattr(each, "__closure__", None) or ():
            future = cell.cell_contents
            if isinstance(future, Future) and not future.done() and id(future) not in met:
                met.add(id(future))
                left += [callback for callback, _ in getattr(future, "_callbacks", None) or ()]
    return None


def _line_of(task: Task[Any] | None) -> Line | None:
    """Where the application's code is in *task*, which waits."""
    found, inner = None, None if task is None else task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None and own_frame(frame, frame) is not None:
            found = frame.f_code, frame.f_lineno
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return found
