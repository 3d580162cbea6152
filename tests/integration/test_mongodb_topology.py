"""The MongoDB topology on real servers: each fault does to replication what its name says."""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymongo
import pytest
from pymongo.errors import OperationFailure, PyMongoError, WTimeoutError
from pymongo.write_concern import WriteConcern

from antipode._errors import ConfigurationError
from antipode.testing import MongoDBTopology, TopologyTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.testing import Address

pytestmark = pytest.mark.store("mongodb")

TIMEOUT_S = 15.0
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


def client(address: Address) -> Any:
    return closing(
        pymongo.MongoClient(*address, directConnection=True, serverSelectionTimeoutMS=5000)
    )


def discovering(topology: MongoDBTopology, **options: Any) -> Any:
    return closing(
        pymongo.MongoClient(topology.uri, serverSelectionTimeoutMS=5000, **options),
    )


def things(connection: Any, **options: Any) -> Any:
    return connection["topology"].get_collection("things", **options)


def put(connection: Any, key: str) -> None:
    things(connection).replace_one({"_id": key}, {"_id": key}, upsert=True)


def has(connection: Any, key: str) -> bool:
    return things(connection).find_one({"_id": key}) is not None


def hello(address: Address) -> dict[str, Any]:
    with client(address) as connection:
        return dict(connection.admin.command("hello"))


def term(address: Address) -> int:
    return int(hello(address)["lastWrite"]["opTime"]["t"])


def rollbacks(address: Address) -> int:
    with client(address) as connection:
        return int(connection.admin.command("replSetGetRBID")["rbid"])


def await_value(connection: Any, key: str) -> float:
    """Wait until a secondary shows a document; the moment it did."""
    wait_until(lambda: has(connection, key), what=key, timeout_s=TIMEOUT_S, interval_s=0.0005)
    return time.perf_counter()


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
        began = time.perf_counter()
        put(primary, "lagging")
        assert await_value(follows, "lagging") - began < 0.1
        assert await_value(still, "lagging") - began >= 0.149


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
    topology.set_lag(60_000)
    topology.pause()
    topology.suspend_replica()
    topology.cut()
    topology.reset()
    assert (topology.primary, topology.replica, *topology.hosts) == addresses
    with client(topology.primary) as primary, client(topology.replica) as replica:
        put(primary, "warm")
        await_value(replica, "warm")
        began = time.perf_counter()
        put(primary, f"reset:{began}")
        assert await_value(replica, f"reset:{began}") - began < 0.1


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
