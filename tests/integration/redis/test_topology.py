"""The Redis topology on real servers: each fault does to replication what its name says."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from antipode import ConfigurationError
from antipode_testing import RedisTopology, TopologyTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

pytestmark = pytest.mark.store("redis")

TIMEOUT_S = 15.0


@pytest.fixture
def topology(antipode_redis: RedisTopology) -> RedisTopology:
    return antipode_redis


@pytest.fixture
def pair() -> Iterator[RedisTopology]:
    """A topology with two replicas, of this test alone."""
    with RedisTopology(replicas=2) as two:
        yield two


def client(address: Address) -> Any:
    return closing(redis.Redis(*address, decode_responses=True, socket_timeout=TIMEOUT_S))


def info(address: Address) -> dict[str, Any]:
    with client(address) as connection:
        return dict(connection.info("replication"))


def await_value(connection: Any, key: str, value: str) -> float:
    """Wait until a replica shows a value; the moment it did."""
    wait_until(
        lambda: connection.get(key) == value, what=key, timeout_s=TIMEOUT_S, interval_s=0.0005
    )
    return time.perf_counter()


def test_lag_is_replication_lag_alone(topology: RedisTopology) -> None:
    """200 ms of lag delay the replica by 200 ms and the clients of both servers by nothing."""
    topology.set_lag(200)
    lags, costs = [], []
    with client(topology.primary) as primary, client(topology.replica) as replica:
        for number in range(5):
            began = time.perf_counter()
            primary.set(f"lag:{number}", "v")
            replica.get("nothing")
            costs.append(time.perf_counter() - began)
            lags.append(await_value(replica, f"lag:{number}", "v") - began)
    assert min(lags) >= 0.199
    assert statistics.median(lags) < 0.25
    assert min(costs) < 0.05


def test_pause_holds_replication_and_keeps_the_link(topology: RedisTopology) -> None:
    """Paused, the replica stands still with its link up; resumed, it catches up."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        topology.pause()
        primary.set("pause", "1")
        with pytest.raises(TopologyTimeout):
            topology.wait_replicated(timeout_s=0.2)
        assert replica.get("pause") is None
        assert info(topology.replica)["master_link_status"] == "up"
        topology.resume()
        await_value(replica, "pause", "1")


def test_a_cut_heals_without_loss(topology: RedisTopology) -> None:
    """Cut, the link goes down and nothing arrives; healed, everything does, by a partial resync."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        full_syncs = primary.info("stats")["sync_full"]
        topology.cut()
        wait_until(
            lambda: info(topology.replica)["master_link_status"] == "down",
            what="the link to go down",
            timeout_s=TIMEOUT_S,
        )
        primary.set("cut", "1")
        assert replica.get("cut") is None
        topology.heal()
        await_value(replica, "cut", "1")
        assert primary.info("stats")["sync_full"] == full_syncs


def test_a_suspended_replica_answers_nothing_until_resumed(topology: RedisTopology) -> None:
    """A frozen process keeps its connections, answers nobody, and then has missed nothing."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        replica.ping()
        topology.suspend_replica()
        primary.set("frozen", "1")
        with socket.create_connection(topology.replica, timeout=0.2) as sock:
            sock.sendall(b"PING\r\n")
            with pytest.raises(TimeoutError):
                sock.recv(1)
        with pytest.raises(ConfigurationError, match="suspended"):
            topology.wait_replicated()
        topology.resume_replica()
        await_value(replica, "frozen", "1")


def test_failover_loses_what_was_on_its_way(topology: RedisTopology) -> None:
    """The promoted replica has what it had received, a new history, and lacks what was held."""
    old_primary, old_replica = topology.primary, topology.replica
    with client(old_primary) as primary:
        primary.set("kept", "1")
        topology.wait_replicated()
        history = info(old_primary)["master_replid"]
        topology.pause()
        primary.set("lost", "1")
        topology.failover()
    assert (topology.primary, topology.replica) == (old_replica, old_primary)
    with client(topology.primary) as promoted:
        assert (promoted.get("kept"), promoted.get("lost")) == ("1", None)
        assert promoted.set("after", "1")
    now = info(topology.primary)
    assert (now["role"], now["master_replid2"]) == ("master", history)
    assert now["master_replid"] != history


def test_failover_can_wait_for_everything(topology: RedisTopology) -> None:
    """Asked to lose nothing, a failover under lag keeps all that was acknowledged before it."""
    topology.set_lag(100)
    acknowledged: list[int] = []
    stop = threading.Event()
    old_primary = topology.primary

    def write() -> None:
        with client(old_primary) as primary:
            while not stop.is_set():
                primary.rpush("numbers", len(acknowledged))
                acknowledged.append(len(acknowledged))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) > 20, what="some writes", timeout_s=TIMEOUT_S)
        with client(topology.primary) as primary:
            before = primary.llen("numbers")
        topology.failover(lose_unreplicated=False)
    finally:
        stop.set()
        writer.join(TIMEOUT_S)
    with client(topology.primary) as promoted:
        assert promoted.llen("numbers") >= before


def test_the_old_primary_can_be_demoted(topology: RedisTopology) -> None:
    """Demoted, the old primary drops what it alone had and follows, its clients still there."""
    with client(topology.primary) as old:
        topology.failover()
        old.set("stray", "1")
        topology.demote_old_primary()
        with client(topology.primary) as promoted:
            promoted.set("new", "1")
        await_value(old, "new", "1")
        assert old.get("stray") is None
        assert old.client_id() > 0
        topology.set_lag(100)
        began = time.perf_counter()
        with client(topology.primary) as promoted:
            promoted.set("lagging", "1")
        assert await_value(old, "lagging", "1") - began >= 0.099


def test_a_sibling_behind_resyncs_partially(pair: RedisTopology) -> None:
    """A sibling behind at the promotion has the write, yet its own second offset denies it."""
    with client(pair.primary) as primary:
        primary.set("w0", "1")
        pair.wait_replicated()
        pair.pause(replica=1)
        primary.set("w1", "1")
        offset = info(pair.primary)["master_repl_offset"]
        history = info(pair.primary)["master_replid"]
        pair.wait_replicated(replica=0)
        pair.failover(replica=0)
    assert pair.primary == pair.replicas[0]
    assert pair.replica == pair.replicas[1]
    assert pair.resync_sibling(1) == "partial"
    with client(pair.replica) as sibling:
        await_value(sibling, "w1", "1")
    promoted, behind = info(pair.primary), info(pair.replica)
    assert promoted["master_replid2"] == behind["master_replid2"] == history
    assert promoted["second_repl_offset"] > offset
    assert behind["second_repl_offset"] <= offset


def test_reseed_replaces_the_replica(topology: RedisTopology) -> None:
    """Re-seeded, the replica is another process at the same address with all of the data."""
    with client(topology.primary) as primary:
        primary.set("seed", "1")
    address = topology.replica
    with client(address) as replica:
        run_id = replica.info("server")["run_id"]
    topology.reseed()
    assert topology.replica == address
    with client(address) as replica:
        assert replica.get("seed") == "1"
        assert replica.info("server")["run_id"] != run_id


def test_full_resync_under_a_live_connection(topology: RedisTopology) -> None:
    """A forced full resync replaces the data; history, process and connections stay."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        primary.set("before", "1")
        keys = primary.dbsize()
        connection = replica.client_id()
        run_id = replica.info("server")["run_id"]
        history = info(topology.primary)["master_replid"]
        full_syncs = primary.info("stats")["sync_full"]
        topology.force_full_resync()
        assert primary.info("stats")["sync_full"] == full_syncs + 1
        assert (replica.client_id(), replica.info("server")["run_id"]) == (connection, run_id)
        assert info(topology.replica)["master_replid"] == history
        assert replica.get("before") == "1"
        assert primary.dbsize() == keys


def test_a_restart_changes_the_history() -> None:
    """With an append-only file a restarted primary keeps its data under another replication id."""
    with RedisTopology(appendonly=True) as topology:
        address, history = topology.primary, info(topology.primary)["master_replid"]
        with client(topology.primary) as primary:
            primary.set("durable", "1")
        topology.restart_primary(graceful=False)
        topology.wait_replicated()
        assert topology.primary == address
        now = info(topology.primary)
        assert now["master_replid"] != history
        assert now["master_replid2"] == 0  # all zeros, which redis-py reads as a number
        with client(topology.replica) as replica:
            assert replica.get("durable") == "1"


def test_config_is_restored_by_reset(topology: RedisTopology) -> None:
    """What a test configures on a server does not reach the next test."""
    with client(topology.primary) as primary:
        before = primary.config_get("maxmemory-policy")
        topology.config({"maxmemory-policy": "allkeys-random"})
        assert primary.config_get("maxmemory-policy") != before
        topology.reset()
        assert primary.config_get("maxmemory-policy") == before


def test_reset_undoes_every_fault(topology: RedisTopology) -> None:
    """After any mix of faults a reset topology replicates at once, at the same addresses."""
    addresses = (topology.primary, topology.replica)

    def lag_s() -> float:
        topology.set_lag(60_000)
        topology.pause()
        topology.suspend_replica()
        topology.cut()
        topology.reset()
        assert (topology.primary, topology.replica) == addresses
        with client(topology.primary) as primary, client(topology.replica) as replica:
            began = time.perf_counter()
            primary.set(f"reset:{began}", "1")
            return await_value(replica, f"reset:{began}", "1") - began

    assert any(lag_s() < 0.1 for _ in range(5))


def test_reset_rebuilds_after_a_failover(topology: RedisTopology) -> None:
    """After a failover, or a killed server, reset gives a healthy pair again."""
    for fault in (topology.failover, topology.kill_primary):
        fault()
        topology.reset()
        with client(topology.primary) as primary, client(topology.replica) as replica:
            assert info(topology.replica)["role"] == "slave"
            primary.set("rebuilt", "1")
            await_value(replica, "rebuilt", "1")


def test_nothing_is_left_behind() -> None:
    """Closing stops processes, threads, ports and directories, a suspended server's included."""
    threads = set(threading.enumerate())
    topology = RedisTopology()
    with topology:
        addresses = (topology.primary, topology.replica, topology.link().address)
        processes = [_pid(topology.primary), _pid(topology.replica)]
        directories = [_directory(topology.primary), _directory(topology.replica)]
        topology.suspend_replica()
    assert topology.closed
    for address in addresses:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=1).close()
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    assert not [path for path in directories if path.exists()]
    assert set(threading.enumerate()) <= threads
    topology.close()
    with pytest.raises(ConfigurationError, match="context manager"):
        _ = topology.primary


def _pid(address: Address) -> int:
    with client(address) as connection:
        return int(connection.info("server")["process_id"])


def _directory(address: Address) -> Path:
    with client(address) as connection:
        return Path(connection.config_get("dir")["dir"])


def test_bad_arguments_are_refused(topology: RedisTopology) -> None:
    """A replica that does not exist, or a step out of order, is one clear error."""
    with pytest.raises(ConfigurationError, match="at least one"):
        RedisTopology(replicas=0)
    with pytest.raises(ConfigurationError, match="no replica 3"):
        topology.suspend_replica(3)
    with pytest.raises(ConfigurationError, match="no failover"):
        topology.demote_old_primary()
