"""Messages published again with aiormq, as they are, on a channel of the library's own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from .delays import Leases
from .resend import TRIES, refused, untouched, vanishing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .delays import Delays

#: Longest wait for the broker's answer: it may stand still while the connection lives.
ANSWER_S = 30.0


class AsyncResender:
    """The asyncio twin of :class:`antipode_shims.rabbitmq._consumers.resend.Resender`.

    Goes below aio-pika, whose publications instrumentations replace. One publication at a time:
    aiormq distinguishes returned messages by their message ids, which may be alike.
    """

    def __init__(self, channel: Any) -> None:
        self._of = channel
        self._channel: Any = None
        self._leases = Leases()
        self._lock = asyncio.Lock()

    async def defer(self, delays: Delays, delay_ms: int, properties: Any, body: bytes) -> None:
        """Put a message into a delay queue.

        Raises:
            ConfigurationError: the broker refuses the queue or the message for good.
            AMQPError, TimeoutError: as aiormq; the message may be in the queue or not.
        """
        name = delays.name(delay_ms)
        async with self._lock:
            for _ in range(TRIES):
                if not self._leases.fresh(name):
                    at_s = self._leases.monotonic()
                    await self._declare(name, delays.declared(delay_ms))
                    self._leases.begin(name, at_s)
                if await self._publish(name, properties, body) and self._leases.sure(name):
                    return
                self._leases.end(name)
        raise vanishing(name)

    async def bury(self, name: str, properties: Any, body: bytes) -> None:
        """Put a message into the queue *name*, which is declared durable where there is none.

        Raises:
            ConfigurationError: the broker refuses it for good.
            AMQPError, TimeoutError: as aiormq; the message may be in the queue or not.
        """
        async with self._lock:
            for _ in range(TRIES):
                if await self._publish(name, properties, body):
                    return
                await self._declare(name, None)
        raise vanishing(name)

    async def close(self) -> None:
        """Close the channel. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None and not channel.is_closed:
            with suppress(*gone()):
                await channel.close()

    async def _declare(self, name: str, arguments: dict[str, Any] | None) -> None:
        async with _refusals(name):
            channel = await self._opened()
            await channel.queue_declare(name, durable=True, arguments=arguments, timeout=ANSWER_S)

    async def _publish(self, name: str, properties: Any, body: bytes) -> bool:
        """Whether it was routed."""
        import aiormq

        channel = await self._opened()
        async with _refusals(name):
            try:
                with untouched():
                    await channel.basic_publish(
                        body,
                        routing_key=name,
                        properties=properties,
                        mandatory=True,
                        timeout=ANSWER_S,
                    )
            except aiormq.exceptions.PublishError:
                return False
        return True

    async def _opened(self) -> Any:
        if self._channel is None or self._channel.is_closed:
            connection = (await self._of.get_underlay_channel()).connection
            if connection.is_closed:
                msg = "the connection of the consumer is closed"
                raise ConnectionError(msg)
            self._channel = await connection.channel(
                publisher_confirms=True, on_return_raises=True, timeout=ANSWER_S
            )
        return self._channel


def gone() -> tuple[type[BaseException], ...]:
    """What says that a connection or a channel is gone, or that the broker does not answer."""
    import aiormq

    return (
        aiormq.exceptions.AMQPConnectionError,
        aiormq.exceptions.AMQPChannelError,
        aiormq.exceptions.ChannelInvalidStateError,
        ConnectionError,
        asyncio.TimeoutError,
    )


@asynccontextmanager
async def _refusals(name: str) -> AsyncIterator[None]:
    """Say of what the broker will never take that it is a mistake of the set-up."""
    import aiormq

    try:
        yield
    except (
        aiormq.exceptions.ChannelAccessRefused,
        aiormq.exceptions.ChannelPreconditionFailed,
    ) as error:
        raise refused(name, str(error)) from error
