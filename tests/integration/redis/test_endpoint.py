"""How the library's own connection waits: by push, without a trace when nobody waits."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import BarrierTimeout, Lineage, Status, VisibilityCheckError, WriteId
from antipode.shim import Unreachable, Wake
from antipode_shims import redis as shims
from antipode_testing import LagProxy, NativeProvider, wait_until

from ._clients import (
    TIMEOUT_S,
    client,
    counted,
    info,
    position,
    writes_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, RedisTopology

pytestmark = pytest.mark.store("redis")

ROUNDS = 15


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


def shim_at(stack: ExitStack, address: Address, **options: Any) -> Any:
    """A Table 2 shim of one server."""
    plain = stack.enter_context(client(address, **options.pop("client", {})))
    return stack.enter_context(shims.shim("posts", plain, **options))


def here(topology: RedisTopology) -> Lineage:
    """Everything that the primary has now."""
    return Lineage([WriteId("posts", *position(topology.primary))])


def tracking(address: Address) -> int:
    """How many clients of a server it pushes to."""
    with client(address) as plain:
        return sum("t" in each["flags"] for each in plain.client_list())


@pytest.mark.slow
def test_questions_of_one_look_share_its_time(
    antipode_redis: RedisTopology, stack: ExitStack
) -> None:
    """The second one, for a log that is unknown, has what the first one left."""
    proxy = stack.enter_context(LagProxy(antipode_redis.replica))
    endpoint = shim_at(stack, proxy.address).open_endpoint(timeout_s=5)
    stack.callback(endpoint.close)
    proxy.set_lag(300, request_lag_ms=300)
    with pytest.raises(Unreachable):
        endpoint.observe([WriteId("posts", "f" * 40, 1)], timeout_s=1.0)


def test_overshoot_is_small(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """The barrier passes as soon as a tight poller on the same replica sees the value."""
    writer = shim_at(stack, antipode_redis.primary)
    shim_at(stack, antipode_redis.replica, reads_from="replica")
    poller = stack.enter_context(client(antipode_redis.replica))
    overshoot_ms: list[float] = []
    for number in range(ROUNDS):
        antipode_redis.set_lag((100, 200)[number % 2])
        key, seen = f"overshoot-{number}", []

        def poll(key: str = key, seen: list[float] = seen) -> None:
            while poller.get(key) is None:
                pass
            seen.append(time.perf_counter())

        with antipode.scope(), ThreadPoolExecutor(1) as pool:
            writer.write(key, "v")
            polling = pool.submit(poll)
            assert antipode.barrier(timeout=TIMEOUT_S).ok
            passed = time.perf_counter()
            polling.result(TIMEOUT_S)
        overshoot_ms.append((passed - seen[0]) * 1000)
    assert statistics.median(overshoot_ms) < 5, overshoot_ms


def test_push_ends_a_pause(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """A key with the prefix that changes ends a pause long before its time; others do not."""
    reader = shim_at(stack, antipode_redis.replica, reads_from="replica")
    plain = stack.enter_context(client(antipode_redis.primary))
    endpoint = reader.open_endpoint(timeout_s=5)
    stack.callback(endpoint.close)
    wake = Wake()
    stack.callback(wake.close)
    endpoint.pause(5, wake)  # The first one turns pushes on and asks for another look.
    with ThreadPoolExecutor(1) as pool:
        pausing = pool.submit(endpoint.pause, TIMEOUT_S, wake)
        plain.set("other", 1)
        antipode_redis.wait_replicated()
        assert not pausing.done()
        plain.set("ap:key", 1)
        pausing.result(TIMEOUT_S / 3)
        write = WriteId("posts", *position(antipode_redis.primary))
        assert endpoint.observe([write], timeout_s=5).statuses == {write: Status.VISIBLE}


def test_wake_ends_a_pause(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """Who comes or goes does not wait for a push; a set wake ends a pause at once."""
    reader = shim_at(stack, antipode_redis.replica, reads_from="replica")
    endpoint = reader.open_endpoint(timeout_s=5)
    stack.callback(endpoint.close)
    wake = Wake()
    stack.callback(wake.close)
    endpoint.pause(5, wake)
    with ThreadPoolExecutor(1) as pool:
        pausing = pool.submit(endpoint.pause, TIMEOUT_S, wake)
        wake.set()
        pausing.result(TIMEOUT_S / 3)
        pool.submit(endpoint.pause, TIMEOUT_S, wake).result(TIMEOUT_S / 3)


def test_nobody_waits_nobody_is_pushed_to(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """Tracking is on only while somebody waits: an idle connection would fill its buffers."""
    writer = shim_at(stack, antipode_redis.primary)
    shim_at(stack, antipode_redis.replica, reads_from="replica")
    antipode_redis.pause()
    with antipode.scope():
        writer.write("k", "v")
        lineage = antipode.current()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(antipode.barrier, lineage, timeout=TIMEOUT_S)
            wait_until(
                lambda: tracking(antipode_redis.replica) == 1,
                what="tracking",
                timeout_s=TIMEOUT_S,
            )
            antipode_redis.resume()
            waiting.result(TIMEOUT_S)
        wait_until(
            lambda: tracking(antipode_redis.replica) == 0, what="its end", timeout_s=TIMEOUT_S
        )
        antipode_redis.pause()
        writer.write("k", "w")
        for _ in range(10):
            with pytest.raises(BarrierTimeout):
                antipode.barrier(timeout=0.02)
        wait_until(
            lambda: tracking(antipode_redis.replica) == 0, what="its end", timeout_s=TIMEOUT_S
        )


def test_push_spares_looks(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """A long wait costs a bounded number of looks, on one connection."""
    writer = shim_at(stack, antipode_redis.primary)
    shim_at(stack, antipode_redis.replica, reads_from="replica")
    antipode_redis.set_lag(500)
    with antipode.scope():
        writer.write("k", "v")
        before = counted("polls")
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        assert counted("polls") - before < 300


@pytest.mark.parametrize("renamed", ["HELLO", "CLIENT"])
def test_without_push(stack: ExitStack, renamed: str) -> None:
    """A server without RESP3 or tracking is polled: as right, a little later."""
    one = NativeProvider().start("redis", "old", {"rename-command": f"{renamed} NO-LONGER"})
    stack.callback(one.close)
    shim = shim_at(stack, one.address, client={"protocol": 2})
    with antipode.scope():
        shim.write("k", "v")
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        ahead = antipode.current().append(
            WriteId("posts", str(info(one.address, protocol=2)["master_replid"]), 10**9)
        )
        with pytest.raises(BarrierTimeout):
            antipode.barrier(ahead, timeout=0.1)


def test_endpoint_takes_over_the_clients_settings(
    antipode_redis: RedisTopology, stack: ExitStack
) -> None:
    """Password, user and database of the client are those of the library's connection."""
    admin = stack.enter_context(client(antipode_redis.primary))
    admin.acl_setuser(
        "reader", enabled=True, passwords=["+secret"], keys=["*"], categories=["+@all"]
    )
    options = {"username": "reader", "password": "secret", "db": 3}
    shim_at(stack, antipode_redis.primary, client=options)
    assert antipode.barrier(here(antipode_redis), timeout=TIMEOUT_S).ok
    found = [(each["user"], each["db"]) for each in admin.client_list()]
    admin.acl_deluser("reader")
    assert ("reader", "3") in found


def test_wrong_password_is_told_at_once(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """Looking again cannot help: the barrier says why, long before its deadline."""
    shim_at(stack, antipode_redis.primary, client={"username": "nobody", "password": "wrong"})
    started = time.monotonic()
    with pytest.raises(VisibilityCheckError, match=r"(?i)invalid username-password"):
        antipode.barrier(here(antipode_redis), timeout=TIMEOUT_S)
    assert time.monotonic() - started < TIMEOUT_S / 2


def test_user_without_info_is_told_at_once(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """A user that may not ask for positions is told so, in a barrier and under a floor."""
    admin = stack.enter_context(client(antipode_redis.primary))
    admin.acl_setuser(
        "mute", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-info"]
    )
    stack.callback(admin.acl_deluser, "mute")
    shim = shim_at(stack, antipode_redis.primary, client={"username": "mute", "password": "x"})
    with pytest.raises(VisibilityCheckError, match=r"(?i)permission"):
        antipode.barrier(here(antipode_redis), timeout=TIMEOUT_S)
    one = shims.instrument_client(shim._client, datastore="posts")
    with antipode.scope(here(antipode_redis)):
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(VisibilityCheckError, match=r"(?i)permission"):
            one.get("k")
        with pytest.raises(redis.exceptions.NoPermissionError):
            shim.read("k")
    shims.uninstrument_client(one)


def test_incarnation(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """The server in an outcome is run id and replication id, never an address."""
    shim_at(stack, antipode_redis.primary)
    result = antipode.barrier(here(antipode_redis), timeout=TIMEOUT_S)
    with client(antipode_redis.primary) as plain:
        run_id = plain.info("server")["run_id"]
    replid, _ = position(antipode_redis.primary)
    assert result.outcomes[0].server == f"{run_id}/{replid}"


def test_interrupt(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """A look at a stopped server ends when it is interrupted; closing twice is harmless."""
    reader = shim_at(stack, antipode_redis.replica, reads_from="replica")
    endpoint = reader.open_endpoint(timeout_s=TIMEOUT_S)
    antipode_redis.suspend_replica()
    write = WriteId("posts", "f" * 40, 1)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(endpoint.observe, [write], timeout_s=TIMEOUT_S)
        threading.Timer(0.05, endpoint.interrupt).start()
        with pytest.raises(Unreachable):
            looking.result(TIMEOUT_S / 3)
    antipode_redis.resume_replica()
    endpoint.close()
    endpoint.close()
    endpoint.interrupt()


def test_barrier_with_nothing_to_wait_for(antipode_redis: RedisTopology, stack: ExitStack) -> None:
    """At a server that is up to date the barrier is one look, and starts no thread."""
    shim = shim_at(stack, antipode_redis.primary)
    with antipode.scope() as scope:
        shim.write("k", "v")
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        before = counted("polls")
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        assert counted("polls") == before + 1
        assert writes_of(scope.lineage)
