"""What an instrumented connection of stomp.py sends, and what is known of it."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

from antipode.shim import (
    config,
    count,
    log_once,
    mark_incomplete,
    scope_in,
    shims_of,
    unscoped,
)
from antipode_shims._messages.publisher import Publications
from antipode_shims._messages.unconfirmed import Unconfirmed
from antipode_shims.activemq._format import is_persistent, is_topic, labelled

from .stomp import stomp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from antipode import WriteId

ATTRIBUTE = "_antipode"
#: What is replaced.
_CALLS = ("send", "commit", "abort")


class _Awaited:
    """What one receipt is of.

    Attributes:
        receipt: as the application calls it.
        messages: that the broker has once it comes.
    """

    __slots__ = ("messages", "receipt")

    def __init__(self, receipt: str, messages: list[Unconfirmed]) -> None:
        self.receipt, self.messages = receipt, messages


class Followed:
    """The instrumentation of one connection. Thread-safe.

    A receipt's id goes to the broker as one of our own: an application may use one id for several
    frames at once, also for frames of which we know nothing. It gets its own back.

    Attributes:
        datastore: in which its messages are writes.
    """

    def __init__(self, connection: Any, datastore: str, *, receipts: bool) -> None:
        """Prepare to follow *connection*; *receipts* say that readers elsewhere have them."""
        self.datastore = datastore
        self._connection = connection
        self._transport = connection.transport
        self._receipts = receipts
        self._publications = Publications(datastore)
        self._awaited: dict[str, _Awaited] = {}
        self._transactions: dict[str, list[Unconfirmed]] = {}
        self._lock = threading.Lock()
        self._following = threading.local()
        self._plain: dict[str, Callable[..., Any]] = {
            name: getattr(connection, name) for name in _CALLS
        }
        self._notify: Callable[..., None] = self._transport.notify

    def attach(self) -> None:
        """Replace the calls of the connection, and hear what comes before its listeners do."""
        for name in _CALLS:
            setattr(self._connection, name, getattr(self, name))
        self._transport.notify = self._heard
        setattr(self._connection, ATTRIBUTE, self)

    def detach(self) -> None:
        """Undo :meth:`attach`."""
        for name in (*_CALLS, ATTRIBUTE):
            vars(self._connection).pop(name, None)
        vars(self._transport).pop("notify", None)

    def send(
        self,
        destination: str,
        body: Any,
        content_type: str | None = None,
        headers: dict[str, Any] | None = None,
        **keyword_headers: Any,
    ) -> Any:
        """Send a message with what it depends on; as stomp.py's ``send``.

        Raises:
            ConfigurationError: it is sent outside of a scope, and ``on_unscoped="raise"``.
        """
        given = {**(headers or {}), **keyword_headers}
        if scope_in() is None and config().on_unscoped == "raise":
            unscoped("write", self.datastore)
        receipt, transaction = given.get("receipt"), given.get("transaction")
        write = self._name(destination, confirmed=bool(receipt or transaction))
        known = {"destination": destination, **given}
        self._following.on = True  # The broker takes the frames of a connection in their order.
        try:
            sent = labelled(known, datastore=self.datastore, write=write)
        finally:
            self._following.on = False
        if sent is None:
            self._left_out(write)
            sent, write = known, None
        del sent["destination"]
        if write is None:
            return self._plain["send"](destination, body, content_type, sent)
        self._warn(given)
        message = Unconfirmed(scope_in(), write, awaits=self._awaits)
        if transaction:
            with self._lock:
                self._transactions.setdefault(str(transaction), []).append(message)
            receipt = None  # It proves nothing before the commit.
        return self._do(
            "send", (destination, body, content_type, sent), [message], receipt, transaction
        )

    def commit(
        self,
        transaction: str | None = None,
        headers: dict[str, Any] | None = None,
        **keyword_headers: Any,
    ) -> Any:
        """Commit; what was sent in *transaction* is recorded then. As stomp.py's ``commit``."""
        given = {**(headers or {}), **keyword_headers}
        with self._lock:
            messages = self._transactions.pop(str(transaction), [])
        return self._do("commit", (transaction, given), messages, given.get("receipt"))

    def abort(
        self,
        transaction: str,
        headers: dict[str, Any] | None = None,
        **keyword_headers: Any,
    ) -> Any:
        """Abort; nothing of *transaction* is recorded. As stomp.py's ``abort``."""
        with self._lock:
            messages = self._transactions.pop(str(transaction), [])
        self._refused(messages)
        return self._plain["abort"](transaction, headers, **keyword_headers)

    def _do(
        self,
        name: str,
        arguments: tuple[Any, ...],
        messages: list[Unconfirmed],
        receipt: Any,
        transaction: Any = None,
    ) -> Any:
        """Make a call, after which *messages* are known to be sent, or will be by *receipt*."""
        own = self._await(receipt, arguments[-1], messages) if receipt else ""
        try:
            found = self._plain[name](*arguments)
        except BaseException as error:
            with self._lock:
                self._awaited.pop(own, None)
                if transaction:
                    self._transactions.pop(str(transaction), None)
            unsent = isinstance(error, stomp().exception.NotConnectedException)
            (self._refused if unsent else self._in_doubt)(messages)
            raise
        if not receipt and not transaction:
            for each in messages:
                each.sent()
            self._confirmed(messages)
        return found

    def _await(self, receipt: Any, headers: dict[str, Any], messages: list[Unconfirmed]) -> str:
        """Ask for a receipt of our own in *headers*, in place of *receipt*; its id."""
        own = headers["receipt"] = uuid.uuid4().hex
        with self._lock:
            self._awaited[own] = _Awaited(str(receipt), messages)
        for each in messages:
            each.sent()
        return own

    def _awaits(self) -> bool:
        """Whether who uses a lineage should wait for receipts.

        Not for what follows over this connection, nor in the thread that takes receipts in.
        """
        if getattr(self._following, "on", False):
            return False
        return threading.current_thread() is not getattr(self._transport, "io_thread", None)

    def _name(self, destination: str, *, confirmed: bool) -> WriteId | None:
        """The name of the next message; None for one that nobody could wait for."""
        if not is_topic(destination):
            count("unheard_publish", self.datastore)
            return None
        if not confirmed:
            count("unconfirmed_publish", self.datastore)
            if not self._has_receipts():
                return None
        return self._publications.next(destination, "")

    def _has_receipts(self) -> bool:
        return self._receipts or any(shim.waitable for shim in shims_of(self.datastore))

    def _warn(self, headers: dict[str, Any]) -> None:
        """Say of messages that are not persistent that a receipt does not keep them."""
        if not is_persistent(headers):
            message = "messages of %r are not persistent: a broker that dies loses them"
            log_once("not_persistent", self.datastore, None, message, self.datastore)

    def _left_out(self, write: WriteId | None) -> None:
        """Note that a message goes without its lineage and its name."""
        count("baggage_dropped", self.datastore)
        message = "the headers of a message to %r have no room for its lineage: it went without"
        log_once("baggage_dropped", self.datastore, "frame", message, self.datastore)
        mark_incomplete(self.datastore, "size" if write is None else "unsampled")
        if write is not None:
            self._publications.void(write)

    def _confirmed(self, messages: Iterable[Unconfirmed]) -> None:
        for each in messages:
            each.confirm()

    def _refused(self, messages: Iterable[Unconfirmed]) -> None:
        for each in messages:
            each.refuse()
            self._publications.void(each.write)

    def _in_doubt(self, messages: Iterable[Unconfirmed]) -> None:
        for each in messages:
            each.doubt()
            self._publications.void(each.write)

    def _heard(self, frame_type: str, frame: Any = None) -> None:
        """Take in what the broker says, and let the connection's listeners hear it."""
        if frame_type in ("receipt", "error"):
            own = frame.headers.get("receipt-id")
            with self._lock:
                awaited = self._awaited.pop(str(own), None)
            if awaited is not None:
                frame.headers["receipt-id"] = awaited.receipt
                (self._confirmed if frame_type == "receipt" else self._refused)(awaited.messages)
        elif frame_type == "disconnected":
            self._disconnected()
        self._notify(frame_type, frame)

    def _disconnected(self) -> None:
        """Leave in doubt what no receipt came of; open transactions are rolled back."""
        with self._lock:
            awaited, open_ones = self._awaited, self._transactions
            self._awaited, self._transactions = {}, {}
            self._publications = Publications(self.datastore)
        for each in awaited.values():
            self._in_doubt(each.messages)
        for messages in open_ones.values():
            self._refused(messages)
