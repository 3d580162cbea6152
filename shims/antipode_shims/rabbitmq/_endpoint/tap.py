"""The tap: a private queue that shows which publications were routed in this region.

It has a connection and a thread of its own, from the creation of its shim: a publication that
passes before somebody waits for it must be seen too, and heartbeats must go on meanwhile.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError, Status
from antipode.shim import Endpoint, Observation, Unreachable, Wake, count, log_once, logger
from antipode_shims.rabbitmq._clients.libraries import pika
from antipode_shims.rabbitmq._format import own_promise, own_write

from .connect import CONNECT_S, close_quietly, connect, describe, parameters_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode import Promise, WriteId
    from antipode_shims.rabbitmq._position.ledger import Ledger

#: A dead connection is noticed after twice this many seconds.
HEARTBEAT_S = 10
#: Messages that the broker holds for a tap that does not keep up; the oldest are dropped over it,
#: which leaves a gap that is reported.
MAX_QUEUED = 100_000
RETRY_LEAST_S = 0.05
RETRY_MOST_S = 2.0
_SLICE_S = 1.0
_NOT_ROUTED = "the exchange {!r} has not routed it here: what went to another one is not heard"
_NOT_RECEIVED = "no consumer of this process has received it"
_Item = TypeVar("_Item")


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
        self._see_promise(properties.headers)
        try:
            write = own_write(properties.headers)
        except ValueError as error:
            count("unreadable", self._datastore)
            log_once(
                "unreadable",
                self._datastore,
                "tap",
                "a publication in %r names itself unreadably (%s)",
                self._datastore,
                error,
            )
            return
        if write is not None and write.datastore == self._datastore:
            self._ledger.see(write)

    def _see_promise(self, headers: Any) -> None:
        try:
            promise = own_promise(headers)
        except ValueError as error:
            count("unreadable", self._datastore)
            message = "a publication in %r says unreadably which promise it fulfils (%s)"
            log_once("unreadable", self._datastore, "promise", message, self._datastore, error)
            return
        if promise is not None and promise.datastore == self._datastore:
            self._ledger.fulfil(promise)


class ReceiptsEndpoint(Endpoint):
    """Judges by what was seen: polling costs no round trip, and what is seen wakes."""

    # ``pinned`` stays False: a publication that this process received is visible though those
    # before it may not be.

    def __init__(self, ledger: Ledger, tap: Tap | None) -> None:
        """Judge by *ledger*, which *tap* fills; without one consumers do."""
        self._ledger = ledger
        self._tap = tap
        self._changes = -1

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:  # noqa: ARG002
        """Judge by what was seen; takes no time."""
        self._changes = self._ledger.changes
        judged = self._explained(self._ledger.judge(writes))
        return Observation(
            self._server,
            {write: status for write, (status, _) in judged.items()},
            causes={write: cause for write, (_, cause) in judged.items() if cause},
        )

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:  # noqa: ARG002
        """Search for what was seen to fulfil *promises*; takes no time."""
        self._changes = self._ledger.changes
        judged = self._explained(self._ledger.judge_promises(promises))
        return Observation(
            self._server,
            {},
            promises={promise: status for promise, (status, _) in judged.items()},
            promise_causes={promise: cause for promise, (_, cause) in judged.items() if cause},
        )

    def _explained(
        self, judged: Mapping[_Item, tuple[Status, str]]
    ) -> dict[_Item, tuple[Status, str]]:
        """*judged*, with the reasons that this endpoint knows: deaf, or listening elsewhere."""
        deaf, unseen = "", _NOT_RECEIVED
        if self._tap is not None:
            deaf, unseen = self._tap.deaf, _NOT_ROUTED.format(self._tap.exchange)

        def explained(status: Status, cause: str) -> tuple[Status, str]:
            if status is Status.VISIBLE:
                return status, ""
            if deaf:
                return Status.UNREACHABLE, deaf
            return status, unseen if status is Status.NOT_YET else cause

        return {item: explained(*found) for item, found in judged.items()}

    @property
    def _server(self) -> str:
        return "consumers" if self._tap is None else self._tap.queue

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait until something is seen, *wake*, or *timeout_s* seconds have passed."""
        self._ledger.subscribe(wake)
        try:
            if self._ledger.changes == self._changes:
                wake.wait(timeout_s)
        finally:
            self._ledger.unsubscribe(wake)

    def close(self) -> None:
        """Nothing to release: the tap belongs to the shim."""
