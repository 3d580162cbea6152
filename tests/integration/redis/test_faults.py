"""Barriers and floors over real Redis servers that stop, split, fail over and forget."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import BarrierTimeout, DependencyLost, Lineage, Status, VisibilityCheckError, WriteId
from antipode_shims import redis as shims
from antipode_testing import NativeProvider, RedisTopology, wait_until

from ._clients import TIMEOUT_S, client, info, writes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address

pytestmark = pytest.mark.store("redis")


class Regions:
    """An instrumented client at a primary and one at a replica."""

    def __init__(self, topology: RedisTopology, stack: ExitStack) -> None:
        self.topology = topology
        self._stack = stack
        self.writer = self.instrumented(topology.primary)
        self.reader = self.instrumented(topology.replica, reads_from="replica")

    def instrumented(self, address: Address, **options: Any) -> Any:
        one = self._stack.enter_context(client(address, socket_timeout=TIMEOUT_S))
        shims.instrument_client(one, datastore="posts", **options)
        self._stack.callback(shims.uninstrument_client, one)
        return one

    def write(self, key: str, value: Any = "new") -> WriteId:
        """Write outside of the caller's scope."""
        with antipode.scope() as scope:
            self.writer.set(key, value)
            return writes_of(scope.lineage)[0]

    def replicated(self, key: str, value: Any = "old") -> WriteId:
        """Write, and wait for it."""
        write = self.write(key, value)
        assert outcome(write) is Status.VISIBLE
        return write

    def read(self, write: WriteId, key: str, *, timeout: float = TIMEOUT_S) -> Any:
        """Read at the replica under a floor."""
        with antipode.scope(Lineage([write])):
            antipode.barrier(timeout=timeout, at="read")
            return self.reader.get(key)


@contextmanager
def regions_of(topology: RedisTopology) -> Iterator[Regions]:
    with ExitStack() as stack:
        yield Regions(topology, stack)


@pytest.fixture
def regions(antipode_redis: RedisTopology) -> Iterator[Regions]:
    """Two regions, of which the session has the servers."""
    with regions_of(antipode_redis) as made:
        yield made


@pytest.fixture
def pair() -> Iterator[RedisTopology]:
    """A primary with two replicas, of this test alone."""
    with RedisTopology(replicas=2) as two:
        yield two


def outcome(write: WriteId, *, timeout: float = TIMEOUT_S) -> Status:
    """What a barrier on one write comes to."""
    result = antipode.barrier(Lineage([write]), timeout=timeout, on_unmet="return")
    return result.outcomes[0].status


def test_stopped_replica(regions: Regions) -> None:
    """A replica that is stopped ends the barrier in time; resumed, it passes and is not stale."""
    regions.replicated("k")
    regions.topology.suspend_replica()
    write = regions.write("k")
    assert outcome(write, timeout=0.3) in {Status.NOT_YET, Status.UNREACHABLE}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, write)
        regions.topology.resume_replica()
        assert waiting.result(TIMEOUT_S) is Status.VISIBLE
    assert regions.read(write, "k") == b"new"


def test_cut_link(regions: Regions) -> None:
    """A partition is *not yet*, however long; healed, the barrier passes."""
    regions.replicated("k")
    regions.topology.cut()
    write = regions.write("k")
    wait_until(
        lambda: info(regions.topology.replica)["master_link_status"] == "down",
        what="the replica to notice",
        timeout_s=TIMEOUT_S,
    )
    assert outcome(write, timeout=0.2) is Status.NOT_YET
    with pytest.raises(BarrierTimeout):
        regions.read(write, "k", timeout=0.1)
    regions.topology.heal()
    assert outcome(write) is Status.VISIBLE
    assert regions.read(write, "k") == b"new"


def test_cut_off_replica_is_not_ignorant(regions: Regions) -> None:
    """A log that a cut-off replica does not know is *not yet*: it may still learn of it."""
    write = regions.replicated("k")
    regions.topology.cut()
    wait_until(
        lambda: info(regions.topology.replica)["master_link_status"] == "down",
        what="the replica to notice",
        timeout_s=TIMEOUT_S,
    )
    assert outcome(WriteId("posts", "f" * 40, 1), timeout=0.2) is Status.NOT_YET
    assert outcome(write) is Status.VISIBLE
    regions.topology.heal()
    regions.topology.wait_replicated()
    assert outcome(WriteId("posts", "f" * 40, 1)) is Status.UNKNOWN_LOG


def test_promotion_with_and_without_the_write(regions: Regions) -> None:
    """Over one live connection: what the promoted server has is visible, what it lacks is lost."""
    kept = regions.replicated("kept")
    connection = regions.reader.client_id()
    regions.topology.pause()
    lost = regions.write("lost")
    regions.topology.failover(lose_unreplicated=True)
    assert outcome(kept) is Status.VISIBLE
    assert outcome(lost) is Status.LOST
    assert regions.read(kept, "kept") == b"old"
    with pytest.raises(DependencyLost):
        regions.read(lost, "lost")
    assert regions.reader.client_id() == connection


def test_writes_of_both_logs(regions: Regions) -> None:
    """Entries from before and after a promotion are each judged by their own log."""
    before = regions.write("k", "before")
    regions.topology.failover(lose_unreplicated=False)
    with antipode.scope() as scope:
        regions.reader.set("k", "after")
        after = writes_of(scope.lineage)[0]
    assert before.key != after.key
    with antipode.scope(Lineage([before, after])):
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        assert regions.reader.get("k") == b"after"


@pytest.mark.parametrize("log_history", [False, True])
def test_partially_resynced_sibling(pair: RedisTopology, *, log_history: bool) -> None:
    """A sibling that was behind has the write though its own offsets deny it: never *lost*.

    With the log history it knows what was lost, too.
    """
    with regions_of(pair) as regions:
        regions.replicated("k")
        pair.wait_replicated()
        pair.pause(replica=1)
        kept = regions.write("kept")
        pair.wait_replicated(replica=0)
        pair.pause(replica=0)
        lost = regions.write("lost")
        pair.failover(replica=0)
        assert pair.resync_sibling(1) == "partial"
        promoted = regions.instrumented(pair.primary, log_history=log_history)
        promoted.set("noise", 1)
        pair.wait_replicated(replica=1)
        for one in (regions.reader, promoted):
            shims.uninstrument_client(one)
        regions.reader = regions.instrumented(pair.replicas[1], reads_from="replica")
        assert regions.reader.get("kept") == b"new"
        if log_history:
            assert outcome(kept) is Status.VISIBLE
            assert outcome(lost) is Status.LOST
            assert regions.read(kept, "kept") == b"new"
            with pytest.raises(DependencyLost):
                regions.read(lost, "lost")
        else:
            assert outcome(kept) is Status.UNKNOWN_LOG
            assert outcome(lost) is Status.UNKNOWN_LOG
            with pytest.raises(VisibilityCheckError):
                regions.read(kept, "kept")


def test_log_history_outlives_a_second_promotion(pair: RedisTopology) -> None:
    """The second promotion erases the first log's id on every server; the history keeps it."""
    with regions_of(pair) as regions:
        first = regions.replicated("first")
        pair.wait_replicated()
        pair.failover(replica=0, lose_unreplicated=False)
        pair.resync_sibling(1)
        second_writer = regions.instrumented(pair.primary, log_history=True)
        second_writer.set("second", 1)
        pair.wait_replicated(replica=1)
        pair.failover(replica=1, lose_unreplicated=False)
        third_writer = regions.instrumented(pair.primary, log_history=True)
        third_writer.set("third", 1)
        for one in (regions.writer, regions.reader, second_writer):
            shims.uninstrument_client(one)
        assert first.key not in {info(pair.primary)[n] for n in ("master_replid", "master_replid2")}
        assert outcome(first) is Status.VISIBLE
        beyond = WriteId("posts", first.key, int(first.version) + 10**6)
        assert outcome(beyond) is Status.LOST


def test_restart_that_changes_the_replication_id(regions: Regions) -> None:
    """A primary that restarts begins a new history: earlier positions are unknown, not lost."""
    write = regions.replicated("k")
    regions.topology.restart_primary(graceful=False)
    regions.topology.wait_replicated()
    assert info(regions.topology.primary)["master_replid"] != write.key
    assert outcome(write) is Status.UNKNOWN_LOG
    with pytest.raises(VisibilityCheckError):
        regions.read(write, "k")
    assert outcome(regions.write("k")) is Status.VISIBLE


def test_full_resync_under_a_live_connection(regions: Regions) -> None:
    """A full resync from the same history keeps positions true, over the same connections."""
    write = regions.replicated("k")
    connection = regions.reader.client_id()
    done = threading.Event()
    seen: list[Any] = []

    def watch() -> None:
        while not done.is_set():
            seen.append(regions.read(write, "k"))

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            regions.topology.force_full_resync()
        finally:
            done.set()
        watching.result(TIMEOUT_S)
    assert set(seen) == {b"old"}
    assert outcome(write) is Status.VISIBLE
    assert regions.reader.client_id() == connection


def test_data_that_goes_back_under_a_live_connection(regions: Regions) -> None:
    """What a demoted primary alone had is gone from it: visible once is not visible for ever."""
    old = regions.topology.primary
    shims.uninstrument_client(regions.reader)
    regions.reader = regions.writer
    regions.topology.pause()
    lost = regions.write("lost")
    assert outcome(lost) is Status.VISIBLE
    assert regions.read(lost, "lost") == b"new"
    connection = regions.reader.client_id()
    regions.topology.failover(lose_unreplicated=True)
    regions.topology.demote_old_primary()
    assert regions.topology.replica == old
    assert regions.reader.get("lost") is None
    assert outcome(lost) in {Status.LOST, Status.UNKNOWN_LOG}
    with pytest.raises((VisibilityCheckError, DependencyLost)):
        regions.read(lost, "lost")
    assert regions.reader.client_id() == connection


def test_first_replica_changes_the_replication_id() -> None:
    """Positions of a primary that never had a replica are honest there, and unknown later."""
    provider = NativeProvider()
    with ExitStack() as stack:
        one, two = (provider.start("redis", name, {}) for name in ("lone", "first"))
        stack.callback(one.close)
        stack.callback(two.close)
        lone = stack.enter_context(client(one.address))
        shims.instrument_client(lone, datastore="posts")
        stack.callback(shims.uninstrument_client, lone)
        with antipode.scope() as scope:
            lone.set("k", "v")
            write = writes_of(scope.lineage)[0]
        assert write.version == 0
        assert outcome(write) is Status.VISIBLE
        replica = stack.enter_context(client(two.address))
        replica.replicaof(*one.address)
        wait_until(
            lambda: info(two.address)["master_link_status"] == "up",
            what="the first replica",
            timeout_s=TIMEOUT_S,
        )
        assert outcome(write) is Status.UNKNOWN_LOG
        with antipode.scope() as scope:
            lone.set("k", "w")
            assert writes_of(scope.lineage)[0].key != write.key


class Alternating:
    """Replicas in turn, as behind a balancer."""

    def __init__(self, addresses: tuple[Address, ...]) -> None:
        self.addresses = addresses
        self.made = 0

    def pool(self) -> Any:
        turn = self

        class Pool(redis.ConnectionPool):  # type: ignore[misc, name-defined]
            def make_connection(self) -> Any:
                address = turn.addresses[turn.made % len(turn.addresses)]
                turn.made += 1
                return redis.Connection(host=address.host, port=address.port)

        return Pool()


def test_two_replicas_behind_one_client(pair: RedisTopology) -> None:
    """A floor holds on each connection for itself, wherever the pool sent it."""
    turn = Alternating(pair.replicas)
    with regions_of(pair) as regions, redis.Redis(connection_pool=turn.pool()) as balanced:
        regions.writer.set("k", "old")
        pair.wait_replicated()
        shims.uninstrument_client(regions.reader)
        shims.instrument_client(balanced, datastore="posts", reads_from="replica")
        pair.set_lag(150, replica=1)
        start = threading.Barrier(4)

        def read(lineage: Lineage) -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                start.wait(TIMEOUT_S)
                return balanced.get("k")

        for number in range(3):
            write = regions.write("k", number)
            with ThreadPoolExecutor(4) as pool:
                found = set(pool.map(read, [Lineage([write])] * 4))
            assert found == {str(number).encode()}
        assert turn.made >= 2
        shims.uninstrument_client(balanced)
        balanced.connection_pool.disconnect()


def test_balanced_client_cannot_look_now(pair: RedisTopology) -> None:
    """Behind a pool of several servers ``at="now"`` knows none: it says so at once."""
    pool = Alternating(pair.replicas).pool()
    with regions_of(pair) as regions, redis.Redis(connection_pool=pool) as balanced:
        write = regions.write("k")
        for one in (regions.writer, regions.reader):
            shims.uninstrument_client(one)
        shims.instrument_client(balanced, datastore="posts", reads_from="replica")
        assert outcome(write) is Status.UNKNOWN_STORE
        shims.uninstrument_client(balanced)
        balanced.connection_pool.disconnect()


def test_killed_connections(regions: Regions) -> None:
    """A barrier whose own connection is killed connects again and passes."""
    regions.replicated("k")
    regions.topology.pause()
    write = regions.write("k")
    with ThreadPoolExecutor(1) as pool, client(regions.topology.replica) as admin:
        waiting = pool.submit(outcome, write)
        for _ in range(3):
            admin.client_kill_filter(_type="normal", skipme=True)
        regions.topology.resume()
        assert waiting.result(TIMEOUT_S) is Status.VISIBLE


def test_busy_replica(regions: Regions) -> None:
    """A replica that is busy with a script is looked at again, not given up."""
    write = regions.replicated("k")
    regions.topology.config({"busy-reply-threshold": "10"}, replica=0)
    with ThreadPoolExecutor(1) as pool, client(regions.topology.replica) as admin:
        spinning = pool.submit(admin.eval, "while true do end", 0)

        def busy() -> bool:
            with client(regions.topology.replica) as other:
                try:
                    return not other.ping()
                except redis.ResponseError:
                    return True

        wait_until(busy, what="the script", timeout_s=TIMEOUT_S)
        assert outcome(write, timeout=0.2) is Status.UNREACHABLE
        with client(regions.topology.replica) as other:
            other.script_kill()
        with pytest.raises(redis.ResponseError):
            spinning.result(TIMEOUT_S)
        assert outcome(write) is Status.VISIBLE


def test_fence_makes_up_for_unsampled_writes(regions: Regions) -> None:
    """A write without a position is waited for as everything that the primary has now."""
    regions.replicated("k")
    regions.topology.set_lag(100)
    with antipode.scope():
        regions.writer.execute_command("SET", "k", "new")
        antipode.remove(writes_of(antipode.current())[0])
        antipode.shim.mark_incomplete("posts", "unsampled")
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        assert regions.reader.get("k") == b"new"


def test_replaced_primary_is_no_fence(pair: RedisTopology) -> None:
    """A primary that was replaced and still answers stands for nothing, now or at the read."""
    shortened = Lineage(incomplete=[("posts", "size")])
    with ExitStack() as stack:
        regions = Regions(pair, stack)
        shims.uninstrument_client(regions.reader)
        regions.reader = regions.instrumented(pair.replicas[1], reads_from="replica")
        regions.replicated("k")
        assert antipode.barrier(shortened, timeout=TIMEOUT_S).ok
        pair.wait_replicated()
        pair.pause(replica=1)  # The old primary's pings would take it past the new one's history.
        pair.failover()
        assert pair.resync_sibling(1) == "partial"
        pair.pause(replica=1)
        with client(pair.primary) as new:
            new.set("late", b"1")
        with pytest.raises(VisibilityCheckError, match="may have been replaced") as caught:
            antipode.barrier(shortened, timeout=TIMEOUT_S)
        assert {outcome.status for outcome in caught.value.unmet} == {Status.UNKNOWN_LOG}
        with antipode.scope(shortened):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(VisibilityCheckError, match="may have been replaced"):
                regions.reader.get("late")


def test_two_primaries_are_no_fence(pair: RedisTopology) -> None:
    """The replica still follows the old primary, and the process has clients of old and new."""
    shortened = Lineage(incomplete=[("posts", "size")])
    with regions_of(pair) as regions:
        shims.uninstrument_client(regions.reader)
        regions.reader = regions.instrumented(pair.replicas[1], reads_from="replica")
        regions.replicated("k")
        pair.failover()
        regions.instrumented(pair.primary).set("late", b"1")
        assert regions.reader.get("late") is None
        with pytest.raises(VisibilityCheckError, match="may have been replaced"):
            antipode.barrier(shortened, timeout=TIMEOUT_S)
        with antipode.scope(shortened):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(VisibilityCheckError, match="may have been replaced"):
                regions.reader.get("late")
        shims.uninstrument_client(regions.writer)
        pair.resync_sibling(1)
        with antipode.scope(shortened):
            assert antipode.barrier(timeout=TIMEOUT_S).ok
            assert regions.reader.get("late") == b"1"


def test_a_promotion_is_not_told_from_a_replica_that_left(pair: RedisTopology) -> None:
    """So an old primary that answers, and its replica, are what a fence finds, and it is early.

    Where servers say more one day, this fails, and the fence can ask for it. Until then the guide
    has to say what notices a promotion.
    """
    stayed = pair.primary, pair.replicas[1]

    def said() -> list[dict[str, Any]]:
        """All but how far each is, and when."""
        moving = ("offset", "lag", "seconds_ago", "histlen")
        return [
            {
                key: {name: value[name] for name in ("ip", "port", "state")}
                if isinstance(value, dict)
                else value
                for key, value in info(address).items()
                if not any(part in key for part in moving)
            }
            for address in stayed
        ]

    def left() -> list[dict[str, Any]]:
        """What they say once the other replica has left."""
        wait_until(
            lambda: info(stayed[0])["connected_slaves"] == 1,
            what="the replica to leave",
            timeout_s=TIMEOUT_S,
        )
        return said()

    other = pair.replicas[0]
    with regions_of(pair) as regions, client(other) as leaving:
        shims.uninstrument_client(regions.reader)
        regions.reader = regions.instrumented(pair.replicas[1], reads_from="replica")
        regions.replicated("k")
        pair.failover()
        promoted = left()
        leaving.set("late", b"1")
        assert antipode.barrier(Lineage(incomplete=[("posts", "size")]), timeout=TIMEOUT_S).ok
        assert regions.reader.get("late") is None
        leaving.replicaof(*stayed[0])
        wait_until(
            lambda: info(stayed[0])["connected_slaves"] == 2,
            what="the replica to be one again",
            timeout_s=TIMEOUT_S,
        )
        assert said() != promoted
        leaving.shutdown(nosave=True)
        assert left() == promoted


def test_no_fence_without_a_primary(regions: Regions) -> None:
    """Where no client of the process reaches the primary, nothing stands in for what is missing."""
    shims.uninstrument_client(regions.writer)
    with antipode.scope():
        antipode.shim.mark_incomplete("posts", "unsampled")
        with pytest.raises(antipode.IncompleteLineage):
            antipode.barrier(timeout=TIMEOUT_S)


def test_loading_server() -> None:
    """A server that is loading its data is not judged: it does not know yet what it has."""
    config = {"key-load-delay": "4000", "loading-process-events-interval-bytes": "1024"}
    with ExitStack() as stack:
        server = NativeProvider().start("redis", "loading", config)
        stack.callback(server.close)
        with client(server.address) as plain:
            plain.mset({f"k{number}": os.urandom(200) for number in range(400)})
            plain.save()
        one = stack.enter_context(client(server.address))
        shims.instrument_client(one, datastore="posts")
        stack.callback(shims.uninstrument_client, one)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        restarting = pool.submit(server.restart)

        def loading() -> bool:
            try:
                with client(server.address) as plain:
                    return bool(plain.info("persistence")["loading"])
            except redis.ConnectionError:
                return False

        wait_until(loading, what="it to load", timeout_s=TIMEOUT_S, interval_s=0.001)
        unknown = WriteId("posts", "f" * 40, 1)
        assert outcome(unknown, timeout=0.2).pending
        assert outcome(unknown) is Status.UNKNOWN_LOG
        assert not loading()
        restarting.result(TIMEOUT_S)
