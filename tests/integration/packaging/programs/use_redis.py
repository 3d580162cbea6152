"""Redis with redis-py alone: both shims of Table 2, and instrumented clients of both APIs."""

import asyncio
import sys

import redis
import redis.asyncio

import antipode
from antipode_shims import redis as antipode_redis

URL = sys.argv[1]


def table2() -> None:
    with antipode.scope() as scope, antipode_redis.shim("posts", URL) as shim:
        shim.write("extras", b"1")
        antipode.barrier(timeout=5)
        assert shim.read("extras")[0] == b"1"
        assert len(scope.lineage.only("posts")) == 1
        assert not scope.lineage.incomplete


async def table2_async() -> None:
    shim = antipode_redis.shim_async("posts", URL)
    with antipode.scope() as scope:
        await shim.write("extras", b"2")
        await antipode.barrier_async(timeout=5)
        assert (await shim.read("extras"))[0] == b"2"
        assert not scope.lineage.incomplete
    await shim.aclose()


def instrumented() -> None:
    client = antipode_redis.instrument_client(redis.Redis.from_url(URL), datastore="native")
    with antipode.scope() as scope:
        client.set("extras:native", b"1")
        client.pipeline().set("extras:native", b"2").execute()
        antipode.barrier(timeout=5, at="read")
        assert client.get("extras:native") == b"2"
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete
    antipode_redis.uninstrument_client(client)
    client.close()


async def instrumented_async() -> None:
    plain = redis.asyncio.Redis.from_url(URL)
    client = antipode_redis.instrument_client(plain, datastore="native")
    with antipode.scope() as scope:
        await client.set("extras:native", b"3")
        await client.pipeline().set("extras:native", b"4").execute()
        await antipode.barrier_async(timeout=5, at="read")
        assert await client.get("extras:native") == b"4"
        assert len(scope.lineage) == 1
        assert not scope.lineage.incomplete
    antipode_redis.uninstrument_client(client)
    await client.connection_pool.disconnect()


table2()
instrumented()
asyncio.run(table2_async())
asyncio.run(instrumented_async())
