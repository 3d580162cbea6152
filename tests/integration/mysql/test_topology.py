"""The topologies of MySQL and MariaDB on real servers: each fault does what its name says."""

from __future__ import annotations

import socket
import statistics
import time
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

from antipode import ConfigurationError
from antipode_testing import ServerFailed, TopologyTimeout, wait_until

from ._sql_topology import (
    KINDS,
    STORES,
    TIMEOUT_S,
    await_key,
    client,
    keys,
    new_table,
    put,
    run,
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


def test_lag_is_replication_lag_alone(topology: Any, table: str) -> None:
    """200 ms of lag delay the replica by 200 ms and the clients of both servers by nothing."""
    topology.set_lag(200)
    lags, costs = [], []
    with client(topology, topology.primary) as primary, client(topology, topology.replica) as copy:
        for number in range(5):
            began = time.perf_counter()
            put(primary, table, str(number))
            run(copy, "SELECT 1")
            costs.append(time.perf_counter() - began)
            lags.append(await_key(copy, table, str(number)) - began)
    assert min(lags) >= 0.199
    assert statistics.median(lags) < 0.2 * 1.25
    assert min(costs) < 0.05


def test_pause_holds_replication_and_keeps_the_link(topology: Any, table: str) -> None:
    """Paused, the replica stands still with its link up; resumed, it catches up."""
    with client(topology, topology.primary) as primary, client(topology, topology.replica) as copy:
        topology.pause()
        put(primary, table, "pause")
        with pytest.raises(TopologyTimeout):
            topology.wait_replicated(timeout_s=0.3)
        assert not keys(topology, topology.replica, table)
        assert _link_is_up(topology)
        topology.resume()
        await_key(copy, table, "pause")


def _link_is_up(topology: Any) -> bool:
    row = topology.execute("SHOW REPLICA STATUS", replica=0)[0]
    return "Yes" in {row.get("Replica_IO_Running"), row.get("Slave_IO_Running")}


def test_a_held_applier_receives_and_applies_nothing(topology: Any, table: str) -> None:
    """With its applier held a replica has the write in its relay log, even if its primary dies."""
    with client(topology, topology.replica) as copy:
        topology.pause_applier()
        with client(topology, topology.primary) as primary:
            put(primary, table, "received")
            before = topology.link().traffic().response_bytes
            put(primary, table, "more")
        wait_until(
            lambda: topology.link().traffic().response_bytes > before,
            what="the replica to receive it",
            timeout_s=TIMEOUT_S,
        )
        assert not keys(topology, topology.replica, table)
        topology.resume_applier()
        await_key(copy, table, "received")


def test_a_cut_heals_without_loss(topology: Any, table: str) -> None:
    """Cut, the link goes down and nothing arrives; healed, everything does by itself."""
    with client(topology, topology.primary) as primary, client(topology, topology.replica) as copy:
        topology.cut()
        wait_until(lambda: not _link_is_up(topology), what="the cut", timeout_s=TIMEOUT_S)
        put(primary, table, "cut")
        assert not keys(topology, topology.replica, table)
        topology.heal()
        await_key(copy, table, "cut")


def test_a_suspended_server_answers_nothing_until_resumed(topology: Any, table: str) -> None:
    """A frozen process keeps its connections, answers nobody, and then has missed nothing."""
    with client(topology, topology.primary) as primary, client(topology, topology.replica) as copy:
        topology.suspend_replica()
        put(primary, table, "frozen")
        with pytest.raises(ConfigurationError, match="suspended"):
            topology.wait_replicated()
        topology.suspend_primary()
        for address in (topology.primary, topology.replica):
            with (
                socket.create_connection(address, timeout=0.2) as sock,
                pytest.raises(TimeoutError),
            ):
                sock.recv(1)
        topology.resume_primary()
        topology.resume_replica()
        await_key(copy, table, "frozen")
        put(primary, table, "thawed")


def test_one_replica_stalls_alone(pair: Any) -> None:
    """Of two replicas one stands still, by lag, pause, cut or applier, and the other goes on."""
    table = new_table(pair)
    stalls = {
        "lag": (lambda: pair.set_lag(60_000, replica=1), lambda: pair.set_lag(0, replica=1)),
        "pause": (lambda: pair.pause(replica=1), lambda: pair.resume(replica=1)),
        "applier": (lambda: pair.pause_applier(replica=1), lambda: pair.resume_applier(replica=1)),
        "cut": (lambda: pair.cut(replica=1), lambda: pair.heal(replica=1)),
    }
    with client(pair, pair.primary) as primary:
        for key, (stall, undo) in stalls.items():
            stall()
            put(primary, table, key)
            pair.wait_replicated(replica=0)
            assert key in keys(pair, pair.replicas[0], table)
            assert key not in keys(pair, pair.replicas[1], table)
            undo()
            pair.wait_replicated()
            assert key in keys(pair, pair.replicas[1], table)


def test_reseed_replaces_the_replica(topology: Any, table: str) -> None:
    """Re-seeded, the replica is another server at the same address with all of the data."""
    with client(topology, topology.primary) as primary:
        put(primary, table, "seed")
    address = topology.replica
    topology.set_lag(20)
    with client(topology, address) as copy:
        topology.reseed()
        with pytest.raises(pymysql.Error):
            run(copy, "SELECT 1")
    assert topology.replica == address
    assert keys(topology, address, table) == {"seed"}
    with client(topology, topology.primary) as primary, client(topology, address) as copy:
        put(primary, table, "next")
        await_key(copy, table, "next")


@pytest.mark.parametrize("graceful", [True, False])
def test_a_restarted_server_keeps_its_data(topology: Any, table: str, *, graceful: bool) -> None:
    """Restarted or killed, primary and replica come back with their data and their roles."""
    addresses = (topology.primary, topology.replica)
    with client(topology, topology.primary) as primary:
        put(primary, table, "1")
        topology.restart_primary(graceful=graceful)
    topology.restart_replica(graceful=graceful)
    with client(topology, topology.primary) as primary:
        put(primary, table, "2")
    topology.wait_replicated()
    assert (topology.primary, topology.replica) == addresses
    assert keys(topology, topology.replica, table) == {"1", "2"}
    with client(topology, topology.replica) as copy, pytest.raises(pymysql.OperationalError):
        put(copy, table, "3")


def test_reset_undoes_every_fault(topology: Any, table: str) -> None:
    """After any mix of faults a reset topology replicates at once, at the same addresses."""
    addresses = (topology.primary, topology.replica)
    topology.set_lag(60_000)
    topology.pause()
    topology.pause_applier()
    topology.suspend_replica()
    topology.suspend_primary()
    topology.cut()
    topology.reset()
    assert (topology.primary, topology.replica) == addresses
    with client(topology, topology.primary) as primary, client(topology, topology.replica) as copy:
        began = time.perf_counter()
        put(primary, table, "reset")
        assert await_key(copy, table, "reset") - began < 1


def test_reset_rebuilds_what_it_cannot_undo(topology: Any) -> None:
    """After a failover, a killed server or broken replication, reset gives a healthy pair again."""

    def diverge() -> None:
        topology.execute("CREATE TABLE app.clash (k INT)", replica=0)
        topology.execute("CREATE TABLE app.clash (k INT)")
        with pytest.raises(ServerFailed, match="stopped copying"):
            topology.wait_replicated()
        topology.set_lag(0)

    for fault in (topology.failover, topology.kill_primary, diverge):
        fault()
        topology.reset()
        table = new_table(topology)
        with client(topology, topology.primary) as primary:
            put(primary, table, "rebuilt")
        topology.wait_replicated()
        assert keys(topology, topology.replica, table) == {"rebuilt"}
