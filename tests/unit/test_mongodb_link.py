"""The proxies between MongoDB's members: whose connection is whose, without a server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from typing import TYPE_CHECKING

import pytest

from antipode_testing.contract.base import in_time, seconds
from antipode_testing.servers.mongodb.link import Faults, MemberProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 5.0
OTHER = "host:27018"


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.request.recv(65_536):
                self.request.sendall(data)


@pytest.fixture
def proxy() -> Iterator[MemberProxy]:
    """A member's proxy before a server that sends everything back."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with MemberProxy(server.server_address) as through:
                yield through
        finally:
            server.shutdown()
            thread.join(TIMEOUT_S)


def message(body: bytes) -> bytes:
    """As MongoDB's: with its own length before it."""
    return (4 + len(body)).to_bytes(4, "little") + body


def hello(name: str) -> bytes:
    """What a member says first."""
    text = name.encode() + b"\x00"
    field = b"\x02hostInfo\x00" + len(text).to_bytes(4, "little") + text
    return message(b"\x10hello\x00\x01\x00\x00\x00" + field)


def connect(proxy: MemberProxy, first: bytes) -> socket.socket:
    sock = socket.create_connection(proxy.address, TIMEOUT_S)
    sock.sendall(first)
    return sock


def echoed(sock: socket.socket, size: int) -> bytes:
    received = b""  # MSG_WAITALL does not wait on a socket that has a timeout
    while len(received) < size and (data := sock.recv(size - len(received))):
        received += data
    return received


def test_a_client_feels_no_fault(proxy: MemberProxy) -> None:
    """Who does not say that it is a member passes, whatever was done to the members."""
    proxy.shape(OTHER, Faults(lag_ms=60_000, paused=True), Faults(cut=True))
    first = message(b"\x10hello\x00\x01\x00\x00\x00")
    with connect(proxy, first) as sock:
        assert echoed(sock, len(first)) == first


def test_lag_is_of_the_member_that_receives(proxy: MemberProxy) -> None:
    """What flows into a member takes its own lag, in whichever direction it connected."""
    first = hello(OTHER)
    for mine, theirs in ((Faults(lag_ms=100), Faults()), (Faults(), Faults(lag_ms=100))):
        proxy.shape(OTHER, mine, theirs)

        def echo() -> None:
            with connect(proxy, first) as sock:
                assert echoed(sock, len(first)) == first

        def lag() -> None:
            assert seconds(echo) >= 0.099

        assert in_time(0.19, lag)


def test_a_cut_closes_a_members_connections_and_refuses_new_ones(proxy: MemberProxy) -> None:
    """Cut from either side, what is open ends and what is opened ends too; healed, it passes."""
    first = hello(OTHER)
    with connect(proxy, first) as sock:
        assert echoed(sock, len(first)) == first
        proxy.shape(OTHER, Faults(), Faults(cut=True))
        assert sock.recv(1) == b""
    with connect(proxy, first) as sock, contextlib.suppress(ConnectionResetError):
        assert sock.recv(1) == b""
    proxy.shape(OTHER, Faults(), Faults())
    with connect(proxy, first) as sock:
        assert echoed(sock, len(first)) == first


def test_members_are_told_apart(proxy: MemberProxy) -> None:
    """A fault between two members does not touch a third."""
    proxy.shape(OTHER, Faults(), Faults(paused=True))
    third = hello("host:27019")
    with connect(proxy, third) as sock:
        assert echoed(sock, len(third)) == third


def test_a_first_message_may_come_in_pieces(proxy: MemberProxy) -> None:
    """Nothing is passed on before it is known whose connection it is."""
    proxy.shape(OTHER, Faults(), Faults(lag_ms=100))
    first = hello(OTHER)
    began = time.perf_counter()
    with connect(proxy, first[:2]) as sock:
        for at in range(2, len(first), 8):
            sock.settimeout(0.005)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            sock.settimeout(TIMEOUT_S)
            sock.sendall(first[at : at + 8])
        assert echoed(sock, len(first)) == first
    assert time.perf_counter() - began >= 0.099


def test_a_connection_that_says_nothing_ends(proxy: MemberProxy) -> None:
    """One that is closed before its first message leaves nothing behind."""
    with connect(proxy, b"\x10") as sock:
        sock.shutdown(socket.SHUT_WR)
        assert echoed(sock, 1) == b"\x10"
        assert sock.recv(1) == b""
