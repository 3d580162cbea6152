"""What is taken from stomp.py, and connections of the library's own, in one place."""

from __future__ import annotations

import queue
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from antipode import ConfigurationError
from antipode.shim import Unreachable, own_client

if TYPE_CHECKING:
    from types import ModuleType

#: Seconds that connecting may take, and that a receipt may.
CONNECT_S, RECEIPT_S = 5.0, 10.0
#: A dead connection is noticed after about twice this many milliseconds.
HEARTBEAT_MS = 10_000


@lru_cache(maxsize=1)
def stomp() -> ModuleType:
    """The client library.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import stomp as found
    except ImportError as error:
        msg = 'the activemq shim needs stomp.py: pip install "antipode-xcy[activemq]"'
        raise ConfigurationError(msg) from error
    module: ModuleType = found
    return module


class Broker(NamedTuple):
    """Where a broker listens for STOMP.

    Attributes:
        host: of the broker.
        port: of its connector.
        user: None without one.
        password: of the user.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> Broker:
        """The broker of a URL, ``stomp://user:password@host:61613``.

        Raises:
            ConfigurationError: it is none.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            msg = "the broker's URL cannot be read: use stomp://user:password@host:61613"
            raise ConfigurationError(msg) from error
        if parts.scheme != "stomp" or not parts.hostname:
            msg = "a broker's URL looks like stomp://user:password@host:61613"
            raise ConfigurationError(msg)
        user, password = (each and unquote(each) for each in (parts.username, parts.password))
        return cls(parts.hostname, port or 61613, user, password)


def connect(broker: Broker, listener: Any = None) -> Any:
    """A connection that does not connect again by itself.

    Raises:
        Unreachable: the broker cannot be reached, or refuses the user.
    """
    made: Any = own_client(
        lambda: stomp().Connection12(
            [(broker.host, broker.port)],
            heartbeats=(HEARTBEAT_MS, HEARTBEAT_MS),
            auto_content_length=False,
            reconnect_attempts_max=1,
            timeout=CONNECT_S,
        )
    )
    if listener is not None:
        made.set_listener("antipode", listener)
    try:
        made.connect(broker.user, broker.password, wait=True)
    except (stomp().exception.StompException, OSError) as error:
        close_quietly(made)
        msg = f"ActiveMQ at {broker.host}:{broker.port}: {error or type(error).__name__}"
        raise Unreachable(msg) from error
    return made


def close_quietly(connection: Any) -> None:
    """End a connection, whatever state it is in."""
    with suppress(Exception):
        connection.transport.disconnect_socket()
        connection.transport.stop()


class Refused(Unreachable):
    """The broker refused a frame, and said so: nothing was done."""


class Mailbox:
    """A listener that keeps what came. Its messages are taken by another thread."""

    def __init__(self) -> None:
        self.messages: queue.Queue[Any] = queue.Queue()
        self.receipts: queue.Queue[Any] = queue.Queue()

    def __getattr__(self, name: str) -> Any:
        """Ignore what else a listener is informed of."""
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)

    def on_message(self, frame: Any) -> None:
        """Keep a message."""
        self.messages.put(frame)

    def on_receipt(self, frame: Any) -> None:
        """Keep a receipt."""
        self.receipts.put(frame.headers.get("receipt-id"))

    def on_error(self, frame: Any) -> None:
        """Keep why the broker refuses something: the connection ends with it."""
        why = str(frame.headers.get("message") or frame.body)[:200]
        self.receipts.put((frame.headers.get("receipt-id"), Refused(why)))

    def on_disconnected(self) -> None:
        """Note that nothing comes any more."""
        self.receipts.put(Unreachable("the connection was lost"))
        self.messages.put(None)

    def confirmed(self, receipt: str) -> None:
        """Return when *receipt* came.

        Raises:
            Refused: the broker refused what it is of.
            Unreachable: it did not come, and may never.
        """
        while True:
            try:
                found = self.receipts.get(timeout=RECEIPT_S)
            except queue.Empty as error:
                msg = f"no receipt came within {RECEIPT_S:.0f} s"
                raise Unreachable(msg) from error
            if isinstance(found, tuple) and found[0] in (receipt, None):
                raise found[1]
            if isinstance(found, Unreachable):
                raise found
            if found == receipt:
                return
