"""One Redis server of a topology, with the proxy it copies through and a client to ask it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode._errors import ConfigurationError

from ._errors import ClientMissing
from ._wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._address import Address
    from ._proxy import LagProxy
    from ._topology import Provider, Server

CLIENT_TIMEOUT_S = 5.0


@dataclass
class RedisNode:
    """A server, and what a test has done to it.

    Attributes:
        server: the process.
        client: a redis-py client of our own.
        feed: the proxy through which it copies; None for a primary that never was a replica.
        suspended: whether its process is frozen.
        changed: settings to restore, with the values they had.
    """

    server: Server
    client: Any
    feed: LagProxy | None = None
    suspended: bool = False
    changed: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def address(self) -> Address:
        """Where clients connect."""
        return self.server.address

    def info(self, section: str = "replication") -> dict[str, Any]:
        """Ask for one section of ``INFO``."""
        if self.suspended:
            raise ConfigurationError(f"the server at {self.address} is suspended: resume it first")
        return dict(self.client.info(section))

    def settings(self, *names: str) -> dict[str, str]:
        """Read configuration values."""
        return {name: str(self.client.config_get(name)[name]) for name in names}

    def apply(self, settings: Mapping[str, str]) -> None:
        """Change configuration values."""
        for name, value in settings.items():
            self.client.config_set(name, value)

    def change(self, settings: Mapping[str, str]) -> None:
        """Change configuration values until `restore`."""
        self.changed = self.settings(*settings) | self.changed
        self.apply(settings)

    def restore(self) -> None:
        """Undo what `change` did."""
        self.apply(self.changed)
        self.changed = {}

    def suspend(self) -> None:
        """Freeze the process."""
        self.server.suspend()
        self.suspended = True

    def resume(self) -> None:
        """Let a frozen process run again."""
        self.server.resume_process()
        self.suspended = False

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address."""
        self.server.restart(graceful=graceful, wipe=wipe)
        self.suspended = False
        self.client.connection_pool.disconnect()

    def full_syncs(self) -> int:
        """How many full synchronisations this server has served as a primary."""
        return int(self.info("stats")["sync_full"])

    def await_following(self, primary: RedisNode, *, timeout_s: float) -> None:
        """Return once this replica follows that very primary, by its own and the other's word.

        One word is not enough: the link to an old primary looks up until the cut is noticed.
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

    def await_offset(self, offset: int, *, timeout_s: float) -> None:
        """Return once this replica has applied its primary's history up to an offset."""
        wait_until(
            lambda: int(self.info().get("slave_repl_offset", -1)) >= offset,
            what=f"the replica at {self.address} to reach offset {offset}",
            timeout_s=timeout_s,
        )

    def close(self) -> None:
        """Stop the server and its proxy."""
        self.client.close()
        if self.feed is not None:
            self.feed.close()
        self.server.close()

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
    return RedisNode(server, client, feed)
