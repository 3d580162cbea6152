"""Waiting by push where the server pushes, by polling elsewhere: both right, both bounded."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.shim import Wake
from antipode_shims import redis as shims
from antipode_shims.redis._endpoint import RedisEndpoint
from antipode_testing import NativeProvider

from ._clients import TIMEOUT_S, client, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import Address, RedisTopology

pytestmark = pytest.mark.store("redis")

ROUNDS = 5
LAG_MS = 150
MOST_MS = 25


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


def shim_at(stack: ExitStack, address: Address, **options: Any) -> Any:
    """A Table 2 shim of one server."""
    plain = stack.enter_context(client(address, **options.pop("client", {})))
    return stack.enter_context(shims.shim("posts", plain, **options))


@pytest.fixture
def reader(stack: ExitStack, antipode_redis: RedisTopology) -> Callable[..., Any]:
    """Makes shims of the replica, for a user who may be pushed to or for one who may not."""

    def make(*, pushed: bool) -> Any:
        if pushed:
            return shim_at(stack, antipode_redis.replica, reads_from="replica")
        admin = stack.enter_context(client(antipode_redis.replica))
        admin.acl_setuser(
            "polling",
            enabled=True,
            nopass=True,
            keys=["*"],
            categories=["+@all"],
            commands=["-client|tracking"],
        )
        stack.callback(admin.acl_deluser, "polling")
        options = {"username": "polling", "password": "x"}
        return shim_at(stack, antipode_redis.replica, reads_from="replica", client=options)

    return make


def tracked(address: Address) -> int:
    """How many clients of a server it pushes to."""
    with client(address) as plain:
        return sum("t" in each["flags"] for each in plain.client_list())


def overshoots_ms(topology: RedisTopology, write: Callable[[str], Any]) -> list[float]:
    """How long after a tight poller of the same replica saw a write its barrier passed."""
    found: list[float] = []
    topology.set_lag(LAG_MS)
    with client(topology.replica) as poller, ThreadPoolExecutor(1) as pool:
        for number in range(ROUNDS):
            key, seen = f"push-{time.monotonic_ns()}-{number}", []

            def poll(key: str = key, seen: list[float] = seen) -> None:
                while poller.get(key) is None:
                    pass
                seen.append(time.perf_counter())

            with antipode.scope():
                write(key)
                polling = pool.submit(poll)
                assert antipode.barrier(timeout=TIMEOUT_S).ok
                passed = time.perf_counter()
                polling.result(TIMEOUT_S)
            found.append((passed - seen[0]) * 1000)
    return found


@pytest.mark.parametrize("pushed", [True, False])
@pytest.mark.parametrize("native", [False, True])
def test_overshoot(
    antipode_redis: RedisTopology,
    stack: ExitStack,
    reader: Callable[..., Any],
    *,
    pushed: bool,
    native: bool,
) -> None:
    """By push, or at the core's pace, a barrier passes soon after the write shows.

    One or two milliseconds where nothing else runs; a poller in this process costs as much again.
    """
    reader(pushed=pushed)
    if native:
        one = stack.enter_context(client(antipode_redis.primary))
        shims.instrument_client(one, datastore="posts")
        stack.callback(shims.uninstrument_client, one)
        found = overshoots_ms(antipode_redis, lambda key: one.set(key, "v"))
    else:
        writer = shim_at(stack, antipode_redis.primary)
        found = overshoots_ms(antipode_redis, lambda key: writer.write(key, "v"))
    assert statistics.median(found) < MOST_MS, found


@pytest.mark.parametrize("pushed", [True, False])
def test_looks_are_bounded(
    antipode_redis: RedisTopology, stack: ExitStack, reader: Callable[..., Any], *, pushed: bool
) -> None:
    """A wait costs at most 53 looks and one for each 50 ms, with and without push."""
    reader(pushed=pushed)
    writer = shim_at(stack, antipode_redis.primary)
    antipode_redis.pause()
    with antipode.scope(), ThreadPoolExecutor(1) as pool:
        writer.write("k", "v")
        lineage = antipode.current()
        before, started_s = counted("polls"), time.monotonic()
        waiting = pool.submit(antipode.barrier, lineage, timeout=TIMEOUT_S)
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        assert tracked(antipode_redis.replica) == int(pushed)
        antipode_redis.resume()
        assert waiting.result(TIMEOUT_S).ok
        waited_s = time.monotonic() - started_s
    looks = counted("polls") - before
    assert looks <= 53 + waited_s / 0.050 + 2, looks  # A push, and what it was turned on with.


def test_pushes_cost_one_look_a_millisecond_at_most(
    antipode_redis: RedisTopology, stack: ExitStack, reader: Callable[..., Any]
) -> None:
    """A replica that is busy with keys of the prefix does not make a barrier spin."""
    reader(pushed=True)
    writer = shim_at(stack, antipode_redis.primary)
    plain = stack.enter_context(client(antipode_redis.primary))
    antipode_redis.set_lag(300)
    pipe = plain.pipeline(transaction=False)
    for number in range(5_000):
        pipe.set(f"ap:noise-{number}", "x" * 10)
    with antipode.scope():
        pipe.execute()
        writer.write("k", "v")
        before, started_s = counted("polls"), time.monotonic()
        assert antipode.barrier(timeout=TIMEOUT_S).ok
        waited_ms = (time.monotonic() - started_s) * 1000
    assert counted("polls") - before < waited_ms + 10


def test_server_that_refuses_is_not_asked_again(
    antipode_redis: RedisTopology, stack: ExitStack, reader: Callable[..., Any]
) -> None:
    """Where tracking is refused once, pauses last their time and ask for nothing."""
    endpoint = reader(pushed=False).open_endpoint(timeout_s=TIMEOUT_S)
    stack.callback(endpoint.close)
    wake = Wake()
    stack.callback(wake.close)
    assert isinstance(endpoint, RedisEndpoint)
    endpoint.pause(5, wake)  # It asks to be pushed to, and is refused.
    started_s = time.monotonic()
    for _ in range(3):
        endpoint.pause(0.02, wake)
    assert time.monotonic() - started_s >= 0.06
    with client(antipode_redis.replica) as admin:
        calls = admin.info("commandstats")["cmdstat_client|tracking"]["rejected_calls"]
    assert calls >= 1
    endpoint.pause(0.02, wake)
    with client(antipode_redis.replica) as admin:
        assert admin.info("commandstats")["cmdstat_client|tracking"]["rejected_calls"] == calls


def test_endpoint_does_not_claim_to_block(
    antipode_redis: RedisTopology, reader: Callable[..., Any]
) -> None:
    """Writes of native clients are not pushed: pauses stay paced though pushes end some early."""
    endpoint = reader(pushed=True).open_endpoint(timeout_s=TIMEOUT_S)
    assert not endpoint.blocks
    endpoint.close()
    assert tracked(antipode_redis.replica) == 0


def test_old_server_is_polled(stack: ExitStack) -> None:
    """A server without RESP3, by whatever cause, is looked at in RESP2."""
    old = NativeProvider().start("redis", "old", {"rename-command": "HELLO NO-LONGER"})
    stack.callback(old.close)
    shim = shim_at(stack, old.address, client={"protocol": 2})
    endpoint = shim.open_endpoint(timeout_s=TIMEOUT_S)
    stack.callback(endpoint.close)
    wake = Wake()
    stack.callback(wake.close)
    started_s = time.monotonic()
    endpoint.pause(0.05, wake)
    assert time.monotonic() - started_s >= 0.05
    assert tracked_in_resp2(old.address) == 0


def tracked_in_resp2(address: Address) -> int:
    """As :func:`tracked`."""
    with client(address, protocol=2) as plain:
        return sum("t" in each["flags"] for each in plain.client_list())
