"""Lineages beside the values of an application's own keys, through its own commands."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims import redis as shims

from ._clients import TIMEOUT_S, client, counted, exchanges
from ._stored import CAUSE, KEYS, OTHER, causes, found, under

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import LagProxy, RedisTopology

pytestmark = pytest.mark.store("redis")


def test_a_reader_depends_on_the_writes_lineage(beside: Any) -> None:
    """A write stores the current lineage; who reads the key has it, and covers the write."""
    with antipode.scope(Lineage([CAUSE])) as writer:
        beside.set("k:1", "v")
        (own,) = (write for write in writer.lineage if write.datastore == "posts")
    read = found(lambda: beside.get("k:1"))
    assert causes(read) == {CAUSE}
    (covering,) = (write for write in read if write.datastore == "posts")
    assert covering.covering
    assert covering.key == own.key
    assert int(covering.version) >= int(own.version)
    assert not read.incomplete


def test_other_keys_are_left_alone(beside: Any, plain: Any) -> None:
    """Nothing lies beside a key that is not named, and a read of it adds nothing."""
    under(CAUSE, lambda: beside.mset({"other": 1, "k:1": 2}))
    assert sorted(plain.keys("*")) == [b"ap:k:1", b"k:1", b"other"]
    assert not found(lambda: beside.get("other"))


WHOLE = """
SET k:1 w
SET k:1 w EX 100
SET k:1 w KEEPTTL
SET k:1 w EXAT 99999999999
SET k:1 w GET
SET k:1 w PX 100000 GET
SETEX k:1 100 w
PSETEX k:1 100000 w
GETSET k:1 w
MSET k:1 w k:9 w
RENAME k:2 k:1
COPY k:2 k:1 REPLACE
"""


@pytest.mark.parametrize("write", WHOLE.strip().splitlines())
def test_a_full_replace_replaces(beside: Any, write: str) -> None:
    """The lineage of what was there before goes with it."""
    under(CAUSE, lambda: beside.set("k:1", "v"))
    under(None, lambda: beside.set("k:2", "v"))
    under(OTHER, lambda: beside.execute_command(*write.split()))
    assert causes(found(lambda: beside.get("k:1"))) == {OTHER}


PARTIAL = """
SET k:1 v; APPEND k:1 w; GET k:1
SET k:1 v; APPEND k:1 w; GETRANGE k:1 0 -1
SET k:1 1; INCR k:1; GET k:1
SET k:1 v; SETRANGE k:1 0 w; MGET k:1 k:2
SET k:1 v; SET k:1 w NX; GET k:1
SET k:1 v; SET k:1 w XX; GET k:1
SET k:1 v; SETNX k:1 w; GET k:1
SET k:1 v; MSETNX k:1 w k:2 w; GET k:1
SET k:1 v; EXPIRE k:1 100; TTL k:1
SET k:1 v EX 100; PERSIST k:1; GET k:1
SET k:1 v; GETEX k:1 EX 100; EXISTS k:1
SET k:1 v; SETBIT k:1 1 1; GETBIT k:1 1
HSET k:1 a 1; HSET k:1 b 2; HGET k:1 a
HSET k:1 a 1; HDEL k:1 b; HGETALL k:1
HSET k:1 a 1; HINCRBY k:1 a 2; HMGET k:1 a b
RPUSH k:1 a; LPUSH k:1 b; LRANGE k:1 0 -1
RPUSH k:1 a b; LPOP k:1; LINDEX k:1 0
RPUSH k:1 a b; BLPOP k:1 1; LLEN k:1
SADD k:1 a; SADD k:1 b; SMEMBERS k:1
SADD k:1 a; SMOVE k:1 k:2 a; SISMEMBER k:2 a
ZADD k:1 1 a; ZADD k:1 2 b; ZRANGE k:1 0 -1
ZADD k:1 1 a; ZUNIONSTORE k:2 1 k:1; ZSCORE k:2 a
SADD k:1 a; SUNIONSTORE k:2 k:1 k:3; SINTER k:2 k:2
XADD k:1 1-1 f v; XADD k:1 1-2 f v; XRANGE k:1 - +
XADD k:1 1-1 f v; XADD k:1 1-2 f v; XREAD STREAMS k:1 0
XADD k:1 1-1 f v; XADD k:1 1-2 f v; XREAD BLOCK 10 STREAMS k:1 0
XADD k:1 1-1 f v; XGROUP CREATE k:1 g 0; XINFO GROUPS k:1
SET k:1 v; RENAME k:1 k:2; GET k:2
SET k:1 v; COPY k:1 k:2; GET k:2
RPUSH k:1 a b; LMOVE k:1 k:2 LEFT RIGHT; LRANGE k:2 0 -1
RPUSH k:1 b a; SORT k:1 ALPHA STORE k:2; LRANGE k:2 0 -1
PFADD k:1 a; PFMERGE k:2 k:1; PFCOUNT k:2
SET k:1 v; BITOP NOT k:2 k:1; GET k:2
GEOADD k:1 13 38 a; GEOADD k:1 13 38 b; GEOPOS k:1 a
HSET k:1 a 1; INCR k:1; HGETALL k:1
SET k:1 v; SET k:1 w EX 0; GET k:1
RPUSH k:1 a; GETSET k:1 w; LRANGE k:1 0 -1
"""


@pytest.mark.parametrize("row", PARTIAL.strip().splitlines())
def test_a_partial_update_merges(beside: Any, row: str) -> None:
    """Whoever reads has the lineages of all who made what is there; so it is if the last failed."""
    first, second, read = (each.split() for each in row.split("; "))
    under(CAUSE, lambda: beside.execute_command(*first))

    def update() -> None:
        with contextlib.suppress(redis.ResponseError):
            beside.execute_command(*second)

    under(OTHER, update)
    lineage = found(lambda: beside.execute_command(*read))
    expected = {CAUSE} if "EX 0" in row else {CAUSE, OTHER}
    assert causes(lineage) == expected
    assert not lineage.incomplete


def test_two_writers_of_two_fields(beside: Any, make: Callable[..., Any]) -> None:
    """Neither overwrites the other's lineage."""
    another = make(lineage="beside", keys=KEYS)
    under(CAUSE, lambda: beside.hset("k:1", "a", 1))
    under(OTHER, lambda: another.hset("k:1", "b", 2))
    assert causes(found(lambda: beside.hget("k:1", "a"))) == {CAUSE, OTHER}


GONE = """
SET k:1 v; DEL k:1; GET k:1
SET k:1 v; UNLINK k:1 k:2; EXISTS k:1
SET k:1 v; GETDEL k:1; TTL k:1
RPUSH k:1 a; LPOP k:1; LRANGE k:1 0 -1
HSET k:1 a 1; HDEL k:1 a; HGET k:1 a
SADD k:1 a; SPOP k:1; SMEMBERS k:1
SET k:1 v; EXPIRE k:1 -1; MGET k:1
SET k:1 v; SET k:1 w EXAT 1; GET k:1
SET k:1 v; RENAME k:1 other; GET k:1
SET k:1 v; MOVE k:1 1; GET k:1
"""


@pytest.mark.parametrize("row", GONE.strip().splitlines())
def test_a_deletion_leaves_its_lineage(beside: Any, plain: Any, row: str) -> None:
    """Who finds nothing depends on what the deletion depended on, for as long as the horizon."""
    first, second, read = (each.split() for each in row.split("; "))
    under(CAUSE, lambda: beside.execute_command(*first))
    under(OTHER, lambda: beside.execute_command(*second))
    assert OTHER in found(lambda: beside.execute_command(*read))
    horizon_ms = antipode.shim.config().horizon.total_seconds() * 1000
    assert 0 <= horizon_ms - plain.pttl("ap:k:1") < 60_000


def test_a_second_deletion_hides_nothing(beside: Any) -> None:
    """Deleting what is not there keeps the lineage of who deleted it."""
    under(None, lambda: beside.set("k:1", "v"))
    under(CAUSE, lambda: beside.delete("k:1"))
    under(OTHER, lambda: beside.delete("k:1"))
    assert causes(found(lambda: beside.get("k:1"))) == {CAUSE, OTHER}


def test_a_plain_writer_in_between(beside: Any, plain: Any) -> None:
    """What a plain client wrote has nobody's lineage: foreign; a companion that went is absent."""
    under(CAUSE, lambda: beside.set("k:1", "v"))
    plain.set("k:1", "w")
    foreign, absent = counted("foreign"), counted("companion_absent")
    assert not causes(found(lambda: beside.get("k:1")))
    assert counted("foreign") == foreign + 1
    plain.delete("ap:k:1")  # As an eviction would.
    assert not causes(found(lambda: beside.get("k:1")))
    assert counted("companion_absent") == absent + 1
    plain.delete("k:1")
    assert not found(lambda: beside.get("k:1")).incomplete
    plain.set("ap:k:1", b"\xff\xfe|")
    assert Incomplete("posts", "unreadable") in found(lambda: beside.strlen("k:1")).incomplete


@pytest.mark.parametrize("write", ["EXPIRE k:1 50", "PERSIST k:1", "SET k:1 w KEEPTTL", "INCR k:1"])
def test_the_companion_expires_with_its_value(beside: Any, plain: Any, write: str) -> None:
    """Both have the same time to live, whatever changed it."""

    def differ_ms() -> int:
        # Asked for at one moment.
        companion, value = plain.pipeline().pttl("ap:k:1").pttl("k:1").execute()
        return abs(companion - value)

    under(CAUSE, lambda: beside.set("k:1", "1", px=100_000))
    assert differ_ms() < 1000
    under(OTHER, lambda: beside.execute_command(*write.split()))
    assert differ_ms() < 1000


@pytest.mark.parametrize("transaction", [False, True])
def test_pipelines(beside: Any, *, transaction: bool) -> None:
    """Every command of a pipeline stores and reads as it does alone; results are its own."""

    def write() -> Any:
        batch = beside.pipeline(transaction=transaction)
        batch.set("k:1", "v").hset("k:2", "a", 1).get("none").mset({"k:3": 3, "k:4": 4}).delete(
            "k:5"
        )
        return batch.execute()

    assert under(CAUSE, write) == [True, 1, None, True, 0]
    for key in ("k:1", "k:3", "k:4", "k:5"):
        assert causes(found(lambda key=key: beside.get(key))) == {CAUSE}

    def read() -> None:
        batch = beside.pipeline(transaction=transaction).hgetall("k:2").get("k:9")
        assert batch.execute() == [{b"a": b"1"}, None]

    lineage = found(read)
    assert causes(lineage) == {CAUSE}
    assert any(write.covering for write in lineage)


def test_a_watched_transaction(beside: Any) -> None:
    """Reads between WATCH and MULTI do not end the watch, and take up what they find."""
    under(CAUSE, lambda: beside.set("k:1", "1"))

    def transact() -> None:
        with beside.pipeline() as batch:
            batch.watch("k:1")
            assert batch.get("k:1") == b"1"
            beside.set("k:1", "2")
            batch.multi()
            batch.set("k:1", "3")
            with pytest.raises(redis.WatchError):
                batch.execute()

    assert CAUSE in found(transact)
    assert beside.get("k:1") == b"2"


def test_who_pops_depends_on_who_pushed(beside: Any) -> None:
    """A write whose reply shows what was there is a read as well."""
    under(CAUSE, lambda: beside.rpush("k:1", "a", "b"))
    assert CAUSE in found(lambda: beside.lpop("k:1"))
    assert CAUSE in found(lambda: beside.blpop("k:1", 1))
    under(CAUSE, lambda: beside.set("k:2", "a"))
    assert CAUSE in found(lambda: beside.set("k:2", "b", get=True))


def test_a_thousand_updates_are_one_entry(beside: Any, plain: Any) -> None:
    """The server keeps one position of each log; over the bound, the text says that it lost."""
    for version in range(1000):
        cause = WriteId("users", "log-1", version, 480_000 + version // 100)
        under(cause, lambda version=version: beside.hset("k:1", "f", version))
    assert plain.strlen("ap:k:1") < 100
    assert causes(found(lambda: beside.hgetall("k:1"))) == {WriteId("users", "log-1", 999, 480_009)}


def test_more_than_fits_says_so(beside: Any, plain: Any) -> None:
    """Over the bound a merge keeps the newest lineage and says that others went."""
    causes_of_all = [
        WriteId("users", f"message-{number}-{'x' * 20}", "opaque", 480_000) for number in range(60)
    ]
    for cause in causes_of_all:
        under(cause, lambda: beside.sadd("k:1", 1))
    assert plain.strlen("ap:k:1") < antipode.shim.config().max_lineage_bytes + 100
    lineage = found(lambda: beside.smembers("k:1"))
    assert Incomplete("", "size") in lineage.incomplete
    assert causes_of_all[-1] in lineage


def test_what_lies_beside_is_short(beside: Any, plain: Any) -> None:
    """A lineage of one store is less than 100 bytes, with its digest."""
    with antipode.scope():
        beside.set("k:0", 1)
        beside.set("k:1", 1)
        beside.hset("k:2", "a", 1)
    assert 20 < plain.strlen("ap:k:1") < 100
    assert 20 < plain.strlen("ap:k:2") < 100


def test_no_round_trip_more(beside: Any, proxy: LagProxy) -> None:
    """Writes and reads of named keys are one round trip, as ever."""
    for work in (
        lambda: beside.set("k:1", "v"),
        lambda: beside.hset("k:2", "a", 1),
        lambda: beside.get("k:1"),
    ):
        with exchanges(proxy) as made:
            work()
        assert made == [1]


def test_lag(beside: Any, antipode_redis: RedisTopology) -> None:
    """A reader elsewhere waits for the write, sees it there, and has all that it depended on."""
    antipode_redis.set_lag(200)
    with antipode.scope(Lineage([CAUSE])) as writer:
        beside.hset("k:1", "a", 1)
        near = shims.instrument_client(
            client(antipode_redis.replica, socket_timeout=TIMEOUT_S),
            datastore="posts",
            reads_from="replica",
            lineage="beside",
            keys=KEYS,
        )
        try:
            with antipode.scope(writer.lineage.only("posts")):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                assert near.hgetall("k:1") == {b"a": b"1"}
                assert CAUSE in antipode.current()
                assert not antipode.current().incomplete
        finally:
            shims.uninstrument_client(near)
            near.close()


def test_both_faces_read_each_other(beside: Any, antipode_redis: RedisTopology) -> None:
    """What Table 2 stores beside a value and what a native client stores are one format."""
    with client(antipode_redis.primary) as plain, shims.shim("posts", plain) as table:
        under(CAUSE, lambda: table.write("k:1", "v"))
        assert causes(found(lambda: beside.get("k:1"))) == {CAUSE}
        under(OTHER, lambda: beside.append("k:1", "w"))
        assert causes(found(lambda: table.read("k:1"))) == {CAUSE, OTHER}
        under(CAUSE, lambda: beside.delete("k:1"))
        assert causes(found(lambda: table.read("k:1"))) == {CAUSE}


def test_reads_that_name_no_key_are_counted(beside: Any) -> None:
    """A scan may show named keys: it covers their writes and is counted."""
    before = counted("unread_lineage")
    lineage = found(lambda: beside.keys("*"))
    assert counted("unread_lineage") == before + 1
    assert all(write.covering for write in lineage)
    assert lineage


def test_reads_may_be_ignored(make: Callable[..., Any]) -> None:
    """With on_read="ignore" a read is the plain client's and adds nothing."""
    one = make(lineage="beside", keys=KEYS, on_read="ignore")
    under(CAUSE, lambda: one.set("k:1", "v"))
    assert not found(lambda: one.get("k:1"))


def test_names_are_needed(make: Callable[..., Any]) -> None:
    """Beside which keys must be said, and only there."""
    with pytest.raises(ConfigurationError, match="keys"):
        make(lineage="beside")
    with pytest.raises(ConfigurationError, match="beside"):
        make(keys=KEYS)
