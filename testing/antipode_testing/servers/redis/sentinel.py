"""A Redis primary and its replicas under the eyes of Sentinels, which fail over automatically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode_testing._address import Address
from antipode_testing._process import ServerProcess, find_executable
from antipode_testing._wait import wait_until
from antipode_testing.servers.replicated import LINK_TIMEOUT_S
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving, started

from .node import CLIENT_TIMEOUT_S
from .topology import RedisTopology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import ReservedPort

    from .node import RedisNode

#: Long enough for a busy machine: a server that only got no time to answer is not down.
DOWN_AFTER_MS = 3_000
#: One Sentinel after the other notices, and the first one's word is enough to start a vote: who
#: stands against nobody needs no second ballot.
STAGGER_MS = 700
#: ``failover-timeout`` while they fail over: a vote without a majority is repeated after twice it.
VOTE_MS = 4_000
FAILOVER_TIMEOUT_S = 60.0
#: How often Sentinels ask; their own periods would take 10 s to notice. While a primary is down
#: they ask replicas once a second, and choose none that was silent for five ``ping``.
PERIODS_MS = {"info": 200, "ping": 500, "ask": 100}
BRISK_MS = 100
#: How often while they meet or fail over: after four periods they undo a promotion that is news to
#: them, and have replicas copy from the primary's own address.
WARY_MS = 2_000
#: Otherwise: for as long as either lasts they leave replicas alone that copy from elsewhere than
#: the primary's own address, as ours do through their proxies.
CALM_MS = 3_600_000


class RedisSentinelTopology(RedisTopology):
    """A `RedisTopology` whose primary is chosen by real Sentinel processes.

    Clients come from ``redis.sentinel.Sentinel(topology.sentinels)``, by ``master_for`` and
    ``slave_for`` of ``topology.service``.

    Args:
        replicas: how many, at least one.
        sentinels: how many; more than half of them must agree.
        appendonly: keep an append-only file.
        config: further settings of every server, by their names in ``redis.conf``.

    Raises:
        ClientMissing: on `start`, if redis-py is not installed.
        ServerMissing: on `start`, if there is no ``redis-server``.
    """

    service = "antipode"

    def __init__(
        self,
        replicas: int = 2,
        *,
        sentinels: int = 3,
        lag_ms: float = 0.0,
        appendonly: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> None:
        if sentinels < 1:
            raise ConfigurationError(f"a topology needs at least one Sentinel, not {sentinels}")
        super().__init__(replicas, lag_ms=lag_ms, appendonly=appendonly, config=config)
        self._watching = sentinels
        self._sentinels: list[SentinelNode] = []

    @property
    def sentinels(self) -> tuple[Address, ...]:
        """Where the Sentinels listen."""
        return tuple(node.server.address for node in self._sentinels)

    def start(self) -> None:
        """Start all servers; return once the Sentinels know each other and every replica."""
        if self._nodes:
            return
        super().start()
        for number in range(self._watching):
            self._sentinels.append(watch(self.service, number, self.primary))
        wait_until(self._acquainted, what="the Sentinels to meet", timeout_s=LINK_TIMEOUT_S)
        self._publish_every(CALM_MS)
        self._copy_through_proxies(LINK_TIMEOUT_S)
        self._lag_as_begun()

    def close(self) -> None:
        """Stop every server and remove its data. Idempotent."""
        while self._sentinels:
            self._sentinels.pop().close()
        super().close()

    def reset(self) -> None:
        """Undo lag, faults and `config`; after a failover the servers are built again."""
        if not all(node.server.running for node in self._sentinels):
            self._rebuild = True
        for node in self._running_sentinels():
            node.server.resume_process()
        super().reset()

    def kill_sentinel(self, number: int) -> None:
        """Kill one Sentinel's process."""
        self._sentinels[number].server.kill()

    def suspend_sentinel(self, number: int) -> None:
        """Freeze one Sentinel: connections stay and nothing answers; `reset` lets it run again."""
        self._sentinels[number].server.suspend()

    def failover(self, *, lose_unreplicated: bool = True, replica: int = 0) -> None:
        """Ask a Sentinel to fail over; return when all agree and every replica follows.

        The old primary becomes a replica; what it alone had is lost.

        Args:
            lose_unreplicated: what the replica has not received is lost. Otherwise the old primary
                is closed to writes and everything it has is waited for.
            replica: the number of the replica that the Sentinels may choose.
        """
        node = self._candidate(replica)
        self._prefer(node)
        wait_until(
            lambda: all(
                each.eligible(self.service) == [node.address] for each in self._running_sentinels()
            ),
            what=f"the Sentinels to hear of {node.address}",
            timeout_s=LINK_TIMEOUT_S,
        )
        self._time_out_after(VOTE_MS)
        if lose_unreplicated:
            self.cut(replica=replica)
            self._fail_over(node)
        else:
            with self._writes_paused():
                self.wait_replicated(replica=replica)
                self._fail_over(node)
        self.await_failover()
        self._prefer(None)

    def await_failover(self, *, timeout_s: float = FAILOVER_TIMEOUT_S) -> None:
        """Return once the Sentinels agree on another primary and every server follows it.

        For after `kill_primary`: nothing is asked of the Sentinels, they notice on their own.
        Replicas then copy through their proxies again.

        Raises:
            TopologyTimeout: they did not choose in time.
        """
        self._rebuild = True
        self._time_out_after(VOTE_MS)
        self._publish_every(WARY_MS)
        wait_until(self._agreed, what="the Sentinels to fail over", timeout_s=timeout_s)
        self._publish_every(BRISK_MS)
        wait_until(self._followed, what="an end of the old primary", timeout_s=timeout_s)
        self._time_out_after(CALM_MS)
        self._publish_every(CALM_MS)
        chosen = self._sentinels_say().pop()
        self._former = self._leader
        self._leader = next(i for i, node in enumerate(self._nodes) if node.address == chosen)
        self._copy_through_proxies(timeout_s)

    def _copy_through_proxies(self, timeout_s: float) -> None:
        """Undo what Sentinels corrected: each replica copies through its own proxy again."""
        for node in self._nodes:
            if node is self._primary_node or not node.server.running or node.feed is None:
                continue
            place = self._lead_to_primary(node).address
            if node.info().get("master_port") != place.port:
                node.client.replicaof(*place)
            node.await_following(self._primary_node, timeout_s=timeout_s)

    def _prefer(self, node: RedisNode | None) -> None:
        """Leave Sentinels one replica to choose, or all of them again."""
        for other in self._nodes:
            if other.server.running:
                other.apply({"replica-priority": "100" if node is None or node is other else "0"})

    def _fail_over(self, node: RedisNode) -> None:
        def told() -> bool:
            import redis

            try:
                self._sentinels[0].ask("FAILOVER", self.service)
            except redis.ResponseError:
                # It has no word yet of a replica that may be chosen, or is at it already.
                return bool(node.info()["role"] == "master")
            return True

        wait_until(told, what="a Sentinel to fail over", timeout_s=LINK_TIMEOUT_S)
        node.await_promotion(timeout_s=LINK_TIMEOUT_S)

    def _running_sentinels(self) -> list[SentinelNode]:
        return [node for node in self._sentinels if node.server.running]

    def _sentinels_say(self) -> set[Address]:
        return {node.primary(self.service) for node in self._running_sentinels()}

    def _agreed(self) -> bool:
        """Whether all Sentinels name the same new primary and see no failover any more."""
        said = self._sentinels_say()
        return (
            len(said) == 1
            and self.primary not in said
            and all(node.settled(self.service) for node in self._running_sentinels())
        )

    def _followed(self) -> bool:
        """Whether every server that runs has its part, the old primary too."""
        said = self._sentinels_say()
        return all(
            node.info()["role"] == ("master" if node.address in said else "slave")
            for node in self._nodes
            if node.server.running
        )

    def _acquainted(self) -> bool:
        wanted = str(self._count), str(self._watching - 1)
        states = [node.state(self.service) for node in self._sentinels]
        return all((s["num-slaves"], s["num-other-sentinels"]) == wanted for s in states)

    def _time_out_after(self, ms: int) -> None:
        for node in self._running_sentinels():
            node.ask("SET", self.service, "failover-timeout", str(ms))

    def _publish_every(self, ms: int) -> None:
        for node in self._running_sentinels():
            node.ask("DEBUG", "publish-period", str(ms))


class SentinelNode:
    """One Sentinel, and a client to ask it."""

    def __init__(self, server: NativeServer) -> None:
        import redis

        self.server = server
        host, port = server.address
        self._client: Any = redis.Redis(
            host=host, port=port, socket_timeout=CLIENT_TIMEOUT_S, decode_responses=True
        )

    def ask(self, *command: str) -> Any:
        """The raw reply to a ``SENTINEL`` command."""
        return self._client.execute_command("SENTINEL", *command)

    def state(self, service: str) -> dict[str, str]:
        """What it knows of a service's primary."""
        return _fields(self.ask("MASTER", service))

    def eligible(self, service: str) -> list[Address]:
        """The replicas that it may make the primary."""
        replicas = [_fields(each) for each in self.ask("REPLICAS", service)]
        return [
            Address(each["ip"], int(each["port"]))
            for each in replicas
            if each["slave-priority"] != "0"
        ]

    def primary(self, service: str) -> Address:
        """Where it says that the primary is."""
        state = self.state(service)
        return Address(state["ip"], int(state["port"]))

    def settled(self, service: str) -> bool:
        """Whether it sees a primary that is up, and no failover."""
        return self.state(service)["flags"] == "master"

    def close(self) -> None:
        """Stop it."""
        self._client.close()
        self.server.close()


def _fields(reply: Any) -> dict[str, str]:
    """A reply of pairs, which is a mapping already where the client speaks RESP3."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def watch(service: str, number: int, primary: Address) -> SentinelNode:
    """Start one Sentinel, which keeps what it learns in its own configuration file."""
    executable = find_executable("redis-server", install="apt-get install redis-server")

    noticed_ms = DOWN_AFTER_MS + STAGGER_MS * number

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address = ports["client"].address
        directory = make_directory("sentinel")
        settings = directory / "sentinel.conf"
        settings.write_text(
            f"bind {address.host}\n"
            f"port {address.port}\n"
            f"dir {directory}\n"
            f"sentinel monitor {service} {primary.host} {primary.port} 1\n"
            f"sentinel down-after-milliseconds {service} {noticed_ms}\n"
            f"sentinel failover-timeout {service} {CALM_MS}\n",
            encoding="utf-8",
        )
        process = ServerProcess(
            f"sentinel-{number}",
            [str(executable), str(settings), "--sentinel"],  # which is all that redis-sentinel is
            directory=directory,
            ready=lambda: probe(address, b"PING\r\n", b"+PONG"),
        )
        return NativeServer(directory, ports, process, data=())

    node = SentinelNode(started(reserving(("client",), build)))
    for period, ms in {**PERIODS_MS, "publish": WARY_MS}.items():
        node.ask("DEBUG", f"{period}-period", str(ms))
    return node
