"""One message that aio-pika delivered and nobody has settled yet."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

from .envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Mapping


class AsyncDelivery:
    """A message as its handler shall see it.

    Attributes:
        message: aio-pika's, with all that it had when it was published first.
        envelope: what comes back after a deferral.
    """

    def __init__(self, message: Any) -> None:
        """Take what aio-pika delivered, and put back what a deferral changed."""
        self.message = message
        sent = message.properties
        raw = Envelope(
            message.headers,
            message.exchange or "",
            message.routing_key or "",
            sent.expiration,
            message.message_id,
            at_ms=round(time.time() * 1000),
        )
        self.envelope = envelope = raw.opened()
        sent.message_id, sent.expiration = envelope.message_id, None
        self._sent = sent
        if envelope is not raw:
            message.headers = dict(envelope.headers or {})
            message.exchange, message.routing_key = envelope.exchange, envelope.routing_key
            message.message_id = envelope.message_id
            message.expiration = _seconds(envelope.expiration)

    def again(self, headers: Mapping[str, Any]) -> Any:
        """The properties with which it is published again, whatever its handler did to its own."""
        properties = copy.copy(self._sent)
        properties.headers = headers
        return properties


def _seconds(expiration: str | None) -> float | None:
    """What aio-pika makes of the property; a forged one is none."""
    if expiration is None or not expiration.isdecimal():
        return None
    return int(expiration) / 1000
