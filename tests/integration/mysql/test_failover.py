"""Fail-overs of MySQL and MariaDB on real servers: what is lost, what is kept, who follows whom."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from antipode_testing import wait_until

from ._sql_topology import (
    KINDS,
    STORES,
    TIMEOUT_S,
    await_key,
    client,
    keys,
    new_table,
    put,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=STORES)
def topology(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"antipode_{request.param}")


@pytest.fixture
def pair(topology: Any) -> Iterator[Any]:
    """A topology with two replicas, of this test alone; where it runs, the store is known to."""
    with KINDS[topology.store](replicas=2) as two:
        yield two


@pytest.fixture
def table(topology: Any) -> str:
    """An empty table of this test alone, on both servers."""
    return new_table(topology)


def test_failover_loses_what_was_not_replicated_and_nothing_else(topology: Any, table: str) -> None:
    """The promoted replica has what it had received, lacks what was held, and takes writes."""
    old_primary, old_replica = topology.primary, topology.replica
    with client(topology, old_primary) as primary:
        for number in range(20):
            put(primary, table, f"kept-{number}")
        topology.wait_replicated()
        topology.pause()
        put(primary, table, "lost")
        topology.failover()
        assert (topology.primary, topology.replica) == (old_replica, old_primary)
        put(primary, table, "stray")  # by a client that has not noticed
    kept = {f"kept-{number}" for number in range(20)}
    assert keys(topology, topology.primary, table) == kept
    with client(topology, topology.primary) as promoted:
        put(promoted, table, "after")
    assert keys(topology, old_primary, table) == kept | {"lost", "stray"}


def test_failover_applies_what_was_received(topology: Any, table: str) -> None:
    """Under a steady stream of writes the promoted replica has a prefix of them, without gaps."""
    acknowledged: list[int] = []
    stop = threading.Event()

    def write() -> None:
        with client(topology, old_primary) as primary:
            while not stop.is_set():
                put(primary, table, str(len(acknowledged)))
                acknowledged.append(len(acknowledged))

    old_primary = topology.primary
    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) > 20, what="some writes", timeout_s=TIMEOUT_S)
        topology.failover()
    finally:
        stop.set()
        writer.join(TIMEOUT_S)
    have = {int(key) for key in keys(topology, topology.primary, table)}
    assert have == set(range(len(have)))


def test_failover_can_lose_nothing(topology: Any, table: str) -> None:
    """Asked to lose nothing, it keeps all that was acknowledged: the old primary takes no more."""
    topology.set_lag(100)
    acknowledged: list[str] = []
    refused = threading.Event()

    def write() -> None:
        with client(topology, old_primary) as primary:
            for number in itertools.count():
                try:
                    put(primary, table, str(number))
                except pymysql.OperationalError:
                    refused.set()
                    return
                acknowledged.append(str(number))

    old_primary = topology.primary
    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(acknowledged) > 20, what="some writes", timeout_s=TIMEOUT_S)
    topology.failover(lose_unreplicated=False)
    writer.join(TIMEOUT_S)
    assert refused.is_set()
    assert keys(topology, topology.primary, table) >= set(acknowledged)


def test_a_killed_primary_is_failed_over(topology: Any, table: str) -> None:
    """With its primary dead a replica is promoted all the same."""
    with client(topology, topology.primary) as primary:
        put(primary, table, "1")
    topology.wait_replicated()
    topology.kill_primary()
    topology.failover()
    with client(topology, topology.primary) as promoted:
        put(promoted, table, "2")
    assert keys(topology, topology.primary, table) == {"1", "2"}


def test_the_old_primary_can_be_demoted(topology: Any, table: str) -> None:
    """Built anew, the old primary has dropped what it alone had, and follows after the lag."""
    old_primary = topology.primary
    with client(topology, old_primary) as old:
        put(old, table, "kept")
        topology.wait_replicated()
        topology.failover()
        put(old, table, "stray")
    topology.demote_old_primary()
    topology.wait_replicated()
    assert topology.replica == old_primary
    assert keys(topology, old_primary, table) == {"kept"}
    with client(topology, topology.primary) as primary, client(topology, old_primary) as copy:
        put(primary, table, "new")
        await_key(copy, table, "new")


def test_siblings_follow_the_promoted_replica(pair: Any) -> None:
    """A sibling behind catches up with the new primary, and one ahead drops what it alone had."""
    table = new_table(pair)
    with client(pair, pair.primary) as primary:
        pair.pause(replica=1)
        put(primary, table, "first")
        pair.wait_replicated(replica=0)
        pair.failover(replica=0)
    assert (pair.primary, pair.replica) == pair.replicas
    assert not keys(pair, pair.replicas[1], table), "it is still paused"
    pair.resume(replica=1)
    pair.wait_replicated()
    assert keys(pair, pair.replicas[1], table) == {"first"}
    pair.demote_old_primary()
    pair.wait_replicated()


def test_a_sibling_ahead_drops_what_it_alone_had(pair: Any) -> None:
    """A sibling that received what the promoted replica had not is built anew without it."""
    table = new_table(pair)
    with client(pair, pair.primary) as primary:
        put(primary, table, "kept")
        pair.wait_replicated()
        pair.pause(replica=0)
        put(primary, table, "ahead")
        pair.wait_replicated(replica=1)
        pair.failover(replica=0)
    pair.wait_replicated()
    for address in pair.replicas:
        assert keys(pair, address, table) == {"kept"}


def test_a_sibling_can_be_left_where_it_is(pair: Any) -> None:
    """Not re-pointed, a sibling still copies the old primary, until it is told otherwise."""
    table = new_table(pair)
    with client(pair, pair.primary) as old, client(pair, pair.replicas[1]) as sibling:
        pair.failover(replica=0, repoint=False)
        put(old, table, "old")
        await_key(sibling, table, "old")
    pair.repoint(1)
    pair.wait_replicated()
    assert keys(pair, pair.replicas[1], table) == set()
