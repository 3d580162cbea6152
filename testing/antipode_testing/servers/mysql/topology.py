"""Two regions of MySQL or MariaDB: a primary, and replicas that copy it through a proxy each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode_testing.servers.replicated import LINK_TIMEOUT_S, FedTopology

from .node import MySQLNode, launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider


class _SQLTopology(FedTopology[MySQLNode]):
    """What MySQL and MariaDB have in common; see `MySQLTopology`."""

    user: ClassVar[str] = "app"
    password: ClassVar[str] = "app"  # noqa: S105 - of servers on loopback that live for a test
    database: ClassVar[str] = "app"

    def __init__(
        self,
        replicas: int = 1,
        *,
        lag_ms: float = 0.0,
        config: Mapping[str, str] | None = None,
        replication_client: bool = False,
        provider: Provider | None = None,
    ) -> None:
        super().__init__(replicas, config, provider, lag_ms)
        self._replication_client = replication_client

    def url(self, server: Address | None = None, *, driver: str = "mysql+pymysql") -> str:
        """The URL of *server*, by default the primary, with the account, as SQLAlchemy takes it."""
        place = server or self.primary
        return f"{driver}://{self.user}:{self.password}@{place}/{self.database}"

    def execute(
        self, statement: str, *args: object, replica: int | None = None
    ) -> list[dict[str, Any]]:
        """Run a statement as the administrator, on the primary or on a replica.

        Returns:
            The rows, by the names of their columns.
        """
        return self._primary_or(replica).execute(statement, *args)

    def pause_applier(self, *, replica: int | None = None) -> None:
        """Let replicas receive what the primary writes, and apply none of it."""
        for node in self._copying(replica):
            node.hold_applier()

    def resume_applier(self, *, replica: int | None = None) -> None:
        """Let replicas apply what they received, and what comes."""
        for node in self._copying(replica):
            node.release_applier()

    def suspend_primary(self) -> None:
        """Freeze the primary's process: its clients' connections stay and nothing answers."""
        self._touched = True
        self._primary_node.suspend()

    def resume_primary(self) -> None:
        """Let a suspended primary run again."""
        self._primary_node.resume()

    def config(self, settings: Mapping[str, str | int], *, replica: int | None = None) -> None:
        """``SET GLOBAL`` on the primary, or on a replica; `reset` restores the values.

        A session has the values that were global when it began.
        """
        self._change(settings, replica)

    def restart_primary(self, *, graceful: bool = True) -> None:
        """Restart the primary at its address, with its data; its replicas connect again."""
        self._touched = True
        self._primary_node.restart(graceful=graceful)
        self._primary_node.lead()

    def restart_replica(self, replica: int = 0, *, graceful: bool = True) -> None:
        """Restart a replica at its address, with its data; it goes on where it was."""
        self._touched = True
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: see restart_primary")
        node.restart(graceful=graceful)
        node.start_copying()

    def kill_primary(self) -> None:
        """Kill the primary's process, as before a `failover`."""
        self._primary_node.disconnect()
        super().kill_primary()

    def failover(
        self, *, lose_unreplicated: bool = True, replica: int = 0, repoint: bool = True
    ) -> None:
        """Promote a replica; return when it is the primary.

        What the replica has received it first applies, unless `pause_applier` holds it: then that
        is lost too. An old primary that runs stays up alone. See `demote_old_primary`.

        Args:
            lose_unreplicated: what the replica has not received is lost, and the old primary still
                takes the writes of clients that have not noticed, as after a partition. Otherwise
                the old primary is made read-only, for good, and everything it has is waited for.
            replica: the number of the replica to promote.
            repoint: whether siblings follow the new primary; see `repoint`.
        """
        node = self._candidate(replica)
        self._rebuild = True
        if not lose_unreplicated:
            self._finish_writes(replica)
        assert node.feed is not None
        node.feed.cut()
        node.drain(timeout_s=LINK_TIMEOUT_S)
        node.lead()
        self._former, self._leader = self._leader, replica + 1
        siblings = [i for i in range(self._count) if self._replica(i) is not node]
        for number in siblings if repoint else ():
            if number + 1 != self._former and not self._replica(number).suspended:
                self.repoint(number)

    def repoint(self, replica: int) -> None:
        """Let a sibling follow the promoted replica, through the same lag and faults as before.

        Where it has more than the new primary has, it is built again: what it alone had is lost.
        What it received and did not apply is fetched again.
        """
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: it follows nobody")
        assert node.feed is not None
        self._rebuild = True
        node.execute("STOP REPLICA")
        node.feed.retarget(self.primary)
        if self._primary_node.covers(node.position()):
            node.follow()
        else:
            self._rebuild_node(node)

    def demote_old_primary(self) -> None:
        """Build the primary before the last `failover` again, as a replica.

        What it alone had is lost, and its clients are disconnected.
        """
        node = self._old_primary()
        self._lead_to_primary(node)
        self._rebuild_node(node)
        node.await_following(self._primary_node, timeout_s=LINK_TIMEOUT_S)

    def reseed(self, *, replica: int = 0) -> None:
        """Restart a replica with no data; return once it has copied the primary.

        Its clients are disconnected; a MySQL server then has another ``server_uuid``.
        """
        self._touched = True
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary: it has nobody to copy")
        self._rebuild_node(node)
        self.wait_replicated(replica=replica)

    def _copying(self, replica: int | None) -> list[MySQLNode]:
        self._touched = True
        return [
            node for node in self._chosen(replica) if node.feed and node is not self._primary_node
        ]

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        number = len(self._nodes) + 1
        node = launch(self._provider, self.store, name, number, config=self._config, feed=feed)
        self._nodes.append(node)
        node.prepare(self.database, self._accounts(node))
        if feed is None:
            node.lead()
        else:
            node.follow()

    def _accounts(self, node: MySQLNode) -> list[str]:
        """The account of a service: all of its own database, and nothing of the server."""
        account = f"{self.user}@'%'"
        statements = [
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{self.password}'",
            f"GRANT ALL ON {self.database}.* TO {account}",
        ]
        if self._replication_client:
            statements.append(f"GRANT {node.monitor_grant} ON *.* TO {account}")
        return statements

    def _rebuild_node(self, node: MySQLNode) -> None:
        """Throw a replica's data away, and let it copy whatever its feed leads to.

        It gets a new number in replication: what it wrote under the old one it would not copy.
        """
        node.server_id += len(self._nodes)
        node.restart(graceful=False, wipe=True)
        node.prepare(self.database, self._accounts(node))
        node.applier_held = False
        node.follow()

    def _finish_writes(self, replica: int) -> None:
        """Close the primary to clients' writes and wait for a replica to have all of them."""
        self._primary_node.execute("SET GLOBAL read_only = 1")
        try:
            self.wait_replicated(replica=replica)
        except BaseException:
            self._primary_node.execute("SET GLOBAL read_only = 0")
            raise

    def _repair(self) -> None:
        super()._repair()
        for node in self._copying(None):
            if node.applier_held:
                node.release_applier()
            node.reconnect()


class MySQLTopology(_SQLTopology):
    """A MySQL primary and replicas of it; replica ``i`` keeps its number over every fault.

    Replication is by GTID and row. Lag is replication lag alone. A service logs in as `user` with
    `password` to `database`, of which it may do everything, and nothing else. After a failover,
    and after a restart, ask for the addresses again.

    Args:
        replicas: how many, at least one.
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further options of every server, by their long names without dashes before, such
            as ``{"session-track-gtids": "OFF"}``.
        replication_client: whether the service's account may ask for the state of replication.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if PyMySQL is not installed.
        ServerMissing: on `start`, if there is no ``mysqld`` of MySQL's own.
    """

    store: ClassVar[str] = "mysql"


class MariaDBTopology(_SQLTopology):
    """A MariaDB primary and replicas of it, with everything that `MySQLTopology` has.

    Replication is by GTID and row, in strict mode: the log of a replica goes on where the
    primary's was, or replication stops.

    Args:
        replicas: how many, at least one.
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further options of every server, by their long names without dashes before.
        replication_client: whether the service's account may ask for the state of replication.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if PyMySQL is not installed.
        ServerMissing: on `start`, if there is no ``mariadbd``.
    """

    store: ClassVar[str] = "mariadb"
