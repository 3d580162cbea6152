"""Servers as containers of a local engine, on the host's loopback interface.

Containers share the host's network: like native servers they listen on 127.0.0.1 alone, on ports
that the system chose, and reach the proxies of a topology there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import ConfigurationError
from antipode_testing._address import LOOPBACK
from antipode_testing._proxy import LagProxy
from antipode_testing.servers.server import reserving, started

from .recipes import PORTS, recipe
from .server import ContainerServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address, ReservedPort
    from antipode_testing._topology import Server


class ContainerProvider:
    """Runs servers from images, the official ones by default.

    The image of a store is named by the environment variable ``ANTIPODE_<STORE>_IMAGE``, such as
    ``ANTIPODE_REDIS_IMAGE``. The engine must be of this machine, and Linux's: containers use the
    host's network.
    """

    host = LOOPBACK

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server; see `Provider.start`.

        Raises:
            ClientMissing: testcontainers is not installed.
        """
        if store not in PORTS:
            raise ConfigurationError(f"no container for the store {store!r}")

        def build(ports: dict[str, ReservedPort]) -> ContainerServer:
            addresses = {key: port.address for key, port in ports.items()}
            made = recipe(store, name, config, addresses)
            return ContainerServer(f"{store}-{name}", addresses, made, ports.values())

        return started(reserving(PORTS[store], build))

    def link(self, upstream: Address) -> LagProxy:
        """A proxy on loopback; see `Provider.link`."""
        return LagProxy(upstream)
