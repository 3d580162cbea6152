"""Barriers over real MongoDB servers that stop, split, elect, roll back and forget."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from pymongo.write_concern import WriteConcern

import antipode
from antipode import BarrierTimeout, DependencyLost, Lineage, Status
from antipode_shims import mongodb
from antipode_shims.mongodb._position.timestamps import version_of
from antipode_testing import LagProxy, MongoDBTopology, wait_until

from ._clients import UNWATCHED
from ._regions import (
    TIMEOUT_S,
    WHERE,
    Regions,
    only,
    outcome,
    regions_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("mongodb")


@pytest.fixture
def regions(antipode_mongodb: MongoDBTopology) -> Iterator[Regions]:
    """Two regions, of which the session has the servers."""
    with regions_of(antipode_mongodb) as made:
        yield made


@pytest.fixture
def trio() -> Iterator[MongoDBTopology]:
    """A primary with two secondaries, of this test alone."""
    with MongoDBTopology(replicas=2) as three:
        yield three


def test_rolled_back_write_never_passes(trio: MongoDBTopology) -> None:
    """A w:1 write that an election lost is lost on the new primary, a secondary and the old one.

    Timestamps pass it everywhere: by ``afterClusterTime`` alone, each of the three would show it.
    """
    with regions_of(trio) as regions:
        old, new, other = trio.primary, *trio.replicas
        regions.replicated("kept")
        trio.pause()
        lost = regions.write("lost")
        assert lost.key == "antipode.1"
        trio.failover(lose_unreplicated=True)
        assert regions.outcome_at(old, lost).status is Status.VISIBLE
        with regions.client(new) as client:
            client.app.posts.insert_one({"_id": "later"})
        assert regions.outcome_at(new, lost).status is Status.LOST
        trio.resume()
        assert trio.rejoin()
        trio.wait_replicated()
        for address in (new, other, old):
            assert regions.read_at(address, "later") is None
            assert regions.read_at(address, "lost") is None
            shown = regions.outcome_at(address, lost)
            assert shown.status is Status.LOST, address
            assert "rolled back" in shown.cause
        with pytest.raises(DependencyLost):
            regions.at(other).wait(Lineage([lost]), timeout=TIMEOUT_S)


def test_old_primary_that_is_cut_off(regions: Regions) -> None:
    """An old primary with later timestamps does not pass for having the new one's writes."""
    topology = regions.topology
    old, new = topology.primary, topology.replica
    regions.replicated("k")
    topology.failover(lose_unreplicated=True)
    with regions.client(new) as client:
        regions.close()
        writer = mongodb.shim("posts", client, **WHERE)
        with antipode.scope() as scope:
            plain = only(writer.write("k", "of the new primary"))
        majority = client.app.get_collection("posts", write_concern=WriteConcern("majority"))
        strict = mongodb.shim("posts", client, database="app", collection=majority)
        with antipode.scope() as scope:
            strict.write("k", "of the new primary, at a majority")
            committed = only(scope.lineage)
        writer.close()
        strict.close()
    assert committed.key == "antipode"
    with regions.client(old) as client:

        def ahead() -> bool:
            client.app.posts.update_one({"_id": "k"}, {"$inc": {"n": 1}})
            hello = client.admin.command("hello")
            assert hello["isWritablePrimary"]
            return bool(version_of(hello["lastWrite"]["opTime"]["ts"]) > committed.version)

        wait_until(ahead, what="later timestamps", timeout_s=TIMEOUT_S)
    for write in (plain, committed):
        assert regions.outcome_at(old, write, timeout=0.3).status is Status.NOT_YET
        assert regions.outcome_at(new, write).status is Status.VISIBLE


def test_election_without_loss(regions: Regions) -> None:
    """What survived an election is visible in the next term, and the oplog is asked once."""
    topology = regions.topology
    topology.pause()
    write = regions.write("k")
    assert write.key == "antipode.1"
    topology.resume()
    assert outcome(write).status is Status.VISIBLE
    topology.failover(lose_unreplicated=False)
    with LagProxy(topology.primary) as proxy:
        regions.close()
        reader = regions.at(proxy.address, **UNWATCHED)
        assert outcome(write).status is Status.VISIBLE
        before = proxy.traffic()
        assert outcome(write).status is Status.VISIBLE
        assert (proxy.traffic() - before).exchanges == 1
        assert reader.read("k")[0] == "new"
    assert regions.outcome_at(topology.replica, write).status is Status.VISIBLE


def test_committed_write_needs_no_oplog(regions: Regions) -> None:
    """What a majority acknowledged is visible after an election without asking the oplog."""
    client = regions.client(regions.topology.primary)
    majority = client.app.get_collection("posts", write_concern=WriteConcern("majority"))
    writer = mongodb.shim("posts", client, database="app", collection=majority)
    with antipode.scope() as scope:
        writer.write("k", "new")
        write = only(scope.lineage)
    writer.close()
    assert write.key == "antipode"
    assert outcome(write).status is Status.VISIBLE
    regions.topology.failover(lose_unreplicated=True)
    with LagProxy(regions.topology.primary) as proxy:
        regions.close()
        regions.at(proxy.address, **UNWATCHED)
        antipode.barrier(Lineage([write]), timeout=TIMEOUT_S)
        before = proxy.traffic()
        assert antipode.barrier(Lineage([write]), timeout=TIMEOUT_S).ok
        assert (proxy.traffic() - before).exchanges == 1


def test_cover_of_a_local_read_after_a_loss(regions: Regions) -> None:
    """What a read saw that only the old primary had is neither visible nor called lost."""
    topology = regions.topology
    topology.pause()
    regions.write("k")
    with antipode.scope() as scope:
        assert regions.writer.read("k")[0] == "new"
        seen = only(scope.lineage)
    assert seen.covering
    assert seen.key == "antipode.1"
    topology.failover(lose_unreplicated=True)
    shown = regions.outcome_at(topology.primary, seen)
    assert shown.status is Status.UNKNOWN_LOG


def test_stopped_secondary(regions: Regions) -> None:
    """A secondary that is stopped ends the barrier in time; resumed, it passes, not stale."""
    regions.replicated("k")
    regions.topology.suspend_replica()
    write = regions.write("k")
    assert outcome(write, timeout=0.3).status in {Status.NOT_YET, Status.UNREACHABLE}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, write)
        regions.topology.resume_replica()
        assert waiting.result(TIMEOUT_S).status is Status.VISIBLE
    assert regions.read(write, "k") == "new"


def test_read_under_a_floor_at_a_stopped_secondary(regions: Regions) -> None:
    """A read that is held back at a server that does not answer ends at its deadline."""
    regions.replicated("k")
    regions.topology.suspend_replica()
    write = regions.write("k")
    with pytest.raises(BarrierTimeout):
        regions.read(write, "k", timeout=0.5)
    regions.topology.resume_replica()
    assert regions.read(write, "k") == "new"


def test_cut_link(regions: Regions) -> None:
    """A partition is *not yet*, however long; healed, the barrier passes."""
    regions.replicated("k")
    regions.topology.cut()
    write = regions.write("k")
    assert outcome(write, timeout=0.3).status is Status.NOT_YET
    with pytest.raises(BarrierTimeout):
        regions.read(write, "k", timeout=0.2)
    regions.topology.heal()
    assert outcome(write).status is Status.VISIBLE
    assert regions.read(write, "k") == "new"


def test_recovering_server(regions: Regions) -> None:
    """A secondary in maintenance is *unreachable*; back, it passes."""
    write = regions.replicated("k")
    with regions.client(regions.topology.replica) as client:
        client.admin.command("replSetMaintenance", 1)
        assert outcome(write, timeout=0.3).status is Status.UNREACHABLE
        client.admin.command("replSetMaintenance", 0)
    assert outcome(write).status is Status.VISIBLE


def test_restart_while_waiting(regions: Regions) -> None:
    """A barrier goes on at the same secondary after that one's crash."""
    regions.replicated("k")
    regions.topology.cut()
    write = regions.write("k")
    replica = regions.topology._replica(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, write, timeout=30)
        replica.restart(graceful=False)
        regions.topology.heal()
        assert waiting.result(40).status is Status.VISIBLE
    assert regions.read(write, "k") == "new"


def test_initial_sync(regions: Regions) -> None:
    """A secondary that is copied anew shows old positions when it has them, and not before."""
    write = regions.replicated("k")
    regions.topology.reseed()
    assert outcome(write).status is Status.VISIBLE
    assert regions.read(write, "k") == "old"


def test_oplog_rolled_over() -> None:
    """A position of an earlier term that the oplog no longer reaches back to is *unknown*."""
    # What recovery needs is kept until a checkpoint.
    with (
        MongoDBTopology(config={"oplogSize": "1", "syncdelay": "1"}) as topology,
        regions_of(topology) as regions,
    ):
        topology.pause()
        write = regions.write("k")
        topology.resume()
        assert outcome(write).status is Status.VISIBLE
        topology.failover(lose_unreplicated=False)
        with regions.client(topology.primary) as client:
            oplog = client.local["oplog.rs"]

            def rolled() -> bool:
                client.app.ballast.insert_many([{"b": b"x" * 500_000} for _ in range(8)])
                oldest = oplog.find_one(sort=[("$natural", 1)])
                assert oldest is not None
                return bool(oldest["ts"].time > write.version >> 32)

            wait_until(rolled, what="the oplog to roll over", timeout_s=60)
        shown = regions.outcome_at(topology.primary, write)
        assert shown.status is Status.UNKNOWN_LOG
        assert "oplog" in shown.cause
