"""Promised messages over two federated brokers: a header says what a message fulfils."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import aio_pika
import pika
import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Promise, Status, VisibilityCheckError
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq import Receipts
from antipode_testing import wait_until

from ._bench import NEWS, TIMEOUT_S, Bench, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")


class Regions(Bench):
    """A federated exchange: published to in ``us``, listened to in ``eu``."""

    def __init__(self, topology: RabbitMQTopology) -> None:
        super().__init__(topology)
        for channel in (self.channel("us"), self.channel("eu")):
            self.declare(channel, kind="topic")

    def listen(self, receipts: Receipts | None) -> Any:
        """A shim in ``eu``, once its tap is federated."""
        shim = self.stack.enter_context(
            rabbitmq.shim(
                NEWS,
                self.topology.url(self.topology.replica),
                exchange=self.name,
                receipts=receipts,
                queue=self.name,
            )
        )
        self.topology.wait_federated(self.name)
        return shim


@pytest.fixture
def regions(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Regions]:
    """Two brokers and an exchange."""
    with contextlib.closing(Regions(antipode_rabbitmq)) as one:
        yield one


@pytest.fixture
def promise() -> Promise:
    """What some other service promised."""
    with antipode.scope():
        return antipode.promise(NEWS, expires_in_s=60)


def statuses(promise: Promise) -> set[Status]:
    """What a look shows."""
    return {each.status for each in antipode.check(Lineage(promises=[promise])).outcomes}


def test_message_of_a_native_channel_fulfils(regions: Regions, promise: Promise) -> None:
    """The application publishes as ever, with one header more; the tap abroad sees it."""
    regions.listen(Receipts())
    channel = rabbitmq.instrument_channel(regions.channel("us"), datastore=NEWS)
    regions.topology.pause()
    headers = rabbitmq.fulfil({"tenant": "a"}, promise.token)
    with antipode.scope():
        channel.basic_publish(regions.name, "k", b"", pika.BasicProperties(headers=headers))
    assert statuses(promise) == {Status.NOT_YET}
    regions.topology.resume()
    assert antipode.barrier(Lineage(promises=[promise]), timeout=TIMEOUT_S).ok
    _, properties, _ = regions.get(regions.channel("eu"))
    assert properties.headers["tenant"] == "a"


def test_asyncio_message_fulfils(regions: Regions, promise: Promise) -> None:
    """So do messages of aio-pika, and of the asyncio face of Table 2."""
    regions.listen(Receipts())
    with antipode.scope():
        other = antipode.promise(NEWS, expires_in_s=60)

    async def publish() -> None:
        connection = await aio_pika.connect(regions.topology.url())
        async with connection:
            channel = await connection.channel()
            exchange = await channel.get_exchange(regions.name, ensure=False)
            headers = rabbitmq.fulfil(None, promise)
            await exchange.publish(aio_pika.Message(b"", headers=headers), "k")
        url = regions.topology.url()
        async with rabbitmq.shim_async(NEWS, url, exchange=regions.name) as shim:
            with antipode.scope():
                await shim.write("k", b"", fulfils=other)

    asyncio.run(publish())
    for each in promise, other:
        assert antipode.barrier(Lineage(promises=[each]), timeout=TIMEOUT_S).ok


def test_what_a_consumer_received_is_fulfilled(regions: Regions, promise: Promise) -> None:
    """Without a tap the messages that this process handles are what it knows."""
    shim = regions.listen(Receipts(tap=False))
    headers = rabbitmq.fulfil(None, promise)
    regions.channel("us").basic_publish(
        regions.name, "k", b"", pika.BasicProperties(headers=headers)
    )
    with pytest.raises(BarrierTimeout):
        antipode.barrier(Lineage(promises=[promise]), timeout=0.2)
    with shim.receive(timeout=TIMEOUT_S) as delivery:
        assert delivery is not None
    assert statuses(promise) == {Status.VISIBLE}


def test_message_in_its_scope_is_fulfilled(regions: Regions, promise: Promise) -> None:
    """A message that ``message()`` handles counts as seen, too."""
    regions.listen(Receipts(tap=False))
    channel = rabbitmq.instrument_channel(regions.channel("us"), datastore=NEWS)
    with antipode.scope():
        properties = pika.BasicProperties(headers=rabbitmq.fulfil(None, promise))
        channel.basic_publish(regions.name, "k", b"", properties)
    with rabbitmq.message(regions.get(regions.channel("eu"))):
        assert statuses(promise) == {Status.VISIBLE}


def test_without_receipts_nothing_is_waited_for(regions: Regions, promise: Promise) -> None:
    """A datastore without receipts reports its promises, as it does its messages."""
    regions.listen(None)
    assert statuses(promise) == {Status.NOT_WAITABLE}


def test_unseen_is_no_proof(regions: Regions) -> None:
    """A tap that did not see the message in time cannot say that there was none."""
    regions.listen(Receipts())
    with antipode.scope():
        fresh = antipode.promise(NEWS, expires_in_s=60)
    late = Promise(NEWS, fresh.id, int(time.time()) - 2 * 3600)
    with pytest.raises(VisibilityCheckError, match="before this process listened"):
        antipode.barrier(Lineage(promises=[late]), timeout=TIMEOUT_S)


@pytest.mark.parametrize("header", ["1", "no token", 7, b"\xff"])
def test_unreadable_header_is_counted(regions: Regions, header: object) -> None:
    """What names no promise fulfils none, and stops nobody."""
    regions.listen(Receipts())
    before = counted("unreadable")
    properties = pika.BasicProperties(headers={"antipode-promise": header})
    regions.channel("us").basic_publish(regions.name, "k", b"", properties)
    wait_until(lambda: counted("unreadable") > before, what="the count", timeout_s=TIMEOUT_S)


def test_promise_of_another_store_is_not_this_ones(regions: Regions, promise: Promise) -> None:
    """The header of a message names the datastore that was promised."""
    regions.listen(Receipts())
    elsewhere = Promise("carts", promise.id, promise.expires_s)
    for each in elsewhere, promise:
        assert statuses(promise) == {Status.NOT_YET}
        properties = pika.BasicProperties(headers=rabbitmq.fulfil(None, each))
        regions.channel("us").basic_publish(regions.name, "k", b"", properties)
    assert antipode.barrier(Lineage(promises=[promise]), timeout=TIMEOUT_S).ok
