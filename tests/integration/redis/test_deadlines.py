"""Waits end at their deadlines, whatever redis-py waits for."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import BarrierTimeout, IncompleteLineage, Lineage, Status, WriteId
from antipode_shims import redis as shims

from ._clients import client, position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

NOWHERE = "nowhere.invalid"
TIMEOUT_S = 0.4
LATE_S = 0.5


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened."""
    with ExitStack() as closes:
        yield closes


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A resolver that is silent about one name; set when it was asked."""
    plain, asked, over = socket.getaddrinfo, threading.Event(), threading.Event()

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if host == NOWHERE:
            asked.set()
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return plain(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    over.set()


def by_thread(lineage: Lineage) -> None:
    """The synchronous face."""
    antipode.barrier(lineage, timeout=TIMEOUT_S)


def by_asyncio(lineage: Lineage) -> None:
    """The asyncio face."""
    asyncio.run(antipode.barrier_async(lineage, timeout=TIMEOUT_S))


@pytest.mark.parametrize("face", [by_thread, by_asyncio])
def test_a_fence_whose_host_does_not_resolve(
    antipode_redis: RedisTopology,
    stack: ExitStack,
    resolver: threading.Event,
    face: Callable[[Lineage], None],
) -> None:
    """The barrier ends as incomplete by its deadline, long before the resolver gives up."""
    away = stack.enter_context(client(antipode_redis.primary))
    away.connection_pool.connection_kwargs["host"] = NOWHERE
    stack.enter_context(shims.shim("posts", away))
    near = stack.enter_context(client(antipode_redis.replica))
    stack.enter_context(shims.shim("posts", near, reads_from="replica"))
    post = WriteId("posts", *position(antipode_redis.primary))
    before_s = time.monotonic()
    with pytest.raises(IncompleteLineage):
        face(Lineage([post], incomplete=[("posts", "size")]))
    assert time.monotonic() - before_s < TIMEOUT_S + LATE_S
    assert resolver.is_set()


@pytest.fixture
def frozen(antipode_redis: RedisTopology) -> Iterator[Callable[[], Lineage]]:
    """Freezes the replica; returns what it lacks."""

    def freeze() -> Lineage:
        antipode_redis.suspend_replica()
        with client(antipode_redis.primary) as plain:
            plain.incr("frozen")
        return Lineage([WriteId("posts", *position(antipode_redis.primary))])

    yield freeze
    antipode_redis.resume_replica()


@contextmanager
def in_time() -> Iterator[None]:
    """The read ends by its deadline, and says why."""
    before_s = time.monotonic()
    with pytest.raises(BarrierTimeout) as raised:
        yield
    assert time.monotonic() - before_s < TIMEOUT_S + LATE_S
    assert {each.status for each in raised.value.result.outcomes} == {Status.UNREACHABLE}


#: What a read is: held back by a look in its own packet, or by one before it.
READS = pytest.mark.parametrize("awaiting", [False, True], ids=["get", "xread"])
#: redis-py's own patience: as it comes, and shorter than the floor's.
OPTIONS = pytest.mark.parametrize(
    "options", [{}, {"socket_timeout": 0.1}, {"socket_timeout": None}], ids=str
)


@READS
@OPTIONS
def test_a_read_at_a_frozen_replica(
    antipode_redis: RedisTopology,
    stack: ExitStack,
    frozen: Callable[[], Lineage],
    options: dict[str, Any],
    *,
    awaiting: bool,
) -> None:
    """A read under a floor ends by its deadline, and redis-py does not begin anew."""
    where = antipode_redis.replica
    one = stack.enter_context(redis.Redis(host=where.host, port=where.port, **options))
    shims.instrument_client(one, datastore="posts", reads_from="replica")
    stack.callback(shims.uninstrument_client, one)
    one.get("frozen")
    with antipode.scope(frozen()):
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with in_time():
            one.xread({"frozen-stream": 0}, block=1) if awaiting else one.get("frozen")


@READS
@OPTIONS
async def test_an_asyncio_read_at_a_frozen_replica(
    antipode_redis: RedisTopology,
    frozen: Callable[[], Lineage],
    options: dict[str, Any],
    *,
    awaiting: bool,
) -> None:
    """The asyncio twin."""
    where = antipode_redis.replica
    async with redis.asyncio.Redis(host=where.host, port=where.port, **options) as one:
        shims.instrument_client(one, datastore="posts", reads_from="replica")
        await one.get("frozen")
        with antipode.scope(frozen()):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with in_time():
                if awaiting:
                    await one.xread({"frozen-stream": 0}, block=1)
                else:
                    await one.get("frozen")
        shims.uninstrument_client(one)


@OPTIONS
def test_a_table_2_read_at_a_frozen_replica(
    antipode_redis: RedisTopology,
    stack: ExitStack,
    frozen: Callable[[], Lineage],
    options: dict[str, Any],
) -> None:
    """``read`` of a shim, too."""
    where = antipode_redis.replica
    one = stack.enter_context(redis.Redis(host=where.host, port=where.port, **options))
    shim = stack.enter_context(shims.shim("posts", one, reads_from="replica"))
    shim.read("frozen-too")
    with antipode.scope(frozen()):
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with in_time():
            shim.read("frozen-too")


@OPTIONS
async def test_an_asyncio_table_2_read_at_a_frozen_replica(
    antipode_redis: RedisTopology, frozen: Callable[[], Lineage], options: dict[str, Any]
) -> None:
    """The asyncio twin."""
    where = antipode_redis.replica
    async with redis.asyncio.Redis(host=where.host, port=where.port, **options) as one:
        shim = shims.shim_async("posts", one, reads_from="replica")
        await shim.read("frozen-too")
        with antipode.scope(frozen()):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            with in_time():
                await shim.read("frozen-too")
        await shim.aclose()
