"""Addresses on the loopback interface, and ports that stay ours between two listeners."""

from __future__ import annotations

import socket
import sys
from typing import NamedTuple

LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Where a server listens; a plain pair, as `socket.create_connection` takes it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ReservedPort:
    """A port chosen by the operating system, of loopback by default, that is ours until `close`.

    A server that restarts, or a proxy that is cut, must find its port free afterwards. On Linux a
    bound socket that never listens reserves it: others that set ``SO_REUSEADDR`` can listen there
    by number, connections are refused while nobody does, and the system gives it to nobody else.
    Elsewhere two sockets cannot share a port like this, and it is only chosen.

    Args:
        host: an address of this machine.
    """

    def __init__(self, host: str = LOOPBACK) -> None:
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind((host, 0))
        self.address = Address(*self._holder.getsockname())
        if not sys.platform.startswith("linux"):
            self._holder.close()

    def listen(self) -> socket.socket:
        """Listen on the port: a new non-blocking socket, which the caller closes."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(self.address)
            listener.listen(128)
            listener.settimeout(0)
        except OSError:
            listener.close()
            raise
        return listener

    def close(self) -> None:
        """Give the port back."""
        self._holder.close()
