"""The replicated stores under the application: two regions, and what delays them."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import AntipodeError
from antipode_testing import Topology

from ._delivery import EXCHANGE
from ._options import BenchmarkError
from ._process import Processes
from ._rpc import RpcClient
from ._storage import OF_TABLES, declare
from ._tracing import NoTracing
from ._wander import Wander

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import LagProxy

    from ._options import Options
    from ._storage import Spec
    from ._strategies._none import Administer

T = TypeVar("T", bound=Topology)

_RPC_S = 10.0


@dataclass(frozen=True, slots=True)
class PostServers:
    """The servers of the post storage.

    Attributes:
        spec: where clients find them.
        administer: runs a statement at a place, where the store has statements.
        across: what delays the reads of the primary from the other region, and counts their bytes.
        set_lag: sets by how much replication is late, in the middle.
        replica: the port at which the replica listens, if it is a server of this run.
    """

    spec: Spec
    administer: Administer
    across: LagProxy | None
    set_lag: Callable[[float], None]
    replica: int | None = None


@contextmanager
def post_storage_servers(options: Options) -> Iterator[PostServers]:
    """Two regions of a store, the reader's behind the writer's, and the link between them.

    They are started for this run, or those of a stack that runs.

    Raises:
        BenchmarkError: a server is missing or does not start.
    """
    store, link_ms, first_ms = options.post_storage, options.link_ms, options.lags_ms[0]
    if store == "embedded":
        late = {"lag_ms": first_ms, "spread": options.lag_spread, "seed": options.seed}
        with _embedded("post-storage", late) as (spec, set_lag):
            spec |= {"across": spec["writer"], "link_ms": link_ms}
            yield PostServers(spec, _nothing_to_administer, None, set_lag)
    elif options.stack == "compose":
        from . import _stack

        spec = _stack.post_storage(store, first_ms)
        with _link_to(spec["writer"], link_ms) as (across, proxy):
            set_lag = partial(_stack.set_lag, store)
            yield PostServers({**spec, "across": across}, _nothing_to_administer, proxy, set_lag)
    else:
        with (
            _own(store, options) as own,
            _link_to(own.spec["writer"], link_ms) as (across, proxy),
        ):
            yield replace(own, spec={**own.spec, "across": across}, across=proxy)


def places_of(topology: Any) -> tuple[Any, Any]:  # noqa: ANN401 - of every store
    """Where clients find the writer's server and the reader's: as URLs, if the store has tables."""
    servers = topology.primary, topology.replica
    if topology.store not in OF_TABLES:
        return servers
    driver = {"driver": "postgresql+psycopg"} if topology.store == "postgresql" else {}
    writer, reader = (topology.url(each, **driver) for each in servers)
    return writer, reader


@contextmanager
def _own(store: str, options: Options) -> Iterator[PostServers]:
    """Servers of this run, behind what delays replication and its acknowledgements."""
    from antipode_testing.lab import topology_class

    administer: Administer = _nothing_to_administer
    with _started(topology_class(store)()) as topology:
        places = places_of(topology)
        port = topology.replica.port
        if store in OF_TABLES:
            declare({"store": store, "writer": places[0]})
            topology.wait_replicated()

            def administer(place: str, statement: str) -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = topology.execute(
                    statement, replica=None if place == "writer" else 0
                )
                return found

        def set_lag(lag_ms: float) -> None:
            if store in ("dynamodb", "s3", "seaweedfs"):
                topology.set_lag(lag_ms)
            elif store == "mongodb":
                topology.set_lag(lag_ms, back_ms=options.link_ms)
            else:
                topology.set_lag(lag_ms)
                topology.link().set_lag(lag_ms, request_lag_ms=options.link_ms)

        with Wander(set_lag, options.lags_ms[0], options.lag_spread, options.seed) as wander:
            spec = {"store": store, "writer": places[0], "reader": places[1]}
            yield PostServers(spec, administer, None, wander.about, port)


def _nothing_to_administer(place: str, statement: str) -> list[dict[str, Any]]:
    raise BenchmarkError(f"no server of the {place}'s region takes {statement!r}")


@contextmanager
def _link_to(place: Any, link_ms: float) -> Iterator[tuple[Any, LagProxy]]:  # noqa: ANN401
    """A place, a URL or host and port, as the other region sees it; and what delays it."""
    from antipode_testing import LagProxy

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
        with _embedded("notifier", late) as (spec, _):
            yield spec
        return
    if options.stack == "compose":
        from . import _stack

        yield _stack.notifier(EXCHANGE, options.notifier_lag_ms)
        return
    if store == "sns":
        from antipode_testing import SNSTopology

        with _started(SNSTopology(lag_ms=options.notifier_lag_ms)) as sns:
            topic = sns.create_topic("notifications")
            spec = {"store": store, "writer": sns.primary, "reader": sns.replica}
            yield {**spec, "topic": topic.arn, "queue": topic.queue}
        return
    if store == "dynamodb":
        from antipode_testing import DynamoDBTopology

        from ._notifier_dynamodb import TABLE

        with _started(DynamoDBTopology(lag_ms=options.notifier_lag_ms)) as dynamodb:
            dynamodb.create_table(TABLE, id="S")
            yield {"store": store, "writer": dynamodb.primary, "reader": dynamodb.replica}
        return
    if store == "activemq":
        from antipode_testing import ActiveMQTopology

        with _started(ActiveMQTopology(lag_ms=options.notifier_lag_ms)) as activemq:
            yield {"store": store, "writer": activemq.primary, "reader": activemq.replica}
        return
    from antipode_testing import RabbitMQTopology

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
def _embedded(name: str, late: dict[str, float]) -> Iterator[tuple[Spec, Callable[[float], None]]]:
    """Two files and a replicator in a process of its own; the latter sets how late it is."""
    from antipode_shims.embedded import EmbeddedStore

    with (
        tempfile.TemporaryDirectory(prefix=f"antipode-{name}-") as folder,
        Processes(lambda _: None) as processes,
    ):
        spec = {"store": "embedded"}
        spec |= {region: str(Path(folder, f"{region}.db")) for region in ("writer", "reader")}
        EmbeddedStore(spec["writer"], create="primary").close()
        (replicator,) = processes.start("replicator")
        port = replicator.configure(
            {
                "face": "plain",
                "source": spec["writer"],
                "target": spec["reader"],
                **late,
            }
        )
        caller = RpcClient("replicator", port, NoTracing(), timeout_s=_RPC_S)

        def set_lag(lag_ms: float) -> None:
            caller.call("late", {"lag_ms": lag_ms})

        yield spec, set_lag
