"""A plain FastAPI service that hands a request on, by the client that its path names.

It runs as a process of its own and knows nothing of lineages. OpenTelemetry's instrumentation is
put in by ``opentelemetry-instrument``, or here where ``INSTRUMENT`` is set.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import aiohttp
import httpx
import requests
from fastapi import FastAPI
from opentelemetry.instrumentation.utils import suppress_instrumentation

app = FastAPI()


def told(body: Any) -> dict[str, Any]:
    """What the next service answered, and whether this one knows of lineages."""
    return {"antipode": "antipode" in sys.modules, "next": body}


@app.get("/httpx")
async def by_httpx(to: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False) as client:
        return told((await client.get(to)).json())


@app.get("/requests")
def by_requests(to: str) -> dict[str, Any]:
    with requests.Session() as session:
        session.trust_env = False
        return told(session.get(to, timeout=10).json())


@app.get("/aiohttp")
async def by_aiohttp(to: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(to) as answer:
        return told(await answer.json())


@app.get("/suppressed")
async def suppressed(to: str) -> dict[str, Any]:
    with suppress_instrumentation():
        return await by_httpx(to)


if os.environ.get("INSTRUMENT"):
    from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
    from opentelemetry.instrumentation.requests import RequestsInstrumentor

    FastAPIInstrumentor.instrument_app(app)
    for one in (AioHttpClientInstrumentor, HTTPXClientInstrumentor, RequestsInstrumentor):
        one().instrument()
