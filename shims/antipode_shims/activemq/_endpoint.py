"""The tap: a subscription of the library's own that shows what reached this region's broker."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, count, logger
from antipode_shims._messages.receipts import hear

from ._clients.stomp import CONNECT_S, Mailbox, close_quietly, connect
from ._format import is_topic

if TYPE_CHECKING:
    from antipode_shims._messages.ledger import Ledger

    from ._clients.stomp import Broker

RETRY_LEAST_S, RETRY_MOST_S = 0.05, 2.0


@dataclass(frozen=True, slots=True)
class Receipts:
    """How this process learns which publications reached the broker of its region.

    Attributes:
        gap_age_s: seconds after which a publication that may have been missed counts as missed.
    """

    gap_age_s: float = 5.0

    def __post_init__(self) -> None:
        """Refuse an age that is none.

        Raises:
            ConfigurationError: it is not positive, or endless.
        """
        if not 0 < self.gap_age_s < float("inf"):
            msg = f"gap_age_s must be a positive number of seconds, not {self.gap_age_s!r}"
            raise ConfigurationError(msg)


class Tap:
    """Listens to one topic until it is closed, and connects again whenever it must.

    Attributes:
        queue: the name of the present subscription, new with each connection; empty without one.
        cause: why there is none.
    """

    def __init__(self, broker: Broker, *, topic: str, ledger: Ledger, datastore: str) -> None:
        """Prepare to listen.

        Raises:
            ConfigurationError: *topic* is none: a queue has one consumer for each message.
        """
        if not is_topic(topic):
            msg = (
                f"receipts of {datastore!r} need a topic, not {topic!r}: publish to "
                "/topic/VirtualTopic.NAME, and consume from /queue/Consumer.APP.VirtualTopic.NAME"
            )
            raise ConfigurationError(msg)
        self._broker, self._topic = broker, topic
        self._ledger, self._datastore = ledger, datastore
        self._closed = threading.Event()
        self._tried = threading.Event()
        self._box: Mailbox | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"antipode-receipts-{datastore}", daemon=True
        )
        self.queue = ""
        self.cause = "not connected yet"

    @property
    def deaf(self) -> str:
        """Why nothing is heard at present; empty while it listens."""
        if not self._thread.is_alive():
            return "the receipts do not run in this process: create the shim after forking"
        return "" if self.queue else f"the receipts are not connected: {self.cause}"

    @property
    def unseen(self) -> str:
        """Why a publication may not have been seen."""
        return f"it has not reached {self._topic!r} here: what went elsewhere is not heard"

    def start(self) -> None:
        """Begin to listen; return when that is so, or the broker cannot be reached now."""
        self._thread.start()
        self._tried.wait(2 * CONNECT_S)

    def close(self) -> None:
        """Stop listening and end the thread. Idempotent."""
        self._closed.set()
        if (box := self._box) is not None:
            box.messages.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2 * CONNECT_S)

    def _run(self) -> None:
        retry_s = RETRY_LEAST_S
        while not self._closed.is_set():
            try:
                self._listen()
                retry_s = RETRY_LEAST_S
            except Exception as error:  # noqa: BLE001 - whatever it is, listening goes on
                self.cause = str(error)
                retry_s = min(retry_s * 2, RETRY_MOST_S)
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
        box = self._box = Mailbox()
        connection = connect(self._broker, box)
        try:
            name = uuid.uuid4().hex
            connection.subscribe(self._topic, id=name, ack="auto", receipt=name)
            box.confirmed(name)
            self.queue, self.cause = name, ""
            self._ledger.listening()
            self._tried.set()
            while not self._closed.is_set():
                frame = box.messages.get()
                if frame is None:
                    self.cause = "the connection was lost"
                    return
                hear(self._ledger, frame.headers, self._datastore)
        finally:
            self._box = None
            close_quietly(connection)
            self.queue = ""


def unreachable(datastore: str) -> Unreachable:
    """What is raised where nothing can be polled."""
    return Unreachable(f"{datastore!r} has no receipts")


def headers_of(frame: Any) -> dict[str, Any]:
    """The headers of a frame of stomp.py, or a mapping of headers.

    Raises:
        TypeError: it is neither.
    """
    found = getattr(frame, "headers", frame)
    if not isinstance(found, dict):
        msg = f"a {type(frame).__name__} is no message: pass the frame of on_message, or headers"
        raise TypeError(msg)
    return found
