"""Two regions of a service of AWS, on two emulators: ministack, not AWS."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from antipode import ConfigurationError
from antipode_testing._topology import ServerTopology
from antipode_testing._wait import wait_until

from .ministack import ACCOUNT
from .native import NativeProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._topology import Provider, Server

HOME = "us-east-1"
AWAY = "eu-west-1"
REPLICATION_TIMEOUT_S = 30.0
POLL_S = 0.005


class EmulatedTopology(ServerTopology):
    """What the topologies of AWS's services share: two emulators, and what signs requests to them.

    Args:
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further environment variables of both emulators.
        provider: what runs the servers; None: this machine, for an emulator is a Python package.

    Raises:
        ServerMissing: on `start`, if the emulator is not installed.
    """

    #: The regions' names, the primary's first.
    regions: ClassVar[tuple[str, str]] = (HOME, AWAY)
    #: What signs requests to the emulators, as clients take it.
    credentials: ClassVar[Mapping[str, str]] = ACCOUNT
    #: What the emulators serve, as ministack names it.
    services: ClassVar[str]
    #: Why there is no fail-over.
    no_failover: ClassVar[str]

    def __init__(
        self,
        *,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        self._lag_from(lag_ms)
        self._config = {"SERVICES": self.services, **(config or {})}
        self._provider = provider or NativeProvider()
        self._servers: dict[str, Server] = {}

    @property
    def primary(self) -> Address:
        """The endpoint of the first region, ``us-east-1``."""
        return self._server(HOME).address

    @property
    def replica(self) -> Address:
        """The endpoint of the second region, ``eu-west-1``."""
        return self._server(AWAY).address

    @property
    def closed(self) -> bool:
        """Whether no server of this topology runs any more."""
        return not self._servers

    def url(self, server: Address | None = None) -> str:
        """The ``endpoint_url`` of *server*, by default the primary."""
        return f"http://{server or self.primary}"

    @property
    def urls(self) -> tuple[str, str]:
        """The ``endpoint_url`` of each of `regions`."""
        return self.url(self.primary), self.url(self.replica)

    def start(self) -> None:
        """Start both emulators; return once what is written in one comes to the other."""
        if self._servers:
            return
        self._begin()
        self._lag_as_begun()

    @abstractmethod
    def _begin(self) -> None:
        """Start both emulators, and what copies between them."""

    def _start_server(self, region: str, **config: str) -> Server:
        started = self._provider.start(self.store, region, {**self._config, **config})
        self._servers[region] = started
        return started

    def close(self) -> None:
        """Stop what copies, and both emulators. Idempotent."""
        while self._servers:
            self._servers.popitem()[1].close()

    def reset(self) -> None:
        """Undo lag and faults for the next test; what was written stays."""
        if not all(server.running for server in self._servers.values()):
            self.close()
            self.start()
            return
        self._undisturbed()
        self._lag_as_begun()

    @abstractmethod
    def _undisturbed(self) -> None:
        """Let copies be made at once, as at the beginning."""

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Refused.

        Raises:
            ConfigurationError: always.
        """
        del lose_unreplicated
        raise ConfigurationError(self.no_failover)

    def wait_replicated(self, *, timeout_s: float = REPLICATION_TIMEOUT_S) -> None:
        """Return once the second region has all that was written before.

        Raises:
            TopologyTimeout: it did not get it in time.
        """
        wait_until(
            self._settled,
            what="the regions to have each other's writes",
            timeout_s=timeout_s,
            interval_s=POLL_S,
        )

    @abstractmethod
    def _settled(self) -> bool:
        """Whether nothing that was written before is still to be copied."""

    def _server(self, region: str) -> Server:
        if region not in self._servers:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._servers[region]
