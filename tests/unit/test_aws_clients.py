"""Programs that make a client of AWS for each request."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from typing import Any

import boto3
import pytest

from antipode import scope
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


@pytest.fixture(scope="module")
def session() -> Any:
    """One, since each reads the models of its services anew."""
    return pytest.importorskip(
        "aiobotocore.session", reason="aiobotocore is an extra"
    ).get_session()


@SERVICES
def test_so_with_asyncio(session: Any, service: str, module: Any, left: int) -> None:
    """Each with an event loop of its own, as in a function that is called now and then."""

    async def request() -> int:
        made = session.create_client(service, region_name="us-east-1", **KEYS)
        async with made as client:
            module.instrument_client(client, datastore="posts")
            return len(shims_of("posts"))

    for _ in range(4):
        asyncio.run(request())
        gc.collect()
    assert asyncio.run(request()) == left


#: A call of each service that changes what others see.
WRITES = pytest.mark.parametrize(
    ("service", "module", "options", "method", "params"),
    [
        (
            "dynamodb",
            dynamodb,
            {"keys": {"posts": ["id"]}},
            "put_item",
            {"TableName": "posts", "Item": {"id": {"S": "1"}}},
        ),
        ("s3", s3, {}, "put_object", {"Bucket": "posts", "Key": "1", "Body": b"text"}),
    ],
)


@WRITES
def test_a_write_that_is_interrupted_is_in_doubt(
    service: str, module: Any, options: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    """An interrupt is none of the failures that the client reports: the request may be made."""

    def interrupt(**_: Any) -> None:
        raise KeyboardInterrupt

    with closing(boto3.client(service, region_name="us-east-1", **KEYS)) as client, scope() as one:
        module.instrument_client(client, datastore="posts", **options)
        client.meta.events.register("before-send", interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(client, method)(**params)
        assert {mark.reason for mark in one.lineage.incomplete} == {"in_doubt"}
        module.uninstrument_client(client)


@WRITES
def test_so_is_one_whose_task_is_cancelled(
    service: str, module: Any, options: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    """The request may have left."""
    session = pytest.importorskip("aiobotocore.session", reason="aiobotocore is an extra")

    async def cancelled() -> set[str]:
        sending = asyncio.Event()

        async def never(**_: Any) -> None:
            sending.set()
            await asyncio.Event().wait()

        made = session.get_session().create_client(service, region_name="us-east-1", **KEYS)
        async with made as client:
            with scope() as one:
                module.instrument_client(client, datastore="posts", **options)
                client.meta.events.register("before-send", never)
                task = asyncio.ensure_future(getattr(client, method)(**params))
                await sending.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                module.uninstrument_client(client)
                return {mark.reason for mark in one.lineage.incomplete}

    assert asyncio.run(cancelled()) == {"in_doubt"}
