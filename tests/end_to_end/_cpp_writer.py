"""Post-notification with a writer in C++ and a reader in Python: what both tiers run."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pika
import pymongo

import antipode
from antipode_shims import mongodb, rabbitmq
from tests.agent.client import AgentProcess, RemoteAntipode, RemoteShim
from tests.conformance._agents import command
from tests.integration.rabbitmq._bench import Region, remove

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology, RabbitMQTopology

TIMEOUT_S = 20.0
DATABASE = "app"
COLLECTION = "posts"  # The agent's.


class CppWriter:
    """Stores a post at MongoDB's primary, and announces it at the broker in ``us``."""

    def __init__(
        self, posts: MongoDBTopology, news: RabbitMQTopology, exchange: str, stack: ExitStack
    ) -> None:
        self._remote = RemoteAntipode(stack.enter_context(AgentProcess(command("cpp"))))
        primary = {"host": posts.primary.host, "port": posts.primary.port, "database": DATABASE}
        broker = {"url": news.url(), "exchange": exchange, "queue": exchange}
        shims = (("mongodb", "posts", primary), ("rabbitmq", "news", broker))
        self._posts, self._news = (
            stack.enter_context(closing(RemoteShim(self._remote, *each))) for each in shims
        )

    def post(self, key: str) -> None:
        """One request."""
        with self._remote.scope():
            self._posts.write(key, b"hello")
            self._news.write("post", key.encode())


class Reader:
    """Is told in ``eu``, and reads at MongoDB's secondary."""

    def __init__(
        self, posts: MongoDBTopology, news: RabbitMQTopology, exchange: str, stack: ExitStack
    ) -> None:
        replica = posts.replica
        client: Any = pymongo.MongoClient(replica.host, replica.port, directConnection=True)
        stack.callback(client.close)
        self._plain = client[DATABASE][COLLECTION]
        shim = mongodb.shim(
            "posts", client, database=DATABASE, collection=COLLECTION, reads_from="replica"
        )
        self._posts = stack.enter_context(closing(shim))
        url = news.url(news.address("eu"))
        self._news = stack.enter_context(closing(rabbitmq.shim("news", url, queue=exchange)))

    def told(self, posts: MongoDBTopology) -> tuple[bool, bool]:
        """Handle one notification: whether a read before the barrier, and one after it, miss."""
        with self._news.receive(timeout=TIMEOUT_S) as delivery:
            assert delivery is not None
            key = delivery.value.decode()
            early = self._plain.find_one({"_id": key}) is None
            posts.resume()
            antipode.barrier(timeout=TIMEOUT_S, only="posts")
            value, _ = self._posts.read(key)
            return early, value != b"hello"


def violations(posts: MongoDBTopology, news: RabbitMQTopology, rounds: int) -> tuple[int, int]:
    """In how many of *rounds* the post is missing without the barrier, and with it.

    What replicates the post is held until the reader has been told, and looked without a barrier.
    """
    exchange = f"geo.{uuid.uuid4().hex}"
    regions: tuple[Region, ...] = ("us", "eu")
    with ExitStack() as stack:
        for region in regions:
            _declare(news.url(news.address(region)), exchange)
            stack.callback(remove, news, region, exchange)
        news.wait_federated(exchange)
        writer = CppWriter(posts, news, exchange, stack)
        reader = Reader(posts, news, exchange, stack)
        without = after = 0
        for number in range(rounds):
            posts.pause()
            writer.post(f"{exchange} {number}")
            early, late = reader.told(posts)
            without += early
            after += late
    return without, after


def _declare(url: str, exchange: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare(exchange, "topic", durable=True)
        channel.queue_declare(exchange, durable=True)
        channel.queue_bind(exchange, exchange, "#")
