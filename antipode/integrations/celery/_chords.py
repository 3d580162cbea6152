"""Chords of Celery: the body depends on every task of the header, and one of them publishes it.

Where Redis keeps the results, which counts the header's tasks itself, each of them leaves its
lineage there with its result. Other backends have nowhere to leave it that all of them share:
what is published at the end of a header is then marked.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import baggage

from antipode._request.context import scope_in
from antipode._request.scope import NOTHING
from antipode._runtime.metrics import logger
from antipode.integrations._method import Method
from antipode.propagation import MEMBER

from ._task import running_task, unknown_lineage

if TYPE_CHECKING:
    from collections.abc import Callable

_UNLOCK = "celery.chord_unlock"
_RETURN = "on_chord_part_return"
#: What stands after the key of a header's group: for the lineages, and for Celery's own numbers.
_LINEAGES = ".antipode"
_SIZE = ".s"
_ADDED = ".t"
_KEPT_S = 86_400
#: Of each class of backends that counts the tasks of headers, the method that does.
_methods: dict[type, Method] = {}


class _Header:
    """The header of a chord while one of its tasks ends.

    If it is the last one, it publishes what follows: one task or several, or error callbacks.
    """

    def __init__(self, backend: Any, request: Any) -> None:
        self._backend = backend
        self._request = request
        self._texts: list[str] | None = None

    def lineages(self) -> list[str]:
        """The lineages of all tasks; read for the first message alone."""
        if self._texts is None:
            self._texts = _read(self._backend, self._request)
        return self._texts


_ending: ContextVar[_Header | None] = ContextVar("antipode-celery-header", default=None)


def instrument() -> None:
    """Follow the backends again that were followed before :func:`uninstrument`."""
    for method in _methods.values():
        method.wrap()


def uninstrument() -> None:
    """Undo :func:`follow`."""
    for method in _methods.values():
        method.unwrap()


def follow(backend: object) -> None:
    """Let *backend*, if it counts the tasks of headers, have their lineages. Idempotent."""
    owner = next((kind for kind in type(backend).__mro__ if _RETURN in vars(kind)), None)
    if owner is not None and owner not in _methods:
        _methods[owner] = Method(owner, _RETURN, _end_of_task)
        _methods[owner].wrap()


def _end_of_task(
    call: Callable[..., Any], backend: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A task of a header ends: it leaves its lineage before it is counted."""
    request = args[0] if args else kwargs["request"]
    if not request.group or running_task() is None:
        return call(*args, **kwargs)
    if _in_redis(backend):
        try:
            _leave(backend, request)
        except Exception:  # noqa: BLE001 - a hook never fails a task; what follows is marked then
            logger.warning("the lineage of a chord's task cannot be left", exc_info=True)
    token = _ending.set(_Header(backend, request))
    try:
        return call(*args, **kwargs)
    finally:
        _ending.reset(token)


def lineages_of_header(message_id: object = None) -> list[str] | None:
    """What the message of that id depends on that is published now, or what is called now.

    Returns:
        The lineages of all tasks of the header that ends now; None where none does.
    """
    header = _ending.get()
    if header is not None:
        return header.lineages()
    task = running_task()
    if task is not None and task.name == _UNLOCK and message_id != task.request.id:
        return [unknown_lineage()]
    return None


def _in_redis(backend: object) -> bool:
    module = sys.modules.get("celery.backends.redis")
    return module is not None and isinstance(backend, module.RedisBackend)


def _leave(backend: Any, request: Any) -> None:
    """Leave what the task would send; nothing where it discarded its lineage."""
    held = scope_in()
    text = NOTHING if held is None or baggage.get_baggage(MEMBER) is None else held.text()
    key = backend.get_key_for_group(request.group, _LINEAGES)
    with backend.client.pipeline() as pipe:
        pipe.hset(key, request.id, text)
        pipe.expire(key, _KEPT_S)
        pipe.execute()


def _read(backend: Any, request: Any) -> list[str]:
    """What the tasks left of the header to which the task of *request* belongs."""
    texts: list[str] = []
    if _in_redis(backend):
        lineages, size, added = (
            backend.get_key_for_group(request.group, suffix)
            for suffix in (_LINEAGES, _SIZE, _ADDED)
        )
        try:
            with backend.client.pipeline() as pipe:
                pipe.hvals(lineages)
                pipe.get(size)
                pipe.get(added)
                left, tasks, more = pipe.execute()
            texts = [each if isinstance(each, str) else each.decode("ascii") for each in left]
            if tasks is not None and len(texts) >= int(tasks) + int(more or 0):
                return texts
        except Exception:  # noqa: BLE001 - as above
            logger.warning("the lineages of a chord's tasks cannot be read", exc_info=True)
    return [*texts, unknown_lineage()]
