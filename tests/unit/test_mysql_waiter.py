"""How the connection that blocks at MySQL is told to stop."""

from __future__ import annotations

import socket
from contextlib import closing

from antipode_shims.mysql._endpoint.endpoint import Waiter

SESSION = 7


class Server:
    """A connection of PyMySQL whose server answers once it was told to, so many times."""

    def __init__(self, deaf: int) -> None:
        self._sock, self._far = socket.socketpair()
        self._sock.settimeout(10)
        self._read_timeout = self._write_timeout = 0.0
        self.deaf = deaf
        self.told: list[int] = []

    def kill(self, session: int) -> None:
        """As ``KILL QUERY``, which ends nothing that has not begun."""
        self.told.append(session)
        if len(self.told) > self.deaf:
            self._far.send(b"!")

    def _read_query_result(self) -> None:
        assert self._sock.recv(1) == b"!"

    def close(self) -> None:
        self._sock.close()
        self._far.close()


def test_what_has_not_begun_is_ended_when_it_has() -> None:
    """The server begins a statement only after it was told to end it: it is told again."""
    with closing(Server(deaf=2)) as server:
        waiter = Waiter.__new__(Waiter)
        waiter._connection, waiter._session, waiter._asked = server, SESSION, "SELECT '7'"
        waiter.stop(server.kill)
        assert server.told == [SESSION] * 3
        assert not waiter._asked
        waiter.stop(server.kill)
        assert server.told == [SESSION] * 3
