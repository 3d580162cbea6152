"""httpx alone, synchronous and asynchronous."""

import asyncio

import httpx
from answering import answering, request

import antipode
from antipode.integrations import httpx as lineages

antipode.instrument()
lineages.instrument()


async def asynchronous(url: str) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.get(url)).is_success


with answering() as url:
    with request():
        assert httpx.get(url).is_success
    with request():
        asyncio.run(asynchronous(url))
