"""Two standbys of one primary, one of which is promoted: what the other one shows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import DependencyLost, Lineage
from antipode_shims.postgresql._position import history_ddl
from antipode_testing import PostgreSQLTopology
from tests.integration.postgresql._clients import Clients, body
from tests.integration.postgresql._jdbc import INSERT, application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.lending import Lend

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
FILES = "EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)"
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"


@pytest.fixture(params=["files", "functions"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    """A primary and two standbys, whose user may read histories of timelines by either way."""
    with PostgreSQLTopology(replicas=2) as topology:
        if request.param == "functions":
            topology.execute(f"REVOKE {FILES} FROM app")
            for statement in history_ddl():
                topology.execute(statement)
        with contextlib.closing(Clients(topology)) as made:
            yield made


def written(writer: Any, value: str) -> Lineage:
    """What a request depends on that wrote *value*."""
    with antipode.scope() as scope:
        writer.execute(UPDATE, (value,))
        return scope.lineage


@pytest.mark.parametrize("barriers", ["explicit", "auto"])
def test_a_sibling_waits_for_what_the_new_primary_writes(clients: Clients, barriers: str) -> None:
    """At once, though its control file names the new timeline minutes later."""
    topology = clients.topology
    topology.failover(replica=0)
    writer = clients.writer(topology.primary, autocommit=True)
    reader = clients.reader(topology.replicas[1], autocommit=True, barriers=barriers)
    topology.set_lag(100)
    for number in range(10):
        with antipode.scope(written(writer, str(number))):
            if barriers == "explicit":
                antipode.barrier(timeout=15, at="read")
            assert body(reader) == str(number)


def test_a_sibling_shows_that_a_write_is_lost(clients: Clients) -> None:
    """What the promoted standby did not have, once the sibling follows it."""
    topology = clients.topology
    topology.cut()
    lost = written(clients.writer(autocommit=True), "lost")
    topology.failover(replica=0)
    topology.heal()
    kept = written(clients.writer(topology.primary, autocommit=True), "kept")
    reader = clients.reader(topology.replicas[1], autocommit=True)
    with antipode.scope(kept):
        antipode.barrier(timeout=15, at="read")
        assert body(reader) == "kept"
    with antipode.scope(lost):
        antipode.barrier(timeout=15, at="read")
        with pytest.raises(DependencyLost):
            body(reader)


def test_a_sibling_waits_for_what_the_new_primary_writes_in_java(
    clients: Clients, lend: Lend
) -> None:
    """A barrier at the sibling, which reads it: what is new, and not what the promotion lost."""
    topology = clients.topology
    java = application(topology, lend)
    topology.cut()
    with java.client(topology.primary) as old, java.remote.scope() as scope:
        old.call("execute", INSERT)
        lost = scope.lineage
    topology.failover(replica=0)
    topology.heal()
    sibling = java.client(topology.replicas[1], reads_from="replica")
    with java.client(topology.primary) as writer, sibling:
        with java.remote.scope():
            writer.call("execute", INSERT)
            assert java.remote.barrier(timeout=15).ok
        with java.remote.scope(lost), pytest.raises(DependencyLost):
            java.remote.barrier(timeout=15)
