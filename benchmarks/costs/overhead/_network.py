"""A network of half a millisecond, in a process of its own: ``python -m`` this module.

`antipode_testing.LagProxy` would do for longer delays; it waits in whole milliseconds.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from antipode_testing import Address

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def network(upstream: tuple[str, int], *, one_way_s: float) -> Iterator[Address]:
    """An address behind which *upstream* is twice *one_way_s* seconds away."""
    host, port = upstream
    command = [sys.executable, "-m", __name__, host, str(port), str(one_way_s)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        yield Address("127.0.0.1", int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


def _carry(source: socket.socket, target: socket.socket, delay_s: float) -> None:
    """Hand on what comes, each piece late: fit for callers that wait for each reply."""
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            due_s = time.perf_counter() + delay_s
            # A sleep ends up to a tenth of a millisecond late: sleep for most of it, spin the rest.
            time.sleep(max(delay_s - 0.000_15, 0))
            while time.perf_counter() < due_s:
                pass
            target.sendall(piece)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _serve(upstream: Address, delay_s: float) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(upstream)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pair in ((client, server), (server, client)):
            threading.Thread(target=_carry, args=(*pair, delay_s), daemon=True).start()


if __name__ == "__main__":
    # It ends with the program that started it, however that ends.
    threading.Thread(
        target=_serve,
        args=(Address(sys.argv[1], int(sys.argv[2])), float(sys.argv[3])),
        daemon=True,
    ).start()
    sys.stdin.read()
