"""aiohttp alone."""

import asyncio

import aiohttp
from answering import answering, request

import antipode
from antipode.integrations import aiohttp as lineages

antipode.instrument()
lineages.instrument()


async def call(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.ok


with answering() as url, request():
    asyncio.run(call(url))
