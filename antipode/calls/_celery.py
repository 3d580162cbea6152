"""Celery: a task is a call, and its message has the name of it.

A task's own name is in its message's header, or is its id: both are the same for each delivery and
for each retry.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from antipode import ConfigurationError
from antipode.shim import log_once, switchable

from . import _names
from ._current import call, current, has_name
from ._errors import BadName, CallError
from ._replies import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

AppT = TypeVar("AppT")

#: What a published task is sent to, as far as its name goes.
_CALLEE = "celery"
#: The block that a task runs in, with its request.
_BLOCK = "_antipode_call"
_SEND = "send_task"
_lock = threading.Lock()
_apps: WeakSet[Any] = WeakSet()


@switchable
def instrument_celery(app: AppT) -> AppT:
    """Let each task of *app* be a call, and name those that a handler publishes by it. Idempotent.

    A task that is published while a call is handled has a name that follows from it, from the
    task's name and its arguments. Every delivery and every retry of a task runs by the same name:
    the one in its message, else the task's id. Call it in publishers and in workers, in these
    before their processes are forked or in each of them.

    Tasks that run in place (``task_always_eager``, ``apply()``) within a call are a part of it.

    Args:
        app: an application of Celery.

    Returns:
        The same application.

    Raises:
        ConfigurationError: it is none.

    Publishing raises:
        BadName: the caller gave a header that is no name.
        EqualCalls: an equal task is being published by another thread of the handler.
        CallError: the arguments cannot be told by JSON, and the caller gave no name
            (:class:`named`).
    """
    held = _application(app)
    with _lock:
        if held not in _apps:
            _apps.add(held)
            vars(held)[_SEND] = _sending(held.send_task)
            _connect()
    return app


def uninstrument_celery(app: object) -> None:
    """Undo :func:`instrument_celery`. Idempotent; tasks that run now end within their calls."""
    held = _application(app)
    with _lock:
        if held in _apps:
            _apps.discard(held)
            if hasattr(vars(held).get(_SEND), _BLOCK):
                del vars(held)[_SEND]


def _application(app: Any) -> Any:
    """*app* itself, where it is a proxy of one.

    Raises:
        ConfigurationError: it is none.
    """
    from celery import Celery

    if not isinstance(app, Celery):
        msg = f"{app!r} is no application of Celery"
        raise ConfigurationError(msg)
    return getattr(app, "_get_current_object", lambda: app)()


def _connect() -> None:
    from celery import signals

    signals.task_prerun.connect(_before_run, weak=False)
    signals.task_postrun.connect(_after_run, weak=False)


def _sending(original: Callable[..., Any]) -> Callable[..., Any]:
    """``send_task`` of one application, through which everything is published."""

    @functools.wraps(original)
    def send_task(
        name: str,
        args: Any = None,
        kwargs: Any = None,
        *more: Any,
        **options: Any,
    ) -> Any:
        held = current()
        headers = options.get("headers") or {}
        if _is_retry(options):
            return original(name, args, kwargs, *more, **options)
        if (given := headers.get(_names.HEADER)) is not None:
            _names.decode(str(given))
        if held is None or given is not None:
            return original(name, args, kwargs, *more, **options)
        nested = held.begin(_CALLEE, name, _digest(name, args, kwargs))
        options["headers"] = {**headers, _names.HEADER: nested.name}
        published = False
        try:
            result = original(name, args, kwargs, *more, **options)
            published = True
        finally:
            nested.ended(answered=published)
        return result

    setattr(send_task, _BLOCK, True)
    return send_task


def _is_retry(options: dict[str, Any]) -> bool:
    """Whether the task that runs is published again: its name stays. A replacement is another."""
    import celery

    task: Any = celery.current_task
    request = task.request if task else None
    return (
        request is not None
        and request.id is not None
        and options.get("task_id") == request.id
        and (options.get("replaced_task_nesting") or 0) == (request.replaced_task_nesting or 0)
    )


def _digest(name: str, args: object, kwargs: object) -> str:
    """Of the arguments of a task; of none where the caller names it.

    Raises:
        CallError: they cannot be told, and nobody named it.
    """
    try:
        return _names.digest_of(canonical([list(args or ()), dict(kwargs or {})]))  # type: ignore[call-overload]
    except TypeError as error:
        if has_name():
            return _names.digest_of()
        msg = (
            f"the arguments of the task {name} cannot be told by JSON: its name cannot be made of "
            'them. Name it: `with calls.named("..."):`'
        )
        raise CallError(msg) from error


def _before_run(task: Any, **_: object) -> None:
    """A task begins, as a call."""
    request = task.request
    if task.app not in _apps or (request.is_eager and current() is not None):
        return
    block = _block(request)
    block.__enter__()
    vars(request)[_BLOCK] = block


def _after_run(task: Any, **_: object) -> None:
    """It is over."""
    block: call | None = vars(task.request).pop(_BLOCK, None)
    if block is not None:
        block.__exit__()


def _block(request: Any) -> call:
    """In what a task runs: by its id where a stranger's header is no name.

    Celery's signals let nobody refuse a task, and its id is the same for each delivery.
    """
    header = getattr(request, _names.HEADER, None) or (request.headers or {}).get(_names.HEADER)
    if header is not None:
        try:
            return call(_names.decode(str(header)))
        except BadName as error:
            log_once("call_name", _CALLEE, "", "a task runs by its id: %s", error)
    try:
        return call(_names.of_message(request.id))
    except BadName:
        return call(_names.of_message(_names.digest_of(request.id)))
