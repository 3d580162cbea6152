"""Reads that wait keep no connection of their client's pool."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)
from pymongo.read_preferences import Secondary

import antipode
from antipode_testing import wait_until

from ._clients import DB, async_client, client
from ._promises import WRITER, floor, promised, refund, refunded, regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Lineage
    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

POOL = 5
READS = 100
TIMEOUT_S = 15.0
READER: dict[str, Any] = {"reads_from": "replica"}
SMALL: dict[str, Any] = {"readPreference": "secondary", "maxPoolSize": POOL}

READS_OF: dict[str, Callable[[Any], Any]] = {
    "find_one": lambda posts: posts.find_one({"_id": "new"}),
    "find": lambda posts: list(posts.find({"_id": "new"})),
    "count": lambda posts: posts.count_documents({"_id": "new"}),
    "aggregate": lambda posts: list(posts.aggregate([{"$match": {"_id": "new"}}])),
}


class Commands(CommandListener):
    """The application's own listener: the names of commands, and of those that failed."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failures: list[str] = []

    def started(self, event: CommandStartedEvent) -> None:
        """A command is sent."""
        self.names.append(event.command_name)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """It was answered."""

    def failed(self, event: CommandFailedEvent) -> None:
        """It was not."""
        self.failures.append(event.command_name)


def await_waiting(one: Any, reads: int) -> None:
    """Return once that many reads of *one* wait, without a connection of its pool."""
    watcher = one._antipode.shim.watcher
    wait_until(
        lambda: len(watcher._subscribers) == reads, what=f"{reads} reads", timeout_s=TIMEOUT_S
    )


@pytest.fixture
def lagging(antipode_mongodb: MongoDBTopology) -> Iterator[tuple[MongoDBTopology, Lineage]]:
    """A secondary that does not have the write of a lineage until it goes on."""
    with client(antipode_mongodb.primary) as writer:
        writer[DB].posts.delete_many({})
        writer[DB].posts.insert_one({"_id": "old"})
        antipode_mongodb.wait_replicated()
        antipode_mongodb.stall()
        with antipode.scope() as scope:
            writer[DB].posts.insert_one({"_id": "new"})
            yield antipode_mongodb, scope.lineage
        antipode_mongodb.unstall()


@pytest.mark.parametrize("read", READS_OF.values(), ids=READS_OF)
def test_reads_that_wait_hold_nobody_up(
    lagging: tuple[MongoDBTopology, Lineage], read: Callable[[Any], Any]
) -> None:
    """Beside 100 reads that wait, with 5 connections, a read without dependencies passes."""
    topology, lineage = lagging
    with (
        client(topology.replica, READER, **SMALL) as one,
        ThreadPoolExecutor(READS) as threads,
    ):
        posts = one[DB].posts

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return bool(read(posts))

        waiting = [threads.submit(wait) for _ in range(READS)]
        await_waiting(one, READS)
        with antipode.scope():
            assert not read(posts)
        topology.unstall()
        assert [each.result(TIMEOUT_S) for each in waiting] == [True] * READS


async def test_tasks_that_wait_hold_nobody_up(lagging: tuple[MongoDBTopology, Lineage]) -> None:
    """The same for tasks of one event loop; one that is cancelled meanwhile waits no longer."""
    topology, lineage = lagging
    async with async_client(topology.replica, READER, **SMALL) as one:
        posts = one[DB].posts

        async def wait() -> Any:
            with antipode.scope(lineage):
                await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
                return await posts.find_one({"_id": "new"})

        waiting = [asyncio.create_task(wait()) for _ in range(READS + 1)]
        await asyncio.to_thread(await_waiting, one, READS + 1)
        waiting.pop().cancel()
        await asyncio.to_thread(await_waiting, one, READS)
        with antipode.scope():
            assert await posts.find_one({"_id": "new"}) is None
        await asyncio.to_thread(topology.unstall)
        assert await asyncio.gather(*waiting) == [{"_id": "new"}] * READS


def test_reads_that_keep_their_connection_take_half_of_the_pool(
    antipode_mongodb: MongoDBTopology,
) -> None:
    """Of those beyond none waits, and a read without dependencies finds a connection."""
    promise = promised()
    with (
        regions(antipode_mongodb) as (writer, _),
        client(antipode_mongodb.primary, WRITER, maxPoolSize=POOL) as one,
        ThreadPoolExecutor(POOL) as threads,
    ):
        kept = one._antipode.rules.kept

        def wait() -> bool:
            with (
                floor(promise, timeout=TIMEOUT_S),
                one.start_session() as session,
                session.start_transaction(),
            ):
                return refunded(one, promise, session=session)

        waiting = [threads.submit(wait) for _ in range(POOL // 2)]
        wait_until(lambda: kept._taken == POOL // 2, what="reads", timeout_s=TIMEOUT_S)
        with pytest.raises(antipode.BarrierTimeout) as late:
            wait()
        assert "half of the pool" in str(late.value.__cause__)
        with antipode.scope():
            assert not refunded(one, promise)
        refund(writer, promise)
        assert [each.result(TIMEOUT_S) for each in waiting] == [True] * (POOL // 2)
        assert wait()


def test_listeners_see_the_read_once(lagging: tuple[MongoDBTopology, Lineage]) -> None:
    """To the application's listeners a read that was made again is one command, and no failure."""
    topology, lineage = lagging
    commands = Commands()
    options = {**SMALL, "event_listeners": [commands]}
    with (
        client(topology.replica, READER, **options) as one,
        ThreadPoolExecutor(1) as threads,
    ):

        def wait() -> Any:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return one[DB].posts.find_one({"_id": "new"})

        reading = threads.submit(wait)
        await_waiting(one, 1)
        topology.unstall()
        assert reading.result(TIMEOUT_S)
        assert commands.names.count("find") == 1
        assert commands.failures == []


def test_what_keeps_its_connection_waits_there(lagging: tuple[MongoDBTopology, Lineage]) -> None:
    """A command outside of PyMongo's retries waits on its connection, and raises in time."""
    topology, lineage = lagging
    with client(topology.replica, READER, **SMALL) as one, antipode.scope(lineage):
        antipode.barrier(timeout=0.2, at="read")
        with pytest.raises(antipode.BarrierTimeout):
            one[DB].command("count", "posts", read_preference=Secondary())
