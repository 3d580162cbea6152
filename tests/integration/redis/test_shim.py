"""Table 2 on real Redis servers: what is stored beside a value, and what becomes of it."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import Lineage, WriteId
from antipode_shims import redis as shims
from antipode_testing import LagProxy, wait_until

from ._clients import (
    TIMEOUT_S,
    client,
    counted,
    exchanges,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

CAUSE = WriteId("elsewhere", "log", 7, 500_000)
CAUSES = Lineage([CAUSE])


@pytest.fixture
def plain(antipode_redis: RedisTopology) -> Iterator[Any]:
    """A client without the library, on an empty primary."""
    with client(antipode_redis.primary) as one:
        one.flushall()
        yield one


@pytest.fixture
def shim(plain: Any, antipode_redis: RedisTopology) -> Iterator[Any]:
    """A shim at the primary."""
    address = antipode_redis.primary
    with shims.shim("posts", f"redis://{address.host}:{address.port}") as made:
        yield made


def causes(shim: Any, key: str) -> bool:
    """Whether a read finds the lineage that the value was stored with."""
    with antipode.scope():
        return CAUSE in shim.read(key)[1]


def test_plain_readers_see_what_they_saw(shim: Any, plain: Any) -> None:
    """The value is stored as it is, the lineage in a companion key, under 100 bytes for one log."""
    with antipode.scope():
        shim.write("k", "value")
        before = antipode.current()
        shim.write("k", "value")
    assert plain.get("k") == b"value"
    assert sorted(plain.keys()) == [b"ap:k", b"k"]
    assert len(antipode.serialize(before)) < len(plain.get("ap:k")) < 100


def test_write_and_read_take_one_round_trip(antipode_redis: RedisTopology) -> None:
    """Both keys and the position are one packet, and so are both keys and two looks."""
    with (
        LagProxy(antipode_redis.primary) as proxy,
        client(proxy.address) as one,
        shims.shim("posts", one) as shim,
        antipode.scope(),
    ):
        shim.write("k", 1)
        antipode.barrier(timeout=5, at="read")
        with exchanges(proxy) as made:
            shim.write("k", 2)
            shim.read("k")
            shim.delete("k")
        assert made == [3]


def test_values_of_every_kind(shim: Any) -> None:
    """Strings, bytes and numbers are stored as redis-py stores them; others are refused."""
    for value, stored in (
        ("ü", "ü".encode()),
        (b"\xff\x00", b"\xff\x00"),
        (7, b"7"),
        (0.5, b"0.5"),
    ):
        shim.write("k", value)
        assert shim.read("k")[0] == stored
    with antipode.scope() as scope:
        with pytest.raises(redis.DataError):
            shim.write("k", None)
        assert scope.lineage.empty


def test_decoding_clients(antipode_redis: RedisTopology) -> None:
    """A client that decodes gets decoded values, and companions still fit them."""
    with (
        client(antipode_redis.primary, decode_responses=True) as one,
        shims.shim("posts", one) as shim,
    ):
        shim.write("k", "ü", CAUSES)
        assert shim.read("k")[0] == "ü"
        assert causes(shim, "k")


@pytest.mark.parametrize(
    "expiry", [{"ex": 100}, {"px": 100_000}, {"ex": timedelta(seconds=100)}], ids=str
)
def test_companion_expires_with_its_value(shim: Any, plain: Any, expiry: Any) -> None:
    """Value and companion get the same time to live; a write without one ends both."""
    shim.write("k", "v", **expiry)
    assert 90_000 < plain.pttl("k") <= 100_000
    left_ms = plain.pipeline().pttl("k").pttl("ap:k").execute()
    assert abs(left_ms[0] - left_ms[1]) <= 1
    shim.write("k", "v")
    assert plain.pttl("k") == plain.pttl("ap:k") == -1


def test_both_expiries_are_refused(shim: Any) -> None:
    """Seconds and milliseconds at once are a mistake."""
    with pytest.raises(ValueError, match="not both"):
        shim.write("k", "v", ex=1, px=1)


def test_expired(shim: Any) -> None:
    """An expired value reads as absent, without anybody's causes and without a count."""
    before = counted("foreign"), counted("companion_absent")
    shim.write("k", "v", CAUSES, px=1)
    wait_until(lambda: shim.read("k")[0] is None, what="expiry", timeout_s=TIMEOUT_S)
    wait_until(lambda: not causes(shim, "k"), what="the companion's", timeout_s=TIMEOUT_S)
    assert counted("companion_absent") == before[1]


def test_overwritten_by_a_plain_client(shim: Any, plain: Any) -> None:
    """Who overwrote it did not have its causes: foreign, counted."""
    shim.write("k", "v", CAUSES)
    plain.set("k", "w")
    before = counted("foreign")
    value, lineage = shim.read("k")
    assert value == b"w"
    assert CAUSE not in lineage
    assert [write.covering for write in lineage] == [True]
    assert counted("foreign") == before + 1


def test_deleted_by_a_plain_client(shim: Any, plain: Any) -> None:
    """The lineage of a value that somebody else deleted is not that of its absence."""
    shim.write("k", "v", CAUSES)
    plain.delete("k")
    before = counted("foreign")
    assert shim.read("k")[0] is None
    assert not causes(shim, "k")
    assert counted("foreign") == before + 2


def test_renamed(shim: Any, plain: Any) -> None:
    """A renamed value left its companion behind; at its new key another's does not fit it."""
    shim.write("k", "v", CAUSES)
    shim.write("taken", "w", CAUSES)
    plain.rename("k", "free")
    before = counted("companion_absent")
    assert shim.read("free")[0] == b"v"
    assert not causes(shim, "free")
    assert counted("companion_absent") == before + 2
    plain.rename("free", "taken")
    assert shim.read("taken")[0] == b"v"
    assert not causes(shim, "taken")


def test_evicted(plain: Any, shim: Any, antipode_redis: RedisTopology) -> None:
    """Whether value, companion or both were evicted, no value gets another one's lineage."""
    for number in range(200):
        shim.write(f"k{number}", f"{number}" * 100, CAUSES)
    before = plain.info("stats")["evicted_keys"]
    few = str(plain.info("memory")["used_memory"] - 50_000)
    antipode_redis.config({"maxmemory-policy": "allkeys-random", "maxmemory": few})

    def evicted() -> bool:
        with suppress(redis.ResponseError):  # It may be out of memory until more is evicted.
            plain.set("filler", 1)
        return bool(plain.info("stats")["evicted_keys"] > before + 20)

    wait_until(evicted, what="evictions", timeout_s=TIMEOUT_S)
    antipode_redis.config({"maxmemory": "0"})
    left = {key.decode() for key in plain.scan_iter()}
    before = counted("companion_absent")
    for number in range(200):
        value, lineage = shim.read(f"k{number}")
        assert (value is not None) == (f"k{number}" in left)
        both = {f"k{number}", f"ap:k{number}"} <= left
        assert (CAUSE in lineage) == both
    alone = sum(f"k{n}" in left and f"ap:k{n}" not in left for n in range(200))
    assert counted("companion_absent") == before + alone


def test_tombstone_lives_as_long_as_logs_are_waited_on(shim: Any, plain: Any) -> None:
    """A deletion's lineage is kept for the horizon, and then goes by itself."""
    antipode.configure(horizon=timedelta(hours=3))
    shim.write("k", "v")
    shim.delete("k", CAUSES)
    assert causes(shim, "k")
    assert 3 * 3_600_000 - 60_000 < plain.pttl("ap:k") <= 3 * 3_600_000
    assert plain.get("k") is None


def test_ignoring_reads(antipode_redis: RedisTopology) -> None:
    """``on_read="ignore"`` returns the lineage and leaves the scope alone."""
    with (
        client(antipode_redis.primary) as one,
        shims.shim("posts", one, on_read="ignore") as shim,
        antipode.scope() as scope,
    ):
        lineage = shim.write("k", "v", CAUSES)
        scope.remove(*lineage)
        assert CAUSE in shim.read("k")[1]
        assert scope.lineage.empty


def test_refused_write(shim: Any, antipode_redis: RedisTopology) -> None:
    """A write that the server refuses raises its reason, and mints nothing."""
    with client(antipode_redis.replica) as one, ExitStack() as stack:
        replica = stack.enter_context(shims.shim("posts", one, reads_from="replica"))
        scope = stack.enter_context(antipode.scope())
        with pytest.raises(redis.ReadOnlyError):
            replica.write("k", "v")
        assert scope.lineage.empty


def test_read_of_another_type(shim: Any, plain: Any) -> None:
    """A key of another type raises the server's error, as ``GET`` does."""
    plain.hset("k", "f", 1)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        shim.read("k")


def test_dead_connections_are_renewed(antipode_redis: RedisTopology) -> None:
    """A pooled connection that died meanwhile costs nobody a write or leaves a doubt."""
    with (
        LagProxy(antipode_redis.primary) as proxy,
        client(proxy.address) as one,
        shims.shim("posts", one) as shim,
        antipode.scope() as scope,
    ):
        shim.write("k", 1)
        proxy.cut()
        proxy.heal()
        shim.write("k", 2)
        assert not scope.lineage.incomplete
        assert writes_of(scope.lineage)


def test_two_shims_of_one_server_look_as_one(antipode_redis: RedisTopology) -> None:
    """A shim and an instrumented client of one replica are one server, not two replicas."""
    address = antipode_redis.replica
    with client(address) as one, client(address) as two:
        first = shims.shim("posts", one, reads_from="replica")
        shims.instrument_client(two, datastore="posts", reads_from="replica")
        assert antipode.barrier(Lineage([_now(antipode_redis)]), timeout=TIMEOUT_S).ok
        first.close()
        assert antipode.barrier(Lineage([_now(antipode_redis)]), timeout=TIMEOUT_S).ok
        shims.uninstrument_client(two)


def test_two_replicas_under_one_name(antipode_redis: RedisTopology) -> None:
    """Nobody can say which of two replicas the next read asks: ``now`` is refused."""
    with (
        LagProxy(antipode_redis.replica) as other,
        client(antipode_redis.replica) as one,
        client(other.address) as two,
    ):
        shims.shim("posts", one, reads_from="replica")
        shims.shim("posts", two, reads_from="replica")
        with pytest.raises(antipode.ConfigurationError, match="2 replicas"):
            antipode.barrier(Lineage([_now(antipode_redis)]), timeout=TIMEOUT_S)


def _now(topology: RedisTopology) -> WriteId:
    with client(topology.primary) as plain:
        state = plain.info("replication")
    return WriteId("posts", state["master_replid"], state["master_repl_offset"])
