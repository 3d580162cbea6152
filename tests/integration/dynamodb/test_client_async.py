"""Instrumented clients of aiobotocore, and Table 2 over one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import BarrierTimeout
from antipode_shims import dynamodb
from tests.integration.dynamodb._regions import POSTS, Regions, item, name, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

session = pytest.importorskip("aiobotocore.session", reason="aiobotocore is an extra of its own")
pytestmark = pytest.mark.store("dynamodb")


@asynccontextmanager
async def client_of(regions: Regions, region: str, **options: Any) -> AsyncIterator[Any]:
    """An instrumented client, until the block ends."""
    async with session.get_session().create_client("dynamodb", **regions.options(region)) as client:
        dynamodb.instrument_client(client, datastore=POSTS, regions=regions.urls, **options)
        try:
            yield client
        finally:
            dynamodb.uninstrument_client(client)


async def test_writes_enter_and_reads_wait(regions: Regions) -> None:
    """Under lag a read after its barrier shows each write, and none of its attributes."""
    regions.topology.set_lag(40)
    async with (
        client_of(regions, regions.home) as writer,
        client_of(regions, regions.away, reads_from="replica") as reader,
    ):
        for at in ("now", "read", "now"):
            key = name()
            with antipode.scope():
                await writer.put_item(TableName=POSTS, Item=item(key, text="new"))
                assert set(written()) == {key}
                await antipode.barrier_async(timeout=10, at=at)
                told = await reader.get_item(TableName=POSTS, Key=item(key))
                assert told["Item"] == item(key, text="new")


async def test_a_held_read_blocks_no_other_task(regions: Regions) -> None:
    """While one read waits for its floor the event loop goes on; at the deadline it raises."""
    async with (
        client_of(regions, regions.home) as writer,
        client_of(regions, regions.away, reads_from="replica") as reader,
    ):
        key = name()
        regions.topology.pause()
        with antipode.scope():
            await writer.put_item(TableName=POSTS, Item=item(key))
            await antipode.barrier_async(timeout=10, at="read")
            reading = asyncio.ensure_future(reader.get_item(TableName=POSTS, Key=item(key)))
            other = await writer.get_item(TableName=POSTS, Key=item(key), ConsistentRead=True)
            assert other["Item"] == item(key)
            assert not reading.done()
            regions.topology.resume()
            assert (await reading)["Item"] == item(key)
        regions.topology.pause()
        with antipode.scope():
            await writer.put_item(TableName=POSTS, Item=item(name()))
            await antipode.barrier_async(timeout=0.1, at="read")
            with pytest.raises(BarrierTimeout):
                await reader.get_item(TableName=POSTS, Key=item(key))


async def test_tasks_keep_their_own_writes(regions: Regions) -> None:
    """Requests in tasks of one event loop never get each other's writes."""
    async with client_of(regions, regions.home) as client:

        async def request() -> None:
            keys = {name() for _ in range(3)}
            with antipode.scope():
                for key in keys:
                    await client.put_item(TableName=POSTS, Item=item(key))
                assert set(written()) == keys

        await asyncio.gather(*(request() for _ in range(5)))


async def test_table2(regions: Regions) -> None:
    """The asyncio shim writes, waits, reads and deletes as the synchronous one does."""
    regions.topology.set_lag(40)
    create = session.get_session().create_client
    async with (
        create("dynamodb", **regions.options(regions.home)) as us,
        create("dynamodb", **regions.options(regions.away)) as eu,
    ):
        options = {"table": POSTS, "regions": regions.urls}
        writer = dynamodb.shim_async(POSTS, us, **options)
        reader = dynamodb.shim_async(POSTS, eu, reads_from="replica", **options)
        key = name()
        with antipode.scope() as scope:
            lineage = await writer.write(key, "value")
            assert lineage == scope.lineage
            await reader.wait_async(timeout=10)
            value, found = await reader.read(key)
            assert value == "value"
            assert found.datastores == {POSTS}
            await writer.delete(key)
            await antipode.barrier_async(timeout=10, at="read")
            assert (await reader.read(key))[0] is None
        await writer.aclose()
        await reader.aclose()


async def test_a_client_of_the_other_api_is_refused(regions: Regions) -> None:
    """``shim`` takes boto3's clients, ``shim_async`` those of aiobotocore; each names the other."""
    plain = regions.client(regions.home)
    with pytest.raises(antipode.ConfigurationError, match=r"use dynamodb\.shim\(\)"):
        dynamodb.shim_async(POSTS, plain, table=POSTS)
    create = session.get_session().create_client
    async with create("dynamodb", **regions.options(regions.home)) as client:
        with pytest.raises(antipode.ConfigurationError, match=r"use dynamodb\.shim_async\(\)"):
            dynamodb.shim(POSTS, client, table=POSTS)
