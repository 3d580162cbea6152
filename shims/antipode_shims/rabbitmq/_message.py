"""The scope of a consumed message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from antipode._registry import shims_of
from antipode._scope import Scope, scope

from ._headers import received

if TYPE_CHECKING:
    from antipode._lineage import Lineage
    from antipode._write_id import WriteId


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
    with scope(take(headers, subject)) as held:
        yield held


def take(headers: Mapping[str, Any] | None, subject: str = "") -> Lineage:
    """What the consumer of a message depends on, the message itself included; it was received."""
    lineage, write = received(headers, subject)
    if write is None:
        return lineage
    _note_delivery(write, lineage)
    return lineage.append(write)


def _note_delivery(write: WriteId, lineage: Lineage) -> None:
    """Tell the receipts of the datastore, so that the message itself is met here."""
    after = max(
        (
            int(other.version)
            for other in lineage
            if (other.datastore, other.key) == (write.datastore, write.key)
            and isinstance(other.version, int)
        ),
        default=0,
    )
    for shim in shims_of(write.datastore):
        ledger = getattr(shim, "ledger", None)
        if ledger is not None:
            ledger.deliver(write, after=after)


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
