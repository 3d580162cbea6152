"""What this shim puts into the headers of a frame, and their limit. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims._messages.headers import BAGGAGE, PROMISE, WRITE, outgoing, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage, WriteId

#: Bytes of all headers of a frame together. ActiveMQ ends the connection over a longer line.
MOST_BYTES = 8_192
#: Ours: whoever is not instrumented sees them.
OURS = frozenset({BAGGAGE, PROMISE, WRITE})
#: Characters that are two in a frame.
_ESCAPED = ("\\", ":", "\n", "\r")
#: What prefixes of destinations receipts can listen to: a queue has one consumer a message.
TOPIC = "/topic/"
#: A header that makes the broker keep a message over its restart.
PERSISTENT = "persistent"


def size_of(headers: Mapping[str, Any]) -> int:
    """The bytes of *headers* in a frame: names and values, and after each a colon or a newline."""
    texts = (str(each) for header in headers.items() for each in header)
    return sum(len(text.encode()) + sum(map(text.count, _ESCAPED)) + 1 for text in texts)


def labelled(
    headers: Mapping[str, Any],
    *,
    datastore: str,
    lineage: Lineage | None = None,
    write: WriteId | None = None,
) -> dict[str, Any] | None:
    """*headers* with what a message depends on, cut to the room that there is.

    Args:
        headers: the application's, with the destination.
        datastore: for counting.
        lineage: what to send; None: the current lineage.
        write: the message's own; None for one that is not recorded.

    Returns:
        None where not even the mark of what was cut has room.
    """
    to = headers["destination"]
    sent = outgoing(headers, datastore=datastore, lineage=lineage, write=write, destination=to)
    sent = sent or {}
    excess = size_of(sent) - MOST_BYTES
    return sent if excess <= 0 else shortened(sent, excess)


def is_topic(destination: str) -> bool:
    """Whether receipts can listen to *destination*."""
    return destination.startswith(TOPIC)


def is_persistent(headers: Mapping[str, Any]) -> bool:
    """Whether the broker keeps a message with *headers* over a crash."""
    return str(headers.get(PERSISTENT, "")).lower() == "true"
