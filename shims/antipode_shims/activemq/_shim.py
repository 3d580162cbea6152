"""The Table 2 API: ``write``, ``read`` and ``wait`` over a broker, and what barriers ask."""

from __future__ import annotations

import queue as queues
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, current, scope
from antipode.shim import (
    Endpoint,
    OnRead,
    ReadsFrom,
    Shim,
    count,
    mark_incomplete,
    record_read,
    record_write,
    recorded,
    register,
)
from antipode_shims._messages.consumed import taken
from antipode_shims._messages.headers import fulfil
from antipode_shims._messages.ledger import Ledger
from antipode_shims._messages.publisher import Publications
from antipode_shims._messages.receipts import ReceiptsEndpoint

from ._clients.stomp import Broker, Mailbox, Refused, close_quietly, connect, stomp
from ._endpoint import Receipts, Tap, unreachable
from ._format import PERSISTENT, is_topic, labelled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Promise, WriteId


@dataclass(frozen=True, slots=True)
class Delivery:
    """One consumed message.

    Attributes:
        value: its body.
        lineage: what it depends on, itself included.
        key: the one that it was written with; empty for a message of others.
        redelivered: whether it was delivered before and not acknowledged.
    """

    value: bytes
    lineage: Lineage
    key: str
    redelivered: bool


class UnwaitableShim(Shim):
    """A datastore of which this process publishes or consumes, without receipts."""

    waitable = False
    can_poll = False

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:  # noqa: ARG002
        """Never called: it does not poll."""
        raise unreachable(self.datastore)


class ActiveMQShim(Shim):
    """One broker as one process sees it: see :func:`shim`. Thread-safe.

    Attributes:
        destination: where it publishes.
        queue: what it reads from.
        ledger: the receipts; None where the datastore has none.
    """

    def __init__(
        self,
        datastore: str,
        url: str,
        *,
        destination: str = "",
        queue: str = "",
        receipts: Receipts | bool | None = None,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """See :func:`shim`; registers nothing."""
        super().__init__(datastore, reads_from=reads_from)
        if on_read not in ("merge", "ignore"):
            msg = f"on_read must be 'merge' or 'ignore', not {on_read!r}"
            raise ConfigurationError(msg)
        stomp()
        self.destination, self.queue = destination, queue
        self.ledger: Ledger | None = None
        self._merges = on_read == "merge"
        self._broker = Broker.parse(url)
        self._publisher = _Link(self._broker)
        self._consumer = _Link(self._broker)
        self._publications = Publications(datastore)
        self._opened: Any = None
        self._tap: Tap | None = None
        self.waitable = self.can_poll = self.promises = bool(receipts)
        if receipts:
            wanted = receipts if isinstance(receipts, Receipts) else Receipts()
            self.ledger = Ledger(gap_age_s=wanted.gap_age_s)
            topic = destination
            self._tap = Tap(self._broker, topic=topic, ledger=self.ledger, datastore=datastore)
            self._tap.start()

    @recorded("write")
    def write(
        self,
        key: str,
        value: bytes | str,
        lineage: Lineage | None = None,
        *,
        persistent: bool = True,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """Publish with a receipt (Table 2's ``write``).

        Args:
            key: is sent as ``correlation-id``.
            value: the body; text is sent as UTF-8.
            lineage: what the message depends on; default the current lineage.
            persistent: whether the broker keeps it over a crash. Without, a receipt proves that
                the broker had it.
            fulfils: a promise that this message fulfils, for whoever has receipts.

        Returns:
            *lineage*, with this publication where it went to a topic; it enters the scope too.

        Raises:
            ValueError: the headers have no room for the lineage.
            Unreachable: there is no connection, or the broker refused it, and nothing was sent; or
                no receipt came, and the scope is marked ``in_doubt``.
        """
        before = current() if lineage is None else lineage
        with self._publisher.lock:
            connection, box = self._publisher.opened()
            write = self._next(connection)
            receipt = uuid.uuid4().hex
            plain = {
                "destination": self._required("destination"),
                "correlation-id": key,
                PERSISTENT: str(persistent).lower(),
                "receipt": receipt,
            }
            given = plain if fulfils is None else fulfil(plain, fulfils)
            sent = labelled(given, datastore=self.datastore, lineage=before, write=write)
            if sent is None:
                self._void(write)
                msg = "the headers of the message leave its lineage no room"
                raise ValueError(msg)
            destination = sent.pop("destination")
            body = value.encode() if isinstance(value, str) else bytes(value)
            try:
                connection.send(destination, body, headers=sent)
                box.confirmed(receipt)
            except BaseException as error:
                self._publisher.close()
                self._void(write)
                if not isinstance(error, Refused):
                    mark_incomplete(self.datastore, "in_doubt")
                raise
        if write is None:
            count("unheard_publish", self.datastore)
            return before
        record_write(write)
        return before.append(write)

    def _next(self, connection: Any) -> WriteId | None:
        """The name of the next publication; None to a queue, for which nobody can wait."""
        if not is_topic(self.destination):
            return None
        if connection is not self._opened:
            self._publications, self._opened = Publications(self.datastore), connection
        return self._publications.next(self.destination, "")

    def _void(self, write: WriteId | None) -> None:
        if write is not None:
            self._publications.void(write)

    @recorded("read")
    def read(self, *, timeout: float = 0.0) -> tuple[bytes | None, Lineage]:
        """Take one message off the queue (Table 2's ``read``); at most once.

        It is acknowledged before it is returned: to keep it until it is handled, use
        :meth:`receive`. Unless ``on_read="ignore"``, its lineage is merged into the scope.

        Args:
            timeout: seconds to wait for a message.

        Returns:
            The body and the lineage, the message itself included; None and an empty lineage when
            no message came.

        Raises:
            Unreachable: there is no connection.
        """
        with self._consumer.lock:
            frame = self._next_frame(timeout)
            if frame is None:
                return None, Lineage()
            self._consumer.ack(frame)
        lineage = self._take(frame)
        if self._merges:
            record_read(lineage)
        return _body(frame), lineage

    @contextmanager
    def receive(self, *, timeout: float = 0.0) -> Iterator[Delivery | None]:
        """Handle one message in a scope of its own; at least once.

        Acknowledged when the block ends, delivered again when it raises: a barrier that times out
        in it leaves the message to the queue.

        Args:
            timeout: seconds to wait for a message.

        Yields:
            The message; None when none came.

        Raises:
            Unreachable: there is no connection.
        """
        with self._consumer.lock:
            frame = self._next_frame(timeout)
            if frame is None:
                yield None
                return
            try:
                with scope(self._take(frame)) as held:
                    redelivered = frame.headers.get("redelivered") == "true"
                    key = frame.headers.get("correlation-id", "")
                    yield Delivery(_body(frame), held.lineage, key, redelivered)
            except BaseException:
                self._consumer.close()  # The broker delivers it again; NACK would bury it.
                raise
            self._consumer.ack(frame)

    def _next_frame(self, timeout_s: float) -> Any:
        queue = self._required("queue")
        end_s = time.monotonic() + timeout_s
        while True:
            _, box = self._consumer.opened(queue)
            try:
                left_s = max(end_s - time.monotonic(), _LEAST_S)
                frame = box.messages.get(timeout=left_s)
            except queues.Empty:
                return None
            if frame is not None:
                return frame
            self._consumer.close()  # The connection was lost.

    def _take(self, frame: Any) -> Lineage:
        lineage, write = taken(frame.headers, self.datastore, [self.ledger])
        return lineage if write is None else lineage.append(write)

    def _required(self, option: str) -> str:
        found: str = getattr(self, option)
        if not found:
            msg = f"{self.datastore!r} needs {option}=..., such as /queue/NAME"
            raise ConfigurationError(msg)
        return found

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:  # noqa: ARG002
        """What barriers poll; opens nothing."""
        if self.ledger is None:
            raise unreachable(self.datastore)
        return ReceiptsEndpoint(self.ledger, self._tap)

    def close(self) -> None:
        """Unregister, close the connections and end the tap. Idempotent."""
        super().close()
        self._publisher.close()
        self._consumer.close()
        if self._tap is not None:
            self._tap.close()


#: The least that a read waits: what the broker has is on its way to a subscription.
_LEAST_S = 0.05


class _Link:
    """One connection, opened when it is needed and found dead."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._connection: Any = None
        self._box = Mailbox()
        self.lock = threading.RLock()

    def opened(self, queue: str = "") -> tuple[Any, Mailbox]:
        """The connection, and what comes over it; with a subscription to *queue*, if any.

        Raises:
            Unreachable: there is none.
        """
        if self._connection is None or not self._connection.is_connected():
            self.close()
            self._box = Mailbox()
            self._connection = connect(self._broker, self._box)
            if queue:
                self._connection.subscribe(
                    queue, id="1", ack="client-individual", headers={"activemq.prefetchSize": "1"}
                )
        return self._connection, self._box

    def ack(self, frame: Any) -> None:
        """Acknowledge a message; the broker delivers it again where that is lost."""
        receipt = uuid.uuid4().hex
        self._connection.ack(frame.headers["ack"], receipt=receipt)
        self._box.confirmed(receipt)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                close_quietly(connection)


def _body(frame: Any) -> bytes:
    body = frame.body
    return body.encode() if isinstance(body, str) else bytes(body)


def shim(
    datastore: str,
    url: str,
    *,
    destination: str = "",
    queue: str = "",
    receipts: Receipts | bool | None = None,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
) -> ActiveMQShim:
    """Make a datastore of a broker, and register it.

    Without receipts its publications are carried and reported by barriers, and never waited for.
    With them a publication is visible when it reached the topic at the broker of *url*, in the
    region where this process reads.

    Args:
        datastore: the name that every service spells alike.
        url: of the broker, ``stomp://user:password@host:61613``.
        destination: where ``write`` publishes, and to which receipts listen: a topic, such as
            ``/topic/VirtualTopic.news``; or a queue, without receipts.
        queue: what ``read`` and ``receive`` take from, such as
            ``/queue/Consumer.app.VirtualTopic.news``.
        receipts: True or :class:`Receipts`: listen from now on.
        reads_from: which broker of the datastore it is.
        on_read: ``merge`` what was read into the current scope, or ``ignore`` it.

    Raises:
        ConfigurationError: an argument is wrong, such as receipts of a queue, or stomp.py is
            missing. A broker that cannot be reached now is no error.
    """
    made = ActiveMQShim(
        datastore,
        url,
        destination=destination,
        queue=queue,
        receipts=receipts,
        reads_from=reads_from,
        on_read=on_read,
    )
    register(made)
    return made
