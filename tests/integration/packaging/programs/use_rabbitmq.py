"""RabbitMQ with pika and aio-pika alone: Table 2, channels and consumers of both, receipts."""

import asyncio
import sys

import aio_pika
import pika

import antipode
from antipode_shims import rabbitmq

URL, EXCHANGE = sys.argv[1:]
WHERE = {"exchange": EXCHANGE, "queue": EXCHANGE}


def handle(channel: object, method: object, properties: object, body: bytes) -> None:
    assert antipode.current().only("news")
    worker.stop()


def table2() -> None:
    with antipode.scope() as scope, rabbitmq.shim("news", URL, receipts=True, **WHERE) as shim:
        shim.write("k", b"1")
        antipode.barrier(timeout=5)
        assert shim.read(timeout=5)[0] == b"1"
        assert not scope.lineage.incomplete


async def table2_async() -> None:
    async with rabbitmq.shim_async("news", URL, **WHERE) as shim:
        with antipode.scope() as scope:
            await shim.write("k", b"2")
            assert (await shim.read(timeout=5))[0] == b"2"
            assert not scope.lineage.incomplete


def publish(channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
    with antipode.scope() as scope:
        channel.basic_publish(EXCHANGE, "k", b"3")
        assert len(scope.lineage) == 1


async def channels_async() -> None:
    connection = await aio_pika.connect_robust(URL)
    async with connection:
        channel = rabbitmq.instrument_channel(await connection.channel(), datastore="news")
        exchange = await channel.get_exchange(EXCHANGE)
        with antipode.scope() as scope:
            await exchange.publish(aio_pika.Message(b"4"), "k")
            assert len(scope.lineage) == 1
        done = asyncio.Event()

        async def handle_async(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            assert antipode.current().only("news")
            done.set()

        consumer = rabbitmq.consume_async(channel, EXCHANGE, handle_async, datastore="news")
        async with consumer:
            await asyncio.wait_for(done.wait(), 10)


with pika.BlockingConnection(pika.URLParameters(URL)) as connection:
    channel = connection.channel()
    channel.exchange_declare(EXCHANGE, "fanout", auto_delete=True)
    channel.queue_declare(EXCHANGE)
    channel.queue_bind(EXCHANGE, EXCHANGE)
    table2()
    asyncio.run(table2_async())
    instrumented = rabbitmq.instrument_channel(connection.channel(), datastore="news")
    instrumented.confirm_delivery()
    publish(instrumented)
    worker = rabbitmq.consume(instrumented, EXCHANGE, handle, datastore="news")
    worker.run(timeout=10)
    asyncio.run(channels_async())
    channel.queue_delete(EXCHANGE)
