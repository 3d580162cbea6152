"""Messages of stomp.py whose receipts are still to come: what their requests depend on."""

from __future__ import annotations

import queue
import socket
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import activemq
from antipode_shims._messages import unconfirmed

if TYPE_CHECKING:
    from collections.abc import Iterator

stomp = pytest.importorskip("stomp")

NEWS, TOPIC = "news", "/topic/VirtualTopic.news"
TIMEOUT_S = 30


class Broker:
    """Speaks STOMP with one connection. Receipts are given at once, or when a test says so."""

    def __init__(self, *, gives: bool = True) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._gives = gives
        self.frames: queue.Queue[tuple[str, dict[str, str]]] = queue.Queue()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self._client, _ = self._server.accept()
        with self._client, self._client.makefile("rb") as stream:
            read = b""
            while byte := stream.read(1):
                if byte != b"\0":
                    read += byte
                    continue
                self._take(read.decode().lstrip("\n"))
                read = b""

    def _take(self, frame: str) -> None:
        command, *lines = frame.partition("\n\n")[0].split("\n")
        headers = dict(line.split(":", 1) for line in lines)
        if command in ("CONNECT", "STOMP"):
            self.say("CONNECTED", version="1.2")
        elif self._gives and "receipt" in headers:
            self.say("RECEIPT", **{"receipt-id": headers["receipt"]})
        if command in ("SEND", "COMMIT", "SUBSCRIBE"):
            self.frames.put((command, headers))

    def say(self, command: str, **headers: str) -> None:
        """Send a frame without a body."""
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        self._client.sendall(f"{command}\n{lines}\n\0".encode())

    def next(self) -> dict[str, str]:
        """The headers of the next frame that came."""
        return self.frames.get(timeout=TIMEOUT_S)[1]

    def give(self, *frames: dict[str, str], command: str = "RECEIPT") -> None:
        """Answer *frames*, in this order."""
        for headers in frames:
            self.say(command, **{"receipt-id": headers["receipt"]})

    def close(self) -> None:
        self._server.close()
        self._thread.join(TIMEOUT_S)


class Heard:
    """A listener of the application's."""

    def __init__(self) -> None:
        self.receipts: queue.Queue[str] = queue.Queue()
        self.on_message: Any = lambda _frame: None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)

    def on_receipt(self, frame: Any) -> None:
        self.receipts.put(frame.headers["receipt-id"])

    on_error = on_receipt

    def await_receipts(self, *expected: str) -> None:
        """Return when *expected* have come, whatever their order, and no others did."""
        assert sorted(self.receipts.get(timeout=TIMEOUT_S) for _ in expected) == sorted(expected)


@contextmanager
def connected(broker: Broker) -> Iterator[tuple[Any, Heard]]:
    """An instrumented connection, and its listener."""
    with closing(broker):
        made = stomp.Connection12([("127.0.0.1", broker.port)], reconnect_attempts_max=1)
        heard = Heard()
        made.set_listener("", heard)  # Before any other: listeners are called by their names.
        made.connect(wait=True)
        activemq.instrument_connection(made, datastore=NEWS, receipts=True)
        try:
            yield made, heard
        finally:
            made.transport.disconnect_socket()
            made.transport.stop()


def numbers(lineage: antipode.Lineage) -> list[int]:
    """The numbers of the messages in *lineage*, which is complete."""
    assert not lineage.incomplete
    return sorted(int(write.version) for write in lineage)


def send(connection: Any, **headers: str) -> antipode.Lineage:
    """Send a message in a request of its own; what it depends on then."""
    with antipode.scope():
        connection.send(TOPIC, "post", persistent="true", **headers)
        return antipode.current()


def test_a_message_is_in_the_lineage_that_is_used_next() -> None:
    """The one that an answer carries, say: the receipt is waited for."""
    with connected(Broker()) as (connection, _):
        assert all(len(send(connection, receipt=f"r{n}")) == 1 for n in range(30))


def test_a_commit_is_in_the_lineage_that_is_used_next() -> None:
    """So is what was sent in a transaction."""
    with connected(Broker()) as (connection, _):
        for number in range(30):
            with antipode.scope():
                connection.send(TOPIC, "post", transaction="t")
                assert antipode.current().empty
                connection.commit("t", receipt="1")
                assert numbers(antipode.current()) == [number + 1]


def test_without_its_receipt_a_message_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never nothing; a receipt that comes later names it."""
    monkeypatch.setattr(unconfirmed, "CONFIRM_S", 0.01)
    broker = Broker(gives=False)
    with connected(broker) as (connection, heard), antipode.scope():
        connection.send(TOPIC, "post", receipt="1")
        lineage = antipode.current()
        assert lineage.incomplete == {antipode.shim.Incomplete(NEWS, "in_doubt")}
        assert not len(lineage)
        broker.give(broker.next())
        heard.await_receipts("1")
        assert len(antipode.current()) == 1


def test_a_refused_message_is_in_no_lineage() -> None:
    """The broker says so instead of the receipt."""
    broker = Broker(gives=False)
    with connected(broker) as (connection, heard), antipode.scope():
        connection.send(TOPIC, "post", receipt="1")
        broker.give(broker.next(), command="ERROR")
        heard.await_receipts("1")
        assert antipode.current().empty


def test_receipts_of_one_id_are_told_apart() -> None:
    """Each request has its message, in whatever order they come; the application sees its id."""
    broker = Broker(gives=False)
    with connected(broker) as (connection, heard):
        with antipode.scope() as one:
            connection.send(TOPIC, "a", receipt="1")
        with antipode.scope() as other:
            connection.send(TOPIC, "b", receipt="1")
        first, second = broker.next(), broker.next()
        broker.give(second, first)
        heard.await_receipts("1", "1")
        assert numbers(one.lineage) == [1]
        assert numbers(other.lineage) == [2]


def test_a_receipt_of_another_frame_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application may use one id for all of its frames."""
    monkeypatch.setattr(unconfirmed, "CONFIRM_S", 0.01)
    broker = Broker(gives=False)
    with connected(broker) as (connection, heard), antipode.scope():
        connection.subscribe("/queue/q", id="1", receipt="1")
        connection.send(TOPIC, "post", receipt="1")
        broker.give(broker.next())
        heard.await_receipts("1")
        assert antipode.current().incomplete


def test_messages_follow_each_other_without_waiting() -> None:
    """The next one over the connection names those before: the broker takes them in order."""
    broker = Broker(gives=False)
    with connected(broker) as (connection, heard), antipode.scope():
        for _ in range(3):
            connection.send(TOPIC, "post", receipt="1")
        frames = [broker.next() for _ in range(3)]
        found = [antipode.deserialize(_lineage_of(each["baggage"])) for each in frames[1:]]
        assert [numbers(each) for each in found] == [[1], [2]]
        broker.give(*frames)
        heard.await_receipts("1", "1", "1")
        assert numbers(antipode.current()) == [3]


def test_a_listener_does_not_wait_for_itself() -> None:
    """What it sends enters without its receipt, which it would have to take in itself."""
    broker = Broker(gives=False)
    found: queue.Queue[antipode.Lineage] = queue.Queue()
    with connected(broker) as (connection, heard):
        heard.on_message = lambda _frame: found.put(send(connection, receipt="1"))
        broker.say("MESSAGE", destination=TOPIC, subscription="1", **{"message-id": "m"})
        assert numbers(found.get(timeout=TIMEOUT_S)) == [1]


def _lineage_of(baggage: str) -> str:
    members = dict(member.split("=", 1) for member in baggage.split(","))
    return members["antipode"]
