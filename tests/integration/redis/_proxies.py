"""Proxies that keep ``INFO`` from the server, as some that people put before Redis do."""

from __future__ import annotations

import re
import selectors
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from antipode_testing import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

_INFO = re.compile(rb"\*\d\r\n\$4\r\nINFO\r\n\$\d+\r\n[a-z]+\r\n")
_WAIT_S = 5.0


class InfoProxy:
    """Passes everything on but ``INFO``, at which it does as a real one does.

    What came before it in the same packet is done, and its reply is lost with the connection.

    Attributes:
        address: where it listens.
        asked: how often it was asked for ``INFO``.
    """

    def __init__(self, server: Address, *, answers: bytes | None) -> None:
        """Stand before *server*; *answers* is its reply to ``INFO``, None for closing there."""
        self._server = server
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self.asked = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # It is closed.
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with ExitStack() as stack:
            stack.enter_context(suppress(ConnectionResetError))  # So Jedis closes.
            stack.enter_context(client)
            server = stack.enter_context(socket.create_connection(self._server, _WAIT_S))
            ready = stack.enter_context(selectors.DefaultSelector())
            ready.register(client, selectors.EVENT_READ)
            ready.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                    if not data or not self._pass(data, client, server, sent=key.fileobj is client):
                        return

    def _pass(
        self, data: bytes, client: socket.socket, server: socket.socket, *, sent: bool
    ) -> bool:
        """Pass *data* on; False where the connection ends."""
        found = _INFO.search(data) if sent else None
        if found is None:
            (server if sent else client).sendall(data)
            return True
        self.asked += 1
        if before := data[: found.start()]:
            server.sendall(before)
            reply = server.recv(1 << 16)
            if self._answers is not None:
                client.sendall(reply)
        if self._answers is None:
            return False
        client.sendall(self._answers)
        return True

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()


@contextmanager
def info_proxy(server: Address, *, answers: bytes | None = None) -> Iterator[InfoProxy]:
    """A proxy before *server* for the length of a block."""
    proxy = InfoProxy(server, answers=answers)
    try:
        yield proxy
    finally:
        proxy.close()
