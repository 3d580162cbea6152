"""The lag proxy: what it delays, keeps, closes and counts."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from antipode_testing import LagProxy, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 5.0


class EchoServer:
    """Sends back whatever comes, connection by connection, until closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._threads = [threading.Thread(target=self._accept)]
        self._sockets: list[socket.socket] = []
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self._sockets.append(accepted)
                thread = threading.Thread(target=self._echo, args=(accepted,))
                self._threads.append(thread)
                thread.start()

    def _echo(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError):
            while data := accepted.recv(65_536):
                accepted.sendall(data)

    def close(self) -> None:
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[EchoServer]:
    echo = EchoServer()
    yield echo
    echo.close()


@pytest.fixture
def proxy(server: EchoServer) -> Iterator[LagProxy]:
    with LagProxy(server.address) as lag_proxy:
        yield lag_proxy


def connect(proxy: LagProxy) -> socket.socket:
    sock = socket.create_connection(proxy.address, timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            break
        data += chunk
    return data


def round_trip_ms(sock: socket.socket, data: bytes = b"ping") -> float:
    began = time.perf_counter()
    sock.sendall(data)
    assert receive(sock, len(data)) == data
    return (time.perf_counter() - began) * 1000


@pytest.mark.parametrize(("lag_ms", "request_lag_ms"), [(50.0, 0.0), (0.0, 50.0), (20.0, 30.0)])
def test_lag_is_what_was_set(server: EchoServer, lag_ms: float, request_lag_ms: float) -> None:
    """A round trip takes the sum of both one-way lags, never less and hardly more."""
    with (
        LagProxy(server.address, lag_ms=lag_ms, request_lag_ms=request_lag_ms) as proxy,
        connect(proxy) as sock,
    ):
        times = sorted(round_trip_ms(sock) for _ in range(5))
    assert times[0] >= 49.0
    assert times[0] <= 80.0


def test_no_lag_adds_little(proxy: LagProxy) -> None:
    """Without lag a round trip is far below what any lag under test would be."""
    with connect(proxy) as sock:
        assert min(round_trip_ms(sock) for _ in range(20)) < 5.0


def test_lag_is_pipelined(proxy: LagProxy) -> None:
    """Ten chunks on their way at once arrive after one lag, not after ten."""
    proxy.set_lag(100)
    with connect(proxy) as sock:
        began = time.perf_counter()
        for number in range(10):
            sock.sendall(b"%d" % number)
        assert receive(sock, 10) == b"0123456789"
        assert 0.099 <= time.perf_counter() - began < 0.6


def test_changing_the_lag_keeps_the_order(proxy: LagProxy) -> None:
    """Bytes leave in the order they came, however often the lag changes meanwhile."""
    sent = b"".join(b"%06d" % number for number in range(2_000))
    with connect(proxy) as sock:
        for number in range(0, len(sent), 60):
            sock.sendall(sent[number : number + 60])
            proxy.set_lag((number * 7) % 23, request_lag_ms=(number * 5) % 17)
        assert receive(sock, len(sent)) == sent


def test_lowering_the_lag_frees_what_is_held(proxy: LagProxy) -> None:
    """A test that sets an hour of lag and heals does not wait an hour."""
    proxy.set_lag(3_600_000)
    with connect(proxy) as sock:
        sock.sendall(b"held")
        wait_until(
            lambda: proxy.traffic().response_bytes == 4, what="the echo", timeout_s=TIMEOUT_S
        )
        proxy.set_lag(0)
        assert receive(sock, 4) == b"held"


def test_pause_holds_bytes_and_keeps_connections(proxy: LagProxy) -> None:
    """While paused nothing passes; afterwards everything does, on the same connection."""
    with connect(proxy) as sock:
        round_trip_ms(sock)
        proxy.pause()
        sock.sendall(b"one")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(TIMEOUT_S)
        proxy.resume()
        assert receive(sock, 3) == b"one"


def test_cut_closes_and_refuses_and_heal_restores(proxy: LagProxy) -> None:
    """A cut ends every connection, refuses new ones, and heals on the same port."""
    with connect(proxy) as sock:
        round_trip_ms(sock)
        proxy.cut()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            connect(proxy).close()
    proxy.heal()
    with connect(proxy) as sock:
        round_trip_ms(sock)


def test_cut_loses_what_was_on_its_way(proxy: LagProxy) -> None:
    """Bytes held by the lag when the link is cut never arrive."""
    proxy.set_lag(3_600_000)
    with connect(proxy) as sock:
        sock.sendall(b"lost")
        wait_until(
            lambda: proxy.traffic().response_bytes == 4, what="the echo", timeout_s=TIMEOUT_S
        )
        proxy.cut()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(4) == b""


def test_upstream_down_closes_the_connection(server: EchoServer, proxy: LagProxy) -> None:
    """A client of a proxy whose server is down sees its connection closed, not a hang."""
    server.close()
    for _ in range(3):
        with contextlib.suppress(ConnectionResetError), connect(proxy) as sock:
            assert sock.recv(1) == b""


def test_the_end_of_a_stream_comes_after_its_bytes(proxy: LagProxy) -> None:
    """A client that half-closes still gets all it is owed, then the end."""
    proxy.set_lag(30, request_lag_ms=30)
    sent = b"x" * 1_000_000
    with connect(proxy) as sock:
        writer = threading.Thread(target=lambda: (sock.sendall(sent), sock.shutdown(1)))
        writer.start()
        assert len(receive(sock, len(sent) + 1)) == len(sent)
        writer.join(TIMEOUT_S)


def test_exchanges_count_round_trips(proxy: LagProxy) -> None:
    """Requests sent without waiting for a reply are one exchange; each awaited reply begins one."""
    with connect(proxy) as sock:
        before = proxy.traffic()
        for _ in range(3):
            round_trip_ms(sock)
        assert (proxy.traffic() - before).exchanges == 3
        before = proxy.traffic()
        proxy.pause()  # so that no reply can come between the requests
        for _ in range(5):
            sock.sendall(b"abcd")
        wait_until(
            lambda: (proxy.traffic() - before).request_bytes == 20,
            what="the requests",
            timeout_s=TIMEOUT_S,
        )
        proxy.resume()
        assert receive(sock, 20) == b"abcd" * 5
        cost = proxy.traffic() - before
    assert cost.exchanges == 1
    assert (cost.request_bytes, cost.response_bytes, cost.connections) == (20, 20, 0)
    assert proxy.traffic().connections == 1


def test_retarget_sends_connections_elsewhere(proxy: LagProxy) -> None:
    """After a retarget the old connections are closed and new ones reach the other server."""
    other = EchoServer()
    try:
        with connect(proxy) as sock:
            round_trip_ms(sock)
            proxy.retarget(other.address)
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
        with connect(proxy) as sock:
            round_trip_ms(sock)
        assert proxy.upstream == other.address
    finally:
        other.close()


def test_close_leaves_nothing(server: EchoServer) -> None:
    """Closing joins the thread, ends connections, frees the port, and may be repeated."""
    threads = set(threading.enumerate())
    proxy = LagProxy(server.address)
    with connect(proxy) as sock:
        round_trip_ms(sock)
        proxy.close()
        proxy.close()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    assert not {t for t in set(threading.enumerate()) - threads if t.name.startswith("lag-proxy")}
    with pytest.raises(ConnectionRefusedError):
        connect(proxy).close()
    with pytest.raises(RuntimeError, match="closed"):
        proxy.set_lag(1)


@pytest.mark.parametrize("lag_ms", [-1.0, float("nan"), float("inf")])
def test_an_impossible_lag_is_refused(proxy: LagProxy, lag_ms: float) -> None:
    """A lag that is negative or no number is an error at once, not a hang later."""
    with pytest.raises(ValueError, match="lag"):
        proxy.set_lag(lag_ms)
