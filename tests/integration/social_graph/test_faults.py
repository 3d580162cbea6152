"""Services and stores of the social network that are killed, and started again, under load."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pika
import pika.exceptions
import pymongo
import pytest
import redis

from antipode_testing import wait_until
from benchmarks.social_graph._observers import Edge
from benchmarks.social_graph._run import Options, Run
from benchmarks.social_graph._servers import queue_of
from benchmarks.social_graph._workload import Authors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel
    from pika.spec import BasicProperties

    from benchmarks.social_graph._graph import Friendship
    from benchmarks.social_graph._run import Posted
    from benchmarks.social_graph._servers import Servers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.store("mongodb"),
    pytest.mark.store("rabbitmq"),
    pytest.mark.store("redis"),
]

FOR_EVER, RATE = 100_000, 10.0
#: How often a message is tried: `Consumer::kMostAttempts` of `service.h`.
MOST_ATTEMPTS = 20
#: Acknowledged posts after each fault, before the next.
RECOVERED = 5
ARRIVE_S = 300.0
#: What a compose, or a read of a timeline, cannot do without.
CALLED = {
    "compose": (
        *("us unique-id", "us text", "us user-mention", "us url-shorten", "us user", "us media"),
        *("us post-storage", "us user-timeline"),
    ),
    "read": ("eu post-storage",),
}


def _stores(stores: Servers) -> dict[str, Callable[[], None]]:
    """How each store is killed and started again."""
    return {
        **{
            f"Redis in {region}": partial(server.restart, graceful=False)
            for region, server in stores.redis.items()
        },
        "Redis in eu, of the graph": partial(stores.graph["eu"].restart, graceful=False),
        "RabbitMQ in us": lambda: stores.rabbitmq.restart_broker("us", graceful=False),
        "RabbitMQ in eu": lambda: stores.rabbitmq.restart_broker("eu", graceful=False),
        "MongoDB in us": lambda: stores.mongodb.restart_primary(graceful=False),
        "MongoDB in eu": lambda: stores.mongodb._replica(0).restart(graceful=False),
    }


@contextmanager
def _load(running: Run, graph: list[Friendship]) -> Iterator[None]:
    """Posts are composed inside of the block."""
    over = threading.Event()
    thread = threading.Thread(target=running.compose, args=(graph, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _acknowledged(running: Run) -> int:
    return sum(one.post is not None for one in list(running.posted))


def _recovered(running: Run, what: str) -> None:
    """Return once composes are acknowledged again."""
    before = _acknowledged(running)
    wait_until(
        lambda: _acknowledged(running) >= before + RECOVERED,
        what=f"composes after {what} was killed",
        timeout_s=ARRIVE_S,
        interval_s=0.05,
    )


def _missing(stores: Servers, posted: list[Posted]) -> list[tuple[int, int]]:
    """Followers whose home timelines lack a post that was acknowledged, each with the post."""
    wanted = [
        (reader, one.post)
        for one in posted
        if one.post is not None
        for reader in one.compose.readers
    ]
    with redis.Redis(*stores.redis["eu"].address) as client:
        lines = client.pipeline()
        for reader, post in wanted:
            lines.zscore(f"home-timeline:{reader}", str(post))
        scores = lines.execute()
    return [entry for entry, score in zip(wanted, scores, strict=True) if score is None]


def test_faults_lose_no_acknowledged_post(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """Whatever was killed, each acknowledged post is stored once, and in each timeline once."""
    with Run(stores, built, "barrier", Options(FOR_EVER, RATE)) as running:
        with _load(running, graph):
            _recovered(running, "nothing")
            for name in running.services.names:
                running.services.kill(name)
                running.services.start(name)
                _recovered(running, name)
            for name, restart in _stores(stores).items():
                restart()
                _recovered(running, name)
        posted = list(running.posted)
        wait_until(
            lambda: not _missing(stores, posted),
            what="acknowledged posts in every timeline",
            timeout_s=ARRIVE_S,
            interval_s=0.5,
        )
        posts = {one.post for one in posted if one.post is not None}
        client: Any
        with pymongo.MongoClient(*stores.mongodb.replica, directConnection=True) as client:
            stored = client["post"]["post"].count_documents({"_id": {"$in": [*posts]}})
        assert stored == len(posts)
        home = Edge(running.services.edges["eu"])
        for reader in {one.compose.readers[0] for one in posted[:RECOVERED]}:
            _, timeline = home.get(
                "/home-timeline", {"user_id": str(reader), "start": "0", "stop": str(FOR_EVER)}
            )
            named = timeline["named"]
            assert sorted(named) == sorted(each["post_id"] for each in timeline["posts"])
            assert len(set(named)) == len(named)
        home.close()


def test_faults_of_a_service_are_answered(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """A service that is gone gives its caller a status in time, and one that is back serves."""
    authors = Authors("deathstarbench", graph, 1)
    reads = {"user_id": str(graph[0][1]), "start": "0", "stop": "10"}
    with Run(stores, built, "barrier", Options(3, RATE)) as running:
        running.compose(graph)
        running.settle()
        compose, home = (Edge(running.services.edges[each]) for each in ("compose", "eu"))
        ask = {
            "compose": lambda: compose.post("/compose", authors.next().fields()),
            "read": lambda: home.get("/home-timeline", reads),
        }
        for what, names in CALLED.items():
            for name in names:
                running.services.kill(name)
                status, said = ask[what]()
                assert status in {503, 504}, name
                assert said, name
                running.services.start(name)
                wait_until(
                    lambda: ask[what]()[0] == 200,  # noqa: B023 - called at once
                    what=f"an answer after {name} is back",
                    timeout_s=ARRIVE_S,
                    interval_s=0.1,
                )
        compose.close()
        home.close()


def _taken(channel: BlockingChannel, queue: str) -> tuple[BasicProperties, bytes]:
    """The next message of a queue, which leaves it."""
    found: list[Any] = []

    def there() -> bool:
        method, *message = channel.basic_get(queue, auto_ack=True)
        if method is not None:
            found.extend(message)
        return bool(found)

    wait_until(there, what=f"a message in {queue}", timeout_s=ARRIVE_S, interval_s=0.005)
    return found[0], found[1]


def _later(stores: Servers, delay_ms: int) -> str:
    """The queue in which messages wait for so long, once there is one."""
    queue = f"{queue_of('eu')}.later.{delay_ms}"

    def declared() -> bool:
        with pika.BlockingConnection(pika.URLParameters(stores.broker("eu"))) as connection:
            try:
                connection.channel().queue_declare(queue, passive=True)
            except pika.exceptions.ChannelClosedByBroker:
                return False
        return True

    wait_until(declared, what=queue, timeout_s=ARRIVE_S, interval_s=0.02)
    return queue


def test_faults_that_stay_end_in_a_dead_letter(
    stores: Servers, built: Path, graph: list[Friendship]
) -> None:
    """The twentieth failure puts a message aside as it was; moved back later, it is handled."""
    queue = queue_of("eu")
    once = {"patience": "0.2", "prefetch": "1", "workers": "1", "deadline": "60"}
    with (
        Run(stores, built, "barrier", Options(1, RATE, arguments=once)) as running,
        pika.BlockingConnection(pika.URLParameters(stores.broker("eu"))) as connection,
    ):
        channel = connection.channel()
        channel.queue_declare(f"{queue}.dead", durable=True)
        channel.queue_purge(f"{queue}.dead")
        stores.mongodb.pause()
        running.compose(graph)
        properties, body = _taken(channel, _later(stores, 800))  # after the fourth failure
        assert properties.headers is not None
        lineage = properties.headers["baggage"]
        properties.headers["x-attempts"] = MOST_ATTEMPTS - 2
        channel.basic_publish("", queue, body, properties)
        properties, _ = _taken(channel, _later(stores, 30_000))
        assert properties.headers is not None
        assert properties.headers["x-attempts"] == MOST_ATTEMPTS - 1
        channel.basic_publish("", queue, body, properties)
        dead, kept = _taken(channel, f"{queue}.dead")
        assert kept == body
        assert dead.headers is not None
        assert dead.headers["baggage"] == lineage
        assert "x-attempts" not in dead.headers
        assert not any(map(running.named, running.posted))
        stores.mongodb.resume()
        channel.basic_publish("", queue, kept, dead)
        running.settle()
        assert [trial.waited for trial in running.trials()] == [True]
