"""Events of Redis: of its keyspace, of a stream's consumers, and of its replication stream."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, Status
from antipode_shims import redis
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")


class Clients:
    """Plain ones of the primary, and instrumented ones of both servers."""

    def __init__(self, topology: RedisTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.plain = self._made(topology.primary, stack)
        self.writer = self._instrumented(self._made(topology.primary, stack), stack)
        reader = self._made(topology.replica, stack)
        self.reader = self._instrumented(reader, stack, reads_from="replica")

    def _made(self, address: Any, stack: ExitStack) -> Any:
        made = client(address, socket_timeout=5, decode_responses=True)
        stack.callback(made.close)
        return made

    def _instrumented(self, made: Any, stack: ExitStack, **options: Any) -> Any:
        redis.instrument_client(made, datastore="posts", **options)
        stack.callback(redis.uninstrument_client, made)
        return made


@pytest.fixture
def clients(antipode_redis: RedisTopology) -> Iterator[Clients]:
    """Empty servers, which tell of what is set."""
    with ExitStack() as stack:
        made = Clients(antipode_redis, stack)
        made.plain.flushall()
        antipode_redis.config({"notify-keyspace-events": "E$"})
        made.plain.set("post", "old")
        antipode_redis.wait_replicated()
        yield made
        antipode_redis.resume()


def by_keyspace(clients: Clients) -> str:
    """Set the post, and read the event of that."""
    with clients.plain.pubsub(ignore_subscribe_messages=True) as events:
        events.subscribe("__keyevent@0__:set")
        events.get_message(timeout=5)
        clients.plain.set("post", "new")
        told = events.get_message(ignore_subscribe_messages=True, timeout=5)
    return str(told["data"])


def by_stream(clients: Clients) -> str:
    """Set the post, and add what names it to a stream, which a consumer reads at the primary."""
    with clients.plain.pipeline() as pipeline:
        pipeline.set("post", "new").xadd("changes", {"key": "post"}).execute()
    ((_, ((_, entry),)),) = clients.plain.xread({"changes": "0"}, block=5000)
    return str(entry["key"])


@pytest.mark.parametrize("told", [by_keyspace, by_stream])
def test_who_handles_an_event_reads_at_a_replica_what_it_is_of(clients: Clients, told: Any) -> None:
    """As of now, for such events name no position; without, the old value is read."""
    clients.topology.pause()
    key = told(clients)
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        assert clients.reader.get(key) == "old"
    lineage = antipode.as_of_now("posts")
    assert not antipode.check(lineage)
    with antipode.scope(lineage):
        clients.topology.resume()
        antipode.barrier(timeout=10)
        assert clients.reader.get(key) == "new"


def test_an_offset_of_a_random_program_is_that_of_its_write(clients: Clients) -> None:
    """As one who reads the replication stream has it, with its id or without."""
    draw = random.Random(17)
    for step in range(20):
        key, value = draw.choice(["post", "note"]), f"step {step}"
        clients.plain.set(key, value)
        told = clients.plain.info("replication")
        given = {"replid": told["master_replid"]} if draw.random() < 0.5 else {}
        lineage = redis.lineage("posts", offset=told["master_repl_offset"], **given)
        (write,) = lineage
        assert (write.key, write.covering) == (told["master_replid"], False)
        with antipode.scope(lineage):
            antipode.barrier(timeout=10)
            assert clients.reader.get(key) == value


def test_an_event_of_another_history_is_refused(clients: Clients) -> None:
    """Nor does one pass that is ahead of all: the barrier ends in time."""
    with pytest.raises(antipode.UnmetError) as unmet:
        antipode.barrier(redis.lineage("posts", offset=1, replid="f" * 40), timeout=2)
    assert [each.status for each in unmet.value.result.outcomes] == [Status.UNKNOWN_LOG]
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(redis.lineage("posts", offset=2**62), timeout=0.3)
    assert redis.lineage("posts", offset=7) != Lineage()
