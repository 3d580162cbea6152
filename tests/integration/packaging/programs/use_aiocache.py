"""aiocache alone: whoever gets a cached value depends on what it depends on."""

import asyncio

from aiocache import cached
from answering import ASKED

import antipode
from antipode import Lineage
from antipode.integrations import aiocache
from antipode.shim import record_read

aiocache.instrument()
runs: list[int] = []


@cached(ttl=60)
async def item(number: int) -> int:
    runs.append(number)
    record_read(Lineage([ASKED]))
    return number


async def main() -> None:
    for _ in range(2):
        with antipode.scope():
            assert await item(1) == 1
            assert antipode.current() == Lineage([ASKED])


asyncio.run(main())
assert runs == [1]
