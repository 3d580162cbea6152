"""Chords of Celery: the body depends on every task of the header, and is published by one.

Where Redis keeps the results, which counts the header's tasks itself, each of them leaves its
lineage there beside its result. Other backends have nowhere to leave it that all of them share:
the body's lineage is then marked.
"""

from __future__ import annotations

import contextlib
from typing import Any

from antipode._request.context import scope_in
from antipode._runtime.metrics import count, log_once, logger
from antipode.integrations._method import Method
from antipode.integrations._outgoing import IN_DOUBT

from ._task import SERVICE, Task

_UNLOCK = "celery.chord_unlock"
#: Behind the key of a header's group.
_SUFFIX = ".antipode"
_SIZE_SUFFIX = ".s"
_KEPT_S = 86_400
_methods: list[Method] = []


def instrument() -> None:
    """Let tasks leave their lineages in Redis, where that counts a chord's header."""
    if not _methods:
        with contextlib.suppress(ImportError):
            from celery.backends.redis import RedisBackend

            _methods.append(Method(RedisBackend, "on_chord_part_return", _part_returns))
    for method in _methods:
        method.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`."""
    for method in _methods:
        method.unwrap()


def _part_returns(call: Any, backend: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A task of a header ends: before it is counted, since the last one publishes the body."""
    request = args[0] if args else kwargs["request"]
    held = scope_in()
    if held is not None and request.group:
        try:
            key = _key(backend, request)
            backend.client.hset(key, request.id, held.text())
            backend.client.expire(key, _KEPT_S)
        except Exception:  # noqa: BLE001 - a hook never fails a task; the body is marked then
            logger.warning("the lineage of a chord's task cannot be left", exc_info=True)
    return call(*args, **kwargs)


def _left(backend: Any, request: Any) -> tuple[list[str], Any]:
    """What the tasks of a header left, and the number of these tasks, as Celery notes it."""
    with backend.client.pipeline() as pipe:
        pipe.hvals(_key(backend, request))
        pipe.get(backend.get_key_for_group(request.group, _SIZE_SUFFIX))
        texts, size = pipe.execute()
    return [text.decode("ascii") for text in texts], size


def _key(backend: Any, request: Any) -> Any:
    return backend.get_key_for_group(request.group, _SUFFIX)


def publishes_body(task: Task, message_id: object) -> bool:
    """Whether the message of that id, which *task* publishes, is the body of a chord."""
    if task.name == _UNLOCK:
        return bool(message_id != task.request.id)
    chord = task.request.chord
    return bool(chord) and chord.get("options", {}).get("task_id") == message_id


def lineages_of_header(task: Task) -> tuple[list[str], list[tuple[str, str]]]:
    """The texts of a header's tasks, and the mark that stands for those that are missing."""
    request, backend = task.request, task.backend
    if request.group and any(isinstance(backend, method.owner) for method in _methods):
        try:
            texts, size = _left(backend, request)
        except Exception:  # noqa: BLE001 - as above
            logger.warning("the lineages of a chord's tasks cannot be read", exc_info=True)
            texts, size = [], None
        if size is not None and len(texts) >= int(size):
            return texts, []
    else:
        texts = []
    count("incomplete", SERVICE)
    message = "what the tasks of a chord's header wrote is not known: its body's lineage is marked"
    log_once("chord_incomplete", SERVICE, "", message)
    return texts, [(SERVICE, IN_DOUBT)]
