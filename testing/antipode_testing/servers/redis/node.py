"""One Redis server of a topology, with the proxy it copies through and a client to ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ClientMissing
from antipode_testing._wait import wait_until
from antipode_testing.servers.node import FedNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

CLIENT_TIMEOUT_S = 5.0


@dataclass
class RedisNode(FedNode):
    """A server of Redis.

    Attributes:
        client: a redis-py client of our own.
    """

    client: Any

    def info(self, section: str = "replication") -> dict[str, Any]:
        """Ask for one section of ``INFO``."""
        self._require_awake()
        return dict(self.client.info(section))

    def settings(self, *names: str) -> dict[str, str]:
        """Read configuration values."""
        return {name: str(self.client.config_get(name)[name]) for name in names}

    def apply(self, settings: Mapping[str, str]) -> None:
        """Change configuration values."""
        for name, value in settings.items():
            self.client.config_set(name, value)

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address."""
        super().restart(graceful=graceful, wipe=wipe)
        self.client.connection_pool.disconnect()

    def full_syncs(self) -> int:
        """How many full synchronisations this server has served as a primary."""
        return int(self.info("stats")["sync_full"])

    def position(self) -> int:
        """The end of its replication stream."""
        return int(self.info()["master_repl_offset"])

    def await_following(self, primary: RedisNode, *, timeout_s: float) -> None:
        """Return once this replica follows that very primary, by its own and the other's word.

        One word is not enough: the link to an old primary appears up until the cut is noticed.
        """

        def follows() -> bool:
            mine, theirs = self.info(), primary.info()
            return (
                mine.get("master_link_status") == "up"
                and mine["master_replid"] == theirs["master_replid"]
                and any(self._is_this(value) for value in theirs.values())
            )

        what = f"the replica at {self.address} to follow {primary.address}"
        wait_until(follows, what=what, timeout_s=timeout_s)

    def await_position(self, position: int, *, timeout_s: float) -> None:
        """Return once this replica has applied its primary's history up to an offset."""
        wait_until(
            lambda: int(self.info().get("slave_repl_offset", -1)) >= position,
            what=f"the replica at {self.address} to reach offset {position}",
            timeout_s=timeout_s,
        )

    def await_promotion(self, *, timeout_s: float) -> None:
        """Return once this replica is a primary."""
        wait_until(
            lambda: self.info()["role"] == "master",
            what=f"the promotion of {self.address}",
            timeout_s=timeout_s,
        )

    def close(self) -> None:
        """Stop the server and its proxy."""
        self.client.close()
        super().close()

    def _is_this(self, value: object) -> bool:
        """Whether an entry of a primary's ``INFO`` is this replica, ready."""
        return (
            isinstance(value, dict)
            and value.get("port") == self.address.port
            and value.get("state") == "online"
        )


def launch(
    provider: Provider, name: str, config: Mapping[str, str], feed: LagProxy | None
) -> RedisNode:
    """Start one server that copies through a proxy, or a primary without one.

    Raises:
        ClientMissing: redis-py is not installed.
    """
    try:
        import redis
    except ImportError as error:
        raise ClientMissing(
            "a Redis topology needs redis-py: pip install antipode-xcy[redis]"
        ) from error
    settings = dict(config)
    if feed is not None:
        settings["replicaof"] = f"{feed.address.host} {feed.address.port}"
    server = provider.start("redis", name, settings)
    client = redis.Redis(
        host=server.address.host,
        port=server.address.port,
        socket_timeout=CLIENT_TIMEOUT_S,
        decode_responses=True,
    )
    return RedisNode(server, client, feed=feed)
