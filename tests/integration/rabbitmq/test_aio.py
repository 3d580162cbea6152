"""aio-pika through an instrumented channel, on a real broker."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import aio_pika
import aiormq
import pytest

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._clients.channel_state import AROUND_PROPERTIES
from antipode_testing import wait_until

from ._bench import (
    CAUSES,
    IN_DOUBT,
    NEWS,
    POST,
    TIMEOUT_S,
    Bench,
    counted,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from antipode_testing import LagProxy, RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")
#: The bytes of a frame, by default.
FRAME = 131_072


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Bench]:
    with contextlib.closing(Bench(antipode_rabbitmq)) as one:
        one.declare(one.channel())
        yield one


@contextlib.asynccontextmanager
async def connected(
    bench: Bench, *, via: LagProxy | None = None, connect: Any = aio_pika.connect, **channel: Any
) -> AsyncIterator[Any]:
    """An instrumented channel of a connection of its own."""
    url = bench.topology.url()
    if via is not None:
        url = url.replace(str(bench.topology.address("us")), str(via.address))
    connection = await connect(url, timeout=TIMEOUT_S)
    try:
        opened = await connection.channel(**channel)
        yield rabbitmq.instrument_channel(opened, datastore=NEWS)
    finally:
        await connection.close()


async def soon(condition: Callable[[], bool], *, what: str) -> None:
    """Return when a condition holds, while the loop runs."""

    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - of things that announce themselves to nobody
            await asyncio.sleep(0.005)

    try:
        await asyncio.wait_for(poll(), TIMEOUT_S)
    except asyncio.TimeoutError:
        pytest.fail(f"waited in vain for {what}")


async def test_a_confirmed_publication_enters_and_carries_its_causes(bench: Bench) -> None:
    """Exchanges that existed before are covered; the application's message is not touched."""
    async with connected(bench) as channel:
        exchange = await channel.get_exchange(bench.name)
        other = await channel.declare_exchange(f"{bench.name}.two", "fanout", auto_delete=True)
        await (await channel.get_queue(bench.name)).bind(other)
        headers = {"mine": 1}
        message = aio_pika.Message(b"one", headers=headers)
        with antipode.scope(CAUSES):
            await exchange.publish(message, "k")
            first = antipode.current()
            await other.publish(message, "k")
            both = antipode.current()
        assert sorted(w.version for w in both.only(NEWS)) == [1, 1]
        assert message.headers == headers == {"mine": 1}
        got = [bench.get(bench.channel()) for _ in range(2)]
    for each, expected in zip(got, [first, both], strict=True):
        with rabbitmq.message(each) as held:
            assert held.lineage == expected
        assert each[1].headers["mine"] == 1


@pytest.mark.parametrize(("spare", "named"), [(300, True), (60, False)])
async def test_headers_that_fill_a_frame(bench: Bench, *, spare: int, named: bool) -> None:
    """The message is sent as without the library: its lineage is cut, or it has none at all."""
    many = Lineage([WriteId("posts", f"log-{number}", 7) for number in range(20)])
    async with connected(bench) as channel:
        exchange = await channel.get_exchange(bench.name)
        used = len(aio_pika.Message(b"", headers={"mine": ""}).properties.marshal())
        headers = {"mine": "x" * (FRAME - used - AROUND_PROPERTIES - spare)}
        with antipode.scope(many):
            await exchange.publish(aio_pika.Message(b"", headers=headers), "k")
            sent = antipode.current()
        await exchange.publish(aio_pika.Message(b"", headers=headers), "k")
    assert bool(sent.only(NEWS)) is named
    assert ((NEWS, "unsampled") in {tuple(mark) for mark in sent.incomplete}) is not named
    _, properties, _ = bench.get(bench.channel())
    assert ("baggage" in properties.headers) is named
    with rabbitmq.message(properties) as held:
        assert bool(held.lineage.only("posts")) is named


async def test_consumers_run_in_the_scope_of_their_message(bench: Bench) -> None:
    """Concurrent callbacks see their own message's lineage, awaits notwithstanding."""
    seen: dict[bytes, Lineage] = {}

    async def handle(msg: Any) -> None:
        await asyncio.sleep(0)
        antipode.append(WriteId("mine", msg.body.decode(), 1))
        await msg.ack()
        seen[msg.body] = antipode.current()

    async with connected(bench) as channel:
        queue = await channel.get_queue(bench.name)
        exchange = await channel.get_exchange(bench.name)
        for number in range(5):
            with antipode.scope(Lineage([WriteId("posts", f"p{number}", 1, 498_669)])):
                await exchange.publish(aio_pika.Message(b"%d" % number), "k")
        tag = await queue.consume(handle)
        await soon(lambda: len(seen) == 5, what="deliveries")
        await queue.cancel(tag)
    for number in range(5):
        lineage = seen[b"%d" % number]
        assert [w.key for w in lineage.only("posts")] == [f"p{number}"]
        assert [w.key for w in lineage.only("mine")] == [f"{number}"]
        assert [w.version for w in lineage.only(NEWS)] == [number + 1]
    assert antipode.current() == Lineage()


async def test_messages_of_get_and_of_iterators(bench: Bench) -> None:
    """``Queue.get`` and iterators hand out messages; ``message`` gives them a scope."""
    async with connected(bench) as channel:
        exchange = await channel.get_exchange(bench.name)
        with antipode.scope(CAUSES):
            await exchange.publish(aio_pika.Message(b"1"), "k")
            await exchange.publish(aio_pika.Message(b"2"), "k")
        queue = await channel.get_queue(bench.name)
        msg = await queue.get(timeout=TIMEOUT_S)
        with rabbitmq.message(msg):
            assert POST in antipode.current()
            await msg.ack()
        async with queue.iterator() as messages:
            async for msg in messages:
                assert antipode.current() == Lineage()
                with rabbitmq.message(msg):
                    assert POST in antipode.current()
                    await msg.ack()
                break


async def test_concurrent_requests_on_one_channel_do_not_mix(bench: Bench) -> None:
    """Twenty requests gather their publications on one channel: each gains its own."""
    async with connected(bench) as channel:
        exchange = await channel.get_exchange(bench.name)

        async def request(number: int) -> Lineage:
            with antipode.scope(Lineage([WriteId("posts", f"p{number}", 1, 498_669)])):
                for _ in range(3):
                    await exchange.publish(aio_pika.Message(b"%d" % number), "k")
                return antipode.current()

        lineages = await asyncio.gather(*(request(number) for number in range(20)))
    versions = sorted(w.version for each in lineages for w in each.only(NEWS))
    assert len(set(versions)) == 20
    assert versions[-1] == 60
    assert all(len(each.only("posts")) == 1 for each in lineages)
    channel_us = bench.channel()
    for _ in range(60):
        got = bench.get(channel_us)
        with rabbitmq.message(got) as held:
            assert [w.key for w in held.lineage.only("posts")] == [f"p{got[2].decode()}"]


async def test_confirmed_publishing_costs_no_further_round_trip(bench: Bench) -> None:
    """Ten publications exchange as often with the broker with the shim as without it."""
    proxy = bench.proxy()
    async with connected(bench, via=proxy) as channel:
        exchange = await channel.get_exchange(bench.name)

        async def exchanges() -> int:
            before = proxy.traffic()
            with antipode.scope(CAUSES):
                for _ in range(10):
                    await exchange.publish(aio_pika.Message(b"body"), "k")
            return (proxy.traffic() - before).exchanges

        with_shim = await exchanges()
        rabbitmq.uninstrument_channel(channel)
        assert await exchanges() == with_shim == 10


@pytest.mark.parametrize("raises", [True, False])
async def test_a_returned_publication_mints_nothing(bench: Bench, *, raises: bool) -> None:
    """Unroutable, by exception or by return value: no entry, no doubt."""
    async with connected(bench, on_return_raises=raises) as channel:
        with antipode.scope():
            publishing = channel.default_exchange.publish(aio_pika.Message(b""), "no-such-queue")
            if raises:
                with pytest.raises(aio_pika.exceptions.PublishError):
                    await publishing
            else:
                await publishing
            assert antipode.current() == Lineage()


async def test_a_nacked_publication_is_in_doubt(bench: Bench) -> None:
    """A full queue that rejects nacks it, another may have it; a new incarnation follows."""
    full = f"{bench.name}.full"
    async with connected(bench) as channel:
        await channel.declare_queue(
            full, auto_delete=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
        )
        exchange = await channel.get_exchange(bench.name)
        queue = await channel.get_queue(full)
        await queue.bind(bench.name, "#")
        with antipode.scope():
            await exchange.publish(aio_pika.Message(b"fits"), "k")
            before = [*antipode.current()]
            with pytest.raises(aio_pika.exceptions.DeliveryError):
                await exchange.publish(aio_pika.Message(b"too many"), "k")
            assert [*antipode.current()] == before
            assert antipode.current().incomplete == IN_DOUBT
            await queue.unbind(bench.name, "#")
            await exchange.publish(aio_pika.Message(b"after"), "k")
            assert len(antipode.current()) == 2
        await queue.delete(if_empty=False, if_unused=False)


async def test_a_publication_that_is_not_heard_enters_nothing(bench: Bench) -> None:
    """One to the default exchange, of which no tap hears: it carries the lineage all the same."""
    async with connected(bench) as channel:
        with antipode.scope(CAUSES):
            await channel.default_exchange.publish(aio_pika.Message(b""), bench.name)
            assert antipode.current() == CAUSES
        with rabbitmq.message(bench.get(bench.channel())) as held:
            assert held.lineage == CAUSES


async def test_without_confirms_it_is_counted(bench: Bench) -> None:
    """``publisher_confirms=False``: the causes travel, nothing enters."""
    before = counted("unconfirmed_publish")
    async with connected(bench, publisher_confirms=False) as channel:
        exchange = await channel.get_exchange(bench.name)
        with antipode.scope(CAUSES):
            await exchange.publish(aio_pika.Message(b""), "k")
            assert antipode.current() == CAUSES
        with rabbitmq.message(bench.get(bench.channel())) as held:
            assert held.lineage == CAUSES
    assert counted("unconfirmed_publish") == before + 1


@pytest.mark.parametrize("headers", [None, {}, {"mine": 1}], ids=str)
async def test_headers_are_those_of_a_plain_channel(
    bench: Bench, headers: dict[str, Any] | None
) -> None:
    """A consumer gets what it gets of one, with aio-pika's publications and with aiormq's."""
    async with connected(bench, publisher_confirms=False) as channel:
        exchange = await channel.get_exchange(bench.name)
        for _ in ("instrumented", "plain"):
            await exchange.publish(aio_pika.Message(b"", headers=headers), "k")
            underlay = await channel.get_underlay_channel()
            for properties in (None, aiormq.spec.Basic.Properties(headers=headers)):
                await underlay.basic_publish(b"", exchange=bench.name, properties=properties)
            rabbitmq.uninstrument_channel(channel)
    reader = bench.channel()
    found = [bench.get(reader)[1].headers for _ in range(6)]
    assert found[:3] == found[3:]


@pytest.mark.parametrize("how", ["cancelled", "timed out", "cut"])
async def test_a_publication_given_up_before_its_confirm_is_in_doubt(
    bench: Bench, how: str
) -> None:
    """Cancelled, timed out, or the connection lost while the broker is silent: in doubt."""
    proxy = bench.proxy()
    async with connected(bench, via=proxy) as channel:
        exchange = await channel.get_exchange(bench.name)
        before = proxy.traffic().request_bytes
        proxy.pause()
        with antipode.scope() as held:
            timeout_s = 0.2 if how == "timed out" else TIMEOUT_S
            publishing = asyncio.ensure_future(
                exchange.publish(aio_pika.Message(b""), "k", timeout=timeout_s)
            )
            await soon(lambda: proxy.traffic().request_bytes > before, what="the request")
            if how == "cancelled":
                publishing.cancel()
            elif how == "cut":
                proxy.cut()
            with pytest.raises(BaseException) as caught:  # noqa: PT011 - each its own
                await publishing
        assert caught.type is not AssertionError
        assert held.lineage == Lineage(incomplete=IN_DOUBT)
        proxy.resume()


async def test_a_robust_channel_opened_anew_has_a_new_incarnation(bench: Bench) -> None:
    """Reconnected, publishing and consuming are covered still, under another key."""
    proxy = bench.proxy()
    seen: list[Lineage] = []

    async def handle(msg: Any) -> None:
        seen.append(antipode.current())
        await msg.ack()

    async with connected(
        bench, via=proxy, connect=aio_pika.connect_robust, publisher_confirms=True
    ) as channel:
        exchange = await channel.get_exchange(bench.name)
        queue = await channel.get_queue(bench.name)
        with antipode.scope():
            await exchange.publish(aio_pika.Message(b"1"), "k")
            (first,) = antipode.current()
        await queue.consume(handle)
        await soon(lambda: len(seen) == 1, what="the first delivery")
        proxy.cut()
        await soon(lambda: not channel.is_initialized or channel.is_closed, what="the cut")
        proxy.heal()
        await asyncio.wait_for(channel.ready(), TIMEOUT_S)
        with antipode.scope(CAUSES):
            await exchange.publish(aio_pika.Message(b"2"), "k")
            (second,) = antipode.current().only(NEWS)
            sent = antipode.current()
        # The first may come twice: its acknowledgement may be lost with the connection.
        await soon(lambda: sent in seen, what="the second delivery")
    assert (second.key != first.key, second.version) == (True, 1)
    assert set(seen) == {Lineage([first]), sent}


async def test_instrumenting_an_exchange_is_instrumenting_its_channel(bench: Bench) -> None:
    """An exchange stands for its channel; twice is once; undone, nothing is left."""
    async with connected(bench) as channel:
        exchange = await channel.get_exchange(bench.name)
        assert rabbitmq.instrument_channel(exchange, datastore=NEWS) is exchange
        with pytest.raises(ConfigurationError, match=NEWS):
            rabbitmq.instrument_channel(exchange, datastore="other")
        with antipode.scope():
            await exchange.publish(aio_pika.Message(b""), "k")
            before = antipode.current()
            rabbitmq.uninstrument_channel(exchange)
            rabbitmq.uninstrument_channel(channel)
            await exchange.publish(aio_pika.Message(b""), "k")
            assert antipode.current() == before
            rabbitmq.instrument_channel(channel, datastore="other")
            await exchange.publish(aio_pika.Message(b""), "k")
            assert antipode.current().datastores == {NEWS, "other"}
    plain = bench.channel()
    found = [bench.get(plain)[1].headers for _ in range(3)]
    assert [bool(headers) for headers in found] == [True, False, True]


async def test_a_transaction_mints_nothing(bench: Bench) -> None:
    """What is published in a transaction may be rolled back: never minted."""
    async with connected(bench, publisher_confirms=False) as channel:
        exchange = await channel.get_exchange(bench.name)
        with antipode.scope():
            async with channel.transaction():
                await exchange.publish(aio_pika.Message(b"committed"), "k")
            assert antipode.current() == Lineage()
    wait_until(
        lambda: bench.get(bench.channel())[2] == b"committed", what="it", timeout_s=TIMEOUT_S
    )
