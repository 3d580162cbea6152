"""The asyncio twin of the Table 2 API, over aio-pika."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, current, scope
from antipode.shim import OnRead, Pacer, ReadsFrom, Unreachable, register, unless_cancelled
from antipode_shims._messages.headers import outgoing
from antipode_shims._messages.publisher import Publications, SequenceBy
from antipode_shims.rabbitmq._clients.aio_pika import certainly_absent, is_returned, stored_in
from antipode_shims.rabbitmq._clients.channel_state import State
from antipode_shims.rabbitmq._endpoint.connect import CONNECT_S
from antipode_shims.rabbitmq._table2 import BaseRabbitMQShim, Delivery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Self

    from antipode import Promise
    from antipode_shims.rabbitmq._endpoint.tap import Receipts

#: How long a task that is cancelled waits for the answer that is on its way to it, in seconds.
ANSWER_S = 5.0


class RabbitMQAsyncShim(BaseRabbitMQShim):
    """One broker as one event loop sees it: see :func:`shim_async`.

    Publishing and consuming use a connection each, opened when first used.
    """

    def __init__(
        self,
        datastore: str,
        url: str,
        *,
        exchange: str = "",
        queue: str | None = None,
        receipts: Receipts | bool | None = None,
        sequence_by: SequenceBy = "exchange",
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """See :func:`shim_async`; registers nothing."""
        given: object = url
        if not isinstance(given, str):
            msg = f"pass the broker's URL to shim_async(), not a {type(given).__name__}"
            raise ConfigurationError(msg)
        super().__init__(
            datastore,
            url,
            exchange=exchange,
            queue=queue,
            receipts=receipts,
            sequence_by=sequence_by,
            reads_from=reads_from,
            on_read=on_read,
        )
        name = f"antipode {datastore}"
        self._publisher = _AsyncLink(url, f"{name} publisher")
        self._consumer = _AsyncLink(url, f"{name} consumer")
        self._state = State(Publications(datastore, sequence_by))
        self._state_of: Any = None

    async def write(
        self,
        key: str,
        value: bytes | str,
        lineage: Lineage | None = None,
        *,
        mandatory: bool = False,
        fulfils: Promise | None = None,
        **properties: Any,
    ) -> Lineage:
        """Publish with a confirm; as :meth:`RabbitMQShim.write`.

        Args:
            key: the routing key.
            value: the body; text is sent as UTF-8.
            lineage: what the message depends on; default the current lineage.
            mandatory: fail where no queue is bound.
            fulfils: a promise that this message fulfils, for whoever has receipts.
            properties: of ``aio_pika.Message``, such as ``delivery_mode=2``.

        Returns:
            *lineage* with this publication, which enters the current scope too.

        Raises:
            ValueError: *properties* leave the lineage no room in the message's frame.
            aio_pika.exceptions.DeliveryError: the broker refused it, or nobody takes it.
            aio_pika.exceptions.AMQPError: the connection was lost: in doubt, as when cancelled.
            Unreachable: there is no connection, and nothing was sent.
        """
        before = current() if lineage is None else lineage
        channel = await self._publisher.channel()
        if channel is not self._state_of:
            self._state = State(Publications(self.datastore, self._sequence_by))
            self._state_of = channel
        state = self._state
        exchange = channel.default_exchange
        if self.exchange:
            exchange = await channel.get_exchange(self.exchange, ensure=False)
        write = state.publications.next(self.exchange, key)
        known = {"datastore": self.datastore, "destination": self.exchange or key}
        properties["headers"] = outgoing(
            properties.get("headers"), lineage=before, write=write, fulfils=fulfils, **known
        )
        body = value.encode() if isinstance(value, str) else value
        try:
            message = _aio_pika().Message(body, **properties)
            message.headers = stored_in(await channel.get_underlay_channel(), message)
            result = await exchange.publish(message, key, mandatory=mandatory)
        except BaseException as error:
            if certainly_absent(error):
                state.refused(write)
            else:
                state.in_doubt(write)
            raise
        if is_returned(result):
            state.refused(write)
            return before
        state.minted(write)
        return before.append(write)

    async def read(
        self, queue: str | None = None, *, timeout: float = 0.0
    ) -> tuple[bytes | None, Lineage]:
        """Take one message off a queue, at most once; as :meth:`RabbitMQShim.read`.

        Raises:
            aio_pika.exceptions.AMQPError: the connection was lost, or there is no such queue.
            Unreachable: there is no connection.
        """
        message = await self._get(queue, timeout, no_ack=True)
        if message is None:
            return None, Lineage()
        return bytes(message.body), self._read(message.headers)

    @asynccontextmanager
    async def receive(
        self, queue: str | None = None, *, timeout: float = 0.0
    ) -> AsyncIterator[Delivery | None]:
        """Handle one message in a scope of its own, at least once.

        As :meth:`RabbitMQShim.receive`: acknowledged when the block ends, put back when it
        raises or is cancelled.

        Yields:
            The message; None when none came.

        Raises:
            aio_pika.exceptions.AMQPError: the connection was lost; the broker delivers it again.
            Unreachable: there is no connection.
        """
        message = await self._get(queue, timeout, no_ack=False)
        if message is None:
            yield None
            return
        async with message.process(requeue=True, ignore_processed=True):
            with scope(self._take(message.headers)) as held:
                yield Delivery(
                    bytes(message.body),
                    held.lineage,
                    message.routing_key or "",
                    bool(message.redelivered),
                )

    async def _get(self, queue: str | None, timeout_s: float, *, no_ack: bool) -> Any:
        name = self._queue_name(queue)
        started_s = time.monotonic()
        pacer = Pacer()
        while True:
            message = await self._one(name, no_ack=no_ack)
            waited_s = time.monotonic() - started_s
            if message is not None or waited_s >= timeout_s:
                return message
            await asyncio.sleep(min(pacer.pause_s(waited_s), timeout_s - waited_s))

    async def _one(self, name: str, *, no_ack: bool) -> Any:
        """The next message, if there is one; what comes to a task that is cancelled goes back."""
        channel = await unless_cancelled(self._consumer.channel())
        source = await channel.get_queue(name, ensure=False)
        getting = asyncio.ensure_future(source.get(no_ack=no_ack, fail=False, timeout=None))
        try:
            return await asyncio.shield(getting)
        except asyncio.CancelledError:
            # On a channel that others use, too: what nobody acknowledges would stay with it.
            await asyncio.wait({getting}, timeout=ANSWER_S)
            if not getting.done():
                getting.cancel()
            elif not no_ack and getting.exception() is None and getting.result() is not None:
                await getting.result().nack(requeue=True)
            raise

    async def aclose(self) -> None:
        """Unregister, close the connections and end the tap. Idempotent."""
        await self._publisher.close()
        await self._consumer.close()
        self.close()

    async def __aenter__(self) -> Self:
        """Use as an asynchronous context manager: closed at the end."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()


class _AsyncLink:
    """One connection with one channel, opened when it is needed and found dead."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: Any = None
        self._channel: Any = None
        self._lock = asyncio.Lock()

    async def channel(self) -> Any:
        """The channel, in confirm mode.

        Raises:
            Unreachable: there is no connection.
        """
        async with self._lock:
            if self._channel is None or self._channel.is_closed or self._connection.is_closed:
                await self._drop()
                await self._open()
            return self._channel

    async def _open(self) -> None:
        client = _aio_pika()
        properties = {"connection_name": self._name}
        try:
            self._connection = await client.connect(
                self._url, timeout=CONNECT_S, client_properties=properties
            )
            self._connection._antipode_own = True  # noqa: SLF001 - no rule is for it
            self._channel = await self._connection.channel(on_return_raises=True)
        except (client.exceptions.AMQPError, OSError, asyncio.TimeoutError) as error:
            await self._drop()
            msg = f"no broker for {self._name!r}: {error or type(error).__name__}"
            raise Unreachable(msg) from error

    async def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(_aio_pika().exceptions.AMQPError, OSError):  # It is gone already.
                await connection.close()

    async def close(self) -> None:
        """Close the connection. Idempotent."""
        async with self._lock:
            await self._drop()


def _aio_pika() -> Any:
    try:
        return import_module("aio_pika")
    except ModuleNotFoundError as error:
        msg = 'the asyncio API needs aio-pika: pip install "antipode-xcy[rabbitmq]"'
        raise ConfigurationError(msg) from error


def shim_async(
    datastore: str,
    url: str,
    *,
    exchange: str = "",
    queue: str | None = None,
    receipts: Receipts | bool | None = None,
    sequence_by: SequenceBy = "exchange",
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
) -> RabbitMQAsyncShim:
    """The asyncio twin of :func:`shim`: ``write`` and ``read`` are coroutines.

    Args:
        datastore: as of :func:`shim`, like all that follow.
        url: the broker's.
        exchange: where ``write`` publishes.
        queue: where ``read`` and ``receive`` take from.
        receipts: True or :class:`Receipts`; the tap has a thread and a pika connection.
        sequence_by: what readers' receipts listen to.
        reads_from: which broker of the datastore it is.
        on_read: ``merge`` or ``ignore``.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    made = RabbitMQAsyncShim(
        datastore,
        url,
        exchange=exchange,
        queue=queue,
        receipts=receipts,
        sequence_by=sequence_by,
        reads_from=reads_from,
        on_read=on_read,
    )
    register(made)
    return made
