"""The consumer for aio-pika: the asyncio twin of what consumes with pika."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, UnmetError, barrier_async, check_async, fulfilling
from antipode.shim import count, logger, unless_cancelled
from antipode_shims.rabbitmq._clients.libraries import kind
from antipode_shims.rabbitmq._clients.message import handling

from .async_delivery import AsyncDelivery
from .async_resend import ANSWER_S, AsyncResender, gone
from .consumer_options import ConsumerOptions, hopeless
from .envelope import why, why_failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from antipode import BarrierResult, Promise
    from antipode.shim import Names

    from .consumer_options import OnError, OnMessageUnmet, Rejection


def consume_async(
    channel: Any,
    queue: Any,
    handler: Callable[[Any], Awaitable[object]],
    *,
    datastore: str,
    on_unmet: OnMessageUnmet = "defer",
    timeout: float | None = None,
    max_attempts: int = 20,
    delay_s: tuple[float, float] = (0.1, 30.0),
    dead_letter: str | Rejection | None = None,
    on_error: OnError = "raise",
    only: Names | None = None,
    exclude: Names = (),
    prefetch: int = 10,
    delay_arguments: Mapping[str, Any] | None = None,
    fulfils: Callable[[Any], Promise | str | None] | None = None,
) -> RabbitMQAsyncConsumer:
    """The asyncio twin of :func:`consume`, over aio-pika.

    Up to *prefetch* messages are handled at once, each in a task of its own.

    Args:
        channel: of aio-pika. On a robust one it goes on after a reconnection.
        queue: its name, or an aio-pika queue of *channel*.
        handler: a coroutine function that gets aio-pika's incoming message, as it was published
            first, and leaves acknowledging it to the consumer.
        datastore: as in :func:`consume`, and so are all others.
        on_unmet: as in :func:`consume`.
        timeout: as in :func:`consume`.
        max_attempts: as in :func:`consume`.
        delay_s: as in :func:`consume`.
        dead_letter: as in :func:`consume`.
        on_error: as in :func:`consume`.
        only: as in :func:`consume`.
        exclude: as in :func:`consume`.
        prefetch: as in :func:`consume`.
        delay_arguments: as in :func:`consume`.
        fulfils: as in :func:`consume`, of aio-pika's message.

    Raises:
        ConfigurationError: as :func:`consume`.
    """
    name = queue if isinstance(queue, str) else getattr(queue, "name", "")
    found = None if isinstance(queue, str) else queue
    how = on_unmet, timeout, max_attempts, delay_s, dead_letter, on_error
    what = only, exclude, prefetch, delay_arguments or {}, fulfils
    return RabbitMQAsyncConsumer(
        channel, found, handler, ConsumerOptions(name, datastore, *how, *what)
    )


class RabbitMQAsyncConsumer:
    """Handles the messages of one queue, each in a scope of its own, once it may.

    Made by :func:`consume_async`; belongs to one event loop. Use it as an asynchronous context
    manager, or call :meth:`run`.
    """

    def __init__(
        self,
        channel: Any,
        queue: Any,
        handler: Callable[[Any], Awaitable[object]],
        options: ConsumerOptions,
    ) -> None:
        """Consume nothing yet.

        Raises:
            ConfigurationError: *channel* is no channel of aio-pika.
        """
        if kind(channel) != "aio":
            msg = "consume_async() takes a channel of aio-pika; for pika there is consume()"
            raise ConfigurationError(msg)
        self._channel = channel
        self._queue = queue
        self._handler = handler
        self._options = options
        self._resender = AsyncResender(channel)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waits: set[asyncio.Task[BarrierResult]] = set()
        self._tag: str | None = None
        self._over = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._failure: BaseException | None = None

    async def start(self) -> None:
        """Begin to consume. Idempotent.

        Raises:
            AMQPError: as aio-pika, for example where there is no such queue.
        """
        if self._tag is not None or self._over.is_set():
            return
        await self._channel.set_qos(prefetch_count=self._options.prefetch)
        if self._queue is None:
            self._queue = await self._channel.get_queue(self._options.queue)
        # Known before the broker answers: a start that is cancelled meanwhile may be consuming.
        self._tag = f"antipode.{uuid.uuid4().hex}"
        await self._queue.consume(self._on_message, consumer_tag=self._tag)
        if not hasattr(self._channel, "reopen_callbacks"):  # A robust one comes back on its own.
            self._channel.close_callbacks.add(self._on_closed)
            underlay = await self._channel.get_underlay_channel()
            if hasattr(underlay, "on_consumer_cancel_callbacks"):  # Since aiormq 6.9.
                underlay.on_consumer_cancel_callbacks.add(self._on_cancelled)

    async def run(self) -> None:
        """Handle messages until :meth:`stop`, or until this is cancelled; ends the consumer.

        Raises:
            Exception: what the handler raised, under ``on_error="raise"``.
            ConfigurationError: messages cannot be deferred here, or barriers are set up wrongly.
            AMQPError: the channel, which is not a robust one, is gone.
        """
        try:
            await unless_cancelled(self.start())
            await self._over.wait()
        finally:
            await self.aclose()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Make :meth:`run` return once the messages in hand are handled."""
        self._over.set()

    async def aclose(self) -> None:
        """Stop consuming, finish what is being handled, give back what waits. Idempotent."""
        self._over.set()
        tag, self._tag = self._tag, None
        if tag is not None:
            self._channel.close_callbacks.discard(self._on_closed)
            with suppress(*gone()):
                await self._queue.cancel(tag, timeout=ANSWER_S)
        self._cancelled.set()
        for wait in tuple(self._waits):
            wait.cancel()
        current = asyncio.current_task()
        if others := {task for task in self._tasks if task is not current}:
            await asyncio.wait(others)
        await self._resender.close()

    async def __aenter__(self) -> Self:
        """Begin to consume; closed at the end, and where this does not come so far."""
        try:
            await unless_cancelled(self.start())
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.aclose()

    def _fail(self, error: BaseException | None) -> None:
        """End :meth:`run` with *error*."""
        if self._failure is None and not self._over.is_set():
            self._failure = error
        self._over.set()

    def _on_closed(self, _channel: Any, error: BaseException | None = None) -> None:
        from aio_pika.exceptions import ChannelInvalidStateError

        self._fail(error or ChannelInvalidStateError("the channel of the consumer was closed"))

    def _on_cancelled(self, frame: Any) -> None:
        from aio_pika.exceptions import ChannelClosed

        if frame.consumer_tag == self._tag:
            self._fail(ChannelClosed(None, f"the broker ended the consumer of {self._queue}"))

    async def _on_message(self, message: Any) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - aio-pika makes one for each delivery
        self._tasks.add(task)
        try:
            if self._over.is_set():
                await self._cancelled.wait()  # Before that it would only be sent here again.
                await self._give_back(message)
                return
            delivery = AsyncDelivery(message)
            if delivery.envelope.expired:
                await self._expire(message)
                return
            with ExitStack() as scope:
                came = delivery.envelope
                to = came.exchange or came.routing_key
                scope.enter_context(handling(came.headers, self._options.datastore, to))
                await self._begin(delivery, scope)
        except Exception as error:  # noqa: BLE001 - raised again by run()
            if isinstance(error, gone()):  # Then the broker gives it back on its own.
                logger.debug("a message of %r was not settled: %r", self._options.queue, error)
            else:
                self._fail(error)
            await self._give_back(message)
        finally:
            self._tasks.discard(task)

    async def _give_back(self, message: Any) -> None:
        if not message.processed:
            with suppress(*gone()):
                await message.nack(requeue=True)

    async def _expire(self, message: Any) -> None:
        """Let it go as the broker lets go of what expires: to the queue's dead-letter exchange."""
        await message.reject(requeue=False)
        count("message_expired", self._options.datastore)

    async def _begin(self, delivery: AsyncDelivery, scope: ExitStack) -> None:
        fulfils = self._options.fulfils
        if fulfils is not None:
            try:
                promise = fulfils(delivery.message)
                if promise is not None:
                    scope.enter_context(fulfilling(promise))
            except Exception as error:  # noqa: BLE001 - on_error says what becomes of it
                await self._failed(delivery, error)
                return
        await self._look(delivery)

    async def _look(self, delivery: AsyncDelivery) -> None:
        options = self._options
        result = await check_async(only=options.only, exclude=options.exclude)
        if not result.ok and not hopeless(result) and len(self._waits) < options.waiting:
            waited = await self._wait()
            if waited is None:
                await self._give_back(delivery.message)
                return
            result = waited
        if result.ok:
            await self._handle(delivery)
        else:
            await self._unmet(delivery, result)

    async def _wait(self) -> BarrierResult | None:
        """How the barrier ended; None where the consumer ended first."""
        options = self._options
        wait = asyncio.ensure_future(
            barrier_async(
                timeout=options.timeout or 0.0,  # It is given where messages may wait.
                only=options.only,
                exclude=options.exclude,
                on_unmet="return",
            )
        )
        self._waits.add(wait)
        wait.add_done_callback(self._waits.discard)
        try:
            await asyncio.wait({wait})
        except asyncio.CancelledError:  # The connection is gone.
            wait.cancel()
            raise
        return None if wait.cancelled() else wait.result()

    async def _handle(self, delivery: AsyncDelivery) -> None:
        try:
            await self._handler(delivery.message)
        except UnmetError as error:  # A barrier of the handler's own.
            await self._unmet(delivery, error.result)
        except Exception as error:  # noqa: BLE001 - on_error says what becomes of it
            await self._failed(delivery, error)
        else:
            await delivery.message.ack()

    async def _unmet(self, delivery: AsyncDelivery, result: BarrierResult) -> None:
        if hopeless(result) or self._options.spent(delivery.envelope.attempts):
            await self._bury(delivery, why(result))
        else:
            await self._defer(delivery, result.eta_s)

    async def _failed(self, delivery: AsyncDelivery, error: Exception) -> None:
        on_error = self._options.on_error
        if on_error == "raise":
            self._fail(error)
            await self._give_back(delivery.message)
            return
        logger.warning("a handler of %r failed", self._options.queue, exc_info=error)
        if on_error == "requeue":
            await self._give_back(delivery.message)
        elif on_error == "defer" and not self._options.spent(delivery.envelope.attempts):
            await self._defer(delivery, None)
        else:
            await self._bury(delivery, why_failed(error))

    async def _defer(self, delivery: AsyncDelivery, eta_s: float | None) -> None:
        """Put it into a delay queue, and only then take it from the work queue."""
        options, envelope = self._options, delivery.envelope
        delay_ms = options.delays.pick_ms(eta_s, envelope.attempts)
        properties = delivery.again(envelope.deferred())
        await self._resender.defer(options.delays, delay_ms, properties, delivery.message.body)
        count("message_deferred", options.datastore)
        await delivery.message.ack()

    async def _bury(self, delivery: AsyncDelivery, reasons: Mapping[str, Any]) -> None:
        """Make it a dead letter, and only then take it from the work queue."""
        options = self._options
        logger.warning("a message of %r is given up: %s", options.queue, reasons["message"])
        if options.grave is not None:
            properties = delivery.again(delivery.envelope.dead(reasons, options.queue))
            await self._resender.bury(options.grave, properties, delivery.message.body)
            await delivery.message.ack()
        else:
            await delivery.message.reject(requeue=False)
        count("message_dead_lettered", options.datastore)
