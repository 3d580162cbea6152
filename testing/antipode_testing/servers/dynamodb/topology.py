"""Two regions of DynamoDB: emulators, and what copies each one's stream to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from antipode import ConfigurationError
from antipode_testing._topology import ServerTopology
from antipode_testing._wait import wait_until
from antipode_testing.servers.aws_json import JsonApi
from antipode_testing.servers.native import NativeProvider

from .replicator import Region, Replicator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._topology import Provider, Server

HOME = "us-east-1"
AWAY = "eu-west-1"
REPLICATION_TIMEOUT_S = 30.0
POLL_S = 0.005
#: A table that every topology has: its partition key is the string ``id``.
TABLE = "posts"


class DynamoDBTopology(ServerTopology):
    """Two regions of global tables, on two emulators (ministack), not on AWS.

    Either region takes writes, which are copied from its stream to the other: the last writer wins.
    Lag delays these copies alone. The emulator's streams have no writes by PartiQL.

    Args:
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further environment variables of both emulators.
        provider: what runs the servers; None: this machine, for an emulator is a Python package.

    Raises:
        ServerMissing: on `start`, if the emulator is not installed.
    """

    store: ClassVar[str] = "dynamodb"
    #: The regions' names, the primary's first.
    regions: ClassVar[tuple[str, str]] = (HOME, AWAY)
    #: What signs requests to the emulators, as clients take it.
    credentials: ClassVar[Mapping[str, str]] = {
        "aws_access_key_id": "AKIAEXAMPLE",
        "aws_secret_access_key": "secret",
    }

    def __init__(
        self,
        *,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        self._lag_from(lag_ms)
        self._config = {"SERVICES": "dynamodb,dynamodbstreams", **(config or {})}
        self._provider = provider or NativeProvider()
        self._servers: dict[str, Server] = {}
        self._replicator: Replicator | None = None

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

    def region(self, server: Address | None = None) -> str:
        """The ``region_name`` of *server*, by default the primary."""
        return AWAY if server == self.replica else HOME

    def start(self) -> None:
        """Start both emulators; return once the table ``posts`` is copied between them."""
        if self._servers:
            return
        for region in self.regions:
            self._servers[region] = self._provider.start(self.store, region, self._config)
        ends = [
            Region(region, JsonApi(server.address, region))
            for region, server in self._servers.items()
        ]
        self._replicator = Replicator(*ends)
        self.create_table(TABLE, id="S")
        self._replicator.start()
        self._lag_as_begun()

    def close(self) -> None:
        """Stop replication and both emulators. Idempotent."""
        if self._replicator is not None:
            self._replicator.close()
            self._replicator = None
        while self._servers:
            self._servers.popitem()[1].close()

    def reset(self) -> None:
        """Undo lag and faults for the next test; tables and items stay."""
        if not all(server.running for server in self._servers.values()):
            self.close()
            self.start()
            return
        self._copies.undisturbed()
        self._lag_as_begun()

    def create_table(self, name: str, **keys: str) -> None:
        """Create a global table in both regions.

        Args:
            name: of the table.
            keys: the types, ``S``, ``N`` or ``B``, of the partition key and then of the sort key.

        Raises:
            ServerFailed: the emulator refused it.
        """
        self._copies.create_table(name, keys)

    def set_lag(self, ms: float) -> None:
        """Delay what one region gets of the other by this many milliseconds."""
        self._copies.lag_s = ms / 1000

    def pause(self) -> None:
        """Hold replication."""
        self._copies.paused = True

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._copies.paused = False

    def cut(self) -> None:
        """Partition the regions: each goes on, and keeps for the other what is written."""
        self._copies.is_cut = True

    def heal(self) -> None:
        """End the partition; where both wrote an item, the last writer wins."""
        self._copies.is_cut = False

    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Refused: either region takes writes at any time.

        Raises:
            ConfigurationError: always.
        """
        del lose_unreplicated
        raise ConfigurationError(
            "global tables of DynamoDB have no primary: clients of either region may write"
        )

    def reseed(self) -> None:
        """Throw the second region's items away and copy the first region's."""
        self._copies.copy_anew()

    def forget(self) -> None:
        """Throw the second region's items away, as if they had never come, until `reseed`."""
        self._copies.forget()

    def wait_replicated(self, *, timeout_s: float = REPLICATION_TIMEOUT_S) -> None:
        """Return once both regions have all that was written before.

        Raises:
            TopologyTimeout: they did not get it in time.
        """
        wait_until(
            self._copies.settled,
            what="the regions to have each other's writes",
            timeout_s=timeout_s,
            interval_s=POLL_S,
        )

    @property
    def _copies(self) -> Replicator:
        if self._replicator is None:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._replicator

    def _server(self, region: str) -> Server:
        if region not in self._servers:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._servers[region]
