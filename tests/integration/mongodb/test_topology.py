"""The MongoDB topology on real servers: each fault does to replication what its name says."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymongo
import pytest
from pymongo.errors import OperationFailure, PyMongoError

from antipode import ConfigurationError
from antipode_testing import MongoDBTopology, TopologyTimeout, wait_until

from ._bench import (
    TIMEOUT_S,
    await_value,
    client,
    discovering,
    has,
    hello,
    put,
    rollbacks,
    things,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

pytestmark = pytest.mark.store("mongodb")

DEADLINE_PASSED = 50  # MaxTimeMSExpired
NOT_HEARD_OF_YET = 72  # InvalidOptions


@pytest.fixture
def topology(antipode_mongodb: MongoDBTopology) -> MongoDBTopology:
    return antipode_mongodb


@pytest.fixture
def pair() -> Iterator[MongoDBTopology]:
    """A topology with two secondaries, of this test alone."""
    with MongoDBTopology(replicas=2) as two:
        yield two


def refusal(connection: Any, after: Any) -> int:
    """The code with which a read that waits for a position fails within 300 ms."""
    with pytest.raises(OperationFailure) as raised:
        connection["topology"].command(
            "find",
            "things",
            readConcern={"level": "local", "afterClusterTime": after},
            maxTimeMS=300,
        )
    return int(raised.value.code or 0)


def test_lag_is_replication_lag_alone(topology: MongoDBTopology) -> None:
    """200 ms of lag delay the secondary by 200 ms, and no client: none that discovers the set."""
    topology.set_lag(200)
    lags, costs = [], []
    with (
        client(topology.primary) as primary,
        client(topology.replica) as replica,
        discovering(topology, readPreference="secondary") as found,
    ):
        put(found, "warm")
        for number in range(5):
            began = time.perf_counter()
            put(primary, f"lag:{number}")
            has(replica, "nothing")
            put(found, "other")
            has(found, "nothing")
            costs.append(time.perf_counter() - began)
            lags.append(await_value(replica, f"lag:{number}") - began)
            things(primary).delete_one({"_id": f"lag:{number}"})
    assert min(lags) >= 0.199
    assert statistics.median(lags) < 0.26
    assert min(costs) < 0.05


def test_clients_discover_the_set(topology: MongoDBTopology) -> None:
    """From any one server a client finds every member, under the addresses of `hosts`."""
    one = f"mongodb://{topology.primary}"
    with closing(pymongo.MongoClient(one, serverSelectionTimeoutMS=5000)) as found:
        found.admin.command("ping")
        wait_until(lambda: len(found.nodes) == 2, what="both members", timeout_s=TIMEOUT_S)
        assert found.nodes == frozenset(topology.hosts)
        assert found.primary == topology.hosts[0]
        eu = things(
            found, read_preference=pymongo.ReadPreference.SECONDARY.__class__([{"region": "eu"}])
        )
        assert eu.find_one({"_id": "nothing"}) is None


def test_pause_holds_replication_and_keeps_the_connections(topology: MongoDBTopology) -> None:
    """Paused, the secondary stands still with its source kept; resumed, it catches up at once."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        things(primary).delete_one({"_id": "pause"})
        topology.wait_replicated()
        topology.pause()
        put(primary, "pause")
        with pytest.raises(TopologyTimeout):
            topology.wait_replicated(timeout_s=0.2)
        assert not has(replica, "pause")
        assert replica.admin.command("replSetGetStatus")["syncSourceHost"]
        began = time.perf_counter()
        topology.resume()
        assert await_value(replica, "pause") - began < 3


def test_a_cut_heals_without_loss(topology: MongoDBTopology) -> None:
    """Cut, the primary stays primary and nothing arrives; healed, everything does, in seconds."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        things(primary).delete_one({"_id": "cut"})
        topology.wait_replicated()
        count = rollbacks(topology.replica)
        topology.cut()
        put(primary, "cut")
        with pytest.raises(TopologyTimeout):
            topology.wait_replicated(timeout_s=0.5)
        assert not has(replica, "cut")
        assert hello(topology.primary)["isWritablePrimary"]
        began = time.perf_counter()
        topology.heal()
        assert await_value(replica, "cut") - began < 5
        assert rollbacks(topology.replica) == count


def test_a_stalled_secondary_hears_of_what_it_lacks(topology: MongoDBTopology) -> None:
    """A read that waits for a write blocks on a stalled secondary, and fails on a paused one."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        things(primary).delete_many({"_id": {"$in": ["stalled", "unheard"]}})
        topology.wait_replicated()
        topology.stall()
        put(primary, "stalled")
        written = hello(topology.primary)["lastWrite"]["opTime"]["ts"]
        wait_until(
            lambda: refusal(replica, written) == DEADLINE_PASSED,
            what="the secondary to hear of the write",
            timeout_s=TIMEOUT_S,
        )
        assert not has(replica, "stalled")
        topology.unstall()
        await_value(replica, "stalled")
        topology.pause()
        time_before = hello(topology.replica)["$clusterTime"]["clusterTime"]
        wait_until(
            lambda: hello(topology.primary)["localTime"].timestamp() > time_before.time + 1,
            what="the next second",
            timeout_s=TIMEOUT_S,
        )
        put(primary, "unheard")
        written = hello(topology.primary)["lastWrite"]["opTime"]["ts"]
        assert refusal(replica, written) == NOT_HEARD_OF_YET


def test_a_suspended_secondary_answers_nothing_until_resumed(topology: MongoDBTopology) -> None:
    """A frozen process keeps its connections, answers nobody, and then has missed nothing."""
    with client(topology.primary) as primary, client(topology.replica) as replica:
        things(primary).delete_one({"_id": "frozen"})
        topology.wait_replicated()
        topology.suspend_replica()
        put(primary, "frozen")
        with (
            pymongo.timeout(0.3),
            pytest.raises(PyMongoError),
        ):
            has(replica, "frozen")
        with pytest.raises(ConfigurationError, match="suspended"):
            topology.wait_replicated()
        topology.resume_replica()
        await_value(replica, "frozen")


def test_one_of_two_secondaries_stands_still(pair: MongoDBTopology) -> None:
    """A fault of one secondary leaves the other alone, also for a client that discovers them."""
    with (
        client(pair.primary) as primary,
        client(pair.replicas[0]) as still,
        client(pair.replicas[1]) as follows,
        discovering(pair, readPreference="secondary", localThresholdMS=10_000) as found,
    ):
        found.admin.command("ping")
        wait_until(lambda: len(found.secondaries) == 2, what="both", timeout_s=TIMEOUT_S)
        faults = ((pair.pause, pair.resume), (pair.stall, pair.unstall), (pair.cut, pair.heal))
        for number, (fault, undo) in enumerate(faults):
            key = f"one:{number}"
            fault(replica=0)
            put(primary, key)
            await_value(follows, key)
            assert not has(still, key)
            seen = {has(found, key) for _ in range(50)}
            assert seen == {True, False}
            undo(replica=0)
            await_value(still, key)
        pair.set_lag(150, replica=0)

        def lag_s(number: int) -> float:
            began = time.perf_counter()
            put(primary, f"lagging:{number}")
            followed = await_value(follows, f"lagging:{number}")
            assert await_value(still, f"lagging:{number}") - began >= 0.149
            return followed - began

        assert any(lag_s(number) < 0.1 for number in range(10))


def test_reseed_replaces_the_replica(topology: MongoDBTopology) -> None:
    """Re-seeded, the secondary is another process at the same address with all of the data."""
    with client(topology.primary) as primary:
        put(primary, "seed")
    address, process = topology.replica, _pid(topology.replica)
    topology.reseed()
    assert topology.replica == address
    assert _pid(address) != process
    with client(address) as replica:
        assert has(replica, "seed")


def test_config_is_restored_by_reset(topology: MongoDBTopology) -> None:
    """What a test configures on a server does not reach the next test."""
    name = "ttlMonitorSleepSecs"

    def value(address: Address) -> Any:
        with client(address) as connection:
            return connection.admin.command("getParameter", **{name: 1})[name]

    before = value(topology.primary)
    topology.config({name: 7})
    topology.config({name: 8}, replica=0)
    assert (value(topology.primary), value(topology.replica)) == (7, 8)
    topology.reset()
    assert (value(topology.primary), value(topology.replica)) == (before, before)


def test_options_reach_every_server() -> None:
    """Options and parameters given at first hold on all members."""
    options = {"oplogSize": "32", "setParameter.ttlMonitorSleepSecs": "9"}
    with MongoDBTopology(config=options) as topology:
        for address in (topology.primary, topology.replica):
            with client(address) as connection:
                parsed = connection.admin.command("getCmdLineOpts")["parsed"]
            assert parsed["replication"]["oplogSizeMB"] == 32
            assert parsed["setParameter"]["ttlMonitorSleepSecs"] == "9"


def test_reset_undoes_every_fault(topology: MongoDBTopology) -> None:
    """After any mix of faults a reset topology replicates at once, at the same addresses."""
    addresses = (topology.primary, topology.replica, *topology.hosts)
    topology.stall()

    def lag_s() -> float:
        topology.set_lag(60_000)
        topology.pause()
        topology.suspend_replica()
        topology.cut()
        topology.reset()
        assert (topology.primary, topology.replica, *topology.hosts) == addresses
        with client(topology.primary) as primary, client(topology.replica) as replica:
            warm = f"warm:{time.perf_counter()}"
            put(primary, warm)
            await_value(replica, warm)
            began = time.perf_counter()
            put(primary, f"reset:{began}")
            return await_value(replica, f"reset:{began}") - began

    assert any(lag_s() < 0.1 for _ in range(5))


def test_reset_rebuilds_after_a_failover(topology: MongoDBTopology) -> None:
    """After a failover, or a killed server, reset gives a healthy pair again."""
    for fault in (topology.failover, topology.kill_primary):
        fault()
        topology.reset()
        with client(topology.primary) as primary, client(topology.replica) as replica:
            assert hello(topology.replica)["secondary"]
            put(primary, "rebuilt")
            await_value(replica, "rebuilt")


def test_nothing_is_left_behind() -> None:
    """Closing stops processes, threads, ports and directories, a suspended server's included."""
    threads = set(threading.enumerate())
    topology = MongoDBTopology()
    with topology:
        addresses = (topology.primary, topology.replica, *topology.hosts)
        processes = [_pid(topology.primary), _pid(topology.replica)]
        directories = [_directory(topology.primary), _directory(topology.replica)]
        topology.suspend_replica()
    assert topology.closed
    for address in addresses:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=1).close()
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    assert not [path for path in directories if path.exists()]
    wait_until(
        lambda: set(threading.enumerate()) <= threads, what="threads to end", timeout_s=TIMEOUT_S
    )
    topology.close()
    with pytest.raises(ConfigurationError, match="context manager"):
        _ = topology.primary


def _pid(address: Address) -> int:
    with client(address) as connection:
        return int(connection.admin.command("serverStatus")["pid"])


def _directory(address: Address) -> Path:
    with client(address) as connection:
        return Path(connection.admin.command("getCmdLineOpts")["parsed"]["storage"]["dbPath"])


def test_bad_arguments_are_refused(topology: MongoDBTopology) -> None:
    """A replica that does not exist, or a step out of order, is one clear error."""
    with pytest.raises(ConfigurationError, match="at least one"):
        MongoDBTopology(replicas=0)
    with pytest.raises(ConfigurationError, match="no replica 3"):
        topology.suspend_replica(3)
    with pytest.raises(ConfigurationError, match="none to rejoin"):
        topology.rejoin()
