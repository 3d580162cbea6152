"""What makes copies late: the stream of one cluster's changes, and nothing else.

Whoever copies reads that stream, and asks the same server for what changed, each by a connection of
its own. A lag of all of them would be added several times to each copy, and bound how many there
can be in a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_testing._proxy import LagProxy
from antipode_testing._relay import Flow, Relay

if TYPE_CHECKING:
    import socket

#: ``/filer_pb.SeaweedFiler/SubscribeMetadata``, in the code of HTTP/2 (RFC 7541, appendix B), as
#: the first request of a connection has it.
SUBSCRIBES = bytes.fromhex("6253505b22ae35f7147e0a59309a82d8c6eb63412c3465d0548e41a47f")


class ChangesProxy(LagProxy):
    """To a filer, by gRPC: its lag is that of connections that read the stream of changes."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._prompt = Flow()
        super().__init__(upstream)

    def _relay(self, client: socket.socket, upstream: socket.socket) -> Relay:
        return Relay(client, upstream, self._requests, self._prompt)

    def _advance(self, relay: Relay, sock: socket.socket, events: int) -> None:
        super()._advance(relay, sock, events)
        if SUBSCRIBES in relay.requests.peek():
            relay.responses.flow = self._responses
