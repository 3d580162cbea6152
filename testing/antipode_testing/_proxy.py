"""A loopback TCP proxy that makes a link slow, silent or dead, and counts what passes."""

from __future__ import annotations

import contextlib
import errno
import math
import selectors
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ._address import LOOPBACK, Address, ReservedPort
from ._relay import Flow, Relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from typing_extensions import Self

T = TypeVar("T")
CALL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What passed through a proxy so far; subtract an earlier one to count what a call cost.

    Attributes:
        connections: connections accepted.
        exchanges: bursts from client to server, that is round trips: bytes of a client count as
            a new one only if its server spoke since its last.
        request_chunks: reads from clients that brought bytes.
        request_bytes: bytes from clients.
        response_chunks: reads from the server that brought bytes.
        response_bytes: bytes from the server.
    """

    connections: int = 0
    exchanges: int = 0
    request_chunks: int = 0
    request_bytes: int = 0
    response_chunks: int = 0
    response_bytes: int = 0

    def __sub__(self, earlier: Traffic) -> Traffic:
        return Traffic(
            self.connections - earlier.connections,
            self.exchanges - earlier.exchanges,
            self.request_chunks - earlier.request_chunks,
            self.request_bytes - earlier.request_bytes,
            self.response_chunks - earlier.response_chunks,
            self.response_bytes - earlier.response_bytes,
        )


class LagProxy:
    """Forward ``127.0.0.1:<chosen port>`` to a server, with a one-way lag in each direction.

    It runs in one background thread. Chunks keep their order and are pipelined: each leaves at its
    arrival plus the lag, however many are on their way. A connection to an upstream that is down
    is closed at once.

    Args:
        upstream: host and port of the server.
        lag_ms: milliseconds from the server to its clients. Replication that is pulled, as of
            Redis or a federated exchange, flows this way.
        request_lag_ms: milliseconds from clients to the server.
        host: where it listens instead, for clients that do not reach this machine's loopback.
    """

    def __init__(
        self,
        upstream: tuple[str, int],
        *,
        lag_ms: float = 0.0,
        request_lag_ms: float = 0.0,
        host: str = LOOPBACK,
    ) -> None:
        self._upstream = Address(*upstream)
        self._requests = Flow(_seconds(request_lag_ms))
        self._responses = Flow(_seconds(lag_ms))
        self._connections = self._exchanges = 0
        self._relays: dict[socket.socket, Relay] = {}
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._closed = False
        self._port = ReservedPort(host)
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        for sock in (self._wake, self._woken):
            sock.settimeout(0)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._open()
        self._thread = threading.Thread(target=self._run, name=f"lag-proxy-{self.address.port}")
        self._thread.daemon = True
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where clients connect; the same for the proxy's whole life."""
        return self._port.address

    @property
    def upstream(self) -> Address:
        """The server that connections go to."""
        return self._upstream

    def set_lag(self, lag_ms: float, *, request_lag_ms: float | None = None) -> None:
        """Change the lag of everything, what is already on its way included.

        Args:
            lag_ms: milliseconds from the server to its clients.
            request_lag_ms: milliseconds from clients to the server; None leaves it.
        """
        lag_s = _seconds(lag_ms)
        request_lag_s = None if request_lag_ms is None else _seconds(request_lag_ms)

        def change() -> None:
            self._responses.lag_s = lag_s
            if request_lag_s is not None:
                self._requests.lag_s = request_lag_s

        self._call(change)

    def pause(self) -> None:
        """Hold all bytes in both directions; connections stay, new ones are accepted."""
        self._call(lambda: self._set_paused(paused=True))

    def resume(self) -> None:
        """Release what `pause` held, in order."""
        self._call(lambda: self._set_paused(paused=False))

    def cut(self) -> None:
        """Close every connection, lose what was on its way, and refuse new connections."""
        self._call(self._cut)

    def heal(self) -> None:
        """Accept connections again after `cut`, on the same port."""
        self._call(self._open)

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Be cut while a block runs."""
        self.cut()
        try:
            yield
        finally:
            self.heal()

    def retarget(self, upstream: tuple[str, int]) -> None:
        """Send connections to another server from now on; the present ones are closed."""
        address = Address(*upstream)

        def change() -> None:
            self._drop_relays()
            self._upstream = address

        self._call(change)

    def relayed(self) -> int:
        """How many connections pass through it now; each has two descriptors of this process."""
        return self._call(lambda: len(self._unique_relays()))

    def traffic(self) -> Traffic:
        """Count what arrived at the proxy so far, whether or not it was already passed on."""
        return self._call(self._count)

    def close(self) -> None:
        """Close every connection and the port, and join the thread. Idempotent."""
        if self._closed:
            return
        self._call(self._stop)
        self._thread.join(CALL_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Below here everything runs in the proxy's thread, `_call` apart.

    def _call(self, function: Callable[[], T]) -> T:
        """Run a function in the proxy's thread, so that nothing there needs a lock."""
        if self._closed or not self._thread.is_alive():
            raise RuntimeError(f"the proxy of {self._upstream} is closed")
        future: Future[T] = Future()
        self._calls.append((function, future))
        with contextlib.suppress(BlockingIOError):  # the thread has wake-ups enough to read
            self._wake.send(b"\0")
        return future.result(CALL_TIMEOUT_S)

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, events in self._selector.select(self._pause_s()):
                    self._handle(key.fileobj, events)
                self._forward()
        finally:
            self._release()

    def _pause_s(self) -> float | None:
        due = [at for relay in self._unique_relays() if (at := relay.due_at()) is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _handle(self, sock: Any, events: int) -> None:
        if sock is self._woken:
            self._answer()
        elif sock is self._listener:
            self._accept()
        elif (relay := self._relays.get(sock)) is not None:
            self._advance(relay, sock, events)

    def _answer(self) -> None:
        self._woken.recv(4096)
        while self._calls:
            function, future = self._calls.popleft()
            try:
                future.set_result(function())
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                future.set_exception(error)

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            client, _ = self._listener.accept()
        except OSError:
            return  # the client gave up first
        upstream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        for sock in (client, upstream):
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        relay = self._relay(client, upstream)
        self._connections += 1
        self._relays[client] = self._relays[upstream] = relay
        # In progress: the selector reports how it ends. A refusal may come at once.
        if upstream.connect_ex(self._upstream) not in {0, errno.EINPROGRESS}:
            self._drop(relay)

    def _relay(self, client: socket.socket, upstream: socket.socket) -> Relay:
        return Relay(client, upstream, self._requests, self._responses)

    def _advance(self, relay: Relay, sock: socket.socket, events: int) -> None:
        if events & selectors.EVENT_WRITE and not relay.writable(sock):
            self._drop(relay)
        elif events & selectors.EVENT_READ:
            self._exchanges += relay.receive(sock, time.monotonic())

    def _forward(self) -> None:
        now = time.monotonic()
        for relay in self._unique_relays():
            relay.flush(now)
            if relay.over:
                self._drop(relay)
            else:
                self._watch(relay.client, relay.interest(relay.client))
                self._watch(relay.upstream, relay.interest(relay.upstream))

    def _watch(self, sock: socket.socket, events: int) -> None:
        watched = self._selector.get_map().get(sock.fileno())
        if watched is None:
            if events:
                self._selector.register(sock, events)
        elif not events:
            self._selector.unregister(sock)
        elif watched.events != events:
            self._selector.modify(sock, events)

    def _unique_relays(self) -> list[Relay]:
        return [relay for sock, relay in self._relays.items() if sock is relay.client]

    def _drop(self, relay: Relay) -> None:
        for sock in (relay.client, relay.upstream):
            self._watch(sock, 0)
            del self._relays[sock]
        relay.close()

    def _drop_relays(self) -> None:
        for relay in self._unique_relays():
            self._drop(relay)

    def _open(self) -> None:
        if self._listener is None:
            self._listener = self._port.listen()
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _cut(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        self._drop_relays()

    def _set_paused(self, *, paused: bool) -> None:
        self._requests.paused = self._responses.paused = paused

    def _count(self) -> Traffic:
        return Traffic(
            connections=self._connections,
            exchanges=self._exchanges,
            request_chunks=self._requests.chunks,
            request_bytes=self._requests.bytes,
            response_chunks=self._responses.chunks,
            response_bytes=self._responses.bytes,
        )

    def _stop(self) -> None:
        self._closed = True

    def _release(self) -> None:
        self._closed = True
        self._cut()
        self._port.close()
        self._selector.close()
        self._wake.close()
        self._woken.close()
        while self._calls:
            self._calls.popleft()[1].set_exception(RuntimeError("the proxy is closed"))


def _seconds(lag_ms: float) -> float:
    if not (math.isfinite(lag_ms) and lag_ms >= 0):
        raise ValueError(f"a lag is a finite number of milliseconds, 0 or more: {lag_ms!r}")
    return lag_ms / 1000.0
