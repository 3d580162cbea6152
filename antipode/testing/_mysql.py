"""Two regions of MySQL or MariaDB: a primary, and replicas that copy it through a proxy each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from antipode._errors import ConfigurationError

from ._errors import ServerFailed, TopologyTimeout
from ._mysql_node import MySQLNode, launch
from ._provider import default_provider
from ._topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._address import Address
    from ._proxy import LagProxy
    from ._topology import Provider

# A replica tries to connect once a second, and a handshake takes several lags.
LINK_TIMEOUT_S = 30.0


class _SQLTopology(Topology):
    """What MySQL and MariaDB have in common; see `MySQLTopology`."""

    user: ClassVar[str] = "app"
    password: ClassVar[str] = "app"  # noqa: S105 - of servers on loopback that live for a test
    database: ClassVar[str] = "app"

    def __init__(
        self,
        replicas: int = 1,
        *,
        config: Mapping[str, str] | None = None,
        replication_client: bool = False,
        provider: Provider | None = None,
    ) -> None:
        if replicas < 1:
            raise ConfigurationError(f"a topology needs at least one replica, not {replicas}")
        self._count = replicas
        self._config = dict(config or {})
        self._replication_client = replication_client
        self._provider = provider or default_provider()
        # The first node is the first primary; replica i is the node after it.
        self._nodes: list[MySQLNode] = []
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

    def url(self, address: Address | None = None, *, driver: str = "mysql+pymysql") -> str:
        """The address of a server, the primary by default, as SQLAlchemy takes it."""
        place = address or self.primary
        return f"{driver}://{self.user}:{self.password}@{place}/{self.database}"

    def link(self, replica: int = 0) -> LagProxy:
        """The proxy through which a replica copies, for its counters and finer faults."""
        return self._feeds(replica)[0]

    def execute(
        self, statement: str, *args: object, replica: int | None = None
    ) -> list[dict[str, Any]]:
        """Run a statement as the administrator, on the primary or on a replica.

        Returns:
            The rows, by the names of their columns.
        """
        node = self._primary_node if replica is None else self._replica(replica)
        return node.execute(statement, *args)

    def start(self) -> None:
        """Start all servers; return once every replica is connected to its primary."""
        if self._nodes:
            return
        self._leader, self._former = 0, None
        self._touched = self._rebuild = False
        self._launch("primary", None)
        self._primary_node.lead()
        for number in range(self._count):
            feed = self._provider.link(self.primary)
            try:
                self._launch(f"replica-{number}", feed)
            except BaseException:
                feed.close()
                raise
            self._nodes[-1].follow()
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
            except (ServerFailed, TopologyTimeout):
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

    def pause_applier(self, *, replica: int | None = None) -> None:
        """Let replicas receive what the primary writes, and apply none of it."""
        for node in self._copying(replica):
            node.hold_applier()

    def resume_applier(self, *, replica: int | None = None) -> None:
        """Let replicas apply what they received, and what comes."""
        for node in self._copying(replica):
            node.release_applier()

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
        """Return once replicas have applied everything that the primary has at this moment.

        Replicas that follow another server than the primary are not waited for.

        Raises:
            ServerFailed: a replica stopped copying, and why.
            TopologyTimeout: they did not get it in time.
        """
        nodes = self._nodes if replica is None else [self._replica(replica)]
        followers = [node for node in nodes if node.feed and node.feed.upstream == self.primary]
        for node in followers:
            node.await_following(self._primary_node, timeout_s=timeout_s)
        wanted = self._primary_node.position()
        for node in followers:
            node.await_position(wanted, timeout_s=timeout_s)

    def suspend_primary(self) -> None:
        """Freeze the primary's process: its clients' connections stay and nothing answers."""
        self._touched = True
        self._primary_node.suspend()

    def resume_primary(self) -> None:
        """Let a suspended primary run again."""
        self._primary_node.resume()

    def suspend_replica(self, replica: int = 0) -> None:
        """Freeze a replica's process: its clients' connections stay and nothing answers."""
        self._touched = True
        self._replica(replica).suspend()

    def resume_replica(self, replica: int = 0) -> None:
        """Let a suspended replica run again."""
        self._replica(replica).resume()

    def config(self, settings: Mapping[str, str | int], *, replica: int | None = None) -> None:
        """``SET GLOBAL`` on the primary, or on a replica; `reset` restores the values.

        A session has the values that were global when it began.
        """
        self._touched = True
        (self._primary_node if replica is None else self._replica(replica)).change(settings)

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
        self._primary_node.server.kill()

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
        node = self._replica(replica)
        if node is self._primary_node:
            raise ConfigurationError(f"replica {replica} is the primary already")
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

        Where it has more than the new primary has, it is built anew: what it alone had is lost.
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
        """Build the primary before the last `failover` anew, as a replica.

        What it alone had is lost, and its clients are disconnected.
        """
        if self._former is None:
            raise ConfigurationError("no failover happened: there is no old primary to demote")
        node = self._node(self._former)
        if node.feed is None:
            node.feed = self._provider.link(self.primary)
        else:
            node.feed.retarget(self.primary)
            node.feed.heal()
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

    @property
    def _primary_node(self) -> MySQLNode:
        return self._node(self._leader)

    def _node(self, index: int) -> MySQLNode:
        if not self._nodes:
            raise ConfigurationError("the topology does not run: use it as a context manager")
        return self._nodes[index]

    def _replica(self, number: int) -> MySQLNode:
        if not 0 <= number < self._count:
            raise ConfigurationError(f"there is no replica {number}, of {self._count}")
        return self._node(number + 1)

    def _feeds(self, replica: int | None) -> list[LagProxy]:
        self._touched = True
        self._node(0)
        nodes = self._nodes if replica is None else [self._replica(replica)]
        return [node.feed for node in nodes if node.feed is not None]

    def _copying(self, replica: int | None) -> list[MySQLNode]:
        self._touched = True
        self._node(0)
        nodes = self._nodes if replica is None else [self._replica(replica)]
        return [node for node in nodes if node.feed and node is not self._primary_node]

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        number = len(self._nodes) + 1
        node = launch(self._provider, self.store, name, number, config=self._config, feed=feed)
        self._nodes.append(node)
        node.prepare(self.database, self._accounts(node))

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

    def _undo(self) -> None:
        for node in self._nodes:
            if node.suspended:
                node.resume()
            node.restore()
        for feed in self._feeds(None):
            feed.set_lag(0, request_lag_ms=0)
            feed.resume()
            feed.heal()
        for node in self._copying(None):
            if node.applier_held:
                node.release_applier()
            node.reconnect()
        self.wait_replicated()
        self._touched = False


class MySQLTopology(_SQLTopology):
    """A MySQL primary and replicas of it; replica ``i`` keeps its number over every fault.

    Replication is by GTID and row. Lag is replication lag alone. A service logs in as `user` with
    `password` to `database`, of which it may do everything, and nothing else. After a failover,
    and after a restart, ask for the addresses again.

    Args:
        replicas: how many, at least one.
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
        config: further options of every server, by their long names without dashes before.
        replication_client: whether the service's account may ask for the state of replication.
        provider: what runs the servers; None: what ``ANTIPODE_PROVIDER`` says, or this machine.

    Raises:
        ClientMissing: on `start`, if PyMySQL is not installed.
        ServerMissing: on `start`, if there is no ``mariadbd``.
    """

    store: ClassVar[str] = "mariadb"
