"""No reply, error or message differs from the plain client's, but for headers."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest
from pika import BasicProperties

import antipode
from antipode_shims import rabbitmq
from antipode_testing import wait_until
from tests.integration._played import MODES, played
from tests.integration.rabbitmq._bench import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.rabbitmq._bench import Bench

pytestmark = pytest.mark.store("rabbitmq")
QUEUE = "played"
GIVEN = BasicProperties(content_type="text/plain", correlation_id="7", headers={"own": "header"})


def rejected(channel: Any) -> None:
    """Give back what was received: there is no reply, and a queue counts before it takes it."""
    channel.basic_nack(0, multiple=True)
    wait_until(
        lambda: channel.queue_declare(QUEUE).method.message_count,
        what="the message to be back",
        timeout_s=10,
    )


#: What an application may do with a channel, what closes it last.
CALLS: dict[str, Callable[[Any], Any]] = {
    "declare": lambda channel: channel.queue_declare(QUEUE).method.message_count,
    "publish": lambda channel: channel.basic_publish("", QUEUE, b"body", GIVEN),
    "bare": lambda channel: channel.basic_publish("", QUEUE, b"bare"),
    "unroutable": lambda channel: channel.basic_publish("", "absent", b"", mandatory=True),
    "get": lambda channel: channel.basic_get(QUEUE),
    "ack": lambda channel: channel.basic_ack(0, multiple=True),
    "reject": rejected,
    "select": lambda channel: channel.tx_select(),
    "commit": lambda channel: channel.tx_commit(),
    "rollback": lambda channel: channel.tx_rollback(),
    "no exchange": lambda channel: channel.basic_publish("absent", QUEUE, b""),
    "empty": lambda channel: channel.queue_purge(QUEUE).method.message_count,
}
CONFIRMED = (
    *("declare", "publish", "get", "ack", "bare", "get", "reject", "get", "ack", "get"),
    *("publish", "unroutable", "declare", "get", "ack", "no exchange", "declare"),
)
TRANSACTED = (
    *("declare", "select", "publish", "rollback", "get", "publish", "commit", "get", "ack"),
    *("commit", "bare", "commit", "empty", "get", "no exchange", "commit"),
)


class OneChannel:
    """pika's blocking channel."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.heard: list[str] = []

    def execute(self, statement: str) -> Any:
        found = CALLS[statement](self.channel)
        if statement != "get":
            return repr(found)
        method, properties, body = found
        headers = dict(getattr(properties, "headers", None) or {})
        own = {name: headers[name] for name in headers if name == "own"}
        again = getattr(method, "redelivered", None)
        return body, again, own, getattr(properties, "correlation_id", None)

    def state(self) -> Any:
        return self.channel.is_open

    def close(self) -> None:
        self.channel.close()


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_channel_is_the_plain_one(
    bench: Bench, mode: Any, *, confirms: bool, scoped: bool
) -> None:
    """Every step ends as it does without the library, and leaves as many messages."""
    antipode.configure(mode=mode)
    scripts = []
    for instrumented in (False, True):
        observer = bench.channel()
        observer.queue_delete(QUEUE)

        def left(observer: Any = observer) -> Any:
            return observer.queue_declare(QUEUE).method.message_count

        channel = bench.channel() if confirms else bench.connection().channel()
        if instrumented:
            rabbitmq.instrument_channel(channel, datastore="news")
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            steps = CONFIRMED if confirms else TRANSACTED
            scripts.append(played(OneChannel(channel), steps, left))
        observer.queue_delete(QUEUE)
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain


#: The same with aio-pika, which makes what it needs to publish and get of its own.
AIO: dict[str, Callable[[Any], Any]] = {
    "declare": lambda one: one.declared(),
    "publish": lambda one: one.published(QUEUE, b"body", **AIO_GIVEN),
    "bare": lambda one: one.published(QUEUE, b"bare"),
    "unroutable": lambda one: one.published("absent", b"", mandatory=True),
    "get": lambda one: one.got(),
    "ack": lambda one: one.settled("ack"),
    "reject": lambda one: one.rejected(),
    "empty": lambda one: one.emptied(),
    "no exchange": lambda one: one.published(QUEUE, b"", exchange="absent"),
}
AIO_GIVEN = {"content_type": "text/plain", "correlation_id": "7", "headers": {"own": "header"}}
AIO_STEPS = (
    *("declare", "publish", "get", "ack", "bare", "get", "reject", "declare", "get", "ack"),
    *("get", "publish", "unroutable", "declare", "get", "ack", "empty", "no exchange", "declare"),
)
COUNTED = ("declare", "no exchange", "empty")


class OneAioChannel:
    """aio-pika's channel, as an application uses it."""

    def __init__(self, bench: Bench, *, confirms: bool, instrumented: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.heard: list[str] = []
        self.message: Any = None
        self.loop.run_until_complete(self.open(bench.topology.url(), confirms=confirms))
        if instrumented:
            rabbitmq.instrument_channel(self.channel, datastore="news")

    def execute(self, statement: str) -> Any:
        try:
            return self.loop.run_until_complete(AIO[statement](self))
        except Exception as error:  # noqa: BLE001 - its text may have the channel's address
            return type(error), re.sub("0x[0-9a-f]+", "", str(error))

    async def open(self, url: str, *, confirms: bool) -> None:
        """Connect."""
        self.connection = await aio_pika.connect(url)
        self.channel: Any = await self.connection.channel(publisher_confirms=confirms)

    async def declared(self) -> Any:
        """How many messages the queue has."""
        queue = await self.channel.declare_queue(QUEUE)
        return queue.declaration_result.message_count

    async def emptied(self) -> Any:
        """How many it had."""
        queue = await self.channel.get_queue(QUEUE, ensure=False)
        return (await queue.purge()).message_count

    async def published(self, to: str, body: bytes, *, exchange: str = "", **given: Any) -> Any:
        """What publishing returns, without what it shows of the message."""
        mandatory = given.pop("mandatory", False)
        message = aio_pika.Message(body, **given)
        place = self.channel.default_exchange
        if exchange:
            place = await self.channel.get_exchange(exchange, ensure=False)
        found = await place.publish(message, to, mandatory=mandatory, timeout=TIMEOUT_S)
        return type(found), message.headers

    async def got(self) -> Any:
        """A message, as the application sees it."""
        queue = await self.channel.get_queue(QUEUE, ensure=False)
        self.message = found = await queue.get(fail=False, no_ack=False)
        if found is None:
            return None
        own = {name: found.headers[name] for name in found.headers if name == "own"}
        return found.body, found.redelivered, own, found.correlation_id, found.content_type

    async def settled(self, how: str) -> Any:
        """The message is acknowledged, or given back."""
        return await getattr(self.message, how)()

    async def rejected(self) -> None:
        """It is given back; there is no reply."""
        await self.settled("nack")

        async def back() -> None:
            while not await self.declared():
                pass

        await asyncio.wait_for(back(), TIMEOUT_S)

    def state(self) -> Any:
        return self.channel.is_closed

    def close(self) -> None:
        self.loop.run_until_complete(self.connection.close())
        self.loop.close()


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize(("mode", "scoped"), MODES)
def test_a_channel_of_aio_pika_is_the_plain_one(
    bench: Bench, mode: Any, *, confirms: bool, scoped: bool
) -> None:
    """The same, with confirms and without."""
    antipode.configure(mode=mode)
    scripts = []
    for instrumented in (False, True):
        observer = bench.channel()
        observer.queue_delete(QUEUE)
        with ExitStack() as stack:
            if scoped:
                stack.enter_context(antipode.scope())
            observer.queue_declare(QUEUE)
            one = OneAioChannel(bench, confirms=confirms, instrumented=instrumented)
            session = stack.enter_context(closing(one))
            # Without confirms nothing says when a broker has counted, or refused, a message.
            steps = AIO_STEPS if confirms else [each for each in AIO_STEPS if each not in COUNTED]
            scripts.append(played(session, steps, lambda: None))
        observer.queue_delete(QUEUE)
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain
