"""One message that pika delivered and nobody has settled yet."""

from __future__ import annotations

import contextlib
import contextvars
import copy
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import fulfilling
from antipode_shims.rabbitmq._clients.message import handling

from .envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import Promise
    from antipode.shim import Cancellable


@dataclass(slots=True)
class Delivery:
    """A message as its handler shall see it, and the scope in which it does.

    Attributes:
        method: with the exchange and the routing key to which it was published first.
        properties: as it was published first.
        body: the message's.
        envelope: what comes back after a deferral.
        wait: the barrier that it waits in; None while it is judged or handled.
        due_s: when that barrier is overdue, on the monotonic clock.
    """

    method: Any
    properties: Any
    body: bytes
    envelope: Envelope
    _sent: Any
    wait: Cancellable | None = None
    due_s: float = 0.0
    # Of its own, and kept while it waits: nothing of a message is left in the thread.
    _context: contextvars.Context = field(default_factory=contextvars.copy_context)
    _scope: contextlib.ExitStack | None = None

    @classmethod
    def of(cls, method: Any, properties: Any, body: bytes) -> Delivery:
        """What pika delivered; its objects are not changed."""
        raw = Envelope(
            properties.headers,
            method.exchange,
            method.routing_key,
            properties.expiration,
            properties.message_id,
            at_ms=round(time.time() * 1000),
        )
        envelope = raw.opened()
        method, sent = copy.copy(method), copy.copy(properties)
        method.exchange, method.routing_key = envelope.exchange, envelope.routing_key
        sent.expiration, sent.message_id = envelope.expiration, envelope.message_id
        given = copy.copy(sent)
        given.headers = None if envelope.headers is None else dict(envelope.headers)
        return cls(method, given, body, envelope, sent)

    def again(self, headers: Mapping[str, Any]) -> Any:
        """The properties with which it is published again, whatever its handler did to its own."""
        properties = copy.copy(self._sent)
        properties.headers = headers
        properties.expiration = None  # It would shorten the delay, or remove the dead letter.
        return properties

    def enter(self, datastore: str, act: Callable[[], None]) -> None:
        """Run *act* in the message's own scope, which then ends unless the message waits."""
        self._context.run(self._act, datastore, act)

    def _act(self, datastore: str, act: Callable[[], None]) -> None:
        if self._scope is None:
            self._scope = contextlib.ExitStack()
            came = self.envelope
            to = came.exchange or came.routing_key
            self._scope.enter_context(handling(came.headers, datastore, to))
        try:
            act()
        finally:
            if self.wait is None:
                self._scope.close()

    def fulfil(self, fulfils: Callable[..., Promise | str | None]) -> None:
        """From here on not wait for the promise that the handler will fulfil.

        Raises:
            Exception: what *fulfils* raised.
            LineageDecodeError: what it returned is a text and no token.
        """
        promise = fulfils(self.method, self.properties, self.body)
        if promise is not None and self._scope is not None:
            self._scope.enter_context(fulfilling(promise))

    def leave(self) -> None:
        """Stop waiting, and end the scope. For a message that waits; otherwise nothing."""
        if self.wait is not None and self._scope is not None:
            self.wait.cancel()
            self._context.run(self._scope.close)
