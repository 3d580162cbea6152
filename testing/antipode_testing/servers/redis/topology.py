"""Two regions of Redis: a primary, and replicas that copy it through a proxy each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal

from antipode import ConfigurationError
from antipode_testing._wait import wait_until
from antipode_testing.servers.replicated import LINK_TIMEOUT_S, FedTopology

from .node import RedisNode, launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

SMALLEST_BACKLOG = "16384"
NOISE_BYTES = 65_536
NOISE_MESSAGES = 64


class RedisTopology(FedTopology[RedisNode]):
    """A Redis primary and replicas of it; replica ``i`` keeps its number over every fault.

    Lag is replication lag alone. Without ``appendonly`` nothing is kept on disk.

    Args:
        replicas: how many, at least one.
        lag_ms: the replication lag to begin with, and to return to at `reset`.
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
        lag_ms: float = 0.0,
        appendonly: bool = False,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        more = {"appendonly": "yes"} if appendonly else {}
        super().__init__(replicas, {**(config or {}), **more}, provider, lag_ms)

    def url(self, server: Address | None = None) -> str:
        """The URL of *server*, by default the primary, for `redis.Redis.from_url`."""
        return f"redis://{server or self.primary}"

    def config(self, settings: Mapping[str, str], *, replica: int | None = None) -> None:
        """``CONFIG SET`` on the primary, or on a replica; `reset` restores the values."""
        self._change(settings, replica)

    def restart_primary(self, *, graceful: bool = True) -> None:
        """Restart the primary at its address; its replication id changes.

        Its replicas then copy it again, see `wait_replicated`. Without ``appendonly`` it comes back
        empty, and so do they.
        """
        self._touched = True
        self._primary_node.restart(graceful=graceful)

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
        self._candidate(replica)
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
        node = self._old_primary()
        node.client.replicaof(*self._lead_to_primary(node).address)
        node.await_following(self._primary_node, timeout_s=LINK_TIMEOUT_S)

    def resync_sibling(self, replica: int) -> Literal["partial", "full"]:
        """Let a sibling follow the promoted replica; return how it was synchronised.

        After a partial one the sibling keeps its data and continues at its own offset.
        """
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: it follows nobody")
        before = self._primary_node.full_syncs()
        self._lead_to_primary(node)
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

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        self._nodes.append(launch(self._provider, name, self._config, feed))

    def _promote(self, replica: int) -> None:
        node = self._replica(replica)
        self.cut(replica=replica)
        node.client.replicaof("NO", "ONE")
        node.await_promotion(timeout_s=LINK_TIMEOUT_S)
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
