"""The replicated stores under the application: two regions, lag on the post storage alone."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from antipode import AntipodeError
from antipode.testing import Topology

from ._options import BenchmarkError
from ._process import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._options import Stack
    from ._storage import Spec

T = TypeVar("T", bound=Topology)

#: The class of each store's two regions, in `antipode.testing`.
_TOPOLOGIES = {
    "redis": "RedisTopology",
    "mysql": "MySQLTopology",
    "mariadb": "MariaDBTopology",
    "mongodb": "MongoDBTopology",
}
#: The exchange that is federated from the writer's broker to the reader's.
EXCHANGE = "geo.notifications"


@contextmanager
def post_storage_servers(store: str, lag_ms: float, stack: Stack) -> Iterator[Spec]:
    """Two regions of *store*, the reader's *lag_ms* milliseconds behind the writer's.

    They are started for this run, or those of a stack that runs.

    Raises:
        BenchmarkError: a server is missing or does not start.
    """
    if store == "embedded":
        with _embedded("post-storage", lag_ms) as spec:
            yield spec
        return
    if stack == "compose":
        from . import _stack

        yield _stack.post_storage(store, lag_ms)
        return
    from antipode import testing

    with _started(getattr(testing, _TOPOLOGIES[store])()) as topology:
        places = topology.primary, topology.replica
        if store in ("mysql", "mariadb"):
            from ._storage_mysql import declare

            places = topology.url(places[0]), topology.url(places[1])
            declare({"writer": places[0]})
            topology.wait_replicated()
        topology.set_lag(lag_ms)
        yield {"store": store, "writer": places[0], "reader": places[1]}


@contextmanager
def notifier_servers(store: str, lag_ms: float, stack: Stack) -> Iterator[Spec]:
    """Two regions of *store*, the reader's *lag_ms* milliseconds behind the writer's.

    Raises:
        BenchmarkError: a server is missing or does not start.
    """
    if store == "embedded":
        with _embedded("notifier", lag_ms) as spec:
            yield spec
        return
    if stack == "compose":
        from . import _stack

        yield _stack.notifier(EXCHANGE, lag_ms)
        return
    from antipode.testing import RabbitMQTopology

    from ._notifier_rabbitmq import declare

    with _started(RabbitMQTopology()) as topology:
        spec = {"store": store, "writer": topology.url("us"), "reader": topology.url("eu")}
        declare(spec)
        topology.wait_federated(EXCHANGE)
        topology.set_lag(lag_ms)
        yield spec


@contextmanager
def _started(topology: T) -> Iterator[T]:
    """Run *topology*; what it cannot do is said in one line."""
    try:
        topology.start()
    except AntipodeError as error:
        topology.close()
        raise BenchmarkError(str(error).splitlines()[0]) from error
    except BaseException:
        topology.close()
        raise
    try:
        yield topology
    finally:
        topology.close()


@contextmanager
def _embedded(name: str, lag_ms: float) -> Iterator[Spec]:
    """Two files and a replicator in a process of its own."""
    from antipode_shims.embedded import EmbeddedStore

    with (
        tempfile.TemporaryDirectory(prefix=f"antipode-{name}-") as folder,
        Processes(lambda _: None) as processes,
    ):
        spec = {"store": "embedded"}
        spec |= {region: str(Path(folder, f"{region}.db")) for region in ("writer", "reader")}
        EmbeddedStore(spec["writer"], create="primary").close()
        (replicator,) = processes.start("replicator")
        replicator.configure(
            {
                "library": False,
                "source": spec["writer"],
                "target": spec["reader"],
                "lag_ms": lag_ms,
            }
        )
        yield spec
