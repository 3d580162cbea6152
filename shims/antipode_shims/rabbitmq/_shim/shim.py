"""The Table 2 API: ``write``, ``read`` and ``wait`` over a broker, and what barriers ask."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from antipode import Lineage, current, scope
from antipode.shim import Endpoint, OnRead, Pacer, ReadsFrom, Shim, Unreachable, register
from antipode_shims._messages.headers import outgoing
from antipode_shims._messages.publisher import Publications, SequenceBy
from antipode_shims.rabbitmq._clients.channel_state import State
from antipode_shims.rabbitmq._clients.libraries import pika
from antipode_shims.rabbitmq._clients.pika_blocking import send, stored_in
from antipode_shims.rabbitmq._endpoint.connect import close_quietly, connect, parameters_of
from antipode_shims.rabbitmq._table2 import BaseRabbitMQShim, Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Promise
    from antipode_shims.rabbitmq._endpoint.tap import Receipts


class UnwaitableShim(Shim):
    """A datastore of which this process publishes or consumes, without receipts."""

    waitable = False
    can_poll = False

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:  # noqa: ARG002
        """Never called: it does not poll."""
        msg = f"{self.datastore!r} has no receipts"
        raise Unreachable(msg)


class RabbitMQShim(BaseRabbitMQShim):
    """One broker as one process sees it: see :func:`shim`. Thread-safe.

    Publishing and consuming use a connection each, opened when first used.
    """

    def __init__(
        self,
        datastore: str,
        connection: Any,
        *,
        exchange: str = "",
        queue: str | None = None,
        receipts: Receipts | bool | None = None,
        sequence_by: SequenceBy = "exchange",
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """See :func:`shim`; registers nothing."""
        super().__init__(
            datastore,
            connection,
            exchange=exchange,
            queue=queue,
            receipts=receipts,
            sequence_by=sequence_by,
            reads_from=reads_from,
            on_read=on_read,
        )
        name = f"antipode {datastore}"
        self._publisher = _Link(parameters_of(connection, name=f"{name} publisher"), confirm=True)
        self._consumer = _Link(parameters_of(connection, name=f"{name} consumer"))
        self._state = State(Publications(datastore, sequence_by))
        self._state_of: Any = None

    def write(
        self,
        key: str,
        value: bytes | str,
        lineage: Lineage | None = None,
        *,
        properties: Any = None,
        mandatory: bool = False,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """Publish with a confirm (Table 2's ``write``).

        Args:
            key: the routing key.
            value: the body; text is sent as UTF-8.
            lineage: what the message depends on; default the current lineage.
            properties: pika ``BasicProperties``, not modified.
            mandatory: fail where no queue is bound.
            fulfils: a promise that this message fulfils, for whoever has receipts.

        Returns:
            *lineage* with this publication, which enters the current scope too.

        Raises:
            ValueError: *properties* leave the lineage no room in the message's frame.
            pika.exceptions.NackError: a queue refused it; another may have it: it is in doubt.
            pika.exceptions.UnroutableError: ``mandatory``, and nobody takes it.
            pika.exceptions.AMQPError: the connection was lost: it is in doubt.
            Unreachable: there is no connection, and nothing was sent.
        """
        before = current() if lineage is None else lineage
        with self._publisher.channel() as channel:
            if channel is not self._state_of:
                self._state = State(Publications(self.datastore, self._sequence_by))
                self._state_of = channel
            write = self._state.publications.next(self.exchange, key)
            headers = outgoing(
                None if properties is None else properties.headers,
                datastore=self.datastore,
                lineage=before,
                write=write,
                fulfils=fulfils,
                destination=self.exchange or key,
            )
            inner = channel._impl  # noqa: SLF001 - the only way to the size of frames
            try:
                sent = stored_in(inner, properties, headers or {})
            except ValueError:
                self._state.refused(write)
                raise
            send(
                self._state,
                write,
                lambda: channel.basic_publish(self.exchange, key, value, sent, mandatory),
            )
        return before.append(write)

    def read(
        self, queue: str | None = None, *, timeout: float = 0.0
    ) -> tuple[bytes | None, Lineage]:
        """Take one message off a queue (Table 2's ``read``); at most once.

        It is acknowledged before it is returned: to keep it until it is handled, use
        :meth:`receive`. Unless ``on_read="ignore"``, its lineage is merged into the current
        scope.

        Args:
            queue: default the shim's.
            timeout: seconds to wait for a message, 0: only take what is there.

        Returns:
            The body and the lineage, the message itself included; None and an empty lineage
            when no message came.

        Raises:
            pika.exceptions.AMQPError: the connection was lost, or there is no such queue.
            Unreachable: there is no connection.
        """
        got = self._get(queue, timeout, auto_ack=True)
        if got is None:
            return None, Lineage()
        _, _, properties, body = got
        return bytes(body), self._read(properties.headers)

    @contextmanager
    def receive(
        self, queue: str | None = None, *, timeout: float = 0.0
    ) -> Iterator[Delivery | None]:
        """Handle one message in a scope of its own; at least once.

        Acknowledged when the block ends, put back into the queue when it raises: a barrier that
        times out in it requeues the message.

        Args:
            queue: default the shim's.
            timeout: seconds to wait for a message, 0: only take what is there.

        Yields:
            The message; None when none came.

        Raises:
            pika.exceptions.AMQPError: the connection was lost; the broker delivers it again.
            Unreachable: there is no connection.
        """
        got = self._get(queue, timeout, auto_ack=False)
        if got is None:
            yield None
            return
        channel, method, properties, body = got
        try:
            with scope(self._take(properties.headers)) as held:
                yield Delivery(bytes(body), held.lineage, method.routing_key, method.redelivered)
        except BaseException:
            # Where the connection is lost as well, the broker puts it back on its own.
            with self._consumer.lock, suppress(pika().exceptions.AMQPError):
                channel.basic_nack(method.delivery_tag, requeue=True)
            raise
        with self._consumer.lock:
            channel.basic_ack(method.delivery_tag)

    def _get(self, queue: str | None, timeout_s: float, *, auto_ack: bool) -> Any:
        name = self._queue_name(queue)
        started_s = time.monotonic()
        pacer = Pacer()
        while True:
            with self._consumer.channel() as channel:
                method, properties, body = channel.basic_get(name, auto_ack=auto_ack)
            if method is not None:
                return channel, method, properties, body
            waited_s = time.monotonic() - started_s
            if waited_s >= timeout_s:
                return None
            time.sleep(min(pacer.pause_s(waited_s), timeout_s - waited_s))

    def close(self) -> None:
        """Unregister, close the connections and end the tap. Idempotent."""
        super().close()
        self._publisher.close()
        self._consumer.close()


class _Link:
    """One connection with one channel, opened when it is needed and found dead."""

    def __init__(self, parameters: Any, *, confirm: bool = False) -> None:
        self._parameters = parameters
        self._confirm = confirm
        self._connection: Any = None
        self._channel: Any = None
        self.lock = threading.RLock()

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """The channel, for this thread alone.

        Raises:
            Unreachable: there is no connection.
        """
        with self.lock:
            if not self._alive():
                self._open()
            yield self._channel

    def _alive(self) -> bool:
        """Whether the connection still stands; reads what came in while nobody read."""
        if self._channel is None or not self._channel.is_open:
            return False
        try:
            self._connection.process_data_events(0)
        except (pika().exceptions.AMQPError, OSError):
            return False
        return bool(self._channel.is_open)

    def _open(self) -> None:
        self.close()
        self._connection = connect(self._parameters)
        self._channel = self._connection.channel()
        if self._confirm:
            self._channel.confirm_delivery()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self.lock:
            connection, self._connection, self._channel = self._connection, None, None
            if connection is not None:
                close_quietly(connection)


def shim(
    datastore: str,
    connection: Any,
    *,
    exchange: str = "",
    queue: str | None = None,
    receipts: Receipts | bool | None = None,
    sequence_by: SequenceBy = "exchange",
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
) -> RabbitMQShim:
    """Make a datastore of a broker, and register it.

    Without receipts its publications are carried and reported by barriers, and never waited
    for. With them a publication is visible when it was routed at the broker that *connection*
    names, in the region where this process reads.

    Args:
        datastore: the name that every service spells alike.
        connection: the broker's URL, or pika connection parameters.
        exchange: where ``write`` publishes, and to which the tap is bound; default: the default
            exchange, whose routing keys are queues.
        queue: where ``read`` and ``receive`` take from, unless they name one.
        receipts: True or :class:`Receipts`: listen from now on.
        sequence_by: what readers' receipts listen to: whole exchanges, or single routing keys.
        reads_from: which broker of the datastore it is.
        on_read: ``merge`` what was read into the current scope, or ``ignore`` it.

    Raises:
        ConfigurationError: an argument is wrong, the broker refuses the user, or the exchange of
            the receipts does not exist. A broker that cannot be reached now is no error.
    """
    made = RabbitMQShim(
        datastore,
        connection,
        exchange=exchange,
        queue=queue,
        receipts=receipts,
        sequence_by=sequence_by,
        reads_from=reads_from,
        on_read=on_read,
    )
    register(made)
    return made
