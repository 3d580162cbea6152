"""Cancellations at random moments: a task that is cancelled ends, and its connection is whole.

Reads wait for a write that their replica, which is paused, does not show; a barrier ends about when
it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import aio_pika
import aiobotocore.session
import redis
import redis.asyncio
from pymongo import AsyncMongoClient
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

import antipode
from antipode_shims import dynamodb, mongodb, mysql, postgresql, rabbitmq
from antipode_shims import redis as redis_shims
from antipode_testing import (
    DynamoDBTopology,
    MongoDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
    RabbitMQTopology,
    RedisTopology,
)

from ._line import Line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from ._line import Client

    #: Reads once; what it shows.
    Read = Callable[[], Awaitable[Any]]
    #: Connects to two servers, and pauses the second once it has the old value.
    Open = Callable[[Any], Any]

LONGEST_S = 0.06
#: Of a read that waits; one that is swallowed runs to its end.
TIMEOUT_S = 1.0
#: Of a read that waits for nothing.
SOUND_S = 5.0
_EVERY = 10


@asynccontextmanager
async def redis_py(topology: Any) -> AsyncIterator[tuple[Read, str]]:
    """One pool of redis-py."""
    with redis.Redis(host=topology.primary.host, port=topology.primary.port) as writer:
        redis_shims.instrument_client(writer, datastore="posts", reads_from="primary")
        writer.set("k", "old")
        topology.wait_replicated()
        topology.pause()
        lineage = await asyncio.to_thread(_written, partial(writer.set, "k", "new"))
        redis_shims.uninstrument_client(writer)
    address = topology.replica
    pool = redis.asyncio.BlockingConnectionPool(
        host=address.host, port=address.port, max_connections=5, timeout=SOUND_S
    )
    async with redis.asyncio.Redis.from_pool(pool) as one:
        redis_shims.instrument_client(one, datastore="posts", reads_from="replica")
        yield partial(one.get, "k"), lineage
        redis_shims.uninstrument_client(one)


@asynccontextmanager
async def pymongo(topology: Any) -> AsyncIterator[tuple[Read, str]]:
    """One client of PyMongo's asyncio API."""
    writer: Any = AsyncMongoClient(topology.url(topology.primary))
    one: Any = AsyncMongoClient(topology.url(topology.replica))
    async with writer, one:
        mongodb.instrument_client(writer, datastore="posts", reads_from="primary")
        mongodb.instrument_client(one, datastore="posts", reads_from="replica")
        await writer["app"]["k"].insert_one({"_id": "old"})
        topology.wait_replicated()
        topology.pause()
        with antipode.scope():
            await writer["app"]["k"].insert_one({"_id": "new"})
            lineage = antipode.serialize()

        async def read() -> Any:
            return (await one["app"]["k"].find_one({}))["_id"]

        yield read, lineage
        mongodb.uninstrument_client(one)
        mongodb.uninstrument_client(writer)


@asynccontextmanager
async def engine(shims: Any, driver: str, topology: Any) -> AsyncIterator[tuple[Read, str]]:
    """A pool of SQLAlchemy over one driver."""

    def made(address: Any, reads_from: Any) -> Any:
        _, _, rest = topology.url(address).partition("://")
        plain = create_async_engine(f"{driver}://{rest}")
        return shims.instrument_engine(plain, datastore="posts", reads_from=reads_from)

    writer, one = made(topology.primary, "primary"), made(topology.replica, "replica")
    async with writer.begin() as connection:
        await connection.execute(text("CREATE TABLE k (v VARCHAR(9))"))
        await connection.execute(text("INSERT INTO k VALUES ('old')"))
    topology.wait_replicated()
    topology.pause()
    with antipode.scope():
        async with writer.begin() as connection:
            await connection.execute(text("INSERT INTO k VALUES ('new')"))
        lineage = antipode.serialize()

    async def read() -> Any:
        async with one.connect() as connection:
            return (await connection.execute(text("SELECT v FROM k"))).scalar()

    yield read, lineage
    for each in (one, writer):
        shims.uninstrument_engine(each)
        await each.dispose()


def _written(write: Callable[[], object]) -> str:
    with antipode.scope():
        write()
        return antipode.serialize()


async def _cancelled(counted: Counter[str], work: Awaitable[Any], after_s: float) -> None:
    """Cancel *work* after *after_s* seconds, and count what became of it."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(after_s)
    asked = task.cancel()
    await asyncio.wait({task})
    if asked and not task.cancelled():
        counted["swallowed"] += 1
    elif not asked and task.exception() is not None:
        counted["broken"] += 1


async def _reads(steps: int, open_client: Open, topology: Any) -> Counter[str]:
    """Cancel reads that wait; between them, others read what is there."""
    counted = Counter(swallowed=0, broken=0)
    async with open_client(topology) as (read, lineage):
        for step in range(steps):
            with antipode.scope(lineage):
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                await _cancelled(counted, read(), random.uniform(0, LONGEST_S))
            if step % _EVERY == 0:
                counted["broken"] += not await _sound(read)
    return counted


async def _sound(read: Read) -> bool:
    """Whether a read that waits for nothing is answered, and by its own reply."""
    with antipode.scope():
        try:
            shown = await asyncio.wait_for(read(), SOUND_S)
        except Exception:  # noqa: BLE001 - whatever it is, the connection is broken
            return False
    return shown in ("old", b"old")


@asynccontextmanager
async def aiobotocore_items(topology: Any) -> AsyncIterator[tuple[Read, str]]:
    """A client of aiobotocore of the second region."""
    regions = dict(zip(topology.regions, topology.urls, strict=True))
    made = aiobotocore.session.get_session().create_client
    key = {"id": {"S": "k"}}

    async def opened(region: str, reads_from: Any) -> Any:
        client = await stack.enter_async_context(
            made("dynamodb", region_name=region, endpoint_url=regions[region], **account)
        )
        dynamodb.instrument_client(
            client, datastore="posts", reads_from=reads_from, regions=regions
        )
        stack.callback(dynamodb.uninstrument_client, client)
        return client

    async def read() -> Any:
        found = await one.get_item(TableName="posts", Key=key)
        return found.get("Item", {}).get("v", {}).get("S")

    account = topology.credentials
    async with AsyncExitStack() as stack:
        writer = await opened(topology.regions[0], "primary")
        one = await opened(topology.regions[1], "replica")
        await writer.put_item(TableName="posts", Item={**key, "v": {"S": "old"}})
        await asyncio.to_thread(topology.wait_replicated)
        topology.pause()
        with antipode.scope():
            await writer.put_item(TableName="posts", Item={**key, "v": {"S": "new"}})
            lineage = antipode.serialize()
        yield read, lineage


async def _messages(steps: int, topology: Any) -> Counter[str]:
    """Cancel what takes a message off a queue; between them, others take the one that is there."""
    counted = Counter(swallowed=0, broken=0)
    async with rabbitmq.shim_async("posts", topology.url(), queue="k") as shim:
        await _declared(topology)

        async def receive() -> Any:
            async with shim.receive(timeout=TIMEOUT_S) as delivery:
                return delivery

        for step in range(steps):
            await _cancelled(counted, receive(), random.uniform(0, LONGEST_S))
            if step % _EVERY == 0:
                with antipode.scope():
                    await shim.write("k", b"old")
                counted["broken"] += not await _sound(partial(_taken, shim))
    return counted


async def _taken(shim: Any) -> Any:
    return (await shim.read(timeout=TIMEOUT_S))[0]


async def _declared(topology: Any) -> None:
    async with await aio_pika.connect(topology.url()) as connection:
        await (await connection.channel()).declare_queue("k")


async def _consumers(steps: int, topology: Any) -> Counter[str]:
    """Cancel consumers as they begin: none is left at the broker, and the channel goes on."""
    counted = Counter(swallowed=0, broken=0)
    await _declared(topology)

    async def handle(message: Any) -> None:
        del message

    async def consume(channel: Any) -> None:
        async with rabbitmq.consume_async(channel, "k", handle, datastore="posts"):
            await asyncio.sleep(TIMEOUT_S)

    async with await aio_pika.connect(topology.url()) as connection:
        other = await connection.channel()
        for _ in range(steps):
            channel = await connection.channel()
            await _cancelled(counted, consume(channel), random.uniform(0, LONGEST_S / 3))
            counted["broken"] += not await _unconsumed(other)
            if not channel.is_closed:
                await channel.close()
    return counted


async def _unconsumed(channel: Any) -> bool:
    """Whether nobody consumes the queue; a channel that aiormq closes goes in the background."""
    end_s = time.monotonic() + SOUND_S
    while time.monotonic() < end_s:
        found = await channel.declare_queue("k", passive=True)
        if not found.declaration_result.consumer_count:
            return True
        await asyncio.sleep(0.01)
    return False


async def _barriers(steps: int, topology: Any) -> Counter[str]:
    """Cancel barriers about when they end."""
    counted = Counter(swallowed=0, broken=0)
    async with redis_py(topology) as (_, lineage):
        for _ in range(steps):
            end_s = random.uniform(0.001, LONGEST_S / 3)
            barrier = antipode.barrier_async(lineage, timeout=end_s, on_unmet="return")
            await _cancelled(counted, barrier, end_s + random.uniform(-0.0005, 0.0005))
    return counted


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    began = time.monotonic()
    yield lambda: time.monotonic() - began


def _client(
    topologies: Callable[..., Any], run: Callable[[int, Any], Awaitable[Counter[str]]]
) -> Client:
    """One client, over two servers of its own."""

    def steps_of(steps: int, _: int) -> Line:
        async def main(topology: Any) -> Counter[str]:
            return await run(steps, topology)

        logging.getLogger("aiormq").setLevel(logging.CRITICAL)  # It warns of each cancellation.
        with topologies(lag_ms=0) as topology, _timed() as seconds:
            faults = asyncio.run(main(topology))
            return Line(steps, faults, seconds())

    return steps_of


def _reading(topologies: Callable[..., Any], open_client: Open) -> Client:
    async def run(steps: int, topology: Any) -> Counter[str]:
        return await _reads(steps, open_client, topology)

    return _client(topologies, run)


_one_broker = partial(RabbitMQTopology, federated=False)

CLIENTS: dict[str, Client] = {
    "barrier": _client(RedisTopology, _barriers),
    "redis-py": _reading(RedisTopology, redis_py),
    "pymongo": _reading(MongoDBTopology, pymongo),
    "aiomysql": _reading(MySQLTopology, partial(engine, mysql, "mysql+aiomysql")),
    "asyncpg": _reading(PostgreSQLTopology, partial(engine, postgresql, "postgresql+asyncpg")),
    "psycopg": _reading(PostgreSQLTopology, partial(engine, postgresql, "postgresql+psycopg")),
    "aiobotocore": _reading(DynamoDBTopology, aiobotocore_items),
    "aio-pika": _client(_one_broker, _messages),
    "consumers": _client(_one_broker, _consumers),
}
