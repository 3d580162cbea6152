"""Two regions of PostgreSQL: a primary, and standbys that stream its log through a proxy each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode_testing.servers.replicated import LINK_TIMEOUT_S, FedTopology

from .node import PostgreSQLNode, launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

#: The right to read histories of timelines, which a database grants.
HISTORIES = "EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)"


class PostgreSQLTopology(FedTopology[PostgreSQLNode]):
    """A PostgreSQL primary and streaming standbys; replica ``i`` keeps its number over every fault.

    Lag is replication lag alone. A service logs in as `user` with `password` to `database`, which
    that user owns; it may read histories of timelines there, and has no other rights. After a
    failover, and after a restart, ask for the addresses again.

    Args:
        replicas: how many standbys, at least one.
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further settings of every server, such as ``{"max_connections": "20"}``.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if psycopg is not installed.
        ServerMissing: on `start`, if there is no PostgreSQL.
    """

    store: ClassVar[str] = "postgresql"
    user: ClassVar[str] = "app"
    password: ClassVar[str] = "app"  # noqa: S105 - of servers on loopback that live for a test
    database: ClassVar[str] = "app"

    def __init__(
        self,
        replicas: int = 1,
        *,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        super().__init__(replicas, config, provider, lag_ms)

    def url(self, server: Address | None = None, *, driver: str = "postgresql") -> str:
        """The URL of *server*, by default the primary, with the account.

        Args:
            server: an address of this topology.
            driver: ``postgresql`` for libpq, ``postgresql+psycopg`` and so on for SQLAlchemy.
        """
        place = server or self.primary
        return f"{driver}://{self.user}:{self.password}@{place}/{self.database}"

    def execute(
        self, statement: str, *args: object, replica: int | None = None
    ) -> list[dict[str, Any]]:
        """Run a statement as the administrator in `database`, on the primary or on a standby.

        Returns:
            The rows, by the names of their columns.
        """
        return self._primary_or(replica).execute(statement, *args, database=self.database)

    def pause_applier(self, *, replica: int | None = None) -> None:
        """Let standbys receive what the primary writes, and replay none of it."""
        for node in self._standbys(replica):
            node.hold_applier()

    def resume_applier(self, *, replica: int | None = None) -> None:
        """Let standbys replay what they received, and what comes."""
        for node in self._standbys(replica):
            node.release_applier()

    def suspend_primary(self) -> None:
        """Freeze the primary's processes: its clients' connections stay and nothing answers."""
        self._touched = True
        self._primary_node.suspend()

    def resume_primary(self) -> None:
        """Let a suspended primary run again."""
        self._primary_node.resume()

    def config(self, settings: Mapping[str, str | int], *, replica: int | None = None) -> None:
        """``ALTER SYSTEM`` and a reload, on the primary or on a standby; `reset` takes it back."""
        self._change(settings, replica)

    def restart_primary(self, *, graceful: bool = True) -> None:
        """Restart the primary at its address, with its data; its standbys connect again."""
        self._touched = True
        self._primary_node.restart(graceful=graceful)

    def restart_replica(self, replica: int = 0, *, graceful: bool = True) -> None:
        """Restart a standby at its address, with its data; it goes on where it was."""
        self._touched = True
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: see restart_primary")
        node.restart(graceful=graceful)

    def kill_primary(self) -> None:
        """Kill the primary's processes, as before a `failover`."""
        self._primary_node.disconnect()
        super().kill_primary()

    def failover(
        self, *, lose_unreplicated: bool = True, replica: int = 0, repoint: bool = True
    ) -> None:
        """Promote a standby, which begins a timeline; return when it is the primary.

        What it has received it replays first. An old primary that runs goes on taking writes: a
        promotion tells it nothing. See `demote_old_primary`.

        Args:
            lose_unreplicated: what the standby has not received is lost. Otherwise the old
                primary's transactions become read-only, and all that it has is waited for.
            replica: the number of the standby to promote.
            repoint: whether siblings follow the new primary; see `repoint`.
        """
        node = self._candidate(replica)
        self._rebuild = True
        if not lose_unreplicated:
            self._primary_node.apply({"default_transaction_read_only": "on"})
            self.wait_replicated(replica=replica)
        assert node.feed is not None
        node.feed.cut()
        node.drain(timeout_s=LINK_TIMEOUT_S)
        node.lead()
        self._former, self._leader = self._leader, replica + 1
        for number in range(self._count) if repoint else ():
            if self._replica(number) is not node and number + 1 != self._former:
                self.repoint(number)

    def repoint(self, replica: int) -> None:
        """Let a sibling follow the promoted standby, through the same lag and faults as before.

        Where it has more than the new primary had at its promotion, it is built again.
        """
        node = self._replica(replica)
        assert node.feed is not None
        node.feed.retarget(self.primary)
        if node.position() > self._primary_node.position():
            node.restart(graceful=False, wipe=True)

    def demote_old_primary(self) -> None:
        """Build the primary before the last `failover` again, as a standby at another address.

        What it alone had is lost, and its clients are disconnected.
        """
        assert self._former is not None
        node = self._old_primary()
        feed = self._lead_to_primary(node)
        node.disconnect()
        node.server.close()
        self._nodes[self._former] = launch(
            self._provider, "demoted", config=self._config, feed=feed
        )
        self._nodes[self._former].await_following(self._primary_node, timeout_s=LINK_TIMEOUT_S)

    def reseed(self, *, replica: int = 0) -> None:
        """Restart a standby with no data; return once it has copied the primary."""
        self._touched = True
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: it has nobody to copy")
        node.restart(graceful=False, wipe=True)
        self.wait_replicated(replica=replica)

    def _standbys(self, replica: int | None) -> list[PostgreSQLNode]:
        self._touched = True
        return [
            node for node in self._chosen(replica) if node.feed and node is not self._primary_node
        ]

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        node = launch(self._provider, name, config=self._config, feed=feed)
        self._nodes.append(node)
        if feed is None:
            node.execute(f"CREATE ROLE {self.user} LOGIN PASSWORD '{self.password}'")
            node.execute(f"CREATE DATABASE {self.database} OWNER {self.user}")
            node.execute(f"GRANT {HISTORIES} TO {self.user}", database=self.database)

    def _repair(self) -> None:
        super()._repair()
        for node in self._standbys(None):
            node.release_applier()
