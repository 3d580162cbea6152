"""The same service with FastAPI and redis.asyncio."""

from __future__ import annotations

import asyncio
import os
from typing import Literal

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from redis.asyncio import Redis

import antipode
from antipode.integrations import asyncio as antipode_asyncio
from antipode.integrations.asgi import instrument_app
from antipode_shims.redis import instrument_client

app = FastAPI(default_response_class=PlainTextResponse)
primary = Redis(port=int(os.environ["PRIMARY"]))
replica = Redis(port=int(os.environ["REPLICA"]))


@app.get("/")
async def ready() -> str:
    """Answer at once."""
    return "ready"


@app.get("/write/{key}")
async def write(key: str) -> str:
    """Write in two steps, between which other requests run."""
    await primary.set(key, "first")
    await primary.set(key, "value")
    return antipode.serialize()


@app.get("/read/{at}/{key}")
async def read(at: Literal["now", "read"], key: str) -> str:
    """Read behind a barrier."""
    await antipode.barrier_async(timeout=20, at=at)
    return str(await replica.get(key))


@app.get("/start/{key}")
async def start(key: str) -> str:
    """Start a write, and answer before it is done."""
    started.add(asyncio.create_task(write_later(key)))
    return antipode.serialize()


async def write_later(key: str) -> None:
    """Write at the next request."""
    await again.wait()
    await primary.set(key, "later")


@app.get("/go-on")
async def go_on() -> str:
    """Let the writes be done that were started."""
    again.set()
    await asyncio.gather(*started)
    return antipode.serialize()


again = asyncio.Event()
started: set[asyncio.Task[None]] = set()
antipode.instrument()
antipode_asyncio.instrument()
instrument_client(primary, datastore="posts")
instrument_client(replica, datastore="posts", reads_from="replica")
instrument_app(app)
