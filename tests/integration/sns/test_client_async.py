"""Instrumented clients of aiobotocore for SNS and SQS."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode_shims import sns
from tests.integration.sns._regions import NEWS

if TYPE_CHECKING:
    from tests.integration.sns._regions import Regions

session = pytest.importorskip("aiobotocore.session", reason="aiobotocore is an extra of its own")
pytestmark = pytest.mark.store("sns")


async def test_each_task_sends_its_own_lineage(regions: Regions, topic: Any) -> None:
    """Requests in tasks of one event loop never send each other's dependencies."""
    create = session.get_session().create_client
    async with (
        create("sns", **regions.options("sns")) as publisher,
        create("sqs", **regions.options("sqs")) as consumer,
    ):
        for client in (publisher, consumer):
            sns.instrument_client(client, datastore=NEWS)

        async def publish(number: int) -> None:
            with antipode.scope(Lineage([WriteId("elsewhere", "log", number, 490_000)])):
                await publisher.publish(TopicArn=topic.arn, Message=str(number))

        await asyncio.gather(*map(publish, range(1, 6)))
        found = {}
        while len(found) < 5:
            told = await consumer.receive_message(QueueUrl=topic.queue, WaitTimeSeconds=5)
            for message in told.get("Messages", ()):
                with sns.message(message, datastore=NEWS) as scope:
                    (write,) = scope.lineage
                    found[message["Body"]] = str(write.version)
        assert found == {str(number): str(number) for number in range(1, 6)}
        for client in (publisher, consumer):
            sns.uninstrument_client(client)
