"""aio-pika, beside the client whose times the benchmarks measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims import rabbitmq
from benchmarks.costs.overhead._brokers import DATASTORE, VALUE
from tests.budgets._loop import OnLoop

if TYPE_CHECKING:
    from benchmarks.costs.overhead._clients import Server


class AioPika(OnLoop):
    """aio-pika: a publication with its confirm, and ``Queue.get`` of a message."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        super().__init__()
        self._instrumented = instrumented
        self.run(self._connect(server))
        if instrumented:
            rabbitmq.instrument_channel(self._channel, datastore=DATASTORE)

    async def _connect(self, server: Server) -> None:
        import aio_pika

        account = f"{server.user or 'guest'}:{server.password or 'guest'}"
        self._connection: Any = await aio_pika.connect(
            f"amqp://{account}@{server.address}/?heartbeat=0"
        )
        self._channel: Any = await self._connection.channel()
        self._queue: Any = await self._channel.declare_queue(exclusive=True)

    def publish(self, number: int) -> None:
        del number
        import aio_pika

        message = aio_pika.Message(VALUE)
        self.run(self._channel.default_exchange.publish(message, self._queue.name))

    def receive(self, number: int) -> None:
        del number
        message = self.run(self._queue.get(no_ack=True))
        if self._instrumented:
            with rabbitmq.message(message):
                pass

    def close(self) -> None:
        self.run(self._connection.close())
        self.end()
