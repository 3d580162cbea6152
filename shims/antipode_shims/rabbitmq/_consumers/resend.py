"""Messages published again with pika, as they are, on a channel of the library's own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from antipode import ConfigurationError
from antipode.shim import UNTRACED
from antipode_shims.rabbitmq._clients.libraries import pika

from .delays import Leases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .delays import Delays

#: A queue may have expired or been deleted just before a publication; not again and again.
TRIES = 3
_UNTOUCHED = otel_context.set_value(UNTRACED, value=True, context=otel_context.Context())


class Resender:
    """Publishes confirmed, and mandatory: when a call returns, a queue of the broker has it.

    Calls what the class defines, not the method of the channel that this shim may have replaced.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._channel: Any = None
        self._leases = Leases()

    def defer(self, delays: Delays, delay_ms: int, properties: Any, body: bytes) -> None:
        """Put a message into a delay queue.

        Raises:
            ConfigurationError: the broker refuses the queue or the message for good.
            AMQPError: as pika; the message may be in the queue or not.
        """
        name = delays.name(delay_ms)
        for _ in range(TRIES):
            if not self._leases.fresh(name):
                at_s = self._leases.monotonic()
                self._declare(name, delays.declared(delay_ms))
                self._leases.begin(name, at_s)
            if self._publish(name, properties, body) and self._leases.sure(name):
                return
            # Not routed, or confirmed so late that the queue may be gone: a second copy is better.
            self._leases.end(name)
        raise vanishing(name)

    def bury(self, name: str, properties: Any, body: bytes) -> None:
        """Put a message into the queue *name*, which is declared durable where there is none.

        Raises:
            ConfigurationError: the broker refuses it for good.
            AMQPError: as pika; the message may be in the queue or not.
        """
        for _ in range(TRIES):
            if self._publish(name, properties, body):
                return
            self._declare(name, None)
        raise vanishing(name)

    def close(self) -> None:
        """Close the channel. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None and channel.is_open:
            with contextlib.suppress(pika().exceptions.AMQPError):
                channel.close()

    def _declare(self, name: str, arguments: dict[str, Any] | None) -> None:
        with _refusals(name):
            self._opened().queue_declare(name, durable=True, arguments=arguments)

    def _publish(self, name: str, properties: Any, body: bytes) -> bool:
        """Whether it was routed."""
        channel = self._opened()
        with _refusals(name), untouched():
            try:
                type(channel).basic_publish(channel, "", name, body, properties, mandatory=True)
            except pika().exceptions.UnroutableError:
                return False
        return True

    def _opened(self) -> Any:
        if self._channel is None or not self._channel.is_open:
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        return self._channel


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Let instrumentations add no headers of this moment: the message keeps those it has.

    OpenTelemetry's makes no span and injects nothing; others find no context to inject.
    """
    token = otel_context.attach(_UNTOUCHED)
    try:
        yield
    finally:
        otel_context.detach(token)


@contextlib.contextmanager
def _refusals(name: str) -> Iterator[None]:
    """Say of what the broker will never take that it is a mistake of the set-up."""
    try:
        yield
    except pika().exceptions.ChannelClosedByBroker as error:
        raise refused(name, error.reply_text) from error


def refused(name: str, said: str) -> ConfigurationError:
    """The error that stands for a broker's refusal."""
    return ConfigurationError(
        f"the broker refuses the queue {name!r} or what was published to it: {said}. The user "
        "needs permission to configure, write and read queues named 'antipode.*' and to write to "
        "the default exchange; to defer messages with the property user_id of others also the tag "
        "'impersonator'"
    )


def vanishing(name: str) -> ConfigurationError:
    """The error for a queue that somebody keeps deleting."""
    return ConfigurationError(f"the queue {name!r} is gone again whenever it was declared")
