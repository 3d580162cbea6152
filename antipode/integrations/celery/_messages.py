"""The lineages in the messages of Celery's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import baggage

from antipode._request.context import scope_in
from antipode._request.lineage_text import readable
from antipode.propagation import MEMBER, members, with_member, without_member
from antipode.shim import Scope

from ._chords import lineages_of_header
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
    held, of_header = scope_in(), lineages_of_header(message_id)
    if held is None or baggage.get_baggage(MEMBER) is None:
        if of_header is None:
            return without_member(header) if header and header == came else None
        held = Scope()  # What this task discarded is not the other tasks' lineage.
    earlier = frozenset(members([came] if came else []))
    others = [text for text in members([header] if header else []) if text not in earlier]
    return with_member(header, joined(held, [*others, *(of_header or ())]).text())


def joined(held: Scope, others: list[str]) -> Scope:
    """A scope with the lineage of *held* and those of *others*; *held* where that is the same."""
    text = held.text()
    if all(other == text for other in others):
        return held
    found = Scope(held.leaving.merge(*(readable(SERVICE, other) for other in others)))
    found.notes, found.recorded = held.notes, held.recorded
    return found
