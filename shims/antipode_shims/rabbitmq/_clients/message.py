"""The scope of a consumed message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

from antipode_shims._messages.headers import BAGGAGE, as_text
from antipode_shims._messages.message import message_of

if TYPE_CHECKING:
    from antipode.shim import Scope


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
    headers, destination = _headers_of(msg)
    return message_of(headers, destination=destination)


@contextmanager
def handling(headers: Mapping[str, Any] | None, subject: str, destination: str) -> Iterator[Scope]:
    """The scope of a message, with the baggage of its request: that alone, and all of it.

    Instrumentations of clients make the message's span current, and not all of them its baggage.
    """
    context = baggage.clear()
    text = as_text((headers or {}).get(BAGGAGE))
    if text is not None:
        context = W3CBaggagePropagator().extract({BAGGAGE: text}, context=context)
    token = otel_context.attach(context)
    try:
        with message_of(headers, subject, destination) as held:
            yield held
    finally:
        otel_context.detach(token)


def _headers_of(msg: Any) -> tuple[Mapping[str, Any] | None, str]:
    """The headers of a message, and to where it was published: an exchange, or else a queue.

    What is handed over may not say the latter: it is empty then.
    """
    delivered: Any = msg
    held: Any = msg
    if isinstance(msg, tuple) and len(msg) == 3:  # noqa: PLR2004 - pika's
        delivered, held = msg[:2]
    if isinstance(held, Mapping):
        return held, ""
    if held is None or not hasattr(held, "headers"):
        what = "an empty queue's reply" if held is None else f"a {type(held).__name__}"
        text = (
            f"{what} is no message: pass pika's (method, properties, body) or properties, or an "
            "aio-pika message"
        )
        raise TypeError(text)
    try:
        destination = delivered.exchange or delivered.routing_key or ""
    except AttributeError:
        destination = ""
    headers = held.headers
    return (headers if isinstance(headers, Mapping) else None), destination
