"""What is used of a Celery task, and of its message's headers."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any, Protocol

from antipode import Lineage
from antipode._lineage.codec import encode
from antipode._runtime.metrics import count, log_once
from antipode.integrations._outgoing import IN_DOUBT
from antipode.propagation import BAGGAGE, MEMBER

#: The service that marks about messages are of.
SERVICE = "celery"


class Task(Protocol):
    """What is used of a Celery task; Celery ships no annotations."""

    name: str
    backend: Any
    request: Any
    acks_late: bool
    run: Any

    def signature_from_request(self, request: Any, **options: Any) -> Any:
        """The task as it was called, to be published again."""
        ...


def running_task() -> Task | None:
    """The task that this thread runs; None outside of tasks."""
    from celery import _state

    task: Task | None = _state.get_current_task()
    return task if task is not None and task.request.id is not None else None


def baggage_of(request: Any) -> str | None:
    """The baggage header that the message of a task had."""
    header = getattr(request, BAGGAGE, None)
    if header is None:
        header = (request.headers or {}).get(BAGGAGE)
    if header is None or isinstance(header, str):
        return header
    return f"{MEMBER}="  # Of no type that is sent: unreadable, and not absent.


def code_of(task: Task) -> CodeType | None:
    """The code of the function that *task* is made of; None where it is no function."""
    function: Any = inspect.unwrap(task.run)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def named(task: object) -> str:
    """What a dry run calls the task of that name."""
    return f"the task {task}"


def unknown_lineage() -> str:
    """The lineage of tasks that left none: a mark, counted and logged."""
    count("incomplete", SERVICE)
    message = "what tasks wrote that others depend on is not known: the others' lineage is marked"
    log_once("tasks_in_doubt", SERVICE, "", message)
    return encode(Lineage(incomplete=[(SERVICE, IN_DOUBT)]))
