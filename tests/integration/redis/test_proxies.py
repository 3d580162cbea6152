"""Proxies, and addresses and users that keep ``INFO`` back.

Nothing passes early, and no call is done twice or fails for what is added to it.
"""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode import ConfigurationError, Lineage, Status, WriteId
from antipode.shim import Incomplete
from antipode_shims import redis as shims
from tests.integration._balancers import haproxy, twemproxy

from ._clients import TIMEOUT_S, async_client, client, counted, exchanges, writes_of
from ._proxies import InfoProxy, info_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from antipode_testing import LagProxy, RedisTopology

pytestmark = pytest.mark.store("redis")

UNSAMPLED = Incomplete("posts", "unsampled")
SCRIPT = "return redis.call('INCR', KEYS[1])"
CALLS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda one: one.incr("n"),
    "pipeline": lambda one: one.pipeline(transaction=False).incr("n").execute(),
    "transaction": lambda one: one.pipeline().incr("n").execute(),
    "script": lambda one: one.eval(SCRIPT, 1, "n"),
}


@pytest.fixture(params=[None, b"$0\r\n\r\n"], ids=["closes", "says nothing"])
def before(request: pytest.FixtureRequest, antipode_redis: RedisTopology) -> Iterator[InfoProxy]:
    """A proxy before the primary that closes at ``INFO``, and one that answers with nothing."""
    with client(antipode_redis.primary) as plain:
        plain.delete("n")
    with info_proxy(antipode_redis.primary, answers=request.param) as proxy:
        yield proxy


def retrying(proxy: InfoProxy, **options: Any) -> Any:
    """An instrumented client that tries ten times again."""
    one = client(proxy.address, retry=Retry(NoBackoff(), 10), socket_timeout=TIMEOUT_S)
    return shims.instrument_client(one, datastore="posts", **options)


@asynccontextmanager
async def retrying_async(proxy: InfoProxy, **options: Any) -> AsyncIterator[Any]:
    """The same over asyncio."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 10)
    async with async_client(proxy.address, retry=retry, socket_timeout=TIMEOUT_S) as one:
        yield shims.instrument_client(one, datastore="posts", **options)
        shims.uninstrument_client(one)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_write_is_done_once(before: InfoProxy, plain: Any, call: str, *, beside: bool) -> None:
    """Each call is done once and answered; its lineage says what it lacks."""
    options: dict[str, Any] = {"lineage": "beside", "keys": ["*"]} if beside else {}
    with retrying(before, **options) as one:
        for number in range(1, 4):
            uncovered = counted("uncovered_write")
            with antipode.scope() as scope:
                assert CALLS[call](one) in (number, [number])
                assert scope.lineage.incomplete == {UNSAMPLED}
            assert counted("uncovered_write") == uncovered + 1
            assert plain.get("n") == b"%d" % number
        assert before.asked <= 2  # Asked alone, once, and once more to know that it is no accident.
        assert len(one.connection_pool._available_connections) == 1
        shims.uninstrument_client(one)


@pytest.mark.parametrize("call", CALLS)
async def test_write_is_done_once_over_asyncio(before: InfoProxy, plain: Any, call: str) -> None:
    """The asyncio client does as the synchronous one."""
    async with retrying_async(before) as one:
        for number in range(1, 3):
            with antipode.scope() as scope:
                assert await CALLS[call](one) in (number, [number])
                assert scope.lineage.incomplete == {UNSAMPLED}
            assert plain.get("n") == b"%d" % number
        assert before.asked <= 2


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("call", ["alone", "pipeline", "script"])
def test_write_through_twemproxy_is_done_once(
    antipode_redis: RedisTopology, plain: Any, call: str, *, beside: bool
) -> None:
    """The real one, which closes the connection at ``INFO`` and knows no transactions."""
    options: dict[str, Any] = {"lineage": "beside", "keys": ["*"]} if beside else {}
    plain.delete("n")
    spoken: dict[str, Any] = {"protocol": 2, "driver_info": None}  # It knows no greetings.
    with (
        twemproxy(antipode_redis.primary) as address,
        client(address, retry=Retry(NoBackoff(), 10), socket_timeout=TIMEOUT_S, **spoken) as one,
    ):
        shims.instrument_client(one, datastore="posts", **options)
        for number in range(1, 4):
            with antipode.scope() as scope:
                assert CALLS[call](one) in (number, [number])
                assert scope.lineage.incomplete == {UNSAMPLED}
            assert plain.get("n") == b"%d" % number
        shims.uninstrument_client(one)


def test_no_guarded_read_through_a_balancer_is_early(
    antipode_redis: RedisTopology, make: Callable[..., Any]
) -> None:
    """Each connection reads the server that it is on, and waits there; plain ones are early."""
    writer = make()
    with ExitStack() as stack:
        address = stack.enter_context(haproxy(antipode_redis.primary, antipode_redis.replica))
        plain = [stack.enter_context(client(address)) for _ in range(8)]
        writer.delete("k")
        antipode_redis.wait_replicated()
        antipode_redis.pause()
        writer.set("k", "v")
        assert {one.exists("k") for one in plain} == {0, 1}
        antipode_redis.resume()
        antipode_redis.set_lag(20)
        one = stack.enter_context(client(address))
        shims.instrument_client(one, datastore="posts", reads_from="replica", one_server=False)
        stack.callback(shims.uninstrument_client, one)
        for number in range(20):
            with antipode.scope():
                writer.set("k", number)
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                assert one.get("k") == b"%d" % number
            one.connection_pool.disconnect()


def test_watched_transaction_is_done_once(before: InfoProxy, plain: Any) -> None:
    """Where the connection was closed the keys are watched no more: redis-py says so, and again."""

    def work(pipe: Any) -> None:
        seen = int(pipe.get("n") or 0)
        pipe.multi()
        pipe.set("n", seen + 1)

    with retrying(before) as one:
        with antipode.scope() as scope:
            assert one.transaction(work, "n") == [True]
            assert scope.lineage.incomplete == {UNSAMPLED}
        assert plain.get("n") == b"1"
        shims.uninstrument_client(one)


def test_read_under_a_floor_says_why(before: InfoProxy) -> None:
    """A read that has to be checked cannot be: an error in words, whatever the command."""
    with retrying(before) as one:
        one.set("k", "v")
        with antipode.scope(Lineage([WriteId("posts", "f" * 40, 7)])):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            for read in (
                lambda: one.get("k"),
                lambda: one.eval("return 1", 0),
                lambda: one.pipeline().get("k").execute(),
                lambda: one.pipeline().get("k").set("k", "w").execute(),
            ):
                with pytest.raises(ConfigurationError, match="does not pass INFO"):
                    read()
        assert one.get("k") == b"v"
        shims.uninstrument_client(one)


async def test_read_under_a_floor_says_why_over_asyncio(before: InfoProxy) -> None:
    """The asyncio client does as the synchronous one."""
    async with retrying_async(before) as one:
        with antipode.scope(Lineage([WriteId("posts", "f" * 40, 7)])):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(ConfigurationError, match="does not pass INFO"):
                await one.get("k")


def test_barrier_says_why(before: InfoProxy) -> None:
    """The library's own connection learns it at once, and does not wait for the deadline."""
    with retrying(before) as one:
        write = WriteId("posts", "f" * 40, 7)
        with pytest.raises(antipode.VisibilityCheckError, match="does not pass INFO"):
            antipode.barrier(Lineage([write]), timeout=TIMEOUT_S)
        shims.uninstrument_client(one)


def test_read_of_a_named_key_is_incomplete(before: InfoProxy, plain: Any) -> None:
    """What lies beside it is not read, and no position covers it: the lineage says so."""
    plain.set("k", "v")
    with retrying(before, lineage="beside", keys=["k"]) as one:
        with antipode.scope() as scope:
            assert one.get("k") == b"v"
            assert scope.lineage.incomplete == {UNSAMPLED}
        shims.uninstrument_client(one)


def test_table2_says_why(before: InfoProxy, plain: Any) -> None:
    """Its own write and read are refused before anything is done."""
    plain.delete("t")
    with client(before.address, socket_timeout=TIMEOUT_S) as one:
        posts = shims.shim("posts", one)
        with pytest.raises(ConfigurationError, match="does not pass INFO"):
            posts.write("t", "v")
        with pytest.raises(ConfigurationError, match="does not pass INFO"):
            posts.read("t")
        assert plain.get("t") is None
        posts.close()


async def test_table2_says_why_over_asyncio(before: InfoProxy, plain: Any) -> None:
    """As the synchronous one."""
    plain.delete("t")
    posts = shims.shim_async("posts", f"redis://{before.address}")
    with pytest.raises(ConfigurationError, match="does not pass INFO"):
        await posts.write("t", "v")
    assert plain.get("t") is None
    await posts.aclose()


def test_closed_once_is_an_accident(make: Callable[..., Any], proxy: LagProxy, plain: Any) -> None:
    """A connection that was closed meanwhile is asked again, and the write has its position."""
    plain.delete("n")
    one = make(options={"retry": Retry(NoBackoff(), 3)})
    one.ping()
    proxy.cut()
    proxy.heal()
    with antipode.scope() as scope:
        assert one.incr("n") == 1
        assert len(writes_of(scope.lineage)) == 1
        assert not scope.lineage.incomplete
        with exchanges(proxy) as made:
            one.incr("n")
    assert made == [1]


@pytest.fixture
def refused(plain: Any) -> Iterator[Any]:
    """The server's log of refusals, of a user without ``+info``: how many there are."""
    plain.acl_setuser("writer", enabled=True, nopass=True, categories=["+@all"],
                      commands=["-info"], keys=["*"])  # fmt: skip
    plain.acl_log_reset()
    yield lambda: sum(int(entry["count"]) for entry in plain.acl_log())
    plain.acl_deluser("writer")
    plain.acl_log_reset()


WRITER: dict[str, Any] = {"username": "writer", "password": "x"}


def test_user_without_info_is_asked_once(make: Callable[..., Any], refused: Any) -> None:
    """One entry a connection in the server's log of refusals, however many writes and reads."""
    one = make(options=WRITER)
    for _ in range(3):
        for call in CALLS.values():
            with antipode.scope() as scope:
                call(one)
                assert scope.lineage.incomplete == {UNSAMPLED}
    assert refused() == 1
    with antipode.scope(Lineage([WriteId("posts", "f" * 40, 7)])):
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        for read in (lambda: one.get("n"), lambda: one.pipeline().get("n").execute()):
            with pytest.raises(antipode.VisibilityCheckError, match="no permissions"):
                read()
    assert refused() == 1


async def test_user_without_info_is_asked_once_over_asyncio(
    antipode_redis: RedisTopology, refused: Any
) -> None:
    """As the synchronous client."""
    async with async_client(antipode_redis.primary, **WRITER) as one:
        shims.instrument_client(one, datastore="posts")
        for _ in range(3):
            for call in CALLS.values():
                await call(one)
        assert refused() == 1
        shims.uninstrument_client(one)


def test_barriers_of_a_user_without_info(make: Callable[..., Any], refused: Any) -> None:
    """The library's own connections, of which a refused barrier takes one, ask once each."""
    make(options=WRITER)
    write = WriteId("posts", "f" * 40, 7)
    for _ in range(3):
        result = antipode.barrier(Lineage([write]), timeout=TIMEOUT_S, on_unknown="report")
        assert [each.status for each in result.outcomes] == [Status.UNDECIDABLE]
    assert refused() == 3


def test_table2_of_a_user_without_info(antipode_redis: RedisTopology, refused: Any) -> None:
    """Writes go on without positions, reads raise the server's error; the server is asked once."""
    with client(antipode_redis.primary, **WRITER) as one:
        posts = shims.shim("posts", one)
        for _ in range(3):
            assert posts.write("t", "v").incomplete == {UNSAMPLED}
            with pytest.raises(redis.exceptions.NoPermissionError):
                posts.read("t")
        posts.close()
    assert refused() == 1
