"""The notification service: a consumer of refunds, and what it told a user, by FastAPI.

It reads the refund at the replica of its region. What the library adds is in
``notification_antipode``, which is imported only where ``TRAIN_TICKET_ANTIPODE`` is set.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import aio_pika
import uvicorn
from fastapi import FastAPI
from pymongo import AsyncMongoClient
from redis.asyncio import Redis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aio_pika.abc import AbstractIncomingMessage

_PREFETCH = 20

antipode: Any = None
if os.environ.get("TRAIN_TICKET_ANTIPODE"):
    antipode = import_module("benchmarks.train_ticket.notification_antipode")

notices: Redis = Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
refunds: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(os.environ["MONGODB_URL"])
database = os.environ["MONGODB_DATABASE"]


async def on_message(message: AbstractIncomingMessage) -> None:
    """Tell a user of a refund."""
    async with message.process(requeue=True):
        refunded = json.loads(message.body)
        if antipode:
            await antipode.wait()
        found = await refunds[database].money.find_one({"_id": refunded["orderId"]})
        told = f"{found['cents']} cents are yours" if found else "we know of no refund"
        await notices.hset(f"notices:{refunded['email']}", refunded["orderId"], told)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Consume for as long as the service runs."""
    async with await aio_pika.connect_robust(os.environ["RABBITMQ_URL"]) as connection:
        channel = await connection.channel()
        if antipode:
            antipode.instrument_channel(channel)
        await channel.set_qos(prefetch_count=_PREFETCH)
        queue = await channel.declare_queue(os.environ["NOTIFICATIONS_QUEUE"], durable=True)
        await queue.consume(on_message)
        yield
    await notices.aclose()
    await refunds.close()


app = FastAPI(lifespan=lifespan)
if antipode:
    antipode.instrument(app, notices, refunds)


@app.get("/api/v1/notifyservice/notices/{email}")
async def told(email: str) -> dict[Any, Any]:
    """What a user was told, by order."""
    return await notices.hgetall(f"notices:{email}")


if __name__ == "__main__":
    uvicorn.run(
        app,
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "0")),
        log_level="info",
        access_log=False,
    )
