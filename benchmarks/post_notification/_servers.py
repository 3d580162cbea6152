"""The replicated stores under the application: two regions, and what delays them."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import AntipodeError
from antipode.testing import Topology

from ._options import BenchmarkError
from ._process import Processes
from ._wander import Wander

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.testing import LagProxy

    from ._options import Options
    from ._storage import Spec
    from ._strategies._none import Administer

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


@dataclass(frozen=True, slots=True)
class PostServers:
    """The servers of the post storage.

    Attributes:
        spec: where clients find them.
        administer: runs a statement at a place, where the store has statements.
        across: what delays the reads of the primary from the other region, and counts their bytes.
    """

    spec: Spec
    administer: Administer
    across: LagProxy | None


@contextmanager
def post_storage_servers(options: Options) -> Iterator[PostServers]:
    """Two regions of a store, the reader's behind the writer's, and the link between them.

    They are started for this run, or those of a stack that runs.

    Raises:
        BenchmarkError: a server is missing or does not start.
    """
    store, link_ms = options.post_storage, options.link_ms
    if store == "embedded":
        late = {"lag_ms": options.lag_ms, "spread": options.lag_spread, "seed": options.seed}
        with _embedded("post-storage", late) as spec:
            spec |= {"across": spec["writer"], "link_ms": link_ms}
            yield PostServers(spec, _nothing_to_administer, None)
    elif options.stack == "compose":
        from . import _stack

        spec = _stack.post_storage(store, options.lag_ms)
        with _link_to(spec["writer"], link_ms) as (across, proxy):
            yield PostServers({**spec, "across": across}, _nothing_to_administer, proxy)
    else:
        with (
            _own(store, options) as (spec, administer),
            _link_to(spec["writer"], link_ms) as (across, proxy),
        ):
            yield PostServers({**spec, "across": across}, administer, proxy)


@contextmanager
def _own(store: str, options: Options) -> Iterator[tuple[Spec, Administer]]:
    """Servers of this run, behind what delays replication and its acknowledgements."""
    from antipode import testing

    administer: Administer = _nothing_to_administer
    with _started(getattr(testing, _TOPOLOGIES[store])()) as topology:
        places = topology.primary, topology.replica
        if store in ("mysql", "mariadb"):
            from ._storage_mysql import declare

            places = topology.url(places[0]), topology.url(places[1])
            declare({"writer": places[0]})
            topology.wait_replicated()

            def administer(place: str, statement: str) -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = topology.execute(
                    statement, replica=None if place == "writer" else 0
                )
                return found

        def set_lag(lag_ms: float) -> None:
            if store == "mongodb":
                topology.set_lag(lag_ms, back_ms=options.link_ms)
            else:
                topology.set_lag(lag_ms)
                topology.link().set_lag(lag_ms, request_lag_ms=options.link_ms)

        with Wander(set_lag, options.lag_ms, options.lag_spread, options.seed):
            yield {"store": store, "writer": places[0], "reader": places[1]}, administer


def _nothing_to_administer(place: str, statement: str) -> list[dict[str, Any]]:
    raise BenchmarkError(f"no server of the {place}'s region takes {statement!r}")


@contextmanager
def _link_to(place: Any, link_ms: float) -> Iterator[tuple[Any, LagProxy]]:  # noqa: ANN401
    """A place, a URL or host and port, as the other region sees it; and what delays it."""
    from antipode.testing import LagProxy

    url: Any = None
    if isinstance(place, str):
        import sqlalchemy

        url = sqlalchemy.make_url(place)
    upstream = (url.host, url.port) if url else tuple(place)
    with LagProxy(upstream, lag_ms=link_ms, request_lag_ms=link_ms) as proxy:
        host, port = proxy.address
        if url:
            yield url.set(host=host, port=port).render_as_string(hide_password=False), proxy
        else:
            yield proxy.address, proxy


@contextmanager
def notifier_servers(options: Options) -> Iterator[Spec]:
    """Two regions of a store, the reader's behind the writer's.

    Raises:
        BenchmarkError: a server is missing or does not start.
    """
    store = options.notifier
    if store == "embedded":
        late = {"lag_ms": options.notifier_lag_ms, "spread": 0, "seed": 0}
        with _embedded("notifier", late) as spec:
            yield spec
        return
    if options.stack == "compose":
        from . import _stack

        yield _stack.notifier(EXCHANGE, options.notifier_lag_ms)
        return
    from antipode.testing import RabbitMQTopology

    from ._notifier_rabbitmq import declare

    with _started(RabbitMQTopology()) as topology:
        spec = {"store": store, "writer": topology.url(), "reader": topology.url(topology.replica)}
        declare(spec)
        topology.wait_federated(EXCHANGE)
        topology.set_lag(options.notifier_lag_ms)
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
def _embedded(name: str, late: dict[str, float]) -> Iterator[Spec]:
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
                "face": "plain",
                "source": spec["writer"],
                "target": spec["reader"],
                **late,
            }
        )
        yield spec
