"""Two regions of a store for other programs: described in JSON, steered by words."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode import AntipodeError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from ._topology import Topology

#: The stores that a lab has, and what runs them.
STORES = {
    "activemq": "ActiveMQTopology",
    "dynamodb": "DynamoDBTopology",
    "embedded": "EmbeddedTopology",
    "mariadb": "MariaDBTopology",
    "mongodb": "MongoDBTopology",
    "mysql": "MySQLTopology",
    "postgresql": "PostgreSQLTopology",
    "rabbitmq": "RabbitMQTopology",
    "redis": "RedisTopology",
    "s3": "S3Topology",
    "seaweedfs": "SeaweedFSTopology",
    "sns": "SNSTopology",
}
#: What a lab does.
COMMANDS = {
    "lag MS": "delay replication by so many milliseconds",
    "pause": "hold replication; its connections stay open",
    "resume": "let it go on",
    "cut": "partition the regions: their connections are closed and new ones refused",
    "heal": "end the partition",
    "failover [keep]": "the replica becomes the primary; writes on their way are lost, or kept",
    "reseed": "throw the replica's data away and copy it again",
    "wait": "return once the replica has all that was written",
    "reset": "undo every fault; after a fail-over the servers are built again",
    "where": "say again where the servers listen",
    "quit": "stop them",
}


class Lab:
    """A topology that does what words say. A context manager; thread-safe.

    Args:
        store: a name of `STORES`.
        replicas: how many replicas.
        lag_ms: milliseconds by which replication is delayed.

    Raises:
        ConfigurationError: the store cannot have so many replicas.
        ClientMissing: its Python client, which sets it up, is not installed.
    """

    def __init__(self, store: str, replicas: int = 1, lag_ms: float = 0.0) -> None:
        self._store = store
        self._topology = _topology(store, replicas)
        self._lag_ms = lag_ms
        self._lock = threading.Lock()
        topology: Any = self._topology
        self._commands: dict[str, Callable[..., object]] = {
            "lag": self._lag,
            "pause": topology.pause,
            "resume": topology.resume,
            "cut": topology.cut,
            "heal": topology.heal,
            "failover": self._failover,
            "reseed": topology.reseed,
            "wait": topology.wait_replicated,
            "reset": topology.reset,
            "where": lambda: None,
        }

    def __enter__(self) -> Self:
        self._topology.__enter__()
        try:
            if self._lag_ms:
                self._topology.set_lag(self._lag_ms)
        except BaseException:
            self._topology.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._topology.close()

    def answer(self, command: str = "", *arguments: str) -> dict[str, Any]:
        """Do *command*: what `describe` says then, or ``ok`` false and an ``error``."""
        does = self._commands.get(command)
        if does is None:
            known = ", ".join((*self._commands, "quit"))
            return {"ok": False, "error": f"no command {command!r}: use {known}"}
        try:
            with self._lock:
                does(*arguments)
                return self.describe()
        except TypeError:
            usage = next(known for known in COMMANDS if known.split()[0] == command)
            return {"ok": False, "error": f"{' '.join((command, *arguments))}: use {usage!r}"}
        except ValueError as error:
            return {"ok": False, "error": f"{command}: {error}"}
        except (AntipodeError, OSError) as error:
            return {"ok": False, "error": f"{command}: {type(error).__name__}: {error}"}

    def describe(self) -> dict[str, Any]:
        """Where the servers listen now, as JSON has it.

        Returns:
            ``ok``, ``store``, ``primary`` and ``replicas``; a server has ``url`` and, unless it is
            a file, ``host`` and ``port``. SQL stores add ``user``, ``password`` and ``database``,
            MongoDB the ``set_url`` of clients that discover the set, DynamoDB and the like their
            ``regions``.
        """
        topology: Any = self._topology
        replicas = getattr(topology, "replicas", (topology.replica,))
        others = [topology.replica, *replicas]
        found: dict[str, Any] = {
            "ok": True,
            "store": self._store,
            "primary": self._server(topology.primary),
            "replicas": [
                self._server(place) for place in dict.fromkeys(others) if place != topology.primary
            ],
        }
        for name in ("user", "password", "database", "set_url", "regions"):
            if hasattr(topology, name):
                found[name] = getattr(topology, name)
        return found

    def _server(self, place: Any) -> dict[str, Any]:
        topology: Any = self._topology
        if isinstance(place, Path):
            return {"url": topology.url(place)}
        return {"host": place.host, "port": place.port, "url": topology.url(place)}

    def _lag(self, ms: str) -> None:
        self._topology.set_lag(milliseconds(ms))

    def _failover(self, keep: str = "") -> None:
        if keep not in ("", "keep"):
            msg = f"'keep' or nothing, not {keep!r}"
            raise ValueError(msg)
        self._topology.failover(lose_unreplicated=not keep)


def milliseconds(text: str) -> float:
    """A lag as it is written.

    Raises:
        ValueError: it is no number, negative or infinite.
    """
    try:
        ms = float(text)
    except ValueError:
        ms = -1.0
    if not 0 <= ms < float("inf"):
        msg = f"{text!r} is no number of milliseconds"
        raise ValueError(msg)
    return ms


def topology_class(store: str) -> Callable[..., Any]:
    """The class of a store's topology, a `Topology` with more than all have.

    Raises:
        ConfigurationError: there is no such store.
    """
    import antipode_testing
    from antipode_shims import embedded

    if store not in STORES:
        msg = f"no store {store!r}: one of {', '.join(STORES)}"
        raise ConfigurationError(msg)
    home = embedded if store == "embedded" else antipode_testing
    found: Callable[..., Any] = getattr(home, STORES[store])
    return found


def _topology(store: str, replicas: int) -> Topology:
    make: Callable[..., Topology] = topology_class(store)
    if store in ("mariadb", "mysql"):  # Where barriers over an incomplete lineage ask for more.
        return make(replicas, replication_client=True)
    if store not in ("activemq", "dynamodb", "embedded", "rabbitmq", "s3", "seaweedfs", "sns"):
        return make(replicas)
    if replicas != 1:
        msg = f"{store} has one replica, not {replicas}"
        raise ConfigurationError(msg)
    return make()
