"""The scope of a consumed message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

from antipode import scope
from antipode.shim import Scope, record_handled, record_unlabelled, shims_of
from antipode_shims._messages.consumed import deliver, fulfilled_by
from antipode_shims._messages.headers import (
    BAGGAGE,
    as_text,
    has_lineage,
    received,
)


def message(msg: Any) -> AbstractContextManager[Scope]:
    """Handle one consumed message as a request of its own.

    The scope holds what the message depends on and the message itself, which is visible here
    because it was received; a barrier in it waits for its causes. It never joins a scope that is
    open already. A message without a lineage starts an empty one; an unreadable lineage starts
    one that is incomplete (the datastore, or ``baggage``; ``unreadable``).

    Args:
        msg: pika's ``(method, properties, body)``, its ``BasicProperties``, an aio-pika
            message, or a mapping of headers.

    Raises:
        TypeError: it is none of these, for example what ``basic_get`` returns for an empty queue.
    """
    return message_of(_headers_of(msg))


@contextmanager
def message_of(headers: Mapping[str, Any] | None, subject: str = "") -> Iterator[Scope]:
    """The scope of a message with *headers*, consumed from the datastore *subject*."""
    lineage, write = received(headers, subject)
    for datastore in {subject, *([write.datastore] if write is not None else [])} - {""}:
        for shim in shims_of(datastore):
            fulfilled_by(headers, getattr(shim, "ledger", None), datastore)
    if write is not None:
        # Which region a channel consumes in only its application knows: the one where its
        # receipts listen, for a process reads in one region.
        for shim in shims_of(write.datastore):
            deliver(getattr(shim, "ledger", None), write, lineage)
        lineage = lineage.append(write)
    with scope(lineage) as held:
        if not has_lineage(headers):
            record_unlabelled(subject)
        elif held.notes is not None:  # A dry run's.
            record_handled(subject if write is None else write.datastore)
        yield held


@contextmanager
def handling(headers: Mapping[str, Any] | None, subject: str) -> Iterator[Scope]:
    """The scope of a message, with the baggage of its request: that alone, and all of it.

    Instrumentations of clients make the message's span current, and not all of them its baggage.
    """
    context = baggage.clear()
    text = as_text((headers or {}).get(BAGGAGE))
    if text is not None:
        context = W3CBaggagePropagator().extract({BAGGAGE: text}, context=context)
    token = otel_context.attach(context)
    try:
        with message_of(headers, subject) as held:
            yield held
    finally:
        otel_context.detach(token)


def _headers_of(msg: Any) -> Mapping[str, Any] | None:
    held: Any = msg[1] if isinstance(msg, tuple) and len(msg) == 3 else msg  # noqa: PLR2004 - pika's
    if isinstance(held, Mapping):
        return held
    if held is None or not hasattr(held, "headers"):
        what = "an empty queue's reply" if held is None else f"a {type(held).__name__}"
        text = (
            f"{what} is no message: pass pika's (method, properties, body) or properties, or an "
            "aio-pika message"
        )
        raise TypeError(text)
    headers = held.headers
    return headers if isinstance(headers, Mapping) else None
