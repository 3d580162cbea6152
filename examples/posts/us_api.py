"""The API in the US.

``POST /posts`` writes to MySQL and Redis, and publishes to RabbitMQ.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aio_pika
from fastapi import FastAPI
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from pydantic import BaseModel
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from examples.posts import telemetry
from examples.posts.schema import Post

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

telemetry.set_up()
posts = create_async_engine(os.environ["MYSQL_URL"])
counters = Redis.from_url(os.environ["REDIS_URL"])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Hold the connection to RabbitMQ while the service runs."""
    async with await aio_pika.connect_robust(
        os.environ["RABBITMQ_URL"]
    ) as connection:
        # With confirms, as aio-pika's are by default.
        channel = await connection.channel()
        app.state.exchange = await channel.declare_exchange(
            "geo.posts", aio_pika.ExchangeType.TOPIC, durable=True
        )
        yield
    await counters.aclose()
    await posts.dispose()


app = FastAPI(lifespan=lifespan)
FastAPIInstrumentor.instrument_app(app)


class Draft(BaseModel):
    """What an author sends."""

    author: str
    title: str


@app.post("/posts", status_code=201)
async def create(draft: Draft) -> dict[str, int]:
    """Store a post, count it, and tell the other region."""
    post = Post(author=draft.author, title=draft.title)
    async with AsyncSession(posts, expire_on_commit=False) as session:
        session.add(post)
        await session.commit()
    number = await counters.incr(f"posts:{draft.author}")
    body = json.dumps({"id": post.id, "author": draft.author}).encode()
    message = aio_pika.Message(body)
    await app.state.exchange.publish(message, routing_key="created")
    return {"id": post.id, "number": number}
