"""What is used of a Celery task, and of its message's headers."""

from __future__ import annotations

from typing import Any, Protocol

from antipode.propagation import BAGGAGE, MEMBER

#: The service that marks about messages are of.
SERVICE = "celery"


class Task(Protocol):
    """What is used of a Celery task; Celery ships no annotations."""

    name: str
    backend: Any
    request: Any
    acks_late: bool

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
