"""Fences over MySQL and MariaDB: whose position stands for what a lineage lacks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import Lineage, Status, VisibilityCheckError
from antipode._runtime import metrics as _metrics
from antipode_shims import mysql as shims
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_testing import MariaDBTopology, MySQLTopology

from ._servers import FLAVORS, GRANTS, Regions, regions, revoke

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTENED = Lineage(incomplete=[("posts", "size")])
TIMEOUT_S = 10
#: Where a source has to be asked, which is given up after half a second: a busy machine tries anew.
LOADED_S = 50
MADE = [
    pytest.param(MySQLTopology, marks=pytest.mark.store("mysql"), id="mysql"),
    pytest.param(MariaDBTopology, marks=pytest.mark.store("mariadb"), id="mariadb"),
]


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


def read_late(here: Regions) -> bytes | None:
    """What the replica shows of a write that it gets late, to a request that depends on it."""
    here.topology.pause_applier(replica=1)
    with contextlib.closing(shims.shim("elsewhere", here.topology.url())) as new:
        new.write("late", b"1", Lineage())
    with antipode.scope(SHORTENED):
        found: bytes | None = here.reader.read("late")[0]
        return found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting may take a machine's time: how long it may take is no claim here."""
    connect = ServerSettings.connect

    def slowly(self: ServerSettings, *, timeout_s: float) -> Any:
        return connect(self, timeout_s=max(timeout_s, TIMEOUT_S))

    monkeypatch.setattr(ServerSettings, "connect", slowly)


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("made", MADE)
def test_replaced_primary_is_no_fence(made: Any) -> None:
    """A primary that was replaced and still answers stands for nothing, now or at the read."""
    with made(2, replication_client=True) as topology, regions(topology) as here:
        here.reader.close()
        sibling = topology.replicas[1]
        here.reader = shims.shim("posts", topology.url(sibling), reads_from="replica")
        here.replicated()
        assert antipode.barrier(SHORTENED, timeout=LOADED_S).ok
        topology.failover()
        assert here.writer.fence(timeout_s=TIMEOUT_S)
        assert read_late(here) is None
        with pytest.raises(VisibilityCheckError, match="may have been replaced") as caught:
            antipode.barrier(SHORTENED, timeout=LOADED_S)
        assert {outcome.status for outcome in caught.value.unmet} == {Status.UNKNOWN_LOG}
        with antipode.scope(SHORTENED):
            antipode.barrier(timeout=LOADED_S, at="read")
            with pytest.raises(VisibilityCheckError, match="may have been replaced"):
                here.reader.read("late")
        here.reconnect()
        topology.resume_applier(replica=1)
        with antipode.scope(SHORTENED):
            antipode.barrier(timeout=LOADED_S)
            assert here.reader.read("late")[0] == b"1"


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("made", MADE)
def test_two_primaries_are_no_fence(made: Any) -> None:
    """The replica still follows the old primary, and the process has clients of old and new.

    Without one of the new primary the barrier is early, and the guide says so: nothing that the
    other two say differs from before.
    """
    with made(2, replication_client=True) as topology, regions(topology) as here:
        here.reader.close()
        sibling = topology.replicas[1]
        here.reader = shims.shim("posts", topology.url(sibling), reads_from="replica")
        here.replicated()
        topology.failover(repoint=False)
        assert read_late(here) is None
        assert antipode.barrier(SHORTENED, timeout=LOADED_S).ok
        with contextlib.closing(shims.shim("posts", topology.url())):
            with pytest.raises(VisibilityCheckError, match="may have been replaced") as caught:
                antipode.barrier(SHORTENED, timeout=LOADED_S)
            # Whether it follows the old one, which is asked about that, may not be known by then.
            replaced = [
                each for each in caught.value.unmet if "been replaced" in (each.cause or "")
            ]
            assert {outcome.status for outcome in replaced} == {Status.UNKNOWN_LOG}
            with antipode.scope(SHORTENED):
                antipode.barrier(timeout=LOADED_S, at="read")
                with pytest.raises(VisibilityCheckError, match="may have been replaced"):
                    here.reader.read("late")


def test_fence_without_the_privilege(
    here: Regions, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not ask what a server follows gets the missing GRANT; a plain read gets no error."""
    monkeypatch.setattr(_metrics, "_logged", set())
    here.replicated()
    here.topology.execute(revoke(here.topology))
    here.topology.wait_replicated()
    address = here.topology.replica
    here.reader.close()
    here.reader = shims.shim("posts", here.topology.url(address), reads_from="replica")
    with contextlib.closing(connected(here, address)) as connection:
        shims.instrument_connection(connection, datastore="posts", reads_from="replica")
        for _ in range(2):
            with antipode.scope(SHORTENED), pytest.raises(VisibilityCheckError) as caught:
                antipode.barrier(timeout=TIMEOUT_S)
        assert {outcome.status for outcome in caught.value.unmet} == {Status.UNKNOWN_LOG}
        grant = f"GRANT {GRANTS[here.topology.store]} ON *.*"
        assert grant in str(caught.value)
        told = [record.getMessage() for record in caplog.records]
        assert sum(grant in it and it.startswith("whether a server") for it in told) == 1
        with antipode.scope(SHORTENED), connection.cursor() as cursor:
            cursor.execute("SELECT v FROM antipode_kv")
            assert cursor.fetchall()
        with antipode.scope(SHORTENED), connection.cursor() as cursor:
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(VisibilityCheckError, match="GRANT"):
                cursor.execute("SELECT v FROM antipode_kv")


def connected(here: Regions, address: Any) -> Any:
    topology = here.topology
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=topology.user,
        password=topology.password,
        database=topology.database,
        autocommit=True,
    )
