"""Instrumented clients of aiobotocore, and Table 2 over one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode_shims import s3
from tests.integration.s3._regions import POSTS, Regions, name, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

session = pytest.importorskip("aiobotocore.session", reason="aiobotocore is an extra of its own")
pytestmark = pytest.mark.store("s3")

ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)


@asynccontextmanager
async def client_of(regions: Regions, region: str, **options: Any) -> AsyncIterator[Any]:
    """An instrumented client, until the block ends."""
    async with session.get_session().create_client("s3", **regions.options(region)) as client:
        s3.instrument_client(client, datastore=POSTS, regions=regions.urls, **options)
        try:
            yield client
        finally:
            s3.uninstrument_client(client)


async def test_writes_enter_and_reads_wait(regions: Regions) -> None:
    """Under lag a read after its barrier shows each write, with its lineage; copies merge."""
    regions.topology.set_lag(40)
    async with (
        client_of(regions, regions.home, lineage="beside") as writer,
        client_of(regions, regions.away, lineage="beside", reads_from="replica") as reader,
    ):
        key, copied = name(), name()
        with antipode.scope(Lineage([ELSEWHERE])):
            await writer.put_object(Bucket=POSTS, Key=key, Body=b"new")
        with antipode.scope():
            await writer.copy_object(Bucket=POSTS, Key=copied, CopySource=f"{POSTS}/{key}")
            assert set(written()) == {copied}
            await antipode.barrier_async(timeout=10, at="read", only=POSTS)
            told = await reader.get_object(Bucket=POSTS, Key=copied)
            assert await told["Body"].read() == b"new"
            assert told["Metadata"] == {}
            assert ELSEWHERE in antipode.current()


async def test_table2(regions: Regions) -> None:
    """The twin writes, reads, deletes and waits as the synchronous shim does."""
    options = {at: regions.options(at) for at in (regions.home, regions.away)}
    make = session.get_session().create_client
    regions.topology.set_lag(20)
    async with (
        make("s3", **options[regions.home]) as home,
        make("s3", **options[regions.away]) as away,
    ):
        writer = s3.shim_async(POSTS, home, bucket=POSTS)
        reader = s3.shim_async(POSTS, away, bucket=POSTS, reads_from="replica")
        key = name()
        with antipode.scope():
            await writer.write(key, "1", Lineage([ELSEWHERE]))
            await reader.wait_async(timeout=10)
            value, lineage = await reader.read(key)
            assert value == b"1"
            assert ELSEWHERE in lineage
            await writer.delete(key)
            await reader.wait_async(timeout=10)
            assert await reader.read(key) == (None, Lineage())
        await writer.aclose()
        await reader.aclose()


async def test_a_client_of_the_other_api_is_refused(regions: Regions) -> None:
    """A shim of one API says which the other is."""
    plain = boto3.client("s3", **regions.options(regions.home))
    with pytest.raises(antipode.ConfigurationError, match=r"s3\.shim\(\)"):
        s3.shim_async(POSTS, plain, bucket=POSTS)
    plain.close()
