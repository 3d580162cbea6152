"""The servers of a topology as an agent is told of them, made ready for its shims."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pika

from tests.contract import test_mysql
from tests.integration.rabbitmq._bench import Region, remove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import DynamoDBTopology, RabbitMQTopology, S3Topology

#: Where the agent keeps MongoDB's documents.
DATABASE = "app"


@contextmanager
def regions(store: str, topology: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The server to which one writes, and the one far away, made ready for shims."""
    if store == "rabbitmq":
        with _brokers(topology) as found:
            yield found
        return
    if store in ("mysql", "mariadb"):
        test_mysql.prepare(topology)
    if store in ("dynamodb", "s3"):
        yield _apart(topology)
        return
    yield described(store, topology, topology.primary), described(store, topology, topology.replica)


def _apart(topology: DynamoDBTopology | S3Topology) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both regions, each of which knows where the other is."""
    urls = dict(zip(topology.regions, topology.urls, strict=True))
    near, far = topology.regions
    return (
        {"region": near, "url": urls[near], "regions": urls},
        {"region": far, "url": urls[far], "regions": urls},
    )


def described(store: str, topology: Any, address: Any) -> dict[str, Any]:
    """One server."""
    found: dict[str, Any] = {"host": address.host, "port": address.port}
    if store in ("mysql", "mariadb", "postgresql"):
        account = {name: getattr(topology, name) for name in ("user", "password", "database")}
        return {**found, **account}
    return {**found, "database": DATABASE} if store == "mongodb" else found


@contextmanager
def _brokers(topology: RabbitMQTopology) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Both, with an exchange that is federated and a queue of each region."""
    name = f"geo.{uuid.uuid4().hex}"
    places: tuple[Region, Region] = ("us", "eu")
    us, eu = (topology.url(topology.address(place)) for place in places)
    with ExitStack() as stack:
        for place, url in zip(places, (us, eu), strict=True):
            declare(url, name)
            stack.callback(_remove, topology, place, name)
        topology.wait_federated(name)
        yield (
            {"url": us, "exchange": name, "queue": name},
            {"url": eu, "exchange": name, "queue": name},
        )


def _remove(topology: RabbitMQTopology, place: Region, name: str) -> None:
    """What is there of that name; after a fail-over both brokers are built anew."""
    if topology.primary == topology.address("us"):
        remove(topology, place, name)


def declare(url: str, name: str) -> None:
    """An exchange of that name, and a queue that takes all that comes there."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare(name, "topic", durable=True)
        channel.queue_declare(name, durable=True)
        channel.queue_bind(name, name, "#")
