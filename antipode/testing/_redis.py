"""Two regions of Redis: a primary, and replicas that copy it through a proxy each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal

from antipode._errors import ConfigurationError

from ._errors import TopologyTimeout
from ._provider import default_provider
from ._redis_node import RedisNode, launch
from ._topology import Topology
from ._wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ._address import Address
    from ._proxy import LagProxy
    from ._topology import Provider

# A replica looks for its primary once a second, and a handshake takes several lags.
LINK_TIMEOUT_S = 30.0
SMALLEST_BACKLOG = "16384"
NOISE_BYTES = 65_536
NOISE_MESSAGES = 64


class RedisTopology(Topology):
    """A Redis primary and replicas of it; replica ``i`` keeps its number over every fault.

    Lag is replication lag alone. Without ``appendonly`` nothing is kept on disk.

    Args:
        replicas: how many, at least one.
        appendonly: keep an append-only file, so that `restart_primary` keeps the data.
        config: further settings of every server, by their names in ``redis.conf``.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if redis-py is not installed.
        ServerMissing: on `start`, if there is no ``redis-server``.
    """

    store: ClassVar[str] = "redis"

    def __init__(
        self,
        replicas: int = 1,
        *,
        appendonly: bool = False,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        if replicas < 1:
            raise ConfigurationError(f"a topology needs at least one replica, not {replicas}")
        self._count = replicas
        self._config = dict(config or {}) | ({"appendonly": "yes"} if appendonly else {})
        self._provider = provider or default_provider()
        # The first node is the first primary; replica i is the node after it.
        self._nodes: list[RedisNode] = []
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

    def link(self, replica: int = 0) -> LagProxy:
        """The proxy through which a replica copies, for its counters and finer faults."""
        return self._feeds(replica)[0]

    def start(self) -> None:
        """Start all servers; return once every replica has copied its primary."""
        if self._nodes:
            return
        self._leader, self._former = 0, None
        self._touched = self._rebuild = False
        self._nodes.append(launch(self._provider, "primary", self._config, None))
        for number in range(self._count):
            feed = self._provider.link(self.primary)
            try:
                node = launch(self._provider, f"replica-{number}", self._config, feed)
            except BaseException:
                feed.close()
                raise
            self._nodes.append(node)
        self.wait_replicated()

    def close(self) -> None:
        """Stop every server and remove its data. Idempotent."""
        while self._nodes:
            self._nodes.pop().close()

    def reset(self) -> None:
        """Undo lag, faults and `config` for the next test; keep the data.

        After a failover, or where a fault cannot be undone, the servers are built anew.
        """
        if not self._rebuild and all(node.server.running for node in self._nodes):
            if not self._touched:
                return
            try:
                self._undo()
            except TopologyTimeout:
                pass  # someone else changed who follows whom
            else:
                return
        self.close()
        self.start()

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
        """End the partition; a replica connects again by itself, within about a second."""
        for feed in self._feeds(replica):
            feed.heal()

    def wait_replicated(
        self, *, replica: int | None = None, timeout_s: float = LINK_TIMEOUT_S
    ) -> None:
        """Return once replicas have everything that the primary has at this moment.

        Replicas that are killed, or follow another server than the primary, are not waited for.

        Raises:
            TopologyTimeout: they did not get it in time.
        """
        nodes = self._nodes if replica is None else [self._replica(replica)]
        followers = [
            node
            for node in nodes
            if node.feed and node.feed.upstream == self.primary and node.server.running
        ]
        for node in followers:
            node.await_following(self._primary_node, timeout_s=timeout_s)
        wanted = int(self._primary_node.info()["master_repl_offset"])
        for node in followers:
            node.await_offset(wanted, timeout_s=timeout_s)

    def suspend_replica(self, replica: int = 0) -> None:
        """Freeze a replica's process: its clients' connections stay and nothing answers."""
        self._touched = True
        self._replica(replica).suspend()

    def resume_replica(self, replica: int = 0) -> None:
        """Let a suspended replica run again."""
        self._replica(replica).resume()

    def config(self, settings: Mapping[str, str], *, replica: int | None = None) -> None:
        """``CONFIG SET`` on the primary, or on a replica; `reset` restores the values."""
        self._touched = True
        (self._primary_node if replica is None else self._replica(replica)).change(settings)

    def restart_primary(self, *, graceful: bool = True) -> None:
        """Restart the primary at its address; its replication id changes.

        Its replicas then copy it anew, see `wait_replicated`. Without ``appendonly`` it comes back
        empty, and so do they.
        """
        self._touched = True
        self._primary_node.restart(graceful=graceful)

    def kill_primary(self) -> None:
        """Kill the primary's process, as before a `failover`."""
        self._primary_node.server.kill()

    def failover(self, *, lose_unreplicated: bool = True, replica: int = 0) -> None:
        """Promote a replica; return when it is the primary.

        An old primary that runs stays up alone, as after a partition, and still takes the writes
        of clients that have not noticed; siblings still follow it. See `demote_old_primary` and
        `resync_sibling`.

        Args:
            lose_unreplicated: what the replica has not received is lost. Otherwise the old primary
                is closed to writes and everything it has is waited for.
            replica: the number of the replica to promote.
        """
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary already")
        self._rebuild = True
        if lose_unreplicated:
            self._promote(replica)
        else:
            with self._writes_paused():
                self.wait_replicated(replica=replica)
                self._promote(replica)

    def demote_old_primary(self) -> None:
        """Make the primary before the last `failover` a replica; what it alone had is lost.

        Its clients keep their connections.
        """
        if self._former is None:
            raise ConfigurationError("no failover happened: there is no old primary to demote")
        node = self._node(self._former)
        if node.feed is None:
            node.feed = self._provider.link(self.primary)
        self._follow_primary(node)
        node.client.replicaof(*node.feed.address)
        node.await_following(self._primary_node, timeout_s=LINK_TIMEOUT_S)

    def resync_sibling(self, replica: int) -> Literal["partial", "full"]:
        """Let a sibling follow the promoted replica; return how it was synchronised.

        After a partial one the sibling keeps its data and continues at its own offset.
        """
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: it follows nobody")
        before = self._primary_node.full_syncs()
        self._follow_primary(node)
        node.await_following(self._primary_node, timeout_s=LINK_TIMEOUT_S)
        return "full" if self._primary_node.full_syncs() > before else "partial"

    def force_full_resync(self, replica: int = 0) -> None:
        """Make a replica replace its whole data set while its clients stay connected.

        As after a long partition: the primary's backlog has moved past what the replica has. The
        primary keeps its replication id, and no key is touched.
        """
        node, primary = self._replica(replica), self._primary_node
        before, backlog = primary.full_syncs(), primary.settings("repl-backlog-size")
        self.cut(replica=replica)
        primary.apply({"repl-backlog-size": SMALLEST_BACKLOG})
        try:
            self._outrun(primary, int(node.info()["slave_repl_offset"]))
            self.heal(replica=replica)
            wait_until(
                lambda: primary.full_syncs() > before,
                what="a full synchronisation",
                timeout_s=LINK_TIMEOUT_S,
            )
        finally:
            primary.apply(backlog)
        self.wait_replicated(replica=replica)

    def reseed(self, *, replica: int = 0) -> None:
        """Restart a replica with no data; return once it has copied the primary.

        Unlike after `force_full_resync` its clients are disconnected and its ``run_id`` changes.
        """
        self._touched = True
        self._replica(replica).restart(graceful=False, wipe=True)
        self.wait_replicated(replica=replica)

    @property
    def _primary_node(self) -> RedisNode:
        return self._node(self._leader)

    def _node(self, index: int) -> RedisNode:
        if not self._nodes:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._nodes[index]

    def _replica(self, number: int) -> RedisNode:
        if not 0 <= number < self._count:
            raise ConfigurationError(f"there is no replica {number}, of {self._count}")
        return self._node(number + 1)

    def _feeds(self, replica: int | None) -> list[LagProxy]:
        self._touched = True
        self._node(0)
        nodes = self._nodes if replica is None else [self._replica(replica)]
        return [node.feed for node in nodes if node.feed is not None]

    def _follow_primary(self, node: RedisNode) -> None:
        assert node.feed is not None
        node.feed.retarget(self.primary)
        # What a cut or a pause held back belonged to the link to the old primary.
        node.feed.resume()
        node.feed.heal()

    def _promote(self, replica: int) -> None:
        node = self._replica(replica)
        self.cut(replica=replica)
        node.client.replicaof("NO", "ONE")
        wait_until(
            lambda: node.info()["role"] == "master",
            what=f"the promotion of {node.address}",
            timeout_s=LINK_TIMEOUT_S,
        )
        self._former, self._leader = self._leader, replica + 1

    @contextmanager
    def _writes_paused(self) -> Iterator[None]:
        client = self._primary_node.client
        client.client_pause(int(2 * LINK_TIMEOUT_S * 1000), all=False)
        try:
            yield
        finally:
            client.client_unpause()

    def _outrun(self, primary: RedisNode, offset: int) -> None:
        """Fill the primary's backlog until it no longer reaches back to an offset."""
        for _ in range(NOISE_MESSAGES):
            primary.client.publish("antipode:noise", "x" * NOISE_BYTES)
        wait_until(
            lambda: int(primary.info()["repl_backlog_first_byte_offset"]) > offset + 1,
            what="the primary's backlog to move on",
            timeout_s=LINK_TIMEOUT_S,
        )

    def _undo(self) -> None:
        for node in self._nodes:
            if node.suspended:
                node.resume()
            node.restore()
        for feed in self._feeds(None):
            feed.set_lag(0, request_lag_ms=0)
            feed.resume()
            feed.heal()
        self.wait_replicated()
        self._touched = False
