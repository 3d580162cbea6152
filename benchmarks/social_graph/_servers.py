"""The stores under the social network: two regions, and what delays what passes between them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pika
import redis as native

from antipode_testing import LagProxy, MongoDBTopology, NativeProvider, RabbitMQTopology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, Server

EXCHANGE = "geo.posts"
REGIONS = ("us", "eu")
#: What was acknowledged is on the disk.
_REDIS = {"appendonly": "yes", "appendfsync": "always"}


def queue_of(region: str) -> str:
    """The queue that a region's write-home-timeline consumes."""
    return f"home-timeline-{region}"


@dataclass(frozen=True, slots=True)
class Servers:
    """The stores, by region.

    Attributes:
        mongodb: a replica set; its primary is in us, a secondary in eu.
        rabbitmq: two brokers; that in eu federates from the other.
        redis: a server in each.
        graph: where each reads who follows whom: eu from a replica of the server in us.
    """

    mongodb: MongoDBTopology
    rabbitmq: RabbitMQTopology
    redis: dict[str, Server]
    graph: dict[str, Server]

    def posts(self, region: str) -> Address:
        """The member of MongoDB in a region."""
        return self.mongodb.primary if region == "us" else self.mongodb.replica

    def broker(self, region: str) -> str:
        """The URL of a region's RabbitMQ."""
        return self.rabbitmq.url(self.rabbitmq.primary if region == "us" else self.rabbitmq.replica)


@contextmanager
def servers(post_lag_ms: float, message_lag_ms: float) -> Iterator[Servers]:
    """Start the stores for a run, with nothing in them.

    Args:
        post_lag_ms: by how much MongoDB's secondary is late.
        message_lag_ms: the same of messages from broker to broker, and of who follows whom.

    Raises:
        AntipodeError: a server is missing or does not start.
    """
    with ExitStack() as stack:
        # The primary alone is the majority: what it acknowledges is stored, and waits for no lag.
        mongodb = stack.enter_context(MongoDBTopology(voting=False))
        rabbitmq = stack.enter_context(RabbitMQTopology())
        provider = NativeProvider()
        redis: dict[str, Server] = {}
        for region in REGIONS:
            server = provider.start("redis", region, _REDIS)
            stack.callback(server.close)
            redis[region] = server
        link = stack.enter_context(LagProxy(redis["us"].address, lag_ms=message_lag_ms))
        copies = {**_REDIS, "replicaof": f"{link.address.host} {link.address.port}"}
        copy = provider.start("redis", "us-in-eu", copies)
        stack.callback(copy.close)
        found = Servers(mongodb, rabbitmq, redis, {"us": redis["us"], "eu": copy})
        for region in REGIONS:
            declare(found.broker(region), region)
        rabbitmq.wait_federated(EXCHANGE)
        rabbitmq.set_lag(message_lag_ms)
        mongodb.set_lag(post_lag_ms)
        yield found


def declare(broker: str, region: str) -> None:
    """Make the exchange in a region, and its queue."""
    with pika.BlockingConnection(pika.URLParameters(broker)) as connection:
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, exchange_type="topic", durable=True)
        channel.queue_declare(queue_of(region), durable=True)
        channel.queue_bind(queue_of(region), EXCHANGE, routing_key="#")


def forget_timelines(found: Servers) -> None:
    """Empty all timelines, so that those of a turn are as long as those of the turn before."""
    for region in REGIONS:
        with native.Redis(*found.redis[region].address) as client:
            for key in client.scan_iter("*-timeline:*", count=1000):
                client.delete(key)
