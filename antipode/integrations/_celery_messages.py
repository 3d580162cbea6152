"""The lineages in the messages of Celery's tasks."""

from __future__ import annotations

from typing import Any, Protocol

from opentelemetry import baggage

from antipode._headers import BAGGAGE, MEMBER, with_member, without_member
from antipode._propagation import members
from antipode._readable import readable
from antipode._scope import Scope, scope_in

#: The service that marks about messages are of.
SERVICE = "celery"
_UNCHANGED = "_antipode_unchanged"


class Task(Protocol):
    """What is used of a Celery task; Celery ships no annotations."""

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


def publish_unchanged(task: Task) -> None:
    """Let what *task* publishes from now on carry what came with it, and nothing else."""
    vars(task.request)[_UNCHANGED] = True


def baggage_to_send(present: object) -> str | None:
    """The baggage header of a message that is published now.

    Celery copies the headers of a task that it retries into the new message: what came with the
    task is replaced by what the task depends on now. Another lineage in them, which the
    application put there, is merged.

    Args:
        present: the header that the message has already.

    Returns:
        The header; empty for none, None for no change.
    """
    header = present if isinstance(present, str) else None
    task = running_task()
    came = None if task is None else baggage_of(task.request)
    if task is not None and vars(task.request).get(_UNCHANGED):
        return came or ""
    held = scope_in()
    if held is None or baggage.get_baggage(MEMBER) is None:
        return without_member(header) if header and header == came else None
    earlier = frozenset(members([came] if came else []))
    others = [text for text in members([header] if header else []) if text not in earlier]
    return with_member(header, _text(held, others))


def _text(held: Scope, others: list[str]) -> str:
    """The lineage of *held*, and of texts that the application sends along."""
    text = held.text()
    if all(other == text for other in others):
        return text
    joined = Scope(held.lineage.merge(*(readable(SERVICE, other) for other in others)))
    joined.notes = held.notes
    return joined.text()
