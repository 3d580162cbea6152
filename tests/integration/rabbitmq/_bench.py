"""What the tests of the RabbitMQ shim share: clients of the topology's brokers, and faults."""

from __future__ import annotations

import contextlib
import threading
import uuid
from typing import TYPE_CHECKING, Any, Literal

import pika

from antipode import Lineage, WriteId
from antipode.telemetry import Metric, metrics
from antipode_testing import LagProxy, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import RabbitMQTopology

TIMEOUT_S = 20.0
NEWS = "news"
POST = WriteId("posts", "log", 7, 498_669)
CAUSES = Lineage([POST])
IN_DOUBT = {(NEWS, "in_doubt")}


Region = Literal["us", "eu"]


def remove(topology: RabbitMQTopology, region: Region, name: str) -> None:
    """Delete the exchange and the queue of that name, if they are there."""
    # A broker deletes a federated exchange when its link has ended, which it cannot while held.
    topology.link.set_lag(0)
    topology.link.resume()
    with pika.BlockingConnection(
        pika.URLParameters(topology.url(topology.address(region)))
    ) as connection:
        channel = connection.channel()
        channel.queue_delete(name)
        channel.exchange_delete(name)


class Bench:
    """Connections to a region's broker, direct or through a proxy, and an exchange of one test."""

    def __init__(self, topology: RabbitMQTopology) -> None:
        self.topology = topology
        self.name = f"geo.{uuid.uuid4().hex}"
        self.stack = contextlib.ExitStack()
        self._regions: set[Region] = set()

    def connection(self, region: Region = "us", *, via: LagProxy | None = None) -> Any:
        """A connection; its end is no error when the test already ended it."""
        self._regions.add(region)
        parameters = pika.URLParameters(self.topology.url(self.topology.address(region)))
        parameters.socket_timeout = parameters.stack_timeout = TIMEOUT_S
        if via is not None:
            parameters.host, parameters.port = via.address
        connection = pika.BlockingConnection(parameters)
        self.stack.callback(self._close, connection)
        return connection

    def channel(self, region: Region = "us", *, via: LagProxy | None = None) -> Any:
        """A channel of a connection of its own, in confirm mode."""
        channel = self.connection(region, via=via).channel()
        channel.confirm_delivery()
        return channel

    @staticmethod
    def _close(connection: Any) -> None:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connection.close()

    def proxy(self, region: Region = "us") -> LagProxy:
        """A proxy between clients and a region's broker."""
        return self.stack.enter_context(LagProxy(self.topology.address(region)))

    def declare(
        self, channel: Any, *, kind: str = "fanout", arguments: dict[str, Any] | None = None
    ) -> None:
        """The test's exchange, with a queue of the same name bound to it."""
        channel.exchange_declare(self.name, kind, durable=True)
        channel.queue_declare(self.name, durable=True, arguments=arguments)
        channel.queue_bind(self.name, self.name, "#")

    def get(self, channel: Any, *, auto_ack: bool = True) -> Any:
        """The next message of the test's queue, as pika's triple."""
        found: list[Any] = []

        def came() -> bool:
            found[:] = channel.basic_get(self.name, auto_ack=auto_ack)
            return found[0] is not None

        wait_until(came, what="a message", timeout_s=TIMEOUT_S)
        return tuple(found)

    def close(self) -> None:
        """Close everything, and leave no exchange that goes on being federated."""
        self.stack.close()
        for region in self._regions:
            # A broker that a test killed is gone, and so may be what it declared.
            with contextlib.suppress(pika.exceptions.AMQPError, OSError):
                remove(self.topology, region, self.name)


def counted(name: str) -> int:
    """How often something of the datastore was counted so far."""
    return metrics().get(Metric(name, NEWS), 0)


@contextlib.contextmanager
def once_asked(proxy: LagProxy, act: Callable[[], object]) -> Iterator[None]:
    """Hold every byte of the broker; when the client has sent something, *act*."""
    before = proxy.traffic().request_bytes
    proxy.pause()

    def watch() -> None:
        wait_until(
            lambda: proxy.traffic().request_bytes > before, what="a request", timeout_s=TIMEOUT_S
        )
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        thread.join()
