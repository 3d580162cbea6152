"""The API in the EU.

``GET /posts/{id}`` reads at the replica, and counts the view in the US.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from examples.posts import telemetry
from examples.posts.schema import Post

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

telemetry.set_up()
posts = create_async_engine(os.environ["MYSQL_URL"])
counters = Redis.from_url(os.environ["REDIS_PRIMARY_URL"])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Close what was opened when the service ends."""
    yield
    await counters.aclose()
    await posts.dispose()


app = FastAPI(lifespan=lifespan)
FastAPIInstrumentor.instrument_app(app)


@app.get("/posts/{post_id}")
async def show(post_id: int) -> dict[str, str]:
    """Show a post."""
    async with AsyncSession(posts) as session:
        post = await session.get(Post, post_id)
    if post is None:
        raise HTTPException(404, "no such post")
    await counters.incr(f"views:{post_id}")
    return {"author": post.author, "title": post.title}
