"""Topologies of one primary and numbered replicas: what their stores have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from antipode import ConfigurationError
from antipode_testing._errors import ServerFailed, TopologyTimeout
from antipode_testing._provider import default_provider
from antipode_testing._topology import ServerTopology

from .node import FedNode, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

# A replica searches for its primary once a second, and a handshake takes several lags.
LINK_TIMEOUT_S = 30.0

N = TypeVar("N", bound=Node)
F = TypeVar("F", bound=FedNode)


class ReplicatedTopology(ServerTopology, Generic[N]):
    """A primary and replicas of it; replica ``i`` keeps its number over every fault."""

    def __init__(
        self,
        replicas: int,
        config: Mapping[str, str] | None,
        provider: Provider | None,
        lag_ms: float,
    ) -> None:
        self._lag_from(lag_ms)
        if replicas < 1:
            raise ConfigurationError(f"a topology needs at least one replica, not {replicas}")
        self._count = replicas
        self._config = dict(config or {})
        self._provider = provider or default_provider()
        # The first node is the first primary; replica i is the node after it.
        self._nodes: list[N] = []
        self._leader = 0
        self._former: int | None = None
        self._touched = self._rebuild = False

    @property
    def primary(self) -> Address:
        """The server that takes writes now."""
        return self._primary_node.address

    @property
    def replica(self) -> Address:
        """The first replica that is not the primary now; without one, the old primary."""
        others = [*range(1, len(self._nodes)), 0]
        return self._node(next((i for i in others if i != self._leader), 0)).address

    @property
    def replicas(self) -> tuple[Address, ...]:
        """All replicas by number, a promoted one included."""
        return tuple(node.address for node in self._nodes[1:])

    @property
    def closed(self) -> bool:
        """Whether no server of this topology runs any more."""
        return not self._nodes

    def start(self) -> None:
        """Start all servers; return once every replica has copied the primary."""
        if self._nodes:
            return
        self._leader, self._former = 0, None
        self._touched = self._rebuild = False
        self._build()
        self.wait_replicated()
        self._lag_as_begun()

    def close(self) -> None:
        """Stop every server and remove its data. Idempotent."""
        while self._nodes:
            self._nodes.pop().close()

    def reset(self) -> None:
        """Undo lag, faults and `config` for the next test; keep the data.

        After a failover, or where a fault cannot be undone, the servers are built again.
        """
        if not self._rebuild and all(node.server.running for node in self._nodes):
            if not self._touched:
                return
            try:
                self._undo()
            except (ServerFailed, TopologyTimeout):
                pass  # someone else changed who follows whom
            else:
                self._lag_as_begun()
                return
        self.close()
        self.start()

    def suspend_replica(self, replica: int = 0) -> None:
        """Freeze a replica's process: its clients' connections stay and nothing answers."""
        self._touched = True
        self._replica(replica).suspend()

    def resume_replica(self, replica: int = 0) -> None:
        """Let a suspended replica run again."""
        self._replica(replica).resume()

    def kill_primary(self) -> None:
        """Kill the primary's process, as before a `failover`."""
        self._primary_node.server.kill()

    @abstractmethod
    def wait_replicated(
        self, *, replica: int | None = None, timeout_s: float = LINK_TIMEOUT_S
    ) -> None:
        """Return once replicas have applied everything that the primary has at this moment."""

    @abstractmethod
    def _build(self) -> None:
        """Start all servers, the primary first."""

    @abstractmethod
    def _repair(self) -> None:
        """Undo what was done to replication."""

    @property
    def _primary_node(self) -> N:
        return self._node(self._leader)

    def _node(self, index: int) -> N:
        if not self._nodes:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._nodes[index]

    def _replica(self, number: int) -> N:
        if not 0 <= number < self._count:
            raise ConfigurationError(f"there is no replica {number}, of {self._count}")
        return self._node(number + 1)

    def _primary_or(self, replica: int | None) -> N:
        return self._primary_node if replica is None else self._replica(replica)

    def _candidate(self, replica: int) -> N:
        """A replica that may be promoted, for it is not the primary."""
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary already")
        return node

    def _change(self, settings: Mapping[str, Any], replica: int | None) -> None:
        """Change settings of the primary, or of a replica, until `reset`."""
        self._touched = True
        self._primary_or(replica).change(settings)

    def _undo(self) -> None:
        for node in self._nodes:
            if node.suspended:
                node.resume()
            node.restore()
        self._repair()
        self.wait_replicated()
        self._touched = False


class FedTopology(ReplicatedTopology[F]):
    """One whose replicas copy through a proxy each, which carries the lag and the faults."""

    def link(self, replica: int = 0) -> LagProxy:
        """The proxy through which a replica copies, for its counters and finer faults."""
        return self._feeds(replica)[0]

    def set_lag(self, ms: float, *, replica: int | None = None) -> None:
        """Delay what replicas copy by this many milliseconds; of all of them by default."""
        for feed in self._feeds(replica):
            feed.set_lag(ms)

    def pause(self, *, replica: int | None = None) -> None:
        """Hold replication; its connections stay open."""
        for feed in self._feeds(replica):
            feed.pause()

    def resume(self, *, replica: int | None = None) -> None:
        """Let what `pause` held go on."""
        for feed in self._feeds(replica):
            feed.resume()

    def cut(self, *, replica: int | None = None) -> None:
        """Partition replicas from their primary: what is on its way is sent again after `heal`."""
        for feed in self._feeds(replica):
            feed.cut()

    def heal(self, *, replica: int | None = None) -> None:
        """End the partition; a replica connects again automatically, within about a second."""
        for feed in self._feeds(replica):
            feed.heal()

    def wait_replicated(
        self, *, replica: int | None = None, timeout_s: float = LINK_TIMEOUT_S
    ) -> None:
        """Return once replicas have applied everything that the primary has at this moment.

        Replicas that are killed, or follow another server than the primary, are not waited for.

        Raises:
            ServerFailed: a replica of MySQL or MariaDB stopped copying, and why.
            TopologyTimeout: they did not get it in time.
        """
        followers = [
            node
            for node in self._chosen(replica)
            if node.feed and node.feed.upstream == self.primary and node.server.running
        ]
        for node in followers:
            node.await_following(self._primary_node, timeout_s=timeout_s)
        wanted = self._primary_node.position()
        for node in followers:
            node.await_position(wanted, timeout_s=timeout_s)

    @abstractmethod
    def _launch(self, name: str, feed: LagProxy | None) -> None:
        """Add a server: the primary without a feed, or a replica that copies through one."""

    def _build(self) -> None:
        self._launch("primary", None)
        for number in range(self._count):
            feed = self._provider.link(self.primary)
            try:
                self._launch(f"replica-{number}", feed)
            except BaseException:
                feed.close()
                raise

    def _repair(self) -> None:
        for feed in self._feeds(None):
            feed.set_lag(0, request_lag_ms=0)
            feed.resume()
            feed.heal()

    def _chosen(self, replica: int | None) -> list[F]:
        """One replica, or every server."""
        self._node(0)
        return self._nodes if replica is None else [self._replica(replica)]

    def _feeds(self, replica: int | None) -> list[LagProxy]:
        self._touched = True
        return [node.feed for node in self._chosen(replica) if node.feed is not None]

    def _lead_to_primary(self, node: F) -> LagProxy:
        """Have a server's feed lead to the primary, with no fault left but its lag."""
        if node.feed is None:
            node.feed = self._provider.link(self.primary)
        node.feed.retarget(self.primary)
        # What a cut or a pause held back belonged to the link to the old primary.
        node.feed.resume()
        node.feed.heal()
        return node.feed

    def _old_primary(self) -> F:
        """The primary before the last `failover`."""
        if self._former is None:
            raise ConfigurationError("no failover happened: there is no old primary to demote")
        return self._node(self._former)
