"""What an instrumented connection of stomp.py sends, and what is known of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode.shim import (
    config,
    count,
    log_once,
    mark_incomplete,
    record_write,
    scope_in,
    shims_of,
    unscoped,
)
from antipode_shims._messages.publisher import Publications
from antipode_shims.activemq._format import is_persistent, is_topic, labelled

from .stomp import stomp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from antipode import WriteId
    from antipode.shim import Scope

ATTRIBUTE = "_antipode"
LISTENER = "antipode"
#: What is replaced.
_CALLS = ("send", "commit", "abort")


class Sent(NamedTuple):
    """A message that was sent, and of which it is not known whether the broker has it.

    Attributes:
        scope: the request that it was sent from; None without one.
        write: its name.
    """

    scope: Scope | None
    write: WriteId


class Followed:
    """The instrumentation of one connection. Thread-safe.

    Attributes:
        datastore: in which its messages are writes.
    """

    def __init__(self, connection: Any, datastore: str, *, receipts: bool) -> None:
        """Prepare to follow *connection*; *receipts* say that readers elsewhere have them."""
        self.datastore = datastore
        self._connection = connection
        self._receipts = receipts
        self._publications = Publications(datastore)
        self._awaited: dict[str, list[Sent]] = {}
        self._transactions: dict[str, list[Sent]] = {}
        self._lock = threading.Lock()
        self._plain: dict[str, Callable[..., Any]] = {
            name: getattr(connection, name) for name in _CALLS
        }

    def attach(self) -> None:
        """Replace the calls of the connection, and listen to it."""
        for name in _CALLS:
            setattr(self._connection, name, getattr(self, name))
        self._connection.set_listener(LISTENER, self)
        setattr(self._connection, ATTRIBUTE, self)

    def detach(self) -> None:
        """Undo :meth:`attach`."""
        for name in (*_CALLS, ATTRIBUTE):
            vars(self._connection).pop(name, None)
        self._connection.remove_listener(LISTENER)

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
        sent = labelled(known, datastore=self.datastore, write=write)
        if sent is None:
            self._left_out(write)
            sent, write = known, None
        del sent["destination"]
        if write is None:
            return self._plain["send"](destination, body, content_type, sent)
        self._warn(given)
        message = Sent(scope_in(), write)
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
        messages: list[Sent],
        receipt: Any,
        transaction: Any = None,
    ) -> Any:
        """Make a call, after which *messages* are known to be sent, or will be by *receipt*."""
        if receipt:
            with self._lock:
                self._awaited[str(receipt)] = messages
        try:
            found = self._plain[name](*arguments)
        except BaseException as error:
            with self._lock:
                self._awaited.pop(str(receipt), None)
                if transaction:
                    self._transactions.pop(str(transaction), None)
            unsent = isinstance(error, stomp().exception.NotConnectedException)
            (self._refused if unsent else self._in_doubt)(messages)
            raise
        if not receipt and not transaction:
            self._enter(messages)
        return found

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

    def _enter(self, messages: Iterable[Sent]) -> None:
        for scope, write in messages:
            if scope is None:
                record_write(write)
            else:
                scope.append(write)

    def _refused(self, messages: Iterable[Sent]) -> None:
        for _, write in messages:
            self._publications.void(write)

    def _in_doubt(self, messages: Iterable[Sent]) -> None:
        for scope, write in messages:
            count("incomplete", self.datastore)
            if scope is not None:
                scope.mark_incomplete(self.datastore, "in_doubt")
            self._publications.void(write)

    def on_receipt(self, frame: Any) -> None:
        """Record what a receipt is of."""
        with self._lock:
            messages = self._awaited.pop(str(frame.headers.get("receipt-id")), [])
        self._enter(messages)

    def on_error(self, frame: Any) -> None:
        """Take in a refusal."""
        with self._lock:
            messages = self._awaited.pop(str(frame.headers.get("receipt-id")), [])
        self._refused(messages)

    def on_disconnected(self) -> None:
        """Leave in doubt what no receipt came of; open transactions are rolled back."""
        with self._lock:
            awaited, open_ones = self._awaited, self._transactions
            self._awaited, self._transactions = {}, {}
            self._publications = Publications(self.datastore)
        for messages in awaited.values():
            self._in_doubt(messages)
        for messages in open_ones.values():
            self._refused(messages)

    def __getattr__(self, name: str) -> Any:
        """Ignore what else a listener is informed of."""
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)
