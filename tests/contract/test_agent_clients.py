"""Instrumented clients through the conformance agent: plain commands of services."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from antipode import BarrierTimeout
from tests.agent.client import RemoteAntipode, RemoteShim
from tests.contract._servers import regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.lending import Lend

pytestmark = pytest.mark.slow

#: The languages that instrument clients of each store, and the clients of one language.
CLIENTS = {
    "dynamodb": ("java", "java-async"),
    "mariadb": ("python", "java", "java-server", "java-cursors", "java-rows", "cpp"),
    "mongodb": ("python", "java", "java-documents", "cpp"),
    "mysql": (
        *("python", "java", "java-plain", "java-server", "java-cursors"),
        *("java-streams", "java-untold-streams", "cpp"),
    ),
    "rabbitmq": ("python", "java", "cpp"),
    "redis": ("python", "java", "java-jedis", "java-spring", "cpp"),
    "s3": ("java", "java-async"),
}
#: Connector/J reads rows one by one where a statement asks for so many at a time.
ONE_BY_ONE = -(2**31)
#: What the names of clients stand for. Java's pool tracks the session's state where it can.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "async": {"library": "async"},
    "jedis": {"library": "jedis"},
    "spring": {"library": "spring-data"},
    "documents": {"streaming": True},
    "streams": {"url_options": f"?trackSessionState=true&defaultFetchSize={ONE_BY_ONE}"},
    "untold-streams": {"url_options": f"?defaultFetchSize={ONE_BY_ONE}"},
    "rows": {"url_options": "?defaultFetchSize=1"},
    "plain": {"url_options": "?trackSessionState=false"},
    "server": {"url_options": "?useServerPrepStmts=true"},
    "cursors": {"url_options": "?useCursorFetch=true&defaultFetchSize=2"},
}
#: Stores whose reads cannot be held back: a queue hands out what it has.
MESSAGES = frozenset({"rabbitmq"})
EARLY_S = 0.2
LAG_MS = 150
TIMEOUT_S = 20.0


class Service(NamedTuple):
    """A process with a client in each region, and a shim where barriers wait."""

    store: str
    topology: Any
    antipode: RemoteAntipode
    near: RemoteShim
    far: RemoteShim


@pytest.fixture(
    params=[
        pytest.param((store, client), id=f"{store}-{client}", marks=pytest.mark.store(store))
        for store, clients in CLIENTS.items()
        for client in clients
    ]
)
def service(request: pytest.FixtureRequest, lend: Lend) -> Iterator[Service]:
    """One for each store and language."""
    store, client = request.param
    language, _, variant = client.partition("-")
    topology = request.getfixturevalue(f"antipode_{store}")
    with ExitStack() as stack:
        near, far = stack.enter_context(regions(store, topology))
        remote = lend(language)

        def opened(server: dict[str, Any], **options: Any) -> RemoteShim:
            shim = RemoteShim(remote, store, "posts", server, **options)
            return stack.enter_context(closing(shim))

        by = {"client": True, **VARIANTS[variant]}
        if store == "rabbitmq":  # Clients hear of receipts by a shim alone.
            opened(far, reads_from="replica")
        yield Service(
            store,
            topology,
            remote,
            opened(near, **by),
            opened(far, reads_from="replica", **by),
        )


def test_a_write_is_recorded_and_waited_for(service: Service) -> None:
    """A plain write enters the scope; its barrier ends once the far region shows it."""
    remote, key = service.antipode, uuid.uuid4().hex
    service.topology.pause()
    try:
        with remote.scope() as scope:
            service.near.write(key, b"1")
            assert scope.lineage.datastores == {"posts"}
            assert not scope.lineage.incomplete
            with pytest.raises(BarrierTimeout):
                remote.barrier(timeout=EARLY_S)
            service.topology.resume()
            remote.barrier(timeout=TIMEOUT_S)
            assert service.far.read(key)[0] == b"1"
    finally:
        service.topology.resume()


def test_a_read_is_held_back(service: Service) -> None:
    """After a barrier at the read, the next plain read in the far region shows what was done."""
    if service.store in MESSAGES:
        pytest.skip("a queue hands out what it has: no read can be held back for what it lacks")
    remote, key = service.antipode, uuid.uuid4().hex
    service.topology.set_lag(LAG_MS)
    with remote.scope():
        service.near.write(key, b"1")
        remote.barrier(timeout=TIMEOUT_S, at="read")
        assert service.far.read(key)[0] == b"1"
        service.near.delete(key)
        remote.barrier(timeout=TIMEOUT_S, at="read")
        assert service.far.read(key)[0] is None
