"""What barriers, stored lineages and messages say of branches of their request that still run."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING, Any

import boto3
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode._runtime import metrics as _metrics
from antipode.integrations import asyncio as antipode_asyncio
from antipode.integrations import threads
from antipode.telemetry import Metric, metrics
from antipode_shims import embedded, redis, sns
from antipode_shims.embedded import EmbeddedTopology
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology, SNSTopology

COUNT = Metric("open_branches", "")
POST = WriteId("elsewhere", "p1", 1, 498_669)


@pytest.fixture
def running() -> Iterator[threading.Thread]:
    """A thread that runs until the test ends, to be started in a request."""
    go = threading.Event()
    thread = threading.Thread(target=go.wait, args=(60,))
    threads.instrument()
    yield thread
    go.set()
    thread.join()
    threads.uninstrument()


def test_a_barrier_reports_branches_that_run(
    running: threading.Thread,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In its result, as a count, and in the log once for its place; a check does, too."""
    monkeypatch.setattr(_metrics, "_logged", set())
    before = metrics().get(COUNT, 0)
    with antipode.scope():
        assert antipode.barrier(timeout=1).open_branches == 0
        running.start()
        for _ in range(2):
            assert antipode.barrier(timeout=1).open_branches == 1
        assert antipode.check().open_branches == 1
    assert metrics()[COUNT] == before + 3
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 2
    assert all("1 branches of the request still run" in each for each in said)
    assert __file__ in said[0]


def test_a_barrier_in_a_branch_does_not_report_that_one(running: threading.Thread) -> None:
    """It waits for what the request did before, and is not what it might miss."""
    found: list[int] = []

    def wait() -> None:
        found.append(antipode.barrier(timeout=1).open_branches)

    with antipode.scope():
        for _ in range(2):
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join(60)
            if not running.ident:
                running.start()
    assert found == [0, 1]


async def test_a_barrier_in_a_task_does_not_report_that_one() -> None:
    """A task that another one waits for, and two that run at once."""
    antipode_asyncio.instrument()

    async def wait() -> int:
        await asyncio.sleep(0)
        return (await antipode.barrier_async(timeout=1)).open_branches

    try:
        with antipode.scope():
            assert await asyncio.ensure_future(wait()) == 0
            assert max(await asyncio.gather(wait(), wait())) == 1
    finally:
        antipode_asyncio.uninstrument()


def test_a_result_has_those_of_the_lineage_that_is_given() -> None:
    """Of another request: they are reported, and not counted as this one's."""
    before = metrics().get(COUNT, 0)
    with antipode.scope():
        found = antipode.barrier(Lineage(open_branches=3), timeout=1)
    assert found.open_branches == 3
    assert metrics().get(COUNT, 0) == before


def test_a_stored_lineage_says_how_many_run(running: threading.Thread) -> None:
    """Whoever reads the value knows that more may come."""
    with EmbeddedTopology() as topology:
        store = embedded.shim("posts", topology.primary, reads_from="primary")
        with antipode.scope():
            store.write("a", b"1")
            running.start()
            store.write("b", b"1")
        for key, expected in (("a", 0), ("b", 1)):
            with antipode.scope():
                assert store.read(key)[1].open_branches == expected


@pytest.mark.store("redis")
def test_a_companion_in_redis_says_how_many_run(
    running: threading.Thread, antipode_redis: RedisTopology
) -> None:
    """As a lineage that a shim stores itself."""
    with client(antipode_redis.primary) as one:
        redis.instrument_client(one, datastore="cache", lineage="beside", keys=["branches:*"])
        with antipode.scope(Lineage([POST])):
            one.set("branches:a", "1")
            running.start()
            one.set("branches:b", "1")
        for key, expected in (("branches:a", 0), ("branches:b", 1)):
            with antipode.scope():
                one.get(key)
                assert antipode.current().open_branches == expected
        redis.uninstrument_client(one)


@pytest.mark.slow
@pytest.mark.store("sns")
def test_a_message_of_sqs_says_how_many_run(
    running: threading.Thread, antipode_sns: SNSTopology
) -> None:
    """As messages with headers do."""
    client: Any = boto3.client(
        "sqs",
        region_name=antipode_sns.regions[1],
        endpoint_url=antipode_sns.urls[1],
        **antipode_sns.credentials,
    )
    queue = client.create_queue(QueueName=f"q{uuid.uuid4().hex[:8]}")["QueueUrl"]
    sns.instrument_client(client, datastore="jobs")
    with antipode.scope(Lineage([POST])):
        running.start()
        client.send_message(QueueUrl=queue, MessageBody="1")
    (message,) = client.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
    with sns.message(message, datastore="jobs"):
        assert antipode.current().open_branches == 1
