"""Promotions, other systems, paused and frozen standbys: exact outcomes, in bounded time."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import BarrierTimeout, DependencyLost, Lineage, Status, VisibilityCheckError
from antipode_shims import postgresql
from antipode_testing import PostgreSQLTopology, wait_until
from tests.integration.postgresql._clients import DATASTORE, Clients, body

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(300)]
TIMEOUT_S = 20
UPDATE = "UPDATE posts SET body = %s WHERE id = 1"
HISTORIES, STREAM = (
    "EXECUTE ON FUNCTION pg_read_file(text, bigint, bigint, boolean)",
    "pg_read_all_stats",
)


def written(writer: Any, value: str) -> Lineage:
    """What a request depends on that wrote *value*."""
    with antipode.scope() as scope:
        writer.execute(UPDATE, (value,))
        return scope.lineage


def outcomes(lineage: Lineage, *, timeout: float = 3.0) -> set[Status]:
    """What a barrier makes of *lineage*, at the standby that is registered."""
    result = antipode.barrier(lineage, timeout=timeout, on_unmet="return")
    return {outcome.status for outcome in result.outcomes}


@pytest.fixture
def plain_user(clients: Clients) -> Iterator[None]:
    """The application's user may read nothing more than any other."""
    clients.topology.execute(f"REVOKE {HISTORIES} FROM app")
    clients.topology.wait_replicated()
    yield
    clients.topology.execute(f"GRANT {HISTORIES} TO app")
    clients.topology.execute(f"REVOKE {STREAM} FROM app")


def test_a_write_that_a_promotion_lost_is_lost(clients: Clients) -> None:
    """However far the new timeline goes; what it kept is visible, and its own writes too."""
    topology = clients.topology
    writer = clients.writer(autocommit=True)
    kept = written(writer, "kept")
    topology.wait_replicated()
    reader = clients.reader(autocommit=True)
    assert body(reader) == "kept"
    topology.cut()
    lost = written(writer, "lost")
    topology.failover()
    # The connection to the standby outlives its promotion, and takes writes.
    with antipode.scope() as scope:
        reader.execute(UPDATE, ("new",))
        new = scope.lineage
    for _ in range(50):
        topology.execute("INSERT INTO posts SELECT max(id) + 1, repeat('x', 200) FROM posts")
    assert not new.incomplete
    assert {write.key.split("/")[1].partition("-")[0] for write in new} == {"2"}
    assert outcomes(kept) == {Status.VISIBLE}
    assert outcomes(new) == {Status.VISIBLE}
    assert outcomes(lost) == {Status.LOST}
    with antipode.scope(lost):
        antipode.barrier(timeout=3, at="read")
        with pytest.raises(DependencyLost):
            body(reader)


def test_a_rewound_primary_shows_what_it_follows(clients: Clients) -> None:
    """Built again as a standby of the new timeline it knows what was lost."""
    topology = clients.topology
    writer = clients.writer(autocommit=True)
    written(writer, "kept")
    topology.wait_replicated()
    topology.cut()
    lost = written(writer, "lost")
    clients.close()
    topology.failover()
    topology.demote_old_primary()
    promoted = clients.writer(autocommit=True)
    new = written(promoted, "new")
    reader = clients.reader(autocommit=True)
    assert outcomes(new) == {Status.VISIBLE}
    assert outcomes(lost) == {Status.LOST}
    assert body(reader) == "new"


@pytest.mark.usefixtures("plain_user")
def test_what_a_plain_user_may_not_see_is_unknown(clients: Clients) -> None:
    """At a standby the outcome names what to grant; granted, the next poll counts."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    lineage = written(writer, "a")
    assert not lineage.incomplete
    clients.topology.wait_replicated()
    result = antipode.barrier(lineage, timeout=3, on_unmet="return")
    assert {outcome.status for outcome in result.outcomes} == {Status.UNKNOWN_LOG}
    assert "GRANT pg_read_all_stats" in str(result.outcomes)
    with antipode.scope(lineage):
        antipode.barrier(timeout=3, at="read")
        with pytest.raises(antipode.VisibilityCheckError, match="GRANT pg_read_all_stats"):
            body(reader)
    clients.topology.execute(f"GRANT {STREAM} TO app")
    clients.topology.wait_replicated()
    assert outcomes(lineage) == {Status.VISIBLE}
    with antipode.scope(lineage):
        antipode.barrier(timeout=3, at="read")
        assert body(reader) == "a"
    # Cut off, the standby receives nothing: what it has may be of a later timeline.
    later = written(writer, "b")
    clients.topology.wait_replicated()
    clients.topology.cut()
    streams = "SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'"
    wait_until(
        lambda: not clients.topology.execute(streams, replica=0), what="the cut", timeout_s=30
    )
    assert outcomes(later, timeout=0.5) == {Status.NOT_YET}
    clients.topology.heal()
    assert outcomes(later, timeout=20) == {Status.VISIBLE}


@pytest.mark.usefixtures("plain_user")
def test_after_a_promotion_a_plain_user_learns_nothing(clients: Clients) -> None:
    """Its writes are marked, and positions are unknown logs."""
    topology = clients.topology
    old = written(clients.writer(autocommit=True), "old")
    topology.wait_replicated()
    topology.failover()
    with antipode.scope() as scope:
        clients.reader(topology.primary, autocommit=True).execute(UPDATE, ("new",))
        assert (DATASTORE, "unsampled") in scope.lineage.incomplete
    assert outcomes(old) == {Status.UNKNOWN_LOG}


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        ((), {Status.UNKNOWN_LOG}),
        ((STREAM,), {Status.UNKNOWN_LOG}),
        ((HISTORIES,), {Status.LOST}),
    ],
    ids=["plain", "stream", "histories"],
)
def test_a_sibling_never_shows_what_a_promotion_lost(
    rights: tuple[str, ...], allowed: set[Status]
) -> None:
    """A standby that follows the new primary is past the number, and its control file is late."""
    with PostgreSQLTopology(replicas=2) as topology:
        topology.execute(f"REVOKE {HISTORIES} FROM app")
        for right in rights:
            topology.execute(f"GRANT {right} TO app")
        with contextlib.closing(Clients(topology)) as clients:
            topology.cut()
            lost = written(clients.writer(autocommit=True), "lost")
            topology.failover(replica=0)
            topology.heal()
            topology.execute("INSERT INTO posts SELECT n, 'x' FROM generate_series(2, 9000) AS n")
            topology.wait_replicated(replica=1)
            reader = clients.reader(topology.replicas[1], autocommit=True)
            assert body(reader) == ""
            assert topology.execute("SELECT count(*) AS n FROM posts", replica=1)[0]["n"] == 9000
            [write] = lost
            place = "(pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint AS place"
            assert topology.execute(f"SELECT {place}", replica=1)[0]["place"] > write.version
            assert outcomes(lost, timeout=1) <= allowed


def test_another_system_has_another_log(clients: Clients) -> None:
    """A server that was not copied from the primary: unknown at once, whatever its position."""
    writer = clients.writer(autocommit=True)
    lineage = written(writer, "a")
    with PostgreSQLTopology() as other:
        other.execute("CREATE TABLE filler AS SELECT generate_series(1, 100000)")
        plain = psycopg.connect(other.url(other.primary), autocommit=True)
        reader = postgresql.instrument_connection(plain, datastore=DATASTORE, reads_from="replica")
        assert outcomes(lineage) == {Status.UNKNOWN_LOG}
        postgresql.uninstrument_connection(reader)
        plain.close()


@pytest.mark.parametrize("fault", ["pause_applier", "cut", "suspend_replica"])
def test_a_standby_that_stands_still(clients: Clients, fault: str) -> None:
    """Paused, cut off, frozen: the barrier ends at its deadline, and the write is not yet there."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    body(reader)
    getattr(clients.topology, fault)()
    lineage = written(writer, "a")
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.5)
    assert outcomes(lineage, timeout=0.3) <= {Status.NOT_YET, Status.UNREACHABLE}
    {"pause_applier": clients.topology.resume_applier, "cut": clients.topology.heal}.get(
        fault, clients.topology.resume_replica
    )()
    assert outcomes(lineage, timeout=20) == {Status.VISIBLE}


def test_a_restart_of_either_server(clients: Clients) -> None:
    """Positions outlive both; a crash of the primary, too."""
    for graceful in (True, False):
        writer = clients.writer(autocommit=True)
        lineage = written(writer, "a")
        clients.topology.restart_replica(graceful=graceful)
        clients.topology.restart_primary(graceful=graceful)
        clients.reader(autocommit=True)
        assert outcomes(lineage, timeout=30) == {Status.VISIBLE}
        again = clients.writer(autocommit=True)
        later = written(again, "b")
        assert not later.incomplete
        assert outcomes(later, timeout=30) == {Status.VISIBLE}


def test_a_superseded_commit_of_the_old_primary_is_its_own(clients: Clients) -> None:
    """The old primary goes on taking writes: their outcome is lost, never visible."""
    writer = clients.writer(autocommit=True)
    clients.topology.failover()
    clients.reader(clients.topology.primary, autocommit=True)
    stray = written(writer, "stray")
    assert outcomes(stray) == {Status.LOST}
    fenced = antipode.barrier(
        Lineage(incomplete=[(DATASTORE, "size")]), timeout=2, on_unmet="return"
    )
    assert not fenced.ok


def test_two_primaries_are_no_fence() -> None:
    """The standby still follows the old primary, and the process has clients of old and new.

    Without one of the new primary the barrier is early, and the guide says so: nothing that the
    other two say differs from before.
    """
    shortened = Lineage(incomplete=[(DATASTORE, "size")])
    with (
        PostgreSQLTopology(replicas=2) as topology,
        contextlib.closing(Clients(topology)) as clients,
    ):
        clients.writer(autocommit=True)
        reader = clients.reader(topology.replicas[1], autocommit=True)
        topology.failover(repoint=False)
        plain = clients.plain(autocommit=True)
        plain.execute(UPDATE, ("late",))
        assert antipode.barrier(shortened, timeout=TIMEOUT_S).ok
        assert body(reader) != "late"
        postgresql.instrument_connection(plain, datastore=DATASTORE)
        with pytest.raises(VisibilityCheckError, match="may have been replaced") as caught:
            antipode.barrier(shortened, timeout=TIMEOUT_S)
        assert {outcome.status for outcome in caught.value.unmet} == {Status.UNKNOWN_LOG}
        with antipode.scope(shortened):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(VisibilityCheckError, match="may have been replaced"):
                body(reader)
