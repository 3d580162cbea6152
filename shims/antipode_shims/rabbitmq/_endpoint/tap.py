"""The tap: a private queue that shows which publications were routed in this region.

It has a connection and a thread of its own, from the creation of its shim: a publication that
passes before somebody waits for it must be seen too, and heartbeats must go on meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, count, logger
from antipode_shims._messages.receipts import hear
from antipode_shims.rabbitmq._clients.libraries import pika

from .connect import CONNECT_S, close_quietly, connect, describe, parameters_of

if TYPE_CHECKING:
    from antipode_shims._messages.ledger import Ledger

#: A dead connection is noticed after twice this many seconds.
HEARTBEAT_S = 10
#: Messages that the broker holds for a tap that does not keep up; the oldest are dropped over it,
#: which leaves a gap that is reported.
MAX_QUEUED = 100_000
RETRY_LEAST_S = 0.05
RETRY_MOST_S = 2.0
_SLICE_S = 1.0


@dataclass(frozen=True, slots=True)
class Receipts:
    """How this process learns which publications were routed in its region.

    Attributes:
        bindings: the routing keys to bind the tap with. ``#`` sees everything of a topic, fanout
            or headers exchange; of a direct exchange name the keys, and let the publishers
            number by them (``sequence_by="routing_key"``).
        tap: False: no tap. What wrapped consumers of this process receive is all that is known;
            for queues whose messages all come here.
        gap_age_s: seconds after which a publication that may have been missed counts as missed.
    """

    bindings: tuple[str, ...] = ("#",)
    tap: bool = True
    gap_age_s: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: no bindings, one string for several, or an age that is no age.
        """
        bindings: object = self.bindings
        if isinstance(bindings, str) or (self.tap and not self.bindings):
            msg = f"bindings must be a tuple of routing keys, not {self.bindings!r}"
            raise ConfigurationError(msg)
        if not 0 < self.gap_age_s < float("inf"):
            msg = f"gap_age_s must be a positive number of seconds, not {self.gap_age_s!r}"
            raise ConfigurationError(msg)


class Tap:
    """Listens to one exchange until it is closed, and connects again whenever it must.

    Attributes:
        exchange: which one.
        queue: the name of the present tap queue, new with each connection; empty without one.
        cause: why there is none.
    """

    def __init__(
        self,
        connection: Any,
        *,
        exchange: str,
        bindings: tuple[str, ...],
        ledger: Ledger,
        datastore: str,
    ) -> None:
        """Prepare to listen.

        Raises:
            ConfigurationError: *connection* is no broker's, or there is no exchange to listen to.
        """
        if not exchange:
            msg = (
                f"receipts of {datastore!r} need exchange=...: the default exchange takes no "
                "bindings; for a direct queue pass receipts=Receipts(tap=False)"
            )
            raise ConfigurationError(msg)
        name = f"antipode receipts {datastore}"
        self._parameters = parameters_of(connection, name=name, heartbeat_s=HEARTBEAT_S)
        self.exchange = exchange
        self._bindings = bindings
        self._ledger = ledger
        self._datastore = datastore
        self._closed = threading.Event()
        self._tried = threading.Event()
        self._refused: ConfigurationError | None = None
        self._connection: Any = None
        self._thread = threading.Thread(
            target=self._run, name=f"antipode-receipts-{datastore}", daemon=True
        )
        self.queue = ""
        self.cause = "not connected yet"

    def start(self) -> None:
        """Begin to listen; return when the tap is bound, or the broker cannot be reached now.

        Raises:
            ConfigurationError: the broker refuses the user, or the exchange does not exist.
        """
        self._thread.start()
        self._tried.wait(3 * CONNECT_S)
        if self._refused is not None:
            self.close()
            raise self._refused

    @property
    def unseen(self) -> str:
        """Why a publication may not have been seen."""
        return (
            f"the exchange {self.exchange!r} has not routed it here: what went to another one is "
            "not heard"
        )

    @property
    def deaf(self) -> str:
        """Why nothing is heard at present; empty while it listens."""
        if not self._thread.is_alive():
            return "the receipts do not run in this process: create the shim after forking"
        return "" if self.queue else f"the receipts are not connected: {self.cause}"

    def close(self) -> None:
        """Stop listening and end the thread. Idempotent."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            try:
                connection.add_callback_threadsafe(lambda: None)
            except pika().exceptions.AMQPError:
                pass  # It ends on its own.
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2 * CONNECT_S)

    def _run(self) -> None:
        retry_s = RETRY_LEAST_S
        while not self._closed.is_set():
            try:
                self._listen()
                continue
            except ConfigurationError as error:
                self._refused = error
                self.cause = str(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, listening goes on
                self.cause = describe(error)
            retry_s = RETRY_LEAST_S if self.queue else min(retry_s * 2, RETRY_MOST_S)
            self._lost()
            if self._closed.wait(retry_s):
                return

    def _lost(self) -> None:
        """Notify whoever waits that nothing is heard any more."""
        self.queue = ""
        if not self._closed.is_set():
            count("receipts_lost", self._datastore)
            logger.info("receipts of %r: %s", self._datastore, self.cause)
        self._tried.set()
        self._ledger.notify()

    def _listen(self) -> None:
        connection = connect(self._parameters)
        try:
            channel = connection.channel()
            queue = self._bind(channel)
            channel.basic_consume(queue, self._on_message, auto_ack=True)
            self._connection = connection
            self.queue, self.cause = queue, ""
            self._refused = None
            self._ledger.listening()
            self._tried.set()
            while not self._closed.is_set():
                connection.process_data_events(time_limit=_SLICE_S)
                if not channel.is_open:
                    msg = "the broker closed the tap"
                    raise Unreachable(msg)
        finally:
            self._connection = None
            close_quietly(connection)

    def _bind(self, channel: Any) -> str:
        """Declare the private queue and bind it.

        Raises:
            ConfigurationError: there is no such exchange, or it may not be bound to.
        """
        try:
            queue = channel.queue_declare(
                "", exclusive=True, auto_delete=True, arguments={"x-max-length": MAX_QUEUED}
            ).method.queue
            for key in self._bindings:
                channel.queue_bind(queue, self.exchange, key)
        except pika().exceptions.ChannelClosedByBroker as error:
            msg = (
                f"receipts of {self._datastore!r}: the broker refuses a tap on the exchange "
                f"{self.exchange!r} (it must exist, and the user may bind to it): {error}"
            )
            raise ConfigurationError(msg) from error
        return str(queue)

    def _on_message(self, _channel: Any, _method: Any, properties: Any, _body: Any) -> None:
        hear(self._ledger, properties.headers, self._datastore)
