"""Strawberry alone: what two requests load together depends on both."""

import asyncio

from answering import ASKED
from strawberry.dataloader import DataLoader

import antipode
from antipode import Lineage
from antipode.integrations import strawberry as lineages

lineages.instrument()
found: list[Lineage] = []


async def load(keys: list[int]) -> list[int]:
    found.append(antipode.current())
    return keys


async def main() -> None:
    loader = DataLoader(load)

    async def ask(key: int, lineage: Lineage | None) -> Lineage:
        with antipode.scope(lineage):
            assert await loader.load(key) == key
            return antipode.current()

    both = await asyncio.gather(ask(1, None), ask(2, Lineage([ASKED])))
    assert list(both) == [Lineage(), Lineage([ASKED])]


asyncio.run(main())
assert found == [Lineage([ASKED])]
