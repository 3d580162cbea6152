"""Reads that a floor holds back on Redis: one watcher looks for all, each read decides itself."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.shim import Pacer
from antipode_shims import redis as shims
from antipode_testing import RedisTopology, wait_until

from ._clients import TIMEOUT_S, async_client, client, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Lineage
    from antipode_testing import Address

pytestmark = pytest.mark.store("redis")

READS = 24
LOOKS = 40


def questions(address: Address) -> int:
    """How often a server was asked where it stands."""
    with client(address, socket_timeout=TIMEOUT_S) as plain:
        return int(plain.info("commandstats").get("cmdstat_info", {}).get("calls", 0))


@contextmanager
def reader(address: Address) -> Iterator[Any]:
    """An instrumented client that reads at a replica."""
    with client(address, socket_timeout=TIMEOUT_S) as one:
        yield shims.instrument_client(one, datastore="posts", reads_from="replica")
        shims.uninstrument_client(one)


def written(topology: RedisTopology, value: str) -> Lineage:
    """The lineage of a write at the primary."""
    with client(topology.primary) as one, antipode.scope() as scope:
        shims.instrument_client(one, datastore="posts", one_server=False)
        one.set("k", value)
        shims.uninstrument_client(one)
        return scope.lineage


def in_threads(topology: RedisTopology, lineage: Lineage) -> Callable[[], list[str]]:
    """Reads that begin now in threads; what ends them, with what they found."""
    stack = ExitStack()
    one = stack.enter_context(reader(topology.replica))
    pool = stack.enter_context(ThreadPoolExecutor(READS))

    def read() -> str:
        with antipode.scope(lineage):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            return str(one.get("k").decode())

    found = [pool.submit(read) for _ in range(READS)]

    def end() -> list[str]:
        with stack:
            return [each.result(TIMEOUT_S) for each in found]

    return end


def in_tasks(topology: RedisTopology, lineage: Lineage) -> Callable[[], list[str]]:
    """The same in tasks of one event loop."""

    async def session() -> list[str]:
        async with async_client(topology.replica, socket_timeout=TIMEOUT_S) as one:
            shims.instrument_client(one, datastore="posts", reads_from="replica")

            async def read() -> str:
                with antipode.scope(lineage):
                    await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                    return str((await one.get("k")).decode())

            found = await asyncio.gather(*(read() for _ in range(READS)))
            shims.uninstrument_client(one)
            return found

    pool = ThreadPoolExecutor(1)
    running = pool.submit(asyncio.run, session())

    def end() -> list[str]:
        with pool:
            return running.result(TIMEOUT_S)

    return end


def looks_alone(waited_s: float) -> int:
    """How often a read that nobody polls for asks in so many seconds, at the least."""
    pacer, at_s, looks = Pacer(lambda _, longest_s: longest_s), 0.0, 0
    while at_s < waited_s:
        at_s += pacer.pause_s(at_s)
        looks += 1
    return looks


@pytest.mark.parametrize("begin", [in_threads, in_tasks])
def test_held_reads_share_their_looks(
    antipode_redis: RedisTopology,
    begin: Callable[[RedisTopology, Lineage], Callable[[], list[str]]],
) -> None:
    """Reads that wait ask a lagging replica a third of what they would by themselves, or less."""
    written(antipode_redis, "old")
    antipode_redis.wait_replicated()
    antipode_redis.pause()
    lineage = written(antipode_redis, "new")
    looks, asked = counted("polls"), questions(antipode_redis.replica)
    started_s = time.monotonic()
    end = begin(antipode_redis, lineage)
    wait_until(
        lambda: counted("polls") >= looks + LOOKS, what="the watcher's looks", timeout_s=TIMEOUT_S
    )
    made = questions(antipode_redis.replica) - asked
    alone = looks_alone(time.monotonic() - started_s)
    antipode_redis.resume()
    assert end() == ["new"] * READS
    assert made < 5 * READS + alone * READS / 3


def test_a_server_that_others_look_at_holds_no_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind one address may be several replicas: the watcher's may be behind for ever."""
    with RedisTopology(replicas=2) as topology:
        written(topology, "old")
        topology.wait_replicated()
        topology.pause(replica=0)
        topology.pause(replica=1)
        lineage = written(topology, "new")
        behind, fresh = topology.replicas
        with reader(behind) as other:
            settings = other._antipode.shim._settings
        with reader(fresh) as one, ThreadPoolExecutor(1) as pool:
            monkeypatch.setattr(one._antipode.shim, "_settings", settings)
            looks = counted("polls")

            def read() -> Any:
                with antipode.scope(lineage):
                    antipode.barrier(timeout=TIMEOUT_S, at="read")
                    return one.get("k")

            reading = pool.submit(read)
            wait_until(
                lambda: counted("polls") > looks + 2, what="the watcher", timeout_s=TIMEOUT_S
            )
            topology.resume(replica=1)
            assert reading.result(TIMEOUT_S) == b"new"
            with client(behind) as plain:
                assert plain.get("k") == b"old"
