"""Programs that make a client of AWS for each request."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from typing import Any

import boto3
import pytest

from antipode.shim import shims_of
from antipode_shims import dynamodb, s3, sns

KEYS = {"aws_access_key_id": "unused", "aws_secret_access_key": "unused"}
SERVICES = pytest.mark.parametrize(
    ("service", "module", "left"),
    [("dynamodb", dynamodb, 2), ("s3", s3, 2), ("sns", sns, 1), ("sqs", sns, 1)],
)


@SERVICES
def test_clients_that_are_gone_stay_registered_by_no_more_than_one(
    service: str, module: Any, left: int
) -> None:
    """Of clients that are gone, the first one alone is registered still: where it polls."""

    def made() -> Any:
        client = boto3.client(service, region_name="us-east-1", **KEYS)
        return module.instrument_client(client, datastore="posts")

    for _ in range(4):
        made().close()
    gc.collect()
    with closing(made()):
        assert len(shims_of("posts")) == left


@SERVICES
def test_so_with_asyncio(service: str, module: Any, left: int) -> None:
    """Each with an event loop of its own, as in a function that is called now and then."""
    session = pytest.importorskip("aiobotocore.session", reason="aiobotocore is an extra")

    async def request() -> int:
        made = session.get_session().create_client(service, region_name="us-east-1", **KEYS)
        async with made as client:
            module.instrument_client(client, datastore="posts")
            return len(shims_of("posts"))

    for _ in range(4):
        asyncio.run(request())
        gc.collect()
    assert asyncio.run(request()) == left
