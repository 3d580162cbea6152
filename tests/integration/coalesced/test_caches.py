"""aiocache: values that a process, or several of them, keep for many requests."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import aiocache as lineages
from antipode.shim import Incomplete, record_read
from antipode_shims import redis as redis_shims
from tests.integration.redis._clients import async_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from antipode_testing import RedisTopology

aiocache = pytest.importorskip("aiocache")
#: aiocache calls what its client calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")
HOUR = 498_669
READ = Lineage([WriteId("users", "log", 9, HOUR, covering=True)])
DECORATORS = ("cached", "cached_stampede")
BACKENDS = ("memory", "redis")
LAG_MS, PAGES = 60, 50


def post(number: int) -> WriteId:
    """A write that some request depends on."""
    return WriteId("posts", f"p{number}", 1, HOUR)


@pytest.fixture
async def caches(antipode_redis: RedisTopology) -> AsyncIterator[Callable[..., dict[str, Any]]]:
    """What a decorator needs for a cache in memory, or in Redis; nothing stays instrumented."""
    lineages.instrument()
    made: list[Any] = []

    def options(backend: str, **more: Any) -> dict[str, Any]:
        if backend == "memory":
            return {"cache": aiocache.Cache.MEMORY, **more}
        host, port = antipode_redis.primary
        return {"cache": aiocache.Cache.REDIS, "endpoint": host, "port": port, **more}

    def decorated(decorator: str, backend: str, function: Any, **more: Any) -> Any:
        serializer = aiocache.serializers.PickleSerializer()
        namespace = f"n{random.getrandbits(40)}:"
        found: Any = getattr(aiocache, decorator)(
            **options(backend, serializer=serializer, namespace=namespace, **more)
        )(function)
        made.append(found.cache)
        return found

    yield decorated
    lineages.uninstrument()
    for each in made:
        await each.clear(namespace=each.namespace)
        if hasattr(each, "client"):  # Closing the cache leaves its pool's connections open.
            await each.client.connection_pool.disconnect()
        await each.close()


class Work:
    """A function that is cached: what it was called with, and when it may go on."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Lineage]] = []
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def item(self, number: int) -> int:
        """Ten times a number."""
        self.calls.append((number, antipode.current()))
        self.begun.set()
        await self.go.wait()
        record_read(READ)
        if number < 0:
            raise KeyError(number)
        return number * 10


def of(work: Work) -> Any:
    """The function of *work* as an application has it."""

    async def item(number: int) -> int:
        return await work.item(number)

    return item


async def asking(function: Any, key: int, *depends: WriteId) -> tuple[Any, Lineage]:
    """What a request gets that depends on *depends*, and what it depends on then."""
    with antipode.scope(Lineage(depends)):
        try:
            return await function(key), antipode.current()
        except KeyError as error:
            return error, antipode.current()


@pytest.mark.store("redis")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("decorator", DECORATORS)
async def test_each_request_gets_what_was_added(caches: Any, decorator: str, backend: str) -> None:
    """Who has the function run, and each hit; and nothing of what another one depends on."""
    work = Work()
    item = caches(decorator, backend, of(work), ttl=60)
    for number in range(3):
        assert await asking(item, 1, post(number)) == (10, READ.append(post(number)))
    assert work.calls == [(1, Lineage([post(0)]))]


@pytest.mark.store("redis")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("decorator", DECORATORS)
async def test_what_failed_is_not_kept(caches: Any, decorator: str, backend: str) -> None:
    """Who had it run depends on what was added until then."""
    work = Work()
    item = caches(decorator, backend, of(work), ttl=60)
    for _ in range(2):
        error, lineage = await asking(item, -1)
        assert isinstance(error, KeyError)
        assert lineage == READ
    assert len(work.calls) == 2


@pytest.mark.store("redis")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("decorator", DECORATORS)
async def test_values_of_others(caches: Any, decorator: str, backend: str) -> None:
    """One without a lineage is served as it is; an unreadable one says so; ours is theirs."""
    item = caches(decorator, backend, of(Work()), ttl=60)
    key = item.__wrapped__.__module__ + "item(1,)[]"
    lineages.uninstrument()
    assert await item(1) == 10
    plain = await item.cache.raw("get", item.cache.build_key(key, item.cache.namespace))
    lineages.instrument()
    assert await asking(item, 1) == (10, Lineage())
    await item.cache.delete(key)
    assert await asking(item, 1) == (10, READ)
    assert await item.cache.raw("get", item.cache.build_key(key, item.cache.namespace)) == plain
    lineages.uninstrument()
    assert await item(1) == 10
    lineages.instrument()
    beside = item.cache.build_key(f"{key}-antipode", item.cache.namespace)
    await item.cache._set(beside, "?", ttl=60)
    marked = Lineage(incomplete=[Incomplete("aiocache", "unreadable")])
    assert await asking(item, 1) == (10, marked)


@pytest.mark.store("redis")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_both_expire_together(caches: Any, backend: str) -> None:
    """Neither is left when the other is gone."""
    item = caches("cached", backend, of(Work()), ttl=0.05)
    assert await asking(item, 1) == (10, READ)
    key = item.__wrapped__.__module__ + "item(1,)[]"
    for each in (key, f"{key}-antipode"):
        for _ in range(2_000):
            if not await item.cache.exists(each):
                break
            await asyncio.sleep(0.01)
        assert not await item.cache.exists(each)


@pytest.mark.store("redis")
@pytest.mark.parametrize("backend", BACKENDS)
async def test_who_waits_in_a_stampede(caches: Any, backend: str) -> None:
    """Each gets what the one call added, and none of the others' causes; one is cancelled."""
    work = Work()
    work.go.clear()
    item = caches("cached_stampede", backend, of(work), ttl=60, lease=30)
    tasks = [asyncio.create_task(asking(item, 1, post(0)))]
    await work.begun.wait()
    tasks += [asyncio.create_task(asking(item, 1, post(each))) for each in range(1, 5)]
    for _ in range(20):
        await asyncio.sleep(0)
    tasks[2].cancel()
    work.go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    gone = found.pop(2)  # Where the cancellation comes too late it is answered as the others.
    assert isinstance(gone, asyncio.CancelledError) or gone == (10, READ.append(post(2)))
    numbers = (0, 1, 3, 4)
    assert found == [(10, READ.append(post(each))) for each in numbers]
    assert len(work.calls) == 1


async def test_a_cached_function_within_another(caches: Any) -> None:
    """Each value has its own lineage; what the function asks a cache for itself is its own."""
    inner = caches("cached", "memory", of(Work()), ttl=60)

    async def page(number: int) -> int:
        antipode.append(post(7))
        await inner.cache.set("mine", 1)
        assert await inner.cache.get("mine") == 1
        return int(await inner(number))

    outer = caches("cached", "memory", page, ttl=60)
    both = READ.append(post(7))
    assert [await asking(outer, 1) for _ in range(2)] == [(10, both)] * 2
    assert await asking(inner, 1) == (10, READ)
    assert "mine-antipode" not in str(inner.cache._cache)


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests(caches: Any, seed: int) -> None:
    """Of tenants, with failing keys, cancellations and deleted values, as the model has it."""
    draw = random.Random(seed)
    versions: dict[str, int] = {}

    async def item(tenant: str, number: int) -> int:
        for _ in range(draw.randrange(3)):
            await asyncio.sleep(0)
        key = f"{tenant}{number}"
        versions[key] = versions.get(key, 0) + 1
        version = versions[key]
        record_read(Lineage([WriteId("rows", key, version, HOUR, covering=True)]))
        if number == 3:
            raise KeyError(number)
        return version

    cached = caches("cached_stampede", "memory", item, ttl=60, lease=30)

    async def request(index: int) -> None:
        tenant, number = draw.choice("ab"), draw.randrange(4)
        key = f"{tenant}{number}"
        with antipode.scope(Lineage([post(index)])):
            if draw.random() < 0.1:
                await cached.cache.delete(f"{__name__}item('{tenant}', {number})[]")
            failed, version = False, 0
            try:
                version = await cached(tenant, number)
            except KeyError:
                failed = True
            found = {each for each in antipode.current() if each.datastore == "rows"}
            assert {each.key for each in found} == {key}
            assert {each.version for each in found} == {version} or failed
            assert failed == (number == 3)
            mine = [each for each in antipode.current() if each.datastore == "posts"]
            assert mine == [post(index)]

    tasks = []
    for index in range(60):
        tasks.append(asyncio.create_task(request(index)))
        if draw.random() < 0.15:
            await asyncio.sleep(0)
            tasks[-1].cancel()
        elif draw.random() < 0.3:
            await asyncio.wait(tasks[-1:])
    found = await asyncio.gather(*tasks, return_exceptions=True)
    wrong = [each for each in found if each and not isinstance(each, asyncio.CancelledError)]
    assert not wrong
    assert sum(each is None for each in found) > 30


@pytest.mark.store("redis")
async def test_a_hit_makes_later_reads_wait(caches: Any, antipode_redis: RedisTopology) -> None:
    """Pages that get a cached value of a late replica's row are shown no older row."""
    antipode_redis.set_lag(LAG_MS)
    posts = async_client(antipode_redis.primary)
    near = async_client(antipode_redis.replica)
    redis_shims.instrument_client(posts, datastore="posts")
    redis_shims.instrument_client(near, datastore="posts", reads_from="replica")
    antipode.configure(barriers="auto", auto_timeout=20, on_stale="raise")
    wrong = 0
    try:

        async def title(number: int) -> int:
            await posts.set("post", number)  # As who makes a title and the value that it is of.
            return number

        cached = caches("cached", "redis", title, ttl=60)
        for number in range(PAGES):
            with antipode.scope():
                await cached(number)
            with antipode.scope():  # Another one, which depends on nothing.
                shown = await cached(number)
                wrong += int(await near.get("post") or 0) < shown
    finally:
        antipode_redis.set_lag(0)
        await posts.aclose()
        await near.aclose()
    assert wrong == 0
