"""The lineages in the messages of Celery's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import baggage

from antipode._request.context import scope_in
from antipode._request.lineage_text import readable
from antipode.propagation import MEMBER, members, with_member, without_member
from antipode.shim import Scope

from ._chords import lineages_of_header, publishes_body
from ._task import SERVICE, baggage_of, running_task

if TYPE_CHECKING:
    from ._task import Task

_UNCHANGED = "_antipode_unchanged"


def publish_unchanged(task: Task) -> None:
    """Let what *task* publishes from now on carry what came with it, and nothing else."""
    vars(task.request)[_UNCHANGED] = True


def baggage_to_send(present: object, message_id: object) -> str | None:
    """The baggage header of a message that is published now.

    Celery copies the headers of a task that it retries into the new message: what came with the
    task is replaced by what the task depends on now. Another lineage in them, which the
    application put there, is merged.

    Args:
        present: the header that the message has already.
        message_id: of the message's task.

    Returns:
        The header; empty for none, None for no change.
    """
    header = present if isinstance(present, str) else None
    task = running_task()
    came = None if task is None else baggage_of(task.request)
    if task is not None and vars(task.request).get(_UNCHANGED):
        return came or ""
    held, body = scope_in(), task is not None and publishes_body(task, message_id)
    if held is None or baggage.get_baggage(MEMBER) is None:
        if not body:
            return without_member(header) if header and header == came else None
        held = Scope()  # What this task discarded is not the other tasks' lineage.
    earlier = frozenset(members([came] if came else []))
    others = [text for text in members([header] if header else []) if text not in earlier]
    marks: list[tuple[str, str]] = []
    if body and task is not None:
        texts, marks = lineages_of_header(task)
        others += texts
    return with_member(header, _text(held, others, marks))


def _text(held: Scope, others: list[str], marks: list[tuple[str, str]]) -> str:
    """The lineage of *held*, of texts that are sent along, and *marks*."""
    text = held.text()
    if not marks and all(other == text for other in others):
        return text
    joined = Scope(held.leaving.merge(*(readable(SERVICE, other) for other in others)))
    joined.notes = held.notes
    for mark in marks:
        joined.mark_incomplete(*mark)
    return joined.text()
