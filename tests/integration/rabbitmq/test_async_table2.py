"""The asyncio twin of the Table 2 face over a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest

import antipode
from antipode import ConfigurationError, Lineage, Status
from antipode.shim import Unreachable
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._clients.channel_state import AROUND_PROPERTIES
from antipode_testing import wait_until

from ._bench import (
    CAUSES,
    IN_DOUBT,
    NEWS,
    TIMEOUT_S,
    Bench,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from antipode_testing import LagProxy, RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")
#: The bytes of a frame, by default.
FRAME = 131_072
REFUSED = pytest.raises(ValueError, match="leave its lineage no room")


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Bench]:
    """An exchange and a queue of the test's own."""
    with contextlib.closing(Bench(antipode_rabbitmq)) as one:
        one.declare(one.channel())
        yield one


def shim_of(
    bench: Bench, *, via: LagProxy | None = None, **options: Any
) -> rabbitmq.RabbitMQAsyncShim:
    """A shim on the test's exchange and queue."""
    url = bench.topology.url()
    if via is not None:
        us, proxy = bench.topology.address("us"), via.address
        url = url.replace(f"{us.host}:{us.port}", f"{proxy.host}:{proxy.port}")
    options = {"exchange": bench.name, "queue": bench.name, **options}
    return rabbitmq.shim_async(NEWS, url, **options)


@pytest.fixture
async def shim(bench: Bench) -> AsyncIterator[rabbitmq.RabbitMQAsyncShim]:
    """The twin under test."""
    async with shim_of(bench) as one:
        yield one


@pytest.mark.parametrize(("spare", "sent"), [(300, True), (60, False)])
async def test_headers_that_fill_a_frame(
    shim: rabbitmq.RabbitMQAsyncShim, *, spare: int, sent: bool
) -> None:
    """The lineage is cut to what the frame has room for; where it has none, nothing is sent."""
    many = Lineage([antipode.WriteId("posts", f"log-{number}", 7) for number in range(20)])
    used = len(aio_pika.Message(b"", headers={"mine": ""}).properties.marshal())
    headers = {"mine": "x" * (FRAME - used - AROUND_PROPERTIES - spare)}
    with antipode.scope(many), contextlib.nullcontext() if sent else REFUSED:
        await shim.write("k", b"value", headers=headers)
    await shim.write("k", b"next")
    value, lineage = await shim.read(timeout=TIMEOUT_S)
    assert value == (b"value" if sent else b"next")
    assert bool(lineage.only("posts")) is sent
    assert (("posts", "size") in {tuple(mark) for mark in lineage.incomplete}) is sent


async def test_write_and_read_carry_the_lineage(shim: rabbitmq.RabbitMQAsyncShim) -> None:
    """``write`` returns and enters the lineage with the publication; ``read`` gives it back."""
    with antipode.scope(CAUSES):
        written = await shim.write("k", b"value")
        assert written == antipode.current()
        assert len(written) == 2
    with antipode.scope():
        assert await shim.read(timeout=TIMEOUT_S) == (b"value", written)
        assert antipode.current() == written
        assert await shim.read() == (None, Lineage())


async def test_a_message_of_one_twin_is_read_by_the_other(
    bench: Bench, shim: rabbitmq.RabbitMQAsyncShim
) -> None:
    """Headers are the same whoever publishes."""
    written = await shim.write("k", "text", CAUSES)

    def read() -> tuple[bytes | None, Lineage]:
        with rabbitmq.shim(NEWS, bench.topology.url(), queue=bench.name) as twin:
            return twin.read(timeout=TIMEOUT_S)

    assert await asyncio.to_thread(read) == (b"text", written)


async def test_receive_acknowledges_at_the_end_and_requeues_on_an_error(
    shim: rabbitmq.RabbitMQAsyncShim,
) -> None:
    """Raised in the block: the message comes again; handled: it is gone."""
    written = await shim.write("key", b"v", CAUSES)

    async def fail() -> None:
        async with shim.receive(timeout=TIMEOUT_S) as delivery:
            assert delivery is not None
            assert not delivery.redelivered
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with shim.receive(timeout=TIMEOUT_S) as delivery:
        assert delivery is not None
        assert delivery.redelivered
        assert delivery.lineage == antipode.current() == written
    assert await shim.read() == (None, Lineage())


async def test_what_nobody_takes_enters_nothing(shim: rabbitmq.RabbitMQAsyncShim) -> None:
    """A mandatory message without a queue is refused: no dependency, and no doubt."""
    shim.exchange = ""
    with antipode.scope():
        with pytest.raises(aio_pika.exceptions.DeliveryError):
            await shim.write("no-such-queue", b"v", mandatory=True)
        assert antipode.current().empty


async def test_a_lost_connection_leaves_a_doubt_and_the_shim_goes_on(bench: Bench) -> None:
    """Lost between publication and confirm: in doubt; the next write connects anew."""
    proxy = bench.proxy()
    async with shim_of(bench, via=proxy) as shim:
        await shim.write("k", b"first")
        with antipode.scope():
            writing = await held(proxy, shim)
            proxy.cut()
            with pytest.raises((aio_pika.exceptions.AMQPError, ConnectionError)):
                await asyncio.wait_for(writing, TIMEOUT_S)
            assert antipode.current().incomplete == IN_DOUBT
        proxy.resume()
        proxy.heal()
        with antipode.scope():
            assert len(await shim.write("k", b"third")) == 1


async def test_a_cancelled_write_is_in_doubt(bench: Bench) -> None:
    """Who cancels a publication on its way does not know what became of it."""
    proxy = bench.proxy()
    async with shim_of(bench, via=proxy) as shim:
        await shim.write("k", b"first")
        with antipode.scope():
            writing = await held(proxy, shim)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert antipode.current().incomplete == IN_DOUBT
        proxy.resume()


async def test_what_comes_to_a_receive_that_is_cancelled_goes_back(bench: Bench) -> None:
    """The broker has handed it out by then: nobody would ever acknowledge it."""
    proxy = bench.proxy()
    async with shim_of(bench, via=proxy) as shim:
        assert await shim.read() == (None, Lineage())
        await shim.write("k", b"v")
        before = proxy.traffic().request_bytes
        proxy.set_lag(200)

        async def receive() -> None:
            async with shim.receive(timeout=TIMEOUT_S):
                pytest.fail("a task that is cancelled goes on")

        receiving = asyncio.create_task(receive())
        await asyncio.to_thread(
            wait_until,
            lambda: proxy.traffic().request_bytes > before,
            what="the question",
            timeout_s=TIMEOUT_S,
        )
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        proxy.set_lag(0)
        async with shim.receive(timeout=TIMEOUT_S) as delivery:
            assert delivery is not None
            assert delivery.value == b"v"


async def held(proxy: LagProxy, shim: rabbitmq.RabbitMQAsyncShim) -> asyncio.Task[Lineage]:
    """A write that has been sent, and whose confirm is held back."""
    before = proxy.traffic().request_bytes
    proxy.pause()
    writing = asyncio.create_task(shim.write("k", b"second"))

    def sent() -> bool:
        return proxy.traffic().request_bytes > before

    await asyncio.to_thread(wait_until, sent, what="the write", timeout_s=TIMEOUT_S)
    return writing


async def test_receipts_are_awaited(bench: Bench) -> None:
    """With receipts a publication is visible once the reader's broker routed it."""
    async with shim_of(bench, receipts=True) as shim:
        with antipode.scope():
            await shim.write("k", b"v")
            result = await shim.wait_async(timeout=TIMEOUT_S)
        assert [outcome.status for outcome in result.outcomes] == [Status.VISIBLE]


async def test_no_broker_is_unreachable() -> None:
    """Nothing was sent, so nothing is in doubt."""
    async with rabbitmq.shim_async(NEWS, "amqp://guest:guest@127.0.0.1:1/", exchange="x") as shim:
        with antipode.scope():
            with pytest.raises(Unreachable):
                await shim.write("k", b"v")
            assert antipode.current().empty


def test_it_takes_a_url() -> None:
    """Parameters of pika mean nothing to aio-pika: the error says what to pass."""
    with pytest.raises(ConfigurationError, match="URL"):
        rabbitmq.shim_async(NEWS, 5672)  # type: ignore[arg-type]
