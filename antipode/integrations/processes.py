"""Process pools: a job takes the lineage into the child, and what it adds comes back.

In the child a job runs in a scope of its own. What it added to the lineage comes back with its
result or its error, into the scope that submitted it, while that is open; until then the job is an
open branch of it. A job whose end was not learned leaves the mark (``process-pool``,
``in_doubt``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.pool import Pool
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from antipode._request.background import OpenBranch, apart
from antipode._request.context import context_with, scope_in
from antipode._request.lineage_text import readable
from antipode._runtime.metrics import count
from antipode._runtime.switch import switchable
from antipode.shim import Scope

from ._method import Method
from ._outgoing import IN_DOUBT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SERVICE", "instrument", "uninstrument"]


def __dir__() -> list[str]:
    return __all__


#: The subject of marks about jobs.
SERVICE = "process-pool"


@switchable
def instrument() -> None:
    """Let jobs of ``ProcessPoolExecutor`` be branches of their request. Idempotent.

    Needs nothing in the child but that this package can be imported there. The children of
    ``multiprocessing.Pool`` start without the scope of the request that makes the pool; its jobs
    have none.
    """
    for method in _METHODS:
        method.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; jobs that run go on to their ends."""
    for method in _METHODS:
        method.unwrap()


class _Job:
    """A job in the process that submitted it."""

    __slots__ = ("number", "opened", "sent")

    def __init__(self, opened: OpenBranch) -> None:
        self.number = (os.getpid(), next(_numbers))
        self.opened = opened
        #: Whether it was written to a child, which may have run it.
        self.sent = False

    def arrived(self, text: str) -> None:
        """Its end came, with the lineage *text*."""
        held = self.opened.scope
        if held is not None:
            if held.open:
                held.merge(readable(SERVICE, text))
            else:
                count("late_response", SERVICE)
        self.opened.finish()

    def ended(self) -> None:
        """Nothing more comes of it."""
        if _jobs.pop(self.number, None) is None:
            return  # It arrived.
        held = self.opened.scope
        if self.sent and held is not None:
            count("incomplete", SERVICE)
            held.mark_incomplete(SERVICE, IN_DOUBT)
        self.opened.finish()


class _Ticket:
    """The number of a job, pickled last of what is sent: then nothing of it can fail any more."""

    def __init__(self, job: _Job) -> None:
        self._job = job

    def __reduce__(self) -> tuple[object, ...]:
        self._job.sent = True
        return tuple, (self._job.number,)


class _Result:
    """What a job returned, in the child. Unpickled it is the value itself, its lineage taken in."""

    def __init__(self, number: tuple[int, int], text: str, value: object) -> None:
        self._parts = (number, text, value)

    def __reduce__(self) -> tuple[object, ...]:
        return _take_in, self._parts


def _take_in(number: tuple[int, int], text: str, value: object) -> object:
    """In the process that submitted the job, before anybody sees how it ended."""
    job = _jobs.pop(number, None)
    if job is not None:
        job.arrived(text)
    return value


def _run(
    text: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    number: tuple[int, int],
) -> _Result:
    """Run a job, in the child, in a scope of its own."""
    held = Scope(incoming=(text,))
    token = otel_context.attach(context_with(held))
    try:
        value = function(*args, **kwargs)
    except BaseException as error:
        _send_along(error, number, held.answer())
        raise
    else:
        return _Result(number, held.answer(), value)
    finally:
        held.end()
        otel_context.detach(token)


def _send_along(error: BaseException, number: tuple[int, int], text: str) -> None:
    """Let *error*, whose class and traceback stay as they are, take a lineage to the parent."""

    def reduce(_protocol: int) -> tuple[object, ...]:
        vars(error).pop("__reduce_ex__", None)
        return _take_in, (number, text, error)

    with contextlib.suppress(Exception):  # Without it, the job ends in doubt.
        vars(error)["__reduce_ex__"] = reduce  # Where pickle searches before it asks the class.


def _submit(
    call: Callable[..., Any], _executor: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``ProcessPoolExecutor.submit``."""
    held = scope_in()
    if held is None or not args:
        # A child made now by a fork would have the scope of the request that needed it first.
        return call(*args, **kwargs)
    function, *rest = args
    text = held.text()
    job = _Job(OpenBranch(held))
    _jobs[job.number] = job
    try:
        with apart():
            future: Future[Any] = call(_run, text, function, tuple(rest), kwargs, _Ticket(job))
    except BaseException:
        job.ended()
        raise
    _settle(future, job)
    return future


def _start_pool(
    call: Callable[..., Any], _pool: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``multiprocessing.Pool``: a child would have a copy of the scope, for all jobs to come."""
    with apart():
        return call(*args, **kwargs)


def _settle(future: Future[Any], job: _Job) -> None:
    """See to it that *job* is over before anybody learns that *future* is."""
    fail = future.set_exception

    def set_exception(error: BaseException | None) -> None:
        job.ended()
        fail(error)

    def done(_: Future[Any]) -> None:
        vars(future).pop("set_exception", None)
        job.ended()

    vars(future)["set_exception"] = set_exception
    future.add_done_callback(done)  # Called at once where it is over already.


_numbers = itertools.count()
#: Jobs whose end has not come.
_jobs: dict[tuple[int, int], _Job] = {}
_METHODS = (Method(ProcessPoolExecutor, "submit", _submit), Method(Pool, "__init__", _start_pool))
