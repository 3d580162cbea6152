"""Cancellations that a client library swallows.

``asyncio.wait_for`` of Python 3.10 and 3.11 returns the result of work that ends just as its task
is cancelled, and drivers send through it. Their call then ends as if nothing had happened, and
whatever comes after it, our next poll for one, goes on in a task that was told to end.
"""

from __future__ import annotations

import sys
from types import coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Generator
    from typing import TypeVar

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    T = TypeVar("T")


@coroutine
def unless_cancelled(work: Awaitable[T]) -> Generator[Any, Any, T]:
    """Await *work*; raise the cancellation that met it, even where *work* goes on after it.

    *work* ends first, so that its connection is not left half read. The exception is the one that
    was thrown: who cancels by scopes, as anyio does, knows it by its message. A cancellation that
    *work* caused and took back, as a timeout of its own does, is not raised, nor is one from
    before, which the task has caught: it may use our clients while it cleans up.

    Raises:
        CancelledError: the task was cancelled meanwhile.
        BaseException: of *work*.
    """
    import asyncio

    steps = work.__await__()
    resume: Callable[[Any], Any] = steps.send
    given: Any = None
    met: Any = None
    try:
        while True:
            try:
                awaited = resume(given)
            except StopIteration as end:
                if met is not None and _stands(met):
                    raise met[0] from None
                return end.value  # type: ignore[no-any-return]
            except Exception:
                if met is not None and _stands(met):
                    raise met[0]  # noqa: B904 - the exception is its context
                raise
            try:
                given, resume = (yield awaited), steps.send
            except GeneratorExit:
                steps.close()
                raise
            except asyncio.CancelledError as error:
                met = _met(work, error) or met
                given, resume = error, steps.throw
            except BaseException as error:  # noqa: BLE001 - it goes to the work
                given, resume = error, steps.throw
    finally:
        met = given = None  # Their tracebacks have this frame.


def heed_cancellation(call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """As *call*, but what it makes is awaited by :func:`unless_cancelled`."""

    def heeding(*args: P.args, **options: P.kwargs) -> Awaitable[T]:
        return unless_cancelled(call(*args, **options))

    return heeding


if sys.version_info >= (3, 11):

    def _met(work: object, error: asyncio.CancelledError) -> tuple[BaseException, int]:
        """A cancellation, and how many were requested by now."""
        del work
        return error, _requested()

    def _stands(met: tuple[BaseException, int]) -> bool:
        """Whether nobody has taken the cancellation back."""
        return _requested() >= met[1]

    def _requested() -> int:
        import asyncio

        task = asyncio.current_task()
        return 0 if task is None else task.cancelling()

else:

    def _met(work: object, error: asyncio.CancelledError) -> tuple[BaseException, int] | None:
        """A cancellation that ``wait_for`` is about to swallow.

        No task says here how often it was cancelled, so that timeouts look like cancellations; but
        there is one way only in which they get lost.
        """
        import asyncio

        while hasattr(inner := getattr(work, "cr_await", None), "cr_code"):
            work = inner
        if getattr(work, "cr_code", None) is not asyncio.wait_for.__code__:
            return None
        awaited = work.cr_frame.f_locals.get("fut")  # type: ignore[attr-defined]
        return (error, 0) if awaited is not None and awaited.done() else None

    def _stands(met: tuple[BaseException, int]) -> bool:
        """Nobody can take it back."""
        del met
        return True
