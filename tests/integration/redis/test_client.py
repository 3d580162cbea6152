"""Instrumented redis-py clients on a real server: nothing changes but the lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import ConfigurationError
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from tests.integration._stale import doubtful, served

from ._clients import (
    async_client,
    client,
    counted,
    exchanges,
    position,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import LagProxy, RedisTopology

pytestmark = pytest.mark.store("redis")

IN_DOUBT = Incomplete("posts", "in_doubt")
UNSAMPLED = Incomplete("posts", "unsampled")


@pytest.fixture
def instrumented(make: Callable[..., Any]) -> Any:
    """An instrumented client with a warm connection and an empty database."""
    one = make()
    one.flushall()
    return one


def session(one: Any) -> list[Any]:
    """A little of everything; what it returned and raised."""
    found: list[Any] = []

    def attempt(work: Callable[[], Any]) -> None:
        try:
            found.append(work())
        except redis.RedisError as error:
            found.append((type(error), str(error)))

    attempt(lambda: one.set("k", "v"))
    attempt(lambda: one.set("k", "w", nx=True))
    attempt(lambda: one.set("k", "w", get=True))
    attempt(lambda: one.get("k"))
    attempt(lambda: one.hset("h", mapping={"a": 1, "b": 2}))
    attempt(lambda: one.hgetall("h"))
    attempt(lambda: one.incr("h"))
    attempt(lambda: one.zadd("z", {"a": 1.5}))
    attempt(lambda: one.zrange("z", 0, -1, withscores=True))
    attempt(lambda: one.blpop("nothing", timeout=0.01))
    attempt(lambda: one.rpush("l", 1, 2, 3))
    attempt(lambda: one.blpop("l", timeout=1))
    attempt(lambda: one.eval("return redis.call('INCR', KEYS[1])", 1, "n"))
    attempt(lambda: one.mget("k", "n", "none"))
    attempt(lambda: one.execute_command("GET", "k", NEVER_DECODE=True))
    attempt(lambda: one.execute_command("NO SUCH", "command"))
    attempt(lambda: one.xgroup_create("s", "g", mkstream=True))
    attempt(lambda: len(one.xadd("s", {"f": 1})) > 3)
    attempt(lambda: one.expire("k", 100))
    attempt(lambda: one.pipeline().set("p", 1).get("p").incr("h").execute(raise_on_error=False)[:2])
    attempt(lambda: one.pipeline().set("p", 1).incr("h").execute())
    attempt(lambda: one.pipeline(transaction=False).get("p").incr("h").set("p", 2).execute())
    attempt(lambda: one.pipeline(transaction=False).hgetall("h").get("none").execute())
    attempt(lambda: one.pipeline().execute())
    attempt(lambda: one.pipeline().execute_command("NO SUCH").set("p", 1).execute())
    attempt(lambda: one.transaction(lambda pipe: pipe.multi() or pipe.incr("n"), "n"))
    attempt(lambda: list(one.scan_iter("h*")))
    attempt(lambda: one.register_script("return ARGV[1]")(args=["x"]))
    attempt(one.flushall)
    return found


@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("single", [False, True])
def test_results_are_redis_pys(
    make: Callable[..., Any], *, decode_responses: bool, protocol: int, single: bool
) -> None:
    """Return values and exceptions are those of the plain client, whatever its options."""
    options = {
        "decode_responses": decode_responses,
        "protocol": protocol,
        "single_connection_client": single,
    }
    plain = make(plain=True, options=options)
    plain.flushall()
    expected = session(plain)
    with antipode.scope() as scope:
        assert session(make(options=options)) == expected
        assert writes_of(scope.lineage)
        assert not scope.lineage.incomplete


def test_results_under_a_floor_are_redis_pys(make: Callable[..., Any]) -> None:
    """A floor that is met changes no result either."""
    plain, one = make(plain=True), make()
    plain.flushall()
    expected = session(plain)
    with antipode.scope():
        one.set("before", 1)
        antipode.barrier(timeout=5, at="read")
        assert session(one) == expected


def test_write_mints_the_position_behind_it(
    instrumented: Any, antipode_redis: RedisTopology
) -> None:
    """The entry is where the primary stands after the write: replication id and offset."""
    with antipode.scope() as scope:
        instrumented.set("k", "v")
        write = writes_of(scope.lineage)[0]
    assert (write.key, write.version) == position(antipode_redis.primary)


@pytest.mark.parametrize(
    "write",
    [
        lambda one: one.set("k", "v"),
        lambda one: one.set("k", "v" * 100_000),
        lambda one: one.pipeline().set("k", 1).get("k").set("l", 2).execute(),
        lambda one: one.pipeline(transaction=False).set("k", 1).get("k").execute(),
        lambda one: one.xadd("s", {"f": 1}),
    ],
    ids=["set", "large", "transaction", "pipeline", "xadd"],
)
def test_write_costs_no_round_trip(
    instrumented: Any, proxy: LagProxy, write: Callable[[Any], Any]
) -> None:
    """A write, a pipeline and a transaction take one round trip, as without the library."""
    with antipode.scope() as scope:
        with exchanges(proxy) as made:
            write(instrumented)
        assert len(writes_of(scope.lineage)) == 1
    assert made == [1]


def test_watched_transaction_costs_what_it_did(make: Callable[..., Any], proxy: LagProxy) -> None:
    """``WATCH``, read, ``MULTI``, ``EXEC`` take the plain client's round trips, and mint once."""

    def work(one: Any) -> Any:
        with one.pipeline() as pipe:
            pipe.watch("k")
            seen = int(pipe.get("k") or 0)
            pipe.multi()
            pipe.set("k", seen + 1)
            return pipe.execute()

    plain, one = make(plain=True), make()
    plain.set("k", 1)
    one.set("first", 1)  # Its connection is asked once for INFO alone.
    with exchanges(proxy) as expected:
        work(plain)
    with antipode.scope() as scope:
        with exchanges(proxy) as made:
            assert work(one) == [True]
        assert len(writes_of(scope.lineage)) == 1
    assert made == expected


def test_read_costs_nothing(instrumented: Any, proxy: LagProxy) -> None:
    """Without a floor a read sends what it sent before, byte for byte."""
    instrumented.set("k", "v")
    with antipode.scope() as scope:
        before = proxy.traffic()
        instrumented.get("k")
        sent = (proxy.traffic() - before).request_bytes
        assert scope.lineage.empty
    assert sent == len(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")


def test_read_under_a_floor_costs_no_round_trip(instrumented: Any, proxy: LagProxy) -> None:
    """A floor that is met is checked in the round trip of the read itself."""
    with antipode.scope():
        instrumented.set("k", "v")
        antipode.barrier(timeout=5, at="read")
        with exchanges(proxy) as made:
            assert instrumented.get("k") == b"v"
            assert instrumented.pipeline().get("k").get("k").execute() == [b"v", b"v"]
    assert made == [2]


def test_aborted_transaction_mints_nothing(make: Callable[..., Any]) -> None:
    """A watched key changed: nothing was written, so nothing enters."""
    one, other = make(), make(plain=True)
    with antipode.scope() as scope:
        with one.pipeline() as pipe:
            pipe.watch("k")
            other.set("k", "meanwhile")
            pipe.multi()
            pipe.set("k", "mine")
            with pytest.raises(redis.WatchError):
                pipe.execute()
        assert scope.lineage.empty


def test_write_between_watch_and_multi_enters(instrumented: Any) -> None:
    """A write made at once under ``WATCH`` enters like any other."""
    with antipode.scope() as scope, instrumented.pipeline() as pipe:
        pipe.watch("k")
        pipe.set("other", 1)
        assert len(writes_of(scope.lineage)) == 1


def test_refused_write_mints_nothing(instrumented: Any) -> None:
    """A command error mints nothing and leaves no doubt; a partial success does mint."""
    instrumented.hset("h", "f", 1)
    with antipode.scope() as scope:
        with pytest.raises(redis.ResponseError):
            instrumented.incr("h")
        with pytest.raises(redis.ResponseError):
            instrumented.pipeline().incr("h").execute()
        with pytest.raises(redis.ResponseError):
            instrumented.pipeline().execute_command("SET", "one-argument").set("k", 1).execute()
        assert scope.lineage.empty
        with pytest.raises(redis.ResponseError):
            instrumented.pipeline().incr("h").set("k", 1).execute()
        assert writes_of(scope.lineage)
        assert not scope.lineage.incomplete


SET_BY_SCRIPT = "return redis.call('SET', KEYS[1], 1)"


def test_what_may_write_enters(instrumented: Any) -> None:
    """A script, function or unknown command is taken for a write, alone, in pipelines, in MULTI."""
    calls: list[Callable[[], Any]] = [
        lambda: instrumented.eval(SET_BY_SCRIPT, 1, "k"),
        lambda: instrumented.pipeline(transaction=False).eval(SET_BY_SCRIPT, 1, "k").execute(),
        lambda: instrumented.pipeline().eval(SET_BY_SCRIPT, 1, "k").execute(),
        lambda: instrumented.pipeline().get("k").eval(SET_BY_SCRIPT, 1, "k").get("k").execute(),
        lambda: instrumented.lock("lock", timeout=5).acquire(),
        lambda: instrumented.json().pipeline().incr("n").execute(),
        lambda: instrumented.ts().pipeline().incr("n").execute(),
        lambda: instrumented.ft().pipeline().incr("n").execute(),
    ]
    instrumented.delete("lock", "n")
    before = counted("uncovered_write")
    for call in calls:
        with antipode.scope() as scope:
            call()
            assert len(writes_of(scope.lineage)) == 1
            assert not scope.lineage.incomplete
    assert counted("uncovered_write") == before


def test_lock_is_waited_for(instrumented: Any) -> None:
    """The release of redis-py's own lock, a script, is a later write than its acquisition."""
    lock = instrumented.lock("other-lock", timeout=5)
    with antipode.scope() as scope:
        lock.acquire()
        (acquired,) = writes_of(scope.lineage)
        lock.release()
        (released,) = writes_of(scope.lineage)
    assert released.version > acquired.version


def test_script_that_fails_may_have_written(instrumented: Any, plain: Any) -> None:
    """What a script wrote before its error stays written: its position enters all the same."""
    failing = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('NOSUCH')"
    batch = instrumented.pipeline(transaction=False)
    for value, call in {
        b"1": lambda: instrumented.eval(failing, 1, "k", 1),
        b"2": lambda: instrumented.pipeline().eval(failing, 1, "k", 2).execute(),
        b"3": lambda: batch.eval(failing, 1, "k", 3).get("k").execute(),
    }.items():
        with antipode.scope() as scope:
            with pytest.raises(redis.ResponseError):
                call()
            assert plain.get("k") == value
            assert writes_of(scope.lineage)


def test_migrate_is_in_doubt(instrumented: Any, antipode_redis: RedisTopology) -> None:
    """What it writes at another server has no position here."""
    host, port = antipode_redis.replica
    with antipode.scope() as scope:
        assert instrumented.migrate(host, port, ["no-such-key"], 0, 100) in (b"NOKEY", "NOKEY")
        assert writes_of(scope.lineage)
        assert scope.lineage.incomplete == {Incomplete("posts", "in_doubt")}


def test_script_that_the_server_lacks_wrote_nothing(instrumented: Any) -> None:
    """``NOSCRIPT`` proves that nothing was done."""
    with antipode.scope() as scope:
        with pytest.raises(redis.exceptions.NoScriptError):
            instrumented.evalsha("f" * 40, 0)
        with pytest.raises(redis.exceptions.NoScriptError):
            instrumented.pipeline().evalsha("f" * 40, 0).execute()
        assert scope.lineage.empty


def test_script_at_a_replica(antipode_redis: RedisTopology) -> None:
    """A replica that takes no writes proves that a script only read; a writable one does not."""
    with client(antipode_redis.replica) as one:
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        with antipode.scope() as scope:
            assert one.eval("return 1", 0) == 1
            assert one.pipeline().eval("return 1", 0).execute() == [1]
            with pytest.raises(redis.ResponseError):
                one.eval(SET_BY_SCRIPT, 1, "k")
            assert scope.lineage.empty
        antipode_redis.config({"replica-read-only": "no"}, replica=0)
        with antipode.scope() as scope:
            one.eval(SET_BY_SCRIPT, 1, "stray")
            one.delete("stray")
            assert not writes_of(scope.lineage)
            assert Incomplete("posts", "in_doubt") in scope.lineage.incomplete
        shims.uninstrument_client(one)


def test_multi_by_hand(make: Callable[..., Any]) -> None:
    """``MULTI`` and ``EXEC`` sent by hand get no extra reply, and the ``EXEC`` mints."""
    one = make(options={"single_connection_client": True})
    with antipode.scope() as scope:
        one.execute_command("MULTI")
        one.execute_command("SET", "k", 1)
        one.execute_command("GET", "k")
        assert scope.lineage.empty
        assert one.execute_command("EXEC") == [b"OK", b"1"]
        assert len(writes_of(scope.lineage)) == 1
    with antipode.scope() as scope:
        one.execute_command("MULTI")
        one.execute_command("SET", "k", 2)
        one.execute_command("DISCARD")
        one.execute_command("MULTI")
        one.execute_command("GET", "k")
        assert one.execute_command("EXEC") == [b"1"]
        assert scope.lineage.empty
        one.set("k", 3)
        assert writes_of(scope.lineage)
    with antipode.scope() as scope:
        one.execute_command("MULTI")
        one.eval(SET_BY_SCRIPT, 1, "k")
        assert one.execute_command("EXEC") == [b"OK"]
        assert writes_of(scope.lineage)


def test_multi_by_hand_in_a_pipeline_is_unsampled(instrumented: Any) -> None:
    """A ``MULTI`` within a plain pipeline keeps its replies, and the lineage says what it lacks."""
    with antipode.scope() as scope:
        pipe = instrumented.pipeline(transaction=False)
        pipe.execute_command("MULTI").execute_command("SET", "k", 1).execute_command("EXEC")
        assert pipe.execute()[-1] == [b"OK"]
        assert UNSAMPLED in scope.lineage.incomplete
    with antipode.scope() as scope:
        pipe = instrumented.pipeline(transaction=False)
        pipe.execute_command("MULTI").eval(SET_BY_SCRIPT, 1, "k").execute_command("EXEC")
        assert pipe.execute()[-1] == [b"OK"]
        assert UNSAMPLED in scope.lineage.incomplete


def test_user_without_info_is_unsampled(make: Callable[..., Any]) -> None:
    """Who may write and not ask gets results as ever; the lineage says what it lacks."""
    make(plain=True).acl_setuser("writer", enabled=True, nopass=True, categories=["+@all"],
                                 commands=["-info"], keys=["*"])  # fmt: skip
    one = make(options={"username": "writer", "password": "x"})
    with antipode.scope() as scope:
        assert one.set("k", "v")
        assert scope.lineage.incomplete == {UNSAMPLED}


def test_children_are_instrumented(instrumented: Any) -> None:
    """A client of one connection made from an instrumented one is instrumented, too."""
    with antipode.scope() as scope, instrumented.client() as child:
        child.set("k", "v")
        assert writes_of(scope.lineage)


def test_lock_works(instrumented: Any) -> None:
    """redis-py's own lock goes on working."""
    with antipode.scope(), instrumented.lock("lock", timeout=5) as lock:
        assert lock.owned()


def test_what_was_unregistered_can_be_instrumented_again(make: Callable[..., Any]) -> None:
    """Its shim was closed: it gets another one, and barriers know the datastore again."""
    one = make(plain=True)
    shims.instrument_client(one, datastore="posts")
    antipode.shim.unregister("posts")
    assert shims.instrument_client(one, datastore="posts") is one
    with antipode.scope():
        one.set("k", "v")
        assert antipode.barrier(timeout=5, only="posts").outcomes
    shims.uninstrument_client(one)


def test_instrumenting_is_idempotent_and_undoable(make: Callable[..., Any]) -> None:
    """The object stays itself; undone, its class is what it was and it mints nothing."""
    one = make(plain=True)
    plain_class = type(one)
    assert shims.instrument_client(one, datastore="posts") is one
    assert shims.instrument_client(one, datastore="posts") is one
    assert isinstance(one, plain_class)
    with pytest.raises(ConfigurationError):
        shims.instrument_client(one, datastore="others")
    shims.uninstrument_client(one)
    shims.uninstrument_client(one)
    assert type(one) is plain_class
    with antipode.scope() as scope:
        one.set("k", "v")
        assert scope.lineage.empty


def test_cluster_clients_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """RedisCluster is refused in both flavours, by name and with the reason."""
    for kind in (redis.RedisCluster, redis.asyncio.RedisCluster):
        cluster = kind.__new__(kind)
        for take in (
            lambda: shims.instrument_client(cluster, datastore="posts"),  # noqa: B023
            lambda: shims.shim("posts", cluster),  # noqa: B023
            lambda: shims.shim_async("posts", cluster),  # noqa: B023
        ):
            with pytest.raises(ConfigurationError, match="RedisCluster is not supported"):
                take()
        monkeypatch.setattr(kind, "__del__", lambda _self: None, raising=False)


def test_bad_arguments(make: Callable[..., Any], proxy: LagProxy) -> None:
    """Each mistake is one clear error."""
    one = make(plain=True)
    for bad, match in (
        (lambda: shims.instrument_client(one, datastore="posts", lineage="beside"), "keys"),
        (lambda: shims.instrument_client(one, datastore=""), "non-empty"),
        (lambda: shims.instrument_client(one.pipeline(), datastore="posts"), "Pipeline"),
        (lambda: shims.instrument_client(object(), datastore="posts"), "object"),
        (lambda: shims.shim("posts", async_client(proxy.address)), "shim_async"),
        (lambda: shims.shim_async("posts", one), r"redis\.shim"),
        (lambda: shims.shim("posts", one, on_read="maybe"), "on_read"),
        (lambda: shims.shim("posts", one, prefix=""), "prefix"),
        (lambda: shims.shim("posts", one, reads_from="moon"), "reads_from"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            bad()


def test_client_side_cache_does_not_hide_a_floor(
    make: Callable[..., Any], antipode_redis: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    """redis-py's own cache answers as ever, but not a read under a floor."""
    caching = pytest.importorskip("redis.cache", reason="this redis-py has no cache")
    proxied = redis.connection.CacheProxyConnection
    monkeypatch.setattr(proxied, "MIN_ALLOWED_VERSION", "6.0.0")  # It works, if not for sure.
    writer = make()
    writer.set("k", "old")
    antipode_redis.wait_replicated()
    config = {"protocol": 3, "cache_config": caching.CacheConfig()}
    with client(antipode_redis.replica, **config) as reader:
        shims.instrument_client(reader, datastore="posts", reads_from="replica")
        assert [reader.get("k"), reader.get("k")] == [b"old", b"old"]
        antipode_redis.set_lag(50)
        for number in range(3):
            with antipode.scope():
                writer.set("k", number)
                antipode.barrier(timeout=5, at="read")
                assert reader.get("k") == str(number).encode()
                assert reader.mget("k", "k") == [str(number).encode()] * 2
        shims.uninstrument_client(reader)


def test_a_read_that_is_refused_is_not_counted_as_stale(antipode_redis: RedisTopology) -> None:
    """A read that raises is served to nobody: alone, in a pipeline, and of Table 2."""
    antipode.configure(barriers="auto")
    with client(antipode_redis.primary) as one, shims.shim("posts", one) as table2:
        shims.instrument_client(one, datastore="posts")
        one.rpush("list", "1")
        one.set("post", "1")
        for lineage in doubtful("posts"):
            for refused in (
                lambda: one.get("list"),
                lambda: one.pipeline(transaction=False).get("list").execute(),
                lambda: one.pipeline().get("list").execute(),
                lambda: table2.read("list"),
            ):
                with (
                    served("posts", 0),
                    antipode.scope(lineage),
                    pytest.raises(redis.ResponseError),
                ):
                    refused()
            with served("posts", 3), antipode.scope(lineage):
                assert one.get("post") == b"1"
                assert one.pipeline().get("post").execute() == [b"1"]
                assert table2.read("post")[0] == b"1"
