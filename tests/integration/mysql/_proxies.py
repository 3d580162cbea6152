"""What stands between a client and several servers, as a deployment's balancers and proxies do."""

from __future__ import annotations

import itertools

from antipode.testing import Address, LagProxy


class Balancer(LagProxy):
    """A TCP balancer: each new connection goes to the next server, and stays there."""

    def __init__(self, *servers: Address) -> None:
        self._turns = itertools.cycle(servers)
        super().__init__(servers[0])

    def _accept(self) -> None:
        self._upstream = Address(*next(self._turns))
        super()._accept()
