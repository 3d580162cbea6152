"""A FastAPI service with Antipode that writes, and hands a request on where it is told to.

It runs as a process of its own, under ``opentelemetry-instrument``, with the propagators that
``OTEL_PROPAGATORS`` names.
"""

from __future__ import annotations

from typing import Any

import httpx
from fastapi import FastAPI

import antipode
from antipode import WriteId
from antipode.integrations import asgi
from antipode.integrations import httpx as lineages

antipode.instrument()
lineages.instrument()
app = FastAPI()


@app.get("/write")
async def write(key: str, to: str = "") -> dict[str, Any]:
    came = antipode.serialize()
    antipode.append(WriteId("middle", key, 1, written_hour=490_000))
    body = None
    if to:
        async with httpx.AsyncClient(trust_env=False) as client:
            body = (await client.get(to)).json()
    return {"came": came, "next": body}


asgi.instrument_app(app)
