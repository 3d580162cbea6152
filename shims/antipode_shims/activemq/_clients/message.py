"""The scope of a consumed message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims._messages.message import message_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from antipode.shim import Scope


def message(frame: Any, *, datastore: str) -> AbstractContextManager[Scope]:
    """Handle one consumed message as a request of its own.

    The scope holds what the message depends on, and the message itself, which is visible here
    because it was received; a barrier in it waits for its causes. It never joins a scope that is
    open already. A message without a lineage starts an empty one; an unreadable lineage starts one
    that is incomplete.

    Args:
        frame: what stomp.py gives to ``on_message``, or a mapping of headers.
        datastore: the name that its publisher and every other service spell alike.

    Raises:
        TypeError: it is no message.
    """
    from antipode_shims.activemq._endpoint import headers_of

    headers = headers_of(frame)
    destination = headers["destination"] if "destination" in headers else ""  # noqa: SIM401 - a call less
    return message_of(headers, datastore, destination)
