"""Clients made by Sentinel: where their server is now is asked again for each own connection."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

from .exchange import exchange
from .redis_py import ServerSettings, link_errors, redis_module

if TYPE_CHECKING:
    from antipode.shim import ReadsFrom
    from antipode_shims.redis._commands import Command

_Where = tuple[str, int]
#: What a connection gets when asking took all the time: redis-py takes 0 for "no limit".
_LEAST_S = 0.01


@dataclass(frozen=True)
class SentinelSettings(ServerSettings):
    """How to connect to the server of a client that ``redis.sentinel.Sentinel`` made.

    Attributes:
        service: the name under which the Sentinels watch it.
        primary: whether the client asks the primary (``master_for``) or replicas (``slave_for``).
        sentinels: how to connect to each Sentinel.
        forced_host: the host at which the client searches for the primary, whatever they say.
        located: where they last said that the server is.
    """

    service: str
    primary: bool
    sentinels: tuple[ServerSettings, ...]
    forced_host: str | None
    located: list[_Where] = field(default_factory=list, compare=False)

    @property
    def where(self) -> tuple[object, ...]:
        """The service and its Sentinels, in whatever order."""
        return "sentinel", self.service, frozenset(each.where for each in self.sentinels)

    @property
    def address(self) -> tuple[object, ...]:
        """Where the library's own connections last led."""
        return self.located[0] if self.located else ()

    def connect(self, *, protocol: int, timeout_s: float) -> Any:
        """A connection to where the client would connect now; see :class:`ServerSettings`.

        The first Sentinel that answers is believed: the floor that a barrier leaves is checked
        again on the connection that reads.

        Raises:
            ConfigurationError: there are several replicas: nobody knows which one is read.
        """
        return self._connect(protocol=protocol, timeout_s=timeout_s, agreed=False)

    def connect_to_primary(self, *, timeout_s: float) -> Any:
        """A connection to the primary, if most Sentinels answer and no two disagree.

        One Sentinel alone may be on the wrong side of a partition, with a primary whose position
        says nothing about the writes of the new one.
        """
        return self._connect(protocol=2, timeout_s=timeout_s, agreed=True)

    def _connect(self, *, protocol: int, timeout_s: float, agreed: bool) -> Any:
        deadline_s = time.monotonic() + timeout_s
        where = self._locate(deadline_s, agreed=agreed)
        self.located[:] = [where]
        host, port = where
        arguments = {**self.arguments, "host": host, "port": port}
        found = ServerSettings(self.connection_class, arguments, one_server=True)
        left_s = max(deadline_s - time.monotonic(), _LEAST_S)
        return found.connect(protocol=protocol, timeout_s=left_s)

    def _locate(self, deadline_s: float, *, agreed: bool) -> _Where:
        found: list[_Where] = []
        causes: list[str] = []
        for number, sentinel in enumerate(self.sentinels):
            left_s = max(deadline_s - time.monotonic(), _LEAST_S)
            try:
                where = self._ask(sentinel, left_s / (len(self.sentinels) - number))
            except link_errors() as error:
                causes.append(str(error))
                continue
            if where is None:
                causes.append(f"{sentinel.where} does not know it")
            elif not agreed:
                return where
            else:
                found.append(where)
        if 2 * len(found) > len(self.sentinels) and len(set(found)) == 1:
            return found[0]
        said = "; ".join([*causes, *(f"{host}:{port}" for host, port in found)])
        msg = f"the Sentinels do not say where {self.service!r} is: {said}"
        # Not a ConnectionError, by which servers without RESP3 are recognised.
        raise redis_module().exceptions.TimeoutError(msg)

    def _ask(self, sentinel: ServerSettings, timeout_s: float) -> _Where | None:
        """Where one Sentinel says that the client's server is; None when it does not know."""
        commands: list[Command] = [
            ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service),
            ("SENTINEL", "REPLICAS", self.service),
        ]
        connection = sentinel.connect(protocol=2, timeout_s=timeout_s)
        try:
            primary, replicas = exchange(connection, commands)
        finally:
            connection.disconnect()
        if self.primary or isinstance(replicas, Exception):
            return self._primary(primary)
        return self._replica(replicas) or self._primary(primary)

    def _primary(self, reply: Any) -> _Where | None:
        if not isinstance(reply, list):
            return None  # An error, or a name that it does not watch.
        host, port = (part.decode() for part in reply)
        return self.forced_host or host, int(port)

    def _replica(self, reply: list[Any]) -> _Where | None:
        """The one replica; None when it is down: the client then asks the primary.

        Raises:
            ConfigurationError: there are several.
        """
        if len(reply) > 1:
            msg = (
                f"{self.service!r} has {len(reply)} replicas: at='now' cannot know which one the "
                "next read asks; leave one_server out and use at='read'"
            )
            raise ConfigurationError(msg)
        for each in reply:
            fields = dict(zip(each[::2], each[1::2], strict=False))
            if b"_down" not in fields.get(b"flags", b""):
                return fields[b"ip"].decode(), int(fields[b"port"])
        return None


def settings_of(client: Any, reads_from: ReadsFrom) -> ServerSettings:
    """How to connect to where *client* reads.

    Raises:
        ConfigurationError: *client* asks replicas, and *reads_from* says otherwise.
    """
    redis = redis_module()
    plain, pool = ServerSettings.of(client), client.connection_pool
    pools = redis.sentinel.SentinelConnectionPool, redis.asyncio.sentinel.SentinelConnectionPool
    if not isinstance(pool, pools):
        return plain
    if reads_from == "primary" and not pool.is_master:
        msg = (
            f"this client asks the replicas of {pool.service_name!r} (it was made by slave_for): "
            "say reads_from='replica'"
        )
        raise ConfigurationError(msg)
    return SentinelSettings(
        plain.connection_class,
        plain.arguments,
        one_server=type(pool) in pools and pool.is_master,
        service=pool.service_name,
        primary=pool.is_master,
        sentinels=tuple(ServerSettings.of(each) for each in pool.sentinel_manager.sentinels),
        forced_host=getattr(pool.sentinel_manager, "_force_master_ip", None),
    )
