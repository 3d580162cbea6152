"""A consumer for pika's BlockingChannel that waits for what its messages depend on."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, UnmetError, barrier_callback, check
from antipode.shim import count, logger
from antipode_shims.rabbitmq._clients.libraries import kind, pika

from .consumer_options import ConsumerOptions, hopeless
from .delivery import Delivery
from .envelope import why, why_failed
from .resend import Resender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from antipode import BarrierResult, Promise
    from antipode.shim import Names

    from .consumer_options import OnError, OnMessageUnmet, Rejection

#: How long the connection is listened to at once: signals of other threads wake it.
_SLICE_S = 1.0
#: How late a barrier may report how it ended. It always does; no message shall depend on that.
OVERDUE_S = 5.0


def consume(
    channel: Any,
    queue: str,
    handler: Callable[[Any, Any, Any, bytes], object],
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
    fulfils: Callable[[Any, Any, bytes], Promise | str | None] | None = None,
) -> RabbitMQConsumer:
    """Handle the messages of a queue once what they depend on is visible here.

    Each message is judged in a scope of its own. What is not visible yet goes back to the
    broker for a while, so that no worker waits and what is queued after it gets its turn: possibly
    the message whose handling makes it visible. This reorders messages. At least once: a message
    is acknowledged when its handler has returned, or when the broker has confirmed its copy.

    Args:
        channel: pika's ``BlockingChannel``; its connection must be served by ``run()`` alone.
        queue: what to consume.
        handler: called with pika's ``(channel, method, properties, body)``, of the message as it
            was published first; it leaves acknowledging to the consumer. The message is deferred
            or given up where it raises what a barrier raises.
        datastore: the name that every service gives to this exchange or broker.
        on_unmet: ``defer`` checks once; ``wait`` lets up to *prefetch* - 1 messages wait side by
            side, in the background, and then defers those that are still unmet.
        timeout: seconds that a message may wait; with ``wait`` alone, which needs it.
        max_attempts: how often a message is judged until it is given up.
        delay_s: the shortest and the longest delay, in seconds. It doubles with each attempt, and
            is at least what the store estimates.
        dead_letter: the queue of messages that are given up, which is declared durable where there
            is none; None: ``antipode.dead.`` and the name of *queue*. ``BY_REJECTION``: they are
            rejected, for the dead-letter exchange of *queue*; without one they are lost.
        on_error: what becomes of a message whose handler raised: ``raise`` puts it back and ends
            ``run()`` with the error; ``requeue`` puts it back at once, ``defer`` after a delay and
            within *max_attempts*; ``dead_letter`` gives it up.
        only: as in :func:`antipode.barrier`.
        exclude: as in :func:`antipode.barrier`.
        prefetch: how many messages the broker sends ahead of their acknowledgement.
        delay_arguments: of the delay queues, such as ``{"x-queue-type": "quorum"}``.
        fulfils: says of ``(method, properties, body)`` which promise its handler will fulfil; None
            for none. The message does not wait for that one, which would be for itself.

    Returns:
        The consumer, not started yet: use it as a context manager, or call its ``run``.

    Raises:
        ConfigurationError: an argument is not one of its values.
    """
    how = on_unmet, timeout, max_attempts, delay_s, dead_letter, on_error
    what = only, exclude, prefetch, delay_arguments or {}, fulfils
    return RabbitMQConsumer(channel, handler, ConsumerOptions(queue, datastore, *how, *what))


class RabbitMQConsumer:
    """Handles the messages of one queue, each in a scope of its own, once it may.

    Made by :func:`consume`. Belongs to the thread of its connection, except :meth:`stop`.
    """

    def __init__(
        self, channel: Any, handler: Callable[..., object], options: ConsumerOptions
    ) -> None:
        """Consume nothing yet.

        Raises:
            ConfigurationError: *channel* is no BlockingChannel of pika.
        """
        if kind(channel) != "blocking":
            msg = "consume() takes pika's BlockingChannel; for aio-pika there is consume_async()"
            raise ConfigurationError(msg)
        self._channel = channel
        self._handler = handler
        self._options = options
        self._resender = Resender(channel.connection)
        self._unsettled: dict[int, Delivery | None] = {}
        self._tag: str | None = None
        self._stopping = self._closed = False
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin to consume; :meth:`run` does. Idempotent."""
        if self._tag is None and not self._closed:
            channel = self._channel
            channel.basic_qos(prefetch_count=self._options.prefetch)
            channel.add_on_cancel_callback(self._on_cancelled)
            self._tag = channel.basic_consume(self._options.queue, self._on_message)

    def run(self, *, timeout: float | None = None) -> None:
        """Handle messages until :meth:`stop`.

        Ends the consumer, unless it returns because of *timeout*: messages that wait or were
        prefetched go back to the queue.

        Args:
            timeout: seconds after which to return, for callers that go on later; None: never.

        Raises:
            Exception: what the handler raised, under ``on_error="raise"``.
            ConfigurationError: messages cannot be deferred here, or barriers are set up wrongly.
            AMQPError: the connection or the channel is gone, or the broker ended the consumer.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout
        in_time = False
        try:
            self.start()
            while not self._ended:
                left_s = _SLICE_S if deadline_s is None else deadline_s - time.monotonic()
                if in_time := left_s <= 0:
                    return
                self._channel.connection.process_data_events(min(left_s, _SLICE_S))
                self._end_overdue()
        finally:
            if not in_time:
                self.close()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Make :meth:`run` return after the message in hand.

        For handlers, other threads and signal handlers.
        """
        self._stopping = True
        with contextlib.suppress(pika().exceptions.AMQPError):
            self._channel.connection.add_callback_threadsafe(lambda: None)

    def close(self) -> None:
        """Stop consuming, and give back what is not settled. Idempotent."""
        self._closed = True
        tag, self._tag = self._tag, None
        unsettled, self._unsettled = self._unsettled, {}
        for delivery in unsettled.values():
            if delivery is not None:
                delivery.leave()
        if not self._channel.is_open:
            return
        with contextlib.suppress(pika().exceptions.AMQPError):  # Then the broker gives them back.
            if tag is not None:
                self._channel.basic_cancel(tag)
            for number in unsettled:
                self._channel.basic_nack(number, requeue=True)
            self._resender.close()

    def __enter__(self) -> Self:
        """Begin to consume; closed at the end."""
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    @property
    def _ended(self) -> bool:
        return self._stopping or self._closed or self._failure is not None

    def _on_cancelled(self, frame: Any) -> None:
        """The broker ended a consumer of the channel: its queue was deleted, or its node left."""
        if frame.method.consumer_tag == self._tag:
            self._tag = None
            self._failure = pika().exceptions.ConsumerCancelled()

    def _on_message(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        number = method.delivery_tag
        self._unsettled[number] = None
        if self._ended:  # Given back at the end: the broker would only send it here again.
            return
        delivery = Delivery.of(method, properties, body)
        self._unsettled[number] = delivery
        if delivery.envelope.expired:
            self._expire(delivery)
            return
        self._step(delivery, lambda: self._begin(delivery))

    def _step(self, delivery: Delivery, act: Callable[[], None]) -> None:
        """Run a step of a message in its context; what fails ends :meth:`run`, not pika's loop."""
        try:
            delivery.enter(self._options.datastore, act)
        except Exception as error:  # noqa: BLE001 - raised again by run()
            self._failure = error

    def _begin(self, delivery: Delivery) -> None:
        if self._options.fulfils is not None:
            try:
                delivery.fulfil(self._options.fulfils)
            except Exception as error:
                self._failed(delivery, error)
                if self._options.on_error == "raise":
                    raise
                return
        self._look(delivery)

    def _look(self, delivery: Delivery) -> None:
        options = self._options
        result = check(only=options.only, exclude=options.exclude)
        if result.ok:
            self._handle(delivery)
        elif hopeless(result) or self._waiting >= options.waiting:
            self._unmet(delivery, result)
        else:
            delivery.due_s = time.monotonic() + (options.timeout or 0.0) + OVERDUE_S
            delivery.wait = barrier_callback(
                partial(self._waited, delivery),
                timeout=options.timeout or 0.0,  # It is given where messages may wait.
                only=options.only,
                exclude=options.exclude,
            )

    @property
    def _waiting(self) -> int:
        return sum(d is not None and d.wait is not None for d in self._unsettled.values())

    def _waited(self, delivery: Delivery, result: BarrierResult) -> None:
        """The barrier of *delivery* ended, in a thread of its own."""
        with contextlib.suppress(pika().exceptions.AMQPError):  # Closed: it comes again.
            self._channel.connection.add_callback_threadsafe(
                partial(self._resume, delivery, result)
            )

    def _resume(self, delivery: Delivery, result: BarrierResult) -> None:
        if self._ended or delivery.method.delivery_tag not in self._unsettled:
            return
        delivery.wait = None
        self._step(delivery, lambda: self._after(delivery, result))

    def _end_overdue(self) -> None:
        """Judge messages again whose barriers do not report how they ended."""
        for delivery in tuple(self._unsettled.values()):
            wait = delivery.wait if delivery is not None else None
            if delivery is None or wait is None or time.monotonic() < delivery.due_s:
                continue
            wait.cancel()
            delivery.wait = None
            self._step(delivery, partial(self._look_again, delivery))

    def _look_again(self, delivery: Delivery) -> None:
        self._after(delivery, check(only=self._options.only, exclude=self._options.exclude))

    def _after(self, delivery: Delivery, result: BarrierResult) -> None:
        if result.ok:
            self._handle(delivery)
        else:
            self._unmet(delivery, result)

    def _handle(self, delivery: Delivery) -> None:
        try:
            self._handler(self._channel, delivery.method, delivery.properties, delivery.body)
        except UnmetError as error:  # A barrier of the handler's own.
            self._unmet(delivery, error.result)
        except Exception as error:
            self._failed(delivery, error)
            if self._options.on_error == "raise":
                raise
        else:
            self._channel.basic_ack(self._settled(delivery))

    def _unmet(self, delivery: Delivery, result: BarrierResult) -> None:
        attempts = delivery.envelope.attempts
        if hopeless(result) or self._options.spent(attempts):
            self._bury(delivery, why(result))
        else:
            self._defer(delivery, result.eta_s)

    def _failed(self, delivery: Delivery, error: Exception) -> None:
        on_error = self._options.on_error
        if on_error in ("raise", "requeue"):
            self._channel.basic_nack(self._settled(delivery), requeue=True)
        elif on_error == "defer" and not self._options.spent(delivery.envelope.attempts):
            self._defer(delivery, None)
        else:
            self._bury(delivery, why_failed(error))
        if on_error != "raise":
            logger.warning("a handler of %r failed", self._options.queue, exc_info=error)

    def _defer(self, delivery: Delivery, eta_s: float | None) -> None:
        """Put it into a delay queue, and only then take it from the work queue."""
        options, envelope = self._options, delivery.envelope
        delay_ms = options.delays.pick_ms(eta_s, envelope.attempts)
        properties = delivery.again(envelope.deferred())
        self._resender.defer(options.delays, delay_ms, properties, delivery.body)
        count("message_deferred", options.datastore)
        self._channel.basic_ack(self._settled(delivery))

    def _bury(self, delivery: Delivery, reasons: Mapping[str, Any]) -> None:
        """Make it a dead letter, and only then take it from the work queue."""
        options = self._options
        logger.warning("a message of %r is given up: %s", options.queue, reasons["message"])
        if options.grave is not None:
            properties = delivery.again(delivery.envelope.dead(reasons, options.queue))
            self._resender.bury(options.grave, properties, delivery.body)
            self._channel.basic_ack(self._settled(delivery))
        else:
            self._channel.basic_nack(self._settled(delivery), requeue=False)
        count("message_dead_lettered", options.datastore)

    def _expire(self, delivery: Delivery) -> None:
        """Let it go as the broker lets go of what expires: to the queue's dead-letter exchange."""
        self._channel.basic_nack(self._settled(delivery), requeue=False)
        count("message_expired", self._options.datastore)

    def _settled(self, delivery: Delivery) -> int:
        """Its delivery tag, which is about to be acknowledged one way or the other."""
        number: int = delivery.method.delivery_tag
        self._unsettled.pop(number, None)
        return number
