"""Elections of the MongoDB topology: what a majority has, what a failover loses, who rolls back."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

import pytest
from pymongo.errors import PyMongoError, WTimeoutError
from pymongo.write_concern import WriteConcern

from antipode import ConfigurationError
from antipode_testing import MongoDBTopology, wait_until

from ._bench import (
    TIMEOUT_S,
    await_value,
    client,
    discovering,
    has,
    hello,
    put,
    rollbacks,
    term,
    things,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("mongodb")


@pytest.fixture
def topology(antipode_mongodb: MongoDBTopology) -> MongoDBTopology:
    return antipode_mongodb


@pytest.fixture
def pair() -> Iterator[MongoDBTopology]:
    """A topology with two secondaries, of this test alone."""
    with MongoDBTopology(replicas=2) as two:
        yield two


def test_a_majority_has_the_write(topology: MongoDBTopology) -> None:
    """With a voting secondary ``majority`` waits out the lag, and a plain write does not."""
    with client(topology.primary) as primary:
        strict = things(primary, write_concern=WriteConcern("majority", wtimeout=200))
        topology.pause()
        put(primary, "plain")
        with pytest.raises(WTimeoutError):
            strict.insert_one({"topology": "strict"})
        topology.resume()
        topology.set_lag(100)
        patient = things(primary, write_concern=WriteConcern("majority", wtimeout=5000))
        began = time.perf_counter()
        patient.insert_one({"topology": "patient"})
        assert time.perf_counter() - began >= 0.099


def test_failover_loses_exactly_what_was_on_its_way(topology: MongoDBTopology) -> None:
    """The promoted secondary has what it had received, in a new term, and lacks what was held."""
    old_primary, old_replica = topology.primary, topology.replica
    with client(old_primary) as primary:
        put(primary, "kept")
        things(primary).delete_one({"_id": "lost"})
        topology.wait_replicated()
        before = term(old_primary)
        topology.pause()
        put(primary, "lost")
        topology.failover()
        assert hello(old_primary)["isWritablePrimary"]  # it has not noticed
    assert (topology.primary, topology.replica) == (old_replica, old_primary)
    with client(topology.primary) as promoted:
        assert (has(promoted, "kept"), has(promoted, "lost")) == (True, False)
        put(promoted, "after")
    assert term(topology.primary) == before + 1


def test_the_old_primary_rolls_back_as_it_joins_again(topology: MongoDBTopology) -> None:
    """Back in the set, the old primary drops what it alone had, counts it, and follows."""
    with client(topology.primary) as old:
        things(old).delete_many({"_id": {"$in": ["stray", "new", "lagging"]}})
        topology.wait_replicated()
        count, before = rollbacks(topology.primary), term(topology.primary)
        topology.pause()
        put(old, "stray")
        topology.failover()
        with client(topology.primary) as promoted:
            put(promoted, "new")
            assert topology.rejoin()
            assert (has(old, "stray"), has(old, "new")) == (False, True)
            assert rollbacks(topology.replica) > count
            assert term(topology.replica) == before + 1
            topology.set_lag(100)
            began = time.perf_counter()
            put(promoted, "lagging")
            assert await_value(old, "lagging") - began >= 0.099
            strict = things(promoted, write_concern=WriteConcern("majority", wtimeout=5000))
            strict.insert_one({"topology": "strict"})
            assert time.perf_counter() - began >= 0.199


def test_nothing_is_rolled_back_that_was_replicated(topology: MongoDBTopology) -> None:
    """An old primary that had nothing of its own joins again without a rollback."""
    with client(topology.primary) as primary:
        put(primary, "shared")
        topology.wait_replicated()
        count = rollbacks(topology.primary)
        topology.failover()
        assert not topology.rejoin()
        assert rollbacks(topology.replica) == count
        assert has(primary, "shared")


def test_a_killed_primary_joins_again(topology: MongoDBTopology) -> None:
    """After its death another is elected; started again it follows."""
    with client(topology.primary) as primary:
        put(primary, "alive")
    topology.wait_replicated()
    topology.kill_primary()
    topology.failover()
    with client(topology.primary) as promoted:
        put(promoted, "meanwhile")
        topology.rejoin()
        with client(topology.replica) as again:
            assert has(again, "alive")
            await_value(again, "meanwhile")


def test_a_hand_over_under_load_loses_nothing(topology: MongoDBTopology) -> None:
    """Asked to lose nothing, a failover under lag keeps every write that was acknowledged."""
    topology.set_lag(50)
    acknowledged: list[int] = []
    stop = threading.Event()
    before = term(topology.primary)

    def write() -> None:
        with discovering(topology, retryWrites=False) as found:
            while not stop.is_set():
                number = len(acknowledged)
                with contextlib.suppress(PyMongoError):
                    things(found).insert_one({"load": before, "number": number})
                    acknowledged.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) > 20, what="some writes", timeout_s=TIMEOUT_S)
        topology.failover(lose_unreplicated=False)
        so_far = len(acknowledged)
        wait_until(lambda: len(acknowledged) > so_far + 20, what="more", timeout_s=TIMEOUT_S)
    finally:
        stop.set()
        writer.join(TIMEOUT_S)
    with client(topology.primary) as promoted:
        kept = {one["number"] for one in things(promoted).find({"load": before})}
    assert kept >= set(acknowledged)
    assert term(topology.primary) == before + 1


def test_a_committed_write_is_never_lost(pair: MongoDBTopology) -> None:
    """A secondary behind a sibling is not promoted: a majority has what it lacks."""
    pair.pause(replica=0)
    with client(pair.primary) as primary:
        strict = things(primary, write_concern=WriteConcern("majority", wtimeout=5000))
        strict.insert_one({"_id": "committed"})
        with pytest.raises(ConfigurationError, match="another replica has"):
            pair.failover(replica=0)
        pair.failover(replica=1)
        with client(pair.primary) as promoted:
            assert has(promoted, "committed")
        pair.resume()
        pair.rejoin()
        with client(pair.replicas[0]) as sibling:
            assert has(sibling, "committed")


def test_without_votes_the_primary_is_the_majority() -> None:
    """Where secondaries do not vote, ``majority`` never waits, and there is no failover."""
    with MongoDBTopology(voting=False) as topology, client(topology.primary) as primary:
        topology.pause()
        strict = things(primary, write_concern=WriteConcern("majority", wtimeout=1000))
        strict.insert_one({"_id": "alone"})
        with client(topology.replica) as replica:
            assert not has(replica, "alone")
        with pytest.raises(ConfigurationError, match="voting=True"):
            topology.failover()


@pytest.mark.parametrize("graceful", [True, False])
def test_a_restarted_primary_begins_a_term(topology: MongoDBTopology, graceful: bool) -> None:  # noqa: FBT001 - a parameter
    """Restarted, the primary has its data, takes writes, and counts a new term."""
    address, before = topology.primary, term(topology.primary)
    with client(address) as primary:
        put(primary, "durable")
        topology.wait_replicated()
        topology.restart_primary(graceful=graceful)
        assert topology.primary == address
        assert has(primary, "durable")
        put(primary, "restarted")
    topology.wait_replicated()
    assert term(address) > before
