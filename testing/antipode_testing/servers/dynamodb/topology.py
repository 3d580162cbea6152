"""Two regions of DynamoDB: emulators, and what copies each one's stream to the other."""

from __future__ import annotations

from typing import ClassVar

from antipode import ConfigurationError
from antipode_testing.servers.aws_json import JsonApi
from antipode_testing.servers.emulated import EmulatedTopology

from .replicator import Region, Replicator

#: Where records of promises are, unless a shim is told otherwise.
PROMISES = "antipode_promises"
#: A table that every topology has: its partition key is the string ``id``.
TABLE = "posts"


class DynamoDBTopology(EmulatedTopology):
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
    services: ClassVar[str] = "dynamodb,dynamodbstreams"
    no_failover: ClassVar[str] = (
        "global tables of DynamoDB have no primary: clients of either region may write"
    )

    _replicator: Replicator | None = None

    def _begin(self) -> None:
        servers = [(region, self._start_server(region)) for region in self.regions]
        ends = [Region(region, JsonApi(server.address, region)) for region, server in servers]
        self._replicator = Replicator(*ends)
        for table in (TABLE, PROMISES):
            self.create_table(table, id="S")
        self._replicator.start()

    def close(self) -> None:
        """Stop replication and both emulators. Idempotent."""
        if self._replicator is not None:
            self._replicator.close()
            self._replicator = None
        super().close()

    def _undisturbed(self) -> None:
        self._copies.undisturbed()

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

    def reseed(self) -> None:
        """Throw the second region's items away and copy the first region's."""
        self._copies.copy_anew()

    def forget(self) -> None:
        """Throw the second region's items away, as if they had never come, until `reseed`."""
        self._copies.forget()

    def _settled(self) -> bool:
        return self._copies.settled()

    @property
    def _copies(self) -> Replicator:
        if self._replicator is None:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._replicator
