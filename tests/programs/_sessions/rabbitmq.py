"""Sessions of pika over two federated brokers: confirms, refusals, lost connections."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pika
import pika.exceptions

from antipode_shims import rabbitmq
from antipode_testing import LagProxy, RabbitMQTopology, TopologyTimeout, wait_until

from .bench import DATASTORE, OFTEN, Bench, Fault, step
from .connected import AsCalls

if TYPE_CHECKING:
    import random

    from typing_extensions import Self

#: Of everybody's exchange, and of each region's queue that gets all of it.
EXCHANGE = "geo.session"
#: A queue that has room for one message, and its key: the other queue gets what this one refuses.
FULL = "full"
#: One of the region that listens, whose messages the process handles.
HANDLED = "handled"
#: How long the session's client waits for the broker.
ANSWERS_S = 10.0
#: How long a message is on its way to the queue at most.
ROUTED_S = 0.3
#: What fills the frame of a message's headers.
FRAME = 131_072


class Pika(AsCalls, Bench):
    """A channel that publishes in one region; the other one listens.

    Attributes:
        mode: how the session's channel publishes: ``confirm``, ``plain`` or ``tx``.
    """

    refusals: ClassVar[tuple[type[BaseException], ...]] = (pika.exceptions.AMQPError, OSError)

    def __init__(self) -> None:
        super().__init__()
        self.topology = RabbitMQTopology(lag_ms=0)
        self._committed: list[bytes] = []
        self._shown: list[bytes] = []

    def __enter__(self) -> Self:
        self.topology.start()
        self._stack = contextlib.ExitStack()
        self._plain = [self._listening(self.topology.primary)]
        self._plain += [self._listening(self.topology.replica)]
        self._plain[0].queue_declare(
            FULL, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
        )
        self._plain[0].queue_bind(FULL, EXCHANGE, FULL)
        self._plain[1].queue_declare(HANDLED)
        self._plain[1].queue_bind(HANDLED, EXCHANGE, "#")
        url = self.topology.url(self.topology.replica)
        shim = rabbitmq.shim(DATASTORE, url, exchange=EXCHANGE, receipts=True, reads_from="replica")
        self._stack.enter_context(shim)
        self.topology.wait_federated(EXCHANGE)
        self._proxy = self._stack.enter_context(LagProxy(self.topology.primary))
        return self

    def _listening(self, server: Any) -> Any:
        parameters = pika.URLParameters(self.topology.url(server))
        parameters.heartbeat = 0  # Nobody serves it while the session waits.
        connection = self._stack.enter_context(pika.BlockingConnection(parameters))
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, "topic", durable=True)
        channel.queue_declare(EXCHANGE)
        channel.queue_bind(EXCHANGE, EXCHANGE, "#")
        return channel

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
        self.topology.close()

    def open(self, choose: random.Random) -> None:
        """Connect by a proxy, and choose how the channel publishes."""
        self.mode = choose.choice(("confirm", "confirm", "confirm", "plain", "tx"))
        self._connection: Any = None
        self._connect()

    def _connect(self) -> None:
        parameters = pika.URLParameters(self.topology.url(self._proxy.address))
        parameters.socket_timeout = parameters.stack_timeout = ANSWERS_S
        self._connection = pika.BlockingConnection(parameters)
        self._open_channel()

    def _open_channel(self) -> None:
        self.channel = rabbitmq.instrument_channel(
            self._connection.channel(), datastore=DATASTORE, receipts=True
        )
        if self.mode == "confirm":
            self.channel.confirm_delivery()
        elif self.mode == "tx":
            self.channel.tx_select()

    def settle(self) -> None:
        """Roll back, and open again what was closed."""
        if self.mode == "tx" and self.channel.is_open:
            with contextlib.suppress(*self.refusals):
                self.channel.tx_rollback()
        self.whole()

    def whole(self) -> Any:
        """The session's channel; another where it is gone."""
        if self._connection.is_closed:
            self.trace.append("-- reconnect")
            self._connect()
        elif self.channel.is_closed:
            self.trace.append("-- another channel")
            self._open_channel()
        return self.channel

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(*self.refusals):
            self._connection.close()

    def committed(self) -> object:
        """The messages that the region of the session has routed; their order means nothing."""
        if self._connection.is_open and self.channel.is_open:
            with contextlib.suppress(*self.refusals):  # What came before is routed by then.
                self._connection.channel().close()
                self.channel.basic_qos(0)
        return self._drained(self._plain[0], self._committed)

    def shown(self) -> object:
        """Those of the other region."""
        return self._drained(self._plain[1], self._shown)

    def _drained(self, channel: Any, found: list[bytes]) -> object:
        while (got := channel.basic_get(EXCHANGE, auto_ack=True))[0] is not None:
            found.append(got[2])
        return sorted(found)

    def hold(self) -> None:
        """Hold the federation."""
        self.topology.pause()

    def release(self) -> None:
        """Let it go on; who waits compares what is shown, for links report seconds late."""
        self.topology.resume()

    def publish(self, key: str = "k", *, exchange: str = EXCHANGE, **options: Any) -> None:
        """A message that there was not."""
        channel, body = self.whole(), str(self.number()).encode()
        self.trace.append(f"basic_publish {exchange!r} {key!r} {body!r} {options or ''}")
        channel.basic_publish(exchange, key, body, **options)

    @step(OFTEN)
    async def message(self, choose: random.Random) -> None:
        """One message, perhaps mandatory or persistent."""
        properties = pika.BasicProperties(delivery_mode=choose.choice((1, 2)))
        self.publish(mandatory=choose.random() < 0.3, properties=properties)

    @step(4)
    async def messages(self, choose: random.Random) -> None:
        """Several, with several keys."""
        for _ in range(choose.randrange(2, 5)):
            self.publish(choose.choice(("k", "other.key", "")))

    @step(OFTEN)
    async def commit(self, choose: random.Random) -> None:
        """Commit what was published in a transaction; another message where there is none."""
        await self._end("tx_commit")

    @step(4)
    async def rollback(self, choose: random.Random) -> None:
        """Roll it back."""
        await self._end("tx_rollback")

    async def _end(self, how: str) -> None:
        channel = self.whole()
        if self.mode != "tx":
            self.publish()
        else:
            self.trace.append(how)
            getattr(channel, how)()

    @step(4)
    async def refused(self, choose: random.Random) -> None:
        """One queue has no room and refuses it, another takes it: the broker nacks."""
        self.publish(FULL)

    @step(2)
    async def room(self, choose: random.Random) -> None:
        """The queue has room again."""
        self.trace.append("-- the full queue is emptied")
        self._plain[0].queue_purge(FULL)

    @step(2)
    async def to_a_queue(self, choose: random.Random) -> None:
        """By the default exchange, which nobody in the other region hears."""
        self.publish(FULL, exchange="")

    @step(2)
    async def unroutable(self, choose: random.Random) -> None:
        """By the default exchange, to a queue that there is not, and is returned."""
        self.publish("no such queue", exchange="", mandatory=True)

    @step()
    async def no_exchange(self, choose: random.Random) -> None:
        """To an exchange that there is not: the broker closes the channel."""
        self.publish(exchange="no such exchange")

    @step()
    async def bad_property(self, choose: random.Random) -> None:
        """A property that cannot be encoded: nothing is sent."""
        headers = {"mine": object()}
        with contextlib.suppress(pika.exceptions.UnsupportedAMQPFieldException):
            self.publish(properties=pika.BasicProperties(headers=headers))

    @step()
    async def full_frame(self, choose: random.Random) -> None:
        """Headers that leave no room for ours."""
        headers = {"mine": "x" * (FRAME - choose.choice((80, 100, 300)))}
        self.publish(properties=pika.BasicProperties(headers=headers))

    @step(2)
    async def another_channel(self, choose: random.Random) -> None:
        """The channel is closed, and the session goes on with another one."""
        self.trace.append("close()")
        self.whole().close()

    @step()
    async def lost_answer(self, choose: random.Random) -> None:
        """The connection is lost after the broker took the message, and before its confirm came."""
        self.whole()
        self.committed()
        self._proxy.set_lag(ANSWERS_S * 1000)
        cut = threading.Thread(target=self._cut_after, args=(len(self._committed),))
        cut.start()
        try:
            self.trace.append("-- the connection is lost meanwhile")
            self.publish()
            self._connection.process_data_events(ANSWERS_S)  # Without confirms nothing waits.
        finally:
            cut.join()
            self._proxy.heal()
            self._proxy.set_lag(0)

    def _cut_after(self, routed: int) -> None:
        def is_routed() -> bool:
            self._drained(self._plain[0], self._committed)
            return len(self._committed) > routed

        # In a transaction it is not before its commit, nor on a channel that the broker has closed.
        with contextlib.suppress(TopologyTimeout):
            wait_until(is_routed, timeout_s=ROUTED_S, what="the message to be routed")
        self._proxy.cut()

    @step()
    async def closed_by_the_broker(self, choose: random.Random) -> None:
        """An administrator closes the session's connection: the next message goes nowhere."""
        self.trace.append("-- closed")
        self.whole()
        self._proxy.cut()
        self._proxy.heal()

    @step(2)
    async def get(self, choose: random.Random) -> None:
        """A message of the full queue, and one where receipts listen, in a scope of its own.

        A process handles messages in the region where its receipts listen: the guide says so.
        """
        channel = self.whole()
        self.trace.append("basic_get")
        method = channel.basic_get(FULL)[0]
        if method is not None:
            channel.basic_ack(method.delivery_tag)
        got = self._plain[1].basic_get(HANDLED, auto_ack=True)
        if got[0] is None:
            return
        with rabbitmq.message(got) as held:
            if held.lineage is None:
                raise Fault("broken", "a message without a scope")
