"""Tasks that go back to their queue until what they depend on is visible."""

from __future__ import annotations

import functools
import inspect
import random
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from antipode import BarrierTimeout, ConfigurationError, barrier, check
from antipode._lineage.unmet_errors import error_of
from antipode._runtime.metrics import count
from antipode.shim import config, names_of

from ._messages import publish_unchanged
from ._task import SERVICE, Task, running_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import BarrierResult
    from antipode.shim import Names

#: How often a message was put back, in its headers.
ATTEMPTS_HEADER = "antipode-deferred"
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def when_visible(
    *,
    only: Names | None = None,
    exclude: Names = (),
    max_attempts: int = 20,
    delay_s: tuple[float, float] = (0.1, 30.0),
) -> Callable[[Callable[_Args, _Result]], Callable[_Args, _Result]]:
    """Run a task when what it depends on is visible, without waiting in the worker.

    Below ``@app.task``, with ``bind=True`` or without::

        @app.task(acks_late=True, acks_on_failure_or_timeout=False)
        @when_visible(only="posts")
        def notify(post_id): ...

    The task checks once, as :func:`antipode.check`. What is not visible yet is published again,
    with the lineage that it came with, to run after the time that the store estimates; what can
    never become visible fails at once. Its own retries are not used up. A worker's slot is free
    meanwhile, so that what is waited for can be written by a later task. Run eagerly or called
    as a function it waits in place, as :func:`antipode.barrier`, for at most ``max_timeout``.

    Args:
        only: check these datastores alone.
        exclude: do not check these datastores.
        max_attempts: after that many checks the task fails.
        delay_s: the least and the most seconds between two checks. Where the store cannot
            estimate, the delay doubles from the least on.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    names = None if only is None else names_of(only)
    options = _Options(names, names_of(exclude), max_attempts, delay_s)

    def decorate(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
        @functools.wraps(function)
        def call(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
            options.require_visible()
            return function(*args, **kwargs)

        # Celery checks the arguments of a call against this one, and not those of what it wraps.
        call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return call

    return decorate


class _Options:
    """The arguments of :func:`when_visible`."""

    def __init__(
        self,
        only: frozenset[str] | None,
        exclude: frozenset[str],
        max_attempts: int,
        delay_s: tuple[float, float],
    ) -> None:
        least, most = delay_s
        if not 0 < least <= most:
            raise ConfigurationError(f"delay_s must be (least, most) over 0 s, not {delay_s!r}")
        if max_attempts < 1:
            raise ConfigurationError(f"max_attempts must be 1 or more, not {max_attempts!r}")
        self._only, self._exclude = only, exclude
        self._max_attempts = max_attempts
        self._least_s, self._most_s = least, most

    def require_visible(self) -> None:
        """Return when everything is visible; otherwise the task ends here.

        Raises:
            Retry: Celery's; the task comes again.
            UnmetError: it will not.
        """
        task = running_task()
        if task is None or task.request.called_directly or task.request.is_eager:
            timeout = config().max_timeout
            barrier(timeout=timeout, only=self._only, exclude=self._exclude)
            return
        result = check(only=self._only, exclude=self._exclude)
        error = error_of(result)
        if error is None:
            return
        attempts = _attempts(task.request) + 1
        if not isinstance(error, BarrierTimeout):
            raise error
        if attempts >= self._max_attempts:
            count("message_dead_lettered", SERVICE)
            text = f"given up after {attempts} attempts: {error}"
            raise BarrierTimeout(text, result)
        self._defer(task, error, attempts)

    def _defer(self, task: Task, error: BarrierTimeout, attempts: int) -> None:
        """Publish *task* again, to run later."""
        from celery.exceptions import Reject, Retry

        request = task.request
        delay_s = self._delay_s(error.result, attempts)
        headers = {**(request.headers or {}), ATTEMPTS_HEADER: attempts}
        again = task.signature_from_request(
            request, headers=headers, countdown=delay_s, retries=request.retries
        )
        publish_unchanged(task)
        try:
            again.apply_async()
        except Exception as failed:
            if task.acks_late:  # Its message is still the broker's to keep.
                raise Reject(failed, requeue=True) from failed
            raise
        count("message_deferred", SERVICE)
        raise Retry(exc=error, when=delay_s, sig=again)

    def _delay_s(self, result: BarrierResult, attempts: int) -> float:
        doubled = self._least_s * 2.0 ** min(attempts - 1, 60)
        wanted = doubled if result.eta_s is None else result.eta_s
        # Spread, so that what was deferred together does not come back together.
        return min(max(wanted, self._least_s), self._most_s) * random.uniform(1.0, 1.25)  # noqa: S311 - no secret


def _attempts(request: Any) -> int:
    """How often the message of a task was put back."""
    held = getattr(request, ATTEMPTS_HEADER, None)
    return held if isinstance(held, int) and held >= 0 else 0
