"""Events of MongoDB: what a change stream reports."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from bson import json_util

import antipode
from antipode import Status, WriteId
from antipode_shims import mongodb
from antipode_testing import MongoDBTopology
from tests.integration.mongodb._clients import client, plain_client

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("mongodb")


class Watched:
    """A collection with one post, its change stream, and clients of both members."""

    def __init__(self, topology: MongoDBTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.plain = stack.enter_context(plain_client(topology.primary))
        self.writer = stack.enter_context(client(topology.primary))
        self.reader = stack.enter_context(
            client(
                topology.replica,
                {"reads_from": "replica"},
                readPreference="secondaryPreferred",
            )
        )
        self.plain.app.watched.drop()
        self.plain.app.watched.insert_one({"_id": 1, "body": ""})
        topology.wait_replicated()
        self.changes = stack.enter_context(self.plain.app.watched.watch())

    def read(self) -> str:
        """What the secondary shows."""
        return str(self.reader.app.watched.find_one({"_id": 1})["body"])


@pytest.fixture(scope="module")
def alone() -> Iterator[MongoDBTopology]:
    """A primary that is a majority by itself, and a secondary: streams wait for a majority."""
    with MongoDBTopology(voting=False) as topology:
        yield topology


@pytest.fixture
def watched(alone: MongoDBTopology) -> Iterator[Watched]:
    """A change stream that follows a collection."""
    with ExitStack() as stack:
        yield Watched(alone, stack)
        alone.resume()


def test_who_watches_reads_at_a_secondary_what_the_event_reports(watched: Watched) -> None:
    """By the event, or as of now; without, the old document is read."""
    watched.topology.pause()
    watched.plain.app.watched.update_one({"_id": 1}, {"$set": {"body": "new"}})
    event = next(watched.changes)
    lineage = mongodb.lineage("posts", event)
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        assert watched.read() == ""
    assert not antipode.check(lineage)
    assert not antipode.check(antipode.as_of_now("posts"))
    with antipode.scope(lineage):
        watched.topology.resume()
        antipode.barrier(timeout=10)
        assert watched.read() == "new"
    said = json.loads(json_util.dumps(event))  # As a connector of Kafka's has it.
    assert mongodb.lineage("posts", said) == lineage


@pytest.mark.slow
def test_each_event_of_a_random_program_is_of_its_commit(watched: Watched) -> None:
    """Its position is its writer's own, of a transaction's last, and a barrier on it ends."""
    draw = random.Random(17)
    posts = watched.writer.app.watched
    for step in range(12):
        body, several = f"step {step}", draw.random() < 0.5
        with antipode.scope() as request:
            if several:
                with watched.writer.start_session() as session, session.start_transaction():
                    for each in ("first", body):
                        update: dict[str, Any] = {"$set": {"body": each}}
                        posts.update_one({"_id": 1}, update, session=session)
            else:
                posts.update_one({"_id": 1}, {"$set": {"body": body}})
            own = max(int(write.version) for write in request.lineage if not write.covering)
        *_, event = [next(watched.changes) for _ in range(2 if several else 1)]
        (entry,) = lineage = mongodb.lineage("posts", event)
        assert (entry.version, entry.covering) == (own, False)
        with antipode.scope(lineage):
            antipode.barrier(timeout=10)
            assert watched.read() == body


def test_an_event_from_before_the_set_is_refused(watched: Watched) -> None:
    """Nor does one that is ahead of every clock pass: the barrier ends in time."""
    watched.plain.app.watched.update_one({"_id": 1}, {"$set": {"body": "new"}})
    event = next(watched.changes)
    old = {"clusterTime": {"$timestamp": {"t": 1_000_000, "i": 1}}}
    with pytest.raises(antipode.UnmetError) as unknown:
        antipode.barrier(mongodb.lineage("posts", old), timeout=5)
    assert [each.status for each in unknown.value.result.outcomes] == [Status.UNKNOWN_LOG]
    ahead = {"clusterTime": {"$timestamp": {"t": event["clusterTime"].time + 10_000, "i": 1}}}
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(mongodb.lineage("posts", ahead), timeout=0.5)


def test_the_sets_name_is_asked_once(watched: Watched) -> None:
    """Of a client that has read nothing yet: the primary says it."""
    with client(watched.topology.primary, {"datastore": "fresh"}):
        told = {"clusterTime": {"$timestamp": {"t": 2_000_000_000, "i": 7}}}
        (write,) = mongodb.lineage("fresh", told)
        name = watched.plain.admin.command("hello")["setName"]
        version = 2_000_000_000 << 32 | 7
        assert write == WriteId("fresh", name, version, write.written_hour)
    with pytest.raises(antipode.ConfigurationError, match="primary of 'fresh'"):
        mongodb.lineage("fresh", told)
