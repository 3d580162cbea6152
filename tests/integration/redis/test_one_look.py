"""A server that is replaced while the barrier waits for another datastore."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status, VisibilityCheckError, WriteId
from antipode_shims import redis as shims
from antipode_testing import LagProxy, NativeProvider, RedisTopology, wait_until
from tests.unit._fake_server import FakeServer

from ._clients import TIMEOUT_S, client, counted, position

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from antipode import BarrierResult
    from antipode_testing import Address

pytestmark = pytest.mark.store("redis")

ORDER = WriteId("orders", "log", 7)
KEY = "one-look"


class Moving:
    """The address of ``posts``, which may move, and ``orders``, a fake that is behind."""

    def __init__(self, first: Address, stack: ExitStack) -> None:
        self.proxy = stack.enter_context(LagProxy(first))
        self.plain = stack.enter_context(client(self.proxy.address))
        mine = stack.enter_context(client(self.proxy.address))
        stack.enter_context(shims.shim("posts", mine, reads_from="replica"))
        self.orders = FakeServer("orders")
        antipode.shim.register(self.orders)
        self.pool = stack.enter_context(ThreadPoolExecutor(1))

    def barrier(self, post: WriteId, *, timeout: float = TIMEOUT_S) -> Future[BarrierResult]:
        """Begin to wait; return when ``posts`` was met and only ``orders`` is waited for."""
        before = counted("polls")
        lineage = Lineage([post, ORDER])
        waiting = self.pool.submit(antipode.barrier, lineage, timeout=timeout)
        wait_until(lambda: counted("polls") > before and met(), what="posts", timeout_s=TIMEOUT_S)
        self.orders.looked.clear()
        assert self.orders.looked.wait(TIMEOUT_S)
        return waiting

    def move(self, to: Address) -> None:
        """Move the address; then let the order appear."""
        self.proxy.retarget(to)
        self.orders.position = 7


def met() -> bool:
    """Whether nobody waits at ``posts``."""
    return not any(each.name == "antipode-watch-posts" for each in threading.enumerate())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


def stale_write(topology: RedisTopology) -> WriteId:
    """A write that the primary has and the replica lacks."""
    with client(topology.primary) as plain:
        plain.delete(KEY)
        topology.wait_replicated()
        topology.pause()
        plain.set(KEY, "v")
    return WriteId("posts", *position(topology.primary))


def test_an_address_that_moves_to_a_stale_replica(
    antipode_redis: RedisTopology, stack: ExitStack
) -> None:
    """What the former server showed does not count: the barrier does not succeed."""
    post = stale_write(antipode_redis)
    moving = Moving(antipode_redis.primary, stack)
    waiting = moving.barrier(post, timeout=0.5)
    moving.move(antipode_redis.replica)
    with pytest.raises(BarrierTimeout) as raised:
        waiting.result(TIMEOUT_S)
    statuses = {each.write: each.status for each in raised.value.result.outcomes}
    assert statuses[ORDER] is Status.VISIBLE
    # A busy machine may not get as far as the new server's answer.
    assert statuses[post] in {Status.NOT_YET, Status.UNREACHABLE}
    assert moving.plain.get(KEY) is None


def test_an_address_that_moves_to_a_replica_that_catches_up(
    antipode_redis: RedisTopology, stack: ExitStack
) -> None:
    """The barrier ends when the new server shows the write, and a plain read finds it."""
    post = stale_write(antipode_redis)
    moving = Moving(antipode_redis.primary, stack)
    waiting = moving.barrier(post)
    moving.move(antipode_redis.replica)
    antipode_redis.resume()
    assert waiting.result(TIMEOUT_S).ok
    assert moving.plain.get(KEY) == b"v"


def test_a_server_restarted_with_another_history(stack: ExitStack) -> None:
    """A server that came back empty does not show what it showed before."""
    one = NativeProvider().start("redis", "posts", {})
    stack.callback(one.close)
    with client(one.address) as plain:
        plain.set(KEY, "v")
    moving = Moving(one.address, stack)
    waiting = moving.barrier(post_of(one.address))
    one.restart(graceful=False, wipe=True)
    moving.orders.position = 7
    with pytest.raises(VisibilityCheckError) as raised:
        waiting.result(TIMEOUT_S)
    assert Status.UNKNOWN_LOG in {each.status for each in raised.value.result.outcomes}


def post_of(address: Address) -> WriteId:
    """Where a primary without replicas stands."""
    return WriteId("posts", *position(address))
