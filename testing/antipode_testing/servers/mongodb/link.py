"""The links between the members of a MongoDB replica set, apart from those of clients.

Members know each other by the addresses of proxies, and clients that discover the set are given the
same addresses. A lag that clients felt would not be replication lag, so a proxy reads the first
message of each connection: with test commands enabled a member says there who it is, which is what
MongoDB's own network simulator (``mongobridge``) goes by. Clients never do, and pass undisturbed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode_testing._address import LOOPBACK
from antipode_testing._proxy import LagProxy
from antipode_testing._relay import Flow, Relay

if TYPE_CHECKING:
    import socket

# What a message begins with.
LENGTH_BYTES = 4
# A BSON string called hostInfo: its type, its name, its length, and the text.
HOST_INFO = re.compile(rb"\x02hostInfo\x00....([^\x00]+)\x00", re.DOTALL)


@dataclass
class Faults:
    """What a test has done to one member's links.

    Attributes:
        lag_ms: milliseconds that everything from another member to this one takes.
        paused: whether nothing passes between it and the others.
        cut: whether it is partitioned from the others.
    """

    lag_ms: float = 0.0
    paused: bool = False
    cut: bool = False


@dataclass
class Link:
    """Connections that one member opens to another: both directions, and whether it may."""

    requests: Flow = field(default_factory=Flow)
    responses: Flow = field(default_factory=Flow)
    cut: bool = False


class MemberProxy(LagProxy):
    """The address under which a member is known; a link for each member that connects to it."""

    def __init__(self, upstream: tuple[str, int], *, host: str = LOOPBACK) -> None:
        self._undecided = Flow(paused=True)
        self._links: dict[str, Link] = {}
        super().__init__(upstream, host=host)

    def shape(self, opener: str, mine: Faults, theirs: Faults) -> None:
        """Apply what was done to this member and to the one that connects to it.

        Args:
            opener: how that one calls itself.
            mine: the faults of the member behind this proxy.
            theirs: the faults of the other one.
        """

        def change() -> None:
            link = self._links.setdefault(opener, Link())
            link.requests.lag_s = mine.lag_ms / 1000
            link.responses.lag_s = theirs.lag_ms / 1000
            link.requests.paused = link.responses.paused = mine.paused or theirs.paused
            link.cut = mine.cut or theirs.cut
            for relay in self._unique_relays() if link.cut else ():
                if relay.requests.flow is link.requests:
                    self._drop(relay)

        self._call(change)

    def _relay(self, client: socket.socket, upstream: socket.socket) -> Relay:
        return Relay(client, upstream, self._undecided, self._responses)

    def _advance(self, relay: Relay, sock: socket.socket, events: int) -> None:
        super()._advance(relay, sock, events)
        if relay.requests.flow is self._undecided and relay.client in self._relays:
            self._decide(relay)

    def _decide(self, relay: Relay) -> None:
        """Find out from a connection's first message whose it is, once that is there."""
        first = relay.requests.peek()
        length = first[:LENGTH_BYTES]
        whole = len(length) == LENGTH_BYTES and len(first) >= int.from_bytes(length, "little")
        if not whole and not relay.requests.ended:
            return
        found = HOST_INFO.search(first)
        if found is None:
            relay.requests.flow = self._requests
            return
        link = self._links.setdefault(found[1].decode(), Link())
        relay.requests.flow, relay.responses.flow = link.requests, link.responses
        if link.cut:
            self._drop(relay)
