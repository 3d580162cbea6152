"""One proxied connection: two directions, each a queue of chunks that wait for their time."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from dataclasses import dataclass

CHUNK_BYTES = 65_536
# Beyond this a direction stops reading, and TCP pushes back on the sender as a slow link would.
HELD_BYTES_MAX = 64 * 1024 * 1024


@dataclass(slots=True)
class Flow:
    """What all connections of a proxy share in one direction: its settings and its counters."""

    lag_s: float = 0.0
    paused: bool = False
    chunks: int = 0
    bytes: int = 0


class Pipe:
    """One direction of one connection.

    A chunk is due at its arrival plus the *current* lag, so that lowering the lag frees what is
    held. Only the head of the queue is ever read: no change of lag can reorder.
    """

    def __init__(self, source: socket.socket, sink: socket.socket, flow: Flow) -> None:
        self.source = source
        self.sink = sink
        self.flow = flow
        self.ended = False  # the source will send no more
        self.done = False  # the sink was notified, or takes no more
        self.blocked = False  # the sink's buffer is full
        self._held: deque[tuple[float, bytes]] = deque()  # b"" stands for the end
        self._held_bytes = 0

    @property
    def wants_input(self) -> bool:
        """Whether to read from the source now."""
        return not self.ended and self._held_bytes < HELD_BYTES_MAX

    def peek(self) -> bytes:
        """What is held, in order."""
        return b"".join(data for _, data in self._held)

    def due_at(self) -> float | None:
        """When the head of the queue may leave, on the monotonic clock; None: nothing to do."""
        if not self._held or self.flow.paused or self.blocked:
            return None
        return self._held[0][0] + self.flow.lag_s

    def receive(self, now: float) -> int:
        """Queue what the source has; the number of bytes that came."""
        try:
            data = self.source.recv(CHUNK_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""  # a reset ends the stream; what came before it is still delivered
        self.ended = not data
        if not self.done:
            self._held.append((now, data))
            self._held_bytes += len(data)
        if data:
            self.flow.chunks += 1
            self.flow.bytes += len(data)
        return len(data)

    def flush(self, now: float) -> None:
        """Send whatever is due."""
        while (due_at := self.due_at()) is not None and due_at <= now:
            arrived_at, data = self._held.popleft()
            self._held_bytes -= len(data)
            if not data:
                self._finish()
                return
            rest = self._send(data)
            if rest:
                self._held.appendleft((arrived_at, rest))
                self._held_bytes += len(rest)

    def _send(self, data: bytes) -> bytes:
        try:
            sent = self.sink.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.done = True
            self._held.clear()
            self._held_bytes = 0
            return b""
        self.blocked = sent < len(data)
        return data[sent:]

    def _finish(self) -> None:
        self.done = True
        with contextlib.suppress(OSError):  # already gone, which is what was to be reported
            self.sink.shutdown(socket.SHUT_WR)


class Relay:
    """A client's connection and the one to the upstream server that belongs to it."""

    def __init__(
        self, client: socket.socket, upstream: socket.socket, requests: Flow, responses: Flow
    ) -> None:
        self.client = client
        self.upstream = upstream
        self.connecting = True
        self.requests = Pipe(client, upstream, requests)
        self.responses = Pipe(upstream, client, responses)
        self.pipes = (self.requests, self.responses)
        self._client_spoke_last = False

    @property
    def over(self) -> bool:
        """Whether nothing can pass any more in either direction."""
        return all(pipe.done for pipe in self.pipes)

    def receive(self, sock: socket.socket, now: float) -> int:
        """Read from one side; 1 if the client now begins a new exchange, else 0."""
        from_client = sock is self.client
        came = (self.requests if from_client else self.responses).receive(now)
        if not came:
            return 0
        begins = from_client and not self._client_spoke_last
        self._client_spoke_last = from_client
        return int(begins)

    def writable(self, sock: socket.socket) -> bool:
        """Note that a side takes bytes again; False if its connection attempt failed."""
        if self.connecting and sock is self.upstream:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return False
            self.connecting = False
        (self.responses if sock is self.client else self.requests).blocked = False
        return True

    def flush(self, now: float) -> None:
        """Send whatever is due in both directions."""
        if not self.connecting:
            for pipe in self.pipes:
                pipe.flush(now)

    def due_at(self) -> float | None:
        """When the next chunk of either direction is due; None: nothing is held."""
        if self.connecting:
            return None
        return min((due for pipe in self.pipes if (due := pipe.due_at()) is not None), default=None)

    def interest(self, sock: socket.socket) -> int:
        """The selector events to watch one side for."""
        source, sink = self.pipes if sock is self.client else reversed(self.pipes)
        connecting = self.connecting and sock is self.upstream
        reads = selectors.EVENT_READ if source.wants_input and not connecting else 0
        return reads | (selectors.EVENT_WRITE if sink.blocked or connecting else 0)

    def close(self) -> None:
        """Close both sides; what is held is lost, as on a cut wire."""
        self.client.close()
        self.upstream.close()
