"""What passes between a client and its server, counted on the way: exchanges and statements."""

from __future__ import annotations

import re
import struct
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from antipode_testing import LagProxy
from antipode_testing._relay import Pipe, Relay

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from antipode_testing._relay import Flow

#: After so many calls all connections are there.
WARM = 5
#: What came to the same so often is the count, of at most so many calls.
ALIKE = 10
MOST = 60


class Wire(LagProxy):
    """A proxy that keeps all bytes of all connections.

    Args:
        upstream: host and port of the server.
        statements: how many were sent or completed, by the bytes of a client and of its server.
        lag_ms: for how long a reply is held, so that a client waits for it and gets it whole.
    """

    def __init__(
        self,
        upstream: tuple[str, int],
        statements: Callable[[bytes, bytes], int],
        *,
        lag_ms: float = 0.0,
    ) -> None:
        self._connected: list[_HeardRelay] = []
        self._statements = statements
        super().__init__(upstream, lag_ms=lag_ms)

    def added_by(
        self,
        call: Callable[[], object],
        within: Callable[[], AbstractContextManager[Any]],
    ) -> Counter[str]:
        """Exchanges, statements and threads of one call and the end of the block around it.

        Raises:
            AssertionError: no ten calls came to the same.
        """
        came: Counter[frozenset[tuple[str, int]]] = Counter()
        for number in range(MOST):
            before = self._counted()
            with threads_started() as threads, within():
                call()
            added = self._counted()
            added.subtract(before)
            added["threads"] = len(threads)
            counts = frozenset(added.items())
            came[counts] += number >= WARM
            if came[counts] == ALIKE:
                return added
        raise AssertionError(f"{MOST} calls came to {dict(came)}")

    def requests(self) -> list[bytes]:
        """All that clients said so far, by connection; of those that no driver made to watch."""
        return self._call(lambda: [each.said[0] for each in self._connected if not each.monitors])

    def _counted(self) -> Counter[str]:
        # What was sent before the first question is read before the second.
        self._call(self._sums)
        return self._call(self._sums)

    def _sums(self) -> Counter[str]:
        watched = [each for each in self._connected if not each.monitors]
        return Counter(
            exchanges=sum(each.exchanges for each in watched),
            statements=sum(self._statements(*each.said) for each in watched),
        )

    def _relay(self, client: socket.socket, upstream: socket.socket) -> Relay:
        relay = _HeardRelay(client, upstream, self._requests, self._responses)
        self._connected.append(relay)
        return relay


class _HeardPipe(Pipe):
    """Keeps what passes."""

    def __init__(self, source: socket.socket, sink: socket.socket, flow: Flow) -> None:
        super().__init__(source, sink, flow)
        self.heard = bytearray()

    def receive(self, now: float) -> int:
        came = super().receive(now)
        if came and self._held:
            self.heard += self._held[-1][1]
            self._join()
        return came

    def _join(self) -> None:
        """Let what came in pieces go on in one."""
        if self.flow.lag_s and len(self._held) > 1:
            (at, first), (_, second) = self._held
            self._held.clear()
            self._held.append((at, first + second))


class _HeardRelay(Relay):
    """A connection whose exchanges are counted apart from others'."""

    def __init__(
        self, client: socket.socket, upstream: socket.socket, requests: Flow, responses: Flow
    ) -> None:
        super().__init__(client, upstream, requests, responses)
        self.requests: _HeardPipe = _HeardPipe(client, upstream, requests)
        self.responses: _HeardPipe = _HeardPipe(upstream, client, responses)
        self.pipes = (self.requests, self.responses)
        self.exchanges = 0

    def receive(self, sock: socket.socket, now: float) -> int:
        begins = super().receive(sock, now)
        self.exchanges += begins
        return begins

    @property
    def said(self) -> tuple[bytes, bytes]:
        """All bytes so far: the client's, and the server's."""
        return bytes(self.requests.heard), bytes(self.responses.heard)

    @property
    def monitors(self) -> bool:
        """Whether a driver watches its server here, by the clock: as PyMongo's monitors do."""
        return b"maxAwaitTimeMS" in self.requests.heard


@contextmanager
def threads_started() -> Iterator[list[threading.Thread]]:
    """All threads that the process starts meanwhile."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def note(self: threading.Thread) -> None:
        started.append(self)
        start(self)

    threading.Thread.start = note  # type: ignore[method-assign]
    try:
        yield started
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


def redis_commands(requests: bytes, _: bytes) -> int:
    """Commands of RESP: arrays of strings that say how long they are."""
    at = count = 0
    while at < len(requests):
        end = requests.index(b"\r\n", at)
        strings, at = int(requests[at + 1 : end]), end + 2
        for _string in range(strings):
            end = requests.index(b"\r\n", at)
            at = end + 2 + int(requests[at + 1 : end]) + 2
        count += 1
    return count


def mysql_commands(requests: bytes, _: bytes) -> int:
    """Commands of MySQL's protocol: packets that begin a sequence; a login goes on with one."""
    at = count = 0
    while at + 4 <= len(requests):
        length, sequence = int.from_bytes(requests[at : at + 3], "little"), requests[at + 3]
        count += sequence == 0
        at += 4 + length
    return count


def postgresql_statements(_: bytes, responses: bytes) -> int:
    """Statements that PostgreSQL completed, however many came in one message."""
    at = count = 0
    # A refusal of encryption is one byte, before all messages.
    while responses[at : at + 1] == b"N" and responses[at + 1 : at + 2] != b"\0":
        at += 1
    while at + 5 <= len(responses):
        count += responses[at : at + 1] == b"C"
        at += 1 + int.from_bytes(responses[at + 1 : at + 5], "big")
    return count


def mongodb_commands(requests: bytes, _: bytes) -> int:
    """Messages of MongoDB's protocol."""
    at = count = 0
    while at + 4 <= len(requests):
        at += struct.unpack_from("<i", requests, at)[0]
        count += 1
    return count


def amqp_methods(requests: bytes, _: bytes) -> int:
    """Methods of AMQP; contents and headers are parts of the one before."""
    at, count = len(b"AMQP\x00\x00\x09\x01"), 0
    while at + 7 <= len(requests):
        count += requests[at] == 1
        at += 7 + int.from_bytes(requests[at + 3 : at + 7], "big") + 1
    return count


def stomp_frames(requests: bytes, _: bytes) -> int:
    """Frames of STOMP, which end with a NUL; line ends between them keep a connection alive."""
    return len(re.findall(rb"(?:^|\0)[\r\n]*[A-Z]+\r?\n", requests))


def http_requests(requests: bytes, _: bytes) -> int:
    """Requests of HTTP."""
    return len(re.findall(rb"^[A-Z]+ \S+ HTTP/1\.1\r$", requests, flags=re.MULTILINE))
