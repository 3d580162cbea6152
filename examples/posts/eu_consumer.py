"""The consumer in the EU: each message from the US starts a task."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING

import aio_pika

from examples.posts.eu_celery import app

if TYPE_CHECKING:
    from aio_pika.abc import AbstractIncomingMessage


async def on_message(message: AbstractIncomingMessage) -> None:
    """Hand a post to a task, in the scope of the message.

    So the task has its lineage.
    """
    async with message.process(requeue=True):
        post = json.loads(message.body)
        arguments = [post["id"], post["author"]]
        await asyncio.to_thread(app.send_task, "notify", arguments)


async def main() -> None:
    """Consume until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGTERM, stop.set
    )
    async with await aio_pika.connect_robust(
        os.environ["RABBITMQ_URL"]
    ) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=20)
        exchange = await channel.declare_exchange(
            "geo.posts", aio_pika.ExchangeType.TOPIC, durable=True
        )
        queue = await channel.declare_queue(
            "created-posts", durable=True
        )
        await queue.bind(exchange, "created")
        await queue.consume(on_message)
        print("consuming", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
